"""Measure how visible a corruption is to the eye.

R-Bench calls a low strength just noticeable and publishes no parameter. Here ColorVideoVDP (Mantiuk
et al. 2024) says how much worse the corrupted image looks on a display, in just-objectionable
differences (JOD): 10 is no difference, and at one below it three of four people prefer the
original. It gives strengths a meaning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe.corruption.apply import corrupt, dimension_of
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.observers import load_observer

if TYPE_CHECKING:
    from psyprobe.observers import DifferenceObserver

#: No difference, in JOD.
SAME = 10.0
#: A standard dynamic range monitor.
_DISPLAY = Display(peak=200.0, black=0.2)
#: Spans over more than this are searched on a logarithmic scale.
_LARGEST_LINEAR_RATIO = 8.0


@dataclass(frozen=True)
class Visibility:
    """A parameter and how visible it is."""

    #: Name of the dimension.
    name: str
    #: Parameter in the unit of the dimension.
    parameter: float
    #: JOD below 10 at this parameter, the mean over images.
    loss: float
    #: Whether the requested loss is within the span that was searched; if not, the parameter is its
    #: end.
    reached: bool


def visible_loss(
    image: Any,
    name: str,
    strength: str | float | Sequence[str | float],
    *,
    seed: int = 0,
    display: Display = _DISPLAY,
    ppd: float = 60.0,
    metric: DifferenceObserver | None = None,
) -> Any:
    """Measure how much worse a corrupted image looks, in JOD.

    Parameters
    ----------
    image : array_like, shape (H, W, 3)
        sRGB: uint8, or float from 0 to 1.
    name : str
        A dimension.
    strength : str, float or sequence of these
        As for `corrupt`; several are passed through the metric together.
    seed : int
        Seed of the corruption.
    display : Display
        Display that shows both images.
    ppd : float
        Pixels per degree at which they are seen.
    metric : DifferenceObserver, optional
        Metric of differences; by default ColorVideoVDP.

    Returns
    -------
    float or ndarray
        JOD below 10; 0 is no difference.
    """
    strengths = (
        [strength] if isinstance(strength, str | int | float) else list(strength)
    )
    observer = metric or cast("DifferenceObserver", load_observer("cvvdp"))
    original = np.asarray(image)
    corrupted = [_drive(corrupt(original, name, level, seed)) for level in strengths]
    light = display.decode(np.stack(corrupted))
    reference = np.broadcast_to(display.decode(_drive(original)[None]), light.shape)
    losses = SAME * np.asarray(observer.difference(light, reference, ppd=ppd))
    return float(losses[0]) if isinstance(strength, str | int | float) else losses


def parameter_for(
    images: Sequence[Any],
    name: str,
    loss: float = 1.0,
    *,
    seed: int = 0,
    display: Display = _DISPLAY,
    ppd: float = 60.0,
    metric: DifferenceObserver | None = None,
    tolerance: float = 0.05,
    max_passes: int = 10,
) -> Visibility:
    """Search for the parameter of a dimension at which images look worse by a loss.

    Parameters
    ----------
    images : sequence of array_like, each (H, W, 3)
        One for a parameter of its own, or a set for one in common; sRGB.
    name : str
        A dimension.
    loss : float
        Wanted loss, JOD; 1 is about one just-objectionable difference.
    seed, display, ppd, metric
        As for `visible_loss`.
    tolerance : float
        Largest distance from the loss, JOD.
    max_passes : int
        Most passes.

    Returns
    -------
    Visibility
        Result of a bisection between no effect and an effect beyond the high strength, with the
        same chance in every pass.

    Raises
    ------
    UnknownNameError
        There is no such dimension.
    InputError
        The loss is not above 0, or there is no image.
    """
    dimension = dimension_of(name)
    if not (loss > 0 and math.isfinite(loss)):
        raise InputError(
            f"a loss of {loss:g} JOD is not above 0; usual are 1 (low) to 5 (high)"
        )
    if not images:
        raise InputError("there is no image to look at; give at least one")
    observer = metric or cast("DifferenceObserver", load_observer("cvvdp"))
    mild, severe = dimension.span
    wide = (
        min(mild, severe) > 0
        and max(mild, severe) / min(mild, severe) > _LARGEST_LINEAR_RATIO
    )

    def measure(share: float) -> Visibility:
        """Measure the loss at a share of the span: 0 no effect, 1 the strongest searched."""
        parameter = float(
            mild * (severe / mild) ** share if wide else mild + (severe - mild) * share
        )
        if dimension.whole:
            parameter = float(round(parameter))
        losses = [
            visible_loss(
                image,
                name,
                parameter,
                seed=seed,
                display=display,
                ppd=ppd,
                metric=observer,
            )
            for image in images
        ]
        return Visibility(name, parameter, float(np.mean(losses)), reached=True)

    visibility = measure(1.0)
    if visibility.loss < loss - tolerance:
        return replace(visibility, reached=False)
    low = 0.0
    high = 1.0
    for _ in range(max_passes):
        if abs(visibility.loss - loss) <= tolerance:
            break
        middle = (low + high) / 2
        visibility = measure(middle)
        if visibility.loss < loss:
            low = middle
        else:
            high = middle
    return visibility


def _drive(image: Any) -> Any:
    values = np.asarray(image)
    return (values / np.float32(255) if values.dtype == np.uint8 else values).astype(
        np.float32
    )
