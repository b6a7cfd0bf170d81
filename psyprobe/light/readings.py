"""Read what a meter measured of a screen, from a CSV or a PsychoPy monitor file."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import parse_json, read_bytes, read_text
from psyprobe.light.display import pixels_per_degree

#: Codes that stand for full drive: 8, 10, 12 and 16 bits.
_FULL_CODES = (255, 1023, 4095, 65535)

GUNS = ("red", "green", "blue")
_GUN_NAMES = ("white", *GUNS, "black")
_DRIVE_COLUMNS = ("drive", "code")
_XYZ = ("X", "Y", "Z")
_XYY = ("x", "y", "Y")

#: Colour matching functions of colour-science by the name that `[display] cmfs` gives them.
CMFS = {
    "cie1931": "CIE 1931 2 Degree Standard Observer",
    "cie2006": "CIE 2015 2 Degree Standard Observer",
}

#: Maximum luminous efficacy, lm/W (CIE).
_MAX_EFFICACY = 683.002

_COLUMNS = (
    "give drive (0 to 1) or code (0 to 255, 1023, 4095 or 65535), luminance_cd_m2 (in cd/m²; or X, "
    "Y, Z; x, y, Y; or wavelengths in nm), and gun (white, red, green, blue) if guns were measured "
    "alone"
)


@dataclass(frozen=True)
class Readings:
    """A meter's readings of a screen; arrays have one entry a reading."""

    #: Name of the file.
    name: str
    #: "white", "red", "green" or "blue".
    gun: Any
    #: Drive of the screen, 0 to 1.
    drive: FloatArray
    #: Luminance, cd/m².
    luminance: FloatArray
    #: XYZ, shape (n, 3), Y in cd/m²; None if the meter measured no colour.
    xyz: FloatArray | None = None
    #: Exponents, or relative curves, of red, green and blue, if the file has these and no readings
    #: between black and full drive.
    eotf: tuple[Any, ...] | None = None
    #: Chromaticities or (X, Y, Z) of the guns, if they were measured apart from the readings.
    primaries: tuple[tuple[float, ...], ...] | None = None
    #: Pixels per degree, if the file has the size of the screen and the viewing distance.
    ppd: float | None = None


def read_readings(path: str | Path, cmfs: str = "cie1931") -> Readings:
    """Read a meter's readings of a screen from a file.

    Parameters
    ----------
    path : str or Path
        A CSV, or a PsychoPy monitor (``.json``).
    cmfs : {"cie1931", "cie2006"}
        Colour matching functions that turn spectra into XYZ.
    """
    name = Path(path).name
    if cmfs not in CMFS:
        raise unknown_name("colour matching functions", str(cmfs), CMFS)
    start = read_bytes(path)[:64]
    is_pickle = start.startswith((b"\x80", b"(dp", b"ccopy"))
    if is_pickle or Path(path).suffix.lower() in (".calib", ".pickle", ".pkl"):
        raise InputError(
            f"{name} is a pickled monitor, and to read it would run what is in it; open it in "
            "PsychoPy's Monitor Center and save it there, which writes JSON"
        )
    if start.lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"{"):
        return _readings_of_monitor(parse_json(read_text(path), name), name, cmfs)
    lines = read_text(path).lstrip("\ufeff").splitlines()
    rows = [row for row in csv.reader(lines) if any(map(str.strip, row))]
    header = [word.strip() for word in rows[0]] if rows else []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(
                f"{name}, row {number} has {len(row)} values for {len(header)} columns; give one "
                "for each"
            )
    columns = {word: [row[i] for row in rows[1:]] for i, word in enumerate(header)}
    if len(columns) < len(header):
        raise InputError(
            f"{name} has the columns {', '.join(header)[:100]}; name each by another name"
        )
    if header and header[0].lower() in ("wavelength_nm", "wavelength", "nm"):
        return _readings_of_spectra(columns, name, cmfs)
    return _readings_of_table(columns, name, cmfs)


