"""Build a set: from photographs and questions to corrupted images, balanced over dimensions,
strengths and tasks.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

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
from psyprobe.files.output import json_text, make_folder, software_versions, write_text, write_whole
from psyprobe.files.terminal import progress_bar
from psyprobe.tasks.r_bench.items import TASKS, read_items, without_option, write_items
from psyprobe.tasks.tables import read_table

#: Columns of a table of questions: the file of the photograph, and the item as in the released
#: table. A column score, the quality of the photograph, is kept where it is there.
QUESTION_COLUMNS = ("image", "type", "question", "choice", "answer")


@dataclass(frozen=True)
class ReferenceLimits:
    """What a reference must be like; chosen so that snapshots pass, and thumbnails, blur and blank
    pages do not.
    """

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


def measure_reference(image: npt.NDArray[np.uint8]) -> dict[str, float]:
    """Side, sharpness, exposure and clipped share of an image, as in `ReferenceLimits`.

    Examples
    --------
    >>> measure_reference(np.zeros((32, 32, 3), np.uint8))
    {'side': 32, 'sharpness': 0.0, 'exposure': 0.0, 'clipped': 1.0}
    """
    import cv2

    grey = small = luma(image)
    shorter = min(grey.shape)
    if shorter > 256:
        size = (round(grey.shape[1] * 256 / shorter), round(grey.shape[0] * 256 / shorter))
        small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
    flat = (image == 0).all(axis=-1) | (image == 255).all(axis=-1)
    return {
        "side": shorter,
        "sharpness": float(np.var(cv2.Laplacian(small, cv2.CV_32F))),
        "exposure": float(grey.mean()) / 255,
        "clipped": float(flat.mean()),
    }


def check_reference(
    image: npt.NDArray[np.uint8], name: str, limits: ReferenceLimits
) -> dict[str, float]:
    """What `measure_reference` gives of an image that is fit; any other is refused."""
    found = measure_reference(image)
    low, high = limits.exposure
    if found["side"] < limits.side:
        raise InputError(
            f"{name} has a shorter side of {found['side']:g} px; a reference needs {limits.side}"
        )
    if not low <= found["exposure"] <= high:
        raise InputError(
            f"{name} has a mean luma of {found['exposure']:.3f}; a reference needs {low:g} to "
            f"{high:g}"
        )
    if found["clipped"] > limits.clipped:
        raise InputError(
            f"{name} has {found['clipped']:.0%} of its pixels black or white; a reference may "
            f"have {limits.clipped:.0%}"
        )
    if found["sharpness"] < limits.sharpness:
        raise InputError(
            f"{name} is blurred: its Laplacian has the variance {found['sharpness']:.1f}; a "
            "reference needs "
            f"{limits.sharpness:g}"
        )
    return found


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
    asked = table[["image", "type", "question"]]
    if asked.duplicated().any():
        row = asked[asked.duplicated()].iloc[0]
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
    """Write photographs and a table of questions, as `build_set` takes them.

    Parameters
    ----------
    folder : str or Path
        Gets a folder "photographs" and the file "questions.csv": 42 questions about six
        photographs.

    Returns
    -------
    tuple of Path
        Both.

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
    text = (
        files("psyprobe.tasks.r_bench")
        .joinpath("data", "photograph_questions.csv")
        .read_text(encoding="utf-8")
    )
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

    #: Of the set.
    folder: Path
    #: How many.
    items: int
    #: Why photographs were left out, with their questions; empty unless that was asked for.
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
    """Build a set in which every dimension and task has as many items, and every strength as nearly
    as can be.

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
        Of the choice of questions and of the corruptions.
    scale : bool
        As for `corrupt`: lengths and counts scaled to the image. Recorded in the manifest.
    limits : ReferenceLimits
        What a reference must be like.
    skip : bool
        Leave out photographs that cannot be read or are not fit, with their questions, and count
        them.
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
        A photograph is missing, cannot be read or is not fit; a question is wrong; or the folder is
        not empty.
    """
    if items_per_cell < 1:
        raise InputError(
            f"{items_per_cell} items of each dimension and task are no set; give at least 1, "
            "usual is 15"
        )
    table = read_question_table(questions)
    measured, skipped = _references(Path(photographs), table, limits, skip)
    table = table[table["image"].isin(measured)].reset_index(drop=True)
    if not len(table):
        raise InputError(f"no question of {questions} is left; every photograph was left out")
    rows = _items(table, items_per_cell, seed)
    folder = make_folder(output, empty=True)
    for part in ("ref", "dis"):
        (folder / part).mkdir()
    write_items(folder, rows)
    # Whatever is wrong with a question is said before images are made.
    items = read_items(folder / "items.csv")
    for row in without_option(items):
        raise InputError(
            f"{questions}: {row['question']!r} has the key {row['key']} and "
            f"{len(row['options'])} options"
        )
    for name in measured:
        write_whole(folder / "ref" / name, partial(shutil.copyfile, Path(photographs) / name))
    # Each photograph in several jobs, so that all cores have work to the end.
    by_reference = [[row for row in rows if row["reference"] == name] for name in measured]
    jobs = [part[i : i + 16] for part in by_reference for i in range(0, len(part), 16)]
    corrupted: dict[str, dict[str, Any]] = {}
    unchanged = []
    with progress_bar(len(rows), progress) as bar:
        for done in in_parallel(partial(_corrupt_some, folder, seed, scale), jobs, executor):
            corrupted |= {name: told for name, told, _ in done}
            unchanged += [name for name, _, same in done if same]
            bar.update(len(done))
    manifest = {
        "seed": seed,
        "scale": scale,
        "items_per_cell": items_per_cell,
        "questions": {"file": Path(questions).name, "sha256": file_digest(questions)},
        "limits": asdict(limits),
        "references": measured,
        "corrupted": corrupted,
        "skipped": skipped,
        "unchanged": sorted(unchanged),
        "software": software_versions(),
    }
    write_text(folder / "manifest.json", json_text(manifest))
    write_whole(folder / "contact_sheet.png", contact_sheet(folder, items).save)
    return BuiltSet(folder, len(rows), tuple(skipped), tuple(sorted(unchanged)))


