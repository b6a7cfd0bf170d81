"""Where the climb begins: the best few of a coarse grid of functions, steps between levels among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.groups import Counts, Point
from psyprobe.analysis.psychometric.likelihood import catch_log_likelihood, level_log_likelihood
from psyprobe.analysis.psychometric.maximise import Model

#: Thresholds and widths tried, in units of the tested range.
_THRESHOLDS = np.array([-2.0, -0.8, -0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375, 0.5, 0.8, 2.0])
_WIDTHS = (np.array([0.1, 0.2, 0.35]), np.array([0.6, 1.0, 2.0, 5.0]))
#: Share of a rate's bounds at which it is tried.
_SHARES = np.array([0.02, 0.35, 0.9])
#: Width of a step, in units of the tested range.
STEP = 1e-3


@dataclass(frozen=True)
class Candidates:
    """Functions tried for one curve and how well each does, by pair of rates."""

    #: shape (P, M, K).
    threshold: FloatArray
    slope: FloatArray


def rate_grid(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Values to try between bounds, shape (3, P); one where the bounds meet."""
    if np.all(lower == upper):
        return np.asarray(lower[None])
    return np.asarray(lower + _SHARES[:, None] * (upper - lower))


def _cuts(counts: Counts) -> FloatArray:
    """Between neighbouring levels and at each level, shape (P, M, 2L - 1)."""
    x = counts.x
    last = np.where(counts.trials > 0, x, -np.inf).max(axis=-1, keepdims=True)
    x = np.where(counts.trials > 0, x, np.where(np.isfinite(last), last, 0.0))
    return np.concatenate([x, 0.5 * (x[..., 1:] + x[..., :-1])], axis=-1)


def _kinds(counts: Counts, lower: Point, upper: Point) -> list[Candidates]:
    """Candidates of three kinds: steps, narrow functions, wide functions, all within the bounds.

    Where all curves have a parameter held, one value of it is enough.
    """
    groups, curves = counts.x.shape[:2]
    held_threshold = bool(np.all(lower.threshold == upper.threshold))
    held_slope = bool(np.all(lower.slope == upper.slope))
    thresholds = np.zeros(1) if held_threshold else _THRESHOLDS
    cuts = np.zeros((groups, curves, 1)) if held_threshold else _cuts(counts)
    found = [] if held_slope else [(cuts, np.full(cuts.shape, -np.log(STEP)))]
    for widths in (np.ones(1),) if held_slope else _WIDTHS:
        t, s = (v.ravel() for v in np.meshgrid(thresholds, -np.log(widths)))
        found.append((np.broadcast_to(t, (groups, curves, t.size)), np.broadcast_to(s, (groups, curves, s.size))))
    return [
        Candidates(
            np.clip(t, lower.threshold[..., None], upper.threshold[..., None]),
            np.clip(s, lower.slope[..., None], upper.slope[..., None]),
        )
        for t, s in found
    ]


def starts(model: Model, counts: Counts, lower: Point, upper: Point, eta: FloatArray, keep: int) -> list[Point]:
    """Best starting points of each kind.

    Parameters
    ----------
    model : Model
    counts : Counts
        P groups.
    lower, upper : Point
        Bounds.
    eta : ndarray, shape (P,)
    keep : int
        How many pairs of rates are kept of each kind.

    Returns
    -------
    list of Point
        Each of P groups.
    """
    guesses, lapses = rate_grid(lower.guess, upper.guess), rate_grid(lower.lapse, upper.lapse)
    pairs = [(g, lam) for g in guesses for lam in lapses]
    if model.equal_rates:
        pairs = [(g, g) for g in guesses]
    points: list[Point] = []
    for kind in _kinds(counts, lower, upper):
        scores, choices = [], []
        shapes = _shapes(model, counts, kind)
        for guess, lapse in pairs:
            per_curve = _score(model, counts, kind, shapes, guess, lapse, eta)
            best = per_curve.argmax(axis=-1)
            total = np.take_along_axis(per_curve, best[..., None], axis=-1)[..., 0].sum(axis=-1)
            total = total + catch_log_likelihood(counts, guess, eta)
            for name, value in (("guess", guess), ("lapse", lapse)):
                total = total + model.priors.log_density(name, value, counts)
            scores.append(total)
            choices.append(best)
        ranked = np.argsort(-np.stack(scores), axis=0, kind="stable")[:keep]
        for order in ranked:
            best = np.take_along_axis(np.stack(choices), order[None, :, None], axis=0)[0]
            t = np.take_along_axis(kind.threshold, best[..., None], axis=-1)[..., 0]
            s = np.take_along_axis(kind.slope, best[..., None], axis=-1)[..., 0]
            g, lam = (np.take_along_axis(np.stack(v), order[None], axis=0)[0] for v in zip(*pairs, strict=True))
            points.append(Point(t, s, g, lam, eta))
    return points


def _shapes(model: Model, counts: Counts, kind: Candidates) -> tuple[FloatArray, FloatArray]:
    """Logarithms of F and 1 - F of each candidate at each level, shape (P, M, K, L)."""
    family = model.family
    steepness = family.span * np.exp(kind.slope)[..., None]
    z = steepness * (counts.x[:, :, None] - kind.threshold[..., None]) + family.median
    z = np.clip(z, -700.0, 700.0)
    return family.log_lower(z), family.log_upper(z)


def _score(
    model: Model,
    counts: Counts,
    kind: Candidates,
    shapes: tuple[FloatArray, FloatArray],
    guess: FloatArray,
    lapse: FloatArray,
    eta: FloatArray,
) -> FloatArray:
    guess, lapse, eta = (v[:, None, None, None] for v in (guess, lapse, eta))
    share = np.log(np.maximum(1 - guess - lapse, 1e-12))
    with np.errstate(divide="ignore"):
        log_p = np.logaddexp(np.log(guess), share + shapes[0])
        log_q = np.logaddexp(np.log(lapse), share + shapes[1])
    value = level_log_likelihood(counts.yes[:, :, None], counts.trials[:, :, None], log_p, log_q, eta).sum(axis=-1)
    if not model.priors.flat:
        t = counts.centre[..., None] + counts.scale[..., None] * kind.threshold
        w = counts.scale[..., None] * np.exp(-kind.slope)
        value = value + model.priors.log_density("threshold", t, counts) + model.priors.log_density("width", w, counts)
    return np.asarray(value)
