"""Draw a strip of stimuli, as they are sent to the display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.analysis.score import percent
from psyprobe.errors import InputError
from psyprobe.plotting.axes import panels_in


def stimulus_strip(
    images: Sequence[ArrayLike] | FloatArray,
    *,
    ppd: float,
    labels: Sequence[str] | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Draw images side by side, pixel for pixel, with axes in degrees of visual angle.

    Parameters
    ----------
    images : array_like of float, shape (N, H, W) or (N, H, W, 3), or a sequence of (H, W) or (H, W,
    3)
        Display drive values in [0, 1], see `Display.encode`. A viewer's screen stands in
        for the display, so that the preview shows the pattern and not the calibrated light.
    ppd : float
        Pixels per degree.
    labels : sequence of str, optional
        A title for each image.
    figure : matplotlib.figure.Figure, optional
        Where to draw; without it, a new pyplot figure of fitting size.

    Returns
    -------
    matplotlib.figure.Figure
        With one pair of axes for each image. Drive values outside [0, 1], which only an extended
        display shows, are clipped in the preview, and the title says in how many pixels.

    Raises
    ------
    InputError
        An image has another shape or values that are not finite, `ppd` is not above 0, or labels do
        not fit.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> x = np.linspace(-1, 1, 64)
    >>> stripes = 0.5 + 0.5 * np.cos(2 * np.pi * 2 * x) * np.ones((64, 1))
    >>> labels = ["vertical", "horizontal"]
    >>> strip = stimulus_strip([stripes, stripes.T], ppd=32, labels=labels, figure=Figure())
    >>> [ax.get_title() for ax in strip.axes]
    ['vertical', 'horizontal']
    """
    arrays = [np.asarray(image, dtype=np.float64) for image in images]
    for array in arrays:
        if array.shape[2:] not in ((), (3,)) or array.ndim < 2 or not array.size:
            raise InputError(
                f"an image of shape {array.shape} cannot be drawn; give (H, W) or (H, W, 3)"
            )
        if not np.isfinite(array).all():
            raise InputError(
                "an image holds values that are not finite; give display drive values in [0, 1]"
            )
    if not arrays:
        raise InputError("there are no images to draw; give at least one")
    if not (np.isfinite(ppd) and ppd > 0):
        raise InputError(f"ppd {ppd:g} must be above 0 pixels per degree")
    if labels is not None and len(labels) != len(arrays):
        raise InputError(
            f"{len(labels)} labels do not fit {len(arrays)} images; give one for each"
        )
    columns = len(arrays)
    canvas, panels = panels_in(
        figure, columns, columns, panel_size=(2.1, 2.6), margin=(0.5, 0)
    )
    for i, (ax, array) in enumerate(zip(panels, arrays, strict=True)):
        half_height, half_width = (pixels / 2 / ppd for pixels in array.shape[:2])
        outside = float(((array < 0) | (array > 1)).mean())
        ax.imshow(
            array.clip(0, 1),
            cmap="gray",
            vmin=0,
            vmax=1,
            interpolation="nearest",
            extent=(-half_width, half_width, -half_height, half_height),
        )
        lines = [] if labels is None else [labels[i]]
        if outside:
            lines.append(f"{percent(outside, 2)} clipped here")
        ax.set_title("\n".join(lines), fontsize="small")
        ax.set(xlabel="x (deg)", ylabel="" if i else "y (deg)")
    return cast(Figure, canvas)
