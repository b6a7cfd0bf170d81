"""Prior densities of the parameters of a psychometric function, stated and replaceable.

References
----------
Schütt, Harmeling, Macke, Wichmann (2016), Vision Research 122, section 2.3 (the shapes of the weak priors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.groups import Counts, Point
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

    Raises
    ------
    UnknownNameError
        If a parameter does not exist.
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
