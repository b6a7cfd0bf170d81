"""A measured screen: a display from what a meter read, with what the readings say about
themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.files.terminal import settings
from psyprobe.light.display import Display
from psyprobe.light.readings import GUNS, Readings, read_readings

#: What readings may scatter, as a fraction of the light, and of the peak where there is next to no
#: light.
_NOISE = 0.02
_NOISE_OF_PEAK = 1e-4

#: How far guns may be from adding up to white, as a fraction of its range, and the curve of a gun
#: from that of white.
_GUNS_DIFFER = 0.02

#: Curves of guns that are less apart than this are one, as a fraction of the range.
_SAME_CURVE = 0.005

#: Drives that a curve needs.
_FEWEST = 8


@dataclass(frozen=True)
class Screen:
    """A screen as it was measured, by `read_screen`."""

    #: Peak, black, transfer function and primaries are those that were measured.
    display: Display
    #: Drives of white at which it was measured.
    points: int
    #: How far each inner point lies from the curve through all others: root mean square, as a
    #: fraction of the range; of the worst gun where each has its curve. None where no curve was
    #: measured.
    residual: float | None
    #: Largest departure of a reading from the mean at its drive, as a fraction of it; 0 without
    #: repeats.
    repeats: float
    #: Largest departure of the sum of the guns from white, as a fraction of the range; None where
    #: it was not measured.
    additivity: float | None = None
    #: Largest departure of a gun's relative light from that of white; None where it was not
    #: measured.
    gun_curves: float | None = None
    #: Pixels per degree, where the file says how large the screen is and how far away.
    ppd: float | None = None

    def __str__(self) -> str:
        dark = self.display.peak - self.display.span
        told = [f"{self.points} points from {dark:.6g} to {self.display.peak:.6g} cd/m²"]
        if self.residual is not None:
            told.append(
                f"each {100 * self.residual:.2g} % of the range from the curve through the "
                "others (RMS)"
            )
        told.append(f"repeats within {100 * self.repeats:.2g} %")
        if self.additivity is not None:
            told.append(f"guns add up to white within {100 * self.additivity:.2g} % of the range")
        if self.gun_curves is not None:
            told.append(f"curves of the guns within {100 * self.gun_curves:.2g} % of that of white")
        if self.display.by_gun:
            told.append("each gun with its own curve and black")
        if self.ppd is not None:
            told.append(f"{self.ppd:.4g} pixels per degree")
        return "; ".join(told)


def read_screen(
    path: str | Path, *, spectra: str | Path | None = None, cmfs: str = "cie1931", **besides: Any
) -> Screen:
    """A screen from a CSV of readings made in the dark, or from a PsychoPy monitor.

    Parameters
    ----------
    path : str or Path
        A table with a header: ``drive`` from 0 to 1, or ``code`` from 0 to full drive (255, 1023,
        4095 or 65535); what was read, as ``luminance_cd_m2``, as ``X,Y,Z`` or ``x,y,Y`` (cd/m²), or
        as a column for each wavelength in nm (W/(sr m² nm)); and, if guns were measured alone,
        ``gun``: white, red, green, blue or black. At least 8 drives of white, 0 and full drive
        among them; rows of the same drive are repeats, of which the mean is taken. Or a table of
        spectra at full drive, ``wavelength_nm`` and a column for each gun. Or the JSON of a
        PsychoPy monitor.
    spectra : str or Path, optional
        A second table, of which primaries and white are taken.
    cmfs : {"cie1931", "cie2006"}
        Colour matching functions that turn spectra into XYZ. Cone observer "cie2006" expects those
        of 2006.
    **besides
        What the table does not say: ambient, reflectivity, primaries, as `Display` takes them; eotf
        where no curve was measured.

    Returns
    -------
    Screen
        Its `display` passes through the means, by PCHIP. Light that falls with drive by no more
        than noise (2 % of the light, or 0.01 % of the peak) is pooled. Guns measured at as many
        drives have curves of their own where these differ by more than 0.5 % of the range; XYZ of
        black give each gun its black.

    Raises
    ------
    InputError
        If the table cannot be a screen's.

    Warns
    -----
    ConditionWarning
        If repeats differ by more than noise, or the guns do not add up to white within 2 % of its
        range; or if a few readings of a gun are as far from white's curve, which stands for it.

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
    18 points from 0.2 to 100 cd/m²; each 0.062 % of the range from the curve through the others (RMS); repeats ...
    >>> round(float(screen.display.decode(0.55)), 1)
    27.0
    """
    read = read_readings(path, cmfs)
    readings = _with_white(read)
    name = readings.name
    drive = readings.drive
    light = readings.luminance
    white = readings.gun == "white"
    levels, means, counts = _means(drive[white], light[white])
    noise = np.maximum(_NOISE * means, _NOISE_OF_PEAK * means.max(initial=0.0))
    told = dict(besides)
    if "primaries" not in told and (primaries := _primaries(readings, spectra, cmfs)):
        told["primaries"] = primaries
    residual: float | None = None
    additivity, gun_curves = (
        _guns(drive, light, readings.gun, levels, means) if len(levels) > 1 else (None, None)
    )
    # White that is their sum says nothing of how guns add up.
    additivity = additivity if readings is read else None
    if readings.eotf is None and not ("eotf" in told and len(levels) < _FEWEST):
        if "eotf" in told:
            raise InputError(f"an eotf is given, and {name} measures it; leave one out")
        _check_levels(levels, name)
        levels, means, residual, told["eotf"] = _curves(
            readings, levels, means, counts, noise, gun_curves
        )
    elif readings.eotf is not None:
        told.setdefault("eotf", readings.eotf)
    if not len(levels) or levels[-1] != 1:
        raise InputError(
            f"{name} has no white at full drive; measure it, or red, green and blue alone"
        )
    black = float(means[0]) if levels[0] == 0 else 0.0
    told |= {"peak": float(means[-1]), "black": black}
    if (by_gun := _black_by_gun(readings, told)) is not None:
        told["black"] = by_gun
    display = Display.from_dict(told)

    every, mean_of, _ = _means(drive[white], light[white])
    place = np.searchsorted(every, drive[white])
    off = np.abs(light[white] - mean_of[place])
    share = off / mean_of[place]
    screen = Screen(
        display, len(every), residual, float(share.max()), additivity, gun_curves, readings.ppd
    )
    _warn_of(screen, name, drive[white], off / np.maximum(noise, 1e-300)[place], share)
    return screen


def _warn_of(
    screen: Screen, name: str, drive: FloatArray, noises: FloatArray, share: FloatArray
) -> None:
    if (noises > 1).any():
        worst = int(np.argmax(noises))
        _warn(
            f"{name}: repeats at drive {drive[worst]:g} are up to {100 * share[worst]:.2g} % "
            "off their mean; let the screen warm up, and measure again"
        )
    if screen.additivity is not None and screen.additivity > _GUNS_DIFFER:
        _warn(
            f"{name}: red, green and blue add up to {100 * screen.additivity:.2g} % of the "
            "range more or less than "
            "white; colours on this screen will not be what was asked"
        )
    if (
        screen.gun_curves is not None
        and screen.gun_curves > _GUNS_DIFFER
        and not screen.display.by_gun
    ):
        _warn(
            f"{name}: the curve of a gun is {100 * screen.gun_curves:.2g} % of its range off "
            "that of white, which "
            f"stands for all three; measure each gun at {_FEWEST} drives or more"
        )


def display_of(values: Mapping[str, Any], folder: Path) -> Display:
    """The display of a table ``[display]``: fields of `Display`, or ``table``, a file of the
    folder, and the rest.

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
    rest = {key: value for key, value in values.items() if key != "table"}
    for key in ("table", "spectra"):
        if not isinstance(values.get(key, ""), str):
            raise InputError(f"display.{key} is {values[key]!r}; give the name of a file, as text")
    if "spectra" in rest:
        rest["spectra"] = folder / rest["spectra"]
    return read_screen(folder / values["table"], **rest).display


