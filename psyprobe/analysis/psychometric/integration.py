"""Integrate the posterior of counted answers: thresholds and intervals where trials are few.

The largest likelihood of a short staircase is too sure of its widths: of its profile intervals 82
to 91 % hold the truth, and half of them have no upper end. Integrated over width and rates, with a
stated range of thresholds, intervals end and hold (``benchmarks/interval_coverage.py staircases``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Curves, Index, tested_range
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.posterior import (
    Function,
    ThresholdPosterior,
    counts_grid,
)
from psyprobe.analysis.psychometric.statuses import (
    WITH_THRESHOLD,
    RateBounds,
    StatusArray,
)
from psyprobe.files.json_types import JsonObject

#: Curves with fewer trials have few: from here on the likelihood tells the same, and a grid of
#: widths would be too coarse.
FEW_TRIALS = 400
#: Least range of thresholds that are believed before the answers, log10 contrast: over it, or over
#: the levels if these reach further, the prior is even.
_LEAST_RANGE = 1.0
#: By how many log10 units a range twice as wide may move the end of an interval before it is said
#: that the range ended it.
_PRIOR_SHIFT = 0.05
#: Statuses without a threshold anywhere.
_NONE = ("non_monotone", "reversed", "always_yes", "empty")


def integrate(
    fit: PsychometricFit,
    curves: Curves,
    status: StatusArray,
    guess: RateBounds,
    lapse: RateBounds,
) -> PsychometricFit:
    """Replace the estimates of a fit by posterior means and central intervals.

    Curves of a group share guess and lapse rate, and the distribution of their widths.

    Parameters
    ----------
    fit : PsychometricFit
        Of the likelihood, which gives the statuses.
    curves : Curves
        The answers, in groups.
    status : ndarray of str, shape (G, M)
        Status of each curve.
    guess, lapse : RateBounds
        Bounds of the rates.
    """
    names = (
        "log10_threshold",
        "log10_threshold_low",
        "log10_threshold_high",
        "log10_width",
        "log10_width_low",
        "log10_width_high",
        "guess",
        "lapse",
        "bounded",
    )
    function = cast(Function, fit.function)
    numbers = np.full((len(names), *status.shape), np.nan)
    for group, group_status in enumerate(status):
        rising = np.flatnonzero(~np.isin(group_status, _NONE))
        if rising.size:
            integrated = _Group(curves, group, rising, guess, lapse, function)
            numbers[:, group, rising] = integrated.estimates(fit.level)
    has_threshold = np.isin(status, WITH_THRESHOLD)
    for name, number in zip(names, numbers, strict=True):
        if name == "log10_threshold" or "width" in name:
            number[~has_threshold] = np.nan
    values: JsonObject = {
        name: curves.ungroup(number)
        for name, number in zip(names, numbers, strict=True)
    }
    values["bounded"] = values["bounded"] == 1
    return replace(fit, **values)


@dataclass(frozen=True)
class _Group:
    """Curves of one group, of which posteriors are integrated together."""

    curves: Curves
    group: int
    #: Indices of the curves.
    places: Index
    guess: RateBounds
    lapse: RateBounds
    function: Function

    def posterior(self, scale: float = 1.0) -> ThresholdPosterior:
        """Compute the posterior, with prior ranges of thresholds so many times as wide."""
        low, high = (
            ends[self.group, self.places] for ends in tested_range(self.curves)
        )
        centre = (low + high) / 2
        span = np.maximum(high - low, _LEAST_RANGE) * scale
        ends = (float((centre - span).min()), float((centre + span).max()))
        guess = (self.guess.low, self.guess.high)
        lapse = (self.lapse.low, self.lapse.high)
        grid = counts_grid(ends, guess, lapse, self.function)
        posterior = ThresholdPosterior(self.places.size, grid)
        for place, curve in enumerate(self.places):
            columns = (self.curves.x, self.curves.yes, self.curves.trials)
            posterior.tell_counts(place, *(c[self.group, curve] for c in columns))
            half = span[place] / 2
            posterior.limit_threshold(place, centre[place] - half, centre[place] + half)
        if self.guess.free:
            posterior.tell_catch_trials(
                self.curves.catch_yes[self.group].sum(),
                self.curves.catch_trials[self.group].sum(),
            )
        return posterior

    def estimates(self, level: float) -> FloatArray:
        """Compute the posterior estimates, one column a curve."""
        posterior = self.posterior()
        posterior.refine_all()
        wide = self.posterior(2.0)
        guess = posterior.mean_guess()
        lapse = posterior.mean_lapse()
        columns = []
        for place in range(self.places.size):
            ends = posterior.interval(place, level)
            moved = np.subtract(wide.interval(place, level), ends)
            columns.append(
                (
                    posterior.mean(place),
                    *ends,
                    posterior.mean_width(place),
                    *posterior.width_interval(place, level),
                    guess,
                    lapse,
                    np.abs(moved).max() > _PRIOR_SHIFT,
                )
            )
        return np.array(columns, float).T
