"""Draw figures of R-Bench: robustness of models, and attributes of images.

References
----------
Hasler, Suesstrunk (2003). Measuring colorfulness in natural images. Proc. SPIE 5007: equation for
M^(3). Crete, Dolmiere, Ladret, Nicolas (2007). The blur effect. Proc. SPIE 6492; as scikit-image
computes it. ITU-T P.910 (2008): spatial information, the standard deviation of the Sobel-filtered
luma.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from psyprobe._json import JsonObject
from psyprobe._typing import FloatArray
from psyprobe.corruption import STRENGTHS, dimension_numbered, dimensions
from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.files.output import write_text
from psyprobe.light.transfer import light_of_drive
from psyprobe.plotting.axes import (
    BLANK,
    COLOURS,
    new_axes,
    panels_in,
    printable,
    save_figure,
)
from psyprobe.tasks.r_bench.items import ImageSet
from psyprobe.tasks.r_bench.metrics import BREAKDOWNS, MEASURES, rows_by
from psyprobe.tasks.tables import csv_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Items whose low-level attributes a report measures, spread over the set.
_MAX_MEASURED = 300
_STAR = "* simulated where R-Bench photographed it"


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
    metrics : mapping of str to pandas.DataFrame
        Metrics as from `rbench_metrics`, by model.
    by : {"step", "group", "task", "strength", "dimension"}
        Breakdown into parts, one group of bars each.
    measure : {"absolute", "relative"}
        Measure of robustness.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new pyplot figure.

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
    rows = rows_by(metrics, by, measure)
    tables = {model: table for model, table in rows.items() if len(table)}
    if not tables:
        raise InputError(
            f"there are no {measure} scores by {by}; there is nothing to draw"
        )
    rows_of_all = pd.concat(tables.values())
    names = [name for name in BREAKDOWNS[by] if name in rows_of_all.index]
    simulated = set(rows_of_all.index[rows_of_all["simulated"] > 0])
    ax = ax or new_axes(max(7.0, 2.5 + 0.22 * len(names) * (len(tables) + 1)), 3.4)
    width = 0.8 / len(tables)
    for i, (model, table) in enumerate(tables.items()):
        part = table.reindex(names)
        ax.bar(
            np.arange(len(names)) + (i - (len(tables) - 1) / 2) * width,
            part["value"],
            width,
            yerr=[part["value"] - part["low"], part["high"] - part["value"]],
            error_kw={"ecolor": "#222", "elinewidth": 0.9, "capsize": 2},
            color=COLOURS[i % len(COLOURS)],
            label=printable(model),
        )
    titles = [dimensions()[name].title if by == "dimension" else name for name in names]
    labels = [
        starred(title, name in simulated)
        for title, name in zip(titles, names, strict=True)
    ]
    rotation: JsonObject = {"rotation": 60, "ha": "right"} if len(names) > 8 else {}
    ax.set_xticks(range(len(names)), labels, fontsize="small", **rotation)
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
    """Draw the absolute robustness of a model by dimension (down) and strength (across).

    Parameters
    ----------
    table : pandas.DataFrame
        Output of `score_items`.
    ax
        As for `bars`.

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
    cells = table.groupby(["dimension", "strength"])["absolute"].agg(["mean", "count"])
    cells = cells[cells["count"] > 0]
    means = cells["mean"].unstack().reindex(columns=STRENGTHS)
    texts = cells.apply(
        lambda cell: f"{cell['mean']:.2f} ({cell['count']:.0f})", axis=1
    )
    simulated: set[int] = set()
    if "simulated" in table:
        simulated = set(table.loc[table["simulated"] == 1, "dimension"])
    ax = coloured_cells(
        means.to_numpy(dtype=np.float64),
        texts.unstack().reindex(columns=STRENGTHS).to_numpy(),
        {
            dimension_numbered(number).name: number in simulated
            for number in means.index
        },
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
    """Draw cells of dimensions by strengths, each with its text, white where the cell is dark.

    Rows are dimensions by name, with a star for those that are simulated; lines part the steps at
    which corruption arises.
    """
    import matplotlib as mpl

    ax = ax or new_axes(4.6, 1.3 + 0.21 * len(rows))
    colormap = mpl.colormaps[colours].with_extremes(bad=BLANK)
    masked = np.ma.masked_invalid(values)
    image = ax.imshow(
        masked,
        cmap=colormap,
        vmin=0,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
    )
    dark = luma(image.to_rgba(masked)[..., :3]) < 0.5
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if dark[i, j] else "black"
            ax.text(
                j, i, texts[i][j], ha="center", va="center", fontsize=6, color=colour
            )
    row_dimensions = [dimensions()[name] for name in rows]
    labels = [
        starred(dimension.title, simulated)
        for dimension, simulated in zip(row_dimensions, rows.values(), strict=True)
    ]
    ax.set_yticks(range(len(rows)), labels, fontsize=7)
    ax.set_xticks(range(len(strengths)), strengths)
    ax.tick_params(length=0)
    for i, (above, below) in enumerate(itertools.pairwise(row_dimensions)):
        if above.step != below.step:
            ax.axhline(i + 0.5, color="black", linewidth=0.8)
    ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02).set_label(label)
    return ax


def starred(title: str, simulated: bool) -> str:
    """Mark the name of a dimension or part with a star if its corruptions are simulated."""
    return f"{title} *" if simulated else title


#: Label of the axis of each attribute.
ATTRIBUTES = {
    "luminance": "Mean luminance (share of white)",
    "contrast": "RMS contrast (SD / mean of luminance)",
    "colourfulness": "Colourfulness $M^{(3)}$ (8-bit codes)",
    "blur": "Blur (Crete et al., 0 sharp to 1)",
    "spatial_information": "Spatial information (8-bit codes)",
}


