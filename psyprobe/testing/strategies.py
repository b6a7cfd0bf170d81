"""Strategies for hypothesis: displays, colour directions, stimuli and experiments that are valid by
construction.

What they make is a specification or a display whose repr is a line of code; a specification is
drawn by ``.draw()``. Values shrink towards the plain ones: an achromatic, upright Gabor in cosine
phase at the centre.

Given a display, a stimulus stays inside its gamut; without one, only inside what light can be.

Examples
--------
>>> from hypothesis import given, settings
>>> from psyprobe.testing import assert_calibrated
>>> @settings(max_examples=5)
... @given(gabors())
... def test_my_gabors(asked):
...     assert_calibrated(asked.draw())
>>> test_my_gabors()
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

from psyprobe.light.colour import CONE_OBSERVERS, DIRECTIONS, Direction
from psyprobe.light.display import Display
from psyprobe.light.transfer import Eotf
from psyprobe.stimulus import Disc, Gabor, Grating, Modulation, Noise, Specification, Sum, Uniform

M = TypeVar("M", bound=Modulation, covariant=True)

#: How near a display's limit a stimulus may come, so that rounding does not carry it over.
_HEADROOM = 1 - 1e-6

#: Noise of so many standard deviations is not met in images of this size.
_NOISE_PEAK = 6.5


def _floats(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(
        low, max(low, high), allow_nan=False, allow_infinity=False, allow_subnormal=False
    )


@st.composite
def _number(draw: st.DrawFn, low: float, high: float, plain: float | None = None) -> float:
    """A number in a range, most readily a plain one."""
    readily = [st.just(float(plain))] if plain is not None and low <= plain <= high else []
    return float(draw(st.one_of(*readily, _floats(low, high))))


@st.composite
def displays(draw: st.DrawFn, primaries: tuple[str, ...] | None = None) -> Display:
    """Displays of every transfer function, peak, black level and ambient light.

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
    eotf: Eotf = draw(st.one_of(named, _floats(1.0, 3.0), _measured_eotfs()))
    return Display(
        peak=peak,
        black=black,
        ambient=ambient,
        eotf=eotf,
        primaries=draw(st.sampled_from(primaries)),
    )


@st.composite
def _measured_eotfs(draw: st.DrawFn) -> tuple[tuple[float, float], ...]:
    """Tables that rise from (0, 0) to (1, 1), no step of them steeper than forty to one."""
    steps = st.lists(st.integers(1, 40), min_size=4, max_size=4)
    drive, light = (np.cumsum([0, *draw(steps)]) for _ in range(2))
    return tuple(
        (float(a / drive[-1]), float(b / light[-1])) for a, b in zip(drive, light, strict=True)
    )


