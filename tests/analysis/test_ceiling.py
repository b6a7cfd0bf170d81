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

#: Of what the reference states for correlations and for errors, relative where a value is above 1.
EXACT = 1e-4


@pytest.fixture(scope="module")
def found() -> list[Curve]:
    return curves()


@pytest.fixture(scope="module")
def expected(oracle_data: Path) -> pd.DataFrame:
    return pd.read_csv(oracle_data / "human_measured" / "ceilings_by_curve.csv")


def the_curve(found: list[Curve], row: pd.Series) -> Curve:
    x = np.array([float(each) for each in row["x"].split(";")])
    family = row["curve"].split("/")[1]

    def same(one: Curve) -> bool:
        if (one.dataset, one.family, one.fixed["colour_id"], one.x.size) != (
            row["dataset"],
            family,
            row["colour_id"],
            x.size,
        ):
            return False
        named = [
            name
            for name in ("frequency", "sigma", "cycles", "temporal_frequency")
            if name in one.fixed
        ]
        fixed = all(
            np.isclose(one.fixed[name], row[name], rtol=1e-4)
            for name in named
            if pd.notna(row[name])
        )
        light = pd.isna(row["luminance"]) or np.isclose(
            one.fixed["luminance"], row["luminance"], rtol=1e-4
        )
        return fixed and bool(light) and np.allclose(one.x, x, rtol=1e-4)

    (the_one,) = [one for one in found if same(one)]
    return the_one


def test_there_are_166_curves_of_seven_data_sets(found: list[Curve]) -> None:
    assert len(found) == 166
    assert len({one.dataset for one in found}) == 7
    assert min(len(one.persons) for one in found) == 3


def test_the_ceilings_of_curves_are_those_of_the_oracle(
    found: list[Curve], expected: pd.DataFrame
) -> None:
    ends = []
    for _, rows in expected.groupby("curve"):
        one = the_curve(found, rows.iloc[0])
        scores = one.scores()
        mean = one.log_s.mean(axis=0)
        castle, flat = (
            curve_scores(one.castle, mean),
            curve_scores(np.zeros_like(mean), mean),
        )
        assert rows["n_persons"].iloc[0] == len(one.persons)
        for row in rows.to_dict("records"):
            name = row["score"]
            top = ceiling(scores[name], error=is_error(name))
            told = {
                "ceiling": top.value,
                "sd_persons": top.sd,
                "median": np.median(scores[name]),
            }
            told["castle"] = castle[name]
            if name in ("shape_rmse_log10", "alignment"):
                told["flat"] = flat[name]
            for column, value in told.items():
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
    both = rows.merge(
        table, on=["dataset", "family", "score"], suffixes=("", "_ours"), validate="1:1"
    )
    assert len(both) == len(rows) == 42
    for name in ("n_curves", "n_persons"):
        assert (both[name] == both[f"{name}_ours"]).all()
    for name in ("ceiling", "sd_persons", "worst", "best"):
        np.testing.assert_allclose(
            both[f"{name}_ours"], both[name], rtol=EXACT, atol=EXACT, err_msg=name
        )
    for name in ("low", "high"):
        np.testing.assert_allclose(
            both[f"{name}_ours"], both[name], atol=0.02, rtol=0.01, err_msg=name
        )


def test_persons_who_differ_in_gain_alone_are_as_one_in_shape() -> None:
    log_s = np.linspace(1, 2, 6) + np.array([[0.0], [0.2], [0.4]])
    one = Curve("made", "area", {}, np.arange(6.0), ("a", "b", "c"), log_s, log_s[0])
    scores = one.scores()
    np.testing.assert_allclose(scores["shape_rmse_log10"], 0, atol=1e-12)
    np.testing.assert_allclose(scores["rmse_log10"], [0.3, 0, 0.3], atol=1e-12)
    np.testing.assert_allclose(scores["alignment"], 1)
    assert set(scores) == set(SCORES)
