"""Stimuli in physical units: draw them, measure them, find them in the catalogue."""

from __future__ import annotations

from typing import Any

from psyprobe.stimulus.annulus import AnnulusNoise
from psyprobe.stimulus.band_noise import Noise
from psyprobe.stimulus.field import Disc, Uniform
from psyprobe.stimulus.masked_gabor import MaskedGabor
from psyprobe.stimulus.specification import (
    KINDS,
    Modulation,
    Specification,
    specification_from_dict,
    stimulus_kind,
    stimulus_kinds,
)
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.superposition import Sum
from psyprobe.stimulus.wave import Gabor, Grating

__all__ = [
    "KINDS",
    "AnnulusNoise",
    "Disc",
    "Gabor",
    "Grating",
    "MaskedGabor",
    "Modulation",
    "Noise",
    "Specification",
    "Stimulus",
    "Sum",
    "Uniform",
    "annulus_noise",
    "disc",
    "gabor",
    "grating",
    "noise",
    "specification_from_dict",
    "stimulus_kind",
    "stimulus_kinds",
    "uniform",
]


def gabor(*, dtype: str = "float64", device: str | None = None, **parameters: Any) -> Stimulus:
    """Draw Gabors: `Gabor` says what the parameters are; arrays of them broadcast to a grid.

    Examples
    --------
    >>> import numpy as np
    >>> f, c = np.geomspace(1, 16, 5), np.geomspace(0.01, 1, 4)
    >>> gabor(frequency=f[:, None], contrast=c, size=64).luminance.shape
    (5, 4, 64, 64)
    """
    return Gabor.from_dict(parameters).draw(dtype=dtype, device=device)


def grating(*, dtype: str = "float64", device: str | None = None, **parameters: Any) -> Stimulus:
    """Draw gratings: `Grating` says what the parameters are.

    Examples
    --------
    >>> grating(frequency=2.0, contrast=0.5, orientation=90).luminance.shape
    (224, 224)
    """
    return Grating.from_dict(parameters).draw(dtype=dtype, device=device)


def noise(*, dtype: str = "float64", device: str | None = None, **parameters: Any) -> Stimulus:
    """Draw band-limited noise: `Noise` says what the parameters are.

    Examples
    --------
    >>> noise(frequency=4.0, contrast=0.1, seed=[3, 4, 5]).luminance.shape
    (3, 224, 224)
    """
    return Noise.from_dict(parameters).draw(dtype=dtype, device=device)


def disc(*, dtype: str = "float64", device: str | None = None, **parameters: Any) -> Stimulus:
    """Draw discs: `Disc` says what the parameters are.

    Examples
    --------
    >>> disc(contrast=-0.2, radius=0.5).luminance.shape
    (224, 224)
    """
    return Disc.from_dict(parameters).draw(dtype=dtype, device=device)


def annulus_noise(*, dtype: str = "float64", device: str | None = None, **parameters: Any) -> Stimulus:
    """Draw noise that fills a ring of spatial frequencies evenly; parameters as in `AnnulusNoise`.

    Examples
    --------
    >>> annulus_noise(frequency=4.0, contrast=0.1, luminance=40.0).pixels.shape
    (256, 256)
    """
    return AnnulusNoise.from_dict(parameters).draw(dtype=dtype, device=device)


def uniform(*, dtype: str = "float64", device: str | None = None, **parameters: Any) -> Stimulus:
    """Draw uniform fields: `Uniform` says what the parameters are.

    Examples
    --------
    >>> uniform(luminance=[10.0, 20.0]).luminance.shape
    (2, 224, 224)
    """
    return Uniform.from_dict(parameters).draw(dtype=dtype, device=device)
