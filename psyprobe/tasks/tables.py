"""What benchmarks read and write: tables of answers that others wrote, all metrics of all models,
and scores.
"""

from __future__ import annotations

import base64
import csv
import difflib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from psyprobe.analysis.score import OBSERVER, Entry, Metric, Row, Tabled, number
from psyprobe.analysis.words.readers import Rereading
from psyprobe.errors import InputError
from psyprobe.files.arrays import check_unpacked
from psyprobe.files.output import write_whole
from psyprobe.files.parsing import parse_json, read_bytes, read_text
from psyprobe.files.terminal import harmless

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


#: Columns of a table, and bytes that a workbook may unpack to.
_MOST_COLUMNS = 10_000
_MOST_BYTES = 300_000_000


def read_answer_table(path: str | Path) -> pd.DataFrame:
    """Any such table as text: .csv, .tsv, .xlsx, .json (a list of objects, or columns of rows) or
    .jsonl.

    Raises
    ------
    InputError
        It is no such table, or has no rows.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix in (".json", ".jsonl"):
        return _json(file)
    if suffix == ".xlsx":
        return _sheet(file)
    if suffix in (".csv", ".tsv"):
        return read_table(file, (), "\t" if suffix == ".tsv" else ",")[0]
    raise InputError(f"{path} is no table of answers; give .csv, .tsv, .xlsx, .json or .jsonl")


def read_table(
    path: str | Path, columns: tuple[str, ...], separator: str = ","
) -> tuple[pd.DataFrame, str]:
    """A CSV as text, "NA" included, which must have some columns, and its encoding: UTF-8 or GBK,
    whichever it is.
    """
    raw = read_bytes(path)
    # Text in GBK is hardly ever valid UTF-8, and the other way round it often is: so UTF-8 is tried
    # first.
    for encoding in ("UTF-8", "GBK"):
        try:
            text = raw.decode("utf-8-sig" if encoding == "UTF-8" else encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise InputError(f"{path} is neither UTF-8 nor GBK; save it as CSV in UTF-8")
    if text.partition("\n")[0].count(separator) >= _MOST_COLUMNS:
        raise InputError(
            f"{path} has more than {_MOST_COLUMNS:,} columns; is it a table of answers?"
        )
    try:
        table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, sep=separator)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is no CSV: {error}") from None
    missing = [name for name in columns if name not in table]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; it needs {', '.join(columns)}")
    if not len(table):
        raise InputError(f"{path} has no rows")
    return table, encoding


def first_column(table: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Find the first of some columns that a table has."""
    return next((name for name in names if name in table), None)


def refuse_duplicates(
    names: pd.Series, subject: str, problem: str = "is there twice; keep one of them"
) -> None:
    """Refuse names of which one comes twice: "SUBJECT NAME PROBLEM"."""
    duplicates = names[names.duplicated()]
    if len(duplicates):
        raise InputError(f"{subject} {duplicates.iloc[0]} {problem}")


def read_packaged_table(package: str, name: str) -> pd.DataFrame:
    """Read a CSV that lies in the folder data of a package, all cells as text."""
    with files(package).joinpath("data", name).open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#", dtype=str, keep_default_na=False)


def round_half_up(value: float, digits: int) -> str:
    """Round a number as people do.

    Examples
    --------
    >>> round_half_up(0.285, 2)
    '0.29'
    """
    step = 10**digits
    # The small term keeps a binary fraction from falling under its decimal half.
    return f"{int(value * step + 0.5 + 1e-9) / step:.{digits}f}"


def read_json_lines(path: str | Path) -> list[tuple[int, Any]]:
    """What stands on each line of a file that is not blank, with its number from 1."""
    found = []
    # Not splitlines: a reply may hold a Unicode line separator, which JSON leaves as it is.
    for at, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            found.append((at, parse_json(line, f"{path}, line {at}")))
    return found


def _sheet(path: Path) -> pd.DataFrame:
    try:
        check_unpacked(path, _MOST_BYTES)
        table = pd.read_excel(path, dtype=str, keep_default_na=False)
    except ImportError:
        raise InputError(
            f"{path} needs openpyxl: pip install 'psyprobe[excel]', or save it as CSV"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or 'it is no workbook'}"
        ) from None
    except Exception:  # zip, XML and openpyxl end in errors of a dozen kinds
        raise InputError(f"{path} is no Excel workbook; save it again, or as CSV") from None
    if not len(table):
        raise InputError(f"{path} has no rows")
    # Cells that were never written come as numbers that are none.
    return table.where(table.notna(), "")


