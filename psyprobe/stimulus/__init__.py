"""Stimuli in physical units: draw them, measure them, find them in the catalogue."""

from __future__ import annotations

from psyprobe.stimulus.clip import Clip, UniformClip
from psyprobe.stimulus.kinds import cai2025 as cai2025  # importing registers the kinds
from psyprobe.stimulus.kinds.clips import Counterphase, Drift, Flicker
from psyprobe.stimulus.kinds.noise import AnnulusNoise, Noise, annulus_noise, noise
from psyprobe.stimulus.kinds.patches import Disc, Gabor, Grating, disc, gabor, grating
from psyprobe.stimulus.kinds.sums import MaskedGabor, Sum
from psyprobe.stimulus.parameters import DerivedLevel, Parameter, parameter
from psyprobe.stimulus.pattern import Modulation, Uniform, uniform
from psyprobe.stimulus.specification import (
    Specification,
    Stimulus,
    broken_kinds,
    level_of,
    specification_from_dict,
    stimulus_kind,
    with_levels,
)

__all__ = [
    "AnnulusNoise",
    "Clip",
    "Counterphase",
    "DerivedLevel",
    "Disc",
    "Drift",
    "Flicker",
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
    "UniformClip",
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
