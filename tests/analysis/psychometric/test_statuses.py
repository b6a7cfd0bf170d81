"""A status in place of a number that data do not hold, and errors that say what was wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe.analysis.psychometric import (
    STATUSES,
    WITH_THRESHOLD,
    fit_psychometric,
    psychometric_function,
)
from psyprobe.errors import InputError, UnknownNameError

CONTRAST = 10.0 ** np.linspace(-3, -1, 5)
BLANK = np.r_[0.0, CONTRAST]
FREE: dict[str, Any] = {"guess": "fit", "lapse": "fit"}


@pytest.mark.parametrize(
    ("status", "contrast", "yes", "trials", "how"),
    [
        ("ok", CONTRAST, [0, 1, 5, 9, 10], 10, {}),
        ("ok", CONTRAST, [0.4, 1.2, 4.7, 8.8, 9.6], 10, FREE),
        ("separable", CONTRAST, [0, 0, 10, 10, 10], 10, FREE),
        ("separable", CONTRAST, [10, 10, 20, 20, 20], 20, {"guess": 0.5}),
        ("quasi_separable", CONTRAST, [0, 0, 3, 10, 10], 10, FREE),
        ("censored_above", CONTRAST, [0, 0, 0, 0, 0], 10, FREE),
        ("censored_above", CONTRAST, [5, 6, 4, 5, 6], 10, {"guess": 0.5}),
        (
            "censored_above",
            CONTRAST,
            [5, 6, 4, 5, 6],
            10,
            {"guess": 0.5, "lapse": (0.0, 0.5)},
        ),
        ("censored_above", CONTRAST, [2, 1, 3, 2, 2], 10, FREE),
        ("censored_below", CONTRAST, [10, 10, 10, 10, 10], 10, FREE),
        ("censored_below", BLANK, [1, 10, 10, 10, 10, 10], 10, FREE),
        ("always_yes", BLANK, [9, 10, 10, 10, 10, 10], 10, FREE),
        ("always_yes", BLANK, [9, 10, 10, 10, 10, 10], 10, {}),
        ("extrapolated", CONTRAST, [0, 0, 0, 1, 4], 10, {}),
        ("extrapolated", CONTRAST, [7, 8, 9, 10, 10], 10, {}),
        ("extrapolated", CONTRAST, [7, 8, 9, 10, 10], 10, FREE),
        ("non_monotone", CONTRAST, [0, 5, 10, 5, 0], 10, FREE),
        ("reversed", CONTRAST, [10, 9, 5, 1, 0], 10, FREE),
        ("biased", BLANK, [28, 28, 30, 34, 38, 40], 40, {"guess": (0.0, 0.9)}),
        ("biased", BLANK, [28, 28, 30, 34, 38, 40], 40, FREE),
        ("flat", [0.01], [4], 10, {}),
        ("flat", CONTRAST, [5, 5, 5, 5, 5], 10, {}),
        ("empty", CONTRAST, 0, 0, FREE),
        ("empty", [], [], [], {}),
    ],
)
def test_statuses(
    status: str, contrast: Any, yes: Any, trials: Any, how: dict[str, Any]
) -> None:
    fit = fit_psychometric(contrast, yes, trials, **how)
    assert fit.status == status
    assert fit.status.item() in STATUSES
    has = status in WITH_THRESHOLD
    assert (
        np.isfinite(fit.log10_threshold)
        == np.isfinite(fit.log10_width)
        == np.isfinite(fit.sensitivity)
        == has
    )
    if has:
        assert (
            fit.log10_threshold_low <= fit.log10_threshold <= fit.log10_threshold_high
        )
        assert fit.log10_width_low <= fit.log10_width <= fit.log10_width_high


def test_every_status_has_its_case() -> None:
    cases = {case[0] for case in test_statuses.pytestmark[0].args[1]}
    assert cases == set(STATUSES)


@pytest.mark.parametrize(
    ("trials", "low"), [(10, -1.0), (5, -1.0), (4, -1.5), (1, -3.0)]
)
def test_never_yes_bounds_the_threshold_as_far_as_trials_reach(
    trials: int, low: float
) -> None:
    # P(no yes in n | rate >= 0.5) < 0.05 needs five trials at or above the bound.
    fit = fit_psychometric(CONTRAST, 0, trials)
    np.testing.assert_allclose(
        [fit.log10_threshold_low, fit.log10_threshold_high], [low, np.inf]
    )
    mirrored = fit_psychometric(CONTRAST, trials, trials)
    np.testing.assert_allclose(
        [mirrored.log10_threshold_low, mirrored.log10_threshold_high],
        [-np.inf, -4 - low],
    )


def test_too_few_trials_bound_nothing() -> None:
    assert fit_psychometric([0.01], 0, 4).log10_threshold_low == -np.inf


def test_yes_bias_is_not_sensitivity() -> None:
    x = np.linspace(-3, -1, 9)
    rate = psychometric_function(x, -1.8, 0.8, guess=0.25)
    contrast, yes, trials = np.r_[0.0, 10**x], np.r_[10, np.rint(40 * rate)], 40
    assert (
        abs(fit_psychometric(contrast, yes, trials, **FREE).log10_threshold + 1.8)
        < 0.05
    )
    assert fit_psychometric(contrast, yes, trials).log10_threshold < -2.1


@pytest.mark.parametrize(
    ("yes", "trials"), [([10, 9, 5, 1, 0], 10), ([0, 0, 0, 0, 0], 0)]
)
def test_curves_that_hold_no_parameters_have_none(yes: list[int], trials: int) -> None:
    fit = fit_psychometric(CONTRAST, yes, trials, guess="fit", lapse="fit")
    for name in ("threshold", "width", "guess", "lapse", "eta"):
        assert np.isnan(getattr(fit, name)), name


def test_reversed_curves_do_not_pull_what_others_share() -> None:
    yes = np.array([[0, 1, 5, 9, 10], [10, 9, 5, 1, 0]])
    fit = fit_psychometric(CONTRAST, yes, 10, **FREE, shared=(0,))
    alone = fit_psychometric(CONTRAST, yes[0], 10, **FREE)
    assert list(fit.status) == ["ok", "reversed"]
    np.testing.assert_allclose(fit.log10_threshold[0], alone.log10_threshold, atol=1e-6)


def test_bootstrap_interval_and_goodness_of_fit() -> None:
    x = np.linspace(-3, -1, 9)
    rate = psychometric_function(x, -2.0, 0.9)
    good = fit_psychometric(
        10**x,
        np.rint(40 * rate),
        40,
        interval="bootstrap",
        goodness=True,
        resamples=300,
        seed=4,
    )
    assert abs(good.log10_threshold_low + 2.062) < 0.02
    assert abs(good.log10_threshold_high + 1.938) < 0.02
    assert good.p_value > 0.5
    pooled = fit_psychometric(
        10**x, [0, 6, 24, 87, 170, 206, 226, 240, 248], 250, goodness=True, resamples=99
    )
    assert pooled.p_value <= 0.01
    repeated_fit = fit_psychometric(
        10**x, np.rint(40 * rate), 40, interval="bootstrap", resamples=300, seed=4
    )
    assert repeated_fit.log10_threshold_low == good.log10_threshold_low


def test_overdispersion_widens_the_interval() -> None:
    x = np.linspace(-3, -1, 9)
    yes = [0, 6, 24, 87, 170, 206, 226, 240, 248]
    plain = fit_psychometric(10**x, yes, 250)
    wide = fit_psychometric(10**x, yes, 250, overdispersion=True)
    assert wide.eta > 0.03
    assert wide.log10_threshold_high - wide.log10_threshold_low > 1.5 * (
        plain.log10_threshold_high - plain.log10_threshold_low
    )
    even = fit_psychometric(
        10**x,
        100 * psychometric_function(x, -2.0, 0.9),
        100,
        overdispersion=True,
        interval=None,
    )
    assert even.eta == 0


def test_priors_are_stated_and_replaceable() -> None:
    yes = [0, 0, 10, 10, 10]
    weak = fit_psychometric(CONTRAST, yes, 10, method="map")
    assert weak.status == "separable"
    assert weak.log10_width > 0.5
    none = dict.fromkeys(("threshold", "width", "guess", "lapse", "eta"))
    flat = fit_psychometric(CONTRAST, [0, 1, 5, 9, 10], 10, method="map", priors=none)
    default_fit = fit_psychometric(CONTRAST, [0, 1, 5, 9, 10], 10)
    np.testing.assert_allclose(
        flat.log10_threshold, default_fit.log10_threshold, atol=1e-6
    )
    pulled = fit_psychometric(
        CONTRAST,
        [0, 1, 5, 9, 10],
        10,
        method="map",
        priors={**none, "threshold": lambda t: -0.5 * ((t + 2.5) / 0.05) ** 2},
    )
    assert pulled.log10_threshold < -2.3


def test_levels_without_trials_are_left_out() -> None:
    fit = fit_psychometric(
        np.r_[CONTRAST, 0.5], [0, 1, 5, 9, 10, 0], [10, 10, 10, 10, 10, 0]
    )
    assert fit.levels == 5
    assert (
        fit.log10_threshold
        == fit_psychometric(CONTRAST, [0, 1, 5, 9, 10], 10).log10_threshold
    )


def test_raw_threshold_counts_guesses_in() -> None:
    fit = fit_psychometric(CONTRAST, [1, 2, 5, 9, 10], 10, guess=0.1)
    assert fit.log10_raw_threshold < fit.log10_threshold
    np.testing.assert_allclose(
        fit.predict(10 ** fit.log10_raw_threshold[None]), 0.5, atol=1e-9
    )
    assert np.isnan(
        fit_psychometric(CONTRAST, [5, 5, 8, 9, 10], 10, guess=0.5).log10_raw_threshold
    )


@pytest.mark.parametrize(
    ("args", "how", "message"),
    [
        ((CONTRAST, 11, 10), {}, "11 yes of 10 trials"),
        ((-CONTRAST, 1, 10), {}, "contrast -0.1 is negative"),
        ((CONTRAST, -1, 10), {}, "yes -1 is negative"),
        ((CONTRAST, np.nan, 10), {}, "yes has the value nan"),
        ((np.full(5, np.inf), 1, 10), {}, "contrast has the value inf"),
        ((CONTRAST, [1, 2], 10), {}, "do not broadcast"),
        ((0.1, 1, 10), {}, "single numbers"),
        ((CONTRAST, 1, 10), {"guess": 1.2}, "guess 1.2 is not usable"),
        ((CONTRAST, 1, 10), {"lapse": (0.5, 0.2)}, "low <= high"),
        ((CONTRAST, 1, 10), {"guess": "free"}, "guess 'free' is no rate"),
        ((CONTRAST, 1, 10), {"guess": 0.5, "lapse": 0.5}, "reach 1 together"),
        ((CONTRAST, 1, 10), {"shared": (0,)}, "shared axis 0"),
        (([CONTRAST] * 2, 1, 10), {"shared": (0, -1)}, "name one axis twice"),
        ((CONTRAST, 1, 10), {"priors": {}}, "say method='map'"),
        ((CONTRAST, 1, 10), {"level": 95}, "level 95 is not a probability"),
        ((CONTRAST, 1, 10), {"resamples": 0}, "resamples 0"),
    ],
)
def test_what_cannot_be_used_is_said(
    args: Any, how: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_psychometric(*args, **how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"function": "logit"}, "did you mean 'logistic'"),
        ({"method": "mpa"}, "did you mean 'map'"),
        ({"interval": "profil"}, "did you mean 'profile'"),
        ({"method": "map", "priors": {"thresh": None}}, "did you mean 'threshold'"),
    ],
)
def test_unknown_names_are_guessed(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        fit_psychometric(CONTRAST, [0, 1, 5, 9, 10], 10, **how)
