"""Rows of a certificate for images of any kind of stimulus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.colour import direction_vector
from psyprobe.light.display import Display
from psyprobe.stimulus import estimate, promises
from psyprobe.stimulus.annulus import AnnulusNoise
from psyprobe.stimulus.band_noise import Noise
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.field import Disc, Uniform
from psyprobe.stimulus.masked_gabor import MaskedGabor
from psyprobe.stimulus.measure import Row, worst_of
from psyprobe.stimulus.planes import luminance_of, planes_of, to_lms
from psyprobe.stimulus.promises import Sheet
from psyprobe.stimulus.specification import Modulation, Specification
from psyprobe.stimulus.superposition import Sum
from psyprobe.stimulus.wave import Gabor, Grating


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
        As for `psyprobe.stimulus.measure.certify`.
    shown : float
        If the pixels went through float32 drive values: how many times more these round light than those of sRGB do.
        Only levels and contrasts are measured then: what else there is to know was known before.
    refined : bool
        Whether to look for where a wave really lies.
    """
    images = estimate.to_float64(pixels)
    axes = 2 if space == "luminance" else 3
    if images.shape[-axes:][:2] != spec.shape or images.ndim < axes or (axes == 3 and images.shape[-1] != 3):
        wanted = (*spec.batch, *spec.shape, *((3,) if axes == 3 else ()))
        raise InputError(f"the image has shape {images.shape}; {spec!r} in {space} has shape {wanted}")
    if images.shape[:-axes] != spec.batch:
        raise InputError(f"{images.shape[:-axes]} images do not go with {spec.batch} specifications")
    flat = images.reshape(-1, *images.shape[-axes:])
    rows: list[Row] = []
    for index, (image, one) in enumerate(zip(flat, single_specifications(spec), strict=True)):
        found = _rows_of(image, space, one, Sheet(one.luminance, precision, shown, refined and not shown), display)
        rows += found if len(flat) == 1 else [replace(row, image=index) for row in found]
    return worst_of(rows)


def single_specifications(spec: Specification) -> Iterator[Specification]:
    """The specification of each image of a batch, in order.

    Examples
    --------
    >>> [one.contrast for one in single_specifications(Gabor(frequency=4, contrast=[0.1, 0.2]))]
    [0.1, 0.2]
    """
    batch = spec.batch
    for index in np.ndindex(*batch):
        yield _single(spec, batch, index)


def _single(spec: Specification, batch: tuple[int, ...], index: tuple[int, ...]) -> Specification:
    if not batch:
        return spec
    if isinstance(spec, Sum):
        return Sum(parts=tuple(_single(part, batch, index) for part in spec.parts))
    values: dict[str, Any] = {n: float(np.broadcast_to(getattr(spec, n), batch)[index]) for n in spec.numeric}
    return replace(spec, **values)


def _rows_of(image: Float64, space: str, spec: Specification, sheet: Sheet, display: Display | None) -> list[Row]:
    if isinstance(spec, MaskedGabor):
        spec = spec.as_sum()
    if isinstance(spec, Sum):
        return _sum_rows(image, space, spec, sheet, display)
    if not isinstance(spec, Modulation | Uniform):
        return promises.plain_rows(image if space == "luminance" else luminance_of(image, space, spec, display), sheet)
    planes = planes_of(image, space, spec, display)
    if isinstance(spec, Uniform):
        return promises.uniform_rows(planes, spec, sheet)
    if isinstance(spec, Gabor | Grating):
        promises.wave_rows(planes, spec, sheet)
    elif isinstance(spec, Noise | AnnulusNoise):
        promises.noise_rows(planes, spec, sheet)
    elif isinstance(spec, Disc):
        promises.disc_rows(planes, spec, sheet)
    else:
        return promises.plain_rows(planes.light, sheet)
    if planes.cones is not None and not sheet.shown:
        promises.cone_rows(planes, spec, sheet)
    return sheet.rows


def _sum_rows(image: Float64, space: str, spec: Sum, sheet: Sheet, display: Display | None) -> list[Row]:
    """Each part on its own, the others taken away."""
    changes = [np.asarray(part.modulation("float64", None)) for part in spec.parts]
    if space == "luminance":
        layers = [spec.luminance * change for change in changes]
    else:
        image = to_lms(image, space, spec.parts[0], display)
        vectors = [part.background_lms * direction_vector(part.direction, part.background_lms) for part in spec.parts]
        layers = [spec.luminance * change[..., None] * vector for change, vector in zip(changes, vectors, strict=True)]
        space = "lms"
    rows = [
        Row("peak luminance", "cd/m²", None, float(np.max(_light(image, space, spec))), None, False, "largest pixel")
    ]
    for k, part in enumerate(spec.parts):
        others = sum((layer for j, layer in enumerate(layers) if j != k), np.zeros(()))
        part_sheet = Sheet(part.luminance, sheet.precision, sheet.shown, sheet.refined)
        for row in _rows_of(image - others, space, part, part_sheet, display):
            rows.append(replace(row, quantity=f"part {k + 1} {row.quantity}"))
    return rows


def _light(image: Float64, space: str, spec: Sum) -> Float64:
    return image if space == "luminance" else luminance_of(image, space, spec, None)