def display_from(words: Sequence[str]) -> Display:
    """Make the display that the words after ``--display`` describe; without words the default.

    It is a preset, readings of a meter, or fields.

    >>> display_from(["peak=200", "black=0.2"]).peak
    200.0
    """
    if len(words) == 1 and "=" not in words[0]:
        is_file = words[0].lower().endswith((".csv", ".json"))
        return display_of({"table": words[0]}, Path()) if is_file else Display.preset(words[0])
    return display_of(settings(words, "--display"), Path())


def _warn(text: str) -> None:
    warnings.warn(text, ConditionWarning, stacklevel=4)


def _with_white(readings: Readings) -> Readings:
    """With the sum of the guns as white where white itself was not measured at full drive."""
    white = readings.gun == "white"
    if (readings.drive[white] == 1).any() or not set(GUNS) <= set(readings.gun.tolist()):
        return readings
    dark = readings.drive == 0
    black = readings.luminance[dark].mean() if dark.any() else 0.0
    black_xyz = (
        0.0
        if readings.xyz is None
        else readings.xyz[dark].mean(axis=0)
        if dark.any()
        else np.zeros(3)
    )
    shared = set.intersection(
        *(set(readings.drive[readings.gun == gun].tolist()) for gun in GUNS)
    ) - {0.0}
    drive = [*readings.drive]
    light = [*readings.luminance]
    xyz = [*(readings.xyz if readings.xyz is not None else ())]
    gun = [*readings.gun]
    for level in sorted(shared):
        at = [(readings.gun == name) & (readings.drive == level) for name in GUNS]
        drive.append(level)
        gun.append("white")
        light.append(sum(float(readings.luminance[each].mean()) for each in at) - 2 * black)
        if readings.xyz is not None:
            xyz.append(sum(readings.xyz[each].mean(axis=0) for each in at) - 2 * black_xyz)
    if dark.any() and not (readings.drive[white] == 0).any():
        drive = [*drive, 0.0]
        light = [*light, float(black)]
        gun = [*gun, "white"]
        xyz += [black_xyz] if readings.xyz is not None else []
    colours = None if readings.xyz is None else np.array(xyz)
    return replace(
        readings, gun=np.array(gun), drive=np.array(drive), luminance=np.array(light), xyz=colours
    )


