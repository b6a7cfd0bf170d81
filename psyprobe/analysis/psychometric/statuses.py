"""What may be said of each curve: a status in place of a number that data do not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Curves, Point
from psyprobe.analysis.psychometric.intervals import Profile
from psyprobe.analysis.psychometric.isotonic import (
    falling_deviance,
    isotonic_bracket,
    monotone_p_value,
    rising_deviance,
)
from psyprobe.analysis.psychometric.likelihood import curve_log_likelihood, differentiate
from psyprobe.analysis.psychometric.search import Model, Task, search

StatusArray = npt.NDArray[np.str_]

#: Every status, with what it says.
STATUSES: dict[str, str] = {
    "ok": "the threshold lies within the tested contrasts",
    "separable": "a step: no below, yes above; the threshold is anywhere between two levels, and the midpoint is given",
    "quasi_separable": "a step with one mixed level, which is the threshold",
    "censored_above": "never seen, or no better than guessing: the threshold is above the highest contrast",
    "censored_below": "always seen: the threshold is below the lowest contrast",
    "always_yes": "yes to everything, blanks too: a bias and no threshold",
    "extrapolated": "half is not reached within the tested contrasts: the threshold is the function's continuation",
    "non_monotone": "neither rises nor falls with contrast: no threshold",
    "reversed": "falls with contrast: no threshold; the polarity or the reading of the answers may be wrong",
    "biased": "the guess rate is above one half: only F = 0.5 is a threshold, the raw 50 % point is not",
    "flat": "answers do not depend on contrast, and too few or too mixed to say more: no threshold",
    "empty": "no trials",
}
#: Those whose threshold is a number.
WITH_THRESHOLD = ("ok", "separable", "quasi_separable", "extrapolated", "biased")

#: Significance at which data are no longer called rising.
SIGNIFICANCE = 0.01
_SAME = 1e-6
#: In units of the tested range; a function this wide is a constant.
_ENDLESS_WIDTH = 1e3


@dataclass(frozen=True)
class Steps:
    """How well the best step does, by curve."""

    #: log-likelihood of the best step between two levels, and of the best at a level that may be mixed, shape (G, M).
    between: FloatArray
    at: FloatArray
    #: The levels around the first, shape (G, M).
    low: FloatArray
    high: FloatArray
    #: The level of the second, in the coordinates of the counts, shape (G, M).
    level: FloatArray
    #: F at that level, shape (G, M).
    share: FloatArray
    #: -1 where that level is the lowest, 1 the highest, 0 otherwise, shape (G, M).
    edge: npt.NDArray[np.int64]


def best_steps(counts: Counts, guess: FloatArray, lapse: FloatArray) -> Steps:
    """The best steps from guess to 1 - lapse, rates of shape (G,)."""
    k, n = counts.yes, counts.trials
    present = n > 0
    g, top = guess[:, None, None], 1 - lapse[:, None, None]
    own = np.clip(k / np.where(present, n, 1.0), g, top)
    below, above, mixed = (_log_likelihood(k, n, np.broadcast_to(p, k.shape)) for p in (g, top, own))
    zero = np.zeros((*k.shape[:-1], 1))
    before = np.concatenate([zero, np.cumsum(below, axis=-1)[..., :-1]], axis=-1)
    after = np.cumsum(above[..., ::-1], axis=-1)[..., ::-1]
    beyond = np.concatenate([after[..., 1:], zero], axis=-1)
    last = present.sum(axis=-1) - 1
    cut = np.where(present & (np.arange(k.shape[-1]) > 0), before + after, -np.inf)
    level = np.where(present, before + mixed + beyond, -np.inf)
    best_cut, best_level = cut.argmax(axis=-1), level.argmax(axis=-1)
    edge = np.where(best_level == 0, -1, 0) + np.where(best_level == last, 1, 0)
    share = (_pick(own, best_level) - guess[:, None]) / np.maximum(1 - guess - lapse, 1e-12)[:, None]
    return Steps(
        _pick(cut, best_cut),
        _pick(level, best_level),
        _pick(counts.x, np.maximum(best_cut - 1, 0)),
        _pick(counts.x, best_cut),
        _pick(counts.x, best_level),
        share,
        edge,
    )


def _log_likelihood(yes: FloatArray, trials: FloatArray, rate: FloatArray) -> FloatArray:
    no = trials - yes
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(yes > 0, yes * np.log(rate), 0.0) + np.where(no > 0, no * np.log1p(-rate), 0.0)


def _pick(values: FloatArray, index: npt.NDArray[np.intp]) -> FloatArray:
    return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])


def separation(yes: npt.ArrayLike, trials: npt.ArrayLike) -> StatusArray:
    """How answers of rising contrast separate, with no model in mind.

    Parameters
    ----------
    yes, trials : array_like of float, shape (..., L)
        By level, in order of contrast.

    Returns
    -------
    ndarray of str, shape (...,)
        "all-no", "all-yes", "complete" (no up to a level, yes from the next), "quasi" (the same but for one mixed
        level between them), "none", or "empty" without trials.

    Examples
    --------
    >>> print(separation([[0, 0, 4], [0, 2, 4], [1, 2, 4]], 4))
    ['complete' 'quasi' 'none']
    """
    k, n = np.broadcast_arrays(np.asarray(yes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    present = n > 0
    no, all_ = present & (k == 0), present & (k == n)
    mixed = (present & ~no & ~all_).sum(axis=-1)
    index = np.arange(k.shape[-1])
    last_not_yes = np.where(present & ~all_, index, -1).max(axis=-1, initial=-1)
    first_not_no = np.where(present & ~no, index, k.shape[-1]).min(axis=-1, initial=k.shape[-1])
    found = np.full(k.shape[:-1], "none", dtype="<U8")
    ordered = last_not_yes < first_not_no
    found[ordered & (mixed == 0)] = "complete"
    found[(last_not_yes == first_not_no) & (mixed == 1)] = "quasi"
    some = present.any(axis=-1)
    found[some & (no == present).all(axis=-1)] = "all-no"
    found[some & (all_ == present).all(axis=-1)] = "all-yes"
    found[~some] = "empty"
    return found


def data_status(
    yes: FloatArray, trials: FloatArray, catch_share: FloatArray, seed: int
) -> tuple[StatusArray, FloatArray]:
    """Statuses that need no fit, "" where one has to say, and the p-value of rising, 1 where no test was needed.

    `catch_share` is the proportion of yes to blanks, nan without blanks, shape (...,).
    """
    kind = separation(yes, trials)
    p_rising = monotone_p_value(yes, trials, seed=seed, test_all=False)
    status = np.full(kind.shape, "", dtype="<U16")
    wrong = p_rising < SIGNIFICANCE
    if wrong.any():
        k, n = yes[wrong], trials[wrong]
        better = falling_deviance(k, n) < rising_deviance(k, n)
        falls = better & (monotone_p_value(n - k, n, seed=seed, test_all=False) >= SIGNIFICANCE)
        status[wrong] = np.where(falls, "reversed", "non_monotone")
    with np.errstate(invalid="ignore"):
        bias = catch_share > 0.5
    status[kind == "all-no"] = "censored_above"
    status[(kind == "all-yes") & ~bias] = "censored_below"
    status[(kind == "all-yes") & bias] = "always_yes"
    status[kind == "empty"] = "empty"
    return status, p_rising


@dataclass(frozen=True)
class Evidence:
    """What the fit found of each curve; losses are twice the log-likelihood, all of shape (G, M)."""

    #: Lost if the sigmoid is 0, or 1, at every level.
    unseen: FloatArray
    seen: FloatArray
    #: Lost if the threshold is infinitely high, or low.
    far_above: FloatArray
    far_below: FloatArray
    #: Lost if the rate is as low as its bounds allow; 0 if it is fixed.
    no_guess: FloatArray
    no_lapse: FloatArray
    #: Of the curve at the best point.
    log_likelihood: FloatArray
    #: Lowest and highest level, in the coordinates of the counts.
    low: FloatArray
    high: FloatArray


def fitted_status(
    evidence: Evidence,
    steps: Steps,
    best: Point,
    *,
    biased: npt.NDArray[np.bool_],
    unanchored: npt.NDArray[np.bool_],
    catch_share: FloatArray,
    quantile: float,
    chance_known: bool,
) -> StatusArray:
    """Statuses of curves that `data_status` leaves to the fit, shape (G, M).

    Parameters
    ----------
    evidence, steps, best, catch_share
        Of these curves.
    biased : ndarray of bool, shape (G, M)
        Whether the guess rate is above one half.
    unanchored : ndarray of bool, shape (G, M)
        Whether answers never cross one half, and only a guess or lapse rate that they do not establish puts the
        threshold within the tested contrasts.
    quantile : float
        Of chi-square, above which a loss is significant.
    chance_known : bool
        Whether the guess rate is fixed above 0, as in forced choice.
    """
    t = best.threshold
    status = np.where((t < evidence.low) | (t > evidence.high) | unanchored, "extrapolated", "ok").astype("<U16")
    whole = same_likelihood(steps.between, evidence.log_likelihood)
    part = ~whole & same_likelihood(steps.at, evidence.log_likelihood)
    outside = ((steps.edge == -1) & (steps.share > 0.5)) | ((steps.edge == 1) & (steps.share < 0.5))
    status[whole & ~unanchored] = "separable"
    status[part & ~unanchored] = np.where(outside, "extrapolated", "quasi_separable")[part & ~unanchored]
    status[biased] = "biased"
    above, below = evidence.unseen <= quantile, evidence.seen <= quantile
    # No maximum but a limit: an infinitely far threshold or an infinitely wide function does as well as any.
    endless = (np.minimum(evidence.far_above, evidence.far_below) <= 1e-4) | (np.exp(-best.slope) > _ENDLESS_WIDTH)
    endless |= evidence.low == evidence.high
    above |= endless & (evidence.far_above <= evidence.far_below) & (evidence.far_below > quantile)
    below |= endless & (evidence.far_below <= evidence.far_above) & (evidence.far_above > quantile)
    with np.errstate(invalid="ignore"):
        bias = catch_share > 0.5
    status[above] = "censored_above"
    status[below] = np.where(bias, "always_yes", "censored_below")[below]
    # A guess rate that is known tells what not seeing looks like, so that answers in accord with it are not seeing.
    status[above & below] = "censored_above" if chance_known else "flat"
    status[endless & ~above & ~below] = "flat"
    return status


def same_likelihood(step: FloatArray, smooth: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether a step does as well as the best function found, within what the climb resolves."""
    return np.asarray(step >= smooth - _SAME * np.maximum(1.0, np.abs(smooth)))


