"""Readings of a screen: luminances, tristimulus values or spectra from a CSV, and PsychoPy's
monitor files.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.parsing import parse_json, read_bytes, read_text
from psyprobe.light.display import pixels_per_degree

#: Codes that stand for full drive: 8, 10, 12 and 16 bits.
_FULL_CODES = (255, 1023, 4095, 65535)

GUNS = ("red", "green", "blue")
_NAMES = ("white", *GUNS, "black")
_SCALES = ("drive", "code")

#: Colour matching functions of colour-science by the name that a page gives them.
CMFS = {
    "cie1931": "CIE 1931 2 Degree Standard Observer",
    "cie2006": "CIE 2015 2 Degree Standard Observer",
}

#: lm/W, CIE.
_MOST_EFFICACY = 683.002

_COLUMNS = (
    "give drive (0 to 1) or code (0 to 255, 1023, 4095 or 65535), luminance_cd_m2 (in cd/m²; or "
    "X, Y, Z; x, y, Y; or "
    "wavelengths in nm), and gun (white, red, green, blue) if guns were measured alone"
)


@dataclass(frozen=True)
class Readings:
    """What a meter read of a screen, a row each."""

    #: Of the file.
    name: str
    #: "white", "red", "green" or "blue".
    gun: Any
    #: 0 to 1.
    drive: FloatArray
    #: cd/m².
    luminance: FloatArray
    #: Shape (n, 3), Y in cd/m²; None where the meter knew no colour.
    xyz: FloatArray | None = None
    #: Exponents, or relative curves, of red, green and blue where the file has these and no
    #: readings between.
    eotf: tuple[Any, ...] | None = None
    #: Chromaticities or (X, Y, Z) of the guns where they were measured apart from the readings.
    primaries: tuple[tuple[float, ...], ...] | None = None
    #: Pixels per degree, where the file says how large the screen is and how far away.
    ppd: float | None = None


def read_readings(path: str | Path, cmfs: str = "cie1931") -> Readings:
    """The readings of a file.

    Parameters
    ----------
    path : str or Path
        A CSV, or a PsychoPy monitor (``.json``).
    cmfs : {"cie1931", "cie2006"}
        Colour matching functions by which spectra become XYZ.
    """
    name = Path(path).name
    if cmfs not in CMFS:
        raise unknown_name("colour matching functions", str(cmfs), CMFS)
    start = read_bytes(path)[:64]
    pickled = start.startswith((b"\x80", b"(dp", b"ccopy"))
    if pickled or Path(path).suffix.lower() in (".calib", ".pickle", ".pkl"):
        raise InputError(
            f"{name} is a pickled monitor, and to read it would run what is in it; open it in "
            "PsychoPy's Monitor "
            "Center and save it there, which writes JSON"
        )
    if start.lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"{"):
        return _monitor(parse_json(read_text(path), name), name, cmfs)
    rows = [
        row
        for row in csv.reader(read_text(path).lstrip("\ufeff").splitlines())
        if any(map(str.strip, row))
    ]
    header = [word.strip() for word in rows[0]] if rows else []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(
                f"{name}, row {number} has {len(row)} values for {len(header)} columns; give "
                "one for each"
            )
    columns = dict(zip(header, zip(*rows[1:], strict=True), strict=False))
    if header and header[0].lower() in ("wavelength_nm", "wavelength", "nm"):
        return _side_by_side(columns, header, name, cmfs)
    return _table(columns, header, name, cmfs)


def spectra_to_xyz(
    wavelengths: FloatArray, radiance: FloatArray, cmfs: str = "cie1931"
) -> FloatArray:
    """Tristimulus values of spectra, by colour-science.

    Parameters
    ----------
    wavelengths : array, shape (m,)
        nm, evenly spaced.
    radiance : array, shape (n, m)
        W/(sr m² nm).
    cmfs : {"cie1931", "cie2006"}
        Colour matching functions of 2 degrees.

    Returns
    -------
    array, shape (n, 3)
        Y in cd/m².

    Examples
    --------
    One watt at 555 nm is about 683 lumens:

    >>> nm = np.arange(380.0, 781.0)
    >>> float(spectra_to_xyz(nm, (nm == 555)[None].astype(float))[0, 1].round(1))
    683.0
    """
    try:
        with np.printoptions():
            import colour
    except ImportError:
        raise InputError(
            "spectra become XYZ by colour-science, which is not installed; pip install "
            "psyprobe[colour], or give X, Y "
            "and Z"
        ) from None
    steps = np.diff(wavelengths)
    if (
        len(wavelengths) < 10
        or not (steps > 0).all()
        or wavelengths[0] > 420
        or wavelengths[-1] < 680
    ):
        raise InputError(
            f"spectra have {len(wavelengths)} wavelengths from {min(wavelengths, default=0):g} to "
            f"{max(wavelengths, default=0):g} nm; give them rising, from 420 nm or less to 680 "
            "nm or more"
        )
    matching = colour.MSDS_CMFS[CMFS[cmfs]]
    # In steps of 1 nm, as the tables of the observer have; what was not measured is dark.
    fine = np.arange(math.ceil(wavelengths[0]), math.floor(wavelengths[-1]) + 1.0)
    weights = np.stack([np.interp(fine, matching.wavelengths, each) for each in matching.values.T])
    if np.allclose(steps, 1) and float(wavelengths[0]).is_integer():
        power = radiance
    else:
        from scipy.interpolate import CubicSpline

        power = CubicSpline(wavelengths, radiance, axis=1)(fine)
    return np.asarray(_MOST_EFFICACY * power @ weights.T)


def _table(columns: dict[str, Any], header: list[str], name: str, cmfs: str) -> Readings:
    """A row a reading: luminance, tristimulus values or a spectrum."""
    scales = [word for word in _SCALES if word in header]
    waves = [word for word in header if _is_number(word)]
    colour = next(
        (each for each in (("X", "Y", "Z"), ("x", "y", "Y")) if set(each) <= set(header)), ()
    )
    measured = colour or waves or ["luminance_cd_m2"]
    strange = [
        word for word in header if word not in (*_SCALES, "gun", "luminance_cd_m2", *measured)
    ]
    if (
        not set(measured) <= set(header)
        or len(scales) != 1
        or strange
        or len(set(header)) != len(header)
    ):
        raise InputError(
            f"{name} has the columns {', '.join(header)[:100] or 'of an empty file'}; {_COLUMNS}"
        )
    drive = _numbers(columns.get(scales[0], ()), scales[0], name)
    gun = np.array([word.strip().lower() for word in columns.get("gun", ["white"] * len(drive))])
    xyz = None
    if waves:
        radiance = np.stack(
            [_numbers(columns.get(word, ()), f"{word} nm", name) for word in waves], axis=1
        )
        xyz = spectra_to_xyz(np.array(waves, float), radiance, cmfs)
    elif colour:
        xyz = np.stack([_numbers(columns.get(word, ()), word, name) for word in colour], axis=1)
        if colour[0] == "x":
            x, y, light = xyz.T
            if not ((x >= 0) & (y > 0) & (x + y <= 1)).all():
                raise InputError(
                    f"{name} has an (x, y) that no light has; x >= 0, y > 0 and x + y <= 1 are"
                )
            xyz = np.stack([x / y * light, light, (1 - x - y) / y * light], axis=1)
    luminance = (
        _numbers(columns.get("luminance_cd_m2", ()), "luminance_cd_m2", name)
        if xyz is None
        else xyz[:, 1]
    )
    if not (luminance > 0).all():
        dark = int(np.argmin(luminance))
        raise InputError(
            f"{name} has a luminance of {luminance[dark]:g} cd/m² at {scales[0]} "
            f"{drive[dark]:g}; every luminance must "
            "be above 0: below the meter's range give the least that it can tell"
        )
    if scales[0] == "code":
        drive = drive / _full_code(drive, name)
    if drive.size and not (drive.min() >= 0 and drive.max() <= 1):
        out = drive[(drive < 0) | (drive > 1)][0]
        raise InputError(
            f"{name} has a drive of {out:g}; give 0 to 1, or name the column code if these are "
            "codes"
        )
    return _named(Readings(name, gun, drive, luminance, xyz))


def _side_by_side(columns: dict[str, Any], header: list[str], name: str, cmfs: str) -> Readings:
    """Spectra at full drive, a column each: red, green, blue, white, black."""
    wavelengths = _numbers(columns.get(header[0], ()), header[0], name)
    words = header[1:]
    radiance = (
        np.stack([_numbers(columns.get(word, ()), word, name) for word in words])
        if words
        else np.empty((0, 0))
    )
    gun = np.array([word.strip().lower() for word in words])
    if not set(GUNS) <= set(gun.tolist()):
        raise InputError(
            f"{name} has spectra of {', '.join(words)[:100] or 'nothing'}; give red, green, "
            "blue, and white and black "
            "if measured, at full drive"
        )
    xyz = spectra_to_xyz(wavelengths, radiance, cmfs)
    return _named(Readings(name, gun, np.where(gun == "black", 0.0, 1.0), xyz[:, 1], xyz))


def _named(readings: Readings) -> Readings:
    """With "black" as white at drive 0, and every other gun known."""
    for word in np.unique(readings.gun):
        if word not in _NAMES:
            raise InputError(f"{readings.name} has the gun {str(word)!r}; give {', '.join(_NAMES)}")
    black = readings.gun == "black"
    if (readings.drive[black] > 0).any():
        raise InputError(
            f"{readings.name} has black at drive {readings.drive[black].max():g}; black is drive 0"
        )
    return replace(readings, gun=np.where(black, "white", readings.gun))


def _monitor(page: Any, name: str, cmfs: str) -> Readings:
    """The last calibration of a PsychoPy monitor by name, as PsychoPy takes it."""
    calibrations = page if isinstance(page, dict) else {}
    if not calibrations or not all(
        isinstance(calibration, dict) for calibration in calibrations.values()
    ):
        raise InputError(f"{name} is no monitor that PsychoPy saved; it holds no calibration")
    found = calibrations[max(calibrations)]
    place = _ppd(found)
    primaries = None
    nm = _array(found, "spectraNM", 1)
    spectra = _array(found, "spectraRGB", 2)
    if nm is not None and spectra is not None and spectra.shape == (3, len(nm)):
        xyz = spectra_to_xyz(nm, spectra, cmfs)
        primaries = tuple(tuple(map(float, each)) for each in xyz)
    lums = _array(found, "lumsPre", 2)
    levels = _array(found, "levelsPre", 1)
    if lums is not None and levels is not None and len(lums) <= 4 and lums.shape[1] == len(levels):
        if not (np.isfinite(lums).all() and np.isfinite(levels).all()):
            raise InputError(
                f"{name} has luminances that are no numbers; calibrate the monitor again"
            )
        guns = np.repeat(["white", *GUNS][: len(lums)], len(levels))
        drive = np.tile(levels / (255.0 if levels.max() > 1 else 1.0), len(lums))
        return Readings(name, guns, drive, _above_dark(lums.ravel()), None, None, primaries, place)
    grid = _array(found, "gammaGrid", 2)
    if grid is None or len(grid) != 4 or grid.shape[1] < 3 or not (grid[:, 1] > 1).any():
        raise InputError(
            f"{name} holds no calibration: neither luminances that were measured (lumsPre) nor "
            "a fitted gamma grid; "
            "calibrate the monitor in PsychoPy, or give a CSV of luminances"
        )
    method = found.get("linearizeMethod", found.get("lineariseMethod", 1))
    curves = tuple(_fitted(row, method, name) for row in grid[1:])
    light = np.array([max(grid[0, 0], 0.0), grid[0, 1]])
    return Readings(
        name, np.array(["white"] * 2), np.array([0.0, 1.0]), light, None, curves, primaries, place
    )


def _fitted(row: FloatArray, method: Any, name: str) -> Any:
    """The relative curve of a gun by PsychoPy's equation 1, 2 or 4 (Pelli & Zhang 1991)."""
    low, high, gamma = (float(value) for value in row[:3])
    if method not in (1, 2, 4) or not (
        np.isfinite(row[:3]).all() and high > low >= 0 and 0.2 <= gamma <= 10
    ):
        raise InputError(
            f"{name} has a gun of {low:g} to {high:g} cd/m² with gamma {gamma:g}, linearised by "
            f"method {method!r}; "
            "known are methods 1, 2 and 4 with a gamma of 0.2 to 10, and a maximum above the "
            "minimum"
        )
    if method == 1:
        return gamma
    if method == 2:
        start = low ** (1 / gamma)
        rise = high ** (1 / gamma) - start
    else:
        start = float(row[4]) if len(row) > 4 and np.isfinite(row[4]) else 0.0
        rise = (high - low + start**gamma) ** (1 / gamma) - start
    drive = np.linspace(0, 1, 65)
    light = (start + rise * drive) ** gamma - start**gamma
    light = light / light[-1]
    return tuple((float(a), float(b)) for a, b in zip(drive, light, strict=True))


