"""Describe figures, tables and pictures as plain data, for pages that draw them.

A probe may offer ``report(results)``, which returns such parts for the results of one experiment;
code that draws them knows no probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from psyprobe._typing import FloatArray
from psyprobe.plotting.axes import is_logarithmic, zero_beside

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Axis:
    """One axis of a figure."""

    #: Text with the unit.
    label: str
    log: bool = False
    #: Place of 0 on a logarithmic axis, to the left of the other values; None where 0 has none.
    zero: float | None = None
    #: Both ends; None for those of the data.
    span: tuple[float, float] | None = None
    #: Name of 1 / value where a page shows that beside the value: the contrast of a sensitivity.
    inverse: str = ""
    #: Names of categories, which stand at 0, 1, 2, ...; empty for numbers.
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Line:
    """A curve or points; NaN leaves a gap."""

    name: str
    x: FloatArray
    y: FloatArray
    #: Ends of the intervals of y; None where there are none.
    low: FloatArray | None = None
    high: FloatArray | None = None
    #: "people" is dashed and in the colour of text; "points" are not joined.
    style: Literal["line", "people", "points", "people points"] = "line"
    #: Index of a colour in a set for all kinds of colour vision.
    colour: int = 0
    #: A colour of a sequence in its place, from 0 to 1; None for none.
    shade: float | None = None
    #: Text about each point besides its numbers; empty for none.
    notes: Sequence[str] = ()
    #: For each point, the index of the figure in `Figure.behind` that shows the data behind it;
    #: empty for none.
    behind: Sequence[int] = ()


@dataclass(frozen=True)
class Grid:
    """Responses over two axes, to be drawn as contours."""

    x: FloatArray
    y: FloatArray
    #: Shape (X, Y); NaN where there is none.
    values: FloatArray
    #: Noise floor: values that are not above it carry no information.
    floor: float = 0.0


View: TypeAlias = Grid | Sequence[Line]


@dataclass(frozen=True)
class Panel:
    """One pair of axes with the responses of an observer."""

    title: str
    #: Views by option of the figure and by layer; the layer is "" where there is but one.
    views: Mapping[str, Mapping[str, View]]


@dataclass(frozen=True)
class Figure:
    """Panels side by side on the same axes."""

    title: str
    x: Axis
    y: Axis
    panels: Sequence[Panel]
    #: Text under the figure.
    caption: str = ""
    #: What the reader chooses, such as "measure", and each option with the label of its values; the
    #: first option is shown.
    choice: str = ""
    options: Mapping[str, str] = field(default_factory=lambda: {"": ""})
    #: Lines on every panel.
    over: Sequence[Line] = ()
    #: Figures of the data behind single points of lines.
    behind: Sequence[Figure] = ()


@dataclass(frozen=True)
class Table:
    """Rows of text, each with as many cells as the heading.

    Examples
    --------
    >>> Table("Counts", ["observer", "n"], [["pixels", "3"]]).opened
    True
    """

    #: Text above the table, and its name.
    title: str
    #: Names of the columns.
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    #: Whether the table is open at first; else its title opens it.
    opened: bool = True


@dataclass(frozen=True)
class Gallery:
    """Pictures in rows.

    Examples
    --------
    >>> Gallery("Nothing to see", []).width
    112
    """

    title: str
    #: Images, uint8, shape (H, W, 3), sRGB, and what each shows.
    pictures: Sequence[tuple[Any, str]]
    caption: str = ""
    #: Largest width, px.
    width: int = 112


Part: TypeAlias = Figure | Table | Gallery


def level_axis(label: str, values: ArrayLike) -> Axis:
    """Describe the axis of a level for a report's figure.

    Examples
    --------
    >>> level_axis("Pedestal contrast", [0, 0.01, 0.1, 1])
    Axis(label='Pedestal contrast', log=True, zero=0.004, span=None, inverse='', names=())
    """
    zero = zero_beside(values)
    return Axis(label, zero is not None or is_logarithmic(values), zero)


def name_of(result: xr.Dataset) -> str:
    """Return a result's observer name, with a warning if its weights are random."""
    name = str(result.attrs.get("observer", ""))
    if result.attrs.get("random_weights", 0):
        return f"{name} (RANDOM WEIGHTS)"
    return name


def plain_label(text: str) -> str:
    r"""Replace matplotlib's formulas in a label by letters.

    Parameters
    ----------
    text : str
        Label of an axis of a figure.

    Examples
    --------
    >>> plain_label(r"Angular distance $S_{ac}$"), plain_label(r"Contrast ($\sqrt{2}\,$SD/mean)")
    ('Angular distance S_ac', 'Contrast (√2 SD/mean)')
    """
    for formula, letters in (
        ("$S_{ac}$", "S_ac"),
        ("$r_s$", "r_s"),
        (r"$\sqrt{2}\,$", "√2 "),
        (r"\$", "$"),
    ):
        text = text.replace(formula, letters)
    return text
