"""Pages of R-Bench: the report of a run, and the gallery of all corruptions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe.corruption import STEPS, STRENGTHS, corrupt, dimensions
from psyprobe.files.images import read_image
from psyprobe.report.page import picture, render, write_page
from psyprobe.tasks.r_bench.attributes import attribute_table, plot_attributes
from psyprobe.tasks.r_bench.metrics import paired_difference
from psyprobe.tasks.r_bench.probe import RBenchRun, remarks
from psyprobe.tasks.r_bench.tables import rbench_table

if TYPE_CHECKING:
    from psyprobe.tasks.r_bench.items import ImageSet

#: Items of each observer that a report shows with their images.
_SHOWN = 9
#: Items whose low-level attributes a report measures, spread over the set.
_MEASURED = 300
#: Largest width of a picture of the gallery, px.
_WIDTH = 300


def write_report(
    runs: Mapping[str, RBenchRun], folder: str | Path, *, images: ImageSet | None = None, figures: bool = True
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
    metrics = {name: run.metrics for name, run in runs.items()}
    drawn = []
    if figures:
        tables = {name: run.table for name, run in runs.items()}
        drawn = [_figure(*each) for each in draw_figures(metrics, tables, place, images=images)]
    text = render(
        "tasks/r_bench/report.html",
        title="R-Bench: robustness to 33 corruptions",
        remarks={name: remarks(run.facts) for name, run in runs.items()},
        scores=rbench_table(metrics),
        figures=drawn,
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
    """Draw radar, bars, cells of dimensions by strengths, and the attributes of images, as PNG and PDF.

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

    from psyprobe.plotting.axes import save_figure
    from psyprobe.tasks.r_bench.figures import bars, radar, strength_map

    place = Path(folder)
    drawn: list[tuple[Path, str]] = []

    def keep(ax: Any, name: str, caption: str) -> None:
        save_figure(ax, place / f"{name}.pdf")
        drawn.append((save_figure(ax, place / f"{name}.png", dpi=110), caption))
        plt.close(ax.figure)

    for measure in ("absolute", "relative"):
        for by in ("step", "group"):
            found = [each[(each["measure"] == measure) & (each["breakdown"] == by)] for each in metrics.values()]
            spokes = len({name for each in found for name in each["name"]})
            if spokes >= 3:
                keep(radar(metrics, by, measure=measure), f"radar_{by}_{measure}", f"{measure}, by {by}")
            if spokes:
                keep(bars(metrics, by, measure=measure), f"bars_{by}_{measure}", f"{measure}, by {by}")
    for i, (name, scored) in enumerate(tables.items()):
        if scored["absolute"].notna().any():
            keep(strength_map(scored), f"strengths_{i + 1}", f"{name}: absolute, by dimension and strength")
    if images is not None:
        every = -(-len(images.items) // _MEASURED)
        measured = attribute_table(replace(images, items=images.items.iloc[::every]))
        measured.to_csv(place / "attributes.csv", index=False)
        figure = plot_attributes(measured)
        drawn.append(
            (save_figure(figure, place / "attributes.png", dpi=110), f"low-level attributes of {len(measured)} images")
        )
        plt.close(figure)
    return drawn


def _figure(path: Path, caption: str) -> dict[str, Any]:
    data = base64.b64encode(path.read_bytes()).decode()
    return {"data": data, "caption": caption, "width": 64 if path.stem == "attributes" else 32}


def _breakdowns(metrics: Mapping[str, pd.DataFrame]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for model, values in metrics.items():
        chosen = values[values["breakdown"].isin(["task", "strength", "step", "group", "dimension"])]
        for row in chosen.to_dict("records"):
            star = " *" if row["simulated"] else ""
            interval = f"{row['value']:.4f} [{row['low']:.3f}, {row['high']:.3f}]"
            cells = (model, row["measure"], row["breakdown"], row["name"] + star, interval, str(row["n"]))
            rows.append((*cells, str(row["unscored"]) if row["unscored"] else ""))
    return rows


def _differences(runs: Mapping[str, RBenchRun]) -> list[tuple[str, ...]]:
    first, *others = runs
    rows: list[tuple[str, ...]] = []
    for other in others:
        found = paired_difference(runs[first].table, runs[other].table)
        for row in found[found["breakdown"].isin(["overall", "task", "step", "group"])].to_dict("records"):
            value = f"{row['difference']:+.4f} [{row['low']:+.3f}, {row['high']:+.3f}]{' !' if row['clear'] else ''}"
            rows.append((f"{first} - {other}", row["measure"], row["breakdown"], row["name"], value, str(row["n"])))
    return rows


def _examples(items: pd.DataFrame, images: ImageSet | None) -> list[dict[str, Any]]:
    """Items spread over the set, with what was answered; and their images where they are at hand."""
    chosen = items.iloc[np.unique(np.linspace(0, len(items) - 1, min(_SHOWN, len(items))).astype(int))]
    known = {each.id: each for each in dimensions().values()}
    shown = []
    for row in chosen.to_dict("records"):
        dimension = known[row["dimension"]]
        told = f"{dimension.title}, {row['strength']}{' (simulated)' if row['simulated'] else ''}"
        pictures = []
        if images is not None:
            pictures = [
                (picture(read_image(images.path(kind, row)), 220), caption)
                for kind, caption in (("ref", "reference"), ("dis", told))
            ]
        key = row["key"] if isinstance(row["key"], str) else " / ".join(row["key"])
        options = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCDE", row["options"], strict=False))
        rows = [
            (row["task"], f"{row['question']}\n{options}".strip()),
            ("key", key),
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
        HTML in one file that loads nothing. Pictures are made smaller where they are wider, which hides some of what is
        small; lossless or JPEG, whichever is smaller.
    """
    steps: dict[str, list[Any]] = {}
    for dimension in dimensions().values():
        images = []
        for strength, level in zip(STRENGTHS, dimension.levels, strict=True):
            changed = corrupt(image, dimension.name, strength, seed, image_id=name, scale=scale)
            images.append((picture(changed, _WIDTH), f"{strength}: {level:g}"))
        steps.setdefault(dimension.step, []).append((dimension, images))
    return render(
        "tasks/r_bench/gallery.html",
        title=f"33 corruptions{f' of {name}' if name else ''}",
        name=name,
        seed=seed,
        size=f"{image.shape[1]} x {image.shape[0]} px",
        scale=scale,
        original=picture(image, _WIDTH),
        steps=[(step, STEPS[step], found) for step, found in steps.items()],
    )
