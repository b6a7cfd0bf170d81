"""Build a set of corrupted photographs, balanced over dimensions, strengths and tasks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from psyprobe._typing import ByteArray
from psyprobe.corruption.apply import (
    STRENGTHS,
    corrupt,
    dimension_numbered,
    dimensions,
    in_parallel,
    write_png,
)
from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError
from psyprobe.files.images import file_digest, read_image
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import (
    json_text,
    make_folder,
    software_versions,
    write_text,
    write_whole,
)
from psyprobe.files.parsing import packaged_text
from psyprobe.files.terminal import progress_bar
from psyprobe.tasks.r_bench.items import TASKS, read_items, without_option, write_items
from psyprobe.tasks.tables import read_table

#: Columns of a table of questions: the file of the photograph, and the item as in the released
#: table. A column score, the quality of the photograph, may be there too.
QUESTION_COLUMNS = ("image", "type", "question", "choice", "answer")


@dataclass(frozen=True)
class ReferenceLimits:
    """Limits on reference images: snapshots pass; thumbnails, blur and blank pages do not."""

    #: Smallest allowed shorter side, px.
    side: int = 224
    #: Smallest allowed variance of the Laplacian of luma, in 8-bit codes squared (Pech-Pacheco et
    #: al. 2000), after the image was made so small that its shorter side is 256 px, since it grows
    #: with resolution.
    sharpness: float = 20.0
    #: Smallest and largest allowed mean luma, 0 to 1.
    exposure: tuple[float, float] = (0.05, 0.95)
    #: Largest allowed share of pixels at 0 or 255 in all channels.
    clipped: float = 0.5


def measure_reference(image: ByteArray) -> dict[str, float]:
    """Measure a photograph's side, sharpness, exposure and clipped share.

    Examples
    --------
    >>> measure_reference(np.zeros((32, 32, 3), np.uint8))
    {'side': 32, 'sharpness': 0.0, 'exposure': 0.0, 'clipped': 1.0}
    """
    import cv2

    luminance = small = luma(image)
    side = min(luminance.shape)
    if side > 256:
        size = (
            round(luminance.shape[1] * 256 / side),
            round(luminance.shape[0] * 256 / side),
        )
        small = np.asarray(cv2.resize(luminance, size, interpolation=cv2.INTER_AREA))
    clipped = (image == 0).all(axis=-1) | (image == 255).all(axis=-1)
    return {
        "side": side,
        "sharpness": float(np.var(cv2.Laplacian(small, cv2.CV_32F))),
        "exposure": float(luminance.mean()) / 255,
        "clipped": float(clipped.mean()),
    }


def check_reference(
    image: ByteArray, name: str, limits: ReferenceLimits
) -> dict[str, float]:
    """Measure a photograph, refusing one beyond the limits."""
    measured = measure_reference(image)
    low, high = limits.exposure
    problems = {
        f"{name} has a shorter side of {measured['side']:g} px; a reference needs {limits.side}": (
            measured["side"] < limits.side
        ),
        f"{name} has a mean luma of {measured['exposure']:.3f}; a reference needs {low:g} to "
        f"{high:g}": not low <= measured["exposure"] <= high,
        f"{name} has {measured['clipped']:.0%} of its pixels black or white; a reference may "
        f"have {limits.clipped:.0%}": measured["clipped"] > limits.clipped,
        f"{name} is blurred: its Laplacian has the variance {measured['sharpness']:.1f}; a "
        f"reference needs {limits.sharpness:g}": measured["sharpness"]
        < limits.sharpness,
    }
    for problem, failed in problems.items():
        if failed:
            raise InputError(problem)
    return measured


def read_question_table(path: str | Path) -> pd.DataFrame:
    """Read a table of questions about photographs.

    Parameters
    ----------
    path : str or Path
        A CSV with the columns image (file name), type (MCQ, VQA, CAP), question, choice ("A.one;
        B.two", N where there are none) and answer (a letter; a short text; reference captions as a
        list in Python's notation); score may be there.

    Returns
    -------
    pandas.DataFrame
        All cells as text.

    Raises
    ------
    InputError
        It is no such table, a row is there twice, or a key is none of the options.
    """
    table, _ = read_table(path, QUESTION_COLUMNS)
    duplicates = table[table.duplicated(["image", "type", "question"])]
    if len(duplicates):
        row = duplicates.iloc[0]
        raise InputError(
            f"{path}: {row['question']!r} is asked twice of {row['image']}; keep one of them"
        )
    for i, row in enumerate(table.to_dict("records"), start=2):
        if Path(row["image"]).name != row["image"] or not row["image"]:
            raise InputError(
                f"{path}, line {i}: image is {row['image']!r}; give a file name without folders"
            )
    return table


def write_example(folder: str | Path) -> tuple[Path, Path]:
    """Write example photographs and a question table, as `build_set` takes them.

    Parameters
    ----------
    folder : str or Path
        Folder to write a folder "photographs" and the file "questions.csv" to: 42 questions about
        six photographs.

    Returns
    -------
    photographs, questions : Path

    Raises
    ------
    InputError
        scikit-image or one of its photographs is not there.
    """
    try:
        import skimage
    except ImportError:
        raise InputError(
            "the photographs come with scikit-image: pip install 'psyprobe[corruption]'"
        ) from None
    source = Path(skimage.__file__).parent / "data"
    photographs = make_folder(Path(folder) / "photographs")
    questions = Path(folder) / "questions.csv"
    text = packaged_text("psyprobe.tasks.r_bench", "data", "photograph_questions.csv")
    write_text(questions, text)
    for name in dict.fromkeys(read_question_table(questions)["image"]):
        if not (source / name).is_file():
            raise InputError(
                f"this scikit-image comes without {name}; install version 0.22 or later from a "
                "wheel"
            )
        write_whole(photographs / name, partial(shutil.copyfile, source / name))
    return photographs, questions


_LIMITS = ReferenceLimits()


@dataclass(frozen=True)
class BuiltSet:
    """A set that was built."""

    #: Folder of the set.
    folder: Path
    #: Number of items.
    items: int
    #: Why photographs were left out with their questions, if `build_set` was told to skip them.
    skipped: tuple[str, ...]
    #: Items whose corrupted image equals its reference, as a grey photograph does without its
    #: colour.
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
    """Build an R-Bench set with as many items of every corruption and task.

    Parameters
    ----------
    photographs : str or Path
        Folder of reference images.
    questions : str or Path
        Table of questions about them, see `read_question_table`.
    output : str or Path
        Folder of the set, which must be new or empty.
    items_per_cell : int
        Items of each dimension and task; 15 in R-Bench. With three, or a multiple, each strength
        has as many.
    seed : int
        Seed of the choice of questions and of the corruptions.
    scale : bool
        As for `corrupt`: lengths and counts scaled to the image. Recorded in the manifest.
    limits : ReferenceLimits
        Limits on references.
    skip : bool
        Leave out photographs that cannot be read or are not fit, with their questions, instead of
        ending with the first.
    executor : concurrent.futures.Executor, optional
        Executor of the corruptions; by default one thread a core.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    BuiltSet
        The folder holds items.csv, ref, dis, manifest.json and contact_sheet.png.

    Raises
    ------
    InputError
        A photograph is missing, cannot be read or is not fit; a question is wrong; or the folder is
        not empty.
    """
    if items_per_cell < 1:
        raise InputError(
            f"{items_per_cell} items of each dimension and task are no set; give at least 1, "
            "usual is 15"
        )
    table = read_question_table(questions)
    references, skipped = _measure_references(Path(photographs), table, limits, skip)
    table = table[table["image"].isin(references)].reset_index(drop=True)
    if not len(table):
        raise InputError(
            f"no question of {questions} is left; every photograph was left out"
        )
    rows = _draw_items(table, items_per_cell, seed)
    folder = make_folder(output, empty=True)
    for part in ("ref", "dis"):
        (folder / part).mkdir()
    write_items(folder, rows)
    # Refuse wrong questions before images are made, which takes long.
    items = read_items(folder / "items.csv")
    for row in without_option(items):
        raise InputError(
            f"{questions}: {row['question']!r} has the key {row['key']} and "
            f"{len(row['options'])} options"
        )
    for name in references:
        write_whole(
            folder / "ref" / name, partial(shutil.copyfile, Path(photographs) / name)
        )
    # Each photograph in several jobs, so that all cores have work to the end.
    by_reference = [
        [row for row in rows if row["reference"] == name] for name in references
    ]
    jobs = [part[i : i + 16] for part in by_reference for i in range(0, len(part), 16)]
    corrupted: dict[str, JsonObject] = {}
    unchanged: list[str] = []
    with progress_bar(len(rows), progress) as bar:
        for images in in_parallel(
            partial(_corrupt_rows, folder, seed, scale), jobs, executor
        ):
            corrupted |= {image.name: image.facts for image in images}
            unchanged += [image.name for image in images if image.unchanged]
            bar.update(len(images))
    unchanged.sort()
    manifest = {
        "seed": seed,
        "scale": scale,
        "items_per_cell": items_per_cell,
        "questions": {"file": Path(questions).name, "sha256": file_digest(questions)},
        "limits": asdict(limits),
        "references": references,
        "corrupted": corrupted,
        "skipped": skipped,
        "unchanged": unchanged,
        "software": software_versions(),
    }
    write_text(folder / "manifest.json", json_text(manifest))
    write_whole(folder / "contact_sheet.png", contact_sheet(folder, items).save)
    return BuiltSet(folder, len(rows), tuple(skipped), tuple(unchanged))


def _measure_references(
    folder: Path, table: pd.DataFrame, limits: ReferenceLimits, skip: bool
) -> tuple[dict[str, JsonObject], list[str]]:
    """Measure the photographs of a table by name, and say why others were left out."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    references: dict[str, JsonObject] = {}
    skipped = []
    for name in dict.fromkeys(table["image"]):
        try:
            measured = check_reference(read_image(folder / name), name, limits)
            references[name] = {**measured, "sha256": file_digest(folder / name)}
        except InputError as error:
            if not skip:
                raise
            skipped.append(str(error))
    return references, skipped


def _draw_items(
    table: pd.DataFrame, items_per_cell: int, seed: int
) -> list[JsonObject]:
    """Draw questions for each corruption and task, repeating none before all were drawn."""
    unknown = table["type"][~table["type"].isin(TASKS)]
    if len(unknown):
        raise InputError(
            f"a question has the type {unknown.iloc[0]!r}; give {' or '.join(TASKS)}"
        )
    rows: list[JsonObject] = []
    for task_number, task in enumerate(TASKS):
        questions = table[table["type"] == task].to_dict("records")
        rng = np.random.default_rng([seed, task_number])
        queue: list[int] = []
        for turn in range(items_per_cell * len(dimensions()) if questions else 0):
            if not queue:
                queue = rng.permutation(len(questions)).tolist()
            question = questions[queue.pop()]
            dimension = dimension_numbered(1 + turn // items_per_cell)
            row = {
                name: question[name]
                for name in ("question", "choice", "answer", "type")
            }
            row |= {
                "name": f"{len(rows) + 1:05d}-{Path(question['image']).stem}.png",
                "reference": question["image"],
                "distortion": dimension.id,
                # Tasks begin with different strengths, so that one item of each has all three in
                # every dimension.
                "strength": 1 + (task_number + turn) % 3,
                "simulated": int(dimension.captured),
                "score": question.get("score", ""),
            }
            rows.append(row)
    return rows


class _CorruptedImage(NamedTuple):
    """One corrupted image as written: its file, what the manifest says, whether it is unchanged."""

    name: str
    facts: JsonObject
    unchanged: bool


def _corrupt_rows(
    folder: Path, seed: int, scale: bool, rows: Sequence[JsonObject]
) -> list[_CorruptedImage]:
    """Write the corrupted images of items that share one photograph."""
    reference = read_image(folder / "ref" / rows[0]["reference"])
    images = []
    for row in rows:
        file = folder / "dis" / row["name"]
        dimension = dimension_numbered(row["distortion"])
        level = row["strength"] - 1
        strength = STRENGTHS[level]
        corrupted = corrupt(
            reference, dimension.name, strength, seed, image_id=file.stem, scale=scale
        )
        write_png(corrupted, file)
        facts = {
            "dimension": dimension.name,
            "strength": strength,
            "parameter": dimension.levels[level],
            "simulated": dimension.captured,
            "sha256": file_digest(file),
        }
        images.append(
            _CorruptedImage(row["name"], facts, np.array_equal(corrupted, reference))
        )
    return images


#: Size of a thumbnail, side of the enlarged detail beside it, and height of a label, px.
_WIDTH = 128
_HEIGHT = 96
_DETAIL = 96
_LABEL = 12
#: Largest number of images on a contact sheet.
_MAX_IMAGES = 600


def contact_sheet(folder: str | Path, items: pd.DataFrame) -> Any:
    """Draw the corrupted images of a set on one sheet, a row for each corruption.

    Under each thumbnail task and strength; beside it the middle of the image, three times enlarged,
    where what a codec did is seen. A star marks what is simulated.
    """
    from PIL import Image, ImageDraw

    levels = items["strength"].map(STRENGTHS.index)
    ordered = items.assign(level=levels).sort_values(["dimension", "level", "name"])
    sample = ordered.iloc[:: -(-len(items) // _MAX_IMAGES)]
    rows = list(sample.groupby("dimension", sort=True))
    left = 150
    width = _WIDTH + _DETAIL + 8
    height = _HEIGHT + _LABEL + 4
    columns = max(len(group) for _, group in rows)
    sheet = Image.new("RGB", (left + columns * width, 18 + len(rows) * height), "white")
    pen = ImageDraw.Draw(sheet)
    note = (
        f"{len(sample)} of {len(items)} corrupted images; * simulated where R-Bench "
        "photographed it"
    )
    pen.text((4, 3), note, fill="black")
    for i, (number, group) in enumerate(rows):
        dimension = dimension_numbered(number)
        y = 18 + i * height
        title = f"{dimension.id} {dimension.title}{' *' if dimension.captured else ''}"
        pen.text((4, y + 4), title, fill="black")
        for j, item in enumerate(group.to_dict("records")):
            with Image.open(Path(folder) / "dis" / item["name"]) as file:
                image = file.convert("RGB")
            side = _DETAIL // 3
            margin_x = (image.width - side) // 2
            margin_y = (image.height - side) // 2
            middle = image.crop((margin_x, margin_y, margin_x + side, margin_y + side))
            detail = middle.resize((_DETAIL, _DETAIL), Image.Resampling.NEAREST)
            image.thumbnail((_WIDTH, _HEIGHT))
            x = left + j * width
            sheet.paste(image, (x, y))
            sheet.paste(detail, (x + _WIDTH + 2, y))
            pen.text(
                (x, y + _HEIGHT), f"{item['task']} {item['strength']}", fill="black"
            )
    return sheet
