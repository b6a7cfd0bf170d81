"""Prior densities of the parameters of a psychometric function, stated and replaceable.

References
----------
Schütt et al. (2016), Vision Research 122, section 2.3 and appendix A (the shapes of the default priors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name

#: Log density of an array of values, elementwise, up to a constant; minus infinity where a value is impossible.
LogPrior: TypeAlias = Callable[[FloatArray], FloatArray]

PARAMETERS = ("threshold", "width", "guess", "lapse", "eta")
_STEP = {"threshold": 1e-4, "width": 1e-4, "guess": 1e-5, "lapse": 1e-5, "eta": 1e-5}


@dataclass(frozen=True)
class LogPriors:
    """Log prior densities by parameter; a parameter without one has a flat prior.

    Attributes
    ----------
    by_name : mapping of str to callable
        "threshold" (of log10 contrast), "width" (of log10 units), "guess", "lapse", "eta".
    """

    by_name: Mapping[str, LogPrior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.by_name:
            if name not in PARAMETERS:
                raise unknown_name("parameter of a psychometric function", name, PARAMETERS)

    @property
    def flat(self) -> bool:
        """Whether there is none."""
        return not self.by_name

    def log_density(self, name: str, value: FloatArray) -> FloatArray:
        """Log density of one parameter."""
        return np.asarray(self.by_name[name](value)) if name in self.by_name else np.zeros(np.shape(value))

    def total(
        self, threshold: FloatArray, width: FloatArray, guess: FloatArray, lapse: FloatArray, eta: FloatArray
    ) -> FloatArray:
        """Log density of each group, shape (P,)."""
        rates = sum(
            self.log_density(name, value) for name, value in zip(PARAMETERS[2:], (guess, lapse, eta), strict=True)
        )
        curves = self.log_density("threshold", threshold) + self.log_density("width", width)
        return np.asarray(rates + curves.sum(axis=-1))

    def derivatives(self, name: str, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivative of the log density, by central differences; 0 where it is not smooth."""
        if name not in self.by_name:
            return np.zeros(np.shape(value)), np.zeros(np.shape(value))
        step = _STEP[name]
        with np.errstate(invalid="ignore"):
            below, at, above = (self.log_density(name, value + d) for d in (-step, 0.0, step))
            first, second = (above - below) / (2 * step), (above - 2 * at + below) / step**2
        return np.where(np.isfinite(first), first, 0.0), np.where(np.isfinite(second), second, 0.0)
