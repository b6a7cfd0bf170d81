"""Letters and other optotypes on a uniform background, with the exact coverage of each pixel.

Five strokes high and wide, each stroke exactly one wide: Sloan's ten letters, the Landolt ring
(which is Sloan's C) and the tumbling E. A pixel's change is the share of its square that lies under
the ink: unlike point-sampled gratings, letters contain the aperture of the pixels.

References
----------
ISO 8596 (Landolt ring). Sloan, Rowland & Altman (1952); Sloan (1959), Am. J. Ophthalmol. 48:807.
They fix frame and stroke; radii, and the slopes of K, N, R and V, are those by which every stroke
is one wide, measured across it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, Levels, Size
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.coverage import Outline, arc, area, box, coverage, ring
from psyprobe.stimulus.kinds.fonts import glyph_outlines
from psyprobe.stimulus.kinds.image import Stamp, stamp_of
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import (
    DerivedLevel,
    Parameter,
    check_keywords,
    common,
    file_parameter,
    parameter,
    ten_digits,
)
from psyprobe.stimulus.pattern import Modulation, cos_sin_degrees
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS

#: Sloan's letters, in the order of their numbers.
SLOAN = tuple("CDHKNORSVZ")

#: Strokes in the height of a letter.
_STROKES = 5

#: Where flankers lie: left, right, above, below.
_SIDES = ((-1, 0), (1, 0), (0, 1), (0, -1))

#: Fewest pixels a stroke at which every position shows full ink and full ground.
_CLEAR_STROKE = 2.0

#: Share by which a letter may reach beyond the image, by rounding.
_ROUNDING = 1e-9

#: Most of the ink that letters share where they only touch.
_TOUCH = 1e-8


@cache
def letter_outlines(name: str) -> tuple[Outline, ...]:
    """Return the outlines of a Sloan letter or "E", in strokes from the letter's middle.

    Examples
    --------
    >>> round(area(letter_outlines("H")), 12), round(area(letter_outlines("E")), 12)
    (13.0, 17.0)
    """
    stem = box(-2.5, -2.5, -1.5, 2.5)
    right_stem = box(1.5, -2.5, 2.5, 2.5)
    if name == "O":
        return (ring(0, 1.5, 2.5, 0, 360),)
    if name == "C":
        # The gap's sides are parallel, half a stroke from the axis.
        outer, inner = np.degrees(np.arcsin([0.5 / 2.5, 0.5 / 1.5]))
        ends = [
            arc(0, 2.5, outer, 360 - outer),
            arc(0, 1.5, 360 - inner, inner),
        ]
        return (np.concatenate(ends),)
    if name == "D":
        return (
            stem,
            box(-1.5, 1.5, 0.5, 2.5),
            box(-1.5, -2.5, 0.5, -1.5),
            box(1.5, -0.5, 2.5, 0.5),
            ring(0.5 + 0.5j, 1, 2, 0, 90),
            ring(0.5 - 0.5j, 1, 2, 270, 360),
        )
    if name == "H":
        return stem, right_stem, box(-1.5, -0.5, 1.5, 0.5)
    if name == "E":
        arms = (box(-1.5, bottom, 2.5, bottom + 1) for bottom in (-2.5, -0.5, 1.5))
        return stem, *arms
    if name == "K":
        # Right triangles of sides 3, 4, 5 and 28, 45, 53.
        arm = [-1.5 - 0.5j, 2.5 + 2.5j, 5 / 6 + 2.5j, -1.5 + 0.75j]
        leg = [
            119 / 90 - 2.5j,
            2.5 - 2.5j,
            25 / 66 + 10j / 11,
            -14 / 33 + 27j / 88,
        ]
        return stem, np.array(arm), np.array(leg)
    if name == "N":
        # The root of 4 slope² + 15 slope + 12 = 0, by which the diagonal is one wide.
        fall = -3j * (np.sqrt(33) - 15) / 8 - 2.5j
        diagonal = [-1.5 + fall, 1.5 - 2.5j, 1.5 - fall, -1.5 + 2.5j]
        return stem, right_stem, np.array(diagonal)
    if name == "Z":
        return tuple(1j * outline for outline in letter_outlines("N"))
    if name == "R":
        return _outline_of_r()
    if name == "S":
        bars = (box(-1, bottom, 1, bottom + 1) for bottom in (-2.5, -0.5, 1.5))
        return (
            *bars,
            ring(-1 + 1j, 0.5, 1.5, 90, 270),
            ring(1 + 1j, 0.5, 1.5, 0, 90),
            ring(1 - 1j, 0.5, 1.5, -90, 90),
            ring(-1 - 1j, 0.5, 1.5, 180, 270),
        )
    assert name == "V"
    inner_edge = 2.5 - np.sqrt(29) / 5
    notch = 2.5j - 2.5j * inner_edge
    left_half = [notch, -inner_edge + 2.5j, -2.5 + 2.5j, -0.5 - 2.5j]
    right_half = [-vertex.conjugate() for vertex in left_half[:0:-1]]
    return (np.array([*left_half, *right_half]),)


def _outline_of_r() -> tuple[Outline, Outline]:
    """Build the outline of the letter R."""
    # Height of the point where the leg's right edge meets the bowl, above its foot.
    height = np.roots([169 / 144, -8.25, 12.25]).real.min()
    corner = 2.5 - 5 / 12 * height + 1j * (height - 2.5)
    angle = np.degrees(np.angle(corner - 1 - 1j))
    foot = [-2.5 - 2.5j, -1.5 - 2.5j, -1.5 - 0.5j, 7 / 12 - 0.5j, 17 / 12 - 2.5j]
    bowl = arc(1 + 1j, 1.5, angle, 90)
    hole = [*arc(1 + 1j, 0.5, 90, -90), -1.5 + 0.5j, -1.5 + 1.5j]
    outline = [*foot, 2.5 - 2.5j, *bowl, -2.5 + 2.5j]
    return np.array(outline), np.array(hole)


class _Place(NamedTuple):
    """One letter in an image."""

    name: str
    #: Pixels in a stroke.
    stroke: float
    #: The turn, deg counter-clockwise.
    orientation: float
    #: x, y: The middle of the frame, in pixels to the right of the image's middle and up.
    x: float
    y: float
    #: A file of the user's; None for the outlines above.
    font: Stamp | None = None

    @property
    def turns(self) -> bool:
        """Tell whether it looks different when it is turned."""
        return self.font is not None or self.name != "O"

    def outlines(self) -> tuple[Outline, ...]:
        """Return the letter's outlines, in pixels from the middle of the image."""
        cosine, sine = cos_sin_degrees(np.array(self.orientation))
        turn = self.stroke * (cosine + 1j * sine)
        middle = self.x + 1j * self.y
        outlines = (
            glyph_outlines(self.font, self.name)
            if self.font
            else letter_outlines(self.name)
        )
        return tuple(turn * outline + middle for outline in outlines)


