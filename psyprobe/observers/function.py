"""Any function of images as an observer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.encoders.images import check_images, checked_size
from psyprobe.observers.protocol import Card


class CallableObserver:
    """A function from images to features, as an observer.

    Parameters
    ----------
    function : callable
        Takes display drive, float32, shape (N, H, W, 3), and returns an array (N, ...), or a mapping from name
        to such arrays.
    name : str
        What to call it in results.
    version : str
        Change it when the function changes: stored responses are told apart by name and version, since a function
        cannot be seen through.
    features : tuple of str
        The names of what it returns, where it returns a mapping.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px of the images it takes; any size if not given.

    Examples
    --------
    >>> mean = CallableObserver(lambda images: images.mean(axis=(1, 2)), "mean colour", "1")
    >>> mean.features(np.full((2, 8, 8, 3), 0.5, "float32"))["output"]
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]], dtype=float32)
    """

    def __init__(
        self,
        function: Callable[[FloatArray], Any],
        name: str,
        version: str,
        *,
        features: tuple[str, ...] = ("output",),
        input_size: int | tuple[int, int] | None = None,
    ) -> None:
        self._function = function
        self.card = Card(
            name,
            "features",
            tuple(features),
            input_size=None if input_size is None else checked_size(input_size),
            weights="inside the function",
            options={"version": version},
        )

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """What the function makes of the images.

        Parameters
        ----------
        images : ndarray, shape (N, H, W, 3)
            Display drive, float.

        Returns
        -------
        dict of str to ndarray, shape (N, D)
            One array a name in ``card.features``.

        Raises
        ------
        InputError
            If the images are of another size, or the function returns something else than its card says.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        checked = np.asarray(check_images(images, card.name, input_size=card.input_size), dtype=np.float32)
        returned = self._function(checked)
        named = returned if isinstance(returned, Mapping) else {card.features[0]: returned}
        if set(named) != set(card.features):
            raise InputError(f"{card.name} returned {sorted(named)} and its card says {sorted(card.features)}")
        return {name: self._rows(name, named[name], len(checked)) for name in card.features}

    def _rows(self, name: str, values: Any, count: int) -> FloatArray:
        rows = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        if rows.ndim < 2 or len(rows) != count or rows.dtype.kind != "f":
            raise InputError(
                f"{self.card.name}: {name!r} has shape {rows.shape} and format {rows.dtype} for {count} images; "
                "wanted is one row of floating-point numbers an image"
            )
        if not np.isfinite(rows).all():
            raise PsyprobeError(f"{self.card.name}: the feature {name!r} holds NaN or infinity")
        return rows.reshape(count, -1)
