"""The contrast sensitivity functions by name, and the one call they share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name
from psyprobe.human.barten import barten_csf
from psyprobe.human.castle import castle_csf
from psyprobe.human.stela import stela_csf
from psyprobe.human.watson_ahumada import watson_ahumada_csf
from psyprobe.human.watson_malo import watson_malo_csf


class ContrastSensitivity(Protocol):
    """What can stand for a human observer's contrast sensitivity: a function of the condition.

    All arguments broadcast; units as in `psyprobe.human.castle_csf`. A model raises
    `psyprobe.errors.InputError` for a parameter that it does not have, rather than passing over it.
    """

    def __call__(
        self,
        frequency: npt.ArrayLike | None = None,
        *,
        luminance: npt.ArrayLike | None = None,
        background: npt.ArrayLike | None = None,
        direction: npt.ArrayLike | None = None,
        area: npt.ArrayLike | None = None,
        disc_radius: npt.ArrayLike | None = None,
        temporal_frequency: npt.ArrayLike = 0.0,
        eccentricity: npt.ArrayLike = 0.0,
        visual_field: npt.ArrayLike = 180.0,
    ) -> FloatArray:
        """Sensitivity, 1 / contrast at threshold."""
        ...


#: Every model by name, as an experiment file names it.
CSF_MODELS: Mapping[str, ContrastSensitivity] = MappingProxyType(
    {
        "castle_csf": castle_csf,
        "stela_csf": stela_csf,
        "barten_csf": barten_csf,
        "watson_malo_csf": watson_malo_csf,
        "watson_ahumada_csf": watson_ahumada_csf,
    }
)


def csf(name: str) -> ContrastSensitivity:
    """The contrast sensitivity function of that name.

    Parameters
    ----------
    name : str
        A key of `CSF_MODELS`.

    Returns
    -------
    ContrastSensitivity
        A function (frequency, *, luminance, area, ...) -> sensitivity.

    Raises
    ------
    UnknownNameError
        If there is no model of that name; the message names the nearest.

    Examples
    --------
    >>> float(csf("castle_csf")(4, luminance=100, direction="achromatic", area=1).round(2))
    134.61
    >>> csf("castel_csf")
    Traceback (most recent call last):
    psyprobe.errors.UnknownNameError: unknown contrast sensitivity function 'castel_csf'; did you mean 'castle_csf'? ...
    """
    if name not in CSF_MODELS:
        raise unknown_name("contrast sensitivity function", name, CSF_MODELS)
    return CSF_MODELS[name]
