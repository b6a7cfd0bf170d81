"""The one call that all contrast sensitivity functions share, and the one check of what is asked of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human import arguments


class ContrastSensitivity(Protocol):
    """What can stand for a human observer's contrast sensitivity: a function of the condition.

    All arguments broadcast and are described in `psyprobe.human.castle_csf`. A model raises
    `psyprobe.errors.InputError` for a condition that it does not have, rather than passing over it.
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


@dataclass(frozen=True)
class Limits:
    """What a model can be asked."""

    #: As in its paper, for messages.
    name: str
    #: Inputs without which it cannot answer.
    needs: tuple[str, ...]
    #: Inputs that it knows besides; it has no others.
    takes: tuple[str, ...] = ()
    #: Ranges that its authors declare; beyond them the formula is evaluated all the same.
    valid: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: Whether it is one curve for all light from 10 cd/m², and refuses less.
    daylight: bool = False
    #: Where it comes from.
    source: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """All that it knows."""
        return (*self.needs, *self.takes)

    def check(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked, by name, once the model is known to have all of it; `InputError` otherwise.

        Examples
        --------
        >>> Limits("mine", ("frequency",)).check({"frequency": 4.0, "eccentricity": 0.0})
        {'frequency': 4.0}
        >>> Limits("mine", ("frequency",)).check({"frequency": 4.0, "area": 1.0})
        Traceback (most recent call last):
        psyprobe.errors.InputError: area=1.0 cannot be given to mine: it has no spatial summation; ...
        """
        for name, value in asked.items():
            if name not in self.inputs and value is not None:
                self._refuse(name, value)
        for name in self.needs:
            if asked.get(name) is None:
                raise InputError(f"{name} is not given, but {self.name} needs it; pass {name}=...")
        return {name: asked[name] for name in self.inputs if asked.get(name) is not None}

    def _refuse(self, name: str, value: Any) -> None:
        """Stop a caller who asks for what the model does not have, unless that is the fovea, at rest, in grey."""
        if name == "direction" and isinstance(value, str) and value == "achromatic":
            return
        if name in ("temporal_frequency", "eccentricity", "visual_field"):
            quantity = arguments.QUANTITIES[name]
            array = quantity.read(value, np.dtype(np.float64))
            if name == "visual_field" or not array.any():  # all places meet at eccentricity 0
                return
            value = f"{array[array > 0][0]:g} {quantity.unit}"
            raise InputError(f"{name}={value} cannot be given to {self.name}: {_LACKS[name]}; use castle_csf")
        reason = _LACKS.get(name, f"it knows {', '.join(self.inputs)}")
        raise InputError(f"{name}={value!r} cannot be given to {self.name}: {reason}; leave it out, or use castle_csf")


_LACKS = {
    "direction": "it knows the achromatic direction only",
    "background": "it has no colour",
    "disc_radius": "it has no discs",
    "area": "it has no spatial summation",
    "temporal_frequency": "it describes a static stimulus at the fovea",
    "eccentricity": "it describes a static stimulus at the fovea",
}


def achromatic_csf(limits: Limits) -> Callable[[Callable[..., FloatArray]], ContrastSensitivity]:
    """Decorator that gives a formula the shared call.

    The formula gets arrays of one precision by name, those of the limits' inputs that are given; one for daylight gets
    no luminance. float32 comes out if all arrays given are float32, else float64, in the shape to which all arguments
    broadcast.
    """

    def decorate(formula: Callable[..., FloatArray]) -> ContrastSensitivity:
        @functools.wraps(formula, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def sensitivity(
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
            asked = {
                "frequency": frequency,
                "luminance": luminance,
                "area": area,
                "temporal_frequency": temporal_frequency,
                "eccentricity": eccentricity,
                "visual_field": visual_field,
            }
            given = limits.check({"direction": direction, "background": background, "disc_radius": disc_radius} | asked)
            dtype = arguments.floating_dtype(*asked.values())
            if limits.daylight and luminance is not None:
                arguments.PHOTOPIC_LUMINANCE.read(given.pop("luminance"), dtype)
            arrays = arguments.read_quantities(given, dtype)
            shape = arguments.common_shape(
                {name: np.shape(value) for name, value in asked.items() if value is not None}
            )
            # What underflows ends as no sensitivity, also behind a noise that is infinite.
            with np.errstate(under="ignore", over="ignore", divide="ignore"):
                values = formula(**arrays)
            result: FloatArray = np.broadcast_to(values, shape).astype(dtype)[()]
            return result

        del sensitivity.__wrapped__  # the call is the shared one, not the formula's
        return sensitivity

    return decorate
