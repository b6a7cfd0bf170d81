"""Figures of R-Bench: robustness as radar, bars and cells of dimensions by strengths, and
attributes of images.

References
----------
Hasler, Suesstrunk (2003). Measuring colorfulness in natural images. Proc. SPIE 5007: equation for
M^(3). Crete, Dolmiere, Ladret, Nicolas (2007). The blur effect. Proc. SPIE 6492; as scikit-image
computes it. ITU-T P.910 (2008): spatial information, the standard deviation of the Sobel-filtered
luma.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.corruption import STRENGTHS, dimension_numbered, dimensions
from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.light.transfer import light_of_drive
from psyprobe.plotting.axes import BLANK, COLOURS, new_axes, panels_in, printable
from psyprobe.tasks.r_bench.items import ImageSet
from psyprobe.tasks.r_bench.metrics import BREAKDOWNS, rows_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STAR = "* simulated where R-Bench photographed it"


def radar(
    metrics: Mapping[str, pd.DataFrame],
    by: str = "step",
    *,
    measure: str = "absolute",
    ax: Any = None,
) -> Any:
    """Draw the robustness of models by step or group on spokes.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `rbench_metrics` gives them.
    by : {"step", "group", "task", "strength", "dimension"}
        What the spokes are.
    measure : {"absolute", "relative"}
        Which robustness.
    ax : matplotlib.projections.polar.PolarAxes, optional
        Where to draw; without it, on a new pyplot figure.

    Returns
    -------
    matplotlib.projections.polar.PolarAxes
        Lines with the interval as a band; a star marks a spoke with simulated corruptions.

    Raises
    ------
    InputError
        There is nothing to draw, or fewer than three spokes.
    UnknownNameError
        There is no such breakdown.
    """
    names, parts, simulated = _parts(metrics, by, measure)
    if len(names) < 3:
        raise InputError(f"a radar needs at least 3 spokes and {by} has {len(names)}; draw bars")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(5.2, 5.2), layout="constrained").add_subplot(projection="polar")
    angle = np.linspace(0, 2 * np.pi, len(names), endpoint=False)
    around = np.append(angle, angle[0])
    for model, colour, values in _models(parts):
        value, low, high = (np.append(each, each[0]) for each in values)
        ax.plot(around, value, "o-", color=colour, linewidth=1.6, ms=4, label=model)
        ax.fill_between(around, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.set_theta_offset(np.pi / 2)
    ax.set_theta_direction(-1)
    ax.set_xticks(angle, [starred(name, name in simulated) for name in names])
    # Names stand beside the circle and not on it.
    for label, where in zip(ax.get_xticklabels(), np.sin(angle), strict=True):
        label.set_horizontalalignment(
            "center" if abs(where) < 0.1 else "left" if where > 0 else "right"
        )
    ax.set_ylim(0, 1)
    ax.set_yticks(
        [0.25, 0.5, 0.75, 1.0], ["0.25", "0.5", "0.75", "1"], fontsize="x-small", color="#555"
    )
    # Below the circle is the legend's place, however many models it names.
    note = f"\n{_STAR}" if simulated else ""
    ax.set_title(f"{measure.capitalize()} robustness by {by}{note}", fontsize="medium", pad=18)
    ax.legend(
        loc="upper left", bbox_to_anchor=(-0.12, -0.04), fontsize="small", frameon=False, ncols=2
    )
    return ax


def bars(
    metrics: Mapping[str, pd.DataFrame],
    by: str = "step",
    *,
    measure: str = "absolute",
    ax: Axes | None = None,
) -> Axes:
    """Draw the robustness of models by step or group as bars with intervals.

    Parameters
    ----------
    metrics, by, measure, ax
        As for `radar`.

    Returns
    -------
    matplotlib.axes.Axes
        Whiskers are the intervals of the metrics; a star marks bars with simulated corruptions.

    Raises
    ------
    InputError
        There is nothing to draw.
    UnknownNameError
        There is no such breakdown.
    """
    names, parts, simulated = _parts(metrics, by, measure)
    ax = ax or new_axes(max(7.0, 2.5 + 0.22 * len(names) * (len(parts) + 1)), 3.4)
    thick = 0.8 / len(parts)
    for i, (model, colour, (value, low, high)) in enumerate(_models(parts)):
        reach = [value - low, high - value]
        place = np.arange(len(names)) + (i - (len(parts) - 1) / 2) * thick
        ax.bar(place, value, thick, color=colour, label=model)
        ax.errorbar(place, value, reach, fmt="none", ecolor="#222", elinewidth=0.9, capsize=2)
    titles = [
        starred(dimensions()[name].title if by == "dimension" else name, name in simulated)
        for name in names
    ]
    turned: dict[str, Any] = {"rotation": 60, "ha": "right"} if len(names) > 8 else {}
    ax.set_xticks(range(len(names)), titles, fontsize="small", **turned)
    ax.set_ylim(0, 1)
    ax.margins(x=0.01)
    ax.set_ylabel(f"{measure.capitalize()} robustness")
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        fontsize="small",
        frameon=False,
    )
    if simulated:
        ax.set_xlabel(_STAR, fontsize="x-small", loc="right")
    return ax


def strength_map(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the absolute robustness of a model as coloured cells: dimensions downwards, strengths to
    the right.

    Parameters
    ----------
    table : pandas.DataFrame
        As `score_items` gives it.
    ax
        As for `radar`.

    Returns
    -------
    matplotlib.axes.Axes
        In each cell the mean and, small, the number of items; cells without items are grey.

    Raises
    ------
    InputError
        There is nothing to draw.
    """
    if "absolute" not in table or not np.isfinite(table["absolute"]).any():
        raise InputError("the table has no absolute scores; there is nothing to draw")
    scored = table[np.isfinite(table["absolute"])]
    cells = scored.groupby(["dimension", "strength"])["absolute"].agg(["mean", "size"]).unstack()
    value, count = (
        cells[which].reindex(columns=STRENGTHS).to_numpy(dtype=np.float64)
        for which in ("mean", "size")
    )
    simulated = (
        set(table.loc[table["simulated"] == 1, "dimension"]) if "simulated" in table else set()
    )
    ax = coloured_cells(
        value,
        [
            [f"{one:.2f} ({n:.0f})" for one, n in zip(*row, strict=True)]
            for row in zip(value, count, strict=True)
        ],
        {dimension_numbered(number).name: number in simulated for number in cells.index},
        STRENGTHS,
        colours="viridis",
        limit=1.0,
        label="Absolute robustness (number of items)",
        ax=ax,
    )
    ax.set_xlabel("Strength" + (f"\n{_STAR}" if simulated else ""), fontsize="small")
    return ax


