"""Stimuli in physical units: draw them, measure them, find them in the catalogue."""

from __future__ import annotations

from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.clip import Clip, UniformClip
from psyprobe.stimulus.kinds import cai2025 as cai2025  # importing registers the kinds
from psyprobe.stimulus.kinds.annulus import AnnulusNoise, annulus_noise
from psyprobe.stimulus.kinds.clips import Counterphase, Drift, Flicker
from psyprobe.stimulus.kinds.discs import Disc, disc
from psyprobe.stimulus.kinds.dots import Dots, dots
from psyprobe.stimulus.kinds.elements import (
    Contour,
    Elements,
    Glass,
    Texture,
    contour,
    elements,
    glass,
    texture,
)
from psyprobe.stimulus.kinds.film import Film, film
from psyprobe.stimulus.kinds.gratings import Gabor, Grating, gabor, grating
from psyprobe.stimulus.kinds.image import Image, image
from psyprobe.stimulus.kinds.letters import (
    Glyph,
    Landolt,
    Optotype,
    TumblingE,
    glyph,
    landolt,
    optotype,
    tumbling_e,
)
from psyprobe.stimulus.kinds.noise import Noise, noise
from psyprobe.stimulus.kinds.square_waves import SquareWave, square
from psyprobe.stimulus.kinds.sums import Sum
from psyprobe.stimulus.kinds.white_noise import (
    BandNoise,
    ColouredNoise,
    WhiteNoise,
    coloured_noise,
    white_noise,
)
from psyprobe.stimulus.parameters import (
    DerivedLevel,
    Parameter,
    file_parameter,
    parameter,
)
from psyprobe.stimulus.pattern import Modulation, Uniform, uniform
from psyprobe.stimulus.registry import (
    broken_kinds,
    specification_from_dict,
    stimulus_kind,
)
from psyprobe.stimulus.specification import Specification, level_of, with_levels
from psyprobe.stimulus.stimulus import Stimulus

__all__ = [
    "AnnulusNoise",
    "Backend",
    "BandNoise",
    "Clip",
    "ColouredNoise",
    "Contour",
    "Counterphase",
    "DerivedLevel",
    "Disc",
    "Dots",
    "Drift",
    "Elements",
    "Film",
    "Flicker",
    "Gabor",
    "Glass",
    "Glyph",
    "Grating",
    "Image",
    "Landolt",
    "Modulation",
    "Noise",
    "Optotype",
    "Parameter",
    "Specification",
    "SquareWave",
    "Stimulus",
    "Sum",
    "Texture",
    "TumblingE",
    "Uniform",
    "UniformClip",
    "WhiteNoise",
    "annulus_noise",
    "broken_kinds",
    "coloured_noise",
    "contour",
    "disc",
    "dots",
    "elements",
    "file_parameter",
    "film",
    "gabor",
    "glass",
    "glyph",
    "grating",
    "image",
    "landolt",
    "level_of",
    "noise",
    "optotype",
    "parameter",
    "specification_from_dict",
    "square",
    "stimulus_kind",
    "texture",
    "tumbling_e",
    "uniform",
    "white_noise",
    "with_levels",
]