def attributes(image: npt.NDArray[np.uint8]) -> dict[str, float]:
    """Measure the five low-level attributes of an image.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.

    Returns
    -------
    dict of str to float
        Values by the names of `ATTRIBUTES`; the contrast of a black image is 0.

    Examples
    --------
    >>> flat = attributes(np.full((32, 32, 3), 188, np.uint8))
    >>> names = ("luminance", "contrast", "colourfulness", "spatial_information")
    >>> [round(flat[name], 3) for name in names]
    [0.503, 0.0, 0.0, 0.0]
    """
    import cv2
    from skimage.measure import blur_effect

    codes = image.astype(np.float64)
    light = light_of_drive(codes / 255, "srgb") @ np.array(
        [0.2126729, 0.7151522, 0.0721750]
    )
    mean = float(light.mean())
    red_green = codes[..., 0] - codes[..., 1]
    yellow_blue = (codes[..., 0] + codes[..., 1]) / 2 - codes[..., 2]
    spread = np.hypot(red_green.std(), yellow_blue.std())
    offset = np.hypot(red_green.mean(), yellow_blue.mean())
    grey = luma(codes)
    horizontal = cv2.Sobel(grey, cv2.CV_64F, 1, 0)
    gradient = np.hypot(horizontal, cv2.Sobel(grey, cv2.CV_64F, 0, 1))
    flat = float(np.ptp(grey)) < 1e-9
    return {
        "luminance": mean,
        "contrast": float(light.std() / mean) if mean else 0.0,
        "colourfulness": float(spread + 0.3 * offset),
        # Nothing can be blurred in a flat image; the formula would divide by its differences.
        "blur": 1.0 if flat else float(blur_effect(grey / 255)),
        "spatial_information": float(gradient[1:-1, 1:-1].std()),
    }


def attribute_table(images: ImageSet) -> pd.DataFrame:
    """Measure the attributes of all images of a set.

    Parameters
    ----------
    images : ImageSet
        Output of `read_set`.

    Returns
    -------
    pandas.DataFrame
        Columns kind ("ref", "dis"), file, dimension and strength (of corrupted images; 0 and "" for
        references, each of which comes once), simulated, and the attributes.
    """
    corrupted = images.items[["name", "dimension", "strength", "simulated"]]
    corrupted = corrupted.rename(columns={"name": "file"}).assign(kind="dis")
    references = pd.DataFrame({"file": images.items["reference"].unique()}).assign(
        kind="ref", dimension=0, strength="", simulated=0
    )
    table = pd.concat([references, corrupted], ignore_index=True)
    measured = [
        attributes(read_image(images.folder / kind / file))
        for kind, file in zip(table["kind"], table["file"], strict=True)
    ]
    return table.join(pd.DataFrame(measured))


def plot_attributes(table: pd.DataFrame) -> Any:
    """Draw the distribution of attributes over references and corrupted images, by strength.

    Parameters
    ----------
    table : pandas.DataFrame
        Output of `attribute_table`.

    Returns
    -------
    matplotlib.figure.Figure
        A panel an attribute: the share of images with at most so much of it.
    """
    figure, axes = panels_in(None, 6, 3, (3.5, 2.6))
    colours = ("black", "#56B4E9", "#E69F00", "#D55E00")
    for ax, (name, label) in zip(axes, ATTRIBUTES.items(), strict=False):
        for strength, colour in zip(("", *STRENGTHS), colours, strict=True):
            values = table.loc[table["strength"] == strength, name]
            if len(values):
                label_of_part = f"{strength or 'reference'} ({len(values)})"
                ax.ecdf(values, color=colour, label=label_of_part)
        ax.set_xlabel(label, fontsize="small")
        ax.set_ylabel("Share of images", fontsize="small")
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].axis("off")
    title = "Images (number)"
    if table["simulated"].any():
        title += "\nfive dimensions are simulated"
    handles = axes[0].get_legend_handles_labels()
    axes[-1].legend(*handles, loc="center", frameon=False, title=title)
    return figure


def draw_figures(
    metrics: Mapping[str, pd.DataFrame],
    tables: Mapping[str, pd.DataFrame],
    folder: Path,
    images: ImageSet | None = None,
) -> list[Path]:
    """Draw robustness by step and group, and the attributes of images, as PNG and PDF.

    Parameters
    ----------
    metrics, tables : mapping of str to pandas.DataFrame
        Output of `rbench_metrics` and `score_items`, by model.
    folder : Path
        Folder of the figures, and of attributes.csv.
    images : ImageSet, optional
        Images whose attributes are drawn.

    Returns
    -------
    list of Path
        The PNG files.
    """
    import matplotlib.pyplot as plt

    paths: list[Path] = []

    def save(figure: Any, name: str) -> None:
        save_figure(figure, folder / f"{name}.pdf")
        paths.append(save_figure(figure, folder / f"{name}.png", dpi=110))
        plt.close(figure)

    for measure, by in itertools.product(MEASURES, ("step", "group")):
        if any(map(len, rows_by(metrics, by, measure).values())):
            figure = bars(metrics, by, measure=measure).figure
            save(figure, f"bars_{by}_{measure}")
    for i, table in enumerate(tables.values(), start=1):
        if table["absolute"].notna().any():
            save(strength_map(table).figure, f"strengths_{i}")
    if images is not None:
        step = -(-len(images.items) // _MAX_MEASURED)
        measured = attribute_table(replace(images, items=images.items.iloc[::step]))
        write_text(folder / "attributes.csv", csv_table(measured))
        save(plot_attributes(measured), "attributes")
    return paths
