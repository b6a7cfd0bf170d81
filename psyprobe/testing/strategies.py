"""Strategies for hypothesis: valid displays, colour directions, stimuli and experiments.

They make a specification or a display whose repr is a line of code; a specification is drawn by
``.draw()``. Values shrink towards the plain ones: an achromatic, upright Gabor in cosine
phase at the centre.

Given a display, a stimulus stays inside its gamut; without one, only inside what light can be.

Examples
--------
>>> from hypothesis import given, settings
>>> from psyprobe.testing import assert_calibrated
>>> @settings(max_examples=5)
... @given(gabors())
... def test_my_gabors(spec):
...     assert_calibrated(spec.draw())
>>> test_my_gabors()
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

from psyprobe.files.json_types import JsonObject
from psyprobe.light.colour import CONE_OBSERVERS, DIRECTIONS, Direction
from psyprobe.light.display import Display
from psyprobe.light.transfer import Eotf
from psyprobe.stimulus import (
    Contour,
    Disc,
    Dots,
    Elements,
    Film,
    Gabor,
    Glass,
    Glyph,
    Grating,
    Image,
    Landolt,
    Modulation,
    Noise,
    Optotype,
    Specification,
    SquareWave,
    Sum,
    Texture,
    TumblingE,
    Uniform,
)
from psyprobe.stimulus.catalogue import catalogue_folder
from psyprobe.stimulus.kinds.dots import ALGORITHMS
from psyprobe.stimulus.kinds.letters import SLOAN

M = TypeVar("M", bound=Modulation, covariant=True)

#: How near a display's limit a stimulus may come, so that rounding does not carry it over.
_HEADROOM = 1 - 1e-6

#: Noise of so many standard deviations does not occur in images of this size.
_NOISE_PEAK = 6.5


def _number(
    low: float, high: float, plain: float | None = None
) -> st.SearchStrategy[float]:
    """Build a strategy of numbers in a range that prefers a plain one."""
    numbers = st.floats(low, max(low, high), allow_subnormal=False)
    if plain is None or not low <= plain <= high:
        return numbers
    return st.one_of(st.just(float(plain)), numbers)


@st.composite
def displays(draw: st.DrawFn, primaries: tuple[str, ...] | None = None) -> Display:
    """Draw displays of any transfer function, peak, black level and ambient light.

    Parameters
    ----------
    primaries : tuple of str, optional
        Colour spaces to choose from: sRGB, and Display P3 where colour-science is installed.
    """
    if primaries is None:
        primaries = ("sRGB", "Display P3") if find_spec("colour") else ("sRGB",)
    peak = draw(_number(50.0, 4000.0, 400.0))
    black = draw(_number(0.0, peak / 100, 0.0))
    ambient = draw(_number(0.0, 10 * peak, 0.0))
    named: st.SearchStrategy[Eotf] = st.sampled_from(["srgb", "linear", 2.2])
    eotf: Eotf = draw(st.one_of(named, _number(1.0, 3.0), _measured_eotfs()))
    return Display(
        peak=peak,
        black=black,
        ambient=ambient,
        eotf=eotf,
        primaries=draw(st.sampled_from(primaries)),
    )


@st.composite
def _measured_eotfs(draw: st.DrawFn) -> tuple[tuple[float, float], ...]:
    """Draw transfer tables that rise from (0, 0) to (1, 1)."""
    steps = st.lists(st.integers(1, 40), min_size=4, max_size=4)
    drive = np.cumsum([0, *draw(steps)])
    light = np.cumsum([0, *draw(steps)])
    pairs = zip(drive / drive[-1], light / light[-1], strict=True)
    return tuple((float(x), float(y)) for x, y in pairs)


def directions() -> st.SearchStrategy[Direction]:
    """Build a strategy of colour directions: named ones, single cones, any modulation."""
    cones = st.sampled_from([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    step = st.integers(-10, 10).map(lambda n: n / 10)
    modulations = st.tuples(step, step, step).filter(any)
    return st.one_of(st.sampled_from(DIRECTIONS), cones, modulations)


def backgrounds(display: Display | None = None) -> st.SearchStrategy[float]:
    """Build a strategy of background luminances, cd/m², with room for contrast.

    Parameters
    ----------
    display : Display, optional
        The display to stay within; 0.1 to 1000 cd/m² without it.
    """
    if display is None:
        return _number(0.1, 1000.0, 100.0)
    floor = display.floor
    span = display.span
    return _number(floor + 0.02 * span, floor + 0.9 * span, floor + 0.25 * span)


@st.composite
def fields(draw: st.DrawFn, pixels: tuple[int, int] = (24, 96)) -> JsonObject:
    """Draw a stimulus's sampling `{"ppd": ..., "size": (H, W)}`, preferring square ones.

    Parameters
    ----------
    pixels : (int, int)
        Fewest and most pixels a side.
    """
    height = draw(st.integers(*pixels))
    width = draw(st.one_of(st.just(height), st.integers(*pixels)))
    return {"ppd": draw(_number(8.0, 120.0, 32.0)), "size": (height, width)}


def _as_pair(sampling: JsonObject) -> JsonObject:
    """Return a sampling with its size as (height, width)."""
    size = sampling["size"]
    return sampling | {"size": (size, size) if isinstance(size, int) else tuple(size)}


@st.composite
def _modulation(
    draw: st.DrawFn,
    display: Display | None,
    direction: Direction | None,
    sampling: JsonObject | None,
) -> JsonObject:
    """Draw the parameters that all patterns share."""
    values = _as_pair(sampling or draw(fields()))
    values["luminance"] = draw(backgrounds(display))
    values["direction"] = draw(directions()) if direction is None else direction
    if values["direction"] != "achromatic":
        values["observer"] = draw(st.sampled_from(sorted(CONE_OBSERVERS)))
    return values


def _largest_contrast(values: JsonObject, display: Display | None) -> float:
    """Compute the largest contrast along a colour direction that a display can show."""
    direction = values["direction"]
    if display is None:
        # Before a cone's light would be negative, any direction allows 1 / sqrt(3) at least.
        return 1.0 if direction == "achromatic" else 0.57
    observer = values.get("observer", "cie2006_led_lcd")
    largest = display.max_contrast(values["luminance"], direction, observer=observer)
    if direction == "achromatic":
        largest = min(largest, 1.0)
    return largest * _HEADROOM


@st.composite
def _carrier(draw: st.DrawFn, values: JsonObject) -> JsonObject:
    """Draw a frequency that the field can show, and any orientation, phase and place."""
    longest = max(values["size"]) / values["ppd"]
    ppd = values["ppd"]
    lowest = 0.5 / longest * (1 + 1e-9)
    return {
        "frequency": draw(_number(lowest, 0.499 * ppd, round(ppd / 8, 3))),
        "orientation": draw(_number(-180.0, 180.0, 0.0)),
        "phase": draw(_number(-180.0, 180.0, 0.0)),
        **draw(_place(values)),
    }


@st.composite
def _place(draw: st.DrawFn, values: JsonObject) -> dict[str, float]:
    """Draw a centre in the inner half of the field, deg."""
    height, width = values["size"]
    reach_x = width / 4 / values["ppd"]
    reach_y = height / 4 / values["ppd"]
    return {
        "x": draw(_number(-reach_x, reach_x, 0.0)),
        "y": draw(_number(-reach_y, reach_y, 0.0)),
    }


def _contrasts(
    values: JsonObject, display: Display | None, share: float = 1.0
) -> st.SearchStrategy[float]:
    """Build a strategy of contrasts up to a share of the largest that can be shown."""
    largest = share * _largest_contrast(values, display)
    return _number(0.001 * largest, largest, round(largest / 2, 3))


class Patterns(Protocol[M]):
    """Makes strategies for one kind of pattern.

    Parameters
    ----------
    display : Display, optional
        The display in whose gamut they stay.
    direction : str or (dL, dM, dS), optional
        Direction of colour; any without it.
    sampling : dict, optional
        ``{"ppd": ..., "size": ...}``, as a specification takes them; any without it.
    share : float
        Largest contrast, as a share of the largest that fits.
    """

    def __call__(
        self,
        display: Display | None = None,
        *,
        direction: Direction | None = None,
        sampling: JsonObject | None = None,
        share: float = 1.0,
    ) -> st.SearchStrategy[M]:
        """Make a strategy."""


def _patterns(
    kind: type[M],
    summary: str,
    add_parameters: Callable[[st.DrawFn, JsonObject], float],
) -> Patterns[M]:
    """Build the strategy of one kind of stimulus.

    `add_parameters` draws the parameters that only this kind has, adds them to the others, and
    returns the share of the contrast that they allow, with its sign.
    """

    @st.composite
    def strategy(
        draw: st.DrawFn,
        display: Display | None = None,
        *,
        direction: Direction | None = None,
        sampling: JsonObject | None = None,
        share: float = 1.0,
    ) -> M:
        values = draw(_modulation(display, direction, sampling))
        allowed = add_parameters(draw, values)
        contrast = draw(_contrasts(values, display, share * abs(allowed)))
        return kind(contrast=math.copysign(contrast, allowed), **values)

    strategy.__doc__ = f"{summary}; parameters as in `Patterns`."
    return strategy


def _draw_gabor(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a random Gabor's parameters into `values`; return its share of the largest contrast."""
    values |= draw(_carrier(values))
    longest = max(values["size"]) / values["ppd"]
    shortest = min(values["size"]) / values["ppd"]
    radius = draw(_number(2 / values["ppd"], longest, shortest / 8))
    values |= {
        "radius": radius,
        "aspect": draw(_number(0.5, 2.0, 1.0)),
        "balanced": draw(st.booleans()),
    }
    # Balancing lowers the whole envelope by up to as much as it is high.
    return 0.5 if values["balanced"] else 1.0


