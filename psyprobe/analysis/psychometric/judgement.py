"""From the largest likelihood of each curve to what may be said of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Curves
from psyprobe.analysis.psychometric.groups import Counts, Point
from psyprobe.analysis.psychometric.isotonic import isotonic_bracket
from psyprobe.analysis.psychometric.likelihood import curve_log_likelihood, differentiate
from psyprobe.analysis.psychometric.maximise import Model
from psyprobe.analysis.psychometric.profile import Profile
from psyprobe.analysis.psychometric.search import search
from psyprobe.analysis.psychometric.statuses import (
    Evidence,
    StatusArray,
    best_steps,
    data_status,
    fitted_status,
    same_likelihood,
)

#: Bounds of threshold and width in units of the tested range.
_FARTHEST, _NARROWEST, _WIDEST = 20.0, 1e-5, 1e4


@dataclass(frozen=True)
class Problem:
    """What is to be fitted; arrays of G groups of M curves."""

    curves: Curves
    counts: Counts
    function: str
    model: Model
    guess: tuple[float, float]
    lapse: tuple[float, float]
    lower: Point
    upper: Point
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
    return Problem(curves, counts, function, model, guess, lapse, lower, upper, level, status, rising, share)


def judge(problem: Problem, best: Point, value: FloatArray) -> Judged:
    """What may be said of each curve, from the largest likelihood and from what is lost elsewhere."""
    counts, curves = problem.counts, problem.curves
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
    upward = differentiate(problem.model.family, problem.counts, best, problem.model.priors).rates[:, 0] > 1e-6
    # A rate that its bound stops at one half or above would rather be higher still.
    stopped = (high >= 0.5) & (best.guess >= high - 1e-9) & upward
    return np.asarray(((best.guess > 0.5) | stopped)[:, None] & (no_guess > problem.quantile))


def retold(problem: Problem, judged: Judged, best: Point, *, steps_stay: bool) -> Judged:
    """Thresholds and widths of another point; statuses stay, but for thresholds now outside of the tested range."""
    step = np.isin(judged.status, ("separable", "quasi_separable")) & steps_stay
    threshold = np.where(step, judged.threshold, best.threshold)
    width = np.where(step, judged.width, np.exp(-best.slope))
    low, high = tested_range(problem.counts)
    outside = (threshold < low) | (threshold > high)
    return Judged(np.where((judged.status == "ok") & outside, "extrapolated", judged.status), threshold, width)


def tested_range(counts: Counts) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest level of each curve; infinite without any."""
    present = counts.trials > 0
    low = np.where(present, counts.x, np.inf).min(axis=-1, initial=np.inf)
    return low, np.where(present, counts.x, -np.inf).max(axis=-1, initial=-np.inf)


def _evidence(problem: Problem, best: Point, value: FloatArray) -> Evidence:
    counts = problem.counts
    shape = counts.centre.shape
    profile = Profile(problem.model, counts, best, value, problem.lower, problem.upper, "threshold")
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
        log_likelihood=curve_log_likelihood(problem.model.family, counts, best),
        low=low,
        high=high,
    )


def _lost_without(problem: Problem, best: Point, value: FloatArray, rate: Literal["guess", "lapse"]) -> FloatArray:
    """Twice the likelihood lost with a rate at its lower bound, the same for all curves of a group."""
    shape = problem.counts.centre.shape
    low, high = getattr(problem, rate)
    if low == high:
        return np.zeros(shape)
    upper = problem.upper.copy()
    getattr(upper, rate)[...] = low
    _, reached, _ = search(problem.model, problem.counts, problem.lower, upper, first=best, keep=1)
    return np.broadcast_to(2 * (value - reached)[:, None], shape)
