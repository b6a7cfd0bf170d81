"""What the 33 dimensions are called, and where on the way from scene to viewer they arise."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files

#: Strengths as R-Bench numbers them, from 1.
STRENGTHS = ("low", "mid", "high")

#: The seven steps on the way of an image, in their order.
STEPS = {
    "EI": "Environment interference",
    "CI": "Camera interference",
    "AD": "Analog-to-digital conversion",
    "SE": "Source encoding",
    "CT": "Channel transmission",
    "RD": "Receiver decoding",
    "EP": "Enhancement post-processing",
}

#: Low-level attributes that a dimension spoils; "Wild" are those that the authors photographed.
GROUPS = ("Blur", "Luminance", "Chrominance", "Spatial", "Noise", "Compression", "Wild")


@dataclass(frozen=True)
class Dimension:
    """One way in which an image goes wrong, as ``dimensions.toml`` lists it."""

    #: In lower case: "motion_blur".
    name: str
    #: 1 to 33, as in R-Bench.
    id: int
    #: As R-Bench prints it.
    title: str
    #: A key of `STEPS`.
    step: str
    #: One of `GROUPS`.
    group: str
    #: Whether chance has a part in it, so that it takes a seed.
    stochastic: bool
    #: What its parameter is, with its unit.
    parameter: str
    #: The parameter at low, mid and high strength.
    levels: tuple[float, ...]
    #: From no effect, or nearly none, to beyond the high strength: where a parameter is searched.
    span: tuple[float, ...]
    #: Where the levels come from; R-Bench publishes none.
    source: str
    #: Whether the parameter is a whole number.
    whole: bool
    #: What grows with the image where that is asked for: a "length" with its side, a "count" with its area.
    scales: str
    #: Number of the same type in KADID-10k.
    kadid: int | None
    #: Whether R-Bench photographed it; here it is simulated, so scores must not be put beside the paper's.
    captured: bool


@functools.cache
def dimensions() -> dict[str, Dimension]:
    """The 33 dimensions by name, in the order of their numbers.

    >>> [name for name, dimension in dimensions().items() if dimension.captured][:2]
    ['bright_illumination', 'dark_illumination']
    """
    page = tomllib.loads(files("psyprobe.corruption").joinpath("dimensions.toml").read_text(encoding="utf-8"))
    plain = {"whole": False, "scales": "", "kadid": None, "captured": False}
    return {
        name: Dimension(name, **plain | row | {"levels": tuple(row["levels"]), "span": tuple(row["span"])})
        for name, row in page.items()
    }
