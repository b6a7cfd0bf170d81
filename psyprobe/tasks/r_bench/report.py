"""Write the pages of R-Bench: the report of a run, and the gallery of all corruptions."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from psyprobe._json import JsonObject
from psyprobe.corruption import (
    STEPS,
    STRENGTHS,
    corrupt,
    dimension_numbered,
    dimensions,
)
from psyprobe.files.images import read_image
from psyprobe.files.output import write_text
from psyprobe.plotting.axes import save_figure
from psyprobe.reporting.page import detail, picture, render, write_page
from psyprobe.tasks.parts import listed
from psyprobe.tasks.r_bench.figures import (
    attribute_table,
    bars,
    plot_attributes,
    radar,
    strength_map,
)
from psyprobe.tasks.r_bench.items import ImageSet, lettered
from psyprobe.tasks.r_bench.metrics import (
    BREAKDOWNS,
    MEASURES,
    paired_difference,
    rbench_rows,
    rows_by,
)
from psyprobe.tasks.r_bench.probe import RBenchRun, remarks
from psyprobe.tasks.tables import csv_table

#: Items of each observer that a report shows with their images.
_MAX_EXAMPLES = 9
#: Items whose low-level attributes a report measures, spread over the set.
_MAX_MEASURED = 300
#: Largest width of a picture of the gallery, px.
_WIDTH = 300


def write_report(
    runs: Mapping[str, RBenchRun],
    folder: str | Path,
    *,
    images: ImageSet | None = None,
    figures: bool = True,
) -> Path:
    """Write the page of one or more runs, and its figures as PNG and PDF beside it.

    Parameters
    ----------
    runs : mapping of str to RBenchRun
        By observer.
    folder : str or Path
        Folder to write "report.html" and the figures to.
    images : ImageSet, optional
        Images for pictures of some items.
    figures : bool
        Whether to draw figures.

    Returns
    -------
    Path
        The page: one file that loads nothing.
    """
    target = Path(folder)
    metrics = {name: run.metrics for name, run in runs.items()}
    tables = {name: run.table for name, run in runs.items()}
    drawings = draw_figures(metrics, tables, target, images=images) if figures else []
    text = render(
        "tasks/r_bench/report.html",
        title="R-Bench: robustness to 33 corruptions",
        remarks={name: remarks(run.facts) for name, run in runs.items()},
        scores=rbench_rows(metrics),
        figures=[_figure(drawing) for drawing in drawings],
        parts=_breakdowns(metrics),
        differences=_differences(tables),
        examples={name: _examples(table, images) for name, table in tables.items()},
    )
    return write_page(text, target / "report.html")


class Drawing(NamedTuple):
    """A figure as a PNG, and what it shows."""

    path: Path
    caption: str


def draw_figures(
    metrics: Mapping[str, pd.DataFrame],
    tables: Mapping[str, pd.DataFrame],
    folder: str | Path,
    *,
    images: ImageSet | None = None,
) -> list[Drawing]:
    """Draw robustness, and the attributes of images, as PNG and PDF.

    Parameters
    ----------
    metrics, tables : mapping of str to pandas.DataFrame
        Output of `rbench_metrics` and `score_items`, by model.
    folder : str or Path
        Folder of the figures.
    images : ImageSet, optional
        Images whose attributes are drawn.
    """
    import matplotlib.pyplot as plt

    target = Path(folder)
    drawings: list[Drawing] = []

    def save(figure: Any, name: str, caption: str, *, pdf: bool = True) -> None:
        if pdf:
            save_figure(figure, target / f"{name}.pdf")
        path = save_figure(figure, target / f"{name}.png", dpi=110)
        drawings.append(Drawing(path, caption))
        plt.close(figure)

    for measure, by in itertools.product(MEASURES, ("step", "group")):
        rows = pd.concat(rows_by(metrics, by, measure).values())
        for draw, fewest in ((radar, 3), (bars, 1)):
            if rows.index.nunique() >= fewest:
                figure = draw(metrics, by, measure=measure).figure
                save(figure, f"{draw.__name__}_{by}_{measure}", f"{measure}, by {by}")
    for i, (name, table) in enumerate(tables.items(), start=1):
        if table["absolute"].notna().any():
            caption = f"{name}: absolute, by dimension and strength"
            save(strength_map(table).figure, f"strengths_{i}", caption)
    if images is not None:
        step = -(-len(images.items) // _MAX_MEASURED)
        measured = attribute_table(replace(images, items=images.items.iloc[::step]))
        write_text(target / "attributes.csv", csv_table(measured))
        caption = f"low-level attributes of {len(measured)} images"
        save(plot_attributes(measured), "attributes", caption, pdf=False)
    return drawings


def _figure(drawing: Drawing) -> dict[str, str]:
    return {
        "data": base64.b64encode(drawing.path.read_bytes()).decode(),
        "caption": drawing.caption,
        "width": "wide" if drawing.path.stem == "attributes" else "half",
    }


def _breakdowns(metrics: Mapping[str, pd.DataFrame]) -> list[tuple[str, ...]]:
    """Write the rows of the table of all parts."""
    return [
        (
            model,
            row["measure"],
            row["breakdown"],
            row["name"] + (" *" if row["simulated"] else ""),
            f"{row['value']:.4f} [{row['low']:.3f}, {row['high']:.3f}]",
            str(row["n"]),
            str(row["unscored"] or ""),
        )
        for model, table in metrics.items()
        for row in table[table["breakdown"].isin(list(BREAKDOWNS))].to_dict("records")
    ]


def _differences(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, ...]]:
    """Write the rows that compare the first model with every further one."""
    first, *rest = tables
    rows: list[tuple[str, ...]] = []
    for model in rest:
        differences = paired_difference(tables[first], tables[model])
        parts = differences["breakdown"].isin(["overall", "task", "step", "group"])
        for row in differences[parts].to_dict("records"):
            interval = (
                f"[{row['low']:+.3f}, {row['high']:+.3f}]{' !' if row['clear'] else ''}"
            )
            cells = (row["measure"], row["breakdown"], row["name"])
            value = f"{row['difference']:+.4f} {interval}"
            rows.append((f"{first} - {model}", *cells, value, str(row["n"])))
    return rows


def _examples(items: pd.DataFrame, images: ImageSet | None) -> list[JsonObject]:
    """Describe items spread over the set: answers, and images where there are any."""
    examples = []
    for row in listed(items, _MAX_EXAMPLES).to_dict("records"):
        title = dimension_numbered(row["dimension"]).title
        corruption = (
            f"{title}, {row['strength']}{' (simulated)' if row['simulated'] else ''}"
        )
        pictures = []
        for kind, caption in (("ref", "reference"), ("dis", corruption)):
            if images is not None:
                image = read_image(images.path(kind, row))
                pictures.append((picture(image, 220), detail(image), caption))
        rows = [
            (row["task"], f"{row['question']}\n{lettered(row['options'])}".strip()),
            (
                "key",
                row["key"] if isinstance(row["key"], str) else " / ".join(row["key"]),
            ),
            ("about the reference", row["answer_ref"]),
            ("about the corrupted image", row["answer_dis"]),
            (
                "absolute, relative",
                f"{_number(row['absolute'])}, {_number(row['relative'])}",
            ),
        ]
        examples.append(
            {
                "name": row["name"],
                "corruption": corruption,
                "images": pictures,
                "rows": rows,
            }
        )
    return examples


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "not scored"


def gallery(image: Any, *, name: str = "", seed: int = 0, scale: bool = False) -> str:
    """Write a page that shows an image under all 33 corruptions at three strengths.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    name : str
        Title and image_id of the image.
    seed : int
        Seed of the corruptions.
    scale : bool
        As for `corrupt`.

    Returns
    -------
    str
        HTML in one file that loads nothing. Pictures are made smaller where they are wider, which
        hides some of what is small; lossless or JPEG, whichever is smaller. Each opens on its
        middle, lossless and enlarged.
    """
    steps: dict[str, list[Any]] = {}
    for dimension in dimensions().values():
        images = []
        for strength, level in zip(STRENGTHS, dimension.levels, strict=True):
            changed = corrupt(
                image, dimension.name, strength, seed, image_id=name, scale=scale
            )
            images.append(
                (picture(changed, _WIDTH), detail(changed), f"{strength}: {level:g}")
            )
        steps.setdefault(dimension.step, []).append((dimension, images))
    return render(
        "tasks/r_bench/gallery.html",
        title=f"33 corruptions{f' of {name}' if name else ''}",
        name=name,
        seed=seed,
        size=f"{image.shape[1]} x {image.shape[0]} px",
        scale=scale,
        original=(picture(image, _WIDTH), detail(image)),
        steps=[(step, STEPS[step], rows) for step, rows in steps.items()],
    )
