"""Compare two thresholds, and ratios of two scores: by posteriors, and by limits of each part.

References
----------
Zou, Donner (2008). Construction of confidence limits about effect measures: a general approach.
Stat. Med. 27: 1693-1702 (MOVER).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.intervals import quantiles
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

#: Fewest people of whom there is a fraction.
_FEWEST = 3


@dataclass(frozen=True)
class ThresholdDifference(Recorded):
    """The posterior of the difference of two thresholds, in log10."""

    #: First less second.
    mean: float
    #: Ends of the central interval.
    low: float
    high: float
    #: Probability that the first is the larger.
    above: float

    @property
    def different(self) -> bool:
        """Tell whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def threshold_difference(
    log10_threshold: FloatArray,
    first: FloatArray,
    second: FloatArray,
    confidence: float = 0.95,
) -> ThresholdDifference:
    """Compute the posterior of the difference of two thresholds that were measured apart.

    Parameters
    ----------
    log10_threshold : ndarray, shape (T,)
        Grid of both posteriors, evenly spaced.
    first, second : ndarray, shape (T,)
        Posterior mass at each value.
    confidence : float, optional
        Probability of the central interval, in (0, 1).

    Raises
    ------
    InputError
        The grid is not evenly spaced, or a posterior does not fit it.

    Notes
    -----
    The likelihood ratio of nested fits is not used: of staircases of 30 trials that do not differ
    it calls 12 to 20 % different, and this 0.3 %.

    Examples
    --------
    >>> grid = np.linspace(-3, 0, 121)
    >>> masses = [np.exp(-0.5 * ((grid - t) / 0.1) ** 2) for t in (-1.0, -2.0)]
    >>> difference = threshold_difference(grid, *masses)
    >>> round(difference.mean, 3), difference.different
    (1.0, True)
    """
    steps = np.diff(log10_threshold)
    if not np.allclose(steps, steps[0], rtol=1e-6):
        raise InputError(
            "the grid of thresholds is not evenly spaced; give one that is"
        )
    if not first.shape == second.shape == log10_threshold.shape:
        raise InputError(
            f"posteriors of shape {first.shape} and {second.shape} do not fit "
            f"{log10_threshold.shape} thresholds; give mass at each of them"
        )
    mass = np.convolve(first / first.sum(), (second / second.sum())[::-1])
    middle = len(log10_threshold) - 1
    differences = (np.arange(len(mass)) - middle) * steps[0]
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = quantiles(differences, mass, tails).tolist()
    above = float(mass[middle + 1 :].sum() + mass[middle] / 2)
    return ThresholdDifference(float(mass @ differences), low, high, above)


@dataclass(frozen=True)
class Ratio(Recorded):
    """A score as a fraction of the people's, with its interval."""

    value: float
    #: Ends of the interval; None where it is not bounded.
    low: float | None
    high: float | None


def fraction_of_people(
    score: Sample, people: Sample, confidence: float = 0.95
) -> Ratio | None:
    """Divide the score of an observer over variants by that of people; None of fewer than three.

    Parameters
    ----------
    score : Sample
        r_s of each variant; of one variant the interval is over people alone.
    people : Sample
        r_s of each person.
    confidence : float, optional
        Coverage of the interval, in (0, 1).

    Examples
    --------
    >>> people = Sample("people", ("a", "b", "c"), (0.8, 0.9, 0.85), "z")
    >>> ratio = fraction_of_people(Sample("variants", ("v",), (0.64,), "z"), people)
    >>> round(ratio.value, 2), round(ratio.low, 2), round(ratio.high, 2)
    (0.75, 0.68, 0.96)
    """
    if len(people.keys) < _FEWEST:
        return None
    top = score.mean()
    bottom = people.mean()
    if min(top, bottom) <= 0:
        return Ratio(top / bottom, None, None)
    top_low, top_high = score.interval(confidence) or (top, top)
    bottom_low, bottom_high = people.interval(confidence) or (bottom, bottom)
    ratio = top / bottom
    low = high = None
    if top_low > 0:
        low = ratio * np.exp(
            -np.hypot(np.log(top / top_low), np.log(bottom_high / bottom))
        )
    if bottom_low > 0:
        high = ratio * np.exp(
            np.hypot(np.log(top_high / top), np.log(bottom / bottom_low))
        )
    return Ratio(
        ratio,
        None if low is None else float(low),
        None if high is None else float(high),
    )
