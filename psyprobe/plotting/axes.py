"""What figures share: axes with plain numbers and units, as vision scientists read them, titles, panels and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.terminal import printable_line

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: A sequential map that reads alike with all kinds of colour vision and in grey; its light end, where responses are
#: small, keeps the black human curve visible.
COLOUR_MAP = "YlGnBu"

#: Where there is nothing to draw: a grey that is not in the map.
BLANK = "#d4d4d4"

#: For all kinds of colour vision (Okabe and Ito 2008, Paul Tol's "muted" beyond eight); black is for people.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#882255", "#332288", "#999933",
)  # fmt: skip

#: What each format would say about the time and the software, left out so that equal figures are equal files.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
}


def new_axes(width: float = 5.6, height: float = 4.4) -> Axes:
    """Axes of a new pyplot figure of so many inches, with room for labels and colour bars."""
    import matplotlib.pyplot as plt

    axes: Axes = plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    return axes


def panels_in(
    figure: Any, count: int, across: int, each: tuple[float, float], margin: tuple[float, float] = (0.0, 0.2)
) -> tuple[Any, list[Axes]]:
    """A figure and the axes of panels in it, in rows of so many; without a figure a new one, of inches a panel."""
    down = -(-count // across)
    if figure is None:
        import matplotlib.pyplot as plt

        size = (each[0] * across + margin[0], each[1] * down + margin[1])
        figure = plt.figure(figsize=size, layout="constrained")
    axes: list[Axes] = list(figure.subplots(down, across, squeeze=False).flat)
    for empty in axes[count:]:
        empty.remove()
    return figure, axes[:count]


def label(ax: Axes, x: str, y: str, title: str, *, framed: bool = True) -> None:
    """Say what is to the right, what is upwards and what it is; unframed axes have no lines above and on the right."""
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, fontsize="medium")
    if not framed:
        ax.spines[["top", "right"]].set_visible(False)


def log_axis(axis: Axis, low: float, high: float) -> None:
    """Make an axis logarithmic, with numbers at 1, 2, 5 or, over more than two and a half decades, at powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    _limit(axis, low, high, scale="log")
    wide = np.log10(high / low) > 2.5
    axis.set_major_locator(LogLocator(base=10, subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=99))
    axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=99))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_or_power(value)))
    axis.set_minor_formatter(NullFormatter())


def level_axis(axis: Axis, values: npt.ArrayLike, margin: float = 1.0) -> None:
    """Limit an axis to the values of a level: logarithmic where they lie so, else (phases, with 0) linear.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``ax.xaxis`` or ``ax.yaxis``.
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
    _limit(axis, low - beyond, high + beyond)


def _limit(axis: Axis, low: float, high: float, **more: Any) -> None:
    which = "x" if axis is axis.axes.xaxis else "y"
    axis.axes.set(**{f"{which}{name}": value for name, value in {**more, "lim": (low, high)}.items()})


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


def plain_or_power(value: float) -> str:
    r"""A tick as a plain number, or as a power of ten where that would be long.

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


def level_label(result: xr.Dataset, name: str) -> str:
    """Label of a level or another coordinate with its unit, as "Spatial frequency (cpd)"."""
    about = result[name].attrs
    text, unit = about.get("long_name", name), about.get("units", "1")
    return str(text) if unit == "1" else f"{text} ({unit})"


def with_unit(value: float, unit: str) -> str:
    """A value of a level, as "4 cpd"."""
    return f"{value:g}" if unit == "1" else f"{value:g} {unit}"


def title_of(result: xr.Dataset, width: int = 32) -> str:
    """The observer's name, in lines of so many characters, and a line that says so if its weights are random."""
    lines = [""]
    # Names of models have no spaces; they may break behind the marks that part them.
    for part in re.findall(r"[^-./:_]*[-./:_]?", str(result.attrs.get("observer", ""))):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    if result.attrs.get("random_weights", 0):
        lines.append("RANDOM WEIGHTS")
    return "\n".join(printable(line) for line in lines)


def panel_title(result: xr.Dataset, layer: str, *, experiment: bool, observer: bool) -> str:
    """Of a panel, a line for each of what tells it apart."""
    lines = [printable(str(result.attrs.get("experiment", "")))] * experiment + [title_of(result)] * observer
    return "\n".join([*lines, *[printable(layer)] * (len(result["layer"]) > 1)])


def printable(text: str) -> str:
    """Text that matplotlib draws as it stands: names of models may hold a dollar sign, which would begin a formula."""
    return printable_line(text).replace("$", r"\$")


def shown_layers(
    results: Sequence[xr.Dataset], layer: str | None, names_of: Callable[[xr.Dataset], list[str]], ax: Axes | None
) -> list[tuple[xr.Dataset, str]]:
    """Each result with each of its layers, or with the one that was named; several do not go on one Axes."""
    shown = [(one, name) for one in results for name in (names_of(one) if layer is None else [layer])]
    check_room(ax, len(shown))
    return shown


def check_room(ax: Axes | None, panels: int) -> None:
    """Refuse several panels on one Axes."""
    if ax is not None and panels != 1:
        raise InputError(f"ax holds one panel, and there are {panels}; name one layer of one result, or leave ax out")


def save_figure(figure: Figure | Axes, path: str | Path, *, dpi: float = 200) -> Path:
    """Write a figure to a file, in the format of its suffix.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        What the drawing functions return.
    path : str or Path
        Ending in ".png", ".svg" or ".pdf". An existing file is replaced.
    dpi : float, optional
        Pixels per inch of a PNG.

    Raises
    ------
    UnknownNameError
        The suffix is none of these.
    InputError
        The file cannot be written.

    Notes
    -----
    Text stays text in a PDF (TrueType, as journals ask) and becomes outlines in an SVG. The same figure gives the
    same bytes, with the same version of matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _METADATA:
        raise unknown_name("figure format", suffix or target.name, _METADATA)
    whole = figure if isinstance(figure, Figure) else cast("Figure", figure.figure)
    try:
        with mpl.rc_context({"svg.hashsalt": "psyprobe", "pdf.fonttype": 42}):
            whole.savefig(target, dpi=dpi, format=suffix[1:], metadata=_METADATA[suffix])
    except OSError as error:
        raise InputError(f"the figure cannot be written to {target}: {error.strerror or error}") from error
    return target
