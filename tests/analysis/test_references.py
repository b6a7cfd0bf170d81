"""Scores with other human references: the reference's numbers, observers of known truth, and how
often the interval over studies holds a planted curve."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.interpolate import RegularGridInterpolator

from psyprobe.analysis.alignment import alignment_score
from psyprobe.analysis.comparison.references import (
    LevelGrid,
    ScoredSlices,
    moved_response,
    score_references,
    threshold_shifts,
)
from psyprobe.analysis.human_observer import measured_people, people
from psyprobe.human import Conditions, castle_csf, postreceptoral_csf, thresholds
from psyprobe.human.points import LEVELS, matched_thresholds

M = np.geomspace(0.5, 2, 10)
GABOR = {"luminance": 100.0, "area": np.pi}
FREQUENCY = ("frequency", np.geomspace(0.5, 32, 20))
#: Conditions; half the interval of contrast alone; the lowest score of a follower of castleCSF;
#: scores of that with stelaCSF and Barten's CSF: the reference's (statistics, section 3b).
STATED = {
    "achromatic": (*FREQUENCY, GABOR, 0.02, 0.975, (0.991, 0.704)),
    "red_green": (
        *FREQUENCY,
        {**GABOR, "direction": "red_green"},
        0.07,
        0.93,
        (),
    ),
    "yellow_violet": (
        "frequency",
        np.geomspace(0.5, 16, 16),
        {**GABOR, "direction": "yellow_violet"},
        0.08,
        0.94,
        (),
    ),
    "luminance": (
        "luminance",
        np.geomspace(0.1, 200, 20),
        {"frequency": 2.0, "area": np.pi},
        0.06,
        0.995,
        (0.991, 0.956),
    ),
    "area": (
        "area",
        np.geomspace(0.02, 8, 20),
        {"frequency": 8.0, "luminance": 100.0},
        0.06,
        0.97,
        (0.994, 0.954),
    ),
}


def human(conditions: Conditions, levels: np.ndarray) -> np.ndarray:
    values = {name: getattr(conditions, name) for name in LEVELS}
    values[conditions.level] = levels
    return castle_csf(direction=conditions.direction, **values)


def ratio_to_postreceptoral(conditions: Conditions, levels: np.ndarray) -> np.ndarray:
    values = {name: getattr(conditions, name) for name in LEVELS}
    values[conditions.level] = levels
    other = postreceptoral_csf(direction=conditions.direction, **values)
    return human(conditions, levels) / other


@pytest.mark.parametrize("name", STATED)
def test_studies_and_models_move_scores_as_the_reference_says(name: str) -> None:
    level, levels, fixed, error, lowest, models = STATED[name]
    conditions = Conditions(level, (levels[0], levels[-1]), **fixed)
    contrast = M / human(conditions, levels)[:, None]
    follower = np.broadcast_to(M, contrast.shape)

    def found(response: np.ndarray, grid: LevelGrid | None = None):  # type: ignore[no-untyped-def]
        slices = ScoredSlices(M, contrast, response)
        return score_references(conditions, levels, slices, grid, None, 0.95)

    assert found(contrast).error == pytest.approx(error, abs=0.005)
    fine = np.geomspace(contrast.min() / 10, 1, 400)
    grid = LevelGrid(levels, fine, fine * human(conditions, levels)[:, None])
    of_follower = found(follower, grid)
    assert min(of_follower.without_study.values()) == pytest.approx(lowest, abs=0.003)
    names = ["stela_csf", "barten_csf"] if models else []
    assert [*of_follower.by_model] == ["castle_csf", "postreceptoral_csf", *names]
    others = [*of_follower.by_model.values()][2:]
    assert others == pytest.approx(list(models), abs=0.002)
    response = np.round(M * ratio_to_postreceptoral(conditions, levels)[:, None], 9)
    multiplier = np.broadcast_to(M, response.shape)
    expected = stats.spearmanr(multiplier.ravel(), response.ravel())[0]
    assert of_follower.by_model["postreceptoral_csf"] == pytest.approx(
        expected, abs=0.002
    )
    assert not found(follower).by_model


def test_responses_that_grow_as_a_power_are_moved_exactly() -> None:
    contrast = M[::-1] * np.array([[0.01], [0.05]])
    shift = np.array([0.14, -0.3])
    moved = moved_response(ScoredSlices(M[::-1], contrast, contrast**0.7), shift)
    np.testing.assert_allclose(moved, (contrast * 10 ** shift[:, None]) ** 0.7)


def test_a_follower_of_a_refit_scores_1_with_it() -> None:
    level, levels, fixed, *_ = STATED["achromatic"]
    conditions = Conditions(level, (levels[0], levels[-1]), **fixed)
    contrast = M / human(conditions, levels)[:, None]
    shift = threshold_shifts(conditions, tuple(levels.tolist()))["hdrvdp_csf"]
    slices = ScoredSlices(M, contrast, np.round(M / 10 ** shift[:, None], 12))
    moved = np.round(moved_response(slices, shift), 9)
    assert alignment_score(M, moved) == pytest.approx(1, abs=1e-9)
    assert alignment_score(M, slices.response) < 0.99


def test_equal_responses_have_no_other_score() -> None:
    level, levels, fixed, *_ = STATED["achromatic"]
    conditions = Conditions(level, (levels[0], levels[-1]), **fixed)
    equal = ScoredSlices(M, M * np.ones((20, 1)), np.ones((20, 10)))
    assert score_references(conditions, levels, equal, None, None, 0.95) is None


def test_people_as_the_reference_score_as_scipy_says() -> None:
    """A follower of castleCSF, at multiples of the mean of 16 people and of each 15."""
    conditions = Conditions("frequency", (0.5, 30.5), **GABOR)
    people = measured_people(conditions, "modelfest", (0.5, 28.0))
    table = matched_thresholds(conditions).query("dataset == 'modelfest'")
    table = table[table["observer"] != "mean"].assign(
        log=lambda rows: np.log10(rows["sensitivity_transported"])
    )
    table = table[table["x"] < 29]
    levels = np.unique(table["x"])
    np.testing.assert_allclose(people.levels, levels, rtol=1e-4)
    observers = table["observer"].unique()

    def expected_z(left_out: str) -> float:
        rows = table[table["observer"] != left_out]
        sensitivity = 10 ** rows.groupby("x")["log"].mean().to_numpy()
        response = M * (human(conditions, people.levels) / sensitivity)[:, None]
        multiplier = np.broadcast_to(M, response.shape)
        return np.arctanh(stats.spearmanr(multiplier.ravel(), response.ravel())[0])

    fine = np.geomspace(1e-4, 1, 400)
    response = fine * human(conditions, people.levels)[:, None]
    contrast = M / human(conditions, FREQUENCY[1])[:, None]
    score = score_references(
        conditions,
        FREQUENCY[1],
        ScoredSlices(M, contrast, contrast),
        LevelGrid(people.levels, fine, response),
        people,
        0.95,
    ).by_people
    assert (score.persons, score.levels) == (16, len(levels))
    z = expected_z("nobody")
    assert score.value == pytest.approx(np.tanh(z), abs=1e-6)
    without = [expected_z(observer) for observer in observers]
    reach = np.std(without) * np.sqrt(15) * stats.t.ppf(0.975, 15)
    half = (np.tanh(z + reach) - np.tanh(z - reach)) / 2
    assert score.error == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize("name", ["achromatic", "luminance"])
def test_people_as_the_reference_are_those_of_the_row(name: str) -> None:
    """Of luminance 25 people were measured, and 12 at enough levels to be scored."""
    level, levels, fixed, *_ = STATED[name]
    conditions = Conditions(level, (levels[0], levels[-1]), **fixed)
    first = people(conditions, levels)[0]
    reference = measured_people(conditions, first.dataset, (levels[0], levels[-1]))
    assert len(reference.log_sensitivity) == first.ceiling.persons


def test_people_beyond_the_grid_are_no_reference() -> None:
    conditions = Conditions("frequency", (0.5, 30.5), **GABOR)
    people = measured_people(conditions, "modelfest", (0.5, 28.0))
    contrast = M / human(conditions, FREQUENCY[1])[:, None]
    slices = ScoredSlices(M, contrast, contrast)
    missing = np.geomspace(1, 10, 400) * np.ones((20, 1))
    missing[10] = np.nan
    for grid in (
        None,
        LevelGrid(FREQUENCY[1], np.geomspace(0.1, 1, 5), np.ones((20, 5))),
        LevelGrid(FREQUENCY[1], np.geomspace(1e-4, 1, 400), np.ones((20, 400))),
        LevelGrid(FREQUENCY[1], np.geomspace(1e-4, 1, 400), missing),
    ):
        scored = score_references(conditions, FREQUENCY[1], slices, grid, people, 0.95)
        assert scored.by_people is None and "people" not in scored.text()
    assert measured_people(conditions, "kim2013", (0.5, 28.0)) is None


def test_the_interval_over_studies_holds_a_planted_curve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shape 93 to 98 %, height 88 % at least: for one size of gains, and by the script for another."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from leave_one_study_out import coverage

    percent = coverage(thresholds(), 0.1)
    sys.modules.pop("leave_one_study_out")
    for part, value in percent.items():
        low, high = (88, 100) if part.endswith("height") else (93, 98)
        assert low <= value <= high, part


def test_a_level_grid_is_read_as_scipy_reads_it() -> None:
    random = np.random.default_rng(1)
    for levels, contrasts in ((2, 2), (7, 3), (5, 12)):
        level = np.sort(random.uniform(0.1, 30, levels))
        contrast = np.sort(random.uniform(0.001, 1, contrasts))
        response = random.uniform(0.1, 1, (levels, contrasts))
        at = np.concatenate([level, random.uniform(level[0], level[-1], 9)])
        amounts = random.uniform(contrast[0], contrast[-1], (len(at), 5))
        amounts[:, [0, -1]] = contrast[[0, -1]]
        read = LevelGrid(level, contrast, response).read(at, amounts)
        axes = np.log(level), np.log(contrast)
        places = np.broadcast_arrays(np.log(at)[:, None], np.log(amounts))
        expected = RegularGridInterpolator(axes, np.log(response))(np.stack(places, -1))
        np.testing.assert_allclose(read, np.exp(expected), rtol=1e-12)
