"""Transfer functions of displays: drive to relative light, and its inverse."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, unknown_name

#: "srgb", "linear", the exponent of a power law, or measured (drive, relative light) pairs.
Eotf: TypeAlias = str | float | tuple[tuple[float, float], ...]

#: Straight pieces of a measured curve between two of its points.
_PIECES = 64


def _srgb_junction() -> float:
    """Compute the encoded-light value at which the two branches of sRGB's curve meet exactly."""
    # IEC's rounded constants leave a step of -2.9e-8 at 0.0031308, where no inverse exists. The two
    # branches cross at this point close by; with it the curve is continuous, monotone and exactly
    # invertible.
    x = 0.00313067
    for _ in range(60):
        x -= (12.92 * x - 1.055 * x ** (1 / 2.4) + 0.055) / (
            12.92 - 1.055 / 2.4 * x ** (1 / 2.4 - 1)
        )
    return x


#: Relative light at which the branches of sRGB meet.
SRGB_JUNCTION = _srgb_junction()


def checked_eotf(eotf: Any) -> Eotf:
    """Check a transfer function, a name, exponent or table, and return it hashable."""
    if isinstance(eotf, str):
        if eotf not in ("srgb", "linear"):
            raise unknown_name("EOTF", eotf, ("srgb", "linear"))
        return eotf
    if isinstance(eotf, int | float) and not isinstance(eotf, bool):
        if not 0.2 <= eotf <= 10:
            raise InputError(
                f"an EOTF exponent of {eotf} is not a display's; give 0.2 to 10 (2.2 is common)"
            )
        return float(eotf)
    try:
        table = np.asarray(eotf, float)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if (
        table.ndim != 2
        or table.shape[1] != 2
        or len(table) < 2
        or not np.isfinite(table).all()
    ):
        raise InputError(
            'EOTF must be "srgb", "linear", an exponent, or (drive, relative light) pairs'
        )
    if (
        not (np.diff(table, axis=0) > 0).all()
        or table[0].any()
        or not np.all(table[-1] == 1)
    ):
        raise InputError(
            "a measured EOTF must increase in both columns, from (0, 0) to (1, 1)"
        )
    return tuple((float(a), float(b)) for a, b in table)


def checked_eotfs(eotf: Any) -> Eotf | tuple[Eotf, Eotf, Eotf]:
    """Check the one transfer function of all guns, or those of red, green and blue.

    Three that are equal come back as one.
    """
    is_sequence = isinstance(eotf, list | tuple)
    if not is_sequence or len(eotf) != 3 or all(map(_is_pair, eotf)):
        return checked_eotf(eotf)
    red, green, blue = map(checked_eotf, eotf)
    return red if red == green == blue else (red, green, blue)


def _is_pair(value: Any) -> bool:
    """Tell whether a value is a list or tuple of two entries that are no lists themselves."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    return not any(isinstance(entry, list | tuple) for entry in value)


def light_of_drive(drive: Array, eotf: Eotf) -> Array:
    """Compute relative light (0 to 1) from drive values by a transfer function.

    Parameters
    ----------
    drive : array
        Values in [0, 1], or above 1 on extended-range displays; any shape.
    eotf : "srgb", "linear", float or pairs
        As `Display` takes it.

    Examples
    --------
    >>> float(light_of_drive(np.array([0.5]), "srgb")[0])
    0.21404114048223255
    """
    xp = array_namespace(drive)
    if eotf == "linear":
        # A copy: callers scale light in place.
        return drive * 1
    if isinstance(eotf, float):
        return drive**eotf
    if isinstance(eotf, tuple):
        return _interpolate(drive, *_curve(eotf))
    toe = drive <= 12.92 * SRGB_JUNCTION
    # In place, since memory for an image takes longer to get than to fill.
    light = drive + 0.055
    light /= 1.055
    with np.errstate(invalid="ignore"):
        light **= 2.4
    return xp.where(toe, drive / 12.92, light) if xp.any(toe) else light


def drive_of_light(light: Array, eotf: Eotf, has_toe: bool = True) -> Array:
    """Compute drive values from relative light by the inverse transfer function.

    Parameters
    ----------
    light : array
        Relative light, at least 0.
    eotf : Eotf
        As `checked_eotf` returns it.
    has_toe : bool
        Whether some light may lie below the junction of sRGB; False saves a pass.

    Examples
    --------
    >>> float(drive_of_light(np.array([0.21404114048223255]), "srgb")[0])
    0.5
    """
    if eotf == "linear":
        return light
    if isinstance(eotf, float):
        light **= 1 / eotf
        return light
    if isinstance(eotf, tuple):
        return _interpolate(light, *_curve(eotf)[::-1])
    toe = light <= SRGB_JUNCTION if has_toe else None
    linear = None if toe is None else light[toe] * 12.92
    light **= 1 / 2.4
    light *= 1.055
    light -= 0.055
    if toe is not None:
        light[toe] = linear
    return light


def srgb_float32(light: FloatArray, has_toe: bool, out: FloatArray) -> None:
    """Encode float64 linear light as sRGB drive in float32, rounded once.

    With w the twelfth root of the light in float32 and e = light / w^12 - 1, the power of 5/12 is
    w^5 (1 + e)^(5/12), whose series of three terms is exact to 1e-16.
    """
    power_light = np.maximum(light, SRGB_JUNCTION) if has_toe else light
    seed = power_light.astype(np.float32)
    np.log(seed, out=seed)
    seed *= np.float32(1 / 12)
    np.exp(seed, out=seed)
    w = seed.astype(np.float64)
    w5 = w * w
    w12 = w5 * w
    w5 *= w12
    w12 *= w12
    w12 *= w12
    e = np.divide(power_light, w12, out=w12)
    e -= 1
    drive = np.multiply(e, 1.055 * -35 / 288, out=w)
    drive += 1.055 * 5 / 12
    drive *= e
    drive += 1.055
    drive *= w5
    drive -= 0.055
    if has_toe:
        np.multiply(light, 12.92, out=drive, where=light <= SRGB_JUNCTION)
    np.copyto(out, drive, casting="same_kind")


@cache
def _curve(table: tuple[tuple[float, float], ...]) -> tuple[FloatArray, FloatArray]:
    """Sample the PCHIP through a table finely: drive and light of a curve of straight pieces.

    It passes through the points of the table, and encoding and decoding use the same pieces.
    """
    from scipy.interpolate import PchipInterpolator

    drive, light = np.array(table).T
    fractions = np.arange(_PIECES) / _PIECES
    inner_drive = drive[:-1, None] + np.diff(drive)[:, None] * fractions
    fine_drive = np.append(inner_drive.ravel(), drive[-1])
    fine_light = PchipInterpolator(drive, light)(fine_drive)
    fine_light[::_PIECES] = light
    return fine_drive, np.maximum.accumulate(fine_light)


def _interpolate(values: Array, x: FloatArray, y: FloatArray) -> Array:
    """Interpolate linearly between the points (x, y) in any array library, clamped at the ends."""
    if isinstance(values, np.ndarray | np.floating):
        return np.interp(values, x, y).astype(values.dtype)
    xp = array_namespace(values)
    knots = xp.asarray(x, dtype=values.dtype, device=values.device)
    heights = xp.asarray(y, dtype=values.dtype, device=values.device)
    values = values.contiguous()
    index = xp.clip(xp.searchsorted(knots, values, side="right") - 1, 0, len(x) - 2)
    width = knots[index + 1] - knots[index]
    rise = heights[index + 1] - heights[index]
    fraction = xp.clip((values - knots[index]) / width, 0.0, 1.0)
    return heights[index] + fraction * rise
