"""Answers and parameters of groups: curves that have one guess and one lapse rate in common.

Arrays are of P groups of M curves at L levels (M = 1: nothing is shared).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray

Index: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Counts:
    """What was answered, by group, curve and level."""

    #: log10 contrast, moved and scaled so that each curve's tested range is -0.5 to 0.5, shape (P, M, L).
    x: FloatArray
    #: How many said yes of how many; trials of 0 mark a level that is not there, shape (P, M, L).
    yes: FloatArray
    trials: FloatArray
    #: The same for blanks; no trials where the guess rate is fixed, shape (P,).
    catch_yes: FloatArray
    catch_trials: FloatArray
    #: log10 contrast = centre + scale x, shape (P, M).
    centre: FloatArray
    scale: FloatArray
    #: Smallest distance between levels, in units of x; 0 with fewer than two, shape (P, M).
    spacing: FloatArray

    def take(self, index: Index) -> Counts:
        """Those groups."""
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self)})


@dataclass(frozen=True)
class Point:
    """Parameters of groups, in the coordinates of `Counts`."""

    #: Shape (P, M).
    threshold: FloatArray
    #: Minus the natural logarithm of the width, shape (P, M).
    slope: FloatArray
    #: Shape (P,).
    guess: FloatArray
    lapse: FloatArray
    eta: FloatArray

    def take(self, index: Index) -> Point:
        """Those groups."""
        return Point(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def put(self, index: Index, other: Point) -> None:
        """Overwrite those groups."""
        for f in fields(self):
            getattr(self, f.name)[index] = getattr(other, f.name)

    def copy(self) -> Point:
        """One that can be written to."""
        return Point(**{f.name: np.array(getattr(self, f.name)) for f in fields(self)})


def join(points: list[Point]) -> Point:
    """Groups of several points, one after another."""
    return Point(**{f.name: np.concatenate([getattr(p, f.name) for p in points]) for f in fields(Point)})
