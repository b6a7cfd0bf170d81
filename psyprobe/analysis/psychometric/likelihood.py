"""The likelihood of counted answers under psychometric functions, with its derivatives, and prior densities.

References
----------
Schütt, Harmeling, Macke, Wichmann (2016), Vision Research 122, eq. 5 (beta-binomial with overdispersion eta) and
section 2.3 (the shapes of the weak priors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Point
from psyprobe.analysis.psychometric.sigmoids import Sigmoid
from psyprobe.errors import unknown_name

#: Log density of an array of values, elementwise, up to a constant; minus infinity where a value is impossible.
LogPrior: TypeAlias = Callable[[FloatArray], FloatArray]
_CurvePrior: TypeAlias = Callable[[FloatArray, Counts], FloatArray]

PARAMETERS = ("threshold", "width", "guess", "lapse", "eta")
_STEP = 1e-5


@dataclass(frozen=True)
class LogPriors:
    """Log prior densities by parameter; a parameter without one has a flat prior."""

    #: Of values in physical units and the counts they belong to.
    by_name: Mapping[str, _CurvePrior] = field(default_factory=dict)

    @property
    def flat(self) -> bool:
        """Whether there is none."""
        return not self.by_name

    def log_density(self, name: str, value: FloatArray, counts: Counts) -> FloatArray:
        """Log density of one parameter."""
        return self.by_name[name](value, counts) if name in self.by_name else np.zeros(np.shape(value))

    def total(self, counts: Counts, threshold: FloatArray, width: FloatArray, point: Point) -> FloatArray:
        """Log density of each group, shape (P,); threshold and width in log10 units."""
        curves = self.log_density("threshold", threshold, counts) + self.log_density("width", width, counts)
        rates = [self.log_density(name, getattr(point, name), counts) for name in PARAMETERS[2:]]
        return np.asarray(curves.sum(axis=-1) + sum(rates))

    def derivatives(self, name: str, value: FloatArray, counts: Counts) -> tuple[FloatArray, FloatArray]:
        """First and second derivative of the log density, by central differences; 0 where it has none."""
        if name not in self.by_name:
            return np.zeros(np.shape(value)), np.zeros(np.shape(value))
        with np.errstate(invalid="ignore"):
            below, at, above = (self.log_density(name, value + d, counts) for d in (-_STEP, 0.0, _STEP))
            first, second = (above - below) / (2 * _STEP), (above - 2 * at + below) / _STEP**2
        sound = np.isfinite(first) & np.isfinite(second)
        return np.where(sound, first, 0.0), np.where(sound, second, 0.0)


def stated_priors(given: Mapping[str, LogPrior | None] | None, equal_rates: bool = False) -> LogPriors:
    """The weak priors of Schütt et al., with those that are given in their place.

    Parameters
    ----------
    given : mapping of str to callable, or None
        By "threshold" (log10 contrast), "width" (log10 units), "guess", "lapse", "eta": a function from values to log
        densities; None makes a prior flat.
    equal_rates : bool, optional
        Whether guess and lapse are one rate, which then has the prior of lapse only.

    Returns
    -------
    LogPriors
        Threshold: even over the tested range, and falling as a raised cosine to 0 half a range outside. Width: even
        from twice the smallest distance of two levels to the tested range, falling to 0 at that distance and at three
        ranges. Guess, lapse and eta: beta (1, 10).
    """
    priors: dict[str, _CurvePrior] = {
        "threshold": _threshold,
        "width": _width,
        "guess": _beta_1_10,
        "lapse": _beta_1_10,
        "eta": _beta_1_10,
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
    return _log(np.where(outside < 0.5, 0.5 * (1 + np.cos(2 * np.pi * np.clip(outside, 0.0, 0.5))), 0.0))


def _width(value: FloatArray, counts: Counts) -> FloatArray:
    w, spacing = value / _along(counts.scale, value), np.maximum(_along(counts.spacing, value), 1e-6)
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
class Derivatives:
    """Gradient of the log-likelihood and two versions of minus its Hessian: exact, and never indefinite."""

    #: Gradient by threshold and slope, shape (P, M, 2).
    curve: FloatArray
    #: Gradient by guess and lapse, shape (P, 2).
    rates: FloatArray
    #: Exact and non-negative curvature: within curves (P, M, 2, 2), curves by rates (P, M, 2, 2), rates (P, 2, 2).
    blocks: tuple[FloatArray, FloatArray]
    across: tuple[FloatArray, FloatArray]
    corner: tuple[FloatArray, FloatArray]

    def with_equal_rates(self) -> Derivatives:
        """Those by a single rate that guess and lapse both are; it stands in the place of guess, and lapse rests."""
        keep = np.array([1.0, 0.0])

        def united(corner: FloatArray) -> FloatArray:
            return np.asarray(corner.sum(axis=(-1, -2))[:, None, None] * np.diag(keep) + np.diag(1 - keep))

        return Derivatives(
            self.curve,
            self.rates.sum(axis=-1, keepdims=True) * keep,
            self.blocks,
            (self.across[0].sum(axis=-1, keepdims=True) * keep, self.across[1].sum(axis=-1, keepdims=True) * keep),
            (united(self.corner[0]), united(self.corner[1])),
        )


def level_log_likelihood(
    yes: FloatArray, trials: FloatArray, log_p: FloatArray, log_q: FloatArray, eta: FloatArray
) -> FloatArray:
    """log-likelihood of each level without the binomial coefficient; `eta` broadcasts and 0 is binomial."""
    no = trials - yes
    with np.errstate(invalid="ignore"):
        binomial = np.where(yes > 0, yes * log_p, 0.0) + np.where(no > 0, no * log_q, 0.0)
    if not np.any(eta >= _BINOMIAL):
        return np.asarray(binomial)
    from scipy.special import betaln

    nu = 1 / np.maximum(eta, _BINOMIAL) ** 2 - 1
    a, b = np.exp(log_p) * nu, np.exp(log_q) * nu
    a, b = np.maximum(a, 1e-12), np.maximum(b, 1e-12)
    return np.where(eta >= _BINOMIAL, betaln(yes + a, no + b) - betaln(a, b), binomial)


def _pulls(
    yes: FloatArray, trials: FloatArray, log_p: FloatArray, log_q: FloatArray, eta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """a, b, aa, bb such that dl/dp = a/p - b/q and -d²l/dp² = aa/p² + bb/q²; of a binomial: yes and no, twice."""
    no = trials - yes
    if not np.any(eta >= _BINOMIAL):
        return yes, no, yes, no
    from scipy.special import digamma, polygamma

    nu = 1 / np.maximum(eta, _BINOMIAL) ** 2 - 1
    out = []
    for count, log_rate in ((yes, log_p), (no, log_q)):
        rate = np.maximum(np.exp(log_rate) * nu, 1e-12)
        first = np.where(eta >= _BINOMIAL, rate * (digamma(count + rate) - digamma(rate)), count)
        second = np.where(eta >= _BINOMIAL, rate**2 * (polygamma(1, rate) - polygamma(1, count + rate)), count)
        out.append((first, second))
    return out[0][0], out[1][0], out[0][1], out[1][1]


def _mixture(
    family: Sigmoid, point: Point, x: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Tell z - median, log F, log (1 - F), log of the sigmoid's share, log p and log (1 - p)."""
    steepness = family.span * np.exp(point.slope)[..., None]
    z = np.clip(steepness * (x - point.threshold[..., None]) + family.median, -700.0, 700.0)
    log_lower, log_upper = family.log_lower(z), family.log_upper(z)
    guess, lapse = point.guess[:, None, None], point.lapse[:, None, None]
    share = np.log(np.maximum(1 - guess - lapse, 1e-12))
    if np.any(guess > 0) or np.any(lapse > 0):
        with np.errstate(divide="ignore"):
            log_p = np.logaddexp(np.log(guess), share + log_lower)
            log_q = np.logaddexp(np.log(lapse), share + log_upper)
    else:
        log_p, log_q = log_lower, log_upper
    return z, log_lower, log_upper, share, log_p, log_q


