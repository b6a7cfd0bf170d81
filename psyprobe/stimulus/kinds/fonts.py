"""Outlines of the characters of a font file, without hinting."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from psyprobe._typing import AnyArray, FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus.coverage import Outline, area
from psyprobe.stimulus.kinds.image import Stamp

#: Size at which outlines are read: coordinates are then rounded to a 64th of 1/2000 of it.
_POINTS = 2000
#: Straight lines for a curve.
_CHORDS = 32
#: Codes of matplotlib's paths: a new contour, a line, curves of second and third degree.
_MOVE = 1
_LINE = 2
_QUADRATIC = 3
_CUBIC = 4


@lru_cache(maxsize=256)
def glyph_outlines(font: Stamp, character: str) -> tuple[Outline, ...]:
    """Return the outlines of a character, in fifths of the height of H, about its frame's middle.

    The frame is as wide as the character's advance, and as high as the font's H: all characters of
    a font stand on one line at one scale.

    Raises
    ------
    InputError
        If the file is no font, or has no such character, or no H.
    """
    height = max(outline.imag.max() for outline in _read(font, "H")[0])
    contours, advance = _read(font, character)
    unit = height / 5
    outlines = [(outline - advance / 2) / unit - 2.5j for outline in contours]
    # Whether outer contours run clockwise depends on the format.
    if area(outlines) < 0:
        outlines = [outline[::-1] for outline in outlines]
    return tuple(outlines)


@lru_cache(maxsize=256)
def _read(font: Stamp, character: str) -> tuple[list[Outline], float]:
    """Read contours, and how far the next character stands."""
    from matplotlib.ft2font import FT2Font, LoadFlags

    try:
        face = FT2Font(font.path)
        face.set_size(_POINTS, 72)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"font is {font.path!r}, which cannot be read as one ({error}); give a TrueType or "
            "OpenType file"
        ) from None
    if not face.get_char_index(ord(character)):
        raise InputError(
            f"the font {face.family_name!r} ({font.path}) has no {character!r}; give another text "
            "or font"
        )
    glyph = face.load_char(ord(character), flags=LoadFlags.NO_HINTING)
    contours = _flatten(*face.get_path())
    if not contours:
        raise InputError(f"{character!r} of the font {face.family_name!r} has no ink")
    return contours, glyph.linearHoriAdvance / 65536


def _flatten(vertices: FloatArray, codes: AnyArray) -> list[Outline]:
    """Make polygons of contours, each curve of so many chords."""
    points = vertices[:, 0] + 1j * vertices[:, 1]
    share = np.arange(1, _CHORDS + 1) / _CHORDS
    contours: list[list[complex]] = []
    index = 0
    while index < len(points):
        code = int(codes[index])
        if code == _MOVE:
            contours.append([complex(points[index])])
        elif code == _LINE:
            contours[-1].append(complex(points[index]))
        elif code in (_QUADRATIC, _CUBIC):
            degree = code - 1
            curve = [contours[-1][-1], *points[index : index + degree].tolist()]
            while len(curve) > 1:
                # De Casteljau.
                curve = [
                    start + share * (stop - start) for start, stop in pairwise(curve)
                ]
            contours[-1].extend(np.asarray(curve[0]).tolist())
            index += degree - 1
        index += 1
    return [np.array(contour) for contour in contours if len(contour) > 2]
