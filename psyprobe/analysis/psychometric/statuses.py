"""Say what data allow about each curve: a status in place of a number that they do not support."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric import isotonic
from psyprobe.analysis.psychometric.counts import (
    Curves,
    Point,
    pick,
    tested_range,
)
from psyprobe.analysis.psychometric.intervals import Parameters, Profile
from psyprobe.analysis.psychometric.likelihood import (
    SearchProblem,
    curve_log_likelihood,
)
from psyprobe.analysis.psychometric.search import Maxima, search
from psyprobe.analysis.psychometric.separation import separate_groups
from psyprobe.analysis.psychometric.sigmoids import sigmoid

StatusArray = npt.NDArray[np.str_]

#: Every status and its meaning.
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
#: Statuses with a number for a threshold.
WITH_THRESHOLD = ("ok", "separable", "quasi_separable", "extrapolated", "biased")

#: Significance at which data are no longer called rising.
SIGNIFICANCE = 0.01
#: Relative difference of log-likelihoods that the climb does not resolve.
_SAME = 1e-6
#: A function this wide is a constant, in units of the tested range.
_ENDLESS_WIDTH = 1e3


def _data_status(
    curves: Curves,
    p_rising: FloatArray,
    catch_share: FloatArray,
    seed: int,
) -> StatusArray:
    """Assign the statuses that need no fit, and "" where a fit decides."""
    status = np.full(p_rising.shape, "", dtype="<U16")
    not_rising = p_rising < SIGNIFICANCE
    if not_rising.any():
        falls = _falls(curves.yes[not_rising], curves.trials[not_rising], seed)
        status[not_rising] = np.where(falls, "reversed", "non_monotone")
    all_no = (curves.yes == 0).all(axis=-1)
    all_yes = (curves.yes == curves.trials).all(axis=-1)
    status[all_no] = "censored_above"
    status[all_yes] = "censored_below"
    status[all_yes & (catch_share > 0.5)] = "always_yes"
    status[all_no & all_yes] = "empty"
    return status


def _falls(yes: FloatArray, trials: FloatArray, seed: int) -> BoolArray:
    """Test whether yes becomes rarer with contrast."""
    p_falling = isotonic.monotone_p_value(
        trials - yes, trials, seed=seed, test_all=False
    )
    falling, rising = (
        isotonic.rising_deviance(answers, trials) for answers in (trials - yes, yes)
    )
    return (falling < rising) & (p_falling >= SIGNIFICANCE)


#: Bounds of threshold and width in units of the tested range.
_FARTHEST = 20.0
_NARROWEST = 1e-5
_WIDEST = 1e4


@dataclass(frozen=True)
class RateBounds:
    """Bounds within which a rate is fitted; equal if it is fixed."""

    low: float
    high: float

    @property
    def free(self) -> bool:
        """Tell whether the rate is fitted, and not fixed."""
        return self.low < self.high


@dataclass(frozen=True)
class FitProblem:
    """Answers to fit, and what they say before any fit; arrays of G groups of M curves."""

    curves: Curves
    search_problem: SearchProblem
    #: Name of the family of sigmoids.
    function: str
    guess: RateBounds
    lapse: RateBounds
    #: Probability that an interval holds the truth.
    level: float
    #: Statuses that need no fit, "" where a fit decides.
    status: StatusArray
    #: p-value of the test whether answers rise; 1 where no test was needed.
    p_rising: FloatArray
    #: Proportion of yes to blanks.
    catch_share: FloatArray

    @property
    def quantile(self) -> float:
        """Quantile of chi-square with one degree of freedom, at the level."""
        return float(chdtri(1, 1 - self.level))


@dataclass(frozen=True)
class Estimates:
    """Statuses, and thresholds and widths to report, in the coordinates of the counts."""

    status: StatusArray
    threshold: FloatArray
    width: FloatArray


def state_problem(
    curves: Curves,
    function: str,
    equal_rates: bool,
    guess: RateBounds,
    lapse: RateBounds,
    level: float,
    seed: int,
) -> FitProblem:
    """Set the search bounds of a fit, and find what the data say before it."""
    groups, size = curves.yes.shape[:2]
    with np.errstate(invalid="ignore"):
        group_share = curves.catch_yes.sum(axis=-1) / curves.catch_trials.sum(axis=-1)
    catch_share = np.broadcast_to(group_share[:, None], (groups, size))
    p_rising = isotonic.monotone_p_value(
        curves.yes, curves.trials, seed=seed, test_all=False
    )
    status = _data_status(curves, p_rising, catch_share, seed)
    counts = curves.scaled(blanks=guess.free)
    if size > 1:
        fitted = ~np.isin(status, ("reversed", "non_monotone"))[..., None]
        counts = replace(counts, yes=counts.yes * fitted, trials=counts.trials * fitted)
    lower = _build_bound(-_FARTHEST, _WIDEST, guess.low, lapse.low, (groups, size))
    upper = _build_bound(_FARTHEST, _NARROWEST, guess.high, lapse.high, (groups, size))
    return FitProblem(
        curves=curves,
        search_problem=SearchProblem(
            sigmoid(function), counts, lower, upper, equal_rates
        ),
        function=function,
        guess=guess,
        lapse=lapse,
        level=level,
        status=status,
        p_rising=p_rising,
        catch_share=catch_share,
    )


def _build_bound(
    threshold: float,
    width: float,
    guess: float,
    lapse: float,
    shape: tuple[int, int],
) -> Point:
    """Build the search bounds of all parameters, the same for each curve."""
    groups, _ = shape
    return Point(
        threshold=np.full(shape, threshold),
        slope=np.full(shape, -np.log(width)),
        guess=np.full(groups, guess),
        lapse=np.full(groups, lapse),
        eta=np.zeros(groups),
    )


def judge(problem: FitProblem, maxima: Maxima) -> Estimates:
    """Decide each curve's status from its largest likelihood and what other functions lose."""
    best = maxima.point
    steps = _fit_steps(problem, best)
    fitted_status = _fitted_status(problem, maxima, steps)
    is_step = steps.between_levels | steps.at_level
    return Estimates(
        status=np.where(problem.status == "", fitted_status, problem.status),
        threshold=np.where(is_step, steps.threshold, best.threshold),
        width=np.where(is_step, 0.0, np.exp(-best.slope)),
    )


