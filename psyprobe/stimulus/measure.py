"""Measuring: from the pixels of an image to the rows of its certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate import Certificate, Row, Sheet, worst_of
from psyprobe.stimulus.estimate import to_float64
from psyprobe.stimulus.planes import observer_of
from psyprobe.stimulus.tolerances import precision_of

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification


def certificate(rows: tuple[Row, ...], spec: Specification, precision: str) -> Certificate:
    """Rows with the stimulus that they are about."""
    return Certificate(rows, repr(spec), precision, int(np.prod(spec.batch, dtype=int)))


def certify(
    pixels: Array, space: str, spec: Specification, *, precision: str | None = None, display: Display | None = None
) -> tuple[Row, ...]:
    """Rows for pixels of any origin that were meant to be what a specification says.

    Parameters
    ----------
    pixels : array, shape (..., H, W) or (..., H, W, 3)
        In the units of `space`; leading dimensions as the batch of the specification.
    space : {"luminance", "lms", "rgb"}
        cd/m²; LMS of the specification's observer; or linear RGB light in cd/m² (of sRGB primaries without a display).
    spec : Specification
        What was asked.
    precision : str, optional
        Column of the tolerance table; by default that of the dtype of the pixels.
    display : Display, optional
        As in `Stimulus.measure`.
    """
    precision = precision or precision_of(pixels)
    rows = image_rows(pixels, space, spec, precision, display)
    if display is not None:
        rows += _display_rows(pixels, space, spec, display)
    return rows


def image_rows(
    pixels: Array,
    space: str,
    spec: Specification,
    precision: str,
    display: Display | None,
    *,
    shown: float = 0.0,
    refined: bool = True,
) -> tuple[Row, ...]:
    """Rows of every image of a batch, folded to the worst of each quantity.

    Parameters
    ----------
    pixels, space, spec, precision, display
        As in `certify`.
    shown, refined
        As in `Sheet`. What was shown is measured in levels and contrasts only: the rest was known before.
    """
    images = to_float64(pixels)
    axes = 2 if space == "luminance" else 3
    if images.shape[-axes:][:2] != spec.shape or images.ndim < axes or (axes == 3 and images.shape[-1] != 3):
        wanted = (*spec.batch, *spec.shape, *((3,) if axes == 3 else ()))
        raise InputError(f"the image has shape {images.shape}; {spec!r} in {space} has shape {wanted}")
    if images.shape[:-axes] != spec.batch:
        raise InputError(f"{images.shape[:-axes]} images do not go with {spec.batch} specifications")
    flat = images.reshape(-1, *images.shape[-axes:])
    rows: list[Row] = []
    for index, (image, one) in enumerate(zip(flat, spec.singles(), strict=True)):
        sheet = Sheet(one.luminance, precision, shown, refined and not shown)
        found = one.rows(image, space, sheet, display)
        rows += found if len(flat) == 1 else [replace(row, image=index) for row in found]
    return worst_of(rows)


#: What is worth measuring again on the light that a display shows.
_SHOWN = ("background", "mean luminance", "contrast", "rms contrast")


def _display_rows(pixels: Array, space: str, spec: Specification, display: Display) -> tuple[Row, ...]:
    observer = observer_of(spec)
    gamut = display.gamut(pixels, space, observer)
    counted = f"count of {gamut.values} values outside {display.floor:.6g} to {display.ceiling:.6g} cd/m²"
    rows = [
        Row("values outside gamut", "", 0.0, float(gamut.outside), 0.0, False, counted),
        Row("gamut margin", "", None, gamut.margin, None, False, "distance to the nearer limit over the range"),
    ]
    drive = display.encode(pixels, space=space, observer=observer, clip=True)
    grey = space == "luminance"
    values = to_float64(drive[..., 0] if grey else drive)
    light = np.asarray(display.decode(values))
    strain = _strain(display, float(values.min()), float(values.max()))
    shown = image_rows(light, "luminance" if grey else "rgb", spec, "float32", display, shown=strain)
    for row in shown:
        if row.quantity in _SHOWN:
            how = f"{row.estimator}, after encoding to float32 drive and decoding"
            rows.append(replace(row, quantity=f"shown {row.quantity}", estimator=how))
    return tuple(rows)


def _strain(display: Display, low: float, high: float) -> float:
    """How much a relative change of drive changes the light, over the 4 that sRGB stays below; at least 1."""
    drive = np.linspace(max(low, 1e-3), max(high, 2e-3), 513)
    light = np.asarray(display.decode(drive))
    gain = np.asarray(display.decode(drive * (1 + 1e-6))) / light - 1
    return float(max(1.0, gain.max() / 1e-6 / 4))
