"""Assertions that drawing again, or in a batch, gives the same image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.stimulus import Specification, specification_from_dict
from psyprobe.stimulus.tolerances import precision_of, tolerance
from psyprobe.testing.assertions import CalibrationError, to_numpy


def assert_reproducible(draw: Specification | Callable[[], Array]) -> None:
    """Assert that drawing twice gives the same bits, whatever was drawn or seeded in between.

    Parameters
    ----------
    draw : Specification or callable
        A specification, which is also written to a dictionary and read back; or a function without arguments that
        returns an array.

    Examples
    --------
    >>> import numpy as np
    >>> assert_reproducible(lambda: np.random.default_rng(1).normal(size=(8, 8)))
    """
    if isinstance(draw, Specification):
        again = specification_from_dict(draw.to_dict())
        if again != draw or again.digest != draw.digest:
            raise CalibrationError(f"{draw!r} read back from its dictionary is {again!r}")
        first, second, name = _drawn(draw), _drawn(again), repr(draw)
    else:
        first, second, name = to_numpy(draw()), to_numpy(draw()), getattr(draw, "__name__", repr(draw))
    if first.shape != second.shape or not np.array_equal(first, second):
        change = float(np.abs(first - second).max()) if first.shape == second.shape else float("inf")
        raise CalibrationError(
            f"{name} drawn twice differs by up to {change:.3g}. Likely cause: a random generator without its own seed. "
            "Give each image a generator of its own, seeded by a number that is kept with it."
        )


def assert_batch_equals_loop(
    draw: Specification | Callable[..., Array], parameters: Mapping[str, Iterable[float]] | None = None
) -> None:
    """Assert that a batch holds the images that are drawn one by one.

    Parameters
    ----------
    draw : Specification or callable
        A specification with arrays in it; or a function that takes `parameters` by name, arrays or single numbers.
    parameters : mapping of str to sequence, optional
        For a function: parameters of equal length.

    Examples
    --------
    >>> import numpy as np
    >>> def ramp(slope):
    ...     return np.asarray(slope)[..., None, None] * np.arange(4.0) * np.ones((4, 1))
    >>> assert_batch_equals_loop(ramp, {"slope": [1.0, 2.0]})
    """
    if isinstance(draw, Specification):
        batch = _drawn(draw)
        images = [_drawn(one) for one in draw.singles()]
        batch = batch.reshape(len(images), *images[0].shape)
    else:
        values = {name: np.asarray(list(value)) for name, value in (parameters or {}).items()}
        if not values:
            raise InputError("a function needs parameters to draw a batch of: a mapping of names to sequences")
        batch = to_numpy(draw(**values))
        images = [to_numpy(draw(**dict(zip(values, row, strict=True)))) for row in zip(*values.values(), strict=True)]
    allowed = tolerance("batch", precision_of(batch))
    for index, image in enumerate(images):
        scale = float(np.abs(image).max()) or 1.0
        change = float(np.abs(batch[index] - image).max()) / scale
        if change > allowed:
            raise CalibrationError(
                f"image {index} of the batch differs from the one drawn alone by {change:.3g} of its largest value; "
                f"tolerance {allowed:.2g}. Likely cause: parameters or seeds that depend on the place in the batch."
            )


def _drawn(spec: Specification) -> Any:
    return to_numpy(spec.draw().pixels)
