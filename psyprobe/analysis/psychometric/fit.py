"""Fits psychometric functions to many curves at once, and says of each what may be said.

References
----------
Wichmann & Hill (2001), Perception & Psychophysics 63, 1293-1313 (maximum likelihood, deviance,
parametric bootstrap). Schütt, Harmeling, Macke, Wichmann (2016), Vision Research 122 (threshold and
width, priors, overdispersion). Venzon & Moolgavkar (1988), Applied Statistics 37 (profile
likelihood).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric import likelihood, statuses
from psyprobe.analysis.psychometric.counts import Point, read_curves, tested_range
from psyprobe.analysis.psychometric.intervals import Ends, Parameter, Profile, resample
from psyprobe.analysis.psychometric.isotonic import deviance, isotonic_bracket, spearman_karber
from psyprobe.analysis.psychometric.search import add_overdispersion, search
from psyprobe.analysis.psychometric.sigmoids import psychometric_function, sigmoid, threshold_at
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

#: Properties of a fit that are contrasts.
_IN_CONTRAST = ("threshold", "threshold_low", "threshold_high", "raw_threshold", "sensitivity")


@dataclass(frozen=True)
class PsychometricFit:
    """Fitted psychometric functions of a batch of curves; every array has the batch's shape.

    Thresholds are contrasts, in the unit that was fitted; numbers in log10 say so in their names.
    """

    #: What may be said of the curve; `STATUSES` tells each in words. Numbers that it forbids are
    #: nan.
    status: statuses.StatusArray
    #: log10 contrast where F = 0.5, and its interval. A side is open, and infinite, where it would
    #: end further beyond the levels shown than the function is wide (or they are apart). A censored
    #: curve has an interval, no threshold.
    log10_threshold: FloatArray
    log10_threshold_low: FloatArray
    log10_threshold_high: FloatArray
    #: From F = 0.05 to F = 0.95, log10 units; 0 of a step.
    log10_width: FloatArray
    log10_width_low: FloatArray
    log10_width_high: FloatArray
    #: Rates, in [0, 1); nan where nothing was fitted: without answers, or to a curve that does not
    #: rise.
    guess: FloatArray
    lapse: FloatArray
    #: Overdispersion, in [0, 1): variance = n p (1 - p) (1 + (n - 1) eta²); 0 is binomial.
    eta: FloatArray
    #: Natural logarithm, without the binomial coefficients.
    log_likelihood: FloatArray
    #: Twice the log-likelihood that the saturated model has more.
    deviance: FloatArray
    #: Levels less free parameters; a rate shared by m curves counts 1/m.
    degrees_of_freedom: FloatArray
    #: Probability of at least this deviance if the function were true, by parametric bootstrap; nan
    #: if not asked for.
    p_value: FloatArray
    #: Whether the best climb ended at a maximum.
    converged: npt.NDArray[np.bool_]
    #: Of the test whether the curve rises at all; 1 where none was needed.
    p_rising: FloatArray
    #: log10 contrasts between which the best rising proportions cross the criterion, whatever their
    #: form.
    log10_bracket_low: FloatArray
    log10_bracket_high: FloatArray
    #: Mean of the rising proportions as a distribution, log10 contrast; nan where they do not go
    #: from 0 to 1.
    log10_spearman_karber: FloatArray
    #: Different contrasts above 0 with trials, and contrasts given without any.
    levels: npt.NDArray[np.int64]
    dropped_levels: npt.NDArray[np.int64]
    #: Family of the sigmoid.
    function: str
    #: Of the intervals.
    level: float
    #: Within which the rates were sought; equal if fixed.
    guess_bounds: tuple[float, float]
    lapse_bounds: tuple[float, float]

    @property
    def threshold(self) -> FloatArray:
        """Contrast where F = 0.5; nan where there is no threshold."""
        return np.asarray(10.0**self.log10_threshold)

    @property
    def threshold_low(self) -> FloatArray:
        """Contrast at the lower end of the threshold's interval; 0 where it is open."""
        return np.asarray(10.0**self.log10_threshold_low)

    @property
    def threshold_high(self) -> FloatArray:
        """Contrast at the upper end of the threshold's interval; infinite where it is open."""
        return np.asarray(10.0**self.log10_threshold_high)

    @property
    def width(self) -> FloatArray:
        """Contrast at F = 0.95 less that at F = 0.05; 0 of a step, nan without a threshold."""
        low, high = (
            threshold_at(share, self.log10_threshold, self.log10_width, function=self.function)
            for share in (0.05, 0.95)
        )
        return np.asarray(10.0**high - 10.0**low)

    @property
    def bracket_low(self) -> FloatArray:
        """Lower contrast of the bracket without a form; see `log10_bracket_low`."""
        return np.asarray(10.0**self.log10_bracket_low)

    @property
    def bracket_high(self) -> FloatArray:
        """Upper contrast of the bracket without a form; see `log10_bracket_low`."""
        return np.asarray(10.0**self.log10_bracket_high)

    @property
    def spearman_karber(self) -> FloatArray:
        """Contrast at the Spearman-Karber mean; see `log10_spearman_karber`."""
        return np.asarray(10.0**self.log10_spearman_karber)

    @property
    def sensitivity(self) -> FloatArray:
        """1 / contrast at threshold; nan where there is none."""
        return np.asarray(10.0**-self.log10_threshold)

    @property
    def guess_at_bound(self) -> npt.NDArray[np.bool_]:
        """Whether a fitted guess rate ended at its upper bound: a larger one may be true."""
        return _stopped(self.guess, self.guess_bounds)

    @property
    def lapse_at_bound(self) -> npt.NDArray[np.bool_]:
        """Whether a fitted lapse rate ended at its upper bound: a larger one may be true."""
        return _stopped(self.lapse, self.lapse_bounds)

    @property
    def log10_raw_threshold(self) -> FloatArray:
        """log10 contrast at which half the answers are yes, guesses and lapses counted in; nan
        where they never are.
        """
        return threshold_at(
            0.5,
            self.log10_threshold,
            self.log10_width,
            self.guess,
            self.lapse,
            function=self.function,
        )

    @property
    def raw_threshold(self) -> FloatArray:
        """Contrast at which half the answers are yes; see `log10_raw_threshold`."""
        return np.asarray(10.0**self.log10_raw_threshold)

    def to_frame(self) -> pd.DataFrame:
        """One row a curve, indexed by its place in the batch, with all numbers of the fit."""
        import pandas as pd

        arrays = {
            field.name: value
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        }
        arrays |= {name: getattr(self, name) for name in _IN_CONTRAST}
        shape = np.shape(self.status)
        axes = [f"axis_{i}" for i in range(len(shape))]
        index = pd.MultiIndex.from_product(map(range, shape), names=axes) if shape else None
        return pd.DataFrame({name: np.ravel(array) for name, array in arrays.items()}, index)

    def _repr_html_(self) -> str:
        from psyprobe.files import html

        names = (
            "status",
            "threshold",
            "threshold_low",
            "threshold_high",
            "log10_width",
            "guess",
            "lapse",
            "sensitivity",
        )
        columns = [np.ravel(getattr(self, name)) for name in names]
        rows = [[_rounded(cell) for cell in row] for row in zip(*columns, strict=True)]
        return html.table([list(names), *rows], f"Psychometric function ({self.function})")

    def predict(self, contrast: npt.ArrayLike) -> FloatArray:
        """Probability of yes by the fitted functions.

        Parameters
        ----------
        contrast : array_like of float
            Linear contrast, at least 0; one-dimensional, or of shape (..., L) with the batch's
            leading axes.

        Returns
        -------
        ndarray of float64, shape (..., L)
            nan for curves without a threshold.
        """
        c = np.asarray(contrast, dtype=np.float64)
        if not np.all(c >= 0):
            raise InputError(
                f"contrast {np.min(c):g} is not usable; contrast is linear, at least 0"
            )
        with np.errstate(divide="ignore"):
            x = np.log10(c)
        t, w, g, lam = (
            np.asarray(v)[..., None]
            for v in (self.log10_threshold, self.log10_width, self.guess, self.lapse)
        )
        known = np.isfinite(t)
        # A step is drawn as the narrowest function that numbers hold.
        narrowest = np.where(known & (w > 1e-9), w, 1e-9)
        t, g, lam = (np.where(known, v, 0.0) for v in (t, g, lam))
        return np.where(
            known, psychometric_function(x, t, narrowest, g, lam, function=self.function), np.nan
        )


