"""Stimuli in physical units: draw them, measure them, find them in the catalogue."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from psyprobe.stimulus.kinds import cai2025 as cai2025  # importing registers the kinds
from psyprobe.stimulus.kinds.annulus import AnnulusNoise
from psyprobe.stimulus.kinds.discs import Disc
from psyprobe.stimulus.kinds.masks import MaskedGabor
from psyprobe.stimulus.kinds.noise import Noise
from psyprobe.stimulus.kinds.sums import Sum
from psyprobe.stimulus.kinds.uniform import Uniform
from psyprobe.stimulus.kinds.waves import Gabor, Grating
from psyprobe.stimulus.levels import level_of, with_levels
from psyprobe.stimulus.modulation import Modulation
from psyprobe.stimulus.parameters import DerivedLevel, Parameter, parameter
from psyprobe.stimulus.registry import broken_kinds, specification_from_dict, stimulus_kind
from psyprobe.stimulus.specification import Specification
from psyprobe.stimulus.stimulus import Stimulus

if TYPE_CHECKING:
    from psyprobe.stimulus.drawing import annulus_noise, disc, gabor, grating, noise, uniform

__all__ = [
    "AnnulusNoise",
    "DerivedLevel",
    "Disc",
    "Gabor",
    "Grating",
    "MaskedGabor",
    "Modulation",
    "Noise",
    "Parameter",
    "Specification",
    "Stimulus",
    "Sum",
    "Uniform",
    "annulus_noise",
    "broken_kinds",
    "disc",
    "gabor",
    "grating",
    "level_of",
    "noise",
    "parameter",
    "specification_from_dict",
    "stimulus_kind",
    "uniform",
    "with_levels",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("psyprobe.stimulus.drawing"), name)
    raise AttributeError(f"module 'psyprobe.stimulus' has no attribute {name!r}")