#: Bounds of threshold and width in units of the tested range.
_FARTHEST, _NARROWEST, _WIDEST = 20.0, 1e-5, 1e4


@dataclass(frozen=True)
class Problem:
    """What is to be fitted; arrays of G groups of M curves."""

    curves: Curves
    task: Task
    function: str
    guess: tuple[float, float]
    lapse: tuple[float, float]
    level: float
    status: StatusArray
    rising: FloatArray
    catch_share: FloatArray

    @property
    def quantile(self) -> float:
        """Of chi-square with one degree of freedom, at the level."""
        from scipy.special import chdtri

        return float(chdtri(1, 1 - self.level))


@dataclass(frozen=True)
class Judged:
    """Statuses, and thresholds and widths as they are to be told, in the coordinates of the counts."""

    status: StatusArray
    threshold: FloatArray
    width: FloatArray


def state_problem(
    curves: Curves,
    function: str,
    model: Model,
    bounds: tuple[tuple[float, float], tuple[float, float]],
    level: float,
    seed: int,
) -> Problem:
    """Bounds, and what data say before any fit."""
    guess, lapse = bounds
    groups, size = curves.yes.shape[:2]
    with np.errstate(invalid="ignore"):
        share = curves.catch_yes.sum(axis=-1) / curves.catch_trials.sum(axis=-1)
    share = np.broadcast_to(share[:, None], (groups, size))
    status, rising = data_status(curves.yes, curves.trials, share, seed)
    counts = curves.scaled(blanks=guess[1] > guess[0])
    if size > 1:
        fitted = np.where(np.isin(status, ("reversed", "non_monotone")), 0.0, 1.0)[..., None]
        counts = replace(counts, yes=counts.yes * fitted, trials=counts.trials * fitted)
    full, ones, eta = np.ones((groups, size)), np.ones(groups), np.zeros(groups)
    lower = Point(-_FARTHEST * full, -np.log(_WIDEST) * full, guess[0] * ones, lapse[0] * ones, eta)
    upper = Point(_FARTHEST * full, -np.log(_NARROWEST) * full, guess[1] * ones, lapse[1] * ones, eta)
    task = Task(model, counts, lower, upper)
    return Problem(curves, task, function, guess, lapse, level, status, rising, share)


