"""Measure how visible a corruption is to the eye.

R-Bench calls a low strength just noticeable and publishes no parameter. Here ColorVideoVDP (Mantiuk
et al. 2024) says how much worse the corrupted image looks on a display, in just-objectionable
differences (JOD): 10 is no difference, and at one below it three of four people prefer the
original. It gives strengths a meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe.corruption.apply import corrupt
from psyprobe.light.display import Display
from psyprobe.observers import load_observer

if TYPE_CHECKING:
    from psyprobe.observers import DifferenceObserver

#: No difference, in JOD.
SAME = 10.0
#: A standard dynamic range monitor.
_DISPLAY = Display(peak=200.0, black=0.2)


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
    """Measure how much worse a corrupted image looks, in just objectionable differences.

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
    strengths = [strength] if isinstance(strength, str | int | float) else strength
    observer = metric or cast("DifferenceObserver", load_observer("cvvdp"))
    original = np.asarray(image)
    corrupted = [_to_drive(corrupt(original, name, level, seed)) for level in strengths]
    tests = np.stack(corrupted)
    reference = _to_drive(original)[None]
    if observer.card.takes_light:
        tests = display.decode(tests)
        reference = display.decode(reference)
    references = np.broadcast_to(reference, tests.shape)
    losses = SAME * np.asarray(observer.difference(tests, references, ppd=ppd))
    return losses if strengths is strength else float(losses[0])


def _to_drive(image: Any) -> Any:
    """Convert an image of 8-bit codes or floats to float32 drive values from 0 to 1."""
    values = np.asarray(image)
    return (values / np.float32(255) if values.dtype == np.uint8 else values).astype(
        np.float32
    )
