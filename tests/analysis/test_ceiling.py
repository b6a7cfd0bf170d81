"""Noise ceilings of curves: those of two implementations that share no code with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psyprobe.analysis.human_observer import ceiling
from psyprobe.analysis.noise_ceiling import (
    SCORES,
    Curve,
    curve_scores,
    curves,
    is_error,
    noise_ceilings,
)

#: Tolerance of the reference for correlations and for errors, relative for values above 1.
EXACT = 1e-4


@pytest.fixture(scope="module")
def human_curves() -> list[Curve]:
    return curves()


@pytest.fixture(scope="module")
def expected(oracle_data: Path) -> pd.DataFrame:
    return pd.read_csv(oracle_data / "human_measured" / "ceilings_by_curve.csv")


def the_curve(human_curves: list[Curve], row: pd.Series) -> Curve:
    x = np.array([float(position) for position in row["x"].split(";")])
    family = row["curve"].split("/")[1]

    def matches(curve: Curve) -> bool:
        if (curve.dataset, curve.family, curve.fixed["colour_id"], curve.x.size) != (
            row["dataset"],
            family,
            row["colour_id"],
            x.size,
        ):
            return False
        parameters = [
            name
            for name in ("frequency", "sigma", "cycles", "temporal_frequency")
            if name in curve.fixed
        ]
        fixed = all(
            np.isclose(curve.fixed[name], row[name], rtol=1e-4)
            for name in parameters
            if pd.notna(row[name])
        )
        light = pd.isna(row["luminance"]) or np.isclose(
            curve.fixed["luminance"], row["luminance"], rtol=1e-4
        )
        return fixed and bool(light) and np.allclose(curve.x, x, rtol=1e-4)

    (the_one,) = [curve for curve in human_curves if matches(curve)]
    return the_one


def test_there_are_166_curves_of_seven_data_sets(human_curves: list[Curve]) -> None:
    assert len(human_curves) == 166
    assert len({curve.dataset for curve in human_curves}) == 7
    assert min(len(curve.persons) for curve in human_curves) == 3


def test_the_ceilings_of_curves_are_those_of_the_oracle(
    human_curves: list[Curve], expected: pd.DataFrame
) -> None:
    ends = []
    for _, rows in expected.groupby("curve"):
        curve = the_curve(human_curves, rows.iloc[0])
        scores = curve.scores()
        mean = curve.log_s.mean(axis=0)
        castle, flat = (
            curve_scores(curve.castle, mean),
            curve_scores(np.zeros_like(mean), mean),
        )
        assert rows["n_persons"].iloc[0] == len(curve.persons)
        for row in rows.to_dict("records"):
            name = row["score"]
            top = ceiling(scores[name], error=is_error(name))
            values = {
                "ceiling": top.value,
                "sd_persons": top.sd,
                "median": np.median(scores[name]),
            }
            values["castle"] = castle[name]
            if name in ("shape_rmse_log10", "alignment"):
                values["flat"] = flat[name]
            for column, value in values.items():
                assert value == pytest.approx(row[column], rel=EXACT, abs=EXACT), (
                    row["curve"],
                    name,
                    column,
                )
            scale = np.log if is_error(name) else np.arctanh
            half = (scale(row["high"]) - scale(row["low"])) / 2
            ends += [
                abs(scale(top.low) - scale(row["low"])) / half,
                abs(scale(top.high) - scale(row["high"])) / half,
            ]
    assert max(ends) < 0.05


def test_the_ceilings_of_data_sets_are_those_of_the_oracle(oracle_data: Path) -> None:
    rows = pd.read_csv(oracle_data / "human_measured" / "ceilings.csv")
    table = noise_ceilings()
    assert len(table) == 84
    merged = rows.merge(
        table, on=["dataset", "family", "score"], suffixes=("", "_ours"), validate="1:1"
    )
    assert len(merged) == len(rows) == 42
    for name in ("n_curves", "n_persons"):
        assert (merged[name] == merged[f"{name}_ours"]).all()
    for name in ("ceiling", "sd_persons", "worst", "best"):
        np.testing.assert_allclose(
            merged[f"{name}_ours"], merged[name], rtol=EXACT, atol=EXACT, err_msg=name
        )
    for name in ("low", "high"):
        np.testing.assert_allclose(
            merged[f"{name}_ours"], merged[name], atol=0.02, rtol=0.01, err_msg=name
        )


def test_persons_who_differ_in_gain_alone_are_as_one_in_shape() -> None:
    log_s = np.linspace(1, 2, 6) + np.array([[0.0], [0.2], [0.4]])
    curve = Curve("made", "area", {}, np.arange(6.0), ("a", "b", "c"), log_s, log_s[0])
    scores = curve.scores()
    np.testing.assert_allclose(scores["shape_rmse_log10"], 0, atol=1e-12)
    np.testing.assert_allclose(scores["rmse_log10"], [0.3, 0, 0.3], atol=1e-12)
    np.testing.assert_allclose(scores["alignment"], 1)
    assert set(scores) == set(SCORES)