def _rounded(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float | np.floating) else str(cell)


def _stopped(rate: FloatArray, bounds: tuple[float, float]) -> npt.NDArray[np.bool_]:
    if bounds[0] == bounds[1]:
        return np.zeros(rate.shape, dtype=bool)
    return np.asarray(rate >= bounds[1] - 1e-6)


Rate: TypeAlias = float | tuple[float, float] | Literal["fit"]
Lapse: TypeAlias = Rate | Literal["guess"]

#: Bounds of a rate that is asked to be fitted without further words.
FREE_GUESS = (0.0, 0.5)
FREE_LAPSE = (0.0, 0.1)


def fit_psychometric(
    contrast: npt.ArrayLike,
    yes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    function: str = "logistic",
    guess: Rate = 0.0,
    lapse: Lapse = 0.0,
    shared: tuple[int, ...] = (),
    method: Literal["mle", "map"] = "mle",
    priors: Mapping[str, likelihood.LogPrior | None] | None = None,
    overdispersion: bool = False,
    interval: Literal["profile", "bootstrap"] | None = "profile",
    level: float = 0.95,
    goodness: bool = False,
    resamples: int = 999,
    seed: int = 0,
) -> PsychometricFit:
    """Fit psi = guess + (1 - guess - lapse) F(log10 contrast) to counted answers of a batch of
    curves.

    Parameters
    ----------
    contrast : array_like of float, shape (..., L)
        Linear contrast, above 0, in any order; 0 marks catch trials, which inform a free guess rate
        and nothing else.
    yes : array_like of float, shape (..., L)
        How many said yes (or were right); fractions, such as sums of P(yes), are taken.
    trials : array_like of float, shape (..., L)
        How many were asked; 0 where a level is missing. The three broadcast, and the last axis is
        levels.
    function : str, optional
        "logistic", "normal", "weibull" (Gumbel on log contrast), "gumbel_reversed" or
        "hyperbolic_secant".
    guess, lapse : float, (float, float) or "fit", optional
        A fixed rate, bounds of a fitted one, or "fit" for the bounds (0, 0.5) of guess and (0, 0.1)
        of lapse. The lapse rate may be "guess": equal to the guess rate, whatever that is.
    shared : tuple of int, optional
        Axes of the batch (the shape without levels) along which one guess and one lapse rate hold
        for all curves: (-1,) if frequencies of a prompt are the batch's last axis. Catch trials of
        such curves are added up, so give those that serve all of them once.
    method : "mle" or "map", optional
        Largest likelihood, or largest posterior density under `priors`. Statuses come from the
        likelihood either way.
    priors : mapping of str to callable, optional
        With "map": log densities by "threshold", "width", "guess", "lapse", "eta" in place of the
        weak ones that `stated_priors` tells; None makes one flat.
    overdispersion : bool, optional
        Whether answers may vary more than a binomial: a beta-binomial with one eta for each group.
        Intervals then hold eta at its estimate.
    interval : "profile", "bootstrap" or None, optional
        By profile likelihood with the quantile of chi-square; with that of answers drawn from the
        fit where it is larger, as with few trials; or none. Censored thresholds have the first.
    level : float, optional
        Of the intervals, and of the tests behind a status, in (0, 1).
    goodness : bool, optional
        Whether to find the p-value of the deviance by parametric bootstrap.
    resamples : int, optional
        Of each bootstrap, for each curve.
    seed : int, optional
        Of everything drawn, that of the test whether a curve rises included.

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
    A curve that falls with contrast or does neither is not fitted, and left out of what its group
    shares.

    Examples
    --------
    >>> contrast = 10 ** np.linspace(-3, -1, 9)
    >>> fit = fit_psychometric(contrast, [0, 0, 2, 7, 20, 33, 38, 40, 40], 40)
    >>> print(fit.status, f"{fit.threshold:.4f} [{fit.threshold_low:.4f}, {fit.threshold_high:.4f}]")
    ok 0.0100 [0.0087, 0.0115]
    >>> print(fit_psychometric(contrast, 0, 10).status)
    censored_above
    """
    _check_options(method, priors, interval, level, resamples)
    equal = lapse == "guess"
    bounds = (
        _bounds("guess", guess, FREE_GUESS),
        _bounds("lapse", guess if equal else lapse, FREE_LAPSE),
    )
    if equal:
        bounds = bounds[0], bounds[0]
    if bounds[0][1] + bounds[1][1] > 1 or bounds[0][0] + bounds[1][0] >= 1:
        raise InputError(
            f"guess {bounds[0]} and lapse {bounds[1]} may reach 1 together; lower one of the "
            "upper bounds"
        )
    model = likelihood.Model(sigmoid(function), likelihood.LogPriors(), equal)
    problem = statuses.state_problem(
        read_curves(contrast, yes, trials, shared), function, model, bounds, level, seed
    )
    best, value, converged = search(problem.task)
    judged = statuses.judge(problem, best, value)
    if method == "map" or overdispersion:
        if method == "map":
            model = replace(model, priors=likelihood.stated_priors(priors, equal))
        problem = replace(problem, task=replace(problem.task, model=model))
        best, value, converged = search(problem.task, first=[best])
        if overdispersion:
            best, value = add_overdispersion(problem.task, best, value)
        judged = statuses.retold(problem, judged, best, steps_stay=method == "mle")
    nothing = np.full(judged.status.shape, np.nan)
    ends = np.stack([nothing] * 4)
    p_value = nothing
    task = problem.task
    has = np.isin(judged.status, statuses.WITH_THRESHOLD)
    lost = deviance(
        task.counts.yes,
        task.counts.trials,
        likelihood.predicted(task.model.family, task.counts, best),
    )
    sought: tuple[Parameter, ...] = ("threshold", "slope") if interval == "bootstrap" else ()
    lost_held = np.empty((0, *lost.shape))
    lost_again = lost[:, None]
    if goodness or sought:
        lost_held, lost_again = resample(task, best, sought, resamples=resamples, seed=seed)
    if goodness:
        larger = (lost_again >= lost[:, None] - 1e-9).sum(axis=1)
        p_value = np.where(has, (1 + larger) / (1 + resamples), np.nan)
    if interval is not None:
        quantiles = np.full((2, *lost.shape), problem.quantile)
        if sought:
            quantiles = np.maximum(
                quantiles, np.quantile(lost_held, level, axis=2, method="higher")
            )
        ends = _intervals(problem, judged, best, value, quantiles)
    return _collect(problem, judged, best, converged, ends, lost, p_value)


