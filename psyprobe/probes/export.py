"""Export all answers of a store as one table, for analyses without psyprobe."""

from __future__ import annotations

import csv
import gc
import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from sys import intern
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import to_json

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import write_netcdf
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import harmless
from psyprobe.running.database import chunks
from psyprobe.running.protocol import DIGEST_DIGITS
from psyprobe.running.store import Store

if TYPE_CHECKING:
    import pandas as pd

#: A column by its name, and several.
Column: TypeAlias = tuple[str, list[Any]]
Columns: TypeAlias = dict[str, list[Any]]
_EPOCH = datetime(1970, 1, 1)
#: Rows that are in memory at once.
_PART = 500
#: Parts of a group of rows in a Parquet file.
_PARTS = 5


def export(store: Store, path: str | Path) -> int:
    """Write the answers of a store as a table, one row an answer.

    Parameters
    ----------
    store : Store
        An open store.
    path : str or Path
        ``.parquet``, ``.csv`` or ``.nc`` (NetCDF).

    Returns
    -------
    int
        Answers written.

    Raises
    ------
    InputError
        The ending is none of these, or there are no answers.
    PsyprobeError
        The file cannot be written, or what writes Parquet is not installed.
    """
    file = Path(path)
    if file.suffix not in _WRITERS:
        raise InputError(
            f"{file} is to be a table; give a name that ends in {', '.join(_WRITERS)}"
        )
    count = store.database.count("answer")
    if not count:
        raise InputError(f"{store.name} holds no answers; run an experiment first")
    with _paused_collector():
        write_whole(file, partial(_WRITERS[file.suffix], store, count))
    return count


def answer_tables(store: Store, count: int, size: int) -> Iterator[Columns]:
    """Iterate over tables of the first answers of a store, each of several answers in turn.

    Parameters
    ----------
    store : Store
        An open store.
    count : int
        Number of answers: others may come while a table is written.
    size : int
        Answers of one table.

    Yields
    ------
    dict
        Lists of cells by column: "question" (the key), "experiment", "observer", "version", "time"
        (UTC, milliseconds since 1970), "origin" (JSON), the "levels.", what is stored of the
        "request." and the "stimulus.", for pairs the parameters of "test." and "reference.",
        "values." by layer and measure, and the "answer." itself. Lists in cells are JSON.
    """
    pairs, measures = _read_pair_runs(store)
    answers = islice(store.all_answers(), count)
    while part := list(islice(answers, size)):
        digests: set[str] = set()
        for answered, _ in part:
            question = answered.question
            digests |= {question.observer, question.request, question.stimulus}
            digests.update(pairs.get(question.stimulus, ()))
        contents = store.contents(digests)
        # Many answers share an origin.
        origins = {id(answered.origin): answered.origin for answered, _ in part}
        origin_texts = {
            key: json.dumps(vars(origin), sort_keys=True)
            for key, origin in origins.items()
        }
        rows = []
        for answered, milliseconds in part:
            question = answered.question
            card = contents.get(question.observer, {})
            row = {
                "question": question.key,
                "experiment": answered.experiment,
                "observer": card.get("name", question.observer),
                "version": question.version,
                "time": milliseconds,
                "origin": origin_texts[id(answered.origin)],
                "levels": answered.levels,
                "request": contents.get(question.request, {}),
                "stimulus": contents.get(question.stimulus, {}),
            }
            pair = pairs.get(question.stimulus, ())
            for name, spec in zip(("test", "reference"), pair, strict=False):
                row[name] = contents.get(spec, {})
            row["values"] = _label_values(
                answered.answer.get("values"),
                card.get("features") or ["difference"],
                measures.get(question.request),
            )
            row["answer"] = answered.answer
            rows.append(row)
        yield _arrange(rows)


def export_trials(store: Store, path: str | Path) -> int:
    """Write the trials of all finished runs in words as CSV, one row a question.

    Parameters
    ----------
    store : Store
        An open store.
    path : str or Path
        ``.csv``; `psyprobe.probes.words.tidy.iterate_rows` says what the columns hold.

    Returns
    -------
    int
        Trials written.

    Raises
    ------
    InputError
        The ending is another one, or no finished run has trials.
    """
    from psyprobe.probes.words.tidy import count_rows, iterate_rows

    file = Path(path)
    if file.suffix != ".csv":
        raise InputError(f"{file} is to be a table of trials; give a name in .csv")
    records = [record for record in store.runs() if count_rows(record)]
    if not records:
        raise InputError(
            f"{store.name} has no finished run in words, and answers in numbers are no trials; "
            "export it without --tidy"
        )
    views = ((record, store.with_label(record.label)) for record in records)
    rows = chain.from_iterable(iterate_rows(*view) for view in views)
    write_whole(file, partial(_write_tables, map(_arrange, chunks(rows))))
    return sum(map(count_rows, records))


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Keep Python from looking for cycles within the block: rows are many, and in none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _build_table(store: Store, count: int) -> pd.DataFrame:
    """Build a table of the first `count` answers of a store, with times as dates."""
    import pandas as pd

    (columns,) = answer_tables(store, count, count)
    table = pd.DataFrame(columns)
    table["time"] = pd.to_datetime(table["time"], unit="ms")
    return table


def _read_pair_runs(
    store: Store,
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]]]:
    """Read test, reference and measures of questions about pairs, by digest."""
    from psyprobe.probes.pair_batches import pair_stimuli, request_digest

    pairs: dict[str, tuple[str, ...]] = {}
    measures: dict[str, list[str]] = {}
    for run in store.iterate_runs():
        layout = run.layout
        if {"pairs", "measures", "display", "version"} <= set(layout):
            stimuli = [stimulus[:DIGEST_DIGITS] for stimulus in pair_stimuli(layout)]
            # All pairs of a run may share one reference, whose digest is then one text.
            specs = (
                tuple(intern(spec[:DIGEST_DIGITS]) for spec in pair)
                for pair in layout["pairs"]
            )
            pairs |= zip(stimuli, specs, strict=True)
            measures[request_digest(layout)[:DIGEST_DIGITS]] = layout["measures"]
    return pairs, measures


