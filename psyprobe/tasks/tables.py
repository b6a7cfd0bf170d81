"""Tables and scores of benchmarks: answers from elsewhere, metrics of models, rows of scores."""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pandas as pd

from psyprobe._typing import BoolArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.score import (
    OBSERVER,
    Entry,
    Metric,
    Row,
    Tabled,
    interval_text,
    number,
)
from psyprobe.analysis.words.readers import Rereading
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.arrays import check_unpacked
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import write_whole
from psyprobe.files.parsing import packaged_text, parse_json, read_bytes, read_text
from psyprobe.files.terminal import harmless

if TYPE_CHECKING:
    import xarray


#: Most columns of a table, and most bytes and cells of an unpacked workbook.
_MAX_COLUMNS = 10_000
_MAX_BYTES = 30_000_000
_MAX_CELLS = 1_000_000


def read_answer_table(path: str | Path) -> pd.DataFrame:
    """Read a table of answers as text: .csv, .tsv, .xlsx, .json or .jsonl.

    A .json file holds a list of objects, or the columns of a table as pandas writes them.

    Raises
    ------
    InputError
        It is no such table, or has no rows.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix in (".json", ".jsonl"):
        return _read_json(file)
    if suffix == ".xlsx":
        return _read_workbook(file)
    if suffix in (".csv", ".tsv"):
        return read_table(file, (), "\t" if suffix == ".tsv" else ",")[0]
    raise InputError(
        f"{path} is no table of answers; give .csv, .tsv, .xlsx, .json or .jsonl"
    )


def read_table(
    path: str | Path, columns: tuple[str, ...], separator: str = ","
) -> tuple[pd.DataFrame, str]:
    """Read a CSV with required columns as text, and return its encoding too."""
    text, encoding = _decode(read_bytes(path), path)
    _check_width(text.partition("\n")[0].count(separator) + 1, path)
    try:
        table = pd.read_csv(
            io.StringIO(text), dtype=str, keep_default_na=False, sep=separator
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is no CSV: {error}") from None
    require_columns(table, columns, str(path))
    return table, encoding


def first_column(table: pd.DataFrame, names: Sequence[str]) -> str | None:
    """Find the first of some column names that a table has."""
    return next((name for name in names if name in table), None)


def require_columns(table: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    """Refuse a table that lacks a column, or has no rows."""
    missing = [column for column in columns if column not in table]
    if missing:
        raise InputError(
            f"{name} has no column {missing[0]!r}; it needs {', '.join(columns)}"
        )
    if not len(table):
        raise InputError(f"{name} has no rows")


def refuse_duplicates(
    names: pd.Series, subject: str, problem: str = "is there twice; keep one of them"
) -> None:
    """Refuse names of which one comes twice, in a sentence "SUBJECT NAME PROBLEM"."""
    duplicates = names[names.duplicated()]
    if len(duplicates):
        raise InputError(f"{subject} {duplicates.iloc[0]} {problem}")


def read_packaged_table(package: str, name: str) -> pd.DataFrame:
    """Read a CSV from the folder `data` of a package, all cells as text."""
    text = io.StringIO(packaged_text(package, "data", name))
    return pd.read_csv(text, comment="#", dtype=str, keep_default_na=False)


def round_half_up(value: float, digits: int) -> str:
    """Round a number, halves upwards.

    Examples
    --------
    >>> round_half_up(0.285, 2)
    '0.29'
    """
    step = 10**digits
    # The small term keeps a binary fraction from falling under its decimal half.
    return f"{int(value * step + 0.5 + 1e-9) / step:.{digits}f}"


def read_json_lines(path: str | Path) -> list[tuple[int, Any]]:
    """Read the non-blank lines of a JSON Lines file, with their numbers from 1."""
    # Not splitlines: a reply may hold a Unicode line separator, which JSON leaves as it is.
    return [
        (line_number, parse_json(line, f"{path}, line {line_number}"))
        for line_number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]


def _decode(raw: bytes, path: str | Path) -> tuple[str, str]:
    """Decode text as UTF-8 or GBK, and return it with its encoding."""
    # Text in GBK is hardly ever valid UTF-8, and the other way round it often is: so UTF-8 is tried
    # first.
    for encoding, codec in (("UTF-8", "utf-8-sig"), ("GBK", "GBK")):
        with suppress(UnicodeDecodeError):
            return raw.decode(codec), encoding
    raise InputError(f"{path} is neither UTF-8 nor GBK; save it as CSV in UTF-8")


def _check_width(column_count: int, path: str | Path) -> None:
    """Refuse a table with too many columns."""
    if column_count > _MAX_COLUMNS:
        raise InputError(
            f"{path} has more than {_MAX_COLUMNS:,} columns; is it a table of answers?"
        )


def _read_workbook(path: Path) -> pd.DataFrame:
    """Read an Excel workbook as text, refusing one that is too large or damaged."""
    try:
        check_unpacked(path, _MAX_BYTES)
        _check_cells(path)
        table = pd.read_excel(path, dtype=str, keep_default_na=False)
    except ImportError:
        raise InputError(
            f"{path} needs openpyxl: pip install 'psyprobe[excel]', or save it as CSV"
        ) from None
    except InputError as error:
        raise InputError(f"{path} cannot be read: {error}; save it as CSV") from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or 'it is no workbook'}"
        ) from None
    except Exception:  # zip, XML and openpyxl end in errors of a dozen kinds
        raise InputError(
            f"{path} is no Excel workbook; save it again, or as CSV"
        ) from None
    if not len(table):
        raise InputError(f"{path} has no rows")
    # Cells that were never written come as NaN.
    return table.where(table.notna(), "")


def _check_cells(path: Path) -> None:
    """Refuse a workbook that claims too many cells, empty ones included."""
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    # Opened here: openpyxl leaves a file open that it cannot read.
    with path.open("rb") as file:
        sheet = load_workbook(file, read_only=True).worksheets[0]
        sheet.reset_dimensions()
        cell_count = 0
        for row in sheet.iter_rows(values_only=True):
            cell_count += len(row) or 1
            if cell_count > _MAX_CELLS:
                raise InputError(f"it has more than {_MAX_CELLS:,} cells")


def _read_json(path: Path) -> pd.DataFrame:
    """Read a JSON table: a list of objects, JSON lines, or columns of rows."""
    try:
        data = parse_json(read_text(path), str(path))
    except InputError:
        data = [values for _, values in read_json_lines(path)]
    if isinstance(data, dict):
        columns = data.values()
        if data and all(isinstance(column, dict) for column in columns):
            labels = dict.fromkeys(itertools.chain.from_iterable(columns))
            data = [{name: data[name].get(label) for name in data} for label in labels]
        else:
            data = [data]
    if not isinstance(data, list) or {*map(type, data)} != {dict}:
        raise InputError(
            f"{path} is no list of objects; it should hold one for each item"
        )
    _check_width(max(map(len, data)), path)
    return pd.DataFrame(
        [
            {_to_text(name): _to_text(value) for name, value in row.items()}
            for row in data
        ]
    ).fillna("")


def _to_text(value: Any) -> str:
    """Convert a cell to text, the first entry of a list, with broken characters escaped."""
    if isinstance(value, list):
        value = value[0] if value else ""
    # Halves of characters, which JSON can spell and no table can hold, are spelt out.
    return (
        "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()
    )


def csv_table(table: pd.DataFrame, *, index: bool = False) -> str:
    """Format a table as CSV in which a spreadsheet runs no cell as a formula."""
    return str(
        table.map(harmless).rename(index=harmless, columns=harmless).to_csv(index=index)
    )


def write_tsv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as a TSV file for VLMEvalKit, never leaving half of one."""
    write_whole(
        path,
        lambda partial: table.to_csv(
            partial, sep="\t", index=False, quoting=csv.QUOTE_ALL, lineterminator="\n"
        ),
    )