def judge(problem: Problem, best: Point, value: FloatArray) -> Judged:
    """What may be said of each curve, from the largest likelihood and from what is lost elsewhere."""
    counts, curves = problem.task.counts, problem.curves
    shape = counts.centre.shape
    steps = best_steps(counts, best.guess, best.lapse)
    evidence = _evidence(problem, best, value)
    half = np.full(shape, 0.5)
    below_half, above_half = isotonic_bracket(curves.x, curves.yes, curves.trials, half)
    free_guess, free_lapse = problem.guess[1] > problem.guess[0], problem.lapse[1] > problem.lapse[0]
    found = fitted_status(
        evidence,
        steps,
        best,
        biased=_biased(problem, best, evidence.no_guess),
        unanchored=(free_guess & np.isneginf(below_half) & (evidence.no_guess <= problem.quantile))
        | (free_lapse & np.isposinf(above_half) & (evidence.no_lapse <= problem.quantile)),
        catch_share=problem.catch_share,
        quantile=problem.quantile,
        chance_known=problem.guess[0] == problem.guess[1] > 0,
    )
    status = np.where(problem.status == "", found, problem.status)
    threshold, width = best.threshold.copy(), np.exp(-best.slope)
    between = same_likelihood(steps.between, evidence.log_likelihood)
    at = ~between & same_likelihood(steps.at, evidence.log_likelihood)
    threshold = np.where(between, 0.5 * (steps.low + steps.high), np.where(at, steps.level, threshold))
    return Judged(status, threshold, np.where(between | at, 0.0, width))