def coloured_cells(
    values: FloatArray,
    texts: Sequence[Sequence[str]],
    rows: Mapping[str, bool],
    strengths: Sequence[str],
    *,
    colours: str,
    limit: float | None,
    label: str,
    ax: Axes | None,
) -> Axes:
    """Cells of dimensions by strengths, each with its text, in white where the cell is dark.

    Rows are dimensions by name, with a star for those that are simulated; lines part the steps on
    an image's way.
    """
    import matplotlib as mpl

    ax = ax or new_axes(4.6, 1.3 + 0.21 * len(rows))
    blank = mpl.colormaps[colours].with_extremes(bad=BLANK)
    shown = np.ma.masked_invalid(values)
    drawn = ax.imshow(shown, cmap=blank, vmin=0, vmax=limit, aspect="auto", interpolation="nearest")
    dark = luma(drawn.to_rgba(shown)[..., :3]) < 0.5
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            ax.text(
                j,
                i,
                texts[i][j],
                ha="center",
                va="center",
                fontsize=6,
                color="white" if dark[i, j] else "black",
            )
    known = [dimensions()[name] for name in rows]
    labels = [
        starred(way.title, simulated) for way, simulated in zip(known, rows.values(), strict=True)
    ]
    ax.set_yticks(range(len(rows)), labels, fontsize=7)
    ax.set_xticks(range(len(strengths)), strengths)
    ax.tick_params(length=0)
    for i, (above, below) in enumerate(itertools.pairwise(known)):
        if above.step != below.step:
            ax.axhline(i + 0.5, color="black", linewidth=0.8)
    ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02).set_label(label)
    return ax


def _parts(
    metrics: Mapping[str, pd.DataFrame], by: str, measure: str
) -> tuple[list[str], dict[str, pd.DataFrame], set[str]]:
    """Names of parts in their order, a row each for every model that has the measure, and which are
    simulated.
    """
    found = {model: rows for model, rows in rows_by(metrics, by, measure).items() if len(rows)}
    if not found:
        raise InputError(f"there are no {measure} scores by {by}; there is nothing to draw")
    names = [
        name for name in BREAKDOWNS[by] if any(name in table.index for table in found.values())
    ]
    parts = {model: table.reindex(names) for model, table in found.items()}
    simulated = {
        name
        for part in parts.values()
        if "simulated" in part
        for name in names
        if part.loc[name, "simulated"] > 0
    }
    return names, parts, simulated


def _models(parts: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str, list[FloatArray]]]:
    """Each model with its colour, and its values and the ends of their intervals."""
    for (model, part), colour in zip(parts.items(), itertools.cycle(COLOURS), strict=False):
        yield (
            printable(model),
            colour,
            [part[name].to_numpy(dtype=np.float64) for name in ("value", "low", "high")],
        )