def spectra_to_xyz(
    wavelengths: FloatArray, radiance: FloatArray, cmfs: str = "cie1931"
) -> FloatArray:
    """Compute the tristimulus values of spectra with colour-science's tables.

    Parameters
    ----------
    wavelengths : array, shape (m,)
        Wavelengths in nm, rising.
    radiance : array, shape (n, m)
        Spectral radiance in W/(sr m² nm).
    cmfs : {"cie1931", "cie2006"}
        Colour matching functions of 2 degrees.

    Returns
    -------
    array, shape (n, 3)
        XYZ, Y in cd/m².

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
            "psyprobe[colour], or give X, Y and Z"
        ) from None
    steps = np.diff(wavelengths)
    too_few = len(wavelengths) < 10 or not (steps > 0).all()
    if too_few or wavelengths[0] > 420 or wavelengths[-1] < 680:
        raise InputError(
            f"spectra have {len(wavelengths)} wavelengths from {min(wavelengths, default=0):g} to "
            f"{max(wavelengths, default=0):g} nm; give them rising, from 420 nm or less to 680 nm "
            "or more"
        )
    matching = colour.MSDS_CMFS[CMFS[cmfs]]
    # In steps of 1 nm, as in the tables of the observer; wavelengths without a reading are dark.
    fine = np.arange(math.ceil(wavelengths[0]), math.floor(wavelengths[-1]) + 1.0)
    curves = matching.values.T
    weights = np.stack(
        [np.interp(fine, matching.wavelengths, curve) for curve in curves]
    )
    if np.allclose(steps, 1) and float(wavelengths[0]).is_integer():
        power = radiance
    else:
        from scipy.interpolate import CubicSpline

        power = CubicSpline(wavelengths, radiance, axis=1)(fine)
    return np.asarray(_MAX_EFFICACY * power @ weights.T)


def _readings_of_table(
    columns: Mapping[str, list[str]], name: str, cmfs: str
) -> Readings:
    """Read a table with one reading a row: luminance, tristimulus values or a spectrum."""
    drive_columns = [word for word in _DRIVE_COLUMNS if word in columns]
    wavelengths = [word for word in columns if math.isfinite(_parsed(word))]
    colour = next((names for names in (_XYZ, _XYY) if columns.keys() >= set(names)), ())
    light_columns = colour or wavelengths or ["luminance_cd_m2"]
    valid = {*_DRIVE_COLUMNS, "gun", "luminance_cd_m2", *light_columns}
    if not valid >= columns.keys() >= set(light_columns) or len(drive_columns) != 1:
        raise InputError(
            f"{name} has the columns {', '.join(columns)[:100] or 'of an empty file'}; {_COLUMNS}"
        )
    scale = drive_columns[0]
    drive = _parse_column(columns, scale, name)
    gun_words = columns.get("gun", ["white"] * len(drive))
    gun = np.array([word.strip().lower() for word in gun_words])
    xyz = None
    if wavelengths:
        spectra = [_parse_column(columns, word, name) for word in wavelengths]
        xyz = spectra_to_xyz(
            np.array(wavelengths, float), np.stack(spectra, axis=1), cmfs
        )
    elif colour:
        values = [_parse_column(columns, word, name) for word in colour]
        xyz = np.stack(values, axis=1)
        if colour == _XYY:
            xyz = _xyz_of_xyy(xyz, name)
    luminance = (
        _parse_column(columns, "luminance_cd_m2", name) if xyz is None else xyz[:, 1]
    )
    if not (luminance > 0).all():
        darkest = int(np.argmin(luminance))
        raise InputError(
            f"{name} has a luminance of {luminance[darkest]:g} cd/m² at {scale} "
            f"{drive[darkest]:g}; every luminance must be above 0: below the meter's range give "
            "the least that it can tell"
        )
    if scale == "code":
        drive = drive / _full_code(drive, name)
    if drive.size and not (drive.min() >= 0 and drive.max() <= 1):
        outside = drive[(drive < 0) | (drive > 1)][0]
        raise InputError(
            f"{name} has a drive of {outside:g}; give 0 to 1, or name the column code if these are "
            "codes"
        )
    return _with_black_as_white(Readings(name, gun, drive, luminance, xyz))


def _xyz_of_xyy(xyy: FloatArray, name: str) -> FloatArray:
    """Convert chromaticities and luminance (x, y, Y) to XYZ, refusing impossible ones."""
    x, y, luminance = xyy.T
    if not ((x >= 0) & (y > 0) & (x + y <= 1)).all():
        raise InputError(
            f"{name} has an (x, y) that no light has; x >= 0, y > 0 and x + y <= 1 are"
        )
    return np.stack([x / y * luminance, luminance, (1 - x - y) / y * luminance], axis=1)


def _readings_of_spectra(
    columns: Mapping[str, list[str]], name: str, cmfs: str
) -> Readings:
    """Read spectra at full drive, one a column: red, green, blue, white, black."""
    wavelength_column, *words = columns
    wavelengths = _parse_column(columns, wavelength_column, name)
    gun = np.array([word.strip().lower() for word in words])
    if not set(GUNS) <= set(gun.tolist()):
        raise InputError(
            f"{name} has spectra of {', '.join(words)[:100] or 'nothing'}; give red, green, blue, "
            "and white and black if measured, at full drive"
        )
    radiance = np.stack([_parse_column(columns, word, name) for word in words])
    xyz = spectra_to_xyz(wavelengths, radiance, cmfs)
    drive = np.where(gun == "black", 0.0, 1.0)
    return _with_black_as_white(Readings(name, gun, drive, xyz[:, 1], xyz))


def _with_black_as_white(readings: Readings) -> Readings:
    """Rename readings of black to those of white at drive 0, and refuse unknown guns."""
    for word in np.unique(readings.gun):
        if word not in _GUN_NAMES:
            raise InputError(
                f"{readings.name} has the gun {str(word)!r}; give {', '.join(_GUN_NAMES)}"
            )
    is_black = readings.gun == "black"
    if (readings.drive[is_black] > 0).any():
        brightest = readings.drive[is_black].max()
        raise InputError(
            f"{readings.name} has black at drive {brightest:g}; black is drive 0"
        )
    return replace(readings, gun=np.where(is_black, "white", readings.gun))


def _readings_of_monitor(page: Any, name: str, cmfs: str) -> Readings:
    """Read the calibration of a PsychoPy monitor whose name sorts last, as PsychoPy does."""
    calibrations = page if isinstance(page, dict) else {}
    are_tables = all(
        isinstance(calibration, dict) for calibration in calibrations.values()
    )
    if not calibrations or not are_tables:
        raise InputError(
            f"{name} is no monitor that PsychoPy saved; it holds no calibration"
        )
    calibration = calibrations[max(calibrations)]
    ppd = _resolution(calibration, name)
    primaries = None
    wavelengths = _array(calibration, "spectraNM", 1, name)
    spectra = _array(calibration, "spectraRGB", 2, name)
    if spectra is not None:
        if wavelengths is None or spectra.shape != (3, len(wavelengths)):
            raise InputError(
                f"{name} has spectra (spectraRGB) that do not fit its wavelengths (spectraNM); "
                "give one of red, green and blue each, with a value for each wavelength"
            )
        xyz = spectra_to_xyz(wavelengths, spectra, cmfs)
        primaries = tuple(tuple(map(float, gun_xyz)) for gun_xyz in xyz)
    luminances = _array(calibration, "lumsPre", 2, name)
    levels = _array(calibration, "levelsPre", 1, name)
    if luminances is None:
        return replace(
            _readings_of_gamma_grid(calibration, name), primaries=primaries, ppd=ppd
        )
    if levels is None or len(luminances) > 4 or luminances.shape[1] != len(levels):
        rows, columns = luminances.shape
        raise InputError(
            f"{name} has {rows} x {columns} luminances (lumsPre) at "
            f"{0 if levels is None else len(levels)} levels (levelsPre); give a row for white and "
            "at most one each for red, green and blue, with a luminance for each level"
        )
    if not (np.isfinite(luminances).all() and np.isfinite(levels).all()):
        raise InputError(
            f"{name} has luminances that are no numbers; calibrate the monitor again"
        )
    count = len(luminances)
    guns = np.repeat(["white", *GUNS][:count], len(levels))
    drive = np.tile(levels / (255.0 if levels.max() > 1 else 1.0), count)
    light = _lift_zeros(luminances.ravel())
    return Readings(name, guns, drive, light, primaries=primaries, ppd=ppd)


def _readings_of_gamma_grid(calibration: JsonObject, name: str) -> Readings:
    """Read the curves that PsychoPy fitted to luminances which the file lacks."""
    grid = _array(calibration, "gammaGrid", 2, name)
    if (
        grid is None
        or len(grid) != 4
        or grid.shape[1] < 3
        or not (grid[:, 1] > 1).any()
    ):
        raise InputError(
            f"{name} holds no calibration: neither luminances that were measured (lumsPre) nor a "
            "fitted gamma grid; calibrate the monitor in PsychoPy, or give a CSV of luminances"
        )
    method = calibration.get("linearizeMethod", calibration.get("lineariseMethod", 1))
    curves = tuple(_gamma_curve(row, method, name) for row in grid[1:])
    guns = np.array(["white"] * 2)
    light = np.array([max(grid[0, 0], 0.0), grid[0, 1]])
    return Readings(name, guns, np.array([0.0, 1.0]), light, eotf=curves)


def _gamma_curve(row: FloatArray, method: Any, name: str) -> Any:
    """Compute the relative curve of a gun by PsychoPy's equation 1, 2 or 4 (Pelli & Zhang 1991)."""
    low, high, gamma = (float(value) for value in row[:3])
    is_valid = np.isfinite(row[:3]).all() and high > low >= 0 and 0.2 <= gamma <= 10
    if method not in (1, 2, 4) or not is_valid:
        raise InputError(
            f"{name} has a gun of {low:g} to {high:g} cd/m² with gamma {gamma:g}, linearised by "
            f"method {method!r}; known are methods 1, 2 and 4 with a gamma of 0.2 to 10, and a "
            "maximum above the minimum"
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


def _resolution(calibration: JsonObject, name: str) -> float | None:
    """Compute pixels per degree from a PsychoPy monitor's pixels, width and distance."""
    size = _array(calibration, "sizePix", 1, name)
    width = calibration.get("width")
    distance = calibration.get("distance")
    if size is None or len(size) != 2 or not size[0] > 0:
        return None
    if not isinstance(width, int | float) or not isinstance(distance, int | float):
        return None
    try:
        return pixels_per_degree(width / float(size[0]), distance)
    except InputError:
        # A geometry that nobody set is no reason not to read the luminances.
        return None


def _array(
    calibration: JsonObject, key: str, dimensions: int, name: str
) -> FloatArray | None:
    """Read an array of a PsychoPy calibration; None if it is absent or empty."""
    value = calibration.get(key)
    value = value.get("__ndarray__") if isinstance(value, dict) else value
    if value is None:
        return None
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.size == 0:
        return None
    if numbers.ndim != dimensions:
        raise InputError(
            f"{name} has a damaged {key}; it must be {'a list' if dimensions == 1 else 'a table'} "
            "of numbers: calibrate the monitor again, or remove it if it was not measured"
        )
    return numbers


def _lift_zeros(light: FloatArray) -> FloatArray:
    """Replace luminances of 0, below a meter's range, by a thousandth of the smallest other."""
    least = light[light > 0].min(initial=np.inf)
    return np.where(light > 0, light, least / 1000 if np.isfinite(least) else light)


def _parsed(word: str) -> float:
    """Parse text to a number, NaN if it is none."""
    try:
        return float(word)
    except ValueError:
        return math.nan


def _parse_column(
    columns: Mapping[str, list[str]], column: str, name: str
) -> FloatArray:
    """Convert a column of text to finite numbers, or refuse the first that is none."""
    words = columns[column]
    values = np.array([_parsed(word) for word in words])
    if not np.isfinite(values).all():
        word = words[int(np.argmin(np.isfinite(values)))].strip()
        raise InputError(
            f"{name} has {word[:40]!r} as {column}; give a finite number without a unit"
        )
    return values


def _full_code(codes: FloatArray, name: str) -> float:
    """Return the code of full drive (255, 1023 ...), the largest of all, or refuse it."""
    largest = codes.max(initial=0)
    if largest not in _FULL_CODES or codes.min() < 0 or (codes % 1).any():
        raise InputError(
            f"{name} has codes from {codes.min(initial=0):g} to {largest:g}; give whole numbers "
            "from 0 to full drive, which is 255, 1023, 4095 or 65535"
        )
    return float(largest)
