"""Iso-response curves of observers whose sensitivity is known."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from detection_results import human_csf
from hypothesis import given

from psyprobe.analysis import fit_iso_response, iso_contrast
from psyprobe.errors import InputError

X, CONTRAST = np.geomspace(0.5, 28, 20), np.geomspace(0.001, 1, 20)
HUMAN = human_csf(X)


@given(st.floats(0.2, 4), st.floats(-20, 20), st.floats(-0.9, 0.9))
def test_crossings_of_power_laws_are_exact(
    slope: float, log_gain: float, log_level: float
) -> None:
    gain, middle = 10**log_gain, 10**-1.5
    level = gain * (middle * 10**log_level) ** slope
    log_c, crossed, recrossed = iso_contrast(
        CONTRAST, gain * CONTRAST[None] ** slope, [level]
    )
    assert crossed.all()
    assert not recrossed.any()
    assert log_c[0, 0] == pytest.approx(-1.5 + log_level, abs=1e-9)


def test_the_first_crossing_counts_and_others_are_flagged() -> None:
    response = np.array(
        [
            [0.0, 1.0, 0.2, 2.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.6, 1.0, 1.0, 1.0],
            [0.0, 0.1, 0.2, 0.3],
        ]
    )
    log_c, crossed, recrossed = iso_contrast([0.001, 0.01, 0.1, 1.0], response, [0.5])
    np.testing.assert_allclose(log_c[0], [-2.5, -0.5, -np.inf, np.inf])
    assert crossed[0].tolist() == [True, True, False, False]
    assert recrossed[0].tolist() == [True, False, False, False]


@given(st.floats(0.3, 3))
def test_human_sensitivity_through_any_rising_function_has_the_human_shape(
    slope: float,
) -> None:
    drive = HUMAN[:, None] * CONTRAST
    response = drive**slope / (1 + drive**slope)
    for criterion in ("shape", "absolute"):
        iso_fit = fit_iso_response(X, CONTRAST, response, HUMAN, criterion=criterion)
        assert iso_fit is not None
        assert iso_fit.shape_rmse < 0.005
        assert iso_fit.reached == iso_fit.total == 20
        assert (iso_fit.above, iso_fit.below, iso_fit.recrossed) == (0, 0, 0)
    assert iso_fit.rmse < 0.05


@pytest.mark.parametrize("shift", [-0.7, 0.0, 0.6])
def test_a_planted_shift_comes_back(shift: float) -> None:
    """Slices steepen with x, so the observer has human shape at response 1 only, `shift` above
    human sensitivity."""
    contrast = np.geomspace(0.0005, 1, 200)
    slope = np.linspace(0.5, 2, 20)[:, None]
    response = (10**shift * HUMAN[:, None] * contrast) ** slope
    iso_fit = fit_iso_response(X, contrast, response, HUMAN)
    assert iso_fit is not None
    assert iso_fit.level == pytest.approx(1, rel=0.05)
    assert iso_fit.shift == pytest.approx(shift, abs=0.02)
    assert iso_fit.shape_rmse < 0.01
    assert iso_fit.rmse == pytest.approx(abs(shift), abs=0.02)
    assert iso_fit.shift_range[0] <= iso_fit.shift <= iso_fit.shift_range[1]


def test_a_flat_observer_misses_by_the_spread_of_human_sensitivity() -> None:
    iso_fit = fit_iso_response(X, CONTRAST, np.broadcast_to(CONTRAST, (20, 20)), HUMAN)
    assert iso_fit is not None
    assert iso_fit.shape_rmse == pytest.approx(np.std(np.log10(HUMAN)))
    # Every level fits alike, so the shift is not determined, and the range says so.
    assert iso_fit.shift_range[1] - iso_fit.shift_range[0] > 2
    assert abs(iso_fit.shift) < 0.16


def test_root_mean_squares_add_up_and_the_curve_is_where_it_says() -> None:
    rng = np.random.default_rng(5)
    response = np.cumsum(rng.random((20, 20)), axis=1)
    for criterion in ("shape", "absolute"):
        iso_fit = fit_iso_response(X, CONTRAST, response, HUMAN, criterion=criterion)
        assert iso_fit is not None
        assert iso_fit.rmse**2 == pytest.approx(
            iso_fit.shape_rmse**2 + iso_fit.shift**2
        )
        at = [np.flatnonzero(x == X)[0] for x in iso_fit.at]
        deviation = np.log10(iso_fit.sensitivity) - np.log10(HUMAN[at])
        assert iso_fit.shift == pytest.approx(deviation.mean())
        assert iso_fit.shape_rmse == pytest.approx(deviation.std())
        assert iso_fit.reached == len(iso_fit.at) == len(iso_fit.sensitivity)
        assert iso_fit.reached + iso_fit.above + iso_fit.below == iso_fit.total


@given(st.integers(0, 50))
def test_a_rising_transform_of_responses_moves_crossings_within_a_grid_step_only(
    seed: int,
) -> None:
    response = np.sort(np.random.default_rng(seed).random((6, 20)) + 0.01, axis=1)
    levels = np.array([0.3, 0.6])
    plain, crossed, _ = iso_contrast(CONTRAST, response, levels)
    bent, crossed_too, _ = iso_contrast(CONTRAST, response**3, levels**3)
    np.testing.assert_array_equal(crossed, crossed_too)
    np.testing.assert_allclose(plain[crossed], bent[crossed], atol=1e-9)
    exponential, _, _ = iso_contrast(CONTRAST, np.exp(response), np.exp(levels))
    assert (
        np.abs(plain[crossed] - exponential[crossed]).max(initial=0)
        <= np.diff(np.log10(CONTRAST)).max()
    )


def test_levels_within_the_noise_are_not_tried() -> None:
    response = np.clip(HUMAN[:, None] * CONTRAST / 100, 0.02, None)
    assert fit_iso_response(X, CONTRAST, response, HUMAN, floor=0.1).level > 0.1  # type: ignore[union-attr]


def test_no_curve_where_nothing_rises() -> None:
    assert fit_iso_response(X, CONTRAST, np.zeros((20, 20)), HUMAN) is None
    assert fit_iso_response(X, CONTRAST, np.full((20, 20), 0.3), HUMAN) is None
    assert (
        fit_iso_response(X, CONTRAST, np.broadcast_to(1 / CONTRAST, (20, 20)), HUMAN)
        is None
    )


def test_an_observer_blind_to_half_of_x_says_how_many_it_reached() -> None:
    response = HUMAN[:, None] * CONTRAST
    response[12:] = 0
    iso_fit = fit_iso_response(X, CONTRAST, response, HUMAN)
    assert iso_fit is not None
    assert (iso_fit.reached, iso_fit.below, iso_fit.total) == (12, 8, 20)


def test_large_grids_are_thinned_out() -> None:
    contrast = np.geomspace(0.001, 1, 400)
    iso_fit = fit_iso_response(X, contrast, HUMAN[:, None] * contrast, HUMAN)
    assert iso_fit is not None
    assert iso_fit.shape_rmse < 1e-9


@pytest.mark.parametrize(
    ("x", "contrast", "response", "human", "message"),
    [
        (X, CONTRAST, np.ones((20, 19)), HUMAN, "does not fit"),
        (X, CONTRAST[::-1], np.ones((20, 20)), HUMAN, "must increase"),
        (X, CONTRAST - 0.001, np.ones((20, 20)), HUMAN, "must increase"),
        (X, CONTRAST, np.full((20, 20), np.nan), HUMAN, "finite"),
        (X[:5], CONTRAST, np.ones((20, 20)), HUMAN, "do not fit"),
        (X, CONTRAST, np.ones((20, 20)), -HUMAN, "above 0"),
    ],
)
def test_what_has_no_curve_is_refused(
    x: np.ndarray,
    contrast: np.ndarray,
    response: np.ndarray,
    human: np.ndarray,
    message: str,
) -> None:
    with pytest.raises(InputError, match=message):
        fit_iso_response(x, contrast, response, human)