def directions() -> st.SearchStrategy[Direction]:
    """Directions of colour: the named ones, each cone alone, and any modulation of the three."""
    cones = st.sampled_from([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    step = st.integers(-10, 10).map(lambda n: n / 10)
    anything = st.tuples(step, step, step).filter(any)
    return st.one_of(st.sampled_from(DIRECTIONS), cones, anything)


def backgrounds(display: Display | None = None) -> st.SearchStrategy[float]:
    """Background luminances in cd/m², with room for contrast on both sides.

    Parameters
    ----------
    display : Display, optional
        0.1 to 1000 cd/m² without it.
    """
    if display is None:
        return _number(0.1, 1000.0, 100.0)
    span = display.span
    return _number(
        display.floor + 0.02 * span, display.floor + 0.9 * span, display.floor + 0.25 * span
    )


@st.composite
def fields(draw: st.DrawFn, pixels: tuple[int, int] = (24, 96)) -> dict[str, Any]:
    """Sampling: ``{"ppd": ..., "size": (H, W)}``, square most readily.

    Parameters
    ----------
    pixels : (int, int)
        Fewest and most pixels a side.
    """
    height = draw(st.integers(*pixels))
    width = draw(st.one_of(st.just(height), st.integers(*pixels)))
    return {"ppd": draw(_number(8.0, 120.0, 32.0)), "size": (height, width)}


def _as_pair(sampling: dict[str, Any]) -> dict[str, Any]:
    """The sampling with its size as (height, width)."""
    size = sampling["size"]
    return sampling | {"size": (size, size) if isinstance(size, int) else tuple(size)}


@st.composite
def _modulation(
    draw: st.DrawFn,
    display: Display | None,
    direction: Direction | None,
    sampling: dict[str, Any] | None,
) -> dict[str, Any]:
    """Parameters that all modulations share, and the largest contrast that they leave room for."""
    values = _as_pair(sampling or draw(fields()))
    values["luminance"] = draw(backgrounds(display))
    values["direction"] = draw(directions()) if direction is None else direction
    if values["direction"] != "achromatic":
        values["observer"] = draw(st.sampled_from(sorted(CONE_OBSERVERS)))
    return values


def _largest_contrast(values: dict[str, Any], display: Display | None) -> float:
    if display is not None:
        inside = display.max_contrast(
            values["luminance"],
            values["direction"],
            observer=values.get("observer", "cie2006_led_lcd"),
        )
        return (
            inside * _HEADROOM
            if values["direction"] != "achromatic"
            else min(inside, 1.0) * _HEADROOM
        )
    if values["direction"] == "achromatic":
        return 1.0
    # The most that any direction allows before a cone's light would be negative is 1 / sqrt(3) at
    # least.
    return 0.57


@st.composite
def _carrier(draw: st.DrawFn, values: dict[str, Any]) -> dict[str, Any]:
    """Frequency from half a cycle on the field to just below Nyquist, any orientation, phase and
    place.
    """
    longest = max(values["size"]) / values["ppd"]
    ppd = values["ppd"]
    return {
        "frequency": draw(_number(0.5 / longest * (1 + 1e-9), 0.499 * ppd, round(ppd / 8, 3))),
        "orientation": draw(_number(-180.0, 180.0, 0.0)),
        "phase": draw(_number(-180.0, 180.0, 0.0)),
        **draw(_place(values)),
    }


@st.composite
def _place(draw: st.DrawFn, values: dict[str, Any]) -> dict[str, float]:
    """A centre in the inner half of the field, deg."""
    reach = {"x": values["size"][1] / 4 / values["ppd"], "y": values["size"][0] / 4 / values["ppd"]}
    return {axis: draw(_number(-most, most, 0.0)) for axis, most in reach.items()}


def _contrast(
    values: dict[str, Any], display: Display | None, share: float = 1.0
) -> st.SearchStrategy[float]:
    most = share * _largest_contrast(values, display)
    return _number(0.001 * most, most, round(most / 2, 3))


class Patterns(Protocol[M]):
    """Strategies for one kind of pattern.

    Parameters
    ----------
    display : Display, optional
        Whose gamut they stay in.
    direction : str or (dL, dM, dS), optional
        Direction of colour; any without it.
    sampling : dict, optional
        ``{"ppd": ..., "size": ...}``, as a specification takes them; any without it.
    share : float
        Of the largest contrast that fits.
    """

    def __call__(
        self,
        display: Display | None = None,
        *,
        direction: Direction | None = None,
        sampling: dict[str, Any] | None = None,
        share: float = 1.0,
    ) -> st.SearchStrategy[M]:
        """A strategy."""


def _patterns(
    kind: type[M], summary: str, own: Callable[[st.DrawFn, dict[str, Any]], float]
) -> Patterns[M]:
    """Strategies for a kind, whose own parameters `own` draws; it gives the share of the contrast
    that they leave.
    """

    @st.composite
    def strategy(
        draw: st.DrawFn,
        display: Display | None = None,
        *,
        direction: Direction | None = None,
        sampling: dict[str, Any] | None = None,
        share: float = 1.0,
    ) -> M:
        values = draw(_modulation(display, direction, sampling))
        left = own(draw, values)
        contrast = draw(_contrast(values, display, share * abs(left)))
        return kind(contrast=math.copysign(contrast, left), **values)

    strategy.__doc__ = f"{summary}; parameters as of `Patterns`."
    return strategy


def _gabor(draw: st.DrawFn, values: dict[str, Any]) -> float:
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


def _grating(draw: st.DrawFn, values: dict[str, Any]) -> float:
    values |= draw(_carrier(values))
    values["window"] = draw(st.sampled_from(Grating.windows))
    shortest = min(values["size"]) / values["ppd"]
    if values["window"] != "none":
        values["radius"] = draw(_number(4 / values["ppd"], shortest, shortest / 3))
        values["edge"] = draw(
            _number(values["radius"] / 20, 2 * values["radius"], values["radius"] / 2)
        )
    return 1.0


def _noise(draw: st.DrawFn, values: dict[str, Any]) -> float:
    ppd = values["ppd"]
    fewest = min(values["size"])
    bandwidth = draw(_number(0.5, 2.0, 1.0))
    edge = draw(_number(0.0, bandwidth, 0.0))
    reach = 2 ** ((bandwidth + edge) / 2)
    # The band holds the coefficients of at least two cycles on the shorter side.
    lowest = 3 * ppd / fewest
    values |= {
        "frequency": draw(
            _number(lowest, max(lowest, ppd / 2 / reach * _HEADROOM), round(ppd / 8, 3))
        ),
        "bandwidth": bandwidth,
        "edge": edge,
        "exponent": draw(_number(0.0, 1.0, 0.0)),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }
    if values["frequency"] * reach > ppd / 2:
        values |= {"frequency": ppd / 6, "bandwidth": 1.0, "edge": 0.0}
    return 1 / _NOISE_PEAK


def _disc(draw: st.DrawFn, values: dict[str, Any]) -> float:
    shortest = min(values["size"]) / values["ppd"]
    radius = draw(_number(2 / values["ppd"], shortest / 2, shortest / 4))
    values |= {
        "radius": radius,
        "edge": draw(_number(0.0, 2 * radius, 0.0)),
        **draw(_place(values)),
    }
    return draw(st.sampled_from([1.0, -1.0]))


gabors = _patterns(Gabor, "Gabors", _gabor)
gratings = _patterns(Grating, "Gratings behind any window", _grating)
noises = _patterns(Noise, "Band-limited noise, brick-wall and soft, white to pink", _noise)
discs = _patterns(Disc, "Discs, brighter and darker, hard and soft", _disc)


@st.composite
def uniforms(
    draw: st.DrawFn, display: Display | None = None, *, sampling: dict[str, Any] | None = None
) -> Uniform:
    """Uniform fields, grey or in LMS; parameters as of `Patterns`."""
    values = _as_pair(sampling or draw(fields()))
    return Uniform(luminance=draw(backgrounds(display)), chromatic=draw(st.booleans()), **values)


@st.composite
def sums(
    draw: st.DrawFn,
    display: Display | None = None,
    *,
    direction: Direction | None = None,
    sampling: dict[str, Any] | None = None,
) -> Sum:
    """A target on a mask, of one background and direction; parameters as of `Patterns`."""
    kinds: list[Patterns[Any]] = [gabors, gratings, noises, discs]
    target: Modulation = draw(
        draw(st.sampled_from(kinds))(display, direction=direction, sampling=sampling, share=0.5)
    )
    same = {"ppd": target.ppd, "size": target.size}
    kind = draw(st.sampled_from(kinds))
    mask: Modulation = draw(kind(display, direction=target.direction, sampling=same, share=0.5))
    scale = mask.contrast
    if display is not None:
        backgrounds = [
            {"luminance": p.luminance, "direction": p.direction, "observer": p.observer}
            for p in (target, mask)
        ]
        shared, own = (_largest_contrast(background, display) for background in backgrounds)
        scale = scale * shared / own if own > 0 else 0.0
    part = mask.changed(luminance=target.luminance, observer=target.observer, contrast=scale)
    return Sum(parts=(target, part))


def stimuli(
    display: Display | None = None,
    *,
    direction: Direction | None = None,
    sampling: dict[str, Any] | None = None,
) -> st.SearchStrategy[Specification]:
    """Stimuli of every kind; parameters as of `Patterns`."""
    kinds: tuple[Callable[..., st.SearchStrategy[Specification]], ...] = (
        gabors,
        gratings,
        noises,
        discs,
        sums,
    )
    patterns = [kind(display, direction=direction, sampling=sampling) for kind in kinds]
    return st.one_of(uniforms(display, sampling=sampling), *patterns)


@st.composite
def shown_stimuli(
    draw: st.DrawFn, *, direction: Direction | None = None, sampling: dict[str, Any] | None = None
) -> tuple[Specification, Display]:
    """A stimulus with a display that can show it; parameters as of `Patterns`."""
    display = draw(displays())
    return draw(stimuli(display, direction=direction, sampling=sampling)), display


@st.composite
def experiments(draw: st.DrawFn) -> str:
    """Whole detection experiments, as the text of an experiment file that `psyprobe.run` takes by
    path.

    Every condition of the level grid can be drawn and shown.
    """
    peak = draw(_number(150.0, 1000.0, 400.0))
    stimulus = draw(
        st.sampled_from([*(f"gabor_{direction}" for direction in DIRECTIONS), "noise_achromatic"])
    )
    direction = stimulus.partition("_")[2]
    most = Display(peak=peak).max_contrast(100.0, direction) * (
        1 / _NOISE_PEAK if "noise" in stimulus else 0.999
    )
    most = min(most, 1.0)
    low = draw(_number(0.5, 4.0, 0.5))
    high = draw(_number(5.0, 20.0, 16.0))
    counts = [draw(st.integers(2, 6)) for _ in range(3)]
    human = 'model = "castle_csf"' + ('\ncontrast = "rms"' if "noise" in stimulus else "")
    return f"""title = "An experiment"
stimulus = "{stimulus}"
probe = "detection"

[human]
{human}

[levels]
frequency = {{ from = {low!r}, to = {high!r}, n = {counts[0]}, scale = "log" }}
contrast = {{ from = {0.001 * most!r}, to = {most!r}, n = {counts[1]}, scale = "log" }}

[score]
multiplier = {{ from = 0.5, to = 2, n = {counts[2]}, scale = "log" }}

[display]
peak = {peak!r}
"""