@lru_cache(maxsize=32)
def _draw(place: _Place, shape: Size) -> FloatArray:
    """Draw one letter as the share of each pixel that is ink; cached for other contrasts."""
    image = coverage(place.outlines(), shape)
    image.setflags(write=False)
    return image


#: Levels that stand for the height of a letter.
_SIZES = MappingProxyType(
    {
        "logmar": DerivedLevel(
            Parameter("logMAR", "Letter size"),
            "letter_size",
            lambda logmar: ten_digits(10.0 ** np.asarray(logmar) * _STROKES / 60),
            lambda height: np.log10(np.multiply(height, 60 / _STROKES)),
        )
    }
)


class _Letter(Modulation):
    """One letter in a uniform field."""

    contrast: Levels = parameter("1", "Contrast", low=-1, high=10)
    letter_size: Levels = parameter(
        "deg", "Letter height", default=1.0, low=0, above=True
    )
    orientation: Levels = common("orientation", default=0.0)
    x: Levels = common("x", default=0.0)
    y: Levels = common("y", default=0.0)
    allow_alias: bool = False

    contrast_kind = "weber"
    derived_levels = _SIZES

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = (
            f"a stroke, a fifth of it, must be at least a pixel at {self.ppd:g} pixels per degree: "
            f"{_STROKES / self.ppd:.4g} deg; allow_alias=True draws smaller letters, for machines "
            "only"
        )
        visible = np.asarray(self.letter_size) * self.ppd >= _STROKES * (1 - 1e-9)
        self._require("letter_size", self.allow_alias | visible, allowed)
        half = np.asarray(self.letter_size) / 2
        for axis, pixels in (("x", self.shape[1]), ("y", self.shape[0])):
            reach = np.abs(getattr(self, axis)) + half
            allowed = (
                f"with {axis} beside it the letter must lie within the {pixels} pixels of the "
                f"image, up to {pixels / 2 / self.ppd:.4g} deg from its middle; enlarge size, or "
                "lower ppd"
            )
            inside = reach * self.ppd <= pixels / 2 * (1 + _ROUNDING)
            self._require("letter_size", np.all(inside), allowed)

    def _check_contrast(self) -> None:
        """Allow contrasts from -1 (black) to many times the background."""

    def _names(self) -> Iterator[str]:
        """Return the letter of each image of the flattened batch."""
        raise NotImplementedError

    def _places(self) -> list[_Place]:
        """Return where the letter of each image lies."""
        columns = (
            self.per_image("letter_size") * self.ppd / _STROKES,
            self.per_image("orientation"),
            self.per_image("x") * self.ppd,
            self.per_image("y") * self.ppd,
        )
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        return [
            _Place(name, *place)
            for name, place in zip(self._names(), numbers, strict=True)
        ]

    def _rows(self) -> list[list[_Place]]:
        """Return all letters of each image, the target first."""
        return [[place] for place in self._places()]

    def unit(self) -> FloatArray:
        """Draw the share of each pixel that is ink, shape (n, H, W)."""
        images: list[FloatArray] = []
        for row in self._rows():
            letters = [_draw(place, self.shape) for place in row]
            images.append(np.sum(letters, axis=0))
        # Letters that touch share a pixel but for rounding.
        return np.asarray(np.minimum(np.stack(images), 1.0))

    def cautions(self) -> tuple[str, ...]:
        """Warn where strokes are so narrow that the position between pixels matters."""
        stroke = float(np.min(self.letter_size)) * self.ppd / _STROKES
        if stroke >= _CLEAR_STROKE:
            return ()
        return (
            f"strokes are down to {stroke:.3g} px wide, of which the pixels leave "
            f"{_pixel_gain(stroke):.2g} of the contrast: below {_CLEAR_STROKE:g} px what is seen "
            "depends on the position between pixels; vary x and y",
        )

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure levels and contrast, place and width of the strokes, and the area of the ink."""
        super().measure_planes(planes, measurements)
        row = self._rows()[0]
        place = row[0]
        gain = _pixel_gain(place.stroke)
        method = "sinc of the arms' wave, 2.5 cycles a letter, over a pixel"
        measurements.add("pixel gain", None, gain, method)
        if not measurements.refined or self.contrast == 0:
            return
        outlines = [outline for letter in row for outline in letter.outlines()]
        corners = np.concatenate(outlines)
        height, width = self.shape
        inside = max(abs(corners.real)) <= width / 2
        if not inside or max(abs(corners.imag)) > height / 2:
            return
        # Edges move by a 64th of a pixel.
        step = 1 / 64 / self.ppd
        steps = {"x": step, "y": step, "letter_size": 2 * step}
        if len(row) > 1:
            steps["spacing"] = step
        if any(letter.turns for letter in row):
            steps["orientation"] = float(np.degrees(2 * step / self.letter_size))
        fit = self.fit_offsets(planes, measurements, steps)
        for axis in ("x", "y"):
            fit.add(axis, f"position {axis}", key="position", scale=self.ppd)
        fit.add("letter_size", "stroke", scale=self.ppd / _STROKES)
        if "spacing" in steps:
            fit.add("spacing", "letter spacing", scale=self.ppd)
        if "orientation" in steps:
            fit.add("orientation", "orientation")
        unit = self._unit_pattern()
        ground = np.median(planes.pattern[unit == 0])
        step = fit.amplitude
        if (unit == 1).any():
            step = np.median(planes.pattern[unit == 1]) - ground
        ink = float((planes.pattern - ground).sum() / step)
        doubt = 2 * np.sqrt(unit.size) * fit.pixel_error
        requested = area(outlines)
        # The chords of a round letter lie slightly outside its frame, and so in the letter it
        # touches. More than that is an overlap.
        shared = sum(_draw(letter, self.shape).sum() for letter in row) - unit.sum()
        if len(row) > 1 and shared < _TOUCH * requested:
            requested -= shared
        measurements.add(
            "ink area",
            requested / place.stroke**2,
            ink / place.stroke**2,
            "change of all pixels over that of full ones, in strokes",
            extra=STANDARD_ERRORS * doubt / requested,
        )


def _pixel_gain(stroke: float) -> float:
    """Compute how much pixels blur a letter's strokes of a width in pixels, from 0 to 1."""
    return float(np.sinc(0.5 / stroke))


