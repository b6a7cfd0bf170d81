"""Scores of sensitivity functions: against scipy, the triangle inequality, and what a planted
difference must give."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from psyprobe.analysis.words.comparison import (
    STATISTICS,
    compare_with_human,
    csf_statistics,
)
from psyprobe.errors import InputError

CPD = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 24.0])
HUMAN = np.array([84.4, 169.8, 188.8, 110.2, 36.7, 12.0])


def csf_of(
    sensitivity: np.ndarray, usable: np.ndarray | None = None, half: float = 0.1
) -> xr.Dataset:
    """Return the variables of `chat_csf` that scores read."""
    log_s = np.log10(sensitivity)
    use = np.ones(log_s.shape, dtype=bool) if usable is None else usable
    dims = ("prompt", "frequency")
    return xr.Dataset(
        {
            "log10_threshold": (dims, np.where(use, -log_s, np.nan)),
            "log10_threshold_low": (dims, -log_s - half),
            "log10_threshold_high": (dims, -log_s + half),
            "usable": (dims, use),
            "status": (dims, np.where(use, "ok", "censored_above")),
        },
        coords={"frequency": CPD[: log_s.shape[1]]},
        attrs={"confidence": 0.95},
    )


def wordings(n: int, sd: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return HUMAN * 10 ** (
        rng.normal(0, sd, (n, 1)) + rng.normal(0, sd / 3, (n, len(HUMAN)))
    )


curves = st.lists(
    st.lists(st.floats(-1, 3), min_size=6, max_size=6), min_size=1, max_size=8
)


@given(curves)
def test_the_mean_curve_errs_no_more_than_its_wordings_do(
    log_s: list[list[float]],
) -> None:
    comparison = compare_with_human(csf_of(10 ** np.array(log_s)), HUMAN, resamples=100)
    for error in (comparison.rmse_linear, comparison.rmse_log10):
        assert error.prompt_mean >= error.value * (1 - 1e-9)


def test_statistics_are_numpys_and_scipys() -> None:
    curve = wordings(1, 0.4)[0]
    statistics = csf_statistics(curve, HUMAN)
    assert statistics["pearson_linear"] == pytest.approx(pearsonr(curve, HUMAN)[0])
    assert statistics["pearson_log"] == pytest.approx(
        pearsonr(np.log10(curve), np.log10(HUMAN))[0]
    )
    assert statistics["rmse_linear"] == pytest.approx(
        np.linalg.norm(curve - HUMAN) / np.sqrt(6)
    )
    assert statistics["rmse_log10"] == pytest.approx(
        np.linalg.norm(np.log10(curve / HUMAN)) / np.sqrt(6)
    )
    assert statistics["shape_rmse_log10"] == pytest.approx(
        np.log10(curve / HUMAN).std()
    )


def test_a_gain_is_no_matter_of_shape() -> None:
    comparison = compare_with_human(csf_of(np.tile(HUMAN / 4, (5, 1))), HUMAN)
    assert comparison.shape_rmse_log10.value == pytest.approx(0, abs=1e-12)
    assert comparison.gain == pytest.approx(np.log10(4))
    assert comparison.pearson_linear.value == pytest.approx(1)
    assert comparison.rmse_log10.value == pytest.approx(np.log10(4))


def test_published_tables_lie_within_what_their_correlations_allow() -> None:
    """Section A.4 of the reference: given r, the linear error is at least sd(h) sqrt(1 - max(r,
    0)²)."""
    for seed in range(50):
        statistics = csf_statistics(wordings(1, 0.8, seed)[0], HUMAN)
        lower_bound = HUMAN.std() * np.sqrt(
            1 - max(float(statistics["pearson_linear"]), 0) ** 2
        )
        assert statistics["rmse_linear"] >= lower_bound - 1e-9


def test_only_wordings_with_all_thresholds_count() -> None:
    usable = np.ones((6, 6), dtype=bool)
    usable[0, 2] = False
    usable[:4, 5] = False
    comparison = compare_with_human(csf_of(wordings(6, 0.2), usable), HUMAN)
    assert (
        comparison.n_valid,
        comparison.n_prompts,
        comparison.n_frequencies,
        comparison.n_asked,
    ) == (
        5,
        6,
        5,
        6,
    )


def test_without_thresholds_there_are_no_scores() -> None:
    comparison = compare_with_human(
        csf_of(wordings(4, 0.2), np.zeros((4, 6), dtype=bool)), HUMAN
    )
    assert comparison.n_valid == 0
    assert all(getattr(comparison, name).value is None for name in STATISTICS)
    json.dumps(comparison.to_dict(), allow_nan=False)


def test_a_flat_curve_has_no_correlation() -> None:
    comparison = compare_with_human(csf_of(np.full((4, 6), 50.0)), HUMAN)
    assert (
        comparison.pearson_linear.value is None and comparison.pearson_log.value is None
    )
    assert comparison.rmse_log10.value is not None
    json.dumps(comparison.to_dict(), allow_nan=False)


def test_intervals_hold_the_truth_over_wordings() -> None:
    """An observer a factor of two under people, of which each run draws 25 other wordings."""
    covered = 0
    for seed in range(60):
        comparison = compare_with_human(
            csf_of(wordings(25, 0.2, seed) / 2), HUMAN, resamples=300, seed=seed
        )
        covered += (
            comparison.rmse_log10.low <= np.log10(2) <= comparison.rmse_log10.high
        )
    assert 0.88 <= covered / 60 <= 1


def test_one_wording_has_the_interval_of_its_own_thresholds() -> None:
    comparison = compare_with_human(csf_of(HUMAN[None] / 3, half=0.1), HUMAN)
    assert comparison.interval_over == "trials"
    assert comparison.rmse_log10.low < np.log10(3) < comparison.rmse_log10.high
    assert comparison.rmse_log10.prompt_sd is None
    open_end = csf_of(HUMAN[None] / 3)
    open_end["log10_threshold_low"].values[0, 0] = -np.inf
    assert np.isfinite(compare_with_human(open_end, HUMAN).rmse_log10.high)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wording", [0, 1])
def test_a_threshold_that_could_be_anywhere_leaves_scores_without_intervals(
    wording: int,
) -> None:
    csf = csf_of(np.stack([HUMAN / 3, HUMAN / 2]))
    (
        csf["log10_threshold_low"].values[wording, 2],
        csf["log10_threshold_high"].values[wording, 2],
    ) = (
        -np.inf,
        np.inf,
    )
    comparison = compare_with_human(csf, HUMAN)
    assert comparison.interval_over == "nothing"
    assert comparison.rmse_log10.value == pytest.approx(np.log10(6) / 2)
    assert all(
        (getattr(comparison, name).low, getattr(comparison, name).high) == (None, None)
        for name in STATISTICS
    )
    json.dumps(comparison.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("sensitivity", "human", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], "do not fit a human curve"),
        ([1.0, 0.0], [1.0, 2.0], "must be finite and above 0"),
        ([1.0, 1.0], [1.0, np.nan], "human sensitivities must be finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    sensitivity: list[float], human: list[float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        csf_statistics(sensitivity, human)