def _json(path: Path) -> pd.DataFrame:
    """A list of objects, one object a line, or pandas' columns of rows, as VLMEvalKit's .json may
    be.
    """
    try:
        found = parse_json(read_text(path), str(path))
    except InputError:
        found = [values for _, values in read_json_lines(path)]
    if (
        isinstance(found, dict)
        and found
        and all(isinstance(column, dict) for column in found.values())
    ):
        places = list(dict.fromkeys(place for column in found.values() for place in column))
        found = [{name: column.get(place) for name, column in found.items()} for place in places]
    rows = [found] if isinstance(found, dict) else found
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} is no list of objects; it should hold one for each item")
    if max(map(len, rows)) > _MOST_COLUMNS:
        raise InputError(
            f"{path} has more than {_MOST_COLUMNS:,} columns; is it a table of answers?"
        )
    return pd.DataFrame(
        [{_text(name): _text(value) for name, value in row.items()} for row in rows]
    ).fillna("")


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    # Halves of characters, which JSON can spell and no table can hold, are spelt out.
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def csv_table(table: pd.DataFrame, *, index: bool = False) -> str:
    """A table for people, as CSV: whatever its cells hold, no spreadsheet runs it."""
    return str(table.map(harmless).rename(index=harmless, columns=harmless).to_csv(index=index))


def encode_images(paths: Iterable[Path], indices: Iterable[object]) -> list[str]:
    """Encode images in base64, as VLMEvalKit wants them.

    An image that comes again is the index of its first row.
    """
    first_indices: dict[Path, str] = {}
    cells = []
    for path, index in zip(paths, indices, strict=True):
        if path in first_indices:
            cells.append(first_indices[path])
        else:
            first_indices[path] = str(index)
            cells.append(base64.b64encode(read_bytes(path)).decode())
    return cells


