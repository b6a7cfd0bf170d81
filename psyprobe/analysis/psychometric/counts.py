"""Arrange contrasts and answers in groups of curves that have one guess and one lapse rate.

Answers are checked, levels sorted, equal levels merged, axes put in order. Arrays are of P groups
of M curves at L levels (M = 1: nothing is shared).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric.sigmoids import broadcast_floats
from psyprobe.errors import InputError

Index: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """Arrays, and objects that hold such arrays, whose first axis is groups."""

    def __getitem__(self, index: Index | BoolArray) -> Self:
        """Select groups."""
        return self.take(np.flatnonzero(index) if index.dtype == bool else index)

    def take(self, index: Index | BoolArray, axis: int = 0) -> Self:
        """Select groups of curves by index."""
        return type(self)(
            **{name: values.take(index, axis) for name, values in vars(self).items()}
        )

    def __setitem__(self, index: Index | BoolArray, other: Self) -> None:
        """Overwrite groups by those of another object."""
        for name, values in vars(self).items():
            values[index] = getattr(other, name)

    def copy(self) -> Self:
        """Copy the groups into arrays that can be written to."""
        return type(self)(
            **{name: values.copy() for name, values in vars(self).items()}
        )


@dataclass(frozen=True)
class Counts(Groups):
    """Counted answers by group, curve and level."""

    #: log10 contrast, moved and scaled so that each curve's tested range is -0.5 to 0.5, shape
    #: (P, M, L).
    x: FloatArray
    #: Number of yes and number of trials; trials of 0 mark a missing level, shape (P, M, L).
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


@dataclass(frozen=True)
class Point(Groups):
    """Parameters of groups, in the coordinates of `Counts`."""

    #: Shape (P, M).
    threshold: FloatArray
    #: Minus the natural logarithm of the width, shape (P, M).
    slope: FloatArray
    #: Rates and overdispersion, shape (P,).
    guess: FloatArray
    lapse: FloatArray
    eta: FloatArray

    def within(self, lower: Point, upper: Point) -> Point:
        """Clip parameters to their bounds, but for overdispersion."""
        names = ("threshold", "slope", "guess", "lapse")
        # `numpy.clip` takes three times as long.
        clipped = {
            name: np.minimum(
                np.maximum(getattr(self, name), getattr(lower, name)),
                getattr(upper, name),
            )
            for name in names
        }
        return replace(self, **clipped)


def concatenate_points(points: Sequence[Point]) -> Point:
    """Concatenate the groups of several points of the search."""
    return Point(
        *map(
            np.concatenate,
            zip(*(vars(point).values() for point in points), strict=True),
        )
    )


@dataclass(frozen=True)
class Curves:
    """Answers of a batch of curves in their physical units, arranged in groups."""

    #: log10 contrast, rising; levels without trials stand last and repeat the highest, shape
    #: (G, M, L).
    x: FloatArray
    #: Number of yes and number of trials; trials of 0 mark a missing level, shape (G, M, L).
    yes: FloatArray
    trials: FloatArray
    #: Answers to blanks, shape (G, M).
    catch_yes: FloatArray
    catch_trials: FloatArray
    #: Axes of the batch along which curves share rates, and the shape of the batch with them last.
    shared: tuple[int, ...]
    shape: tuple[int, ...]

    def ungroup(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Reshape values by group and curve, (G, M), to the shape of the batch."""
        places = range(-len(self.shared), 0)
        return np.moveaxis(values.reshape(self.shape), places, self.shared)

    def scaled(self, blanks: bool) -> Counts:
        """Scale levels to the coordinates of the fit; without `blanks`, leave catch trials out."""
        tested = self.trials > 0
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in tested_range(self))
        scale = np.where(high > low, high - low, 1.0)
        centre = 0.5 * (low + high)
        x = np.where(tested, (self.x - centre[..., None]) / scale[..., None], 0.0)
        pair_tested = tested[..., 1:] & tested[..., :-1]
        spacing = lowest(np.diff(x, axis=-1), pair_tested)
        return Counts(
            x=x,
            yes=self.yes,
            trials=self.trials,
            catch_yes=blanks * self.catch_yes.sum(axis=-1),
            catch_trials=blanks * self.catch_trials.sum(axis=-1),
            centre=centre,
            scale=scale,
            spacing=np.where(np.isfinite(spacing), spacing, 0.0),
        )


