"""Compute what an ideal observer does with a signal in Gaussian noise of known density.

Light is L0 (1 + c s + n): a signal s of contrast c and noise n. The density of noise is two-sided
and in deg²; white noise of standard deviation sd per pixel has sd² / ppd². All sums run over the
pixels that are drawn.

References
----------
Green & Swets (1966). Signal detection theory and psychophysics. Tanner & Birdsall (1958). Journal
of the Acoustical Society of America 30 (efficiency). Pelli (1985). Journal of the Optical Society
of America A 2 (uncertainty).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

#: Nodes of the integrals over a decision variable, and how far they reach, in its SD.
_NODES = 400
_REACH = 10.0
#: Factors on a mean d' of 1, between which the threshold of signals that overlap lies.
_FAINT = 1e-2
_STRONG = 1e4
#: Relative error of a threshold from integrals by sampling.
_SAMPLED = 1e-5


def proportion_correct(
    d_prime: ArrayLike, alternatives: int = 2, *, phase_known: bool = True
) -> FloatArray:
    """Convert d' to the proportion correct of a forced choice.

    Parameters
    ----------
    d_prime : array_like of float
        Distance of signal and noise, at least 0. With unknown phase, sqrt(E / N).
    alternatives : int, optional
        Intervals or places, of which one has the signal; or signals of equal energy without
        overlap, of which one is shown.
    phase_known : bool, optional
        Whether the observer knows the phase of the signal; else it compares energies.

    Returns
    -------
    ndarray of float64
        In [1 / alternatives, 1].

    Raises
    ------
    InputError
        d' is below 0 or there are fewer than 2 alternatives.

    Examples
    --------
    >>> print(proportion_correct([0, 1, 2]).round(4))
    [0.5    0.7602 0.9214]
    >>> print(proportion_correct([1, 2], 4, phase_known=False).round(4))
    [0.3765 0.656 ]
    """
    d = np.asarray(d_prime, float)
    if alternatives < 2 or not np.all(d >= 0):
        raise InputError(
            f"d' is {d!r:.60} with {alternatives} alternatives; give d' of at least 0 and at "
            "least 2 alternatives"
        )
    if not phase_known:
        k = np.arange(alternatives)
        weights = special.binom(alternatives - 1, k) * (-1.0) ** k / (k + 1)
        return np.asarray(np.exp(-(d[..., None] ** 2) * k / (2 * (k + 1))) @ weights)
    if alternatives == 2:
        return np.asarray(special.ndtr(d / math.sqrt(2)))
    nodes, weights = _normal_nodes()
    # The largest of m - 1 outputs to noise lies below that to the signal.
    return np.asarray(
        special.ndtr(d[..., None] + nodes) ** (alternatives - 1) @ weights
    )


@cache
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Compute quadrature nodes and weights for the standard normal density."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes = nodes * _REACH
    return nodes, weights * _REACH * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi)


def d_prime_at(
    proportion: float, alternatives: int = 2, *, phase_known: bool = True
) -> float:
    """Find the d' at which a forced choice has a given proportion correct.

    Raises
    ------
    InputError
        The proportion is not above chance and below 1.

    Examples
    --------
    >>> round(d_prime_at(0.75), 4), round(d_prime_at(0.625, 4), 4)
    (0.9539, 1.235)
    """
    if not 1 / alternatives < proportion < 1:
        raise InputError(
            f"proportion correct is {proportion:g} with {alternatives} alternatives; give one "
            f"above {1 / alternatives:.3g} and below 1"
        )

    from scipy import optimize

    def excess(d: float) -> float:
        correct = proportion_correct(d, alternatives, phase_known=phase_known)
        return float(correct) - proportion

    return float(optimize.brentq(excess, 0.0, 2 * _REACH, xtol=1e-13))


def uncertain_proportion_correct(
    d_prime: float, signals: int, *, phase_known: bool = True
) -> float:
    """Compute the proportion correct in two intervals where one of several signals is shown.

    The observer chooses the interval with the largest output of a matched filter, which is nearly
    as good as the ideal.

    Parameters
    ----------
    d_prime : float
        sqrt(E / N) of the signal that is shown.
    signals : int
        Number of signals without overlap, equally likely.
    phase_known : bool, optional
        Whether phases are known; else the largest energy decides.

    Examples
    --------
    >>> round(uncertain_proportion_correct(2.0, 8), 4)
    0.7839
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # Outputs lie within a reach of noise and signal; energies are not below 0.
    low = -_REACH if phase_known else 0.0
    half = (_REACH + d_prime - low) / 2
    t = low + half * (1 + nodes)
    if phase_known:
        density = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
        below_noise = special.ndtr(t)
        below_signal = special.ndtr(t - d_prime)
    else:
        from scipy import stats

        density = t * np.exp(-(t**2) / 2)
        below_noise = -np.expm1(-(t**2) / 2)
        below_signal = stats.ncx2.cdf(t**2, 2, d_prime**2)
    largest_noise = signals * below_noise ** (signals - 1) * density
    wins = 1 - below_signal * below_noise ** (signals - 1)
    return float((weights * half) @ (wins * largest_noise))


