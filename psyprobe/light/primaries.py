"""Chromaticities of a display's primaries and white: by name, or as a meter read them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import chromaticity, white_xyz

#: A name, or measured (x, y) or (X, Y, Z) of red, green, blue and white.
Primaries: TypeAlias = str | tuple[tuple[float, ...], ...]

#: CIE 1931 chromaticities of red, green and blue of the default display.
SRGB_PRIMARIES = ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06))

#: XYZ in cd/m² of red, green and blue at full drive, of the display that Jorgvt/PerceptualTests
#: draws its stimuli for.
_PERCEPTUAL_TESTS_XYZ = (
    (69.1661, 39.0454, 3.3467),
    (52.4902, 115.8404, 12.67),
    (46.6052, 16.3118, 170.1090),
)


class Chromaticities(NamedTuple):
    """CIE 1931 (x, y) of a display's three primaries, and its white: (x, y) or a name."""

    primaries: tuple[tuple[float, ...], ...]
    white: tuple[float, ...] | str


def checked_primaries(value: Any) -> Primaries:
    """Check a display's primaries: a known name, or (x, y) of red, green, blue and white."""
    if isinstance(value, str):
        chromaticities(value)
        return value
    points = value
    is_sequence = isinstance(value, list | tuple | np.ndarray)
    if is_sequence and all(np.shape(point) == (3,) for point in value):
        points = _xy_of_xyz(value)
    if not is_sequence or len(points) != 4:
        raise InputError(
            f"display primaries are {repr(value)[:80]}; give a name, such as 'sRGB', or (x, y) of "
            "red, green, blue and white"
        )
    *guns, white = (chromaticity("primaries", point, 2) for point in points)
    columns = np.stack([white_xyz(gun) for gun in guns], axis=1)
    volume = abs(np.linalg.det(columns))
    is_flat = volume < 1e-6 * math.prod(np.linalg.norm(columns, axis=0))
    if is_flat or not (np.linalg.solve(columns, white_xyz(white)) > 0).all():
        raise InputError(
            f"display primaries {(*guns, white)} do not mix to their white; give (x, y) of red, "
            "green, blue and white, the last within the triangle of the others"
        )
    return (*guns, white)


def _xy_of_xyz(value: Any) -> list[tuple[float, float]]:
    """Convert XYZ of red, green, blue and perhaps white to chromaticities (x, y)."""
    lights = [chromaticity("primaries", light, 3) for light in value]
    if len(lights) == 3:
        lights.append(tuple(map(sum, zip(*lights, strict=True))))
    if not all(min(light) >= 0 < sum(light) for light in lights):
        raise InputError(
            f"display primaries are {repr(value)[:80]}; X, Y and Z of a light are not below 0"
        )
    return [(x / (x + y + z), y / (x + y + z)) for x, y, z in lights]


@cache
def chromaticities(primaries: Primaries) -> Chromaticities:
    """Look up the chromaticities of checked primaries; a name may be colour-science's."""
    if isinstance(primaries, tuple):
        return Chromaticities(primaries[:3], primaries[3])
    if primaries == "sRGB":
        return Chromaticities(SRGB_PRIMARIES, "D65")
    if primaries == "PerceptualTests":
        *guns, white = _xy_of_xyz(_PERCEPTUAL_TESTS_XYZ)
        return Chromaticities(tuple(guns), white)
    try:
        # colour-science changes how numpy prints arrays when it is imported, for everybody.
        with np.printoptions():
            import colour
    except ImportError:
        raise InputError(
            f"primaries {primaries!r} are looked up in colour-science, which is not installed; use "
            "'sRGB' or 'PerceptualTests', or pip install psyprobe[colour]"
        ) from None
    if primaries not in colour.RGB_COLOURSPACES:
        raise unknown_name(
            "primaries", primaries, ["PerceptualTests", *colour.RGB_COLOURSPACES]
        )
    space = colour.RGB_COLOURSPACES[primaries]
    x, y = space.whitepoint
    points = [(float(x), float(y)) for x, y in space.primaries]
    return Chromaticities(tuple(points), (float(x), float(y)))
