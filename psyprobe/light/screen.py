"""A measured screen: a display from luminances that a photometer read, with what the readings say about themselves."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.files.parsing import read_text
from psyprobe.light.display import Display

#: What readings may scatter, as a fraction of the light, and of the peak where there is next to no light.
_NOISE, _NOISE_OF_PEAK = 0.02, 1e-4

#: How far guns may differ, from their sum to white or from curve to curve, as a fraction of the range of white.
_GUNS_DIFFER = 0.02

#: Drives that a curve needs.
_FEWEST = 8

#: Codes that stand for full drive: 8, 10, 12 and 16 bits.
_FULL_CODES = (255, 1023, 4095, 65535)

_GUNS = ("red", "green", "blue")
_COLUMNS = (
    "give drive (0 to 1) or code (0 to 255, 1023, 4095 or 65535), luminance_cd_m2 (in cd/m²), "
    "and gun (white, red, green, blue) if guns were measured alone"
)


@dataclass(frozen=True)
class Screen:
    """A screen as it was measured, by `read_screen`."""

    #: Peak, black and transfer function are those that were measured.
    display: Display
    #: Drives of white at which it was measured.
    points: int
    #: How far each inner point lies from the curve through all others: root mean square, as a fraction of the range.
    residual: float
    #: Largest departure of a reading from the mean at its drive, as a fraction of it; 0 without repeats.
    repeats: float
    #: Largest departure of the sum of the guns from white, as a fraction of the range; None where it was not measured.
    additivity: float | None = None
    #: Largest departure of a gun's relative light from that of white; None where it was not measured.
    gun_curves: float | None = None

    def __str__(self) -> str:
        told = [
            f"{self.points} points from {self.display.black:g} to {self.display.peak:g} cd/m²",
            f"each {100 * self.residual:.2g} % of the range from the curve through the others (RMS)",
            f"repeats within {100 * self.repeats:.2g} %",
        ]
        if self.additivity is not None:
            told.append(f"guns add up to white within {100 * self.additivity:.2g} % of the range")
        if self.gun_curves is not None:
            told.append(f"curves of the guns within {100 * self.gun_curves:.2g} % of that of white")
        return "; ".join(told)


def read_screen(path: str | Path, **besides: Any) -> Screen:
    """A screen from a CSV of luminances, measured in the dark.

    Parameters
    ----------
    path : str or Path
        A table with a header: ``drive`` from 0 to 1, or ``code`` from 0 to full drive (255, 1023, 4095 or 65535);
        ``luminance_cd_m2``; and, if guns were measured alone, ``gun``: white, red, green or blue. At least 8 drives of
        white, 0 and full drive among them; rows of the same drive are repeats, of which the mean is taken.
    **besides
        What the table does not say: ambient, reflectivity, primaries, as `Display` takes them.

    Returns
    -------
    Screen
        Its `display` passes through the means, by PCHIP. Light that falls with drive by no more than noise (2 % of the
        light, or 0.01 % of the peak) is pooled.

    Raises
    ------
    InputError
        If the table cannot be a screen's.

    Warns
    -----
    ConditionWarning
        If repeats differ by more than noise, or the guns from white by more than 2 % of its range: a `Display` has one
        curve for all three.

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
    name = Path(path).name
    drive, light, gun = _readings(path, name)
    white = gun == "white"
    levels, means, counts = _means(drive[white], light[white])
    _check_levels(levels, name)
    noise = np.maximum(_NOISE * means, _NOISE_OF_PEAK * means.max())
    knots, heights = _rising(levels, means, counts, noise, name)
    black, peak = float(heights[0]), float(heights[-1])
    relative = (heights - black) / (peak - black)
    pairs = tuple((float(a), float(b)) for a, b in zip(knots, relative, strict=True))
    display = Display.from_dict({**besides, "peak": peak, "black": black, "eotf": pairs})

    place = np.searchsorted(levels, drive[white])
    off = np.abs(light[white] - means[place])
    additivity, gun_curves = _guns(drive, light, gun, levels, means)
    screen = Screen(
        display, len(levels), _residual(knots, relative), float((off / means[place]).max()), additivity, gun_curves
    )
    if (off > noise[place]).any():
        worst = int(np.argmax(off / noise[place]))
        share = off[worst] / means[place][worst]
        _warn(
            f"{name}: repeats at drive {drive[white][worst]:g} are up to {100 * share:.2g} % "
            "off their mean; let the screen warm up, and measure again"
        )
    if additivity is not None and additivity > _GUNS_DIFFER:
        _warn(
            f"{name}: red, green and blue add up to {100 * additivity:.2g} % of the range more or less than white; "
            "colours on this screen will not be what was asked"
        )
    if gun_curves is not None and gun_curves > _GUNS_DIFFER:
        _warn(
            f"{name}: the curve of a gun is {100 * gun_curves:.2g} % of its range off that of white, which stands for "
            "all three; colours on this screen will not be what was asked"
        )
    return screen