def _check_options(
    method: str, priors: object, interval: str | None, level: float, resamples: int
) -> None:
    if method not in ("mle", "map"):
        raise unknown_name("method of fitting", method, ("mle", "map"))
    if priors is not None and method != "map":
        raise InputError("priors are given, but method is 'mle', which has none; say method='map'")
    if interval not in ("profile", "bootstrap", None):
        raise unknown_name("kind of interval", interval, ("profile", "bootstrap"))
    if not 0 < level < 1:
        raise InputError(
            f"level {level:g} is not a probability; give a number between 0 and 1, as 0.95"
        )
    if resamples < 1:
        raise InputError(
            f"resamples {resamples} is not a number of draws; give at least 1, and 999 or more "
            "to report"
        )


def _bounds(name: str, rate: Lapse, free: tuple[float, float]) -> tuple[float, float]:
    if isinstance(rate, str):
        if rate != "fit":
            raise InputError(
                f"{name} {rate!r} is no rate; give a number, a pair of bounds, or 'fit'"
            )
        return free
    low, high = (float(v) for v in (rate if isinstance(rate, tuple) else (rate, rate)))
    if not 0 <= low <= high < 1:
        raise InputError(
            f"{name} {rate} is not usable; give a rate in [0, 1), or bounds (low, high) with "
            "low <= high"
        )
    return low, high


