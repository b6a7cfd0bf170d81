"""How far castleCSF's ratio moves thresholds, and what is shipped of acuity and flicker: rows of
the oracle."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_points import EXPERIMENTS

from psyprobe.human import flicker_thresholds, observers
from psyprobe.human.acuity import resolution_limits
from psyprobe.human.castle import castle_csf
from psyprobe.human.points import matched_thresholds

#: The oracle has four digits.
EXACT = 5.1e-5


@pytest.fixture(scope="module")
def folder(oracle_data: Path) -> Path:
    return oracle_data / "human_measured"


def rms(values: pd.Series) -> float:
    return math.sqrt((values**2).mean())


def test_data_sets_agree_after_transport_as_far_as_the_oracle_says(
    folder: Path,
) -> None:
    expected = pd.read_csv(folder / "transport_pairs.csv")
    assert len(expected) == 59
    for name, pairs in expected.groupby("experiment"):
        rows = matched_thresholds(EXPERIMENTS[str(name)])
        rows = rows[(rows["observer"] == "mean") & (rows["match"] != "long")]
        log_s = {
            "before": np.log10(rows["sensitivity"]),
            "after": np.log10(rows["sensitivity_transported"]),
        }
        # Half octaves.
        places = [rows["dataset"], np.round(2 * np.log2(rows["x"]))]
        means = pd.DataFrame(log_s).groupby(places).mean()
        for pair in pairs.to_dict("records"):
            apart = (
                means.loc[pair["dataset_a"]] - means.loc[pair["dataset_b"]]
            ).dropna()
            assert len(apart) == pair["n_x"]
            for when, values in apart.items():
                statistics = (values.mean(), rms(values), values.std(ddof=0))
                published = [
                    pair[f"{statistic}_{when}"]
                    for statistic in ("mean", "rms", "shape")
                ]
                assert statistics == pytest.approx(published, abs=EXACT), (name, pair)


#: How far two conditions of one person may be apart, as a factor.
REACH = {"area": 250.0, "luminance": 10.0, "frequency": 1.43}


def test_transport_holds_within_a_person(folder: Path) -> None:
    rows = observers()
    rows = rows[(rows["temporal_frequency"] == 0) & (rows["eccentricity"] == 0)]
    rows = rows[(rows["stimulus"] != "disk") & (rows["frequency"] > 0)]
    colours = {
        "background": rows[["L", "M", "S"]].to_numpy(),
        "direction": rows[["dL", "dM", "dS"]].to_numpy(),
    }
    castle = castle_csf(
        rows["frequency"].to_numpy(), area=rows["area"].to_numpy(), **colours
    )
    rows = rows.assign(
        luminance=rows["L"] + rows["M"],
        predicted=np.log10(castle),
        measured=-rows["log10_threshold"],
    )
    for name in REACH:
        rows[name] = [float(f"{value:.4e}") for value in rows[name]]
    person = ["dataset", "observer", "colour_id"]
    means = (
        rows.groupby([*person, *REACH])[["measured", "predicted"]].mean().reset_index()
    )
    expected = pd.read_csv(folder / "transport_within_person.csv")
    assert set(expected["change"]) == set(REACH)
    for name, bins in expected.groupby("change"):
        pairs = []
        for _, group in means.groupby(
            [*person, *(column for column in REACH if column != name)]
        ):
            x, values = (
                group[name].to_numpy(),
                group[["measured", "predicted"]].to_numpy(),
            )
            i, j = np.triu_indices(len(x), 1)
            near = np.abs(np.log(x[i] / x[j])) <= math.log(REACH[str(name)]) + 1e-9
            pairs.append((values[i] - values[j])[near])
        measured, predicted = np.concatenate(pairs).T
        for row in bins.to_dict("records"):
            low, high = (
                float(end) for end in row["abs_log10_ratio"].strip("(]").split(",")
            )
            in_range = (np.abs(predicted) > low) & (np.abs(predicted) <= high)
            residuals = (measured - predicted)[in_range]
            assert in_range.sum() == row["pairs"]
            statistics = (
                rms(measured[in_range]),
                rms(residuals),
                (residuals * np.sign(predicted[in_range])).mean(),
            )
            assert statistics == pytest.approx(
                (row["rms_measured"], row["rms_after"], row["bias"]), abs=EXACT
            ), row


def test_limits_of_people_are_those_of_the_oracle(folder: Path) -> None:
    """Pixels per degree, two to a cycle."""
    expected = pd.read_csv(folder / "acuity_summary.csv")
    groups = resolution_limits(observers=True).groupby(
        ["direction", "eccentricity_deg"]
    )["limit_cpd"]
    assert len(expected) == groups.ngroups == 9
    for row in expected.to_dict("records"):
        ppd = 2 * groups.get_group((row["colour"], row["eccentricity"]))
        log_ppd = np.log10(ppd)
        rest_mean = (log_ppd.sum() - log_ppd) / (len(ppd) - 1)
        statistics = {
            "n": len(ppd),
            "median": ppd.median(),
            "mean": ppd.mean(),
            "minimum": ppd.min(),
            "maximum": ppd.max(),
        }
        statistics |= {
            "sd_log10": log_ppd.std(),
            "ceiling_rmse_log10": rms(log_ppd - rest_mean),
        }
        for name, value in statistics.items():
            assert value == pytest.approx(row[name], rel=5e-5, abs=1e-4), (
                row["colour"],
                row["eccentricity"],
                name,
            )


def test_flicker_is_that_of_the_oracle(folder: Path) -> None:
    expected, thresholds = pd.read_csv(folder / "flicker.csv"), flicker_thresholds()
    assert len(expected) == len(thresholds) == 532
    order = [
        "dataset",
        "temporal_frequency",
        "luminance",
        "radius",
        "eccentricity",
        "sensitivity",
    ]
    expected = expected.assign(
        radius=expected["radius"].replace(99999, np.inf)
    ).sort_values(order)
    thresholds = thresholds.sort_values(order)
    assert expected["dataset"].tolist() == thresholds["dataset"].tolist()
    for name in (*order[1:], "frequency"):
        np.testing.assert_allclose(
            thresholds[name], expected[name], rtol=1e-4, err_msg=name
        )
