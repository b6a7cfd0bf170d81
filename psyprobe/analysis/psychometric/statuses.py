"""What may be said of each curve: a status in place of a number that data do not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric import isotonic
from psyprobe.analysis.psychometric.counts import Curves, Point, pick, tested_range
from psyprobe.analysis.psychometric.intervals import Ends, Profile
from psyprobe.analysis.psychometric.likelihood import (
    Model,
    curve_log_likelihood,
    differentiate,
    levels_at,
)
from psyprobe.analysis.psychometric.search import Task, search

StatusArray = npt.NDArray[np.str_]

#: Every status, with what it says.
STATUSES: dict[str, str] = {
    "ok": "the threshold lies within the tested contrasts",
    "separable": "a step: no below, yes above; the threshold is anywhere between two levels, "
    "and the midpoint is given",
    "quasi_separable": "a step with one mixed level, which is the threshold",
    "censored_above": "never seen, or no better than guessing: the threshold is above the "
    "highest contrast",
    "censored_below": "always seen: the threshold is below the lowest contrast",
    "always_yes": "yes to everything, blanks too: a bias and no threshold",
    "extrapolated": "half is not reached within the tested contrasts: the threshold is the "
    "function's continuation",
    "non_monotone": "neither rises nor falls with contrast: no threshold",
    "reversed": "falls with contrast: no threshold; the polarity or the reading of the answers "
    "may be wrong",
    "biased": "the guess rate is above one half: only F = 0.5 is a threshold, the raw 50 % "
    "point is not",
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


def separation(yes: npt.ArrayLike, trials: npt.ArrayLike) -> StatusArray:
    """How answers of rising contrast separate, with no model in mind.

    Parameters
    ----------
    yes, trials : array_like of float, shape (..., L)
        By level, in order of contrast.

    Returns
    -------
    ndarray of str, shape (...,)
        "all-no", "all-yes", "complete" (no up to a level, yes from the next), "quasi" (the same but
        for one mixed level between them), "none", or "empty" without trials.

    Examples
    --------
    >>> print(separation([[0, 0, 4], [0, 2, 4], [1, 2, 4]], 4))
    ['complete' 'quasi' 'none']
    """
    k, n = np.broadcast_arrays(
        np.asarray(yes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    present = n > 0
    no = present & (k == 0)
    all_ = present & (k == n)
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


def _data_status(
    curves: Curves, catch_share: FloatArray, seed: int
) -> tuple[StatusArray, FloatArray]:
    """Statuses that need no fit, "" where one has to say, and the p-value of rising, 1 where no
    test was needed.
    """
    yes = curves.yes
    trials = curves.trials
    kind = separation(yes, trials)
    p_rising = isotonic.monotone_p_value(yes, trials, seed=seed, test_all=False)
    status = np.full(kind.shape, "", dtype="<U16")
    wrong = p_rising < SIGNIFICANCE
    if wrong.any():
        k = yes[wrong]
        n = trials[wrong]
        better = isotonic.falling_deviance(k, n) < isotonic.rising_deviance(k, n)
        falls = better & (
            isotonic.monotone_p_value(n - k, n, seed=seed, test_all=False) >= SIGNIFICANCE
        )
        status[wrong] = np.where(falls, "reversed", "non_monotone")
    status[kind == "all-no"] = "censored_above"
    status[kind == "all-yes"] = np.where(catch_share > 0.5, "always_yes", "censored_below")[
        kind == "all-yes"
    ]
    status[kind == "empty"] = "empty"
    return status, p_rising


#: Bounds of threshold and width in units of the tested range.
_FARTHEST = 20.0
_NARROWEST = 1e-5
_WIDEST = 1e4


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
        return float(chdtri(1, 1 - self.level))


@dataclass(frozen=True)
class Judged:
    """Statuses, and thresholds and widths as they are to be told, in the coordinates of the
    counts.
    """

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
    status, rising = _data_status(curves, share, seed)
    counts = curves.scaled(blanks=guess[1] > guess[0])
    if size > 1:
        fitted = np.where(np.isin(status, ("reversed", "non_monotone")), 0.0, 1.0)[..., None]
        counts = replace(counts, yes=counts.yes * fitted, trials=counts.trials * fitted)
    full = np.ones((groups, size))
    ones = np.ones(groups)
    eta = np.zeros(groups)
    lower = Point(-_FARTHEST * full, -np.log(_WIDEST) * full, guess[0] * ones, lapse[0] * ones, eta)
    upper = Point(
        _FARTHEST * full, -np.log(_NARROWEST) * full, guess[1] * ones, lapse[1] * ones, eta
    )
    task = Task(model, counts, lower, upper)
    return Problem(curves, task, function, guess, lapse, level, status, rising, share)


def judge(problem: Problem, best: Point, value: FloatArray) -> Judged:
    """What may be said of each curve, from the largest likelihood and from what is lost
    elsewhere.
    """
    steps = _best_steps(problem, best)
    status = np.where(
        problem.status == "", _fitted_status(problem, best, value, steps), problem.status
    )
    step = steps.between | steps.at
    return Judged(
        status,
        np.where(step, steps.threshold, best.threshold),
        np.where(step, 0.0, np.exp(-best.slope)),
    )


@dataclass(frozen=True)
class Steps:
    """Of curves that a step fits as well as the best function does, all of shape (G, M)."""

    #: Whether a step between two levels does, or else one at a level that may be mixed.
    between: npt.NDArray[np.bool_]
    at: npt.NDArray[np.bool_]
    #: Where the step is, in the coordinates of the counts: midway between the levels, or at the
    #: mixed one.
    threshold: FloatArray
    #: Whether a mixed level is the lowest or the highest, and one half lies beyond it.
    outside: npt.NDArray[np.bool_]


def _best_steps(problem: Problem, best: Point) -> Steps:
    """The best steps from guess to 1 - lapse of the best functions."""
    counts = problem.task.counts
    guess = best.guess
    lapse = best.lapse
    k = counts.yes
    n = counts.trials
    present = n > 0
    g = guess[:, None, None]
    top = 1 - lapse[:, None, None]
    own = np.clip(k / np.where(present, n, 1.0), g, top)
    below, above, mixed = (
        isotonic.log_likelihood(k, n, np.broadcast_to(p, k.shape)) for p in (g, top, own)
    )
    zero = np.zeros((*k.shape[:-1], 1))
    before = np.concatenate([zero, np.cumsum(below, axis=-1)[..., :-1]], axis=-1)
    after = np.cumsum(above[..., ::-1], axis=-1)[..., ::-1]
    beyond = np.concatenate([after[..., 1:], zero], axis=-1)
    cut = np.where(present & (np.arange(k.shape[-1]) > 0), before + after, -np.inf)
    level = np.where(present, before + mixed + beyond, -np.inf)
    best_cut = cut.argmax(axis=-1)
    best_level = level.argmax(axis=-1)
    share = (pick(own, best_level) - guess[:, None]) / np.maximum(1 - guess - lapse, 1e-12)[:, None]
    last = best_level == present.sum(axis=-1) - 1
    smooth = curve_log_likelihood(counts, best, levels_at(problem.task.model.family, counts, best))
    # As well, within what the climb resolves.
    as_well = smooth - _SAME * np.maximum(1.0, np.abs(smooth))
    between = pick(cut, best_cut) >= as_well
    middle = 0.5 * (pick(counts.x, np.maximum(best_cut - 1, 0)) + pick(counts.x, best_cut))
    return Steps(
        between,
        ~between & (pick(level, best_level) >= as_well),
        np.where(between, middle, pick(counts.x, best_level)),
        ((best_level == 0) & ~last & (share > 0.5)) | ((best_level != 0) & last & (share < 0.5)),
    )


def _fitted_status(problem: Problem, best: Point, value: FloatArray, steps: Steps) -> StatusArray:
    """Statuses of curves about which the data alone do not decide; losses are twice the
    log-likelihood.
    """
    curves = problem.curves
    quantile = problem.quantile
    low, high = tested_range(problem.task.counts)
    # Lost if the sigmoid is 0, or 1, at every level, and if the threshold is infinitely high, or
    # low.
    every = np.arange(low.size)
    far = np.repeat([_FARTHEST, -_FARTHEST, _FARTHEST, -_FARTHEST], every.size)
    steep = np.repeat([True, True, False, False], every.size)
    ends = Ends(np.tile(every, 4), np.zeros(far.shape, bool))
    lost, _ = Profile(problem.task, best, value).drop(ends, far, steep)
    unseen, seen, far_above, far_below = lost.reshape(4, *low.shape)
    no_guess, no_lapse = _lost_without(problem, best, value)
    # Answers never cross one half, and only a rate that they do not establish puts the threshold
    # among the contrasts.
    below_half, above_half = isotonic.isotonic_bracket(
        curves.x, curves.yes, curves.trials, np.full(low.shape, 0.5)
    )
    free_guess, free_lapse = (bounds[1] > bounds[0] for bounds in (problem.guess, problem.lapse))
    unanchored = free_guess & np.isneginf(below_half) & (no_guess <= quantile)
    unanchored |= free_lapse & np.isposinf(above_half) & (no_lapse <= quantile)
    outside = (best.threshold < low) | (best.threshold > high) | unanchored
    status = np.where(outside, "extrapolated", "ok").astype("<U16")
    status[steps.between & ~unanchored] = "separable"
    status[steps.at & ~unanchored] = "quasi_separable"
    status[steps.at & ~unanchored & steps.outside] = "extrapolated"
    status[_biased(problem, best, no_guess)] = "biased"
    above = unseen <= quantile
    below = seen <= quantile
    # No maximum but a limit: an infinitely far threshold or an infinitely wide function does as
    # well as any.
    endless = (
        (np.minimum(far_above, far_below) <= 1e-4)
        | (np.exp(-best.slope) > _ENDLESS_WIDTH)
        | (low == high)
    )
    above |= endless & (far_above <= far_below) & (far_below > quantile)
    below |= endless & (far_below <= far_above) & (far_above > quantile)
    status[above] = "censored_above"
    status[below] = np.where(problem.catch_share > 0.5, "always_yes", "censored_below")[below]
    # A guess rate that is known tells what not seeing looks like, so that answers in accord with it
    # are not seeing.
    chance_known = problem.guess[0] == problem.guess[1] > 0
    status[above & below] = "censored_above" if chance_known else "flat"
    status[endless & ~above & ~below] = "flat"
    return status


def _biased(problem: Problem, best: Point, no_guess: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the guess rate is above one half, and not just because nothing tells that it is
    lower.
    """
    low, high = problem.guess
    if low == high:
        return np.full(no_guess.shape, low > 0.5)
    model = problem.task.model
    counts = problem.task.counts
    upward = (
        differentiate(model, counts, best, levels_at(model.family, counts, best)).rates[0] > 1e-6
    )
    # A rate that its bound stops at one half or above would rather be higher still.
    stopped = (high >= 0.5) & (best.guess >= high - 1e-9) & upward
    return np.asarray(((best.guess > 0.5) | stopped)[:, None] & (no_guess > problem.quantile))


