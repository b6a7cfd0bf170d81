"""Logarithmic axes with plain numbers and units, as vision scientists read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

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


def x_label(attributes: Any) -> str:
    """Label of the x axis of a result, with its unit.

    Parameters
    ----------
    attributes : mapping
        Of the result.

    Returns
    -------
    str
        As "Spatial frequency (cpd)".
    """
    return f"{attributes['x_label']} ({attributes['x_unit']})"


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