def starred(title: str, simulated: bool) -> str:
    """A dimension's title or a part's name, marked where its corruptions are simulated."""
    return f"{title} *" if simulated else title


#: Attributes and what they are on an axis.
ATTRIBUTES = {
    "luminance": "Mean luminance (share of white)",
    "contrast": "RMS contrast (SD / mean of luminance)",
    "colourfulness": "Colourfulness $M^{(3)}$ (8-bit codes)",
    "blur": "Blur (Crete et al., 0 sharp to 1)",
    "spatial_information": "Spatial information (8-bit codes)",
}


def attributes(image: npt.NDArray[np.uint8]) -> dict[str, float]:
    """The five attributes of an image.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.

    Returns
    -------
    dict of str to float
        By the names of `ATTRIBUTES`; the contrast of a black image is 0.

    Examples
    --------
    >>> flat = attributes(np.full((32, 32, 3), 188, np.uint8))
    >>> [round(flat[name], 3) for name in ("luminance", "contrast", "colourfulness", "spatial_information")]
    [0.503, 0.0, 0.0, 0.0]
    """
    import cv2
    from skimage.measure import blur_effect

    codes = image.astype(np.float64)
    light = light_of_drive(codes / 255, "srgb") @ np.array([0.2126729, 0.7151522, 0.0721750])
    mean = float(light.mean())
    red_green = codes[..., 0] - codes[..., 1]
    yellow_blue = (codes[..., 0] + codes[..., 1]) / 2 - codes[..., 2]
    spread = np.hypot(red_green.std(), yellow_blue.std())
    offset = np.hypot(red_green.mean(), yellow_blue.mean())
    grey = luma(codes)
    slope = np.hypot(cv2.Sobel(grey, cv2.CV_64F, 1, 0), cv2.Sobel(grey, cv2.CV_64F, 0, 1))[
        1:-1, 1:-1
    ]
    flat = float(np.ptp(grey)) < 1e-9
    return {
        "luminance": mean,
        "contrast": float(light.std() / mean) if mean else 0.0,
        "colourfulness": float(spread + 0.3 * offset),
        # Nothing can be blurred in a flat image; the formula would divide by its differences.
        "blur": 1.0 if flat else float(blur_effect(grey / 255)),
        "spatial_information": float(slope.std()),
    }


def attribute_table(images: ImageSet) -> pd.DataFrame:
    """The attributes of all images of a set.

    Parameters
    ----------
    images : ImageSet
        As `read_set` gives it.

    Returns
    -------
    pandas.DataFrame
        Columns kind ("ref", "dis"), file, dimension and strength (of corrupted images; 0 and "" for
        references, each of which comes once), simulated, and the attributes.
    """
    rows: list[dict[str, Any]] = []
    seen = set()
    for row in images.items.to_dict("records"):
        reference = images.path("ref", row)
        if reference not in seen:
            seen.add(reference)
            told = {
                "kind": "ref",
                "file": reference.name,
                "dimension": 0,
                "strength": "",
                "simulated": 0,
            }
            rows.append(told | attributes(read_image(reference)))
        told = {"kind": "dis", "file": row["name"]}
        told |= {name: row[name] for name in ("dimension", "strength", "simulated")}
        rows.append(told | attributes(read_image(images.path("dis", row))))
    return pd.DataFrame(rows)


def plot_attributes(table: pd.DataFrame) -> Any:
    """Draw how attributes are spread over references and over corrupted images, by strength.

    Parameters
    ----------
    table : pandas.DataFrame
        As `attribute_table` gives it.

    Returns
    -------
    matplotlib.figure.Figure
        A panel an attribute: the share of images with at most so much of it.
    """
    figure, axes = panels_in(None, 6, 3, (3.5, 2.6))
    parts = {"reference": table[table["kind"] == "ref"]}
    parts |= {strength: table[table["strength"] == strength] for strength in STRENGTHS}
    colours = ("black", "#56B4E9", "#E69F00", "#D55E00")
    for ax, (name, label) in zip(axes, ATTRIBUTES.items(), strict=False):
        for (part, rows), colour in zip(parts.items(), colours, strict=True):
            values: FloatArray = np.sort(rows[name].to_numpy(dtype=np.float64))
            if len(values):
                share = np.arange(1, len(values) + 1) / len(values)
                ax.step(values, share, where="post", color=colour, label=f"{part} ({len(values)})")
        ax.set_xlabel(label, fontsize="small")
        ax.set_ylabel("Share of images", fontsize="small")
        ax.set_ylim(0, 1.02)
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].axis("off")
    axes[-1].legend(
        *axes[0].get_legend_handles_labels(), loc="center", frameon=False, title="Images (number)"
    )
    if table["simulated"].any():
        axes[-1].text(0.5, 0.1, "five dimensions are simulated", ha="center", fontsize="small")
    return figure