def retold(problem: Problem, judged: Judged, best: Point, *, steps_stay: bool) -> Judged:
    """Thresholds and widths of another point; statuses stay, but for thresholds now outside of the
    tested range.
    """
    step = np.isin(judged.status, ("separable", "quasi_separable")) & steps_stay
    threshold = np.where(step, judged.threshold, best.threshold)
    width = np.where(step, judged.width, np.exp(-best.slope))
    low, high = tested_range(problem.task.counts)
    outside = (threshold < low) | (threshold > high)
    return Judged(
        np.where((judged.status == "ok") & outside, "extrapolated", judged.status), threshold, width
    )


def _lost_without(
    problem: Problem, best: Point, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Twice the likelihood lost with guess or lapse rate at its lower bound, the same for all
    curves of a group.
    """
    groups, curves = problem.task.counts.centre.shape
    lost = np.zeros((2, groups))
    rates = [i for i, (low, high) in enumerate((problem.guess, problem.lapse)) if low < high]
    if rates:
        again = np.tile(np.arange(groups), len(rates))
        task = problem.task.take(again)
        for row, i in enumerate(rates):
            name, (low, _) = (("guess", problem.guess), ("lapse", problem.lapse))[i]
            getattr(task.upper, name)[row * groups : (row + 1) * groups] = low
        _, reached, _ = search(task, first=[best.take(again)], keep=1)
        lost[rates] = 2 * (value - reached.reshape(len(rates), groups))
    no_guess, no_lapse = (np.broadcast_to(each[:, None], (groups, curves)) for each in lost)
    return no_guess, no_lapse
