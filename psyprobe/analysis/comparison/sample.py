"""Hold a score unit by unit: one value a variant, an item or a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import (
    check_confidence,
    fisher,
    mean_and_error,
    student_quantile,
)

#: On what scale units are averaged: Fisher's z of correlations, the logarithm of errors and
#: thresholds, or the values themselves.
Scale: TypeAlias = Literal["z", "log10", "linear"]

#: Smallest error of which a logarithm is taken.
_LEAST = 1e-12

#: To a scale, and back.
TRANSFORMS: dict[Scale, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "z": (fisher, np.tanh),
    "log10": (
        lambda values: np.log10(np.maximum(values, _LEAST)),
        lambda values: 10.0 ** np.asarray(values),
    ),
    "linear": (np.asarray, np.asarray),
}


@dataclass(frozen=True)
class Sample:
    """A score of one observer, unit by unit, so that another can be compared on the same units."""

    #: What the independent units are, in the plural: "variants", "image pairs", "people".
    population: str
    #: Name of each value.
    keys: tuple[str, ...]
    values: tuple[float, ...]
    scale: Scale = "linear"
    #: To which independent unit each value belongs, as items to an image; empty where each is one.
    clusters: tuple[str, ...] = ()

    def transformed(self) -> FloatArray:
        """Convert the values to the scale on which they are averaged."""
        return np.asarray(TRANSFORMS[self.scale][0](np.array(self.values)), float)

    def mean(self) -> float:
        """Compute the mean of the values, averaged on the sample's scale (such as Fisher's z).

        Examples
        --------
        >>> round(Sample("variants", ("a", "b"), (0.1, 0.9), "z").mean(), 3)
        0.656
        """
        return float(TRANSFORMS[self.scale][1](self.transformed().mean()))

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Compute the interval of the mean over units by Student's t, on the sample's scale.

        None for a single unit, and where all units are alike: neither tells an interval.

        Examples
        --------
        >>> low, high = Sample("variants", ("a", "b", "c"), (0.4, 0.5, 0.6), "z").interval()
        >>> round(low, 2), round(high, 2)
        (0.22, 0.71)
        """
        check_confidence(confidence)
        values, weights = cluster_means(self.transformed(), self.clusters)
        mean, error = mean_and_error(values, weights)
        if error is None:
            return None
        reach = student_quantile(len(values), confidence) * error
        inverse = TRANSFORMS[self.scale][1]
        return float(inverse(mean - reach)), float(inverse(mean + reach))


def cluster_means(
    values: FloatArray, clusters: Sequence[str]
) -> tuple[FloatArray, FloatArray | None]:
    """Compute the mean of the values in each cluster, with the clusters' sizes.

    Without clusters the values stay as they are, and None says that all weigh the same.

    Examples
    --------
    >>> cluster_means(np.array([1.0, 3.0, 5.0]), ("a", "a", "b"))
    (array([2., 5.]), array([2., 1.]))
    """
    if not len(clusters):
        return values, None
    _, places, counts = np.unique(clusters, return_inverse=True, return_counts=True)
    sums = np.bincount(places, weights=values)
    return sums / counts, counts.astype(float)
