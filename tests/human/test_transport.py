"""How far castleCSF's ratio moves thresholds, and what is shipped of acuity and flicker: rows of
the oracle."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_points import SHOWN

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
        rows = matched_thresholds(SHOWN[str(name)])
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
                told = (values.mean(), rms(values), values.std(ddof=0))
                wanted = [pair[f"{what}_{when}"] for what in ("mean", "rms", "shape")]
                assert told == pytest.approx(wanted, abs=EXACT), (name, pair)


#: How far two conditions of one person may be apart, as a factor.
REACH = {"area": 250.0, "luminance": 10.0, "frequency": 1.43}


def test_transport_holds_within_a_person(folder: Path) -> None:
    rows = observers()
    rows = rows[(rows["temporal_frequency"] == 0) & (rows["eccentricity"] == 0)]
    rows = rows[(rows["stimulus"] != "disk") & (rows["frequency"] > 0)]
    asked = {
        "background": rows[["L", "M", "S"]].to_numpy(),
        "direction": rows[["dL", "dM", "dS"]].to_numpy(),
    }
    castle = castle_csf(
        rows["frequency"].to_numpy(), area=rows["area"].to_numpy(), **asked
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
        found = []
        for _, one in means.groupby(
            [*person, *(each for each in REACH if each != name)]
        ):
            x, values = one[name].to_numpy(), one[["measured", "predicted"]].to_numpy()
            i, j = np.triu_indices(len(x), 1)
            near = np.abs(np.log(x[i] / x[j])) <= math.log(REACH[str(name)]) + 1e-9
            found.append((values[i] - values[j])[near])
        measured, predicted = np.concatenate(found).T
        for row in bins.to_dict("records"):
            low, high = (
                float(end) for end in row["abs_log10_ratio"].strip("(]").split(",")
            )
            here = (np.abs(predicted) > low) & (np.abs(predicted) <= high)
            left = (measured - predicted)[here]
            assert here.sum() == row["pairs"]
            told = (
                rms(measured[here]),
                rms(left),
                (left * np.sign(predicted[here])).mean(),
            )
            assert told == pytest.approx(
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
        others = (log_ppd.sum() - log_ppd) / (len(ppd) - 1)
        told = {
            "n": len(ppd),
            "median": ppd.median(),
            "mean": ppd.mean(),
            "minimum": ppd.min(),
            "maximum": ppd.max(),
        }
        told |= {"sd_log10": log_ppd.std(), "ceiling_rmse_log10": rms(log_ppd - others)}
        for name, value in told.items():
            assert value == pytest.approx(row[name], rel=5e-5, abs=1e-4), (
                row["colour"],
                row["eccentricity"],
                name,
            )


def test_flicker_is_that_of_the_oracle(folder: Path) -> None:
    expected, found = pd.read_csv(folder / "flicker.csv"), flicker_thresholds()
    assert len(expected) == len(found) == 532
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
    found = found.sort_values(order)
    assert expected["dataset"].tolist() == found["dataset"].tolist()
    for name in (*order[1:], "frequency"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, err_msg=name)
