"""Build a set: from references and questions to corrupted images, balanced over dimensions, strengths and tasks."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.corruption.apply import corrupt
from psyprobe.corruption.dimensions import STRENGTHS, dimensions
from psyprobe.errors import InputError
from psyprobe.files.images import file_digest, read_image
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.tasks.r_bench.items import TASKS, read_items, write_items
from psyprobe.tasks.r_bench.photographs import ReferenceLimits, check_reference, read_question_table

_LIMITS = ReferenceLimits()


@dataclass(frozen=True)
class BuiltSet:
    """A set that was built."""

    #: Of the set.
    folder: Path
    #: How many.
    items: int
    #: Why photographs were left out, with their questions; empty unless that was asked for.
    skipped: tuple[str, ...]
    #: Items whose corrupted image equals its reference, as a grey photograph does without its colour.
    unchanged: tuple[str, ...]


def build_set(
    photographs: str | Path,
    questions: str | Path,
    output: str | Path,
    *,
    items_per_cell: int = 3,
    seed: int = 0,
    scale: bool = False,
    limits: ReferenceLimits = _LIMITS,
    skip: bool = False,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> BuiltSet:
    """Build a set in which every dimension and task has as many items, and every strength as nearly as can be.

    Parameters
    ----------
    photographs : str or Path
        Folder of reference images.
    questions : str or Path
        Table of questions about them, see `read_question_table`.
    output : str or Path
        Folder of the set, which must be new or empty.
    items_per_cell : int
        Items of each dimension and task; 15 in R-Bench. With three, or a multiple, each strength has as many.
    seed : int
        Of the choice of questions and of the corruptions.
    scale : bool
        As for `corrupt`: lengths and counts scaled to the image. Recorded in the manifest.
    limits : ReferenceLimits
        What a reference must be like.
    skip : bool
        Leave out photographs that cannot be read or are not fit, with their questions, and count them.
    executor : concurrent.futures.Executor, optional
        Who works; by default one thread a core.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    BuiltSet
        The folder holds items.csv, ref, dis, manifest.json and contact_sheet.png.

    Raises
    ------
    InputError
        A photograph is missing, cannot be read or is not fit; a question is wrong; or the folder is not empty.
    """
    from psyprobe.files.output import software_versions
    from psyprobe.files.terminal import progress_bar

    if items_per_cell < 1:
        raise InputError(f"{items_per_cell} items of each dimension and task are no set; give at least 1, usual is 15")
    table = read_question_table(questions)
    measured, skipped = _references(Path(photographs), table, limits, skip)
    table = table[table["image"].isin(measured)].reset_index(drop=True)
    if not len(table):
        raise InputError(f"no question of {questions} is left; every photograph was left out")
    rows = _items(table, items_per_cell, seed)
    folder = make_folder(output, empty=True)
    for part in (folder / "ref", folder / "dis"):
        part.mkdir(parents=True)
    write_items(folder, rows)
    # Whatever is wrong with a question is said before images are made.
    items = read_items(folder / "items.csv")
    for row in items[items["task"] == "MCQ"].to_dict("records"):
        if "ABCDE".index(row["key"]) >= len(row["options"]):
            raise InputError(
                f"{questions}: {row['question']!r} has the key {row['key']} and {len(row['options'])} options"
            )
    for name in measured:
        shutil.copyfile(Path(photographs) / name, folder / "ref" / name)
    # Each photograph in several jobs, so that all cores have work to the end.
    by_reference = [[row for row in rows if row["reference"] == name] for name in measured]
    jobs = [part[i : i + 16] for part in by_reference for i in range(0, len(part), 16)]
    # Codecs, OpenCV and numpy's generators work outside Python's lock; forked processes hang once OpenCV has threads.
    workers = executor or ThreadPoolExecutor(max_workers=os.cpu_count())
    unchanged: list[str] = []
    try:
        with progress_bar(len(rows), progress) as bar:
            work = partial(_corrupt_some, folder, seed, scale)
            for job, same in zip(jobs, workers.map(work, jobs), strict=True):
                unchanged += same
                bar.update(len(job))
    finally:
        if executor is None:
            workers.shutdown(cancel_futures=True)
    manifest = {
        "seed": seed,
        "scale": scale,
        "items_per_cell": items_per_cell,
        "questions": {"file": Path(questions).name, "sha256": file_digest(questions)},
        "limits": limits.to_dict(),
        "references": {
            name: {**values, "sha256": file_digest(folder / "ref" / name)} for name, values in measured.items()
        },
        "corrupted": {row["name"]: _told(row, folder) for row in rows},
        "skipped": skipped,
        "unchanged": sorted(unchanged),
        "software": software_versions(),
    }
    write_text(folder / "manifest.json", json_text(manifest))
    contact_sheet(folder, items).save(folder / "contact_sheet.png")
    return BuiltSet(folder, len(rows), tuple(skipped), tuple(sorted(unchanged)))


def _references(
    folder: Path, table: pd.DataFrame, limits: ReferenceLimits, skip: bool
) -> tuple[dict[str, dict[str, float]], list[str]]:
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    measured, skipped = {}, []
    for name in dict.fromkeys(table["image"]):
        try:
            measured[name] = check_reference(read_image(folder / name), name, limits)
        except InputError as error:
            if not skip:
                raise
            skipped.append(str(error))
    return measured, skipped


def _items(table: pd.DataFrame, each: int, seed: int) -> list[dict[str, Any]]:
    """Rows of the item table: for each dimension and task so many questions; none comes again before all were drawn."""
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        asked = table[table["type"] == task].to_dict("records")
        if not asked:
            continue
        rng = np.random.default_rng([seed, TASKS.index(task)])
        queue: list[int] = []
        # Tasks begin with different strengths, so that one item of each has all three in every dimension.
        turn = TASKS.index(task)
        for dimension in dimensions().values():
            for _ in range(each):
                if not queue:
                    queue = [int(i) for i in rng.permutation(len(asked))]
                question = asked[queue.pop()]
                strength = turn % 3
                turn += 1
                number = len(rows) + 1
                rows.append(
                    {
                        "name": f"{number:05d}-{Path(question['image']).stem}.png",
                        "question": question["question"],
                        "choice": question["choice"],
                        "answer": question["answer"],
                        "type": task,
                        "score": question.get("score", ""),
                        "distortion": dimension.id,
                        "strength": strength + 1,
                        "reference": question["image"],
                        "simulated": int(dimension.captured),
                    }
                )
    unknown = table["type"][~table["type"].isin(TASKS)]
    if len(unknown):
        raise InputError(f"a question has the type {unknown.iloc[0]!r}; give {' or '.join(TASKS)}")
    return rows


def _told(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    known = {dimension.id: dimension for dimension in dimensions().values()}[row["distortion"]]
    return {
        "dimension": known.name,
        "strength": STRENGTHS[row["strength"] - 1],
        "parameter": known.levels[row["strength"] - 1],
        "simulated": known.captured,
        "sha256": hashlib.sha256((folder / "dis" / row["name"]).read_bytes()).hexdigest(),
    }


def _corrupt_some(folder: Path, seed: int, scale: bool, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Write corrupted images of one reference; the names of those that are no different."""
    from PIL import Image

    known = {dimension.id: dimension.name for dimension in dimensions().values()}
    image = read_image(folder / "ref" / rows[0]["reference"])
    same = []
    for row in rows:
        name, strength = row["name"], STRENGTHS[row["strength"] - 1]
        changed = corrupt(image, known[row["distortion"]], strength, seed, image_id=Path(name).stem, scale=scale)
        Image.fromarray(changed).save(folder / "dis" / name, "PNG", compress_level=1)
        if np.array_equal(changed, image):
            same.append(name)
    return same


