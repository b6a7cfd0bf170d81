"""Pages of R-Bench: the report of a run, and the gallery of all corruptions."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.corruption import STEPS, STRENGTHS, corrupt, dimension_numbered, dimensions
from psyprobe.files.images import read_image
from psyprobe.files.output import write_text
from psyprobe.plotting.axes import save_figure
from psyprobe.reporting.page import detail, picture, render, write_page
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
_SHOWN = 9
#: Items whose low-level attributes a report measures, spread over the set.
_MEASURED = 300
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
        Where "report.html" and the figures go.
    images : ImageSet, optional
        For pictures of some items.
    figures : bool
        Whether to draw.

    Returns
    -------
    Path
        Of the page: one file that loads nothing.
    """
    place = Path(folder)
    metrics, tables = (
        {name: getattr(run, part) for name, run in runs.items()} for part in ("metrics", "table")
    )
    drawn = draw_figures(metrics, tables, place, images=images) if figures else []
    text = render(
        "tasks/r_bench/report.html",
        title="R-Bench: robustness to 33 corruptions",
        remarks={name: remarks(run.facts) for name, run in runs.items()},
        scores=rbench_rows(metrics),
        figures=[_figure(*each) for each in drawn],
        parts=_breakdowns(metrics),
        differences=_differences(runs),
        examples={name: _examples(run.table, images) for name, run in runs.items()},
    )
    return write_page(text, place / "report.html")


def draw_figures(
    metrics: Mapping[str, pd.DataFrame],
    tables: Mapping[str, pd.DataFrame],
    folder: str | Path,
    *,
    images: ImageSet | None = None,
) -> list[tuple[Path, str]]:
    """Draw radar, bars, cells of dimensions by strengths, and the attributes of images, as PNG and
    PDF.

    Parameters
    ----------
    metrics, tables : mapping of str to pandas.DataFrame
        By model, as `rbench_metrics` and `score_items` give them.
    folder : str or Path
        Where.
    images : ImageSet, optional
        For the attributes.

    Returns
    -------
    list of (Path, str)
        Each PNG and what it shows.
    """
    import matplotlib.pyplot as plt

    place = Path(folder)
    drawn: list[tuple[Path, str]] = []

    def keep(figure: Any, name: str, caption: str, *, pdf: bool = True) -> None:
        if pdf:
            save_figure(figure, place / f"{name}.pdf")
        drawn.append((save_figure(figure, place / f"{name}.png", dpi=110), caption))
        plt.close(figure)

    for measure, by in itertools.product(MEASURES, ("step", "group")):
        spokes = len(
            {name for rows in rows_by(metrics, by, measure).values() for name in rows.index}
        )
        for draw, fewest in ((radar, 3), (bars, 1)):
            if spokes >= fewest:
                figure = draw(metrics, by, measure=measure).figure
                keep(figure, f"{draw.__name__}_{by}_{measure}", f"{measure}, by {by}")
    for i, (name, scored) in enumerate(tables.items()):
        if scored["absolute"].notna().any():
            caption = f"{name}: absolute, by dimension and strength"
            keep(strength_map(scored).figure, f"strengths_{i + 1}", caption)
    if images is not None:
        every = -(-len(images.items) // _MEASURED)
        measured = attribute_table(replace(images, items=images.items.iloc[::every]))
        write_text(place / "attributes.csv", csv_table(measured))
        keep(
            plot_attributes(measured),
            "attributes",
            f"low-level attributes of {len(measured)} images",
            pdf=False,
        )
    return drawn


def _figure(path: Path, caption: str) -> dict[str, Any]:
    data = base64.b64encode(path.read_bytes()).decode()
    return {
        "data": data,
        "caption": caption,
        "width": "wide" if path.stem == "attributes" else "half",
    }


def _breakdowns(metrics: Mapping[str, pd.DataFrame]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for model, values in metrics.items():
        for row in values[values["breakdown"].isin(list(BREAKDOWNS))].to_dict("records"):
            interval = f"{row['value']:.4f} [{row['low']:.3f}, {row['high']:.3f}]"
            name = row["name"] + (" *" if row["simulated"] else "")
            unscored = str(row["unscored"] or "")
            rows.append(
                (model, row["measure"], row["breakdown"], name, interval, str(row["n"]), unscored)
            )
    return rows


def _differences(runs: Mapping[str, RBenchRun]) -> list[tuple[str, ...]]:
    first, *others = runs
    rows: list[tuple[str, ...]] = []
    for other in others:
        found = paired_difference(runs[first].table, runs[other].table)
        for row in found[found["breakdown"].isin(["overall", "task", "step", "group"])].to_dict(
            "records"
        ):
            value = (
                f"{row['difference']:+.4f} [{row['low']:+.3f}, "
                f"{row['high']:+.3f}]{' !' if row['clear'] else ''}"
            )
            rows.append(
                (
                    f"{first} - {other}",
                    row["measure"],
                    row["breakdown"],
                    row["name"],
                    value,
                    str(row["n"]),
                )
            )
    return rows


def _examples(items: pd.DataFrame, images: ImageSet | None) -> list[dict[str, Any]]:
    """Items spread over the set, with what was answered; and their images where they are at
    hand.
    """
    chosen = items.iloc[
        np.unique(np.linspace(0, len(items) - 1, min(_SHOWN, len(items))).astype(int))
    ]
    shown = []
    for row in chosen.to_dict("records"):
        title = dimension_numbered(row["dimension"]).title
        told = f"{title}, {row['strength']}{' (simulated)' if row['simulated'] else ''}"
        captions = (
            {}
            if images is None
            else {images.path("ref", row): "reference", images.path("dis", row): told}
        )
        pictures = [
            (picture(image, 220), detail(image), caption)
            for image, caption in (
                (read_image(path), caption) for path, caption in captions.items()
            )
        ]
        rows = [
            (row["task"], f"{row['question']}\n{lettered(row['options'])}".strip()),
            ("key", row["key"] if isinstance(row["key"], str) else " / ".join(row["key"])),
            ("about the reference", row["answer_ref"]),
            ("about the corrupted image", row["answer_dis"]),
            ("absolute, relative", f"{_number(row['absolute'])}, {_number(row['relative'])}"),
        ]
        shown.append({"name": row["name"], "told": told, "images": pictures, "rows": rows})
    return shown


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "not scored"


def gallery(image: Any, *, name: str = "", seed: int = 0, scale: bool = False) -> str:
    """A page with an image in all 33 ways at three strengths.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    name : str
        What to call it, and its image_id.
    seed : int
        Of the corruptions.
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
            changed = corrupt(image, dimension.name, strength, seed, image_id=name, scale=scale)
            images.append((picture(changed, _WIDTH), detail(changed), f"{strength}: {level:g}"))
        steps.setdefault(dimension.step, []).append((dimension, images))
    return render(
        "tasks/r_bench/gallery.html",
        title=f"33 corruptions{f' of {name}' if name else ''}",
        name=name,
        seed=seed,
        size=f"{image.shape[1]} x {image.shape[0]} px",
        scale=scale,
        original=(picture(image, _WIDTH), detail(image)),
        steps=[(step, STEPS[step], found) for step, found in steps.items()],
    )
