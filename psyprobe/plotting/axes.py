"""What figures share: axes with plain numbers and units, as vision scientists read them, titles,
panels and files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.terminal import printable_line
from psyprobe.files.units import unit_symbol

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

#: A sequential map that reads alike with all kinds of colour vision and in grey; its light end,
#: where responses are small, keeps the black human curve visible.
COLOUR_MAP = "YlGnBu"

#: Where there is nothing to draw: a grey that is not in the map.
BLANK = "#d4d4d4"

#: For all kinds of colour vision (Okabe and Ito 2008, Paul Tol's "muted" beyond eight); black is
#: for people.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#882255",
    "#332288",
    "#999933",
)

#: What each format would say about the time and the software, left out so that equal figures are
#: equal files.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
    ".eps": {},
}

#: Numbers from the first to below the second stand as they are; an axis that reaches beyond has
#: powers of ten.
_PLAIN = (1e-3, 1e5)
#: Size of type in figures of a journal's column, points: within columns of so many mm.
_TYPE = ((100.0, 6.5), (float("inf"), 7.5))
_MM_PER_INCH = 25.4
#: Height of a line of a legend, inches.
_LINE = 0.11
#: Letters of a label that fit beside a panel in a column, and beside one of the usual size.
_LONG = 20
_LONGEST = 40


def new_axes(width: float = 5.6, height: float = 4.4) -> Axes:
    """Axes of a new pyplot figure of so many inches, with room for labels and colour bars."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(width, height), layout="constrained")
    figure.set_gid(_OURS)
    axes: Axes = figure.add_subplot()
    return axes


@contextmanager
def typeset(width: float | None) -> Iterator[None]:
    """Type and lines as a journal prints them at a width in mm; as they are without one."""
    if width is None:
        yield
        return
    if not 40 <= width <= 400:
        raise InputError(
            f"width is {width:g} mm; give 40 to 400, such as 85 for one column and 178 for two"
        )
    import matplotlib as mpl

    size = next(points for most, points in _TYPE if width <= most)
    thin: dict[str, Any] = {
        "axes.linewidth": 0.5,
        "lines.linewidth": 1.0,
        "lines.markersize": 4,
        "legend.handlelength": 2.2,
    }
    ticks = {f"{axis}tick.{name}": value for axis in "xy" for name, value in _TICKS.items()}
    spaces = {"figure.constrained_layout.h_pad": 0.02, "figure.constrained_layout.w_pad": 0.02}
    given = _COLUMN.set(width)
    try:
        with mpl.rc_context(
            {"font.size": size, **thin, **ticks, **spaces, "axes.titlepad": 3, "axes.labelpad": 2}
        ):
            yield
    finally:
        _COLUMN.reset(given)


def most_across() -> int:
    """Panels that fit side by side."""
    width = _COLUMN.get()
    return 4 if width is None else max(1, min(4, int(width / 42)))


#: A level of 0 stands so far to the left of the others, on a logarithmic axis.
_LEFT = 2.5
#: Marks figures of one panel that psyprobe made.
_OURS = "psyprobe"
#: Width in mm within `typeset`; None outside.
_COLUMN: ContextVar[float | None] = ContextVar("column", default=None)
_TICKS = {"major.size": 2, "minor.size": 1, "major.width": 0.5, "minor.width": 0.4, "major.pad": 2}