def _ppd(found: dict[str, Any]) -> float | None:
    """Of width and distance in cm, and pixels."""
    size = _array(found, "sizePix", 1)
    width = found.get("width")
    distance = found.get("distance")
    numbers = [value for value in (width, distance) if isinstance(value, int | float) and value > 0]
    if size is None or len(size) != 2 or not size[0] > 0 or len(numbers) != 2:
        return None
    try:
        return pixels_per_degree(numbers[0] / float(size[0]), numbers[1])
    except InputError:
        # A geometry that nobody set is no reason not to read the luminances.
        return None


def _array(found: dict[str, Any], key: str, dimensions: int) -> FloatArray | None:
    """An array as json_tricks writes it, or a list."""
    value = found.get(key)
    value = value.get("__ndarray__") if isinstance(value, dict) else value
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == dimensions and numbers.size else None


def _above_dark(light: FloatArray) -> FloatArray:
    """Luminances of which a meter told 0 below its range, as a thousandth of the least that it
    told.
    """
    least = light[light > 0].min(initial=np.inf)
    return np.where(light > 0, light, least / 1000 if np.isfinite(least) else light)


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


def _numbers(words: Sequence[str], column: str, name: str) -> FloatArray:
    values = np.empty(len(words))
    for place, word in enumerate(words):
        try:
            values[place] = float(word)
        except ValueError:
            values[place] = np.nan
        if not np.isfinite(values[place]):
            raise InputError(
                f"{name} has {word.strip()[:40]!r} as {column}; give a finite number without a unit"
            )
    return values


def _full_code(codes: FloatArray, name: str) -> float:
    most = codes.max(initial=0)
    if most not in _FULL_CODES or codes.min() < 0 or (codes % 1).any():
        raise InputError(
            f"{name} has codes from {codes.min(initial=0):g} to {most:g}; give whole numbers "
            "from 0 to full drive, "
            "which is 255, 1023, 4095 or 65535"
        )
    return float(most)