def log_rates(family: Sigmoid, point: Point, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithms of p and 1 - p at each level."""
    return _mixture(family, point, x)[4:]


def curve_log_likelihood(family: Sigmoid, counts: Counts, point: Point) -> FloatArray:
    """log-likelihood of each curve, catch trials left out, shape (P, M)."""
    log_p, log_q = log_rates(family, point, counts.x)
    return np.asarray(
        level_log_likelihood(counts.yes, counts.trials, log_p, log_q, point.eta[:, None, None]).sum(axis=-1)
    )


def catch_log_likelihood(counts: Counts, guess: FloatArray, eta: FloatArray) -> FloatArray:
    """log-likelihood of the answers to blanks, shape (P,)."""
    with np.errstate(divide="ignore"):
        return level_log_likelihood(counts.catch_yes, counts.catch_trials, np.log(guess), np.log1p(-guess), eta)


def physical(counts: Counts, point: Point) -> tuple[FloatArray, FloatArray]:
    """Thresholds in log10 contrast and widths in log10 units."""
    return counts.centre + counts.scale * point.threshold, counts.scale * np.exp(-point.slope)


def objective(family: Sigmoid, counts: Counts, point: Point, priors: LogPriors) -> FloatArray:
    """log-likelihood plus log prior density of each group, shape (P,)."""
    value = curve_log_likelihood(family, counts, point).sum(axis=-1)
    value = value + catch_log_likelihood(counts, point.guess, point.eta)
    if priors.flat:
        return np.asarray(value)
    threshold, width = physical(counts, point)
    return np.asarray(value + priors.total(counts, threshold, width, point))


def differentiate(family: Sigmoid, counts: Counts, point: Point, priors: LogPriors) -> Derivatives:
    """Derivatives of `objective` by threshold, slope, guess and lapse."""
    z, log_lower, log_upper, share, log_p, log_q = _mixture(family, point, counts.x)
    log_density = family.log_density(z)
    a, b, aa, bb = _pulls(counts.yes, counts.trials, log_p, log_q, point.eta[:, None, None])

    def over(log_part: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.exp(np.minimum(log_part - log_p, _LARGEST)), np.exp(np.minimum(log_part - log_q, _LARGEST))

    (zp, zq), (gp, gq), (lp, lq) = over(share + log_density), over(log_upper), over(log_lower)
    pull_z, pull_g, pull_l = a * zp - b * zq, a * gp - b * gq, b * lq - a * lp

    def curved(up: FloatArray, uq: FloatArray, vp: FloatArray, vq: FloatArray) -> FloatArray:
        return np.asarray(aa * up * vp + bb * uq * vq)

    bend = pull_z * np.exp(-share)  # of guess or lapse with z: how p's slope shrinks with them
    zz, zg, zl = curved(zp, zq, zp, zq), curved(zp, zq, gp, gq), -curved(zp, zq, lp, lq)
    exact = (zz - pull_z * family.log_density_slope(z), zg + bend, zl + bend)
    kappa = family.span * np.exp(point.slope)
    away = z - family.median
    curve = np.stack([-kappa * pull_z.sum(-1), (pull_z * away).sum(-1)], axis=-1)
    rates = np.stack([pull_g.sum((-1, -2)), pull_l.sum((-1, -2))], axis=-1)
    blocks, across = [], []
    for (hz, hg, hl), second in ((exact, 1.0), ((zz, zg, zl), 0.0)):
        ts = -kappa * (hz * away).sum(-1) + second * kappa * pull_z.sum(-1)
        ss = (hz * away**2).sum(-1) - second * curve[..., 1]
        blocks.append(_square(kappa**2 * hz.sum(-1), ts, ss))
        columns = [np.stack([-kappa * h.sum(-1), (h * away).sum(-1)], axis=-1) for h in (hg, hl)]
        across.append(np.stack(columns, axis=-1))
    corner = _square(
        curved(gp, gq, gp, gq).sum((-1, -2)),
        -curved(gp, gq, lp, lq).sum((-1, -2)),
        curved(lp, lq, lp, lq).sum((-1, -2)),
    )
    _add_catch_trials(counts, point, rates, corner)
    found = Derivatives(curve, rates, (blocks[0], blocks[1]), (across[0], across[1]), (corner, corner.copy()))
    if not priors.flat:
        _add_priors(counts, point, priors, found)
    return found


def _square(first: FloatArray, mixed: FloatArray, second: FloatArray) -> FloatArray:
    return np.stack([np.stack([first, mixed], axis=-1), np.stack([mixed, second], axis=-1)], axis=-2)


def _add_catch_trials(counts: Counts, point: Point, rates: FloatArray, corner: FloatArray) -> None:
    if not np.any(counts.catch_trials > 0):
        return
    p, q = np.maximum(point.guess, 1e-12), np.maximum(1 - point.guess, 1e-12)
    a, b, aa, bb = _pulls(counts.catch_yes, counts.catch_trials, np.log(p), np.log(q), point.eta)
    rates[:, 0] += a / p - b / q
    corner[:, 0, 0] += aa / p**2 + bb / q**2


def _add_priors(counts: Counts, point: Point, priors: LogPriors, found: Derivatives) -> None:
    threshold, width = physical(counts, point)
    by_t, by_tt = priors.derivatives("threshold", threshold, counts)
    by_w, by_ww = priors.derivatives("width", width, counts)
    curve = np.stack([by_t * counts.scale, -by_w * width], axis=-1)
    found.curve[...] += curve
    bends = (-by_tt * counts.scale**2, -(by_ww * width**2 + by_w * width))
    rates = [priors.derivatives(name, getattr(point, name), counts) for name in ("guess", "lapse")]
    for i, (slope, bend) in enumerate(rates):
        found.rates[:, i] += slope
        found.corner[0][:, i, i] += -bend
        found.corner[1][:, i, i] += np.maximum(-bend, 0.0)
    for i, bend in enumerate(bends):
        found.blocks[0][..., i, i] += bend
        found.blocks[1][..., i, i] += np.maximum(bend, 0.0)