def _primaries(readings: Readings, spectra: str | Path | None, cmfs: str) -> Any:
    """(X, Y, Z) of red, green, blue and white above black, if they were measured."""
    told = readings if spectra is None else _with_white(read_readings(spectra, cmfs))
    if told.xyz is None:
        return told.primaries
    full = {gun: told.xyz[(told.gun == gun) & (told.drive == 1)] for gun in (*GUNS, "white")}
    if not all(len(each) for each in full.values()):
        return None
    dark = told.xyz[(told.gun == "white") & (told.drive == 0)]
    black = dark.mean(axis=0) if len(dark) else np.zeros(3)
    return [tuple(map(float, np.maximum(each.mean(axis=0) - black, 0))) for each in full.values()]


def _curves(
    readings: Readings,
    levels: FloatArray,
    means: FloatArray,
    counts: FloatArray,
    noise: FloatArray,
    gun_curves: float | None,
) -> tuple[FloatArray, FloatArray, float, Any]:
    """White's knots and light, the residual, and the curve of all guns or of each."""
    knots, heights = _rising(levels, means, counts, noise, readings.name)
    found = [_relative(knots, heights)]
    if gun_curves is not None and gun_curves > _SAME_CURVE:
        each = [_gun_curve(readings, gun, float(heights[0])) for gun in GUNS]
        found = [curve for curve in each if curve is not None] if None not in each else found
    residual = max(_residual(*np.array(curve).T) for curve in found)
    return knots, heights, residual, tuple(found) if len(found) == 3 else found[0]


def _gun_curve(readings: Readings, gun: str, black: float) -> Any:
    """The curve of one gun, from the black of the screen on; None where it was measured at too few
    drives.
    """
    mine = readings.gun == gun
    levels, means, counts = _means(readings.drive[mine], readings.luminance[mine])
    if len(levels) and levels[0] > 0:
        levels = np.append(0.0, levels)
        means = np.append(black, means)
        counts = np.append(1.0, counts)
    if len(levels) < _FEWEST or levels[0] != 0 or levels[-1] != 1:
        return None
    noise = np.maximum(_NOISE * means, _NOISE_OF_PEAK * means.max())
    return _relative(*_rising(levels, means, counts, noise, f"{readings.name} ({gun})"))


def _relative(knots: FloatArray, heights: FloatArray) -> tuple[tuple[float, float], ...]:
    relative = (heights - heights[0]) / (heights[-1] - heights[0])
    return tuple((float(a), float(b)) for a, b in zip(knots, relative, strict=True))


