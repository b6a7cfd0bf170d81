"""Figures, tables and pictures as plain data, for pages that draw them where they are read.

A probe may offer ``report(results)``, which gives a sequence of these for the results of one
experiment; whoever draws them knows no probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from psyprobe._typing import FloatArray
from psyprobe.plotting.axes import is_logarithmic, zero_beside

if TYPE_CHECKING:
    import numpy.typing as npt
    import xarray as xr


@dataclass(frozen=True)
class Axis:
    """What lies along one side of a figure."""

    #: With its unit.
    label: str
    log: bool = False
    #: Where 0 stands on a logarithmic axis, to the left of what is above it; None where it has no
    #: place.
    zero: float | None = None
    #: Both ends; None for those of the data.
    span: tuple[float, float] | None = None
    #: What 1 / value is called, where that is told beside the value: the contrast of a sensitivity.
    inverse: str = ""
    #: Of categories, which stand at 0, 1, 2, ...; empty for numbers.
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
    #: Which colour of a set for all kinds of colour vision.
    colour: int = 0
    #: From 0 to 1, a colour of a sequence in place of that; None for none.
    shade: float | None = None
    #: What is said of each point besides its numbers; empty for nothing.
    notes: Sequence[str] = ()
    #: For each point, the figure of `Figure.behind` that shows what it was made of; empty for none.
    behind: Sequence[int] = ()


@dataclass(frozen=True)
class Grid:
    """Responses over two axes, to be drawn as contours."""

    x: FloatArray
    y: FloatArray
    #: Shape (X, Y); NaN where there is none.
    values: FloatArray
    #: What is not above it says nothing.
    floor: float = 0.0


View: TypeAlias = Grid | Sequence[Line]


@dataclass(frozen=True)
class Panel:
    """One pair of axes: what an observer did."""

    title: str
    #: Option of the figure to layer to what is drawn; "" for the layer where there is but one.
    views: Mapping[str, Mapping[str, View]]


@dataclass(frozen=True)
class Figure:
    """Panels side by side on the same axes."""

    title: str
    x: Axis
    y: Axis
    panels: Sequence[Panel]
    #: Under the figure.
    caption: str = ""
    #: What the reader chooses among, as "measure", and each option with the label of its values;
    #: the first is shown.
    choice: str = ""
    options: Mapping[str, str] = field(default_factory=lambda: {"": ""})
    #: On every panel.
    over: Sequence[Line] = ()
    #: What single points of lines were made of.
    behind: Sequence[Figure] = ()


@dataclass(frozen=True)
class Table:
    """Rows of text, each with as many cells as the heading.

    Examples
    --------
    >>> Table("Counts", ["observer", "n"], [["pixels", "3"]]).opened
    True
    """

    #: Above it, and what it is called.
    title: str
    #: Of the columns.
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    #: Whether it is shown at once; else its title opens it.
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
    #: uint8, shape (H, W, 3), sRGB, and what each shows.
    pictures: Sequence[tuple[Any, str]]
    caption: str = ""
    #: Largest width, px.
    width: int = 112


Part: TypeAlias = Figure | Table | Gallery


def level_axis(label: str, values: npt.ArrayLike) -> Axis:
    """The axis of a level, as `psyprobe.plotting.axes.level_axis` has it.

    Examples
    --------
    >>> level_axis("Pedestal contrast", [0, 0.01, 0.1, 1])
    Axis(label='Pedestal contrast', log=True, zero=0.004, span=None, inverse='', names=())
    """
    zero = zero_beside(values)
    return Axis(label, zero is not None or is_logarithmic(values), zero)


def name_of(result: xr.Dataset) -> str:
    """The observer's name, loud if its weights are random.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run.
    """
    return str(result.attrs.get("observer", "")) + " (RANDOM WEIGHTS)" * bool(
        result.attrs.get("random_weights", 0)
    )


def plain_label(text: str) -> str:
    r"""A label as pages write it: what matplotlib sets as a formula in letters.

    Parameters
    ----------
    text : str
        As an axis of a figure has it.

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
