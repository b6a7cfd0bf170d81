"""Draw what a test does not mean to measure: phase, position and noise, all of them anew."""

from __future__ import annotations

import numpy as np

from psyprobe.errors import InputError
from psyprobe.stimulus.specification import Specification

#: Name of the variant that stands for a joint draw, by its number.
DRAW = "draw"
#: Most joint draws that a page may ask for by their number.
LARGEST_DRAW_COUNT = 1000
#: Seed of all draws, so that every observer is shown the same.
_SEED = 20_252_256
#: Farthest shift of position, in pixels: half a patch of 16, or half a step of a slow layer.
_FARTHEST = 8.0


def drawn_parameters(
    stimulus: Specification, names: list[str], number: float
) -> dict[str, float]:
    """Draw phase, position and noise seeds of a stimulus, the same at all levels.

    Parts of a stimulus move together, so that the phase between target and mask stays.

    Parameters
    ----------
    stimulus : Specification
        With the values of its page, to which phase, position and seed are added.
    names : list of str
        Parameters that may vary.
    number : float
        Which draw, from 1. Of 16 draws the first eight are those of eight.

    Raises
    ------
    InputError
        The number is none of a draw.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> drawn = drawn_parameters(Gabor(frequency=4, contrast=0.1), ["phase", "x"], 1)
    >>> {name: round(value, 3) for name, value in drawn.items()}
    {'phase': 41.692, 'x': 0.082}
    """
    if number < 1 or number != int(number):
        raise InputError(f"draw is {number:g}; give the number of a draw: 1, 2, 3 ...")
    phase, x, y = np.random.default_rng([_SEED, int(number)]).uniform(-1, 1, 3).tolist()
    shifts = {
        "phase": 180.0 * phase,
        "x": _FARTHEST * x / stimulus.ppd,
        "y": _FARTHEST * y / stimulus.ppd,
        "seed": int(number),
    }
    drawn: dict[str, float] = {}
    for name in names:
        shift = shifts.get(name.rpartition("_")[2])
        if shift is not None:
            drawn[name] = float(stimulus.value(name)) + shift
    return drawn