def paler(colour: Any, share: float) -> tuple[float, float, float]:
    """A colour on white as a share of it would be: transparency, which an EPS does not have."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def colour_map(name: str) -> Colormap:
    """A colour map of matplotlib by its name.

    Raises
    ------
    UnknownNameError
        There is none.
    """
    import matplotlib as mpl

    if name not in mpl.colormaps:
        raise unknown_name("colour map", name, list(mpl.colormaps))
    return mpl.colormaps[name]


def scaled(size: float) -> float:
    """A width of lines or markers that goes with the size of type."""
    import matplotlib as mpl

    return size * min(float(mpl.rcParams["font.size"]) / 10, 1.0)


def fit_width(drawn: Any, width: float | None) -> None:
    """Bring a figure to a width in mm, as high as its panels are then wide."""
    if width is not None:
        figure = drawn.get_figure(root=True)
        across, down = figure.get_size_inches()
        # Legends do not shrink as panels do.
        high = width / _MM_PER_INCH * down / across + _LINE * keys_below(figure)
        figure.set_size_inches(width / _MM_PER_INCH, high)


def keys_below(figure: Any) -> int:
    """Lines of all legends under a figure or its axes."""
    held = [legend for axis in figure.axes if (legend := axis.get_legend()) is not None] + list(
        figure.legends
    )
    return sum(-(-len(legend.get_texts()) // max(legend._ncols, 1)) + 2 for legend in held)


def check_new(width: float | None, given: Any) -> None:
    """Refuse a width for what is drawn on axes or a figure that were given, and have theirs."""
    if width is not None and given is not None:
        raise InputError(
            f"width is {width:g} mm, and ax or figure has a size of its own; leave one out"
        )


def panels_in(
    figure: Any,
    count: int,
    across: int,
    each: tuple[float, float],
    margin: tuple[float, float] = (0.0, 0.2),
) -> tuple[Any, list[Axes]]:
    """A figure and the axes of panels in it, in rows of so many; without a figure a new one, of
    inches a panel.
    """
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
    """Say what is to the right, what is upwards and what it is; unframed axes have no lines above
    and on the right.
    """
    import matplotlib as mpl

    # A unit stands on a line of its own where both would be longer than the axes are high.
    narrow = mpl.rcParams["font.size"] < _TYPE[-1][1]
    letters = len(re.sub(r"\$[^$]*\$", "__", y))
    ax.set(
        xlabel=x,
        ylabel=y.replace(" (", "\n(", 1) if letters > (_LONG if narrow else _LONGEST) else y,
    )
    ax.set_title(title, fontsize="medium")
    if not framed:
        ax.spines[["top", "right"]].set_visible(False)


def log_axis(axis: Axis, low: float, high: float) -> None:
    """Make an axis logarithmic, with numbers at powers of ten, and at more where it spans less than
    2.5 decades.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    _limit(axis, low, high, scale="log")
    decades = np.log10(high / low)
    at = (
        (1.0,)
        if decades > 2.5
        else (1.0, 2.0, 5.0)
        if decades > 0.5
        else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    )
    axis.set_major_locator(LogLocator(base=10, subs=at, numticks=99))
    axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=99))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_texts([value], low, high)[0]))
    axis.set_minor_formatter(NullFormatter())


def legend_below(place: Any, handles: Sequence[Any], title: str) -> None:
    """A legend under axes or a figure, where it hides nothing."""
    if not handles:
        return
    if place.get_figure(root=True).get_gid() == _OURS:
        # Axes are narrower than their figure, and would give way to a legend that is wider than
        # they.
        place = place.get_figure(root=True)
    width = _COLUMN.get()
    across = _inches_across(place) if width is None else width / _MM_PER_INCH
    size = scaled(7.5)
    # A letter is half as wide as type is high, and a point 1/72 inch.
    style: dict[str, Any] = {
        "handles": handles,
        "title": fill(title, int(across * 72 / (size * 0.52))),
        "alignment": "left",
    }
    style |= {
        "fontsize": size,
        "title_fontsize": size,
        "frameon": False,
        "columnspacing": 1.2,
        "handletextpad": 0.4,
    }
    columns = max(1, min(5, int(across * 72 / (size * 22))))
    if hasattr(place, "get_subplotspec"):
        # Under the label, which is as high at any size of the axes.
        place.legend(
            **style, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.8, ncols=columns
        )
    else:
        place.legend(**style, loc="outside lower center", ncols=columns)


def _inches_across(place: Any) -> float:
    """How wide a figure is, or the cell of its grid in which axes stand."""
    figure = float(place.get_figure(root=True).get_size_inches()[0])
    cell = place.get_subplotspec() if hasattr(place, "get_subplotspec") else None
    return figure if cell is None else figure * len(cell.colspan) / int(cell.get_gridspec().ncols)


