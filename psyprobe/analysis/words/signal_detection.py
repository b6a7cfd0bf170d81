"""Compute sensitivity and criterion from answers to stimuli and to blanks.

References
----------
Green & Swets (1966). Signal detection theory and psychophysics. Hautus (1995). Corrections for
extreme proportions and their biasing effects on estimated values of d'. Behavior Research Methods
27 (log-linear correction). Macmillan & Creelman (2005). Detection theory: a user's guide, chapters
1, 2 and 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

if TYPE_CHECKING:
    from psyprobe.analysis.words.fit import ChatCounts


@dataclass(frozen=True)
class Detection:
    """Signal detection measures of a batch; all arrays have its shape."""

    #: Rates with the log-linear correction, in (0, 1).
    hit_rate: FloatArray
    false_alarm_rate: FloatArray
    #: Distance of the two distributions in standard deviations.
    d_prime: FloatArray
    #: Distance of the criterion from the midpoint, in standard deviations; above 0 is a bias to say
    #: no.
    criterion: FloatArray
    #: Natural logarithm of the likelihood ratio at the criterion.
    log_beta: FloatArray


def log_linear_rate(yes: ArrayLike, trials: ArrayLike) -> FloatArray:
    """Estimate the rate of yes, kept off 0 and 1: (yes + 0.5) / (trials + 1).

    Parameters
    ----------
    yes, trials : array_like of float
        Counts, which broadcast; fractions are taken.

    Returns
    -------
    ndarray of float64
        In (0, 1).

    Raises
    ------
    InputError
        If a count is negative or not finite, there are no trials, or more said yes than were asked.

    References
    ----------
    Hautus (1995).

    Examples
    --------
    >>> print(log_linear_rate([0, 5, 10], 10).round(4))
    [0.0455 0.5    0.9545]
    """
    k, n = _broadcast(yes=yes, trials=trials)
    if not (np.all(np.isfinite(k)) and np.all(np.isfinite(n))):
        raise InputError(
            "a count is not a finite number; leave out conditions that were not tested"
        )
    if k.size and (k.min() < 0 or n.min() <= 0):
        raise InputError(
            f"yes from {k.min():g} and trials from {n.min():g}: yes starts at 0, and trials above 0"
        )
    if np.any(k > n):
        at = int(np.argmax(k - n))
        raise InputError(
            f"{k.flat[at]:g} yes of {n.flat[at]:g} trials: give the number that said yes and "
            "the number asked"
        )
    return (k + 0.5) / (n + 1)


def _broadcast(**values: ArrayLike) -> tuple[FloatArray, ...]:
    """Broadcast named arrays to one shape, naming them in the error if they do not fit."""
    arrays = [np.asarray(array, float) for array in values.values()]
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = zip(values, arrays, strict=True)
        listed = " and ".join(f"{name} of shape {a.shape}" for name, a in shapes)
        raise InputError(f"{listed} do not broadcast") from None


def detect(
    hits: ArrayLike,
    signal_trials: ArrayLike,
    false_alarms: ArrayLike,
    noise_trials: ArrayLike,
) -> Detection:
    """Compute d' and criterion from counts of hits and false alarms, log-linearly corrected.

    Parameters
    ----------
    hits, signal_trials : array_like of float
        Yes to stimuli, and how many there were. All four broadcast, so that one block of catch
        trials serves all frequencies.
    false_alarms, noise_trials : array_like of float
        Yes to blanks, and how many there were.

    Returns
    -------
    Detection
        d' = z(H) - z(F), c = -(z(H) + z(F)) / 2 and ln beta = c d'.

    Raises
    ------
    InputError
        As for `log_linear_rate`.

    Notes
    -----
    The correction pulls d' towards 0: with n trials each it can't exceed 2 z((n + 0.5) / (n + 1)).

    Examples
    --------
    >>> found = detect(9, 10, 1, 10)
    >>> round(float(found.d_prime), 4), round(abs(float(found.criterion)), 4)
    (2.1936, 0.0)
    """
    from scipy.special import ndtri

    hit_rate = log_linear_rate(hits, signal_trials)
    false_alarm_rate = log_linear_rate(false_alarms, noise_trials)
    hit_rate, false_alarm_rate = _broadcast(stimuli=hit_rate, blanks=false_alarm_rate)
    z_hit = ndtri(hit_rate)
    z_false_alarm = ndtri(false_alarm_rate)
    d_prime = z_hit - z_false_alarm
    criterion = -0.5 * (z_hit + z_false_alarm)
    return Detection(
        hit_rate, false_alarm_rate, d_prime, criterion, np.asarray(criterion * d_prime)
    )


def two_interval_d_prime(proportion_correct: ArrayLike) -> FloatArray:
    """Compute d' from the proportion correct of a two-alternative forced choice without bias.

    Parameters
    ----------
    proportion_correct : array_like of float
        In (0, 1); correct counts by `log_linear_rate` first.

    Returns
    -------
    ndarray of float64
        sqrt(2) z(proportion): 1 at 0.7602; below 0 where answers are worse than chance.

    Raises
    ------
    InputError
        If a proportion is not in (0, 1).

    Examples
    --------
    >>> print(two_interval_d_prime([0.5, 0.75]).round(4))
    [0.     0.9539]
    """
    from scipy.special import ndtri

    p = np.asarray(proportion_correct, float)
    bad = p[~((p > 0) & (p < 1))]
    if bad.size:
        raise InputError(
            f"proportion correct {bad[0]:g} has no finite d'; give one in (0, 1), as "
            "log_linear_rate makes it"
        )
    return np.asarray(np.sqrt(2) * ndtri(p))


def d_prime_threshold(
    contrast: ArrayLike, d_prime: ArrayLike, *, criterion: float = 1.0
) -> FloatArray:
    """Interpolate the contrast at which d' first reaches a criterion.

    Parameters
    ----------
    contrast : array_like of float, shape (L,) or (..., L)
        Linear contrast, above 0 and rising along the last axis.
    d_prime : array_like of float, shape (..., L)
        At each of them.
    criterion : float, optional
        d' that counts as threshold.

    Returns
    -------
    ndarray of float64, shape (...,)
        Linear contrast, by straight lines of the best rising d' over log contrast; nan where d'
        never gets there or is there from the lowest contrast on: the threshold then lies outside of
        what was tested.

    Raises
    ------
    InputError
        If contrasts are not above 0 and rising, or a value is not finite.

    Notes
    -----
    d' is first replaced by its rising fit of least squares, so that one lucky level does not make a
    threshold.

    Examples
    --------
    >>> print(d_prime_threshold([0.001, 0.01, 0.1], [0.0, 0.5, 1.5]).round(4))
    0.0316
    """
    c, d = _broadcast(contrast=contrast, d_prime=d_prime)
    if not (np.all(np.isfinite(c)) and np.all(np.isfinite(d))):
        raise InputError(
            "a contrast or a d' is not a finite number; leave such levels out"
        )
    if c.ndim == 0 or not (np.all(c > 0) and np.all(np.diff(c, axis=-1) > 0)):
        raise InputError(
            "contrasts are not above 0 and rising along the last axis; sort the levels, and "
            "leave blanks out"
        )
    from psyprobe.analysis.psychometric.counts import pick
    from psyprobe.analysis.psychometric.isotonic import rising_means

    x = np.log10(c)
    rising = rising_means(d, np.ones(d.shape))
    above = rising >= criterion
    first = above.argmax(axis=-1)
    if c.shape[-1] < 2:
        return np.full(c.shape[:-1], np.nan)
    inside = first > 0
    upper = np.maximum(first, 1)
    x0 = pick(x, upper - 1)
    x1 = pick(x, upper)
    d0 = pick(rising, upper - 1)
    d1 = pick(rising, upper)
    share = np.where(inside, (criterion - d0) / np.where(d1 > d0, d1 - d0, 1.0), 0.0)
    return np.where(inside, 10.0 ** (x0 + share * (x1 - x0)), np.nan)


def dprime_thresholds(counts: ChatCounts) -> FloatArray:
    """Interpolate the log10 contrast at which d' rises to 1, for each prompt and level.

    Parameters
    ----------
    counts : ChatCounts
        With catch trials, whose yes are the false alarms.

    Returns
    -------
    ndarray of float64, shape (P, F)
        NaN where there are no catch trials, or d' is not on both sides of 1. d' is made to rise
        first (isotonic regression), and rates are (yes + 0.5) / (trials + 1).
    """
    out = np.full(counts.trials.shape[:2], np.nan)
    for p, f in np.ndindex(*out.shape):
        if counts.catch_trials[p] == 0:
            continue
        tested = counts.trials[p, f] > 0
        # Without dither, two levels may be delivered as one contrast.
        contrast, first = np.unique(counts.contrast[p, f, tested], return_index=True)
        yes = counts.yes[p, f, tested][first]
        trials = counts.trials[p, f, tested][first]
        if len(contrast) > 1:
            detection = detect(yes, trials, counts.catch_yes[p], counts.catch_trials[p])
            out[p, f] = np.log10(d_prime_threshold(contrast, detection.d_prime))
    return out