def _black_by_gun(readings: Readings, told: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Linear RGB light at drive 0, of its XYZ; None where it is not known or is as neutral as the
    meter can tell.
    """
    primaries = told.get("primaries")
    dark = (readings.gun == "white") & (readings.drive == 0)
    if readings.xyz is None or not dark.any() or primaries is None:
        return None
    to_xyz = Display(primaries=primaries).rgb_to_xyz
    light = np.linalg.inv(to_xyz) @ readings.xyz[dark].mean(axis=0)
    if np.abs(light - told["black"]).max() <= max(
        _NOISE * told["black"], _NOISE_OF_PEAK * told["peak"] / 10
    ):
        return None
    light = np.maximum(light, 0.0)
    weight = to_xyz[1] @ light
    return tuple(float(value) for value in light * told["black"] / weight)


def _means(drive: FloatArray, light: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Drives in order, the mean luminance at each, and the number of its readings."""
    levels, place = np.unique(drive, return_inverse=True)
    counts = np.bincount(place, minlength=len(levels)).astype(float)
    return levels, np.bincount(place, light, len(levels)) / np.maximum(counts, 1), counts


def _check_levels(levels: FloatArray, name: str) -> None:
    if len(levels) < _FEWEST:
        raise InputError(
            f"{name} has white at {len(levels)} drives; give at least {_FEWEST}, from black to "
            "full drive, 17 are good"
        )
    if levels[0] != 0 or levels[-1] != 1:
        raise InputError(
            f"{name} has white from drive {levels[0]:g} to {levels[-1]:g}; measure at 0 (black) "
            "and at full drive too"
        )


def _rising(
    levels: FloatArray, means: FloatArray, counts: FloatArray, noise: FloatArray, name: str
) -> tuple[FloatArray, FloatArray]:
    """Points that rise strictly: neighbours that do not are pooled (isotonic regression), where
    noise explains them.
    """
    pools: list[tuple[float, float, int]] = []  # light, readings, points
    for light, count in zip(means, counts, strict=True):
        pools.append((float(light), float(count), 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (above, n, points), (below, m, more) = pools[-2:]
            pools[-2:] = [((above * n + below * m) / (n + m), n + m, points + more)]
    heights, _, sizes = (np.array(each) for each in zip(*pools, strict=True))
    off = np.abs(np.repeat(heights, sizes) - means)
    if (off > noise).any():
        at = int(np.argmax(off / noise))
        raise InputError(
            f"{name}: luminance falls as drive rises about drive {levels[at]:g} ({means[at]:g} "
            "cd/m²), by more than "
            "readings scatter (2 %); a screen's light rises with drive: measure there again"
        )
    if len(heights) < _FEWEST:
        raise InputError(
            f"{name} has {len(heights)} drives whose luminances differ; give at least {_FEWEST} "
            "that the meter "
            "tells apart"
        )
    ends = np.cumsum(sizes)
    knots = np.array(
        [levels[end - size : end].mean() for end, size in zip(ends, sizes, strict=True)]
    )
    knots[0] = 0.0
    knots[-1] = 1.0
    return knots, heights


def _residual(knots: FloatArray, relative: FloatArray) -> float:
    from scipy.interpolate import PchipInterpolator

    inner = range(1, len(knots) - 1)
    off = [
        PchipInterpolator(np.delete(knots, k), np.delete(relative, k))(knots[k]) - relative[k]
        for k in inner
    ]
    return float(np.sqrt(np.mean(np.square(off))))


def _guns(
    drive: FloatArray, light: FloatArray, gun: Any, levels: FloatArray, means: FloatArray
) -> tuple[float | None, float | None]:
    """How far the guns are from adding up to white, and their curves from that of white, where they
    were measured.
    """
    white = dict(zip(levels.tolist(), means.tolist(), strict=True))
    black = means[0]
    span = means[-1] - means[0]
    guns = {}
    for name in GUNS:
        at, mean, _ = _means(drive[gun == name], light[gun == name])
        guns[name] = dict(zip(at.tolist(), mean.tolist(), strict=True))
    together = [at for at in white if all(at in found for found in guns.values())]
    sums = [
        abs(sum(guns[name][at] for name in GUNS) - 2 * black - white[at]) / span
        for at in together
        if at > 0
    ]
    curves = [
        abs((found[at] - black) / (found[1.0] - black) - (white[at] - black) / span)
        for found in guns.values()
        if found.get(1.0, black) > black
        for at in found
        if at in white and 0 < at < 1
    ]
    return max(sums, default=None), max(curves, default=None)
