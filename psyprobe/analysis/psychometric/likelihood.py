"""Compute the likelihood of counted answers, its derivatives, and prior densities.

References
----------
Schütt, Harmeling, Macke, Wichmann (2016), Vision Research 122, eq. 5 (beta-binomial with
overdispersion eta) and section 2.3 (the shapes of the weak priors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaln, digamma, polygamma

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Groups, Index, Point
from psyprobe.analysis.psychometric.rate_answers import RateAnswers
from psyprobe.analysis.psychometric.sigmoids import Sigmoid, log_sum
from psyprobe.errors import check_known

#: Log density of an array of values, elementwise, up to a constant; minus infinity where a value is
#: impossible.
LogPrior: TypeAlias = Callable[[FloatArray], FloatArray]
_CurvePrior: TypeAlias = Callable[[FloatArray, Counts], FloatArray]

#: Distance over which derivatives of priors are taken.
_STEP = 1e-5


@dataclass(frozen=True)
class LogPriors:
    """Log prior densities by parameter; a parameter without one has a flat prior."""

    #: Functions of values in physical units and the counts that they belong to.
    by_name: Mapping[str, _CurvePrior] = field(default_factory=dict)

    def log_density(self, name: str, value: FloatArray, counts: Counts) -> FloatArray:
        """Compute the log prior density of one parameter."""
        if name not in self.by_name:
            return np.zeros(np.shape(value))
        return self.by_name[name](value, counts)

    def curve_log_densities(
        self,
        threshold: FloatArray,
        slope: FloatArray,
        counts: Counts,
    ) -> FloatArray:
        """Compute the log prior densities of curves, of threshold and width together."""
        physical_threshold, width = _physical(counts, threshold, slope)
        return self.log_density(
            "threshold", physical_threshold, counts
        ) + self.log_density("width", width, counts)

    def derivatives(
        self, name: str, value: FloatArray, counts: Counts
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the first and second derivatives of a log prior, by central differences.

        0 where it has no derivative.
        """
        with np.errstate(invalid="ignore"):
            below = self.log_density(name, value - _STEP, counts)
            centre = self.log_density(name, value, counts)
            above = self.log_density(name, value + _STEP, counts)
            first = (above - below) / (2 * _STEP)
            second = (above - 2 * centre + below) / _STEP**2
        sound = np.isfinite(first) & np.isfinite(second)
        return np.where(sound, first, 0.0), np.where(sound, second, 0.0)


def stated_priors(
    priors: Mapping[str, LogPrior | None] | None,
    equal_rates: bool = False,
) -> LogPriors:
    """Combine the weak priors of Schütt et al. with the user's, which replace some of them.

    Parameters
    ----------
    priors : mapping of str to callable, or None
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
    by_name: dict[str, _CurvePrior] = {
        "threshold": _threshold_prior,
        "width": _width_prior,
        **dict.fromkeys(("guess", "lapse", "eta"), _rate_prior),
    }
    priors = priors or {}
    check_known("parameter of a psychometric function", priors, by_name)
    for name, prior in priors.items():
        if prior is None:
            del by_name[name]
        else:
            by_name[name] = _ignore_counts(prior)
    if equal_rates:
        by_name.pop("guess", None)
    return LogPriors(by_name)


def _ignore_counts(density: LogPrior) -> _CurvePrior:
    """Wrap a log prior density so that it takes the counts too, and ignores them."""
    return lambda value, _counts: np.asarray(density(value), dtype=np.float64)


def _append_axes(values: FloatArray, like: FloatArray) -> FloatArray:
    """Append axes of length 1, so that values by curve broadcast with arrays by curve."""
    return values.reshape(values.shape + (1,) * (like.ndim - values.ndim))


def _log(density: FloatArray) -> FloatArray:
    """Compute the logarithm, with -inf for 0 and no warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(density))