def printed_name(model: str, printed_names: Iterable[str]) -> str | None:
    """Find the name under which a paper prints a model; None if it prints no such model.

    Case, signs, the "v" of a version, a maker before a slash, and "hf", "chat" and "instruct" at
    the end do not count; nor do "VL" or a size that one of the two leaves out, where only one
    printed model can be meant.

    Examples
    --------
    >>> printed_name("llava_v1.5_7b", ["LLaVA-1.5 (7B)", "LLaVA-1.5 (13B)"])
    'LLaVA-1.5 (7B)'
    >>> printed_name("liuhaotian/llava-v1.5-7b", ["LLaVA1.5", "LLaVANext"])
    'LLaVA1.5'
    >>> printed_name("llava", ["LLaVA1.5"]) is None
    True
    """
    names = list(printed_names)
    for letters in ("", "vl"):
        stem, size = _stem_and_size(model, letters)
        sizes = {}
        for name in names:
            printed_stem, printed_size = _stem_and_size(name, letters)
            if printed_stem == stem:
                sizes[name] = printed_size
        matches = [name for name in sizes if sizes[name] == size]
        if not matches:
            matches = [name for name in sizes if not (sizes[name] and size)]
        if len(matches) == 1:
            return matches[0]
    return None


def find_printed(model: str, printed: pd.DataFrame) -> tuple[str | None, list[str]]:
    """Find a model in a paper's table, or a note that names similar ones."""
    printed_names = list(printed["model"].unique())
    name = printed_name(model, printed_names)
    names = {_plain_name(name): name for name in printed_names}
    matches = difflib.get_close_matches(_plain_name(model), names, n=3, cutoff=0.7)
    if name is not None or not matches:
        return name, []
    near = ", ".join(names[match] for match in matches)
    note = f"{model}: no printed values stand under this name; near: {near}."
    return None, [note]