#: A thumbnail, px; and most of them on a sheet.
_WIDTH, _HEIGHT, _LABEL, _MOST = 128, 96, 12, 600


def contact_sheet(folder: str | Path, items: pd.DataFrame) -> Any:
    """A sheet of the corrupted images of a set: a row a dimension, ordered by strength.

    Under each thumbnail number and strength ("1 low"), a star where it is simulated.
    """
    from PIL import Image, ImageDraw

    order = items.assign(level=[STRENGTHS.index(strength) for strength in items["strength"]])
    order = order.sort_values(["dimension", "level", "name"], ignore_index=True)
    every = -(-len(order) // _MOST)
    shown = order.iloc[::every]
    known = {each.id: each for each in dimensions().values()}
    lines = [group for _, group in shown.groupby("dimension", sort=True)]
    left, cell = 150, _HEIGHT + _LABEL
    across = max(len(group) for group in lines)
    sheet = Image.new("RGB", (left + across * (_WIDTH + 4), 18 + len(lines) * (cell + 4)), "white")
    pen = ImageDraw.Draw(sheet)
    note = f"{len(shown)} of {len(items)} corrupted images; * simulated where R-Bench photographed it"
    pen.text((4, 3), note, fill="black")
    for i, group in enumerate(lines):
        top = 18 + i * (cell + 4)
        dimension = known[int(group["dimension"].iloc[0])]
        pen.text((4, top + 4), f"{dimension.id} {dimension.title}{' *' if dimension.captured else ''}", fill="black")
        for j, row in enumerate(group.to_dict("records")):
            with Image.open(Path(folder) / "dis" / row["name"]) as opened:
                small = opened.convert("RGB")
            small.thumbnail((_WIDTH, _HEIGHT))
            at = left + j * (_WIDTH + 4)
            sheet.paste(small, (at, top))
            pen.text((at, top + _HEIGHT), f"{row['task']} {row['strength']}", fill="black")
    return Image.fromarray(np.asarray(sheet))
