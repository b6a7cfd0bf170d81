"""Compare two observers on the same units: difference, interval, tests, power, equivalence.

References
----------
Lehmann, Romano (2005). Testing statistical hypotheses, 3rd ed.: sign flips (section 5.12), and two
one-sided tests of equivalence (section 3.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.sample import Sample, cluster_means
from psyprobe.analysis.intervals import (
    check_confidence,
    fisher,
    mean_and_error,
    student_quantile,
)
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

#: Most units of which all sign flips are counted; of more some are drawn.
_ALL_FLIPS = 12
_FLIPS = 100_000
_FLIPS_AT_ONCE = 10_000


@dataclass(frozen=True)
class PairedDifference(Recorded):
    """The mean difference of two observers over the same units."""

    #: First less second, on the scale of the samples.
    mean: float
    #: Ends of its interval; None where all units differ alike, or there is one.
    low: float | None
    high: float | None
    #: Two-sided, of Student's t and of sign flips: how often chance alone differs as much.
    p: float | None
    p_flips: float | None
    #: Standard deviation of the differences.
    sd: float
    #: Correlation of both observers over the units; None where one of them is the same on all.
    correlation: float | None
    units: int
    confidence: float

    @property
    def error(self) -> float | None:
        """Compute the standard error of the mean difference; None without one."""
        if self.low is None:
            return None
        return (self.mean - self.low) / student_quantile(self.units, self.confidence)


def compare_samples(
    first: Sample, second: Sample, confidence: float = 0.95
) -> PairedDifference:
    """Compare two observers' scores on the same units (variants, items), matched by name.

    Of clustered values, such as items of images, those that either lacks are left out.

    Raises
    ------
    InputError
        The units are not the same, or are of another kind.

    Examples
    --------
    >>> first = Sample("variants", ("a", "b", "c"), (3.0, 5.0, 4.0))
    >>> second = Sample("variants", ("b", "c", "a"), (4.0, 2.0, 1.0))
    >>> compare_samples(first, second).mean
    1.6666666666666667
    """
    if (first.population, first.scale) != (second.population, second.scale):
        raise InputError(
            f"one score is over {first.population} ({first.scale}) and the other over "
            f"{second.population} ({second.scale}); compare scores of one kind"
        )
    places = {key: place for place, key in enumerate(second.keys)}
    shared = [place for place, key in enumerate(first.keys) if key in places]
    if not first.clusters and not len(shared) == len(first.keys) == len(second.keys):
        unpaired = sorted(places.keys() ^ set(first.keys))
        raise InputError(
            f"the {first.population} are not the same, {unpaired[0]!r} is in one score alone: no "
            "paired comparison; run both on the same"
        )
    if not shared:
        raise InputError(
            f"the {first.population} have nothing in common; run both on the same"
        )
    order = [places[first.keys[place]] for place in shared]
    clusters = [first.clusters[place] for place in shared] if first.clusters else []
    values, weights = cluster_means(first.transformed()[shared], clusters)
    baseline, _ = cluster_means(second.transformed()[order], clusters)
    return paired_difference(values, baseline, confidence, weights=weights)


def paired_difference(
    first: FloatArray,
    second: FloatArray,
    confidence: float = 0.95,
    *,
    weights: FloatArray | None = None,
) -> PairedDifference:
    """Compare two observers' scores on the same units in the same order, with an interval.

    Parameters
    ----------
    first, second : ndarray, shape (V,)
        The score of each unit, on a scale on which differences mean the same everywhere.
    confidence : float, optional
        Coverage of the interval, in (0, 1).
    weights : ndarray, shape (V,), optional
        Of each unit: its number of questions, where units are clusters of them.

    Examples
    --------
    >>> difference = paired_difference(np.array([3.0, 5.0, 4.0]), np.array([1.0, 4.0, 2.0]))
    >>> round(difference.mean, 3), round(difference.p, 3), difference.p_flips
    (1.667, 0.038, 0.25)
    """
    check_confidence(confidence)
    differences = np.asarray(first, float) - np.asarray(second, float)
    mean, error = mean_and_error(differences, weights)
    count = len(differences)
    constant = count < 2 or np.ptp(first) == 0 or np.ptp(second) == 0
    correlation = None if constant else float(np.corrcoef(first, second)[0, 1])
    sd = float(differences.std(ddof=1)) if count > 1 else 0.0
    low = high = p = p_flips = None
    if error is not None:
        reach = student_quantile(count, confidence) * error
        low = mean - reach
        high = mean + reach
        p = t_probability(mean / error, count)
        p_flips = sign_flip_probability(
            differences if weights is None else differences * weights
        )
    return PairedDifference(
        mean, low, high, p, p_flips, sd, correlation, count, confidence
    )


def t_probability(t: float, units: float) -> float:
    """Compute the two-sided p-value of Student's t of a mean of so many units."""
    from scipy.special import stdtr

    return float(2 * stdtr(units - 1, -abs(t)))