class _Flanked(_Letter):
    """One letter of an alphabet, perhaps between others of it."""

    letter: Levels = parameter("1", "Letter", low=0, whole=True)
    flankers: Levels = parameter(
        "1", "Flankers", default=0.0, low=0, high=4, whole=True
    )
    spacing: Levels = parameter("deg", "Spacing", default=1.5, low=0, above=True)
    seed: Levels = common("seed", default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = (
            "a letter has none, two (left and right) or four (above and below too)"
        )
        self._require("flankers", np.asarray(self.flankers) % 2 == 0, allowed)
        apart = np.asarray(self.spacing) >= np.multiply(self.letter_size, 1 - 1e-9)
        allowed = "from centre to centre it is a letter's height or more"
        self._require("spacing", apart | (np.asarray(self.flankers) == 0), allowed)
        count = len(self._alphabet)
        enough = np.asarray(self.flankers) < count
        allowed = f"an alphabet of {count} has {count - 1} letters besides the target"
        self._require("flankers", enough, allowed)
        allowed = f"the alphabet has {count}, and the first is 0"
        self._require("letter", np.asarray(self.letter) < count, allowed)

    @property
    def _alphabet(self) -> tuple[str, ...]:
        """The letters, in the order of their numbers."""
        raise NotImplementedError

    def _names(self) -> Iterator[str]:
        """Iterate over the letters of the batch, by their numbers in the alphabet."""
        return (self._alphabet[int(number)] for number in self.per_image("letter"))

    def flanker_names(self) -> list[tuple[str, ...]]:
        """Return the flankers of each image of the flattened batch: left, right, above, below.

        They are drawn by the seed, without replacement, from the alphabet without the target.

        Examples
        --------
        >>> Optotype(letter="K", contrast=-1.0, flankers=2, seed=[1, 2]).flanker_names()
        [('V', 'N'), ('H', 'C')]
        """
        names = []
        numbers = (self.per_image(name) for name in ("letter", "flankers", "seed"))
        for target, count, seed in zip(*numbers, strict=True):
            order = np.random.default_rng(int(seed)).permutation(len(self._alphabet))
            others = order[order != target][: int(count)]
            names.append(tuple(self._alphabet[index] for index in others))
        return names

    def _rows(self) -> list[list[_Place]]:
        """Return the target of each image, then its flankers."""
        spacing = self.per_image("spacing") * self.ppd
        columns = zip(self._places(), self.flanker_names(), spacing, strict=True)
        rows = []
        for place, names, gap in columns:
            row = [place]
            for name, (right, up) in zip(names, _SIDES, strict=False):
                x = place.x + right * gap
                y = place.y + up * gap
                row.append(place._replace(name=name, x=float(x), y=float(y)))
            rows.append(row)
        return rows


@stimulus_kind("optotype")
class Optotype(_Flanked):
    """One of Sloan's ten letters; parameters as in `psyprobe.optotype`.

    Examples
    --------
    >>> letters = Optotype(letter=["K", "O"], contrast=-1.0, letter_size=1.0)
    >>> letters.letter, letters.draw().luminance.shape
    (array([3., 5.]), (2, 224, 224))
    """

    letter: Levels = parameter("1", "Letter", labels=SLOAN)

    @property
    def _alphabet(self) -> tuple[str, ...]:
        """The ten letters of Sloan."""
        return SLOAN


@stimulus_kind("glyph")
class Glyph(_Flanked):
    """A character of a font of one's own; parameters as in `psyprobe.glyph`.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import catalogue_folder
    >>> font = str(catalogue_folder("stimuli") / "capitals.ttf")
    >>> Glyph(font=font, text="KZ", letter=[0, 1], contrast=-1.0).measure().passed
    True
    """

    font: str = file_parameter("Font")
    text: str
    letter: Levels = parameter("1", "Letter", default=0.0, low=0, whole=True)

    def __post_init__(self) -> None:
        distinct = isinstance(self.text, str) and len(set(self.text)) == len(self.text)
        if not distinct or not self.text:
            raise InputError(
                f"text is {self.text!r}; give the characters of the alphabet, each once"
            )
        super().__post_init__()
        for character in {"H", *self.text}:
            glyph_outlines(stamp_of(Path(self.font)), character)

    @property
    def _alphabet(self) -> tuple[str, ...]:
        """The characters of `text`."""
        return tuple(self.text)

    def _places(self) -> list[_Place]:
        """Return where the character of each image lies, and of which font it is."""
        font = stamp_of(Path(self.font))
        return [place._replace(font=font) for place in super()._places()]


@stimulus_kind("landolt")
class Landolt(_Letter):
    """A Landolt ring, whose gap is one stroke wide; parameters as in `psyprobe.landolt`.

    Examples
    --------
    >>> ring = Landolt(contrast=-1.0, letter_size=1.0, orientation=90.0, size=(61, 61)).draw()
    >>> float(ring.luminance[6, 30]), float(ring.luminance[54, 30])
    (100.0, 0.0)
    """

    def _names(self) -> Iterator[str]:
        """Iterate over the letters of the batch: all "C"."""
        return iter("C" * len(self.per_image("x")))

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure a Landolt ring, its gap included: the width that leaves as much ink."""
        super().measure_planes(planes, measurements)
        # How much ink a wider gap takes: its length along each side, in strokes.
        length = np.sqrt(2.5**2 - 0.5**2) - np.sqrt(1.5**2 - 0.5**2)
        stroke = self.letter_size * self.ppd / _STROKES
        for ink in measurements.entries:
            if ink.quantity == "ink area" and ink.requested and ink.tolerance:
                missing = (ink.requested - ink.delivered) / length
                extra = ink.tolerance * ink.requested / length
                measurements.add(
                    "gap",
                    stroke,
                    stroke * (1 + missing),
                    "ink that is missing from a closed ring",
                    extra=extra,
                )
                return


@stimulus_kind("tumbling_e")
class TumblingE(_Letter):
    """A letter E whose arms point anywhere; parameters as in `psyprobe.tumbling_e`.

    Examples
    --------
    >>> TumblingE(contrast=-1.0, orientation=[0, 90, 180, 270]).draw().luminance.shape
    (4, 224, 224)
    """

    def _names(self) -> Iterator[str]:
        """Iterate over the letters of the batch: all "E"."""
        return iter("E" * len(self.per_image("x")))


@check_keywords
def optotype(
    *,
    letter: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    letter_size: ArrayLike | None = None,
    logmar: ArrayLike | None = None,
    orientation: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    flankers: ArrayLike = 0,
    spacing: ArrayLike = 1.5,
    seed: ArrayLike = 0,
    allow_alias: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Sloan's letters, with the exact coverage of each pixel.

    Parameters
    ----------
    letter : str, int or array
        One of C D H K N O R S V Z, or its number in this order, from 0.
    contrast : float or array
        Weber contrast of the ink, -1 to 10; dark ink is negative. In colour: RMS cone contrast.
    letter_size : float or array
        Height, deg, by default 1; a stroke is a fifth of it.
    logmar : float or array
        The size in its place: log10 of a stroke in minutes of arc.
    orientation : float or array
        Degrees by which the letter is turned counter-clockwise.
    x, y : float or array
        Middle of the letter's square frame, deg to the right and up.
    flankers : int or array
        Letters beside it: 0, 2 (left and right) or 4 (above and below too), without the target and
        each once.
    spacing : float or array
        To each flanker, from centre to centre, deg.
    seed : int or array of int
        Seed of the flankers.
    allow_alias : bool
        Draw strokes below one pixel too: beyond the sampling limit, and only for machines.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> line = [optotype(letter=letter, contrast=-1, logmar=1.0) for letter in "KZO"]
    >>> line[0].spec
    Optotype(contrast=-1.0, letter_size=0.8333333333, letter='K')
    """
    return draw_kind(Optotype, locals())


@check_keywords
def glyph(
    *,
    font: str,
    text: str,
    contrast: ArrayLike,
    letter: ArrayLike = 0,
    luminance: ArrayLike = 100.0,
    letter_size: ArrayLike | None = None,
    logmar: ArrayLike | None = None,
    orientation: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    flankers: ArrayLike = 0,
    spacing: ArrayLike = 1.5,
    seed: ArrayLike = 0,
    allow_alias: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw characters of a font file, with the exact coverage of each pixel and without hinting.

    Parameters
    ----------
    font : str
        A TrueType or OpenType file. What it holds is part of the digest; it is copied nowhere.
    text : str
        The alphabet: characters of the font, each once.
    letter : int or array
        Which of them is drawn, from 0.
    letter_size : float or array
        Height of the font's H, deg, by default 1; a fifth of it counts as a stroke. All characters
        have the same scale and the same line.
    contrast, logmar, orientation, x, y, flankers, spacing, seed, allow_alias
        As in `optotype`; a character's frame is as wide as its advance.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import catalogue_folder
    >>> font = str(catalogue_folder("stimuli") / "capitals.ttf")
    >>> glyph(font=font, text="ABC", letter=[0, 1, 2], contrast=-1).luminance.shape
    (3, 224, 224)
    """
    return draw_kind(Glyph, locals())


@check_keywords
def landolt(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    letter_size: ArrayLike | None = None,
    logmar: ArrayLike | None = None,
    orientation: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    allow_alias: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Landolt rings.

    Parameters
    ----------
    orientation : float or array
        Where the gap lies, deg counter-clockwise from the right.
    contrast, letter_size, logmar, x, y, allow_alias
        As in `optotype`; the gap is a stroke wide.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> landolt(contrast=-1, logmar=0.8, orientation=[0, 45, 90, 135]).luminance.shape
    (4, 224, 224)
    """
    return draw_kind(Landolt, locals())


@check_keywords
def tumbling_e(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    letter_size: ArrayLike | None = None,
    logmar: ArrayLike | None = None,
    orientation: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    allow_alias: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw the letter E, its arms pointing anywhere.

    Parameters
    ----------
    orientation : float or array
        Where the arms point, deg counter-clockwise from the right.
    contrast, letter_size, logmar, x, y, allow_alias
        As in `optotype`.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> tumbling_e(contrast=-1, logmar=0.8, orientation=[0, 90, 180, 270]).luminance.shape
    (4, 224, 224)
    """
    return draw_kind(TumblingE, locals())
