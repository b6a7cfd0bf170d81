"""The likelihood of counted answers under psychometric functions, with its derivatives, and prior
densities.

References
----------
Schütt, Harmeling, Macke, Wichmann (2016), Vision Research 122, eq. 5 (beta-binomial with
overdispersion eta) and section 2.3 (the shapes of the weak priors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy.special import betaln, digamma, polygamma

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Groups, Point
from psyprobe.analysis.psychometric.sigmoids import Sigmoid, log_sum
from psyprobe.errors import unknown_name

#: Log density of an array of values, elementwise, up to a constant; minus infinity where a value is
#: impossible.
LogPrior: TypeAlias = Callable[[FloatArray], FloatArray]
_CurvePrior: TypeAlias = Callable[[FloatArray, Counts], FloatArray]

PARAMETERS = ("threshold", "width", "guess", "lapse", "eta")
_STEP = 1e-5


@dataclass(frozen=True)
class LogPriors:
    """Log prior densities by parameter; a parameter without one has a flat prior."""

    #: Of values in physical units and the counts they belong to.
    by_name: Mapping[str, _CurvePrior] = field(default_factory=dict)

    def log_density(self, name: str, value: FloatArray, counts: Counts) -> FloatArray:
        """Log density of one parameter."""
        return (
            self.by_name[name](value, counts) if name in self.by_name else np.zeros(np.shape(value))
        )

    def of_curves(
        self, threshold: FloatArray, slope: FloatArray, counts: Counts
    ) -> tuple[FloatArray, FloatArray]:
        """Log densities of threshold and of width."""
        threshold, width = _physical(counts, threshold, slope)
        return self.log_density("threshold", threshold, counts), self.log_density(
            "width", width, counts
        )

    def derivatives(
        self, name: str, value: FloatArray, counts: Counts
    ) -> tuple[FloatArray, FloatArray]:
        """First and second derivative of the log density, by central differences; 0 where it has
        none.
        """
        with np.errstate(invalid="ignore"):
            below, at, above = (
                self.log_density(name, value + d, counts) for d in (-_STEP, 0.0, _STEP)
            )
            first = (above - below) / (2 * _STEP)
            second = (above - 2 * at + below) / _STEP**2
        sound = np.isfinite(first) & np.isfinite(second)
        return np.where(sound, first, 0.0), np.where(sound, second, 0.0)


def stated_priors(
    given: Mapping[str, LogPrior | None] | None, equal_rates: bool = False
) -> LogPriors:
    """The weak priors of Schütt et al., with those that are given in their place.

    Parameters
    ----------
    given : mapping of str to callable, or None
        By "threshold" (log10 contrast), "width" (log10 units), "guess", "lapse", "eta": a function
        from values to log densities; None makes a prior flat.
    equal_rates : bool, optional
        Whether guess and lapse are one rate, which then has the prior of lapse only.

    Returns
    -------
    LogPriors
        Threshold: even over the tested range, and falling as a raised cosine to 0 half a range
        outside. Width: even from twice the smallest distance of two levels to the tested range,
        falling to 0 at that distance and at three ranges. Guess, lapse and eta: beta (1, 10).
    """
    priors: dict[str, _CurvePrior] = dict.fromkeys(PARAMETERS, _beta_1_10) | {
        "threshold": _threshold,
        "width": _width,
    }
    for name, prior in (given or {}).items():
        if name not in PARAMETERS:
            raise unknown_name("parameter of a psychometric function", name, PARAMETERS)
        if prior is None:
            del priors[name]
        else:
            priors[name] = _by_value(prior)
    if equal_rates:
        priors.pop("guess", None)
    return LogPriors(priors)


def _by_value(density: LogPrior) -> _CurvePrior:
    return lambda value, _counts: np.asarray(density(value), dtype=np.float64)


def _along(values: FloatArray, like: FloatArray) -> FloatArray:
    return values.reshape(values.shape + (1,) * (like.ndim - values.ndim))


def _log(density: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(density))


def _threshold(value: FloatArray, counts: Counts) -> FloatArray:
    outside = np.abs(value - _along(counts.centre, value)) / _along(counts.scale, value) - 0.5
    return _log(
        np.where(outside < 0.5, 0.5 * (1 + np.cos(2 * np.pi * np.clip(outside, 0.0, 0.5))), 0.0)
    )


def _width(value: FloatArray, counts: Counts) -> FloatArray:
    w = value / _along(counts.scale, value)
    spacing = np.maximum(_along(counts.spacing, value), 1e-6)
    rise = 0.5 * (1 - np.cos(np.pi * np.clip((w - spacing) / spacing, 0.0, 1.0)))
    fall = 0.5 * (1 + np.cos(0.5 * np.pi * np.clip(w - 1, 0.0, 2.0)))
    return _log(rise * fall)


def _beta_1_10(value: FloatArray, _counts: Counts) -> FloatArray:
    return _log(np.clip(1 - value, 0.0, None)) * 9


#: Below this overdispersion the beta-binomial is the binomial to more digits than are computed.
_BINOMIAL = 1e-4
#: Logarithm of the largest ratio whose square does not overflow.
_LARGEST = 40.0


@dataclass(frozen=True)
class Model:
    """What is fitted: a family of sigmoids, prior densities, and whether the lapse rate is the
    guess rate.
    """

    family: Sigmoid
    priors: LogPriors
    equal_rates: bool = False


@dataclass(frozen=True)
class Derivatives:
    """Gradient of the log-likelihood and two versions of minus its Hessian: exact, and never
    indefinite.
    """

    #: Gradient by threshold and slope, shape (2, P, M).
    curve: FloatArray
    #: Gradient by guess and lapse, shape (2, P).
    rates: FloatArray
    #: Curvature of each curve by threshold twice, by both, and by slope twice, in two versions,
    #: shape (3, 2, P, M).
    blocks: FloatArray
    #: By threshold and slope, and by guess and lapse, in two versions, shape (2, 2, 2, P, M).
    across: FloatArray
    #: By guess twice, by both, and by lapse twice, in two versions, shape (3, 2, P).
    corner: FloatArray

    def with_equal_rates(self) -> Derivatives:
        """Those by a single rate that guess and lapse both are; it stands in the place of guess,
        and lapse rests.
        """
        rates, across, corner = (
            np.zeros_like(each) for each in (self.rates, self.across, self.corner)
        )
        rates[0], across[:, 0] = self.rates.sum(axis=0), self.across.sum(axis=1)
        corner[0] = self.corner[0] + 2 * self.corner[1] + self.corner[2]
        corner[2] = 1.0
        return Derivatives(self.curve, rates, self.blocks, across, corner)


def level_log_likelihood(
    yes: FloatArray, trials: FloatArray, log_p: FloatArray, log_q: FloatArray, eta: FloatArray
) -> FloatArray:
    """log-likelihood of each level without the binomial coefficient; `eta` broadcasts and 0 is
    binomial.
    """
    no = trials - yes
    with np.errstate(invalid="ignore"):
        binomial = np.where(yes > 0, yes * log_p, 0.0) + np.where(no > 0, no * log_q, 0.0)
    if not (eta >= _BINOMIAL).any():
        return np.asarray(binomial)
    nu = 1 / np.maximum(eta, _BINOMIAL) ** 2 - 1
    a, b = (np.maximum(np.exp(log_rate) * nu, 1e-12) for log_rate in (log_p, log_q))
    return np.where(eta >= _BINOMIAL, betaln(yes + a, no + b) - betaln(a, b), binomial)


def _pulls(
    yes: FloatArray, trials: FloatArray, log_p: FloatArray, log_q: FloatArray, eta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(a, b) and (aa, bb) such that dl/dp = a/p - b/q and -d²l/dp² = aa/p² + bb/q²; of a binomial
    one array, twice.
    """
    counted = np.array([yes, trials - yes])
    if not (eta >= _BINOMIAL).any():
        return counted, counted
    nu = 1 / np.maximum(eta, _BINOMIAL) ** 2 - 1
    rate = np.maximum(np.exp(np.array([log_p, log_q])) * nu, 1e-12)
    first = np.where(eta >= _BINOMIAL, rate * (digamma(counted + rate) - digamma(rate)), counted)
    second = np.where(
        eta >= _BINOMIAL, rate**2 * (polygamma(1, rate) - polygamma(1, counted + rate)), counted
    )
    return first, second


