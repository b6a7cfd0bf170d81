"""Hold a score unit by unit: one value a variant, an item or a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import fisher, weighted_interval

#: On what scale units are averaged: Fisher's z of correlations, the logarithm of errors and
#: thresholds, or the values themselves.
Scale: TypeAlias = Literal["z", "log10", "linear"]

#: To a scale, and back.
TRANSFORMS: dict[Scale, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "z": (fisher, np.tanh),
    "log10": (np.log10, lambda values: 10.0 ** np.asarray(values)),
    "linear": (np.asarray, np.asarray),
}


@dataclass(frozen=True)
class Sample:
    """A score of one observer, unit by unit, so that another can be compared on the same units."""

    #: What the units are a sample of, in the plural: "variants", "image pairs", "people".
    population: str
    #: Name of each unit.
    keys: tuple[str, ...]
    #: The score of each unit.
    values: tuple[float, ...]
    scale: Scale = "linear"
    #: Weight of each unit, such as its number of questions; empty where all weigh the same.
    weights: tuple[float, ...] = ()

    def transformed(self) -> FloatArray:
        """Convert the values to the scale on which they are averaged."""
        return np.asarray(TRANSFORMS[self.scale][0](np.array(self.values)), float)

    def mean(self) -> float:
        """Average on the scale, and convert back: the score of a typical unit.

        Examples
        --------
        >>> round(Sample("variants", ("a", "b"), (0.1, 0.9), "z").mean(), 3)
        0.656
        """
        weights = self.weights or None
        middle = float(np.average(self.transformed(), weights=weights))
        return float(TRANSFORMS[self.scale][1](middle))

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Compute the interval of the mean over units like these, by Student's t on the scale.

        None for a single unit, and where all units are alike: neither tells an interval.

        Examples
        --------
        >>> low, high = Sample("variants", ("a", "b", "c"), (0.4, 0.5, 0.6), "z").interval()
        >>> round(low, 2), round(high, 2)
        (0.22, 0.7)
        """
        ends = weighted_interval(
            self.transformed(),
            np.array(self.weights) if self.weights else None,
            confidence,
        )
        if ends is None:
            return None
        inverse = TRANSFORMS[self.scale][1]
        low = float(inverse(ends[0]))
        high = float(inverse(ends[1]))
        return low, high