def sign_flip_probability(differences: FloatArray, seed: int = 0) -> float:
    """Compute the p-value of a mean difference by flipping the signs of differences.

    All flips of up to twelve differences are counted, and 100,000 drawn ones of more.

    Examples
    --------
    >>> sign_flip_probability(np.array([1.0, 2.0, 3.0, 4.0]))
    0.125
    """
    count = len(differences)
    total = abs(float(differences.sum())) * (1 - 1e-12)
    if count <= _ALL_FLIPS:
        return float((np.abs(all_signs(count) @ differences) >= total).mean())
    rng = np.random.default_rng(seed)
    extreme = 1
    for _ in range(_FLIPS // _FLIPS_AT_ONCE):
        signs = rng.integers(0, 2, (_FLIPS_AT_ONCE, count), dtype=np.int8) * 2.0 - 1.0
        extreme += int((np.abs(signs @ differences) >= total).sum())
    # What was observed is one of the flips.
    return extreme / (_FLIPS + 1)


@lru_cache(maxsize=16)
def all_signs(count: int) -> FloatArray:
    """Build all combinations of signs, shape (2^count, count)."""
    bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    return bits * 2.0 - 1.0


@lru_cache(maxsize=256)
def smallest_difference(units: int, alpha: float = 0.05, power: float = 0.8) -> float:
    """Compute the smallest mean difference that so many units can find, in SDs.

    Parameters
    ----------
    units : int
        Number of paired units, at least two.
    alpha : float, optional
        Level of the two-sided test; divided by the number of comparisons, that of a family.
    power : float, optional
        Probability to find it.

    Examples
    --------
    >>> round(smallest_difference(8), 2), round(smallest_difference(8, 0.05 / 9), 2)
    (1.16, 1.77)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr
    from scipy.stats import chi

    if units < 2:
        raise InputError(
            f"{units} units find no difference; take at least 2, usual is 8"
        )
    # Over the standard deviations that may be found: scipy's noncentral t fails where effects are
    # large.
    degrees = units - 1
    found_sd = chi(degrees, scale=1 / np.sqrt(degrees))
    low = found_sd.ppf(1e-14)
    high = found_sd.isf(1e-14)
    nodes, node_weights = np.polynomial.legendre.leggauss(200)
    sd = low + (high - low) * (nodes + 1) / 2
    density = found_sd.pdf(sd) * node_weights * (high - low) / 2
    threshold = student_quantile(units, 1 - alpha) * sd

    def missing_power(effect: float) -> float:
        shift = effect * np.sqrt(units)
        tails = ndtr(shift - threshold) + ndtr(-shift - threshold)
        return float(density @ tails) - power

    upper = 1.0
    while missing_power(upper) < 0:
        upper *= 2
    return float(brentq(missing_power, 1e-6, upper, xtol=1e-10))


#: Standard deviation of differences in z between variants, where no pilot tells another: of
#: deterministic networks (measured: 0.004 to 0.013), and of observers that answer in words.
_PILOT_SD = {False: 0.02, True: 0.2}


def describe_power(units: int, comparisons: int, answers: bool) -> str:
    """Describe before a run what difference so many variants can find.

    Parameters
    ----------
    units : int
        Number of variants.
    comparisons : int
        Number of comparisons in the family.
    answers : bool
        Whether the observer answers in words.

    Examples
    --------
    >>> describe_power(8, 9, False)[:42]
    '8 variants find a difference of 0.035 in z'
    """
    if units < 2:
        return "one variant tells no difference; add variants"
    spread = _PILOT_SD[answers]
    smallest = smallest_difference(units, 0.05 / comparisons) * spread
    family = (
        "one comparison"
        if comparisons == 1
        else f"{comparisons} comparisons, Holm's first step"
    )
    return (
        f"{units} variants find a difference of {smallest:.3f} in z with a probability of 80 % "
        f"({family}), if differences scatter by {spread:g} from variant to variant"
    )


def margin_on_z(margin: float, r: float) -> float:
    """Convert a margin in r, at a correlation, to one in Fisher's z.

    It is margin / (1 - r^2), but never more than the way down to |r| - margin: near 1 the slope is
    so steep that it would reach far beyond.

    Examples
    --------
    >>> round(margin_on_z(0.05, 0.0), 4), round(margin_on_z(0.05, 0.99), 4)
    (0.05, 0.9086)
    """
    slope = margin / (1 - min(r * r, 1 - 1e-12))
    way_down = float(fisher(abs(r)) - fisher(abs(r) - margin))
    return slope if abs(r) < margin else min(slope, way_down)


def equivalence_probability(difference: PairedDifference, margin: float) -> float:
    """Compute the larger p of two one-sided tests that a difference lies within a margin.

    Where it is below 0.05, both observers are equivalent to within the margin.

    Examples
    --------
    >>> alike = paired_difference(np.array([1.0, 2.0, 3.1]), np.array([1.0, 2.1, 3.0]))
    >>> equivalence_probability(alike, 1.0) < 0.01
    True
    """
    from scipy.special import stdtr

    distance = margin - abs(difference.mean)
    if difference.error is None:
        return 0.0 if distance > 0 else 1.0
    return float(stdtr(difference.units - 1, -distance / difference.error))