def _threshold_prior(threshold: FloatArray, counts: Counts) -> FloatArray:
    """Compute the log prior of thresholds: flat over the tested range, falling beyond."""
    centre = _append_axes(counts.centre, threshold)
    scale = _append_axes(counts.scale, threshold)
    outside = np.abs(threshold - centre) / scale - 0.5
    cosine = np.cos(2 * np.pi * np.clip(outside, 0.0, 0.5))
    return _log(np.where(outside < 0.5, 0.5 * (1 + cosine), 0.0))


def _width_prior(width: FloatArray, counts: Counts) -> FloatArray:
    """Compute the log prior of widths: falling below the levels' spacing and above their range."""
    width = width / _append_axes(counts.scale, width)
    spacing = np.maximum(_append_axes(counts.spacing, width), 1e-6)
    rise = 0.5 * (1 - np.cos(np.pi * np.clip((width - spacing) / spacing, 0.0, 1.0)))
    fall = 0.5 * (1 + np.cos(0.5 * np.pi * np.clip(width - 1, 0.0, 2.0)))
    return _log(rise * fall)


def _rate_prior(rate: FloatArray, _counts: Counts) -> FloatArray:
    """Compute the log density of the rates' prior, Beta(1, 10), up to a constant."""
    return _log(np.clip(1 - rate, 0.0, None)) * 9


#: Below this overdispersion the beta-binomial is the binomial to more digits than are computed.
_BINOMIAL = 1e-4
#: Logarithm of the largest ratio whose square does not overflow.
_LARGEST = 40.0


@dataclass(frozen=True)
class Derivatives:
    """Gradient of the log-likelihood, and minus its Hessian in two versions: exact, and never
    indefinite.
    """

    #: Gradient by threshold and slope, shape (2, P, M).
    curve: FloatArray
    #: Gradient by guess and lapse, shape (2, P).
    rates: FloatArray
    #: Curvature of each curve by threshold twice, by threshold and slope, and by slope twice, in
    #: two versions, shape (3, 2, P, M).
    blocks: FloatArray
    #: Curvature by threshold and slope, and by guess and lapse, in two versions, shape
    #: (2, 2, 2, P, M).
    across: FloatArray
    #: Curvature by guess twice, by guess and lapse, and by lapse twice, in two versions, shape
    #: (3, 2, P).
    corner: FloatArray

    def equate_rates(self) -> None:
        """Sum derivatives by guess and lapse rate to those by one rate that is both.

        It stands in the place of guess, and lapse rests.
        """
        corner = self.corner
        self.rates[0] += self.rates[1]
        self.across[:, 0] += self.across[:, 1]
        corner[0] = corner[0] + 2 * corner[1] + corner[2]
        self.rates[1] = self.across[:, 1] = corner[1] = 0.0
        corner[2] = 1.0


def level_log_likelihood(
    yes: FloatArray,
    trials: FloatArray,
    log_p: FloatArray,
    log_q: FloatArray,
    eta: FloatArray,
) -> FloatArray:
    """Compute the log-likelihood of each level, up to a constant.

    `eta` broadcasts; where it is 0, answers are binomial.
    """
    no = trials - yes
    with np.errstate(invalid="ignore"):
        yes_term = np.where(yes > 0, yes * log_p, 0.0)
        no_term = np.where(no > 0, no * log_q, 0.0)
    binomial = yes_term + no_term
    overdispersed = eta >= _BINOMIAL
    if not overdispersed.any():
        return binomial
    nu = 1 / np.maximum(eta, _BINOMIAL) ** 2 - 1
    a = np.maximum(np.exp(log_p) * nu, 1e-12)
    b = np.maximum(np.exp(log_q) * nu, 1e-12)
    return np.where(overdispersed, betaln(yes + a, no + b) - betaln(a, b), binomial)