def tested_range(counts: Counts | Curves) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and highest tested level of each curve; infinite without any."""
    tested = counts.trials > 0
    return lowest(counts.x, tested), highest(counts.x, tested)


def lowest(values: FloatArray, mask: BoolArray) -> FloatArray:
    """Find the lowest value along the last axis where a mask is true; infinite without any."""
    return np.asarray(np.min(values, axis=-1, initial=np.inf, where=mask))


def highest(values: FloatArray, mask: BoolArray) -> FloatArray:
    """Find the highest value along the last axis where a mask is true; infinite without any."""
    return np.asarray(np.max(values, axis=-1, initial=-np.inf, where=mask))


def pick(values: FloatArray, index: Index) -> FloatArray:
    """Select the value at an index of the last axis."""
    return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])


def read_curves(
    contrast: npt.ArrayLike,
    yes: npt.ArrayLike,
    trials: npt.ArrayLike,
    shared: tuple[int, ...] = (),
) -> Curves:
    """Check counted answers and arrange the curves in groups that share rates.

    Parameters
    ----------
    contrast, yes, trials : array_like of float, shape (..., L)
        Broadcast against one another; the last axis is levels.
    shared : tuple of int, optional
        Axes of the batch (the shape without levels) along which curves form one group.

    Raises
    ------
    InputError
        If shapes do not broadcast, a value is not finite, a contrast or a count is negative, more
        said yes than were asked, or an axis does not exist or comes twice.
    """
    columns = _broadcast(contrast, yes, trials)
    _check_values(*columns)
    batch = columns[0].shape[:-1]
    if columns[0].shape[-1] == 0:
        columns = tuple(np.full((*batch, 1), fill) for fill in (1.0, 0.0, 0.0))
    axes = _shared_axes(batch, shared)
    places = range(-1 - len(axes), -1)
    moved = [np.moveaxis(column, axes, places) for column in columns]
    *shape, levels = moved[0].shape
    own = len(batch) - len(axes)
    group_shape = (math.prod(shape[:own]), math.prod(shape[own:]), levels)
    contrast, yes, trials = (column.reshape(group_shape) for column in moved)
    blank = contrast == 0
    used = (trials > 0) & ~blank
    with np.errstate(divide="ignore"):
        x = np.where(used, np.log10(contrast), np.inf)
    return Curves(
        *_merge_equal_levels(x, np.where(used, yes, 0.0), np.where(used, trials, 0.0)),
        catch_yes=np.where(blank, yes, 0.0).sum(axis=-1),
        catch_trials=np.where(blank, trials, 0.0).sum(axis=-1),
        shared=axes,
        shape=tuple(shape),
    )


def _broadcast(*columns: npt.ArrayLike) -> tuple[FloatArray, ...]:
    """Broadcast contrast, yes and trials to one shape whose last axis is levels."""
    try:
        broadcast = broadcast_floats(*columns)
    except ValueError:
        shapes = ", ".join(str(np.shape(column)) for column in columns)
        raise InputError(
            f"contrast, yes and trials of shapes {shapes} do not broadcast; the last axis of "
            "each is levels"
        ) from None
    if broadcast[0].ndim == 0:
        raise InputError(
            "contrast, yes and trials are single numbers; give arrays whose last axis is levels"
        )
    return broadcast


def _check_values(contrast: FloatArray, yes: FloatArray, trials: FloatArray) -> None:
    """Refuse contrasts or counts that are negative or not finite, and more yes than trials."""
    columns = {"contrast": contrast, "yes": yes, "trials": trials}
    for name, values in columns.items():
        finite = np.isfinite(values)
        if not finite.all():
            remedy = "mark a level that was not tested by trials = 0 and any contrast"
            raise InputError(
                f"{name} has the value {values[~finite].flat[0]:g}, which is not a finite number; "
                f"{remedy}"
            )
        if values.size and values.min() < 0:
            linear = "contrast is linear, above 0, or 0 for a catch trial"
            allowed = linear if name == "contrast" else "counts start at 0"
            raise InputError(f"{name} {values.min():g} is negative; {allowed}")
    if np.any(yes > trials):
        worst = int(np.argmax(yes - trials))
        raise InputError(
            f"{yes.flat[worst]:g} yes of {trials.flat[worst]:g} trials: give the number that "
            "said yes and the number asked"
        )


def _shared_axes(batch: tuple[int, ...], shared: tuple[int, ...]) -> tuple[int, ...]:
    """Convert negative axes to positive ones, refusing any that does not exist or comes twice."""
    for axis in shared:
        if not -len(batch) <= axis < len(batch):
            raise InputError(
                f"shared axis {axis} is not among the {len(batch)} axes of the batch {batch} "
                "(levels left out)"
            )
    axes = tuple(axis % len(batch) for axis in shared)
    if len(set(axes)) < len(axes):
        raise InputError(f"shared axes {tuple(shared)} name one axis twice")
    return axes


def _merge_equal_levels(
    x: FloatArray,
    yes: FloatArray,
    trials: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sort levels and add up those of equal contrast; missing ones go last."""
    order = np.argsort(x, axis=-1, kind="stable")
    x, yes, trials = (
        np.take_along_axis(values, order, axis=-1) for values in (x, yes, trials)
    )
    is_new = np.ones(x.shape, dtype=bool)
    is_new[..., 1:] = x[..., 1:] != x[..., :-1]
    column = np.cumsum(is_new, axis=-1) - 1
    levels = int(np.where(trials > 0, column + 1, 0).max(initial=1))
    group, curve, _ = np.ogrid[tuple(map(slice, x.shape))]
    cells = (group, curve, column)
    merged_x = np.full(x.shape, np.inf)
    merged_x[cells] = x
    merged_yes = np.zeros(x.shape)
    np.add.at(merged_yes, cells, yes)
    merged_trials = np.zeros(x.shape)
    np.add.at(merged_trials, cells, trials)
    present = np.isfinite(merged_x)
    last = highest(merged_x, present)[..., None]
    filled_x = np.where(present, merged_x, np.where(np.isfinite(last), last, 0.0))
    return filled_x[..., :levels], merged_yes[..., :levels], merged_trials[..., :levels]