def _intervals(
    problem: statuses.Problem,
    judged: statuses.Judged,
    best: Point,
    value: FloatArray,
    quantiles: FloatArray,
) -> FloatArray:
    """Low and high end of threshold and width, in the coordinates of the counts; `quantiles` of
    both losses.
    """
    shape = judged.threshold.shape
    told = np.isin(judged.status, statuses.WITH_THRESHOLD)
    bounded = told | (
        np.isin(judged.status, ("censored_above", "censored_below")) & (problem.status == "")
    )
    ends = np.full((4, judged.threshold.size), np.nan)
    of_threshold, of_slope = (np.flatnonzero(which) for which in (bounded, told))
    which = np.concatenate([of_threshold, of_slope])
    if which.size:
        sought = Ends(which, np.arange(which.size) >= of_threshold.size)
        along = Profile(problem.task, best, value)
        low, high = along.interval(
            sought.of(*quantiles), sought.of(judged.threshold, best.slope), sought
        )
        cut = of_threshold.size
        ends[0, of_threshold] = low[:cut]
        ends[1, of_threshold] = high[:cut]
        ends[2, of_slope], ends[3, of_slope] = np.exp(-high[cut:]), np.exp(-low[cut:])
    ends = ends.reshape(4, *shape)
    ends[:2] = _censored_ends(problem, judged.status, *_among_levels(problem, judged, *ends[:2]))
    return ends