def _pulls(
    yes: FloatArray,
    trials: FloatArray,
    log_p: FloatArray,
    log_q: FloatArray,
    eta: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute the numerators of the log-likelihood's derivatives by p, for yes and for no.

    They are (a, b) and (aa, bb) such that dl/dp = a/p - b/q and -d²l/dp² = aa/p² + bb/q²; for a
    binomial, the same array twice.
    """
    counts = np.array([yes, trials - yes])
    overdispersed = eta >= _BINOMIAL
    if not overdispersed.any():
        return counts, counts
    nu = 1 / np.maximum(eta, _BINOMIAL) ** 2 - 1
    rate = np.maximum(np.exp(np.array([log_p, log_q])) * nu, 1e-12)
    first = rate * (digamma(counts + rate) - digamma(rate))
    second = rate**2 * (polygamma(1, rate) - polygamma(1, counts + rate))
    return np.where(overdispersed, first, counts), np.where(
        overdispersed, second, counts
    )


class LogShape(NamedTuple):
    """Place z on the sigmoid F, with log F(z) and log (1 - F(z))."""

    z: FloatArray
    log_lower: FloatArray
    log_upper: FloatArray


def log_shape(
    family: Sigmoid,
    x: FloatArray,
    threshold: FloatArray,
    slope: FloatArray,
) -> LogShape:
    """Compute the logs of the sigmoid and its complement of each curve at each level."""
    steepness = family.span * np.exp(slope)
    z = steepness[..., None] * (x - threshold[..., None]) + family.median
    z = np.minimum(np.maximum(z, -700.0), 700.0)
    return LogShape(z, family.log_lower(z), family.log_upper(z))


def _log_share(guess: FloatArray, lapse: FloatArray) -> FloatArray:
    """Compute the log of 1 - guess - lapse, by which the sigmoid is scaled."""
    return np.asarray(np.log(np.maximum(1 - guess - lapse, 1e-12)))


@dataclass(frozen=True)
class Levels(Groups):
    """The psychometric function of a point at each level, shapes (P, M, L)."""

    #: Place on the sigmoid.
    z: FloatArray
    #: Logarithms of F(z) and 1 - F(z), and of p and 1 - p, which have the rates in them.
    log_lower: FloatArray
    log_upper: FloatArray
    log_p: FloatArray
    log_q: FloatArray


def curve_log_likelihood(counts: Counts, point: Point, levels: Levels) -> FloatArray:
    """Compute the log-likelihood of each curve without catch trials, shape (P, M)."""
    eta = point.eta[:, None, None]
    by_level = level_log_likelihood(
        counts.yes, counts.trials, levels.log_p, levels.log_q, eta
    )
    return np.asarray(by_level.sum(axis=-1))


def catch_log_likelihood(
    counts: Counts, guess: FloatArray, eta: FloatArray
) -> FloatArray:
    """Compute the log-likelihood of the answers to catch trials, shape (P,)."""
    if not counts.catch_trials.any():
        return np.zeros(guess.shape)
    log_p = _log(guess)
    log_q = np.log1p(-guess)
    return level_log_likelihood(
        counts.catch_yes, counts.catch_trials, log_p, log_q, eta
    )


def _physical(
    counts: Counts, threshold: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Convert thresholds and slopes of the fit to log10 contrast and widths in log10 units."""
    centre = _append_axes(counts.centre, threshold)
    scale = _append_axes(counts.scale, threshold)
    return centre + scale * threshold, scale * np.exp(-slope)


class Bounds(NamedTuple):
    """Bounds of two parameters, which are the first axis."""

    lower: FloatArray
    upper: FloatArray
    #: Whether the bounds differ, so that the parameter is not fixed.
    differ: BoolArray


@dataclass(frozen=True)
class SearchProblem:
    """A model of groups of curves, their answers, and bounds of their parameters.

    Equal bounds fix a parameter; `eta` has no bounds.
    """

    family: Sigmoid
    counts: Counts
    lower: Point
    upper: Point
    #: Whether the lapse rate is the guess rate.
    equal_rates: bool = False
    priors: LogPriors = LogPriors()
    #: Further answers that tell the rates.
    rest: RateAnswers | None = None

    def __getitem__(self, index: Index | BoolArray) -> SearchProblem:
        """Select groups."""
        return replace(
            self,
            counts=self.counts[index],
            lower=self.lower[index],
            upper=self.upper[index],
            rest=None if self.rest is None else self.rest[index],
        )

    @cached_property
    def curve_bounds(self) -> Bounds:
        """Stack the search bounds of threshold and slope."""
        return self._stack_bounds("threshold", "slope")

    @cached_property
    def rate_bounds(self) -> Bounds:
        """Stack the search bounds of guess and lapse rate."""
        return self._stack_bounds("guess", "lapse")

    def _stack_bounds(self, *names: str) -> Bounds:
        """Stack the search bounds of named parameters, and mark those free to move."""
        lower = np.array([getattr(self.lower, name) for name in names])
        upper = np.array([getattr(self.upper, name) for name in names])
        return Bounds(lower, upper, upper > lower)

    def levels_at(self, point: Point) -> Levels:
        """Evaluate the functions of a point at every level."""
        shape = log_shape(self.family, self.counts.x, point.threshold, point.slope)
        guess = point.guess[:, None, None]
        lapse = point.lapse[:, None, None]
        share = _log_share(guess, lapse)
        log_p = log_sum(_log(guess), share + shape.log_lower)
        log_q = log_sum(_log(lapse), share + shape.log_upper)
        return Levels(*shape, log_p, log_q)

    def predict(self, point: Point) -> FloatArray:
        """Predict the probability of yes at each level."""
        return np.exp(self.levels_at(point).log_p)

    def objective(self, point: Point, levels: Levels) -> FloatArray:
        """Compute log-likelihood plus log prior density of each group, shape (P,)."""
        counts = self.counts
        priors = self.priors
        value = curve_log_likelihood(counts, point, levels).sum(axis=-1)
        value = value + catch_log_likelihood(counts, point.guess, point.eta)
        if self.rest is not None:
            value = value + self.rest.value(point.guess, point.lapse)
        if not priors.by_name:
            return np.asarray(value)
        curves = priors.curve_log_densities(point.threshold, point.slope, counts)
        density = curves.sum(axis=-1) + sum(
            priors.log_density(name, getattr(point, name), counts)
            for name in ("guess", "lapse", "eta")
        )
        return np.asarray(value + density)

    def differentiate(self, point: Point, levels: Levels) -> Derivatives:
        """Compute the objective's derivatives by threshold, slope, guess and lapse."""
        family = self.family
        counts = self.counts
        z = levels.z
        log_p = levels.log_p
        log_q = levels.log_q
        share = _log_share(point.guess, point.lapse)[:, None, None]
        first, second = _pulls(
            counts.yes, counts.trials, log_p, log_q, point.eta[:, None, None]
        )

        # Derivatives of p and q over p and q. The first axis: of yes and of no; the second: by z,
        # by guess and by lapse. All are computed in one array, since small fits wait for calls of
        # numpy and large ones for memory.
        ratios = np.empty((2, 3, *z.shape))
        ratios[:, 0] = share + family.log_density(z)
        ratios[:, 1] = levels.log_upper
        ratios[:, 2] = levels.log_lower
        ratios -= np.array([log_p, log_q])[:, None]
        np.exp(np.minimum(ratios, _LARGEST, out=ratios), out=ratios)
        pulls = first[:, None] * ratios
        bends = pulls if second is first else second[:, None] * ratios
        gradient = pulls[0] - pulls[1]

        # Curvature by z twice, by z and guess, and by z and lapse. The second axis: exact, and
        # never indefinite.
        curvature = np.empty((3, 2, *z.shape))
        np.multiply(bends[0, 0], ratios[0], out=curvature[:, 1])
        curvature[:, 1] += bends[1, 0] * ratios[1]
        curvature[2, 1] *= -1
        curvature[0, 0] = curvature[0, 1] - gradient[0] * family.log_density_slope(z)
        # A larger guess or lapse rate makes p rise less with z.
        flattening = gradient[0] * np.exp(-share)
        np.add(curvature[1:, 1], flattening, out=curvature[1:, 0])

        # From z to threshold and slope: dz/dthreshold = -steepness, dz/dslope = distance.
        steepness = family.span * np.exp(point.slope)
        distance = z - family.median
        # Products with ones sum over levels, of which there are few: `sum` takes twice as long.
        ones = np.ones(z.shape[-1])
        gradient_sum = gradient[0] @ ones
        curvature_sum = curvature @ ones
        distance_sum = np.vecdot(curvature, distance)
        curve = np.array([-steepness * gradient_sum, np.vecdot(gradient[0], distance)])
        blocks = np.array(
            [
                steepness**2 * curvature_sum[0],
                -steepness * distance_sum[0],
                np.vecdot(curvature[0], distance**2),
            ]
        )
        blocks[1:, 0] -= curve
        across = np.array([-steepness * curvature_sum[1:], distance_sum[1:]])

        rates = (gradient[1:] @ ones).sum(axis=-1)
        rates[1] *= -1
        corner = np.empty((3, 2, len(z)))
        rate_bends = bends[:, 1:]
        corner[::2] = np.vecdot(rate_bends, ratios[:, 1:]).sum(axis=(0, -1))[:, None]
        corner[1] = -np.vecdot(rate_bends[:, 0], ratios[:, 2]).sum(axis=(0, -1))
        derivatives = Derivatives(curve, rates, blocks, across, corner)
        _add_catch_trials(counts, point, derivatives)
        if self.rest is not None:
            _add_rest(point, self.rest, derivatives)
        if self.priors.by_name:
            _add_priors(counts, point, self.priors, derivatives)
        return derivatives


def _add_catch_trials(counts: Counts, point: Point, derivatives: Derivatives) -> None:
    """Add the derivatives of the catch trials' log-likelihood by the guess rate."""
    if not counts.catch_trials.any():
        return
    p = np.maximum(point.guess, 1e-12)
    q = np.maximum(1 - point.guess, 1e-12)
    first, second = _pulls(
        counts.catch_yes,
        counts.catch_trials,
        np.log(p),
        np.log(q),
        point.eta,
    )
    derivatives.rates[0] += first[0] / p - first[1] / q
    derivatives.corner[0] += second[0] / p**2 + second[1] / q**2


def _add_rest(point: Point, rest: RateAnswers, derivatives: Derivatives) -> None:
    """Add the derivatives by the rates of the log-likelihood of further answers."""
    gradient, curvature = rest.derivatives(point.guess, point.lapse)
    derivatives.rates[:] += gradient
    derivatives.corner[::2] += curvature[:, None]
    derivatives.corner[1, 0] -= rest.mixed


def _add_priors(
    counts: Counts,
    point: Point,
    priors: LogPriors,
    derivatives: Derivatives,
) -> None:
    """Add the derivatives of the log priors to those of the log-likelihood."""
    threshold, width = _physical(counts, point.threshold, point.slope)
    curve = derivatives.curve
    blocks = derivatives.blocks

    first, second = priors.derivatives("threshold", threshold, counts)
    curve[0] += first * counts.scale
    _add_curvature(blocks[0], -second * counts.scale**2)

    first, second = priors.derivatives("width", width, counts)
    curve[1] += -first * width
    _add_curvature(blocks[2], -(second * width**2 + first * width))

    for place, name in enumerate(("guess", "lapse")):
        first, second = priors.derivatives(name, getattr(point, name), counts)
        derivatives.rates[place] += first
        _add_curvature(derivatives.corner[2 * place], -second)


def _add_curvature(versions: FloatArray, curvature: FloatArray) -> None:
    """Add curvature to the exact matrix, and its non-negative part to the convex one."""
    versions[0] += curvature
    versions[1] += np.maximum(curvature, 0.0)