@dataclass(frozen=True)
class Steps:
    """Steps that fit curves as well as the best function does, all of shape (G, M)."""

    #: Whether a step between two levels fits as well.
    between_levels: BoolArray
    #: Whether, instead, a step at a level that may be mixed does.
    at_level: BoolArray
    #: Midpoint of the two levels, or the mixed level, in the coordinates of the counts.
    threshold: FloatArray
    #: Whether a mixed level is the lowest or the highest, and one half lies beyond it.
    outside: BoolArray


def _fit_steps(problem: FitProblem, best: Point) -> Steps:
    """Fit step functions with the guess and lapse rates of the best functions."""
    search_problem = problem.search_problem
    counts = search_problem.counts
    levels = counts.x.shape[-1]
    tested = counts.trials > 0
    guess = best.guess[:, None, None]
    ceiling = 1 - best.lapse[:, None, None]
    proportion = np.clip(
        counts.yes / np.where(tested, counts.trials, 1.0), guess, ceiling
    )

    zero = np.zeros((*counts.x.shape[:-1], 1))
    below = isotonic.log_likelihood(counts.yes, counts.trials, guess)
    below_sum = np.concatenate([zero, np.cumsum(below, axis=-1)[..., :-1]], axis=-1)
    above = isotonic.log_likelihood(counts.yes, counts.trials, ceiling)
    above_sum = np.cumsum(above[..., ::-1], axis=-1)[..., ::-1]
    above_next_sum = np.concatenate([above_sum[..., 1:], zero], axis=-1)
    mixed = isotonic.log_likelihood(counts.yes, counts.trials, proportion)
    has_level_below = np.arange(levels) > 0
    cut_value = np.where(tested & has_level_below, below_sum + above_sum, -np.inf)
    level_value = np.where(tested, below_sum + mixed + above_next_sum, -np.inf)
    best_cut = cut_value.argmax(axis=-1)
    best_level = level_value.argmax(axis=-1)

    best_value = curve_log_likelihood(counts, best, search_problem.levels_at(best))
    smallest_value = best_value - _SAME * np.maximum(1.0, np.abs(best_value))
    between_levels = pick(cut_value, best_cut) >= smallest_value
    at_level = ~between_levels & (pick(level_value, best_level) >= smallest_value)
    level_below = pick(counts.x, np.maximum(best_cut - 1, 0))
    midpoint = 0.5 * (level_below + pick(counts.x, best_cut))
    sigmoid_share = np.maximum(1 - best.guess - best.lapse, 1e-12)
    above_guess = pick(proportion, best_level) - best.guess[:, None]
    seen_share = above_guess / sigmoid_share[:, None]
    is_first = best_level == 0
    is_last = best_level == tested.sum(axis=-1) - 1
    half_below = is_first & ~is_last & (seen_share > 0.5)
    half_above = ~is_first & is_last & (seen_share < 0.5)
    return Steps(
        between_levels=between_levels,
        at_level=at_level,
        threshold=np.where(between_levels, midpoint, pick(counts.x, best_level)),
        outside=half_below | half_above,
    )