def level_axis(axis: Axis, values: npt.ArrayLike, margin: float = 1.0) -> None:
    """Limit an axis to the values of a level: logarithmic where they lie so, a 0 among them at its
    end; else linear.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    values : array_like of float
        Of the level.
    margin : float, optional
        Factor by which a logarithmic axis reaches beyond them; a linear one by as much of its
        length.
    """
    found = np.asarray(values, dtype=np.float64)
    low = float(found.min())
    high = float(found.max())
    if is_logarithmic(found) and low < high:
        log_axis(axis, low / margin, high * margin)
        return
    if (left := zero_beside(found)) is not None:
        _log_axis_with_zero(axis, left, left / margin, high * margin)
        return
    beyond = (margin - 1) * (high - low) / 4 or (0.5 if low == high else 0.0)
    _limit(axis, low - beyond, high + beyond)


def _log_axis_with_zero(axis: Axis, zero: float, low: float, high: float) -> None:
    """A logarithmic axis on which 0 stands where the value `zero` would."""
    from matplotlib.scale import FuncScale
    from matplotlib.ticker import NullFormatter

    log_axis(axis, low, high)
    ticks = [tick for tick in axis.get_majorticklocs() if zero * 1.5 < tick <= high]
    minor = axis.get_minor_locator()
    _limit(axis, low, high, scale=FuncScale(axis, log_with_zero(zero)))
    axis.set_minor_locator(minor)
    axis.set_minor_formatter(NullFormatter())
    axis.set_ticks([0.0, *ticks], labels=["0", *tick_texts(ticks, zero, high)])
    # A tick at 0 has moved the end.
    _limit(axis, low, high)


def log_with_zero(zero: float) -> tuple[Callable[..., FloatArray], Callable[..., FloatArray]]:
    """The logarithm, which takes 0 for `zero`, and its inverse, as scales and norms of matplotlib
    take them.
    """

    def place(values: npt.ArrayLike) -> FloatArray:
        found = np.asarray(values, dtype=np.float64)
        return np.asarray(np.log10(np.where(found > 0, found, zero)))

    return place, lambda places: 10.0 ** np.asarray(places)


def _limit(axis: Axis, low: float, high: float, **more: Any) -> None:
    which = "x" if axis is axis.axes.xaxis else "y"
    axis.axes.set(
        **{f"{which}{name}": value for name, value in {**more, "lim": (low, high)}.items()}
    )


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
    by_factor = np.diff(np.log(found))
    by_difference = np.diff(found)
    return bool(
        np.std(by_factor) / by_factor.mean() <= np.std(by_difference) / by_difference.mean()
    )


def zero_beside(values: npt.ArrayLike) -> float | None:
    """Where 0 stands on a logarithmic axis: a little left of the other values; None for a linear
    axis, or without a 0.

    Only values that span a decade have such an axis; angles of 15, 30, 60 and 90 deg do not.

    Examples
    --------
    >>> zero_beside([0, 0.01, 0.1, 1]), zero_beside([0.01, 0.1, 1]), zero_beside([0, 15, 30, 60, 90])
    (0.004, None, None)
    """
    found = np.unique(np.asarray(values, dtype=np.float64))
    if (
        found[0] != 0
        or len(found) < 4
        or found[-1] < 10 * found[1]
        or not is_logarithmic(found[1:])
    ):
        return None
    return float(found[1]) / _LEFT


def tick_texts(values: Iterable[float], low: float, high: float) -> list[str]:
    r"""Ticks of an axis in one style: plain numbers, or powers of ten where some would be long.

    Examples
    --------
    >>> tick_texts([0.5, 20], 0.5, 20), tick_texts([1e-6, 2e-6, 1], 1e-6, 1)
    (['0.5', '20'], ['$10^{-6}$', '$2 \\times 10^{-6}$', '$10^{0}$'])
    """
    if low >= _PLAIN[0] * (1 - 1e-9) and high < _PLAIN[1]:
        return [f"{value:g}" for value in values]
    return [_power(value) for value in values]


def _power(value: float) -> str:
    exponent = int(np.floor(np.log10(abs(value)) + 1e-9))
    digits = f"{value / 10.0**exponent:g}"
    return f"$10^{{{exponent}}}$" if digits == "1" else rf"${digits} \times 10^{{{exponent}}}$"


def level_label(result: xr.Dataset, name: str) -> str:
    """Label of a level or another coordinate with its unit, as "Spatial frequency (cpd)"."""
    about = result[name].attrs
    text = about.get("long_name", name)
    unit = unit_symbol(about)
    return str(text) if unit == "1" else f"{text} ({unit})"