def printed_rows(printed: pd.DataFrame, model: str, paper: str) -> pd.DataFrame:
    """Select a model's rows in a paper's table, refusing one that is not there."""
    rows = printed[printed["model"] == model]
    if not len(rows):
        names = sorted(set(printed["model"]))
        raise unknown_name(f"model of the {paper} paper", model, names)
    return rows


def printed_label(model: str, name: str) -> str:
    """Write the label of a printed table row, with the printed name if it differs."""
    return "  as printed" if name == model else f"  as printed ({name})"


def _stem_and_size(model: str, letters: str) -> tuple[str, str]:
    """Split a plain model name, without some letters, from the size at its end ("7b")."""
    match = re.fullmatch(r"(.*?)\|?(\d+(?:\.\d+)?b)?", _plain_name(model))
    assert match is not None
    return match[1].replace(letters, ""), match[2] or ""


def _plain_name(model: str) -> str:
    """Reduce a model's name to lower-case letters and numbers, to compare names."""
    text = re.sub(r"(?<![a-z])v(?=\d)", "", model.lower().rsplit("/", 1)[-1])
    text = re.sub(r"(?:[-_ ](?:hf|chat|instruct))+$", "", text)
    # Numbers stay apart, so that a version does not run into a size.
    return re.sub(r"[^a-z0-9.|]", "", re.sub(r"(?<=\d)[^a-z0-9.]+(?=\d)", "|", text))


def all_metrics(metrics: Mapping[str, pd.DataFrame], format: str) -> str:
    """Format the metrics of all models with all digits, as CSV or JSON."""
    combined = pd.concat(metrics, names=["model"]).reset_index("model")
    if format == "csv":
        return csv_table(combined).rstrip("\n")
    return str(
        combined.to_json(
            orient="records", indent=2, double_precision=15, force_ascii=False
        )
    )


#: What a responder reached in each metric: value and the ends of its interval.
MetricValues: TypeAlias = Mapping[Metric, tuple[float, float | None, float | None]]