def display_of(values: Mapping[str, Any], folder: Path) -> Display:
    """The display of a table ``[display]``: fields of `Display`, or ``table``, a file of the folder, and the rest.

    >>> display_of({"peak": 200, "black": 0.2}, Path()).peak
    200.0
    """
    if "table" not in values:
        return Display.from_dict(values)
    for key in ("peak", "black", "eotf"):
        if key in values:
            raise InputError(f"display.{key} is given, and so is display.table, which measures it; leave one out")
    table = values["table"]
    if not isinstance(table, str):
        raise InputError(f"display.table is {table!r}; give the name of a CSV file, as text")
    return read_screen(folder / table, **{key: value for key, value in values.items() if key != "table"}).display


def _warn(text: str) -> None:
    warnings.warn(text, ConditionWarning, stacklevel=3)


def _readings(path: str | Path, name: str) -> tuple[FloatArray, FloatArray, Any]:
    """Drive, luminance and gun of each row."""
    rows = [row for row in csv.reader(read_text(path).lstrip("\ufeff").splitlines()) if any(map(str.strip, row))]
    header = [word.strip() for word in rows[0]] if rows else []
    scales = [word for word in ("drive", "code") if word in header]
    strange = [word for word in header if word not in ("drive", "code", "luminance_cd_m2", "gun")]
    if len(scales) != 1 or "luminance_cd_m2" not in header or strange or len(set(header)) != len(header):
        raise InputError(f"{name} has the columns {', '.join(header)[:100] or 'of an empty file'}; {_COLUMNS}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise InputError(f"{name}, row {number} has {len(row)} values for {len(header)} columns; give one for each")
    columns = dict(zip(header, zip(*rows[1:], strict=True), strict=False))
    drive = _numbers(columns.get(scales[0], ()), scales[0], name)
    light = _numbers(columns.get("luminance_cd_m2", ()), "luminance_cd_m2", name)
    gun = np.array([word.strip().lower() for word in columns.get("gun", ["white"] * len(drive))])
    for word in np.unique(gun):
        if word not in ("white", *_GUNS):
            raise InputError(f"{name} has the gun {str(word)!r}; give white, red, green or blue")
    if not (light > 0).all():
        dark = int(np.argmin(light))
        raise InputError(
            f"{name} has a luminance of {light[dark]:g} cd/m² at {scales[0]} {drive[dark]:g}; every luminance must be "
            "above 0: below the meter's range give the least that it can tell"
        )
    if scales[0] == "code":
        drive = drive / _full_code(drive, name)
    if drive.size and not (drive.min() >= 0 and drive.max() <= 1):
        out = drive[(drive < 0) | (drive > 1)][0]
        raise InputError(f"{name} has a drive of {out:g}; give 0 to 1, or name the column code if these are codes")
    return drive, light, gun


def _numbers(words: Sequence[str], column: str, name: str) -> FloatArray:
    values = np.empty(len(words))
    for place, word in enumerate(words):
        try:
            values[place] = float(word)
        except ValueError:
            values[place] = np.nan
        if not np.isfinite(values[place]):
            raise InputError(f"{name} has {word.strip()[:40]!r} as {column}; give a finite number without a unit")
    return values


def _full_code(codes: FloatArray, name: str) -> float:
    most = codes.max(initial=0)
    if most not in _FULL_CODES or codes.min() < 0 or (codes % 1).any():
        raise InputError(
            f"{name} has codes from {codes.min(initial=0):g} to {most:g}; give whole numbers from 0 to full drive, "
            "which is 255, 1023, 4095 or 65535"
        )
    return float(most)


def _means(drive: FloatArray, light: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Drives in order, the mean luminance at each, and the number of its readings."""
    levels, place = np.unique(drive, return_inverse=True)
    counts = np.bincount(place, minlength=len(levels)).astype(float)
    return levels, np.bincount(place, light, len(levels)) / np.maximum(counts, 1), counts


def _check_levels(levels: FloatArray, name: str) -> None:
    if len(levels) < _FEWEST:
        raise InputError(
            f"{name} has white at {len(levels)} drives; give at least {_FEWEST}, from black to full drive, 17 are good"
        )
    if levels[0] != 0 or levels[-1] != 1:
        raise InputError(
            f"{name} has white from drive {levels[0]:g} to {levels[-1]:g}; measure at 0 (black) and at full drive too"
        )


def _rising(
    levels: FloatArray, means: FloatArray, counts: FloatArray, noise: FloatArray, name: str
) -> tuple[FloatArray, FloatArray]:
    """Points that rise strictly: neighbours that do not are pooled (isotonic regression), where noise explains them."""
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
            f"{name}: luminance falls as drive rises about drive {levels[at]:g} ({means[at]:g} cd/m²), by more than "
            "readings scatter (2 %); a screen's light rises with drive: measure there again"
        )
    if len(heights) < _FEWEST:
        raise InputError(
            f"{name} has {len(heights)} drives whose luminances differ; give at least {_FEWEST} that the meter "
            "tells apart"
        )
    ends = np.cumsum(sizes)
    knots = np.array([levels[end - size : end].mean() for end, size in zip(ends, sizes, strict=True)])
    knots[0], knots[-1] = 0.0, 1.0
    return knots, heights


def _residual(knots: FloatArray, relative: FloatArray) -> float:
    from scipy.interpolate import PchipInterpolator

    inner = range(1, len(knots) - 1)
    off = [PchipInterpolator(np.delete(knots, k), np.delete(relative, k))(knots[k]) - relative[k] for k in inner]
    return float(np.sqrt(np.mean(np.square(off))))


def _guns(
    drive: FloatArray, light: FloatArray, gun: Any, levels: FloatArray, means: FloatArray
) -> tuple[float | None, float | None]:
    """How far the guns are from adding up to white, and their curves from that of white, where they were measured."""
    white = dict(zip(levels.tolist(), means.tolist(), strict=True))
    black, span = means[0], means[-1] - means[0]
    guns = {}
    for name in _GUNS:
        at, mean, _ = _means(drive[gun == name], light[gun == name])
        guns[name] = dict(zip(at.tolist(), mean.tolist(), strict=True))
    together = [at for at in white if all(at in found for found in guns.values())]
    sums = [abs(sum(guns[name][at] for name in _GUNS) - 2 * black - white[at]) / span for at in together if at > 0]
    curves = [
        abs((found[at] - black) / (found[1.0] - black) - (white[at] - black) / span)
        for found in guns.values()
        if found.get(1.0, black) > black
        for at in found
        if at in white and 0 < at < 1
    ]
    return max(sums, default=None), max(curves, default=None)