def yes_no_phase_unknown(d_prime: float) -> float:
    """Compute the best proportion correct of yes/no detection of a signal of unknown phase.

    Parameters
    ----------
    d_prime : float
        sqrt(E / N).

    Examples
    --------
    >>> round(yes_no_phase_unknown(2.0), 4)
    0.7434
    """
    from scipy import optimize, stats

    def error_rate(criterion: float) -> float:
        false_alarms = math.exp(-(criterion**2) / 2)
        hits = float(stats.ncx2.sf(criterion**2, 2, d_prime**2))
        return (1 - hits + false_alarms) / 2

    optimum = optimize.minimize_scalar(
        error_rate,
        bounds=(0, _REACH + d_prime),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1 - float(optimum.fun)


def signal_energy(signal: ArrayLike, ppd: float) -> float:
    """Compute the contrast energy of a signal, sum of squares over ppd², deg².

    Parameters
    ----------
    signal : array_like of float, shape (..., H, W)
        Contrast of each pixel: luminance over that of the background, less 1. The difference of two
        images that are to be told apart is a signal too.
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> import psyprobe as pp
    >>> gabor = pp.gabor(frequency=4, contrast=1, radius=0.5, luminance=100, ppd=60, size=224)
    >>> round(signal_energy(gabor.luminance / 100 - 1, 60), 6)
    0.392699
    """
    return float(np.sum(np.square(np.asarray(signal, float)))) / ppd**2


def ideal_d_prime(
    signal: ArrayLike,
    density: float | Callable[[FloatArray], FloatArray],
    ppd: float,
) -> float:
    """Compute d' of the ideal observer that knows the signal exactly, in noise of a density.

    Parameters
    ----------
    signal : array_like of float, shape (H, W)
        As for `signal_energy`.
    density : float or callable
        Density of the noise, deg²; a function of frequency (cpd, array) for coloured noise that is
        periodic over the image.
    ppd : float
        Pixels per degree.

    Raises
    ------
    InputError
        The density is not above 0 everywhere: where there is no noise, the ideal never errs.

    Examples
    --------
    >>> import psyprobe as pp
    >>> gabor = pp.gabor(frequency=4, contrast=0.01, radius=0.5, luminance=100, ppd=60, size=224)
    >>> round(ideal_d_prime(gabor.luminance / 100 - 1, (0.1 / 60) ** 2, 60), 5)
    3.75994
    """
    contrast = np.asarray(signal, float)
    height, width = contrast.shape
    frequency = np.hypot(
        np.fft.fftfreq(height, 1 / ppd)[:, None], np.fft.fftfreq(width, 1 / ppd)
    )
    level: Any = density(frequency) if callable(density) else density
    if not np.all(np.asarray(level) > 0):
        raise InputError(
            f"the density of the noise is {np.min(level):g} deg²; give one above 0 at every "
            "frequency, since the ideal observer never errs where there is no noise"
        )
    if not callable(density):
        return math.sqrt(signal_energy(contrast, ppd) / density)
    power = np.abs(np.fft.fft2(contrast)) ** 2
    return math.sqrt(float(np.sum(power / level)) / contrast.size / ppd**2)


def ideal_identification(signals: ArrayLike, density: float, ppd: float) -> float:
    """Compute how often the ideal observer names the one of several signals that is shown.

    Signals may overlap and differ in energy; each is shown as often as the others.

    Parameters
    ----------
    signals : array_like of float, shape (m, H, W)
        Contrast of each pixel, as for `signal_energy`.
    density : float
        Density of the white noise, deg².
    ppd : float
        Pixels per degree.

    Returns
    -------
    float
        Proportion correct, exact to 1e-5 for more than two signals.

    Examples
    --------
    >>> import psyprobe as pp
    >>> pair = pp.gabor(
    ...     frequency=4, contrast=0.0025369, radius=0.5, luminance=100, ppd=60, size=224,
    ...     orientation=[0, 90],
    ... )
    >>> round(ideal_identification(pair.luminance / 100 - 1, (0.1 / 60) ** 2, 60), 4)
    0.75
    """
    return _share_named(_products(signals) / (density * ppd**2))


def ideal_identification_contrast(
    signals: ArrayLike, density: float, ppd: float, proportion: float
) -> float:
    """Find the factor on several signals at which the ideal observer names a share of them.

    Parameters
    ----------
    signals, density, ppd
        As for `ideal_identification`.
    proportion : float
        The share, above that of guessing and below 1.

    Examples
    --------
    >>> import psyprobe as pp
    >>> pair = pp.gabor(
    ...     frequency=4, contrast=0.1, radius=0.5, luminance=100, ppd=60, size=224,
    ...     orientation=[0, 90],
    ... )
    >>> signals = pair.luminance / 10 - 10
    >>> round(ideal_identification_contrast(signals, (0.1 / 60) ** 2, 60, 0.75), 6)
    0.002537
    """
    products = _products(signals) / ppd**2
    unit = _naming_threshold(tuple(map(tuple, products.tolist())), proportion)
    return unit * math.sqrt(density)


@lru_cache(maxsize=16)
def _naming_threshold(
    products: tuple[tuple[float, ...], ...], proportion: float
) -> float:
    """Find the factor on signals at which a share is named in a density of 1."""
    energies = np.array(products)
    # Far below and far above a d' of 1 between signals.
    scale = 1 / math.sqrt(np.diag(energies).mean())
    return ideal_contrast(
        lambda contrast: _share_named(energies * contrast**2),
        proportion,
        low=_FAINT * scale,
        high=_STRONG * scale,
        tolerance=1e-12 if len(products) == 2 else _SAMPLED,
    )


def _products(signals: ArrayLike) -> FloatArray:
    """Compute the inner products of signals, (m, m)."""
    images = np.asarray(signals, float)
    rows = images.reshape(len(images), -1)
    return np.asarray(rows @ rows.T)


def _share_named(products: FloatArray) -> float:
    """Compute the proportion correct from inner products over the variance of a pixel."""
    correct = []
    for j in range(len(products)):
        others = [i for i in range(len(products)) if i != j]
        # Differences of log likelihoods when signal j is shown.
        covariance = (
            products[j, j]
            - products[j, others][:, None]
            - products[j, others]
            + products[np.ix_(others, others)]
        )
        means = np.diag(covariance) / 2
        if len(others) == 1:
            share = special.ndtr(math.sqrt(covariance[0, 0]) / 2)
        else:
            from scipy import stats

            share = stats.multivariate_normal.cdf(
                means,
                cov=covariance,
                allow_singular=True,
                abseps=1e-5,
                maxpts=100_000,
                rng=np.random.default_rng(0),
            )
        correct.append(share)
    return float(np.mean(correct))


def ideal_contrast(
    correct: Callable[[float], float],
    proportion: float,
    *,
    low: float,
    high: float,
    tolerance: float = 1e-12,
) -> float:
    """Find the contrast at which an ideal observer has a proportion correct.

    Parameters
    ----------
    correct : callable
        Proportion correct at a contrast, growing.
    proportion : float
        The proportion wanted.
    low, high : float
        Contrasts between which it lies, above 0.
    tolerance : float, optional
        Largest relative error; that of an integral by sampling need not be below its own.

    Raises
    ------
    InputError
        The proportion is not reached between them.

    Examples
    --------
    >>> energy = 0.3926990817
    >>> density = (0.1 / 60) ** 2
    >>> def correct(contrast):
    ...     return float(proportion_correct(contrast * (energy / density) ** 0.5))
    >>> round(ideal_contrast(correct, 0.75, low=1e-5, high=1), 7)
    0.0025369
    """
    ends = (math.log(low), math.log(high))
    excess = [correct(math.exp(end)) - proportion for end in ends]
    if not excess[0] < 0 < excess[1]:
        raise InputError(
            f"the ideal observer is right in {excess[0] + proportion:.3g} at contrast {low:g} and "
            f"{excess[1] + proportion:.3g} at {high:g}; give contrasts between which lies "
            f"{proportion:g}"
        )
    from scipy import optimize

    log_contrast = optimize.brentq(
        lambda log_contrast: correct(math.exp(log_contrast)) - proportion,
        *ends,
        xtol=tolerance,
    )
    return math.exp(log_contrast)