@dataclass(frozen=True)
class TaskScore(Tabled):
    """A score as tables, scoreboards and files take it; see `psyprobe.analysis.score.Score`."""

    #: Attributes of the result: observer, experiment, options of the run.
    attributes: JsonMapping
    #: Coverage of all intervals, in (0, 1).
    confidence: float
    #: Layer of the observer, and measure; empty where there is no choice.
    layer: str = field(default="", kw_only=True)
    measure: str = field(default="", kw_only=True)
    #: What intervals speak of, in the plural.
    population: ClassVar[str] = ""

    @property
    def observer(self) -> str:
        """The name of the observer."""
        return str(self.attributes["observer"])

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return str(self.attributes["experiment"])

    @property
    def random_weights(self) -> bool:
        """Tell whether the observer's weights are random."""
        return bool(self.attributes["random_weights"])

    def rows(self) -> Sequence[Row]:
        """Build the table rows of the observer, then of trivial responders."""
        raise NotImplementedError

    def row(
        self,
        table: str,
        responder: str,
        values: MetricValues,
        notes: Sequence[str] = (),
        samples: Mapping[Metric, Sample] | None = None,
    ) -> Row:
        """Make a responder's row: each metric with its interval, and unit by unit if known."""
        record: JsonObject = {
            "experiment": self.experiment,
            "observer": self.observer,
            "layer": self.layer,
            "responder": responder,
        }
        cells: dict[str, str] = {}
        entries: dict[Metric, Entry] = {}
        for metric, (value, low, high) in values.items():
            cells[metric.suffix] = interval_text(value, low, high, metric.digits)
            record[metric.name] = value
            record[f"{metric.name}_low"] = low
            record[f"{metric.name}_high"] = high
            sample = (samples or {}).get(metric)
            over = "" if low is None else self.population
            entries[metric] = Entry(value, low, high, over=over, sample=sample)
        label = "" if responder == OBSERVER else responder
        return Row(table, responder, label, cells, record, entries, notes)


def compare_readings(
    reader: str,
    masks: Sequence[BoolArray],
    score: Mapping[str, float | None],
) -> Rereading:
    """Summarise how another reader reads replies: shares of different and unread ones."""
    differ, opposite, unread = (float(mask.mean()) for mask in masks)
    return Rereading(reader, len(masks[0]), differ, opposite, unread, score)


@dataclass(frozen=True)
class ReadScore(TaskScore):
    """A score of replies in words, with what it would be under other readers."""

    #: How other readers differ from the one that counts, and the score under each.
    readings: tuple[Rereading, ...]

    @property
    def metrics(self) -> pd.DataFrame:
        """The table of all metrics, one a row."""
        raise NotImplementedError

    def to_dict(self) -> JsonObject:
        """Return readings and metrics as JSON values."""
        return {
            "readings": [reading.to_dict() for reading in self.readings],
            "metrics": json.loads(
                self.metrics.to_json(orient="records", double_precision=15)
            ),
        }

    def read_otherwise(self, unit: str, digits: int) -> list[Row]:
        """Build a table row for each reader that reads replies differently, with its score."""
        title = f"{self.observer}: the same replies read otherwise"
        rows = []
        for reading in self.readings:
            if reading.differ:
                cells = {unit: str(reading.n), **reading.cells}
                for name, value in reading.score.items():
                    cells[name] = number(value, digits)
                rows.append(Row(title, OBSERVER, reading.reader, cells))
        return rows

    def read_alike(self) -> list[str]:
        """Write a remark that names the readers that read all replies alike, if any."""
        alike = [reading.reader for reading in self.readings if not reading.differ]
        return [f"read alike by {' and by '.join(alike)}"] if alike else []


def by_observer(results: Sequence[xarray.Dataset]) -> dict[str, xarray.Dataset]:
    """Map results by observer name, with the experiment if there are several."""
    several = len({result.attrs["experiment"] for result in results}) > 1
    return {
        result.attrs["observer"]
        + (f", {result.attrs['experiment']}" if several else ""): result
        for result in results
    }
