"""Share axes with plain numbers and units, titles, legends, panels and files among figures."""

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
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import write_whole
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

#: Colour where there is nothing to draw: a grey that is not in the map.
BLANK = "#d4d4d4"

#: Colours for all kinds of colour vision (Okabe and Ito 2008, Paul Tol's "muted" beyond eight);
#: black is for people.
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

#: Metadata of each format about time and software, left out so that equal figures are equal files.
_METADATA: dict[str, JsonObject] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
    ".eps": {},
}

#: Axes within these limits have plain numbers; an axis that reaches beyond has powers of ten.
_PLAIN = (1e-3, 1e5)
#: Widest column in mm, and size of type within it in points.
_TYPE = ((100.0, 6.5), (float("inf"), 7.5))
_MM_PER_INCH = 25.4
#: Height of a line of a legend, inches.
_LEGEND_LINE = 0.11
#: Letters of a label that fit beside a panel in a column, and beside one of the usual size.
_COLUMN_LETTERS = 20
_PANEL_LETTERS = 40
#: Distance of a level of 0 to the left of the others on a logarithmic axis, as a factor.
_ZERO_FACTOR = 2.5
#: Id of figures of one panel that psyprobe made.
_FIGURE_ID = "psyprobe"
#: Width in mm within `typeset`; None outside.
_COLUMN: ContextVar[float | None] = ContextVar("column", default=None)
#: Style sheet of figures in print.
_PRINT_STYLE = Path(__file__).with_name("print.mplstyle")


def new_axes(width: float = 5.6, height: float = 4.4) -> Axes:
    """Create axes on a new pyplot figure, size in inches, with room for labels and colour bars."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(width, height), layout="constrained")
    figure.set_gid(_FIGURE_ID)
    axes: Axes = figure.add_subplot()
    return axes


@contextmanager
def typeset(width: float | None) -> Iterator[None]:
    """Set matplotlib's type and lines within the block as journals print them at a width in mm."""
    if width is None:
        yield
        return
    if not 40 <= width <= 400:
        raise InputError(
            f"width is {width:g} mm; give 40 to 400, such as 85 for one column and 178 for two"
        )
    import matplotlib as mpl

    points = next(points for widest, points in _TYPE if width <= widest)
    token = _COLUMN.set(width)
    try:
        with mpl.rc_context({"font.size": points}, _PRINT_STYLE):
            yield
    finally:
        _COLUMN.reset(token)


def max_columns() -> int:
    """Count the panels that fit side by side."""
    width = _COLUMN.get()
    return 4 if width is None else max(1, min(4, int(width / 42)))


def paler(colour: Any, share: float) -> tuple[float, float, float]:
    """Mix a colour with white, in place of transparency, which EPS files lack."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def colour_map(name: str) -> Colormap:
    """Look up a colour map of matplotlib by its name.

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
    """Scale a line width or marker size with the size of type."""
    import matplotlib as mpl

    return size * min(float(mpl.rcParams["font.size"]) / 10, 1.0)


def fit_width(artist: Any, width: float | None) -> None:
    """Resize the figure of axes to a width in mm, its height in proportion."""
    if width is not None:
        figure = artist.get_figure(root=True)
        old_width, old_height = figure.get_size_inches()
        new_width = width / _MM_PER_INCH
        # Legends do not shrink as panels do.
        legend_height = _LEGEND_LINE * legend_lines(figure)
        figure.set_size_inches(
            new_width, new_width * old_height / old_width + legend_height
        )