def _references(
    folder: Path, table: pd.DataFrame, limits: ReferenceLimits, skip: bool
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    measured = {}
    skipped = []
    for name in dict.fromkeys(table["image"]):
        try:
            fit = check_reference(read_image(folder / name), name, limits)
            measured[name] = {**fit, "sha256": file_digest(folder / name)}
        except InputError as error:
            if not skip:
                raise
            skipped.append(str(error))
    return measured, skipped


def _items(table: pd.DataFrame, each: int, seed: int) -> list[dict[str, Any]]:
    """Rows of the item table: for each dimension and task so many questions; none comes again
    before all were drawn.
    """
    unknown = table["type"][~table["type"].isin(TASKS)]
    if len(unknown):
        raise InputError(f"a question has the type {unknown.iloc[0]!r}; give {' or '.join(TASKS)}")
    rows: list[dict[str, Any]] = []
    for first, task in enumerate(TASKS):
        asked = table[table["type"] == task].to_dict("records")
        rng = np.random.default_rng([seed, first])
        queue: list[int] = []
        for turn in range(each * len(dimensions()) if asked else 0):
            if not queue:
                queue = [int(i) for i in rng.permutation(len(asked))]
            question = asked[queue.pop()]
            dimension = dimension_numbered(1 + turn // each)
            # Tasks begin with different strengths, so that one item of each has all three in every
            # dimension.
            strength = 1 + (first + turn) % 3
            row = {name: question[name] for name in ("question", "choice", "answer", "type")}
            row |= {
                "name": f"{len(rows) + 1:05d}-{Path(question['image']).stem}.png",
                "reference": question["image"],
            }
            row |= {
                "distortion": dimension.id,
                "strength": strength,
                "simulated": int(dimension.captured),
            }
            rows.append(row | {"score": question.get("score", "")})
    return rows


def _corrupt_some(
    folder: Path, seed: int, scale: bool, rows: Sequence[dict[str, Any]]
) -> list[tuple[str, dict[str, Any], bool]]:
    """Write corrupted images of one reference: their names, what the manifest tells, and whether
    they are the same.
    """
    image = read_image(folder / "ref" / rows[0]["reference"])
    done = []
    for row in rows:
        file = folder / "dis" / row["name"]
        way = dimension_numbered(row["distortion"])
        level = row["strength"] - 1
        changed = corrupt(image, way.name, STRENGTHS[level], seed, image_id=file.stem, scale=scale)
        write_png(changed, file)
        told = {"dimension": way.name, "strength": STRENGTHS[level], "parameter": way.levels[level]}
        told |= {"simulated": way.captured, "sha256": file_digest(file)}
        done.append((row["name"], told, np.array_equal(changed, image)))
    return done


#: A thumbnail, and the part beside it when it is enlarged, px; and most of them on a sheet.
_WIDTH = 128
_HEIGHT = 96
_PART = 96
_LABEL = 12
_MOST = 600


def contact_sheet(folder: str | Path, items: pd.DataFrame) -> Any:
    """A sheet of the corrupted images of a set: a row a dimension, ordered by strength.

    Under each thumbnail task and strength; beside it the middle of the image, three times enlarged,
    where what a codec did is seen. A star marks what is simulated.
    """
    from PIL import Image, ImageDraw

    order = items.assign(level=[STRENGTHS.index(strength) for strength in items["strength"]])
    order = order.sort_values(["dimension", "level", "name"], ignore_index=True)
    shown = order.iloc[:: -(-len(order) // _MOST)]
    lines = [
        (dimension_numbered(number), group)
        for number, group in shown.groupby("dimension", sort=True)
    ]
    left = 150
    cell = _HEIGHT + _LABEL
    across = max(len(group) for _, group in lines)
    sheet = Image.new(
        "RGB", (left + across * (_WIDTH + _PART + 8), 18 + len(lines) * (cell + 4)), "white"
    )
    pen = ImageDraw.Draw(sheet)
    note = (
        f"{len(shown)} of {len(items)} corrupted images; * simulated where R-Bench photographed it"
    )
    pen.text((4, 3), note, fill="black")
    for i, (dimension, group) in enumerate(lines):
        top = 18 + i * (cell + 4)
        pen.text(
            (4, top + 4),
            f"{dimension.id} {dimension.title}{' *' if dimension.captured else ''}",
            fill="black",
        )
        for j, row in enumerate(group.to_dict("records")):
            with Image.open(Path(folder) / "dis" / row["name"]) as opened:
                small = opened.convert("RGB")
            x, y = ((length - _PART // 3) // 2 for length in small.size)
            part = small.crop((x, y, x + _PART // 3, y + _PART // 3)).resize(
                (_PART, _PART), Image.Resampling.NEAREST
            )
            small.thumbnail((_WIDTH, _HEIGHT))
            at = left + j * (_WIDTH + _PART + 8)
            sheet.paste(small, (at, top))
            sheet.paste(part, (at + _WIDTH + 2, top))
            pen.text((at, top + _HEIGHT), f"{row['task']} {row['strength']}", fill="black")
    return Image.fromarray(np.asarray(sheet))