def _label_values(
    values: Any, layers: list[str], measures: list[str] | None
) -> JsonObject:
    """Name each number of an answer by its layer and measure; by its measure of a single layer."""
    if measures is None or len(values) != len(layers):
        return {}
    tables = [dict(zip(measures, row, strict=True)) for row in values]
    return dict(zip(layers, tables, strict=True)) if len(layers) > 1 else tables[0]


def _arrange(rows: Sequence[JsonObject]) -> Columns:
    """Arrange nested rows as columns, with None where a row has no such column."""
    try:
        return dict(_flatten(rows))
    except KeyError:
        pass
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups[_shape_of(row)].append(index)
    columns: Columns = {}
    for indices in groups.values():
        for name, cells in _flatten([rows[index] for index in indices]):
            column = columns.setdefault(name, [None] * len(rows))
            for index, cell in zip(indices, cells, strict=True):
                column[index] = cell
    return columns


def _shape_of(table: JsonObject) -> tuple[Any, ...]:
    """Return the keys of a nested table, and those of tables in it."""
    tables = ((key, value) for key, value in table.items() if isinstance(value, dict))
    return (*table, *((key, _shape_of(value)) for key, value in tables))


def _flatten(tables: Sequence[JsonObject], prefix: str = "") -> Iterator[Column]:
    """Iterate over the columns of nested tables, by keys joined with points; lists become JSON.

    Raises
    ------
    KeyError
        The tables have not all the same keys.
    """
    first = tables[0]
    if {*map(len, tables)} != {len(first)}:
        raise KeyError
    for key in first:
        cells = [table[key] for table in tables]
        kinds = {*map(type, cells)}
        if kinds == {dict}:
            yield from _flatten(cells, f"{prefix}{key}.")
        elif dict in kinds:
            raise KeyError
        elif list in kinds:
            texts = [
                _json_text(cell) if isinstance(cell, list) else cell for cell in cells
            ]
            yield prefix + key, texts
        else:
            yield prefix + key, cells


def _json_text(values: list[Any]) -> str:
    """Write a list as JSON, in a tenth of the time of the `json` module."""
    try:
        return to_json(values).decode()
    except ValueError:
        # It refuses half a surrogate pair, which a reply may end with.
        return json.dumps(values)


def _write_csv(store: Store, count: int, path: Path) -> None:
    """Write the first answers of a store as CSV, part by part."""
    _write_tables(answer_tables(store, count, _PART), path)


def _write_tables(tables: Iterable[Columns], path: Path) -> None:
    """Write tables with a time as one CSV, one by one; their columns need not be the same."""
    names: dict[str, None] = {}
    with (
        TemporaryFile(dir=path.parent) as body,
        path.open("w", newline="", encoding="utf-8") as file,
    ):
        count = 0
        for table in tables:
            times = [_EPOCH + timedelta(milliseconds=time) for time in table["time"]]
            table["time"] = [time.isoformat(" ", "milliseconds") for time in times]
            names |= dict.fromkeys(table)
            pickle.dump(table, body)
            count += 1
        body.seek(0)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for _ in range(count):
            table = pickle.load(body)
            empty = [None] * len(table["time"])
            columns = [map(harmless, table.get(name, empty)) for name in names]
            writer.writerows(zip(*columns, strict=True))


def _write_parquet(store: Store, count: int, path: Path) -> None:
    """Write the first answers of a store as a Parquet file, part by part."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise PsyprobeError(
            "Parquet needs pyarrow; pip install psyprobe[parquet], or write .csv or .nc"
        ) from None
    schemas = []
    with TemporaryFile(dir=path.parent) as parts:
        # Which columns there are is known at the end, as later answers may have others.
        tables = map(pyarrow.table, answer_tables(store, count, _PART))
        while group := list(islice(tables, _PARTS)):
            joined = pyarrow.concat_tables(group, promote_options="permissive")
            table = joined.combine_chunks()
            schemas.append(table.schema)
            with pyarrow.ipc.new_stream(parts, table.schema) as stream:
                stream.write_table(table)
        schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
        time = pyarrow.field("time", pyarrow.timestamp("ms"))
        schema = schema.set(schema.get_field_index("time"), time)
        parts.seek(0)
        with parquet.ParquetWriter(path, schema) as writer:
            for _ in schemas:
                table = pyarrow.ipc.open_stream(parts).read_all()
                for name in set(schema.names) - set(table.column_names):
                    table = table.append_column(name, pyarrow.nulls(len(table)))
                writer.write_table(table.select(schema.names).cast(schema))


def _write_netcdf(store: Store, count: int, path: Path) -> None:
    """Write the first `count` answers of a store as a NetCDF file."""
    import xarray

    # NetCDF allows no "/" in names, and has neither missing text nor booleans.
    columns = {
        str(name).replace("/", "_"): ("answer", _uniform_column(column).to_numpy())
        for name, column in _build_table(store, count).items()
    }
    write_netcdf(xarray.Dataset(columns), path)


def _uniform_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a column to numbers or text; leave times as they are."""
    if column.name == "time":
        return column
    if all(isinstance(cell, bool | int | float) for cell in column.dropna()):
        return column.astype(float)
    return column.fillna("").astype(str)


_WRITERS: dict[str, Callable[[Store, int, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".nc": _write_netcdf,
}
