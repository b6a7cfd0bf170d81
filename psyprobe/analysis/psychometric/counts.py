"""From contrasts and answers as given to groups of curves, which have one guess and one lapse rate
in common.

Answers are checked, sorted, equal levels merged, axes put in order. Arrays are of P groups of M
curves at L levels (M = 1: nothing is shared).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

Index: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """Arrays whose first axis is groups."""

    def take(self, index: Index) -> Self:
        """Those groups."""
        return type(self)(
            **{name: values.take(index, axis=0) for name, values in vars(self).items()}
        )

    def put(self, index: Index, other: Self) -> None:
        """Overwrite those groups."""
        for name, values in vars(self).items():
            values[index] = getattr(other, name)


@dataclass(frozen=True)
class Counts(Groups):
    """What was answered, by group, curve and level."""

    #: log10 contrast, moved and scaled so that each curve's tested range is -0.5 to 0.5, shape (P,
    #: M, L).
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


@dataclass(frozen=True)
class Point(Groups):
    """Parameters of groups, in the coordinates of `Counts`."""

    #: Shape (P, M).
    threshold: FloatArray
    #: Minus the natural logarithm of the width, shape (P, M).
    slope: FloatArray
    #: Shape (P,).
    guess: FloatArray
    lapse: FloatArray
    eta: FloatArray

    def within(self, lower: Point, upper: Point) -> Point:
        """The nearest point between bounds; `eta` has none."""
        names = ("threshold", "slope", "guess", "lapse")
        clipped = {
            name: np.minimum(
                np.maximum(getattr(self, name), getattr(lower, name)), getattr(upper, name)
            )
            for name in names
        }
        return Point(**clipped, eta=self.eta)

    def copy(self) -> Point:
        """One that can be written to."""
        return Point(**{name: np.array(values) for name, values in vars(self).items()})


def joined(points: Sequence[Point]) -> Point:
    """Groups of several points, one after another."""
    return Point(
        **{f.name: np.concatenate([getattr(p, f.name) for p in points]) for f in fields(Point)}
    )


@dataclass(frozen=True)
class Curves:
    """Answers of a batch of curves in their physical units, arranged in groups."""

    #: log10 contrast, rising; levels without trials stand last and repeat the highest, shape (G, M,
    #: L).
    x: FloatArray
    #: trials of 0 mark a level that is not there, shape (G, M, L).
    yes: FloatArray
    trials: FloatArray
    #: Answers to blanks, shape (G, M).
    catch_yes: FloatArray
    catch_trials: FloatArray
    #: How many of the levels given had no trials, shape (G, M).
    dropped: npt.NDArray[np.int64]
    #: Shape of the batch.
    batch: tuple[int, ...]
    #: Axes of the batch in the order of groups: those that share nothing, then those that share.
    order: tuple[int, ...]

    def ungroup(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Values by group and curve, (G, M), in the shape of the batch."""
        shape = tuple(self.batch[axis] for axis in self.order)
        return np.transpose(
            values.reshape(shape), np.argsort(np.asarray(self.order, dtype=int)).tolist()
        )

    def scaled(self, blanks: bool) -> Counts:
        """In the coordinates of the fit; `blanks` says whether catch trials tell anything."""
        present = self.trials > 0
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in tested_range(self))
        scale = np.where(high > low, high - low, 1.0)
        centre = 0.5 * (low + high)
        x = np.where(present, (self.x - centre[..., None]) / scale[..., None], 0.0)
        gaps = np.diff(x, axis=-1)
        both = present[..., 1:] & present[..., :-1]
        spacing = np.where(both, gaps, np.inf).min(axis=-1, initial=np.inf)
        spacing = np.where(np.isfinite(spacing), spacing, 0.0)
        told = float(blanks)
        catch_yes = told * self.catch_yes.sum(axis=-1)
        catch_trials = told * self.catch_trials.sum(axis=-1)
        return Counts(x, self.yes, self.trials, catch_yes, catch_trials, centre, scale, spacing)