def legend_lines(figure: Any) -> int:
    """Count the lines of all legends under a figure or its axes."""
    legends = filter(None, [*[ax.get_legend() for ax in figure.axes], *figure.legends])
    return sum(-(-len(legend.texts) // legend._ncols) + 2 for legend in legends)


def check_new(width: float | None, canvas: Any) -> None:
    """Refuse a width for the caller's own axes or figure, which have a size."""
    if width is not None and canvas is not None:
        raise InputError(
            f"width is {width:g} mm, and ax or figure has a size of its own; leave one out"
        )


def panels_in(
    figure: Any,
    count: int,
    columns: int,
    panel_size: tuple[float, float],
    margin: tuple[float, float] = (0.0, 0.2),
) -> tuple[Any, list[Axes]]:
    """Create the axes of several panels, on a figure or a new one; sizes in inches."""
    rows = -(-count // columns)
    if figure is None:
        import matplotlib.pyplot as plt

        width = panel_size[0] * columns + margin[0]
        height = panel_size[1] * rows + margin[1]
        figure = plt.figure(figsize=(width, height), layout="constrained")
    axes: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for empty in axes[count:]:
        empty.remove()
    return figure, axes[:count]


def label(ax: Axes, x: str, y: str, title: str, *, framed: bool = True) -> None:
    """Label both axes and set a title; unframed axes have no lines above and on the right."""
    import matplotlib as mpl

    # A unit stands on a line of its own where both would be longer than the axes are high.
    narrow = mpl.rcParams["font.size"] < _TYPE[-1][1]
    letters = len(re.sub(r"\$[^$]*\$", "__", y))
    if letters > (_COLUMN_LETTERS if narrow else _PANEL_LETTERS):
        y = y.replace(" (", "\n(", 1)
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, fontsize="medium")
    if not framed:
        ax.spines[["top", "right"]].set_visible(False)


def shades(count: int, lightest: float = 0.9) -> Any:
    """Pick colours from dark to light that are all seen on white."""
    return colour_map("viridis")(np.linspace(0, lightest, count))


def log_axis(axis: Axis, values: ArrayLike, margin: float = 1.0) -> None:
    """Make an axis logarithmic, from below the smallest to beyond the largest value.

    It has more numbers than powers of ten where it spans few decades.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low = float(np.min(values)) / margin
    high = float(np.max(values)) * margin
    _limit(axis, low, high, scale="log")
    decades = np.log10(high / low)
    digits = [1.0] if decades > 2.5 else [1.0, 2.0, 5.0]
    if decades <= 0.5:
        digits = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    axis.set_major_locator(LogLocator(base=10, subs=digits, numticks=99))
    axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=99))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: tick_texts([value], low, high)[0])
    )
    axis.set_minor_formatter(NullFormatter())


def draw_arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: Any,
    **style: Any,
) -> None:
    """Draw an arrow to a threshold that lies beyond the contrasts shown."""
    arrow = {"arrowstyle": "-|>", "color": colour, **style}
    ax.annotate("", xy=end, xytext=start, arrowprops=arrow)


def labelled_lines(panels: Iterable[Axes]) -> list[Any]:
    """List the lines of several axes for a legend, one for each label."""
    lines = {str(line.get_label()): line for ax in panels for line in ax.lines}
    return [line for label, line in lines.items() if not label.startswith("_")]


def legend_below(canvas: Any, handles: Sequence[Any], title: str) -> None:
    """Add a legend below axes or a figure, where it hides nothing."""
    if not handles:
        return
    figure = canvas.get_figure(root=True)
    if figure.get_gid() == _FIGURE_ID:
        # Axes are narrower than their figure, and would give way to a legend that is wider.
        canvas = figure
    column = _COLUMN.get()
    inches = _width_in_inches(canvas) if column is None else column / _MM_PER_INCH
    size = scaled(7.5)
    # A letter is half as wide as type is high, and a point 1/72 inch.
    style: JsonObject = {
        "handles": handles,
        "title": fill(title, int(inches * 72 / (size * 0.52))),
        "alignment": "left",
        "fontsize": size,
        "title_fontsize": size,
        "frameon": False,
        "columnspacing": 1.2,
        "handletextpad": 0.4,
        "ncols": max(1, min(5, int(inches * 72 / (size * 22)))),
    }
    if hasattr(canvas, "get_subplotspec"):
        # Under the label, which is as high at any size of the axes.
        canvas.legend(
            **style, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.8
        )
    else:
        canvas.legend(**style, loc="outside lower center")


def share_legend(figure: Figure, title: str = "") -> None:
    """Replace the legends of all axes of a figure by one below them.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        With a constrained layout, on whose axes figures were drawn by ``ax=``.
    title : str, optional
        Of the legend.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure = Figure(layout="constrained")
    >>> for ax in figure.subplots(1, 2):
    ...     _ = ax.plot([1, 2], label="pixels")
    ...     _ = ax.legend()
    >>> share_legend(figure)
    >>> [ax.get_legend() for ax in figure.axes], len(figure.legends)
    ([None, None], 1)
    """
    handles: dict[str, Any] = {}
    for ax in figure.axes:
        legend = ax.get_legend()
        if legend is not None:
            names = [text.get_text() for text in legend.get_texts()]
            handles = dict(zip(names, legend.legend_handles, strict=True)) | handles
            legend.remove()
    for name, handle in handles.items():
        handle.set_label(name)
    legend_below(figure, [*handles.values()], title)


def _width_in_inches(canvas: Any) -> float:
    """Measure the width of a figure, or of the grid cell that holds axes."""
    width = float(canvas.get_figure(root=True).get_size_inches()[0])
    cell = getattr(canvas, "get_subplotspec", lambda: None)()
    return width * len(cell.colspan) / int(cell.get_gridspec().ncols) if cell else width


def level_axis(axis: Axis, values: ArrayLike, margin: float = 1.0) -> None:
    """Limit an axis to a level's values, logarithmic if they are so spaced.

    A 0 beside logarithmic values stands at the end of the axis.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    values : array_like of float
        Values of the level.
    margin : float, optional
        Factor by which a logarithmic axis reaches beyond the values; a linear axis reaches beyond
        by a share of its length.
    """
    level_values = np.asarray(values, dtype=np.float64)
    low = float(level_values.min())
    high = float(level_values.max())
    if is_logarithmic(level_values) and low < high:
        log_axis(axis, level_values, margin)
        return
    zero = zero_beside(level_values)
    if zero is not None:
        _log_axis_with_zero(axis, zero, zero / margin, high * margin)
        return
    beyond = (margin - 1) * (high - low) / 4 or (0.5 if low == high else 0.0)
    _limit(axis, low - beyond, high + beyond)


def _log_axis_with_zero(axis: Axis, zero: float, low: float, high: float) -> None:
    """Make an axis logarithmic, with 0 at the place of another value."""
    from matplotlib.scale import FuncScale
    from matplotlib.ticker import NullFormatter

    log_axis(axis, [low, high])
    ticks = [tick for tick in axis.get_majorticklocs() if zero * 1.5 < tick <= high]
    minor = axis.get_minor_locator()
    _limit(axis, low, high, scale=FuncScale(axis, log_with_zero(zero)))
    axis.set_minor_locator(minor)
    axis.set_minor_formatter(NullFormatter())
    axis.set_ticks([0.0, *ticks], labels=["0", *tick_texts(ticks, zero, high)])
    # A tick at 0 has moved the end.
    _limit(axis, low, high)


def log_with_zero(
    zero: float,
) -> tuple[Callable[..., FloatArray], Callable[..., FloatArray]]:
    """Build the log10 that takes another value in place of 0, and its inverse, for matplotlib."""

    def forward(values: ArrayLike) -> FloatArray:
        linear = np.asarray(values, dtype=np.float64)
        return np.log10(np.where(linear > 0, linear, zero))

    return forward, lambda places: 10.0 ** np.asarray(places)


def _limit(axis: Axis, low: float, high: float, scale: Any = None) -> None:
    """Set the limits of an axis, and its scale before them."""
    ax = axis.axes
    is_x = axis is ax.xaxis
    if scale is not None:
        (ax.set_xscale if is_x else ax.set_yscale)(scale)
    (ax.set_xlim if is_x else ax.set_ylim)(low, high)


def is_logarithmic(values: ArrayLike) -> bool:
    """Tell whether values are above 0 and more evenly spaced by factors than by differences.

    Examples
    --------
    >>> is_logarithmic([1, 2, 4]), is_logarithmic([0, 90, 180]), is_logarithmic([10, 20, 30])
    (True, False, False)
    """
    levels = np.unique(np.asarray(values, dtype=np.float64))
    if len(levels) < 2 or levels[0] <= 0:
        return bool(levels[0] > 0)
    factors = np.diff(np.log(levels))
    differences = np.diff(levels)
    return bool(
        np.std(factors) / factors.mean() <= np.std(differences) / differences.mean()
    )


def zero_beside(values: ArrayLike) -> float | None:
    """Choose where a logarithmic axis shows 0: a little left of the other values.

    None for a linear axis, or without a 0. Only values that span a decade have such an axis; angles
    of 15, 30, 60 and 90 deg do not.

    Examples
    --------
    >>> zero_beside([0, 0.01, 0.1, 1]), zero_beside([0, 15, 30, 60, 90])
    (0.004, None)
    """
    levels = np.unique(np.asarray(values, dtype=np.float64))
    if levels[0] != 0 or len(levels) < 4:
        return None
    spans_decade = levels[-1] >= 10 * levels[1]
    if not spans_decade or not is_logarithmic(levels[1:]):
        return None
    return float(levels[1]) / _ZERO_FACTOR


def tick_texts(values: Iterable[float], low: float, high: float) -> list[str]:
    r"""Format ticks alike: plain numbers, or powers of ten where some would be long.

    Examples
    --------
    >>> tick_texts([0.5, 20], 0.5, 20), tick_texts([1e-6, 2e-6, 1], 1e-6, 1)
    (['0.5', '20'], ['$10^{-6}$', '$2 \\times 10^{-6}$', '$10^{0}$'])
    """
    if low >= _PLAIN[0] * (1 - 1e-9) and high < _PLAIN[1]:
        return [f"{value:g}" for value in values]
    return [_format_power(value) for value in values]


def _format_power(value: float) -> str:
    """Format a number as a TeX power of ten."""
    exponent = int(np.floor(np.log10(abs(value)) + 1e-9))
    digits = f"{value / 10.0**exponent:g}"
    factor = "" if digits == "1" else rf"{digits} \times "
    return f"${factor}10^{{{exponent}}}$"


def level_label(result: xr.Dataset, name: str) -> str:
    """Return a level's label with its unit, as "Spatial frequency (cpd)"."""
    attributes = result[name].attrs
    text = attributes.get("long_name", name)
    unit = unit_symbol(attributes)
    return str(text) if unit == "1" else f"{text} ({unit})"


def with_unit(value: float, unit: str) -> str:
    """Format a value of a level, as "4 cpd"."""
    return f"{value:g}" if unit == "1" else f"{value:g} {unit}"


def short_name(observer: str) -> str:
    """Shorten an observer's name by the loader and the tag of its weights.

    Examples
    --------
    >>> short_name("timm:vit_small_patch14_dinov2.lvd142m"), short_name("mine")
    ('vit_small_patch14_dinov2', 'mine')
    >>> short_name("openai:m3, 2026-11-20")
    'm3, 2026-11-20'
    """
    name, comma, label = observer.partition(", ")
    loader, colon, name = name.partition(":")
    if not colon or not re.fullmatch(r"[a-z_]+", loader) or not name:
        return observer
    short = re.sub(r"(?<=[^\d/])\.[^./]+$|(?<=\d)\.[a-z][^./]*$", "", name) or name
    return short + comma + label


def title_of(
    result: xr.Dataset, width: int = 32, among: Sequence[xr.Dataset] = ()
) -> str:
    """Build a result's title from its observer's short name, in lines of `width` characters.

    Where another observer of `among` has the same short name, the full name. Random weights have a
    line of their own.
    """
    full_name = str(result.attrs.get("observer", ""))
    names = {full_name, *(str(other.attrs.get("observer", "")) for other in among)}
    name = short_name(full_name)
    if [short_name(other) for other in names].count(name) > 1:
        name = full_name
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
    """Build a panel's title from experiment, observer and layer, as far as they differ."""
    lines = []
    if experiment:
        lines.append(printable(str(result.attrs.get("experiment", ""))))
    if observer:
        lines.append(title_of(result, among=among))
    if len(result["layer"]) > 1:
        lines.append(printable(layer))
    return "\n".join(lines)


def printable(text: str) -> str:
    """Escape dollar signs and invisible characters, so that matplotlib shows text as it is."""
    return printable_line(text).replace("$", r"\$")


def result_layers(
    results: Sequence[xr.Dataset],
    layer: str | None,
    layers_of: Callable[[xr.Dataset], list[str]],
    ax: Axes | None,
) -> list[tuple[xr.Dataset, str]]:
    """Pair each result with each of its layers, refusing several pairs on one Axes."""
    pairs = [
        (result, name)
        for result in results
        for name in (layers_of(result) if layer is None else [layer])
    ]
    check_room(ax, len(pairs))
    return pairs


def check_room(ax: Axes | None, panels: int) -> None:
    """Refuse several panels on one Axes."""
    if ax is not None and panels != 1:
        raise InputError(
            f"ax holds one panel, and there are {panels}; name one layer of one result, or "
            "leave ax out"
        )


def save_figure(figure: Figure | Axes, path: str | Path, *, dpi: float = 200) -> Path:
    """Write a figure to a file, in the format that the suffix names.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        Return value of a drawing function.
    path : str or Path
        Ending in ".png", ".svg", ".pdf" or ".eps". An existing file is replaced.
    dpi : float, optional
        Pixels per inch of a PNG.

    Raises
    ------
    UnknownNameError
        The suffix is none of these.
    PsyprobeError
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
    canvas = figure if isinstance(figure, Figure) else cast("Figure", figure.figure)
    # In memory first: on a full disk, the PDF that matplotlib writes fails in its own ways.
    stream = BytesIO()
    with mpl.rc_context(
        {"svg.hashsalt": "psyprobe", "pdf.fonttype": 42, "ps.fonttype": 42}
    ):
        canvas.savefig(stream, dpi=dpi, format=suffix[1:], metadata=_METADATA[suffix])
    content = stream.getvalue()
    if suffix == ".eps":
        # matplotlib cannot leave out the date.
        content = re.sub(rb"(?m)^%%CreationDate.*\n", b"", content)
    write_whole(target, lambda partial: partial.write_bytes(content))
    return target
