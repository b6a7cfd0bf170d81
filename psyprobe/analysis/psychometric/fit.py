"""Fit psychometric functions to many curves at once, with a status for each.

References
----------
Wichmann & Hill (2001), Perception & Psychophysics 63, 1293-1313 (maximum likelihood, deviance,
parametric bootstrap). Schütt, Harmeling, Macke, Wichmann (2016), Vision Research 122 (threshold and
width, priors, overdispersion). Venzon & Moolgavkar (1988), Applied Statistics 37 (profile
likelihood).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric import likelihood
from psyprobe.analysis.psychometric.counts import (
    Counts,
    Curves,
    highest,
    lowest,
    read_curves,
    tested_range,
)
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.integration import integrate
from psyprobe.analysis.psychometric.intervals import Parameters, Profile, resample
from psyprobe.analysis.psychometric.isotonic import (
    Interval,
    deviance,
    isotonic_bracket,
    spearman_karber,
)
from psyprobe.analysis.psychometric.search import Maxima, add_overdispersion, search
from psyprobe.analysis.psychometric.separation import separate_groups
from psyprobe.analysis.psychometric.statuses import (
    WITH_THRESHOLD,
    Estimates,
    FitProblem,
    RateBounds,
    StatusArray,
    judge,
    state_problem,
    update_estimates,
)
from psyprobe.errors import InputError, check_known
from psyprobe.files.json_types import JsonObject

Rate: TypeAlias = float | tuple[float, float] | Literal["fit"]
Lapse: TypeAlias = Rate | Literal["guess"]
#: How intervals are made.
Kind: TypeAlias = Literal["profile", "bootstrap", "posterior"]

#: Bounds of a rate that is "fit".
_FREE_GUESS = RateBounds(0.0, 0.5)
_FREE_LAPSE = RateBounds(0.0, 0.1)


def fit_psychometric(
    contrast: ArrayLike,
    yes: ArrayLike,
    trials: ArrayLike,
    *,
    function: str = "logistic",
    guess: Rate = 0.0,
    lapse: Lapse = 0.0,
    shared: tuple[int, ...] = (),
    method: Literal["mle", "map"] = "mle",
    priors: Mapping[str, likelihood.LogPrior | None] | None = None,
    overdispersion: bool = False,
    interval: Kind | None = "profile",
    level: float = 0.95,
    goodness: bool = False,
    resamples: int = 999,
    seed: int = 0,
) -> PsychometricFit:
    """Fit psychometric functions to counted answers of a batch of curves.

    The function is psi = guess + (1 - guess - lapse) F(log10 contrast).

    Parameters
    ----------
    contrast : array_like of float, shape (..., L)
        Linear contrast, above 0, in any order; 0 marks catch trials, which inform a free guess rate
        and nothing else.
    yes : array_like of float, shape (..., L)
        Number of yes (or of correct answers); fractions, such as sums of P(yes), are allowed.
    trials : array_like of float, shape (..., L)
        Number of trials; 0 where a level is missing. The three broadcast, and the last axis is
        levels.
    function : str, optional
        "logistic", "normal", "weibull" (Gumbel on log contrast), "gumbel_reversed" or
        "hyperbolic_secant".
    guess, lapse : float, (float, float) or "fit", optional
        A fixed rate, bounds of a fitted one, or "fit" for the bounds (0, 0.5) of guess and (0, 0.1)
        of lapse. The lapse rate may be "guess": equal to the guess rate.
    shared : tuple of int, optional
        Axes of the batch (the shape without levels) along which one guess and one lapse rate hold
        for all curves: (-1,) if frequencies of a prompt are the batch's last axis. Catch trials of
        such curves are added up, so give trials that serve all of them once.
    method : "mle" or "map", optional
        Largest likelihood, or largest posterior density under `priors`. Statuses come from the
        likelihood either way.
    priors : mapping of str to callable, optional
        With "map": log densities by "threshold", "width", "guess", "lapse", "eta" in place of the
        weak priors of `stated_priors`; None makes one flat.
    overdispersion : bool, optional
        Whether answers may vary more than a binomial: a beta-binomial with one eta for each group.
        Intervals then fix eta at its estimate.
    interval : "profile", "bootstrap", "posterior" or None, optional
        Profile likelihood with the quantile of chi-square; the same with the quantile of answers
        drawn from the fit where that is larger; for few trials, posteriors integrated over width
        and rates, whose means are then the estimates, and whose intervals always end; or no
        intervals. Under the first two, censored thresholds have the first.
    level : float, optional
        Probability of the intervals, and of the tests behind a status, in (0, 1).
    goodness : bool, optional
        Whether to find the p-value of the deviance by parametric bootstrap.
    resamples : int, optional
        Number of draws of each bootstrap, for each curve.
    seed : int, optional
        Seed of all draws, also of the test whether a curve rises.

    Returns
    -------
    PsychometricFit
        Arrays in the shape of the batch.

    Raises
    ------
    InputError
        If counts or contrasts are not usable, a rate is out of [0, 1), rates reach 1 together, or
        an axis, a function, a method or a parameter is unknown.

    Notes
    -----
    A curve that falls with contrast, or neither rises nor falls, is not fitted, and does not
    inform the rates of its group.

    Examples
    --------
    >>> contrast = 10 ** np.linspace(-3, -1, 9)
    >>> fit = fit_psychometric(contrast, [0, 0, 2, 7, 20, 33, 38, 40, 40], 40)
    >>> interval = f"{fit.threshold_low:.4f} to {fit.threshold_high:.4f}"
    >>> print(fit.status, f"{fit.threshold:.4f}", interval)
    ok 0.0100 0.0087 to 0.0115
    >>> print(fit_psychometric(contrast, 0, 10).status)
    censored_above
    """
    _check_options(method, priors, interval, level, resamples)
    equal_rates = lapse == "guess"
    is_posterior = interval == "posterior"
    if is_posterior and (equal_rates or overdispersion or method == "map"):
        raise InputError(
            "interval is 'posterior', which integrates guess and lapse each by itself under "
            "priors of its own; leave out overdispersion, method and lapse='guess', or take "
            "interval='profile'"
        )
    guess_bounds = _rate_bounds("guess", guess, _FREE_GUESS)
    lapse_bounds = (
        guess_bounds if equal_rates else _rate_bounds("lapse", lapse, _FREE_LAPSE)
    )
    _check_rates(guess_bounds, lapse_bounds)
    curves = read_curves(contrast, yes, trials, shared)
    problem = state_problem(
        curves, function, equal_rates, guess_bounds, lapse_bounds, level, seed
    )
    search_problem = problem.search_problem
    maxima = search(search_problem)
    estimates = judge(problem, maxima)
    if method == "map" or overdispersion:
        if method == "map":
            stated_priors = likelihood.stated_priors(priors, equal_rates)
            search_problem = replace(search_problem, priors=stated_priors)
            problem = replace(problem, search_problem=search_problem)
        maxima = search(search_problem, [maxima.point])
        if overdispersion:
            maxima = add_overdispersion(search_problem, maxima)
        estimates = update_estimates(
            problem, estimates, maxima.point, keep_steps=method == "mle"
        )
    counts = search_problem.counts
    rates = search_problem.predict(maxima.point)
    fit_deviance = deviance(counts.yes, counts.trials, rates)
    p_value = np.full(fit_deviance.shape, np.nan)
    quantiles = np.full((2, *fit_deviance.shape), problem.quantile)
    if goodness or interval == "bootstrap":
        draws = resample(
            search_problem,
            maxima.point,
            losses=interval == "bootstrap",
            resamples=resamples,
            seed=seed,
        )
        if goodness:
            exceeding = (draws.deviance >= fit_deviance[:, None] - 1e-9).sum(axis=1)
            has_threshold = np.isin(estimates.status, WITH_THRESHOLD)
            p_value = np.where(has_threshold, (1 + exceeding) / (1 + resamples), np.nan)
        if interval == "bootstrap":
            drawn_quantiles = np.quantile(draws.loss, level, axis=2, method="higher")
            quantiles = np.maximum(quantiles, drawn_quantiles)
    if interval is None or is_posterior:
        unknown = Interval(*np.full((2, *fit_deviance.shape), np.nan))
        intervals = _Intervals(unknown, unknown)
    else:
        intervals = _intervals(problem, estimates, maxima, quantiles)
    fit = _collect(problem, estimates, maxima, intervals, fit_deviance, p_value)
    if not is_posterior:
        return fit
    return integrate(fit, curves, estimates.status, guess_bounds, lapse_bounds)


def _check_options(
    method: str,
    priors: object,
    interval: str | None,
    level: float,
    resamples: int,
) -> None:
    """Refuse an unknown method or kind of interval, and priors without method "map"."""
    check_known("method of fitting", [method], ("mle", "map"))
    if priors is not None and method != "map":
        raise InputError(
            "priors are given, but method is 'mle', which has none; say method='map'"
        )
    if interval is not None:
        check_known("kind of interval", [interval], get_args(Kind))
    if not 0 < level < 1:
        raise InputError(
            f"level {level:g} is not a probability; give a number between 0 and 1, as 0.95"
        )
    if resamples < 1:
        raise InputError(
            f"resamples {resamples} is not a number of draws; give at least 1, and 999 or more "
            "to report"
        )


def _rate_bounds(name: str, rate: Lapse, free: RateBounds) -> RateBounds:
    """Convert a guess or lapse rate (number, pair or "fit") to its lower and upper bound."""
    if rate == "fit":
        return free
    if isinstance(rate, str):
        raise InputError(
            f"{name} {rate!r} is no rate; give a number, a pair of bounds, or 'fit'"
        )
    low, high = rate if isinstance(rate, tuple) else (rate, rate)
    if not 0 <= low <= high < 1:
        raise InputError(
            f"{name} {rate} is not usable; give a rate in [0, 1), or bounds (low, high) with "
            "low <= high"
        )
    return RateBounds(float(low), float(high))


def _check_rates(guess: RateBounds, lapse: RateBounds) -> None:
    """Refuse bounds of guess and lapse rates that may sum to 1."""
    if guess.high + lapse.high > 1 or guess.low + lapse.low >= 1:
        raise InputError(
            f"guess ({guess.low}, {guess.high}) and lapse ({lapse.low}, {lapse.high}) may reach 1 "
            "together; lower one of the upper bounds"
        )


class _Intervals(NamedTuple):
    """Intervals of threshold and width, in the coordinates of the counts, shape (G, M)."""

    threshold: Interval
    width: Interval


def _intervals(
    problem: FitProblem,
    estimates: Estimates,
    maxima: Maxima,
    quantiles: FloatArray,
) -> _Intervals:
    """Compute the intervals of threshold and width from the likelihood lost at each value."""
    status = estimates.status
    has_threshold = np.isin(status, WITH_THRESHOLD)
    censored_by_fit = np.isin(status, ("censored_above", "censored_below"))
    censored_by_fit &= problem.status == ""
    threshold_curves = np.flatnonzero(has_threshold | censored_by_fit)
    width_curves = np.flatnonzero(has_threshold)
    threshold = np.full((2, status.size), np.nan)
    width = np.full((2, status.size), np.nan)
    is_slope = np.repeat([False, True], [threshold_curves.size, width_curves.size])
    parameters = Parameters(np.concatenate([threshold_curves, width_curves]), is_slope)
    if is_slope.size:
        profile = Profile(*separate_groups(problem.search_problem, maxima))
        centre = parameters.select(estimates.threshold, maxima.point.slope)
        quantile = parameters.select(*quantiles)
        interval = np.stack(profile.interval(parameters, quantile, centre))
        threshold[:, threshold_curves] = interval[:, ~is_slope]
        # The slope is minus the logarithm of the width.
        width[:, width_curves] = np.exp(-interval[::-1, is_slope])
    within_levels = _limit_to_levels(
        problem,
        estimates,
        Interval(*threshold.reshape(2, *status.shape)),
    )
    return _Intervals(
        threshold=_censor_interval(problem, estimates, within_levels),
        width=Interval(*width.reshape(2, *status.shape)),
    )


def _limit_to_levels(
    problem: FitProblem, estimates: Estimates, interval: Interval
) -> Interval:
    """Widen or open thresholds' intervals to what the tested levels can tell.

    A threshold at a mixed level is known no better than to half the way to its neighbours. An end
    that is further beyond the levels than the function is wide is open, since there it hangs on the
    function's form alone.
    """
    counts = problem.search_problem.counts
    threshold = estimates.threshold
    x = np.where(counts.trials > 0, counts.x, np.nan)
    below = highest(x, x < threshold[..., None])
    above = lowest(x, x > threshold[..., None])
    at_mixed_level = estimates.status == "quasi_separable"
    widened_low = np.minimum(interval.low, 0.5 * (below + threshold))
    widened_high = np.maximum(interval.high, 0.5 * (above + threshold))
    low = np.where(at_mixed_level & np.isfinite(below), widened_low, interval.low)
    high = np.where(at_mixed_level & np.isfinite(above), widened_high, interval.high)
    first, last = tested_range(counts)
    reach = np.fmin(estimates.width, last - first)
    return Interval(
        low=np.where(low < first - reach, -np.inf, low),
        high=np.where(high > last + reach, np.inf, high),
    )


def _censor_interval(
    problem: FitProblem, estimates: Estimates, interval: Interval
) -> Interval:
    """Replace the intervals of curves that are flat or whose threshold was not reached.

    Where all answers are no, or yes, the ends are exact: as many trials as refute a rate of one
    half.
    """
    status = estimates.status
    counts = problem.search_problem.counts
    tested = counts.trials > 0
    half = 0.5 * (1 + problem.guess.low - problem.lapse.low)
    x = np.where(tested, counts.x, -np.inf)
    all_no = (status == "censored_above") & (problem.status == "censored_above")
    last = _refuted_level(x, counts.trials, problem.level, 1 - half)
    low = np.where(all_no, last, interval.low)
    high = np.where(all_no, np.inf, interval.high)

    x = np.where(tested, -counts.x, -np.inf)[..., ::-1]
    all_yes = (status == "censored_below") & (problem.status == "censored_below")
    first = -_refuted_level(x, counts.trials[..., ::-1], problem.level, half)
    low = np.where(all_yes, -np.inf, low)
    high = np.where(all_yes, first, high)

    flat = status == "flat"
    open_below = flat | ((status == "censored_below") & ~np.isnan(high))
    open_above = flat | ((status == "censored_above") & ~np.isnan(low))
    return Interval(
        np.where(open_below, -np.inf, low), np.where(open_above, np.inf, high)
    )


def _refuted_level(
    x: FloatArray, trials: FloatArray, level: float, chance: float
) -> FloatArray:
    """Find the highest level down from which all answers alike refute a probability."""
    trials_from_above = np.cumsum(trials[..., ::-1], axis=-1)[..., ::-1]
    refuted = trials_from_above >= np.log(1 - level) / np.log(chance) - 1e-9
    return highest(x, refuted)


def _collect(
    problem: FitProblem,
    estimates: Estimates,
    maxima: Maxima,
    intervals: _Intervals,
    fit_deviance: FloatArray,
    p_value: FloatArray,
) -> PsychometricFit:
    """Convert estimates to physical units and arrange them in the shape of the batch."""
    curves = problem.curves
    search_problem = problem.search_problem
    counts = search_problem.counts
    point = maxima.point
    status = estimates.status
    threshold = counts.centre + counts.scale * estimates.threshold
    width = counts.scale * estimates.width
    fitted = (counts.trials > 0).any(axis=-1)
    levels = (curves.trials > 0).sum(axis=-1)
    tested = (curves.trials > 0).any(axis=-1)
    log_likelihood = likelihood.curve_log_likelihood(
        counts,
        point,
        search_problem.levels_at(point),
    )
    # Rates that a group has in common cost each of its curves an equal part of a degree of freedom.
    free_rates = problem.guess.free + problem.lapse.free
    if search_problem.equal_rates:
        free_rates = int(problem.guess.free)
    fitted_curves = fitted.sum(axis=-1, keepdims=True)
    parameters = 2 + free_rates / np.maximum(fitted_curves, 1)
    criterion = 0.5 if problem.guess.free else 0.5 * (1 + problem.guess.low)
    bracket = isotonic_bracket(
        curves.x,
        curves.yes,
        curves.trials,
        criterion,
    )
    values: JsonObject = {
        "status": status,
        "log10_threshold_low": counts.centre + counts.scale * intervals.threshold.low,
        "log10_threshold_high": counts.centre + counts.scale * intervals.threshold.high,
        "log10_width_low": counts.scale * intervals.width.low,
        "log10_width_high": counts.scale * intervals.width.high,
        "p_value": p_value,
        "converged": maxima.converged[:, None] & fitted,
        "log10_spearman_karber": spearman_karber(curves.x, curves.yes, curves.trials),
        "levels": levels,
        "bounded": np.zeros(status.shape, bool),
    }
    of_threshold = {"log10_threshold": threshold, "log10_width": width}
    rates = {name: getattr(point, name)[:, None] for name in ("guess", "lapse", "eta")}
    of_fit = {
        "log_likelihood": log_likelihood,
        "deviance": fit_deviance,
        "degrees_of_freedom": levels - parameters,
    }
    of_answers = {
        "p_rising": problem.p_rising,
        "log10_bracket_low": bracket.low,
        "log10_bracket_high": bracket.high,
    }
    for mask, numbers in (
        (np.isin(status, WITH_THRESHOLD), of_threshold),
        (_has_rates(status, curves, counts), rates),
        (fitted, of_fit),
        (tested, of_answers),
    ):
        values |= {
            name: np.where(mask, number, np.nan) for name, number in numbers.items()
        }
    arrays: JsonObject = {name: curves.ungroup(value) for name, value in values.items()}
    return PsychometricFit(function=problem.function, level=problem.level, **arrays)


def _has_rates(status: StatusArray, curves: Curves, counts: Counts) -> BoolArray:
    """Mark the curves whose rates are known: those that rise, or in a group with such."""
    fitted = (counts.trials > 0).any(axis=-1)
    rises = fitted & ~np.isin(status, ("reversed", "non_monotone"))
    empty = ~(curves.trials > 0).any(axis=-1)
    group_has_rates = rises.any(axis=-1) | (counts.catch_trials > 0)
    return np.asarray(rises | (empty & group_has_rates[:, None]))