def log_shape(
    family: Sigmoid, x: FloatArray, threshold: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """z, log F and log (1 - F) at each level."""
    z = family.span * np.exp(slope)[..., None] * (x - threshold[..., None]) + family.median
    z = np.minimum(np.maximum(z, -700.0), 700.0)
    return z, family.log_lower(z), family.log_upper(z)


def _log_mixture(
    log_lower: FloatArray, log_upper: FloatArray, guess: FloatArray, lapse: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of p and of 1 - p, in arrays of their own: levels are written to."""
    if not (guess.any() or lapse.any()):
        return log_lower.copy(), log_upper.copy()
    share = _log_share(guess, lapse)
    with np.errstate(divide="ignore"):
        return log_sum(np.log(guess), share + log_lower), log_sum(np.log(lapse), share + log_upper)


def _log_share(guess: FloatArray, lapse: FloatArray) -> FloatArray:
    """Logarithm of the sigmoid's share in p."""
    return np.asarray(np.log(np.maximum(1 - guess - lapse, 1e-12)))


@dataclass(frozen=True)
class Levels(Groups):
    """What a point says of each level, shapes (P, M, L)."""

    #: Place on the sigmoid.
    z: FloatArray
    #: Logarithms of F(z) and 1 - F(z), and of p and 1 - p, which have the rates in them.
    log_lower: FloatArray
    log_upper: FloatArray
    log_p: FloatArray
    log_q: FloatArray


def levels_at(family: Sigmoid, counts: Counts, point: Point) -> Levels:
    """Of groups at a point, from which both the objective and its derivatives come."""
    z, log_lower, log_upper = log_shape(family, counts.x, point.threshold, point.slope)
    mixed = _log_mixture(
        log_lower, log_upper, point.guess[:, None, None], point.lapse[:, None, None]
    )
    return Levels(z, log_lower, log_upper, *mixed)


def predicted(family: Sigmoid, counts: Counts, point: Point) -> FloatArray:
    """P at each level."""
    return np.exp(levels_at(family, counts, point).log_p)


def curve_log_likelihood(counts: Counts, point: Point, levels: Levels) -> FloatArray:
    """log-likelihood of each curve, catch trials left out, shape (P, M)."""
    of_levels = level_log_likelihood(
        counts.yes, counts.trials, levels.log_p, levels.log_q, point.eta[:, None, None]
    )
    return np.asarray(of_levels.sum(axis=-1))


def catch_log_likelihood(counts: Counts, guess: FloatArray, eta: FloatArray) -> FloatArray:
    """log-likelihood of the answers to blanks, shape (P,)."""
    if not counts.catch_trials.any():
        return np.zeros(guess.shape)
    with np.errstate(divide="ignore"):
        return level_log_likelihood(
            counts.catch_yes, counts.catch_trials, np.log(guess), np.log1p(-guess), eta
        )


def _physical(
    counts: Counts, threshold: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Thresholds in log10 contrast and widths in log10 units."""
    centre = _along(counts.centre, threshold)
    scale = _along(counts.scale, threshold)
    return centre + scale * threshold, scale * np.exp(-slope)


def objective(model: Model, counts: Counts, point: Point, levels: Levels) -> FloatArray:
    """log-likelihood plus log prior density of each group, shape (P,)."""
    value = curve_log_likelihood(counts, point, levels).sum(axis=-1)
    value = value + catch_log_likelihood(counts, point.guess, point.eta)
    if not model.priors.by_name:
        return np.asarray(value)
    of_threshold, of_width = model.priors.of_curves(point.threshold, point.slope, counts)
    rates = [
        model.priors.log_density(name, getattr(point, name), counts) for name in PARAMETERS[2:]
    ]
    return np.asarray(value + ((of_threshold + of_width).sum(axis=-1) + sum(rates)))


def differentiate(model: Model, counts: Counts, point: Point, levels: Levels) -> Derivatives:
    """Derivatives of `objective` by threshold, slope, guess and lapse."""
    family = model.family
    z = levels.z
    log_p = levels.log_p
    log_q = levels.log_q
    share = _log_share(point.guess, point.lapse)[:, None, None]
    first, second = _pulls(counts.yes, counts.trials, log_p, log_q, point.eta[:, None, None])

    # The first axis: of yes and of no; the second: by z, by guess and by lapse. A call for each
    # would cost a small fit more than all else here, and large ones wait for memory.
    over = np.empty((2, 3, *z.shape))
    over[:, 0] = share + family.log_density(z)
    over[:, 1] = levels.log_upper
    over[:, 2] = levels.log_lower
    over -= np.array([log_p, log_q])[:, None]
    np.exp(np.minimum(over, _LARGEST, out=over), out=over)
    pulls = first[:, None] * over
    bent = pulls if second is first else second[:, None] * over
    pull = pulls[0] - pulls[1]
    bend = pull[0] * np.exp(-share)  # of guess or lapse with z: how p's slope shrinks with them
    # The second axis: exact, and never indefinite.
    bends = np.empty((3, 2, *z.shape))
    np.multiply(bent[0, 0], over[0], out=bends[:, 1])
    bends[:, 1] += bent[1, 0] * over[1]
    np.negative(bends[2, 1], out=bends[2, 1])
    bends[0, 0] = bends[0, 1] - pull[0] * family.log_density_slope(z)
    np.add(bends[1:, 1], bend, out=bends[1:, 0])
    kappa = family.span * np.exp(point.slope)
    away = z - family.median
    # Sums over levels, of which there are few: `numpy.sum` takes twice as long there.
    even = np.ones(z.shape[-1])
    pulled = pull[0] @ even
    summed = bends @ even
    leaned = np.vecdot(bends, away)
    curve, blocks, across = (np.empty((*size, *kappa.shape)) for size in ((2,), (3, 2), (2, 2, 2)))
    curve[0], curve[1] = -kappa * pulled, np.vecdot(pull[0], away)
    blocks[0], blocks[1], blocks[2] = (
        kappa**2 * summed[0],
        -kappa * leaned[0],
        np.vecdot(bends[0], away**2),
    )
    blocks[1, 0] += kappa * pulled
    blocks[2, 0] -= curve[1]
    across[0] = -kappa * summed[1:]
    across[1] = leaned[1:]
    rates = (pull[1:] @ even).sum(axis=-1)
    corner = np.empty((3, 2, len(z)))
    np.negative(rates[1], out=rates[1])
    corner[::2] = np.vecdot(bent[:, 1:], over[:, 1:]).sum(axis=(0, -1))[:, None]
    corner[1] = -np.vecdot(bent[:, 1], over[:, 2]).sum(axis=(0, -1))
    found = Derivatives(curve, rates, blocks, across, corner)
    _add_catch_trials(counts, point, found)
    if model.priors.by_name:
        _add_priors(counts, point, model.priors, found)
    return found


def _add_catch_trials(counts: Counts, point: Point, found: Derivatives) -> None:
    if not counts.catch_trials.any():
        return
    p = np.maximum(point.guess, 1e-12)
    q = np.maximum(1 - point.guess, 1e-12)
    (a, b), (aa, bb) = _pulls(
        counts.catch_yes, counts.catch_trials, np.log(p), np.log(q), point.eta
    )
    found.rates[0] += a / p - b / q
    found.corner[0] += aa / p**2 + bb / q**2


def _add_priors(counts: Counts, point: Point, priors: LogPriors, found: Derivatives) -> None:
    threshold, width = _physical(counts, point.threshold, point.slope)
    t, tt = priors.derivatives("threshold", threshold, counts)
    w, ww = priors.derivatives("width", width, counts)
    (g, gg), (lam, ll) = (
        priors.derivatives(name, getattr(point, name), counts) for name in ("guess", "lapse")
    )
    curve = ((t * counts.scale, -tt * counts.scale**2), (-w * width, -(ww * width**2 + w * width)))
    for gradient, bends, added in (
        (found.curve, found.blocks, curve),
        (found.rates, found.corner, ((g, -gg), (lam, -ll))),
    ):
        for i, (slope, bend) in enumerate(added):
            gradient[i] += slope
            bends[2 * i, 0] += bend
            bends[2 * i, 1] += np.maximum(bend, 0.0)
