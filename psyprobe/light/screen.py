"""Build a display from a meter's readings of a screen, and judge the readings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.terminal import settings as parse_settings
from psyprobe.light.display import Display
from psyprobe.light.readings import GUNS, Readings, read_readings

#: Scatter that readings may have, as a fraction of the light; and of the peak, for the darkest.
_NOISE = 0.02
_NOISE_OF_PEAK = 1e-4

#: Largest departure of the sum of the guns from white, and of a gun's curve from white's, as a
#: fraction of the range.
_MAX_GUN_DIFFERENCE = 0.02

#: Curves of guns that differ by less are one, as a fraction of the range.
_SAME_CURVE = 0.005

#: Number of drives that a curve needs.
_MIN_DRIVES = 8


@dataclass(frozen=True)
class Screen:
    """A measured screen, as `read_screen` returns it."""

    #: The display, with the measured peak, black, transfer function and primaries.
    display: Display
    #: Number of drives at which white was measured.
    points: int
    #: RMS distance of the inner points from the curve through all others, as a fraction of the
    #: range; of the worst gun where each has its curve. None if no curve was measured.
    residual: float | None
    #: Largest relative departure of a reading from the mean at its drive; 0 without repeats.
    repeats: float
    #: Largest departure of the sum of the guns from white, as a fraction of the range; None if it
    #: was not measured.
    additivity: float | None = None
    #: Largest departure of a gun's relative light from that of white; None if it was not measured.
    gun_curves: float | None = None
    #: Pixels per degree, if the file has the size of the screen and the viewing distance.
    ppd: float | None = None

    def __str__(self) -> str:
        black = self.display.peak - self.display.span
        parts = [
            f"{self.points} points from {black:.6g} to {self.display.peak:.6g} cd/m²"
        ]
        if self.residual is not None:
            percent = 100 * self.residual
            parts.append(
                f"each {percent:.2g} % of the range from the curve through the others (RMS)"
            )
        parts.append(f"repeats within {100 * self.repeats:.2g} %")
        if self.additivity is not None:
            parts.append(
                f"guns add up to white within {100 * self.additivity:.2g} % of the range"
            )
        if self.gun_curves is not None:
            parts.append(
                f"curves of the guns within {100 * self.gun_curves:.2g} % of that of white"
            )
        if self.display.guns_differ:
            parts.append("each gun with its own curve and black")
        if self.ppd is not None:
            parts.append(f"{self.ppd:.4g} pixels per degree")
        return "; ".join(parts)


class _Curve(NamedTuple):
    """Drives in order, and the mean luminance and the number of readings at each."""

    levels: FloatArray
    means: FloatArray
    counts: FloatArray

    @property
    def noise(self) -> FloatArray:
        """Scatter that readings at each drive may have, cd/m²."""
        peak = self.means.max(initial=0.0)
        return np.asarray(np.maximum(_NOISE * self.means, _NOISE_OF_PEAK * peak))


def read_screen(
    path: str | Path,
    *,
    spectra: str | Path | None = None,
    cmfs: str = "cie1931",
    **settings: Any,
) -> Screen:
    """Read a screen from a CSV of readings made in the dark, or from a PsychoPy monitor.

    Parameters
    ----------
    path : str or Path
        A table with a header: ``drive`` from 0 to 1, or ``code`` from 0 to full drive (255, 1023,
        4095 or 65535); the reading, as ``luminance_cd_m2``, as ``X,Y,Z`` or ``x,y,Y`` (cd/m²), or
        as a column for each wavelength in nm (W/(sr m² nm)); and, if guns were measured alone,
        ``gun``: white, red, green, blue or black. White needs at least 8 drives, 0 and full drive
        among them; rows of the same drive are repeats, which are averaged. Or a table of spectra at
        full drive: ``wavelength_nm`` and a column for each gun. Or the JSON of a PsychoPy monitor.
    spectra : str or Path, optional
        A second table, for primaries and white.
    cmfs : {"cie1931", "cie2006"}
        Colour matching functions that turn spectra into XYZ. Cone observer "cie2006" expects those
        of 2006.
    **settings
        Settings of `Display` that the table lacks: ambient, reflectivity, primaries; eotf if no
        curve was measured.

    Returns
    -------
    Screen
        Its `display` passes through the means, by PCHIP. Light that falls with drive by no more
        than noise (2 % of the light, or 0.01 % of the peak) is pooled. Guns that were measured at
        8 drives or more each have a curve if these differ by more than 0.5 % of the range; XYZ of
        black give each gun its black.

    Raises
    ------
    InputError
        If the table cannot be a screen's.

    Warns
    -----
    ConditionWarning
        If repeats differ by more than noise; if the guns do not add up to white within 2 % of its
        range; or if guns without a curve are further than that from white's curve.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> rows = ["code,luminance_cd_m2"]
    >>> rows += [f"{code},{0.2 + 99.8 * (code / 255) ** 2.2}" for code in range(0, 256, 15)]
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "lab.csv").write_text(chr(10).join(rows))
    ...     screen = read_screen(Path(folder, "lab.csv"))
    >>> print(screen)
    18 points from 0.2 to 100 cd/m²; each 0.062 % of the range from the curve through the others ...
    >>> round(float(screen.display.decode(0.55)), 1)
    27.0
    """
    file_readings = read_readings(path, cmfs)
    readings = _with_white(file_readings)
    name = readings.name
    is_white = readings.gun == "white"
    white_drive = readings.drive[is_white]
    white_light = readings.luminance[is_white]
    white = _mean_curve(white_drive, white_light)
    values = dict(settings)
    if "primaries" not in values and (primaries := _primaries(readings, spectra, cmfs)):
        values["primaries"] = primaries
    additivity = None
    gun_curves = None
    if len(white.levels) > 1:
        gun_lights = np.stack([_light_at(readings, gun, white.levels) for gun in GUNS])
        # A white that does not rise is refused below.
        with np.errstate(divide="ignore", invalid="ignore"):
            gun_curves = _largest_curve_difference(gun_lights, white)
            # A white that was added up from the guns says nothing of how they add up.
            if readings is file_readings:
                additivity = _largest_sum_difference(gun_lights, white)
    levels = white.levels
    means = white.means
    residual: float | None = None
    if readings.eotf is not None:
        values.setdefault("eotf", readings.eotf)
    elif "eotf" not in values or len(levels) >= _MIN_DRIVES:
        if "eotf" in values:
            raise InputError(f"an eotf is given, and {name} measures it; leave one out")
        _check_levels(levels, name)
        levels, means = _pool(white, name)
        eotfs = _relative_curves(readings, levels, means, gun_curves)
        residual = max(_residual(*np.array(curve).T) for curve in eotfs)
        values["eotf"] = eotfs if len(eotfs) == 3 else eotfs[0]
    if not len(levels) or levels[-1] != 1:
        raise InputError(
            f"{name} has no white at full drive; measure it, or red, green and blue alone"
        )
    values["peak"] = float(means[-1])
    values["black"] = float(means[0]) if levels[0] == 0 else 0.0
    gun_blacks = _gun_blacks(readings, values)
    if gun_blacks is not None:
        values["black"] = gun_blacks
    display = Display.from_dict(values)

    index = np.searchsorted(white.levels, white_drive)
    departure = np.abs(white_light - white.means[index])
    share = departure / white.means[index]
    repeats = float(share.max())
    count = len(white.levels)
    screen = Screen(
        display, count, residual, repeats, additivity, gun_curves, readings.ppd
    )
    noise_ratio = departure / np.maximum(white.noise, 1e-300)[index]
    _warn_about(screen, name, white_drive, noise_ratio, share)
    return screen


def _warn_about(
    screen: Screen,
    name: str,
    drive: FloatArray,
    noise_ratio: FloatArray,
    share: FloatArray,
) -> None:
    """Warn about repeats that scatter, and about guns that do not add up or differ in curve."""
    if (noise_ratio > 1).any():
        worst = int(np.argmax(noise_ratio))
        _warn(
            f"{name}: repeats at drive {drive[worst]:g} are up to {100 * share[worst]:.2g} % off "
            "their mean; let the screen warm up, and measure again"
        )
    if screen.additivity is not None and screen.additivity > _MAX_GUN_DIFFERENCE:
        _warn(
            f"{name}: red, green and blue add up to {100 * screen.additivity:.2g} % of the range "
            "more or less than white; colours on this screen will not be what was asked"
        )
    difference = screen.gun_curves or 0.0
    if difference > _MAX_GUN_DIFFERENCE and not screen.display.guns_differ:
        _warn(
            f"{name}: the curve of a gun is {100 * difference:.2g} % of its range off that of "
            f"white, which stands for all; measure each gun at {_MIN_DRIVES} drives or more"
        )


def display_of(values: JsonMapping, folder: Path) -> Display:
    """Build the display that the [display] table of an experiment describes.

    It holds fields of `Display`; or ``table``, a file of readings in the folder, and settings of
    `read_screen`.

    >>> display_of({"peak": 200, "black": 0.2}, Path()).peak
    200.0
    """
    if "table" not in values:
        return Display.from_dict(values)
    for key in ("peak", "black"):
        if key in values:
            raise InputError(
                f"display.{key} is given, and so is display.table, which measures it; leave one out"
            )
    settings = {key: value for key, value in values.items() if key != "table"}
    for key in ("table", "spectra"):
        if not isinstance(values.get(key, ""), str):
            raise InputError(
                f"display.{key} is {values[key]!r}; give the name of a file, as text"
            )
    if "spectra" in settings:
        settings["spectra"] = folder / settings["spectra"]
    return read_screen(folder / values["table"], **settings).display


def display_from(words: Sequence[str]) -> Display:
    """Build the display that the words after `--display` describe, or the default.

    The words are the name of a preset, a file of readings, or settings.

    >>> display_from(["peak=200", "black=0.2"]).peak
    200.0
    """
    if len(words) == 1 and "=" not in words[0]:
        is_file = words[0].lower().endswith((".csv", ".json"))
        return (
            display_of({"table": words[0]}, Path())
            if is_file
            else Display.preset(words[0])
        )
    return display_of(parse_settings(words, "--display"), Path())


def _warn(text: str) -> None:
    """Warn the caller of the calibration of a condition of the readings."""
    warnings.warn(text, ConditionWarning, stacklevel=4)


def _with_white(readings: Readings) -> Readings:
    """Add the sum of the guns as white, if white itself was not measured at full drive."""
    is_white = readings.gun == "white"
    if (readings.drive[is_white] == 1).any() or not set(GUNS) <= set(
        readings.gun.tolist()
    ):
        return readings
    is_dark = readings.drive == 0
    has_dark = bool(is_dark.any())
    by_gun = [set(readings.drive[readings.gun == gun].tolist()) for gun in GUNS]
    drives = sorted(set.intersection(*by_gun) - {0.0})
    is_black_missing = has_dark and not (readings.drive[is_white] == 0).any()

    def add_white(values: FloatArray) -> FloatArray:
        black = values[is_dark].mean(axis=0) if has_dark else 0.0 * values[0]
        # The sum of three guns holds black three times, and white holds it once.
        white = [_sum_of_guns(readings, values, drive) - 2 * black for drive in drives]
        return np.array([*values, *white, *([black] * is_black_missing)])

    added_drives = [*drives, *([0.0] * is_black_missing)]
    return replace(
        readings,
        gun=np.append(readings.gun, ["white"] * len(added_drives)),
        drive=np.append(readings.drive, added_drives),
        luminance=add_white(readings.luminance),
        xyz=None if readings.xyz is None else add_white(readings.xyz),
    )


def _sum_of_guns(readings: Readings, values: FloatArray, drive: float) -> Any:
    """Add up the mean values (luminance or XYZ) of red, green and blue at one drive."""
    masks = [(readings.gun == gun) & (readings.drive == drive) for gun in GUNS]
    return sum(values[mask].mean(axis=0) for mask in masks)


def _primaries(readings: Readings, spectra: str | Path | None, cmfs: str) -> Any:
    """Compute the XYZ of red, green, blue and white less black, if they were measured."""
    source = readings if spectra is None else _with_white(read_readings(spectra, cmfs))
    if source.xyz is None:
        return source.primaries
    is_full = source.drive == 1
    lights = [source.xyz[(source.gun == gun) & is_full] for gun in (*GUNS, "white")]
    if not all(map(len, lights)):
        return None
    dark = source.xyz[(source.gun == "white") & (source.drive == 0)]
    black = dark.mean(axis=0) if len(dark) else np.zeros(3)
    above_black = [np.maximum(light.mean(axis=0) - black, 0) for light in lights]
    return [tuple(map(float, light)) for light in above_black]


def _relative_curves(
    readings: Readings, knots: FloatArray, heights: FloatArray, gun_curves: float | None
) -> tuple[Any, ...]:
    """Compute the relative luminance curve of white, or of each gun if they differ."""
    if gun_curves is not None and gun_curves > _SAME_CURVE:
        curves = [_gun_curve(readings, gun, float(heights[0])) for gun in GUNS]
        if None not in curves:
            return tuple(curves)
    return (_scale_curve(knots, heights),)


def _gun_curve(readings: Readings, gun: str, black: float) -> Any:
    """Compute the relative curve of a gun from black on; None if it has too few drives."""
    is_gun = readings.gun == gun
    levels, means, counts = curve = _mean_curve(
        readings.drive[is_gun], readings.luminance[is_gun]
    )
    if len(levels) and levels[0] > 0:
        levels = np.append(0.0, levels)
        curve = _Curve(levels, np.append(black, means), np.append(1.0, counts))
    if len(levels) < _MIN_DRIVES or levels[0] != 0 or levels[-1] != 1:
        return None
    return _scale_curve(*_pool(curve, f"{readings.name} ({gun})"))


def _scale_curve(
    knots: FloatArray, heights: FloatArray
) -> tuple[tuple[float, float], ...]:
    """Scale a curve of light over drive to run from 0 to 1, as pairs (drive, light)."""
    relative = (heights - heights[0]) / (heights[-1] - heights[0])
    return tuple((float(x), float(y)) for x, y in zip(knots, relative, strict=True))


def _gun_blacks(readings: Readings, values: JsonMapping) -> tuple[float, ...] | None:
    """Compute the red, green and blue light at drive 0, if it was measured and is no grey.

    None if it was not measured, or is as neutral as the meter can tell.
    """
    primaries = values.get("primaries")
    black = values["black"]
    is_dark = (readings.gun == "white") & (readings.drive == 0)
    if readings.xyz is None or not is_dark.any() or primaries is None:
        return None
    to_xyz = Display(primaries=primaries).rgb_to_xyz
    light = np.linalg.inv(to_xyz) @ readings.xyz[is_dark].mean(axis=0)
    noise = max(_NOISE * black, _NOISE_OF_PEAK * values["peak"] / 10)
    if np.abs(light - black).max() <= noise:
        return None
    light = np.maximum(light, 0.0)
    luminance = to_xyz[1] @ light
    return tuple(float(value) for value in light * black / luminance)


def _mean_curve(drive: FloatArray, light: FloatArray) -> _Curve:
    """Average the readings at each drive."""
    levels, index = np.unique(drive, return_inverse=True)
    counts = np.bincount(index, minlength=len(levels)).astype(float)
    sums = np.bincount(index, light, len(levels))
    return _Curve(levels, sums / np.maximum(counts, 1), counts)


def _check_levels(levels: FloatArray, name: str) -> None:
    """Check that white was measured at enough drive levels, from 0 to 1."""
    if len(levels) < _MIN_DRIVES:
        raise InputError(
            f"{name} has white at {len(levels)} drives; give at least {_MIN_DRIVES}, from black to "
            "full drive, 17 are good"
        )
    if levels[0] != 0 or levels[-1] != 1:
        raise InputError(
            f"{name} has white from drive {levels[0]:g} to {levels[-1]:g}; measure at 0 (black) "
            "and at full drive too"
        )


def _pool(curve: _Curve, name: str) -> tuple[FloatArray, FloatArray]:
    """Pool neighbouring drives whose light does not rise (isotonic regression), within noise.

    Returns drives and light that rise strictly.
    """
    from scipy.optimize import isotonic_regression

    levels, means, counts = curve
    fit = isotonic_regression(means, weights=counts)
    heights = fit.x[fit.blocks[:-1]]
    departure = np.abs(fit.x - means)
    if (departure > curve.noise).any():
        worst = int(np.argmax(departure / curve.noise))
        raise InputError(
            f"{name}: luminance falls as drive rises about drive {levels[worst]:g} "
            f"({means[worst]:g} cd/m²), by more than readings scatter (2 %); a screen's light "
            "rises with drive: measure there again"
        )
    if len(heights) < _MIN_DRIVES:
        raise InputError(
            f"{name} has {len(heights)} drives whose luminances differ; give at least "
            f"{_MIN_DRIVES} that the meter tells apart"
        )
    knots = np.array([block.mean() for block in np.split(levels, fit.blocks[1:-1])])
    knots[0] = 0.0
    knots[-1] = 1.0
    return knots, heights


def _residual(knots: FloatArray, relative: FloatArray) -> float:
    """Compute the RMS distance of each inner point from the curve through all others."""
    from scipy.interpolate import PchipInterpolator

    departures = []
    for k in range(1, len(knots) - 1):
        curve = PchipInterpolator(np.delete(knots, k), np.delete(relative, k))
        departures.append(curve(knots[k]) - relative[k])
    return float(np.sqrt(np.mean(np.square(departures))))


def _light_at(readings: Readings, gun: str, levels: FloatArray) -> FloatArray:
    """Compute the mean luminance of a gun at each drive; NaN where it was not measured."""
    is_gun = readings.gun == gun
    curve = _mean_curve(readings.drive[is_gun], readings.luminance[is_gun])
    light = np.full(len(levels), np.nan)
    _, places, measured = np.intersect1d(levels, curve.levels, return_indices=True)
    light[places] = curve.means[measured]
    return light


def _largest_sum_difference(gun_lights: FloatArray, white: _Curve) -> float | None:
    """Compute the largest departure of the guns' sum from white; None if they share no drive."""
    black = white.means[0]
    span = white.means[-1] - black
    differences = np.abs(gun_lights.sum(axis=0) - 2 * black - white.means) / span
    return _largest(differences[white.levels > 0])


def _largest_curve_difference(gun_lights: FloatArray, white: _Curve) -> float | None:
    """Compute the largest departure of a gun's relative light from white's; None if unknown."""
    black = white.means[0]
    above_black = gun_lights - black
    peaks = np.where(above_black[:, -1:] > 0, above_black[:, -1:], np.nan)
    white_curve = (white.means - black) / (white.means[-1] - black)
    is_inner = (white.levels > 0) & (white.levels < 1)
    return _largest(np.abs(above_black / peaks - white_curve)[:, is_inner])


def _largest(values: FloatArray) -> float | None:
    """Return the largest value that is not NaN; None without one."""
    return max(values[~np.isnan(values)].tolist(), default=None)
