"""Measured thresholds matched with experiments: the rows of the oracle, which shares no code with
the package."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psyprobe.analysis import thresholds_for
from psyprobe.errors import InputError
from psyprobe.human.castle import castle_csf, castle_mechanisms, castle_shares
from psyprobe.human.datasets import thresholds
from psyprobe.human.points import Conditions, matched_thresholds

#: Conditions of the six experiments; ranges are those of the oracle.
GABOR = {"level": "frequency", "span": (0.5, 30.5), "luminance": 100.0, "area": math.pi}
EXPERIMENTS = {
    "gabor_achromatic": Conditions(**GABOR),
    "gabor_red_green": Conditions(**GABOR, direction="red_green"),
    "gabor_yellow_violet": Conditions(**GABOR, direction="yellow_violet"),
    "noise_achromatic": Conditions(
        "frequency",
        (0.5, 23.0),
        luminance=100.0,
        area=4 * math.pi,
        noise=True,
        gain=math.sqrt(2),
    ),
    "luminance": Conditions("luminance", (0.1, 200.0), frequency=2.0, area=math.pi),
    "area": Conditions("area", (0.02, 8.0), frequency=8.0, luminance=100.0),
}
KEY = [
    "dataset",
    "observer",
    "colour_id",
    "n",
    "match",
    "x",
    "frequency",
    "luminance",
    "area",
]


@pytest.fixture(scope="module")
def expected(oracle_data: Path) -> pd.DataFrame:
    return pd.read_csv(oracle_data / "human_measured" / "matched_points.csv")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_rules_give_the_rows_of_the_oracle(
    experiment: str, expected: pd.DataFrame
) -> None:
    thresholds = (
        matched_thresholds(EXPERIMENTS[experiment])
        .sort_values(KEY)
        .reset_index(drop=True)
    )
    rows = (
        expected[expected["experiment"] == experiment]
        .sort_values(KEY)
        .reset_index(drop=True)
    )
    assert len(thresholds) == len(rows)
    for name in ("dataset", "observer", "colour_id", "n", "match"):
        assert (thresholds[name] == rows[name]).all(), name
    for name in (
        "x",
        "sensitivity",
        "sensitivity_transported",
        "frequency",
        "luminance",
        "area",
    ):
        np.testing.assert_allclose(
            thresholds[name], rows[name], rtol=5e-5, err_msg=name
        )
    np.testing.assert_allclose(
        thresholds["log10_ratio"], rows["log10_ratio"], atol=5.1e-5
    )
    np.testing.assert_allclose(
        thresholds["peak_cone_contrast"], rows["peak_cone_contrast"], rtol=0.01
    )


def test_they_are_2785_in_all(expected: pd.DataFrame) -> None:
    assert (
        sum(len(matched_thresholds(conditions)) for conditions in EXPERIMENTS.values())
        == len(expected)
        == 2785
    )


def test_noise_is_never_measured_directly() -> None:
    assert "direct" not in set(
        matched_thresholds(EXPERIMENTS["noise_achromatic"])["match"]
    )


def test_shares_are_those_of_the_tables() -> None:
    rows = thresholds()
    rows = rows[
        (rows["temporal_frequency"] == 0)
        & (rows["eccentricity"] == 0)
        & (rows["frequency"] > 0)
    ]
    colours = {
        "background": rows[["L", "M", "S"]].to_numpy(),
        "direction": rows[["dL", "dM", "dS"]].to_numpy(),
    }
    shares = castle_shares(
        rows["frequency"].to_numpy(), area=rows["area"].to_numpy(), **colours
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.max(axis=1), rows["colour_share"], atol=6e-4)
    mechanisms = np.array(["achromatic", "red_green", "yellow_violet"])[
        shares.argmax(axis=1)
    ]
    clear = rows["colour"] != "mixed"
    assert (mechanisms[clear] == rows["colour"][clear].str.replace("-", "_")).all()


def test_a_share_is_what_is_left_without_the_other_mechanisms() -> None:
    background, direction = [70.0, 30.0, 2.0], [0.9, 0.4, 0.5]
    sensitivity = castle_csf(4, background=background, direction=direction, area=1)
    alone = castle_mechanisms(4, luminance=100, area=1)
    contrast = abs(0.9 + 0.4) / 100
    length = np.sqrt(((np.array(direction) / background) ** 2).sum() / 3)
    shares = castle_shares(4, background=background, direction=direction, area=1)
    assert shares[0] == pytest.approx(
        (contrast * alone.achromatic / length / sensitivity) ** 2
    )


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_catalogue_names_the_same_conditions(
    experiment: str, expected: pd.DataFrame
) -> None:
    """But for ends of ranges, which the oracle has its own of."""
    tables = thresholds_for(experiment), expected[expected["experiment"] == experiment]
    low, high = (
        max(table["x"].min() for table in tables) - 1e-4,
        min(table["x"].max() for table in tables) + 1e-4,
    )
    sensitivities, rows = (
        table[(table["x"] >= low) & (table["x"] <= high)]["sensitivity_transported"]
        for table in tables
    )
    assert len(sensitivities) == len(rows) > 200
    np.testing.assert_allclose(np.sort(sensitivities), np.sort(rows), rtol=5e-5)


def test_nobody_was_measured_behind_a_mask() -> None:
    with pytest.raises(
        InputError, match="mask_coherent: nobody's thresholds belong to it"
    ):
        thresholds_for("mask_coherent")