def tested_range(counts: Counts | Curves) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest level of each curve; infinite without any."""
    present = counts.trials > 0
    low = np.where(present, counts.x, np.inf).min(axis=-1, initial=np.inf)
    return low, np.where(present, counts.x, -np.inf).max(axis=-1, initial=-np.inf)


def pick(values: FloatArray, index: Index) -> FloatArray:
    """The value at an index of the last axis."""
    return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])


def read_curves(
    contrast: npt.ArrayLike, yes: npt.ArrayLike, trials: npt.ArrayLike, shared: tuple[int, ...] = ()
) -> Curves:
    """Check answers and arrange them in groups.

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
    arrays = [np.asarray(v, dtype=np.float64) for v in (contrast, yes, trials)]
    try:
        c, k, n = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InputError(
            f"contrast, yes and trials of shapes {shapes} do not broadcast; the last axis of "
            "each is levels"
        ) from None
    if c.ndim == 0:
        raise InputError(
            "contrast, yes and trials are single numbers; give arrays whose last axis is levels"
        )
    _check(c, k, n)
    if c.shape[-1] == 0:
        c, k, n = (np.full((*c.shape[:-1], 1), fill) for fill in (1.0, 0.0, 0.0))
    batch = c.shape[:-1]
    apart, together = _axes(batch, shared)
    order = (*apart, *together)
    groups, size = (
        int(np.prod([batch[axis] for axis in axes], dtype=int)) for axes in (apart, together)
    )
    c, k, n = (
        np.transpose(v, (*order, len(batch))).reshape(groups, size, v.shape[-1]) for v in (c, k, n)
    )
    blank = c == 0
    used = (n > 0) & ~blank
    with np.errstate(divide="ignore"):
        x = np.where(used, np.log10(c), np.inf)
    place = np.argsort(x, axis=-1, kind="stable")
    levels = (
        np.take_along_axis(v, place, axis=-1)
        for v in (x, np.where(used, k, 0.0), np.where(used, n, 0.0))
    )
    catch_yes, catch_trials = (np.where(blank, v, 0.0).sum(axis=-1) for v in (k, n))
    return Curves(
        *_merged(*levels), catch_yes, catch_trials, ((n == 0) & ~blank).sum(axis=-1), batch, order
    )


def _check(contrast: FloatArray, yes: FloatArray, trials: FloatArray) -> None:
    for name, values in (("contrast", contrast), ("yes", yes), ("trials", trials)):
        if not np.all(np.isfinite(values)):
            bad = values[~np.isfinite(values)].flat[0]
            remedy = "mark a level that was not tested by trials = 0 and any contrast"
            raise InputError(
                f"{name} has the value {bad:g}, which is not a finite number; {remedy}"
            )
        if values.size and values.min() < 0:
            linear = "contrast is linear, above 0, or 0 for a catch trial"
            allowed = linear if name == "contrast" else "counts start at 0"
            raise InputError(f"{name} {values.min():g} is negative; {allowed}")
    if np.any(yes > trials):
        at = int(np.argmax(yes - trials))
        raise InputError(
            f"{yes.flat[at]:g} yes of {trials.flat[at]:g} trials: give the number that said yes "
            "and the number asked"
        )


def _axes(
    batch: tuple[int, ...], shared: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    together = []
    for axis in shared:
        if not -len(batch) <= axis < len(batch):
            raise InputError(
                f"shared axis {axis} is not among the {len(batch)} axes of the batch {batch} "
                "(levels left out)"
            )
        together.append(axis % len(batch))
    if len(set(together)) < len(together):
        raise InputError(f"shared axes {tuple(shared)} name one axis twice")
    return tuple(axis for axis in range(len(batch)) if axis not in together), tuple(together)


def _merged(
    x: FloatArray, yes: FloatArray, trials: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up neighbours of equal x; absent levels go last and repeat the highest x."""
    new = np.ones(x.shape, dtype=bool)
    new[..., 1:] = x[..., 1:] != x[..., :-1]
    place = np.cumsum(new, axis=-1) - 1
    levels = int(np.where(trials > 0, place + 1, 0).max(initial=1))
    flat_place = place.reshape(-1, x.shape[-1])
    rows = np.arange(len(flat_place))[:, None]
    out = []
    for values in (yes, trials):
        total = np.zeros((len(flat_place), x.shape[-1] + 1))
        np.add.at(total, (rows, flat_place), values.reshape(flat_place.shape))
        out.append(total[:, :levels].reshape(*x.shape[:-1], levels))
    where = np.full((len(flat_place), x.shape[-1] + 1), np.inf)
    where[rows, flat_place] = x.reshape(flat_place.shape)
    merged = where[:, :levels].reshape(*x.shape[:-1], levels)
    highest = np.where(np.isfinite(merged), merged, -np.inf).max(axis=-1, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    return np.where(np.isfinite(merged), merged, highest), out[0], out[1]