def _draw_grating(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a grating's parameters into `values`; return its share of the largest contrast."""
    values |= draw(_carrier(values))
    values["window"] = draw(st.sampled_from(Grating.windows))
    shortest = min(values["size"]) / values["ppd"]
    if values["window"] != "none":
        radius = draw(_number(4 / values["ppd"], shortest, shortest / 3))
        values["radius"] = radius
        values["edge"] = draw(_number(radius / 20, 2 * radius, radius / 2))
    return 1.0


def _draw_noise(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a noise's parameters into `values`; return its share of the largest contrast."""
    ppd = values["ppd"]
    fewest = min(values["size"])
    bandwidth = draw(_number(0.5, 2.0, 1.0))
    edge = draw(_number(0.0, bandwidth, 0.0))
    reach = 2 ** ((bandwidth + edge) / 2)
    # The band holds the coefficients of at least two cycles on the shorter side.
    lowest = 3 * ppd / fewest
    highest = max(lowest, ppd / 2 / reach * _HEADROOM)
    values |= {
        "frequency": draw(_number(lowest, highest, round(ppd / 8, 3))),
        "bandwidth": bandwidth,
        "edge": edge,
        "exponent": draw(_number(0.0, 1.0, 0.0)),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }
    if values["frequency"] * reach > ppd / 2:
        values |= {"frequency": ppd / 6, "bandwidth": 1.0, "edge": 0.0}
    return 1 / _NOISE_PEAK


def _draw_disc(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a disc's parameters into `values`; return the sign of its contrast."""
    shortest = min(values["size"]) / values["ppd"]
    radius = draw(_number(2 / values["ppd"], shortest / 2, shortest / 4))
    values |= {
        "radius": radius,
        "edge": draw(_number(0.0, 2 * radius, 0.0)),
        **draw(_place(values)),
    }
    return draw(st.sampled_from([1.0, -1.0]))


def _draw_letter(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a letter's parameters into `values`; return the sign of its contrast."""
    rows, columns = values["size"]
    pixels = draw(_number(5.0, 0.8 * min(rows, columns), 15.0))
    values |= {
        "letter_size": pixels / values["ppd"],
        "orientation": draw(_number(-180.0, 180.0, 0.0)),
    }
    for axis, count in (("x", columns), ("y", rows)):
        reach = (count - pixels) / 2 / values["ppd"]
        values[axis] = draw(_number(-reach, reach, 0.0))
    return draw(st.sampled_from([1.0, -1.0]))


def _draw_optotype(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a Sloan letter's parameters into `values`; return the sign of its contrast."""
    values["letter"] = draw(st.sampled_from(SLOAN))
    return _draw_flanked(draw, values)


def _draw_flanked(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a letter's parameters, and perhaps flankers."""
    sign = _draw_letter(draw, values)
    values |= {
        "flankers": draw(st.sampled_from([0, 2, 4])),
        "spacing": draw(_number(1.6, 3.0, 1.6)) * values["letter_size"],
        "seed": draw(st.integers(0, 2**32 - 1)),
    }
    return sign


def _draw_glyph(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw which capital, and its place and size."""
    values |= {
        "font": str(catalogue_folder("stimuli") / "capitals.ttf"),
        "text": "HAKOS",
        "letter": draw(st.integers(0, 4)),
    }
    return _draw_flanked(draw, values)


def _draw_image(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a photograph's parameters into `values`; return its share of the largest contrast."""
    shortest = min(values["size"]) / values["ppd"]
    radius = draw(_number(shortest / 4, shortest, shortest / 3))
    values |= {
        "file": str(catalogue_folder("stimuli") / "photograph.png"),
        "window": draw(st.sampled_from(Grating.windows)),
        "radius": radius,
        "edge": draw(_number(radius / 20, 2 * radius, radius / 2)),
        **draw(_place(values)),
    }
    return 1 / float(np.abs(Image(contrast=1.0, **values).unit()).max())


def _draw_film(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a film's parameters into `values`; return its share of the largest contrast."""
    values["size"] = tuple(min(side, 56) for side in values["size"])
    _draw_image(draw, values)
    values["file"] = str(catalogue_folder("stimuli") / "film.npy")
    values["frames"] = draw(st.integers(1, 12))
    frames = Film(contrast=1.0, **values).stills(0, values["frames"])
    return 1 / float(np.abs(frames.unit()).max())


def _draw_element(draw: st.DrawFn, values: JsonObject, spacing: float = 4.5) -> float:
    """Draw the size of elements into `values`, and return a spacing for them, deg."""
    ppd = values["ppd"]
    fewest = min(values["size"])
    radius: float = draw(_number(2.0, fewest / 12, 2.0)) / ppd
    values["radius"] = radius
    return spacing * radius


def _sparse(values: JsonObject, spacing: float) -> float:
    """Compute a density at which elements of a spacing surely find their places."""
    density = 0.15 / spacing**2
    height, width = values["size"]
    area: float = height * width / values["ppd"] ** 2
    return max(density, 0.6 / area)


def _draw_wave(draw: st.DrawFn, values: JsonObject) -> None:
    """Draw an element's frequency and phase into `values`."""
    sigma = values["radius"] * values["ppd"]
    frequency = draw(_number(0.35 / sigma, 0.5 / sigma, round(0.4 / sigma, 3)))
    values["frequency"] = frequency * values["ppd"]
    values["phase"] = draw(_number(-180.0, 180.0, 0.0))


def _draw_elements(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw parameters of elements at given places into `values`; return a share of contrast."""
    _draw_element(draw, values)
    _draw_wave(draw, values)
    height, width = (side / values["ppd"] / 2 for side in values["size"])
    place = draw(_place(values))
    corner = (values["radius"] - width, height - values["radius"], 30.0)
    values["places"] = ((place["x"], place["y"], 0.0), corner)
    values["orientation"] = draw(_number(-180.0, 180.0, 0.0))
    return 0.9


def _draw_texture(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a texture's parameters into `values`; return its share of the largest contrast."""
    spacing = _draw_element(draw, values)
    _draw_wave(draw, values)
    values |= {
        "density": _sparse(values, spacing),
        "distance": spacing,
        "jitter": draw(_number(0.0, 90.0, 0.0)),
        "seed": draw(st.integers(0, 2**32 - 1)),
        "orientation": draw(_number(-180.0, 180.0, 0.0)),
    }
    return 0.9


def _draw_contour(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a contour's parameters into `values`; return its share of the largest contrast."""
    _draw_texture(draw, values)
    # That of a texture; that of a path is its seed's.
    values["tilt"] = values.pop("orientation")
    inside = min(values["size"]) / values["ppd"] - 4 * values["radius"]
    longest = 1 + int(inside / values["distance"])
    values |= {
        "spacing": values["distance"],
        "path_elements": draw(st.integers(2, max(2, min(longest, 6)))),
        "path_angle": draw(_number(0.0, 45.0, 0.0)),
    }
    return 0.9


def _draw_glass(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a Glass pattern's parameters into `values`; return its share of contrast."""
    spacing = _draw_element(draw, values, 6.0)
    values |= {
        "density": _sparse(values, spacing) / 2,
        "distance": spacing,
        "separation": 4.5 * values["radius"],
        "coherence": draw(_number(0.0, 1.0, 1.0)),
        "flow": draw(_number(-180.0, 180.0, 90.0)),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }
    return 0.9


def _draw_dots(draw: st.DrawFn, values: JsonObject) -> float:
    """Draw a dot kinematogram's parameters into `values`; return its share of contrast."""
    area = math.prod(values["size"]) / values["ppd"] ** 2
    count = draw(st.integers(1, 6))
    values |= {
        "density": count / area,
        "radius": draw(_number(2.0, 4.0, 2.0)) / values["ppd"],
        "coherence": draw(_number(0.0, 1.0, 1.0)),
        "heading": draw(_number(-180.0, 180.0, 0.0)),
        "speed": draw(_number(0.0, 4.0, 4.0)) * 60 / values["ppd"],
        "lifetime": draw(st.integers(0, 5)),
        "algorithm": draw(st.sampled_from(sorted(ALGORITHMS))),
        "seed": draw(st.integers(0, 2**32 - 1)),
        "frames": draw(st.integers(1, 8)),
    }
    # Light adds where dots overlap.
    return 1 / count


gabors = _patterns(Gabor, "Draw Gabors", _draw_gabor)
gratings = _patterns(Grating, "Draw gratings behind any window", _draw_grating)
noises = _patterns(
    Noise, "Draw band-limited noise, brick-wall and soft, white to pink", _draw_noise
)
discs = _patterns(Disc, "Draw discs, brighter and darker, hard and soft", _draw_disc)
squares = _patterns(SquareWave, "Draw square waves behind any window", _draw_grating)
optotypes = _patterns(Optotype, "Draw Sloan's letters, dark and bright", _draw_optotype)
glyphs = _patterns(Glyph, "Draw capitals of a font, dark and bright", _draw_glyph)
landolts = _patterns(Landolt, "Draw Landolt rings, gaps anywhere", _draw_letter)
images = _patterns(Image, "Draw a photograph behind any window", _draw_image)
element_fields = _patterns(Elements, "Draw Gabors at two places", _draw_elements)
textures = _patterns(Texture, "Draw textures of few Gabors", _draw_texture)
contours = _patterns(Contour, "Draw short paths among few Gabors", _draw_contour)
glasses = _patterns(Glass, "Draw Glass patterns of few pairs", _draw_glass)
films = _patterns(Film, "Draw the first frames of a film behind any window", _draw_film)
kinematograms = _patterns(Dots, "Draw short clips of few dots", _draw_dots)
tumbling_es = _patterns(TumblingE, "Draw letters E, arms anywhere", _draw_letter)

#: Every kind of still pattern.
PATTERNS: tuple[Patterns[Any], ...] = (
    gabors,
    gratings,
    noises,
    discs,
    squares,
    optotypes,
    glyphs,
    landolts,
    tumbling_es,
    images,
    element_fields,
    textures,
    contours,
    glasses,
)


@st.composite
def uniforms(
    draw: st.DrawFn,
    display: Display | None = None,
    *,
    sampling: JsonObject | None = None,
) -> Uniform:
    """Draw uniform fields, grey or in LMS; parameters as in `Patterns`."""
    values = _as_pair(sampling or draw(fields()))
    return Uniform(
        luminance=draw(backgrounds(display)), chromatic=draw(st.booleans()), **values
    )


@st.composite
def sums(
    draw: st.DrawFn,
    display: Display | None = None,
    *,
    direction: Direction | None = None,
    sampling: JsonObject | None = None,
) -> Sum:
    """Draw sums of a target and a mask that share a background; parameters as in `Patterns`."""
    target: Modulation = draw(
        draw(st.sampled_from(PATTERNS))(
            display, direction=direction, sampling=sampling, share=0.5
        )
    )
    target_sampling = {"ppd": target.ppd, "size": target.size}
    kind = draw(st.sampled_from(PATTERNS))
    mask: Modulation = draw(
        kind(display, direction=target.direction, sampling=target_sampling, share=0.5)
    )
    scale = mask.contrast
    if display is not None:
        # The mask moves to the target's background, which may leave less room.
        target_contrast, mask_contrast = (
            _largest_contrast(vars(part), display) for part in (target, mask)
        )
        scale = scale * target_contrast / mask_contrast if mask_contrast > 0 else 0.0
    part = mask.changed(
        luminance=target.luminance, observer=target.observer, contrast=scale
    )
    return Sum(parts=(target, part))


def stimuli(
    display: Display | None = None,
    *,
    direction: Direction | None = None,
    sampling: JsonObject | None = None,
) -> st.SearchStrategy[Specification]:
    """Build a strategy of stimuli of every kind; parameters as in `Patterns`."""
    kinds: tuple[Callable[..., st.SearchStrategy[Specification]], ...] = (
        *PATTERNS,
        sums,
    )
    patterns = [kind(display, direction=direction, sampling=sampling) for kind in kinds]
    return st.one_of(uniforms(display, sampling=sampling), *patterns)


@st.composite
def shown_stimuli(
    draw: st.DrawFn,
    *,
    direction: Direction | None = None,
    sampling: JsonObject | None = None,
) -> tuple[Specification, Display]:
    """Draw a stimulus with a display that can show it; parameters as in `Patterns`."""
    display = draw(displays())
    return draw(stimuli(display, direction=direction, sampling=sampling)), display


@st.composite
def experiments(draw: st.DrawFn) -> str:
    """Draw detection experiments, as the text of a TOML page.

    Every condition of the level grid can be drawn and shown.
    """
    peak = draw(_number(150.0, 1000.0, 400.0))
    names = [f"gabor_{direction}" for direction in DIRECTIONS]
    stimulus = draw(st.sampled_from([*names, "noise_achromatic"]))
    direction = stimulus.partition("_")[2]
    share = 1 / _NOISE_PEAK if "noise" in stimulus else 0.999
    largest = min(Display(peak=peak).max_contrast(100.0, direction) * share, 1.0)
    low = draw(_number(0.5, 4.0, 0.5))
    high = draw(_number(5.0, 20.0, 16.0))
    counts = [draw(st.integers(2, 6)) for _ in range(3)]
    human = 'model = "castle_csf"' + (
        '\ncontrast = "rms"' if "noise" in stimulus else ""
    )
    return f"""title = "An experiment"
stimulus = "{stimulus}"
probe = "detection"

[human]
{human}

[levels]
frequency = {{ from = {low!r}, to = {high!r}, n = {counts[0]}, scale = "log" }}
contrast = {{ from = {0.001 * largest!r}, to = {largest!r}, n = {counts[1]}, scale = "log" }}

[score]
multiplier = {{ from = 0.5, to = 2, n = {counts[2]}, scale = "log" }}

[display]
peak = {peak!r}
"""