def write_tsv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as VLMEvalKit reads its data sets, whole or not at all."""
    how: dict[str, Any] = {
        "sep": "\t",
        "index": False,
        "quoting": csv.QUOTE_ALL,
        "lineterminator": "\n",
    }
    write_whole(path, lambda partial: table.to_csv(partial, **how))


def printed_name(model: str, known: Iterable[str]) -> str | None:
    """The name under which a paper prints a model, however it is written; None where it prints no
    such model.

    Case, signs, the "v" of a version, a maker before a slash, and "hf", "chat" and "instruct" at
    the end do not count; nor do "VL" or a size that one of the two leaves out, where only one
    printed model can be meant.

    Examples
    --------
    >>> printed_name("llava_v1.5_7b", ["LLaVA-1.5 (7B)", "LLaVA-1.5 (13B)"])
    'LLaVA-1.5 (7B)'
    >>> printed_name("liuhaotian/llava-v1.5-7b", ["LLaVA1.5", "LLaVANext"]), printed_name("llava", ["LLaVA1.5"])
    ('LLaVA1.5', None)
    """
    names = list(known)
    for dropped in ("", "vl"):
        stem, size = _stem_and_size(model, dropped)
        others = {
            name: each for name in names if (each := _stem_and_size(name, dropped))[0] == stem
        }
        equal = [name for name, each in others.items() if each[1] == size]
        near = equal or [name for name, each in others.items() if not (each[1] and size)]
        if len(near) == 1:
            return near[0]
    return None


def near_names(model: str, known: Iterable[str]) -> list[str]:
    """Write a note for a model that a paper does not print, if the paper has some like it."""
    names = {_plain_name(name): name for name in known}
    matches = difflib.get_close_matches(_plain_name(model), names, n=3, cutoff=0.7)
    near = ", ".join(names[match] for match in matches)
    return [f"{model}: no printed values stand under this name; near: {near}."] if near else []


def _stem_and_size(model: str, dropped: str) -> tuple[str, str]:
    """A plain name without some letters, and the size at its end ("7b") apart."""
    found = re.fullmatch(r"(.*?)\|?(\d+(?:\.\d+)?b)?", _plain_name(model))
    assert found is not None
    return found[1].replace(dropped, "") if dropped else found[1], found[2] or ""


def _plain_name(model: str) -> str:
    text = re.sub(r"(?<![a-z])v(?=\d)", "", model.lower().rsplit("/", 1)[-1])
    text = re.sub(r"(?:[-_ ](?:hf|chat|instruct))+$", "", text)
    # Numbers stay apart, so that a version does not run into a size.
    return re.sub(r"[^a-z0-9.|]", "", re.sub(r"(?<=\d)[^a-z0-9.]+(?=\d)", "|", text))


def all_metrics(metrics: Mapping[str, pd.DataFrame], format: str) -> str:
    """The metrics of all models, by model, with all digits, as "csv" or "json"."""
    listed = pd.concat(
        [table.assign(model=model) for model, table in metrics.items()], ignore_index=True
    )
    listed = listed[["model", *[name for name in listed if name != "model"]]]
    if format == "csv":
        return csv_table(listed).rstrip("\n")
    return str(listed.to_json(orient="records", indent=2, double_precision=15, force_ascii=False))


# -- scores
# ----------------------------------------------------------------------------------------------------------

#: What a responder reached in each metric: value and the ends of its interval.
MetricValues: TypeAlias = Mapping[Metric, tuple[float, float | None, float | None]]


@dataclass(frozen=True)
class TaskScore(Tabled):
    """A score as tables, scoreboards and files take it; see `psyprobe.analysis.score.Score`."""

    #: Of the result: observer, experiment and what else is told of the run.
    attributes: Mapping[str, Any]
    #: Of all intervals, in (0, 1).
    confidence: float
    #: Of the observer, and what was measured; empty where there is no choice.
    layer: str
    measure: str

    @property
    def observer(self) -> str:
        """Whose score."""
        return str(self.attributes["observer"])

    @property
    def experiment(self) -> str:
        """In what."""
        return str(self.attributes["experiment"])

    @property
    def random_weights(self) -> bool:
        """Whether the observer was not trained."""
        return bool(self.attributes["random_weights"])

    def rows(self) -> Sequence[Row]:
        """The observer first, then the trivial responders beside it."""
        raise NotImplementedError

    def row(
        self,
        table: str,
        responder: str,
        values: MetricValues,
        notes: Sequence[str] = (),
    ) -> Row:
        """What a responder reached in each metric: value and the ends of its interval."""
        told: dict[str, Any] = {
            name: getattr(self, name) for name in ("experiment", "observer", "layer")
        }
        told["responder"] = responder
        cells: dict[str, str] = {}
        entries: dict[Metric, Entry] = {}
        for metric, (value, low, high) in values.items():
            interval = (
                ""
                if low is None
                else f" [{number(low, metric.digits)}, {number(high, metric.digits)}]"
            )
            cells[metric.suffix] = number(value, metric.digits) + interval
            told |= {
                f"{metric.name}{part}": one
                for part, one in (("", value), ("_low", low), ("_high", high))
            }
            entries[metric] = Entry(value, low, high)
        label = "" if responder == OBSERVER else responder
        return Row(table, responder, label, cells, told, entries, notes)


def compare_readings(
    reader: str,
    differ: npt.NDArray[np.bool_],
    opposite: npt.NDArray[np.bool_],
    unread: npt.NDArray[np.bool_],
    score: Mapping[str, float | None],
) -> Rereading:
    """Summarise by masks how another reader reads replies, and what the score is under it."""
    shares = [float(mask.mean()) for mask in (differ, opposite, unread)]
    return Rereading(reader, len(differ), shares[0], shares[1], shares[2], score)


@dataclass(frozen=True)
class ReadScore(TaskScore):
    """A score of replies in words, which others may read otherwise."""

    #: How other readers differ from the one that counts, and what the score is under each.
    readings: tuple[Rereading, ...]

    @property
    def metrics(self) -> pd.DataFrame:
        """All metrics, one a row."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Convert readings and metrics to plain values."""
        return {
            "readings": [reading.to_dict() for reading in self.readings],
            "metrics": json.loads(self.metrics.to_json(orient="records", double_precision=15)),
        }

    def read_otherwise(self, unit: str, digits: int) -> list[Row]:
        """A row for each other reader that differs: in how many replies or items, and the score
        under it.
        """
        title = f"{self.observer}: the same replies read otherwise"
        return [
            Row(
                title,
                OBSERVER,
                reading.reader,
                {unit: str(reading.n)}
                | reading.cells
                | {name: number(value, digits) for name, value in reading.score.items()},
            )
            for reading in self.readings
            if reading.differ
        ]

    def read_alike(self) -> list[str]:
        """A remark that names the readers that do not differ."""
        alike = [reading.reader for reading in self.readings if not reading.differ]
        return [f"read alike by {' and by '.join(alike)}"] if alike else []


def by_observer(results: Sequence[xarray.Dataset]) -> dict[str, xarray.Dataset]:
    """Results by who was asked; in what, too, where they are of several experiments."""
    several = len({result.attrs["experiment"] for result in results}) > 1
    return {
        result.attrs["observer"] + (f", {result.attrs['experiment']}" if several else ""): result
        for result in results
    }


def place(ax: Axes | None, figure: SubFigure | None) -> Axes | None:
    """Where a probe draws its one panel: the axes that are given, or new ones of a figure that is
    given.
    """
    return ax if figure is None else figure.add_subplot()