def with_unit(value: float, unit: str) -> str:
    """A value of a level, as "4 cpd"."""
    return f"{value:g}" if unit == "1" else f"{value:g} {unit}"


def short_name(observer: str) -> str:
    """An observer's name without the loader and the tag of its weights.

    Examples
    --------
    >>> short_name("timm:vit_small_patch14_dinov2.lvd142m"), short_name("packaged:mobilenetv2"), short_name("mine")
    ('vit_small_patch14_dinov2', 'mobilenetv2', 'mine')
    """
    loader, colon, name = observer.partition(":")
    if not colon or not re.fullmatch(r"[a-z_]+", loader) or not name:
        return observer
    return re.sub(r"(?<=[^\d/])\.[^./]+$|(?<=\d)\.[a-z][^./]*$", "", name) or name


def title_of(result: xr.Dataset, width: int = 32, among: Sequence[xr.Dataset] = ()) -> str:
    """The observer's short name, in lines of so many characters, and a line that says so if its
    weights are random.

    Where another result of the same figure would be called the same, the whole name.
    """
    full = str(result.attrs.get("observer", ""))
    others = {str(one.attrs.get("observer", "")) for one in among} - {full}
    name = full if short_name(full) in map(short_name, others) else short_name(full)
    lines = [""]
    # Names of models have no spaces; they may break behind the marks that part them.
    for part in re.findall(r"[^-./:_]*[-./:_]?", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    if result.attrs.get("random_weights", 0):
        lines.append("RANDOM WEIGHTS")
    return "\n".join(printable(line) for line in lines)


def panel_title(
    result: xr.Dataset,
    layer: str,
    *,
    experiment: bool,
    observer: bool,
    among: Sequence[xr.Dataset] = (),
) -> str:
    """Of a panel, a line for each of what tells it apart from others."""
    named = [title_of(result, among=among)] * observer
    lines = [printable(str(result.attrs.get("experiment", "")))] * experiment + named
    return "\n".join([*lines, *[printable(layer)] * (len(result["layer"]) > 1)])


def printable(text: str) -> str:
    """Text that matplotlib draws as it stands: names of models may hold a dollar sign, which would
    begin a formula.
    """
    return printable_line(text).replace("$", r"\$")


def shown_layers(
    results: Sequence[xr.Dataset],
    layer: str | None,
    names_of: Callable[[xr.Dataset], list[str]],
    ax: Axes | None,
) -> list[tuple[xr.Dataset, str]]:
    """Each result with each of its layers, or with the one that was named; several do not go on one
    Axes.
    """
    shown = [
        (result, name)
        for result in results
        for name in (names_of(result) if layer is None else [layer])
    ]
    check_room(ax, len(shown))
    return shown


def check_room(ax: Axes | None, panels: int) -> None:
    """Refuse several panels on one Axes."""
    if ax is not None and panels != 1:
        raise InputError(
            f"ax holds one panel, and there are {panels}; name one layer of one result, or "
            "leave ax out"
        )


def save_figure(figure: Figure | Axes, path: str | Path, *, dpi: float = 200) -> Path:
    """Write a figure to a file, in the format of its suffix.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        What the drawing functions return.
    path : str or Path
        Ending in ".png", ".svg", ".pdf" or ".eps". An existing file is replaced.
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
    Text stays text in a PDF and an EPS (TrueType, as journals ask) and becomes outlines in an SVG.
    The same figure gives the same bytes, with the same version of matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _METADATA:
        raise unknown_name("figure format", suffix or target.name, _METADATA)
    whole = figure if isinstance(figure, Figure) else cast("Figure", figure.figure)
    try:
        with mpl.rc_context({"svg.hashsalt": "psyprobe", "pdf.fonttype": 42, "ps.fonttype": 42}):
            if suffix == ".eps":
                _save_eps(whole, target)
            else:
                whole.savefig(target, dpi=dpi, format=suffix[1:], metadata=_METADATA[suffix])
    except OSError as error:
        raise InputError(
            f"the figure cannot be written to {target}: {error.strerror or error}"
        ) from error
    return target


def _save_eps(figure: Figure, path: Path) -> None:
    """Without its date, which matplotlib cannot leave out."""
    with BytesIO() as stream:
        figure.savefig(stream, format="eps")
        lines = stream.getvalue().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if not line.startswith(b"%%CreationDate")))