def _biased(problem: Problem, best: Point, no_guess: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the guess rate is above one half, and not just because nothing tells that it is lower."""
    low, high = problem.guess
    if low == high:
        return np.full(no_guess.shape, low > 0.5)
    model = problem.task.model
    upward = differentiate(model.family, problem.task.counts, best, model.priors).rates[:, 0] > 1e-6
    # A rate that its bound stops at one half or above would rather be higher still.
    stopped = (high >= 0.5) & (best.guess >= high - 1e-9) & upward
    return np.asarray(((best.guess > 0.5) | stopped)[:, None] & (no_guess > problem.quantile))


def retold(problem: Problem, judged: Judged, best: Point, *, steps_stay: bool) -> Judged:
    """Thresholds and widths of another point; statuses stay, but for thresholds now outside of the tested range."""
    step = np.isin(judged.status, ("separable", "quasi_separable")) & steps_stay
    threshold = np.where(step, judged.threshold, best.threshold)
    width = np.where(step, judged.width, np.exp(-best.slope))
    low, high = tested_range(problem.task.counts)
    outside = (threshold < low) | (threshold > high)
    return Judged(np.where((judged.status == "ok") & outside, "extrapolated", judged.status), threshold, width)


def tested_range(counts: Counts) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest level of each curve; infinite without any."""
    present = counts.trials > 0
    low = np.where(present, counts.x, np.inf).min(axis=-1, initial=np.inf)
    return low, np.where(present, counts.x, -np.inf).max(axis=-1, initial=-np.inf)


def _evidence(problem: Problem, best: Point, value: FloatArray) -> Evidence:
    counts = problem.task.counts
    shape = counts.centre.shape
    profile = Profile(problem.task, best, value, "threshold")
    every = np.arange(counts.centre.size)
    far = np.repeat([_FARTHEST, -_FARTHEST, _FARTHEST, -_FARTHEST], every.size)
    steep = np.repeat([True, True, False, False], every.size)
    lost = profile.drop(np.tile(every, 4), far, steep).reshape(4, *shape)
    low, high = tested_range(counts)
    return Evidence(
        unseen=lost[0],
        seen=lost[1],
        far_above=lost[2],
        far_below=lost[3],
        no_guess=_lost_without(problem, best, value, "guess"),
        no_lapse=_lost_without(problem, best, value, "lapse"),
        log_likelihood=curve_log_likelihood(problem.task.model.family, counts, best),
        low=low,
        high=high,
    )


def _lost_without(problem: Problem, best: Point, value: FloatArray, rate: Literal["guess", "lapse"]) -> FloatArray:
    """Twice the likelihood lost with a rate at its lower bound, the same for all curves of a group."""
    shape = problem.task.counts.centre.shape
    low, high = getattr(problem, rate)
    if low == high:
        return np.zeros(shape)
    upper = problem.task.upper.copy()
    getattr(upper, rate)[...] = low
    _, reached, _ = search(replace(problem.task, upper=upper), first=best, keep=1)
    return np.broadcast_to(2 * (value - reached)[:, None], shape)