def _fitted_status(problem: FitProblem, maxima: Maxima, steps: Steps) -> StatusArray:
    """Assign the statuses of curves that the data alone do not decide.

    Losses are twice the log-likelihood lost.
    """
    best = maxima.point
    quantile = problem.quantile
    low, high = tested_range(problem.search_problem.counts)
    never_seen, always_seen, far_above, far_below = _limit_losses(problem, maxima)
    no_guess, no_lapse = _losses_without_rates(problem, maxima)
    unanchored = _unanchored(problem, no_guess, no_lapse)
    outside = (best.threshold < low) | (best.threshold > high) | unanchored
    status = np.where(outside, "extrapolated", "ok").astype("<U16")
    status[steps.between_levels & ~unanchored] = "separable"
    status[steps.at_level & ~unanchored] = "quasi_separable"
    status[steps.at_level & ~unanchored & steps.outside] = "extrapolated"
    status[_biased(problem, best, no_guess)] = "biased"
    # No maximum but a limit: an infinitely far threshold or an infinitely wide function does as
    # well as any.
    endless = np.minimum(far_above, far_below) <= 1e-4
    endless |= np.exp(-best.slope) > _ENDLESS_WIDTH
    endless |= low == high
    only_above = (far_above <= far_below) & (far_below > quantile)
    only_below = (far_below <= far_above) & (far_above > quantile)
    above = (never_seen <= quantile) | (endless & only_above)
    below = (always_seen <= quantile) | (endless & only_below)
    status[above] = "censored_above"
    status[below] = "censored_below"
    status[below & (problem.catch_share > 0.5)] = "always_yes"
    # A fixed guess rate above 0 tells how answers look when nothing is seen, so that answers in
    # accord with it mean that nothing was seen.
    fixed_guess = not problem.guess.free and problem.guess.low > 0
    status[above & below] = "censored_above" if fixed_guess else "flat"
    status[endless & ~above & ~below] = "flat"
    return status


