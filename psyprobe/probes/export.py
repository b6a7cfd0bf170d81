"""Export all answers of a store as one table, for analyses without psyprobe."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from sys import intern
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

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

_EPOCH = datetime(1970, 1, 1)
#: Rows of a Parquet file that are in memory at once.
_PART = 5000


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
    write_whole(file, partial(_WRITERS[file.suffix], store, count))
    return count


def answer_rows(store: Store, count: int) -> Iterator[JsonObject]:
    """Iterate over table rows of the first answers of a store.

    Parameters
    ----------
    store : Store
        An open store.
    count : int
        Number of answers: others may come while a table is written.

    Yields
    ------
    dict
        "question" (the key), "experiment", "observer", "version", "time" (UTC, milliseconds since
        1970), "origin" (JSON), the "levels.", what is stored of the "request." and the "stimulus.",
        for pairs the parameters of "test." and "reference.", "values." by layer and measure, and
        the "answer." itself. Lists are JSON.
    """
    pairs, measures = _read_pair_runs(store)
    for chunk in chunks(islice(store.all_answers(), count)):
        digests: set[str] = set()
        for answered, _ in chunk:
            question = answered.question
            digests |= {question.observer, question.request, question.stimulus}
            digests.update(pairs.get(question.stimulus, ()))
        contents = store.contents(digests)
        # Many answers share a request, a reference and an origin.
        columns = cache(partial(_content_columns, contents))
        origins = {id(answered.origin): answered.origin for answered, _ in chunk}
        origin_texts = {
            key: json.dumps(vars(origin), sort_keys=True)
            for key, origin in origins.items()
        }
        for answered, milliseconds in chunk:
            question = answered.question
            card = contents.get(question.observer, {})
            row = {
                "question": question.key,
                "experiment": answered.experiment,
                "observer": card.get("name", question.observer),
                "version": question.version,
                "time": milliseconds,
                "origin": origin_texts[id(answered.origin)],
                **_flatten("levels", answered.levels),
                **columns("request", question.request),
                **columns("stimulus", question.stimulus),
            }
            pair = pairs.get(question.stimulus, ())
            for name, spec in zip(("test", "reference"), pair, strict=False):
                row |= columns(name, spec)
            row |= _label_values(
                answered.answer.get("values"),
                card.get("features") or ["difference"],
                measures.get(question.request),
            )
            yield row | _flatten("answer", answered.answer)


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
    write_whole(file, partial(_write_rows, rows))
    return sum(map(count_rows, records))


def _build_table(store: Store, count: int) -> pd.DataFrame:
    """Build a table of the first `count` answers of a store, with times as dates."""
    import pandas as pd

    table = pd.DataFrame(_columns_of(list(answer_rows(store, count))))
    table["time"] = pd.to_datetime(table["time"], unit="ms")
    return table


def _content_columns(contents: dict[str, Any], prefix: str, digest: str) -> JsonObject:
    """Flatten what is stored under a digest to columns; none if nothing is."""
    return _flatten(prefix, contents.get(digest, {}))


def _read_pair_runs(
    store: Store,
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]]]:
    """Read test, reference and measures of questions about pairs, by digest."""
    from psyprobe.probes.pair_batches import request_digest, stimulus_digests

    pairs: dict[str, tuple[str, ...]] = {}
    measures: dict[str, list[str]] = {}
    for run in store.runs():
        layout = run.layout
        if {"pairs", "measures", "display", "version"} <= set(layout):
            stimuli = [
                stimulus[:DIGEST_DIGITS] for stimulus in stimulus_digests(layout)
            ]
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
) -> dict[str, float]:
    """Name each number of an answer by its layer and measure."""
    if measures is None or len(values) != len(layers):
        return {}
    columns = {}
    for layer, row in zip(layers, values, strict=True):
        prefix = f"values.{layer}" if len(layers) > 1 else "values"
        for measure, value in zip(measures, row, strict=True):
            columns[f"{prefix}.{measure}"] = value
    return columns


def _flatten(prefix: str, value: Any) -> JsonObject:
    """Flatten a nested table to keys joined with points, lists as JSON."""
    if not isinstance(value, dict):
        return {prefix: json.dumps(value) if isinstance(value, list) else value}
    entries: JsonObject = {}
    for key, element in value.items():
        if isinstance(element, dict | list):
            entries |= _flatten(f"{prefix}.{key}", element)
        else:
            entries[f"{prefix}.{key}"] = element
    return entries


def _write_csv(store: Store, count: int, path: Path) -> None:
    """Write the first answers of a store as CSV, row by row."""
    _write_rows(answer_rows(store, count), path)


def _write_rows(rows: Iterable[JsonObject], path: Path) -> None:
    """Write rows with a time as CSV, one by one; their columns need not be the same."""
    columns: dict[str, None] = {}
    with (
        TemporaryFile(dir=path.parent) as body,
        path.open("w", newline="", encoding="utf-8") as file,
    ):
        count = 0
        for row in rows:
            time = _EPOCH + timedelta(milliseconds=row["time"])
            row["time"] = time.isoformat(" ", "milliseconds")
            columns |= dict.fromkeys(row)
            pickle.dump([row.get(name) for name in columns], body)
            count += 1
        body.seek(0)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for _ in range(count):
            cells = pickle.load(body)
            cells += [None] * (len(columns) - len(cells))
            writer.writerow(map(harmless, cells))


def _write_parquet(store: Store, count: int, path: Path) -> None:
    """Write the first answers of a store as a Parquet file, part by part."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise PsyprobeError(
            "Parquet needs pyarrow; pip install psyprobe[parquet], or write .csv or .nc"
        ) from None
    rows = answer_rows(store, count)
    schemas = []
    with TemporaryFile(dir=path.parent) as parts:
        # Which columns there are is known at the end, as later answers may have others.
        while part := list(islice(rows, _PART)):
            table = pyarrow.table(_columns_of(part))
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


def _columns_of(rows: Sequence[JsonObject]) -> dict[str, list[Any]]:
    """Turn rows into columns, with None where a row has no such column."""
    names = dict.fromkeys(chain.from_iterable(rows))
    return {name: [row.get(name) for row in rows] for name in names}


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