def _among_levels(
    problem: statuses.Problem, judged: statuses.Judged, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends as the levels shown can tell them.

    A threshold at a mixed level is known no better than to half the way to its neighbours. An end
    that is further beyond the levels than the function is wide is open, since there it hangs on the
    function's form alone.
    """
    counts = problem.task.counts
    middle = judged.threshold
    x = np.where(counts.trials > 0, counts.x, np.nan)
    at = middle[..., None]
    mixed = judged.status == "quasi_separable"
    below = np.where(x < at, x, -np.inf).max(axis=-1, initial=-np.inf)
    above = np.where(x > at, x, np.inf).min(axis=-1, initial=np.inf)
    low = np.where(mixed & np.isfinite(below), np.minimum(low, 0.5 * (below + middle)), low)
    high = np.where(mixed & np.isfinite(above), np.maximum(high, 0.5 * (above + middle)), high)
    first, last = tested_range(counts)
    reach = np.fmin(judged.width, last - first)
    return np.where(low < first - reach, -np.inf, low), np.where(high > last + reach, np.inf, high)


def _censored_ends(
    problem: statuses.Problem, status: statuses.StatusArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Where nobody ever said yes, or always, the ends are exact: as many trials as refute a rate of
    one half.
    """
    counts = problem.task.counts
    middle = 0.5 * (1 + problem.guess[0] - problem.lapse[0])
    for name, chance, sign in (("censored_above", 1 - middle, 1), ("censored_below", middle, -1)):
        here = (status == name) & (problem.status == name)
        needed = np.log(1 - problem.level) / np.log(chance)
        order = slice(None, None, -1) if sign > 0 else slice(None)
        reached = np.cumsum(counts.trials[..., order], axis=-1)[..., order] >= needed - 1e-9
        places = np.where(reached & (counts.trials > 0), counts.x, -sign * np.inf)
        claim = (
            places.max(axis=-1, initial=-np.inf)
            if sign > 0
            else places.min(axis=-1, initial=np.inf)
        )
        low = np.where(here, claim if sign > 0 else -np.inf, low)
        high = np.where(here, claim if sign < 0 else np.inf, high)
    low = np.where(status == "flat", -np.inf, low)
    high = np.where(status == "flat", np.inf, high)
    low = np.where((status == "censored_below") & ~np.isnan(high), -np.inf, low)
    return low, np.where((status == "censored_above") & ~np.isnan(low), np.inf, high)


def _collect(
    problem: statuses.Problem,
    judged: statuses.Judged,
    best: Point,
    converged: npt.NDArray[np.bool_],
    ends: FloatArray,
    lost: FloatArray,
    p_value: FloatArray,
) -> PsychometricFit:
    curves = problem.curves
    status = judged.status
    counts = problem.task.counts
    model = problem.task.model
    shape = status.shape
    has = np.isin(status, statuses.WITH_THRESHOLD)
    threshold = np.where(has, counts.centre + counts.scale * judged.threshold, np.nan)
    width = np.where(has, counts.scale * judged.width, np.nan)
    low, high, narrow, wide = ends
    fitted = (counts.trials > 0).any(axis=-1)
    free = [b[1] > b[0] for b in (problem.guess, problem.lapse)]
    rates = 1 if model.equal_rates and free[0] else sum(free)
    shown = (curves.trials > 0).sum(axis=-1)
    levels = likelihood.levels_at(model.family, counts, best)
    # Rates that a group has in common cost each of its curves an equal part of a degree of freedom.
    cost = 2 + rates / np.maximum(fitted.sum(axis=-1, keepdims=True), 1)
    middle = np.full(shape, 0.5 if free[0] else 0.5 * (1 + problem.guess[0]))
    below, above = isotonic_bracket(curves.x, curves.yes, curves.trials, middle)
    asked = shown > 0

    # A curve without trials has the rates of its group, if that has any; one that does not rise has
    # none.
    rises = fitted & ~np.isin(status, ("reversed", "non_monotone"))
    told = rises | ~asked & (rises.any(axis=-1) | (counts.catch_trials > 0))[:, None]

    def rate(value: FloatArray) -> FloatArray:
        return np.where(told, np.broadcast_to(value[:, None], shape), np.nan)

    values: dict[str, Any] = {
        "status": status,
        "log10_threshold": threshold,
        "log10_threshold_low": counts.centre + counts.scale * low,
        "log10_threshold_high": counts.centre + counts.scale * high,
        "log10_width": width,
        "log10_width_low": counts.scale * narrow,
        "log10_width_high": counts.scale * wide,
        "guess": rate(best.guess),
        "lapse": rate(best.lapse),
        "eta": rate(best.eta),
        "log_likelihood": np.where(
            fitted, likelihood.curve_log_likelihood(counts, best, levels), np.nan
        ),
        "deviance": np.where(fitted, lost, np.nan),
        "degrees_of_freedom": np.where(fitted, shown - cost, np.nan),
        "p_value": p_value,
        "converged": np.broadcast_to(converged[:, None], shape) & fitted,
        "p_rising": np.where(asked, problem.rising, np.nan),
        "log10_bracket_low": np.where(asked, below, np.nan),
        "log10_bracket_high": np.where(asked, above, np.nan),
        "log10_spearman_karber": spearman_karber(curves.x, curves.yes, curves.trials),
        "levels": shown,
        "dropped_levels": curves.dropped,
    }
    arranged: dict[str, Any] = {
        name: curves.ungroup(np.asarray(value)) for name, value in values.items()
    }
    bounds: dict[str, Any] = {"guess_bounds": problem.guess, "lapse_bounds": problem.lapse}
    return PsychometricFit(function=problem.function, level=problem.level, **bounds, **arranged)