def _limit_losses(problem: FitProblem, maxima: Maxima) -> FloatArray:
    """Compute the loss of functions that are flat or lie beyond the levels, shape (4, G, M).

    The first two are those if the sigmoid is 0, or 1, at every level; the last two those if the
    threshold is infinitely high, or low, and the width is free.
    """
    shape = maxima.point.threshold.shape
    size = maxima.point.threshold.size
    threshold = np.repeat([_FARTHEST, -_FARTHEST, _FARTHEST, -_FARTHEST], size)
    steep = np.repeat([True, True, False, False], size)
    thresholds = Parameters(np.tile(np.arange(size), 4), np.zeros(4 * size, bool))
    profile = Profile(*separate_groups(problem.search_problem, maxima))
    losses = profile.evaluate(thresholds, threshold, steep=steep).loss
    return losses.reshape(4, *shape)


def _unanchored(
    problem: FitProblem, no_guess: FloatArray, no_lapse: FloatArray
) -> BoolArray:
    """Mark curves whose threshold depends on a rate that the data leave uncertain.

    Their answers never cross one half, and the fit without that rate is not significantly worse.
    """
    curves = problem.curves
    bracket = isotonic.isotonic_bracket(curves.x, curves.yes, curves.trials, 0.5)
    never_below = np.isneginf(bracket.low) & (no_guess <= problem.quantile)
    never_above = np.isposinf(bracket.high) & (no_lapse <= problem.quantile)
    return (problem.guess.free & never_below) | (problem.lapse.free & never_above)


def _biased(problem: FitProblem, best: Point, no_guess: FloatArray) -> BoolArray:
    """Mark curves whose guess rate is above one half for certain."""
    if not problem.guess.free:
        return np.full(no_guess.shape, problem.guess.low > 0.5)
    search_problem = problem.search_problem
    derivatives = search_problem.differentiate(best, search_problem.levels_at(best))
    # A rate that its bound stops at one half or above would rather be higher still.
    at_bound = best.guess >= problem.guess.high - 1e-9
    stopped = (problem.guess.high >= 0.5) & at_bound & (derivatives.rates[0] > 1e-6)
    above_half = (best.guess > 0.5) | stopped
    return np.asarray(above_half[:, None] & (no_guess > problem.quantile))


def update_estimates(
    problem: FitProblem,
    estimates: Estimates,
    best: Point,
    *,
    keep_steps: bool,
) -> Estimates:
    """Replace thresholds and widths of estimates by those of another point.

    Statuses stay, but for thresholds that leave the tested range.
    """
    is_step = np.isin(estimates.status, ("separable", "quasi_separable")) & keep_steps
    threshold = np.where(is_step, estimates.threshold, best.threshold)
    width = np.where(is_step, estimates.width, np.exp(-best.slope))
    low, high = tested_range(problem.search_problem.counts)
    outside = (threshold < low) | (threshold > high)
    leaves = (estimates.status == "ok") & outside
    return Estimates(
        np.where(leaves, "extrapolated", estimates.status), threshold, width
    )


def _losses_without_rates(
    problem: FitProblem, maxima: Maxima
) -> tuple[FloatArray, FloatArray]:
    """Compute the loss of a guess or lapse rate at its lower bound, shape (G, M) each.

    They are the same for all curves of a group; 0 where a rate is fixed.
    """
    search_problem = problem.search_problem
    groups, curves = search_problem.counts.centre.shape
    free = [problem.guess.free, problem.lapse.free]
    losses = np.zeros((2, groups))
    if any(free):
        # All rates in one search: calls of numpy on few groups take as long as on many.
        repeated = np.tile(np.arange(groups), sum(free))
        fixed = search_problem[repeated]
        for row, name in enumerate(np.compress(free, ("guess", "lapse"))):
            place = slice(row * groups, (row + 1) * groups)
            getattr(fixed.upper, name)[place] = getattr(fixed.lower, name)[place]
        values = search(fixed, [maxima.point[repeated]], 1).value
        losses[free] = 2 * (maxima.value - values.reshape(-1, groups))
    no_guess, no_lapse = np.repeat(losses[..., None], curves, axis=-1)
    return no_guess, no_lapse
