"""Logarithmic axes with plain numbers and units, as vision scientists read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from psyprobe.files.terminal import printable_line

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

#: A sequential map that reads alike with all kinds of colour vision and in grey; its light end, where responses are
#: small, keeps the black human curve visible.
COLOUR_MAP = "YlGnBu"

#: Characters of a title that fit above a panel.
_TITLE_WIDTH = 32

#: Where there is nothing to draw: a grey that is not in the map.
BLANK = "#d4d4d4"


def log_axis(axis: Axis, low: float, high: float) -> None:
    """Make an axis logarithmic, with numbers at 1, 2, 5 or, over more than two and a half decades, at powers of ten.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    low, high : float
        Its limits, above 0, in the unit of the data.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axis is axis.axes.xaxis:
        axis.axes.set(xscale="log", xlim=(low, high))
    else:
        axis.axes.set(yscale="log", ylim=(low, high))
    wide = np.log10(high / low) > 2.5
    axis.set_major_locator(LogLocator(base=10, subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=99))
    axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=99))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_or_power(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_or_power(value: float) -> str:
    r"""A tick as a plain number, or as a power of ten where that would be long.

    Parameters
    ----------
    value : float
        Of the tick.

    Returns
    -------
    str
        Text or mathtext.

    Examples
    --------
    >>> plain_or_power(0.5), plain_or_power(1e-6), plain_or_power(2e-6)
    ('0.5', '$10^{-6}$', '$2 \\times 10^{-6}$')
    """
    if 1e-3 <= abs(value) < 1e5 or value == 0:
        return f"{value:g}"
    exponent = int(np.floor(np.log10(abs(value)) + 1e-9))
    digits = f"{value / 10.0**exponent:g}"
    return f"$10^{{{exponent}}}$" if digits == "1" else rf"${digits} \times 10^{{{exponent}}}$"


def new_axes() -> Axes:
    """Axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        With a layout that makes room for labels and colour bars.
    """
    import matplotlib.pyplot as plt

    axes: Axes = plt.figure(figsize=(5.6, 4.4), layout="constrained").add_subplot()
    return axes


def level_label(result: xr.Dataset, name: str) -> str:
    """Label of a level or another coordinate with its unit, as "Spatial frequency (cpd)"."""
    about = result[name].attrs
    label, unit = about.get("long_name", name), about.get("units", "1")
    return str(label) if unit == "1" else f"{label} ({unit})"


def with_unit(value: float, unit: str) -> str:
    """A value of a level, as "4 cpd"."""
    return f"{value:g}" if unit == "1" else f"{value:g} {unit}"


def level_axis(axis: Axis, values: npt.ArrayLike, margin: float = 1.0) -> None:
    """Limit an axis to the values of a level: logarithmic where they lie so, else (phases, with 0) linear.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        As for `log_axis`.
    values : array_like of float
        Of the level.
    margin : float, optional
        Factor by which a logarithmic axis reaches beyond them; a linear one by as much of its length.
    """
    found = np.asarray(values, dtype=np.float64)
    low, high = float(found.min()), float(found.max())
    if is_logarithmic(found) and low < high:
        log_axis(axis, low / margin, high * margin)
        return
    beyond = (margin - 1) * (high - low) / 4 or (0.5 if low == high else 0.0)
    limits = (low - beyond, high + beyond)
    axis.axes.set(**({"xlim": limits} if axis is axis.axes.xaxis else {"ylim": limits}))


def is_logarithmic(values: npt.ArrayLike) -> bool:
    """Whether values are above 0 and more evenly spaced by factors than by differences.

    Examples
    --------
    >>> is_logarithmic([1, 2, 4]), is_logarithmic([0, 90, 180]), is_logarithmic([10, 20, 30])
    (True, False, False)
    """
    found = np.unique(np.asarray(values, dtype=np.float64))
    if len(found) < 2 or found[0] <= 0:
        return bool(found[0] > 0)
    by_factor, by_difference = np.diff(np.log(found)), np.diff(found)
    return bool(np.std(by_factor) / by_factor.mean() <= np.std(by_difference) / by_difference.mean())


def title_of(result: xr.Dataset, width: int = _TITLE_WIDTH) -> str:
    """The observer's name, over as many lines as it needs above a panel.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    width : int, optional
        Characters that fit above it.

    Returns
    -------
    str
        With a line that says so if the observer has random weights.
    """
    lines = [""]
    # Names of models have no spaces; they may break behind the marks that part them.
    for part in re.findall(r"[^-./:_]*[-./:_]?", str(result.attrs.get("observer", ""))):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    if result.attrs.get("random_weights", 0):
        lines.append("RANDOM WEIGHTS")
    return "\n".join(printable(line) for line in lines)


def printable(text: str) -> str:
    """Text that matplotlib draws as it stands: names of models may hold a dollar sign, which would begin a formula."""
    return printable_line(text).replace("$", r"\$")
