"""Export all answers of a store as one table, for analyses without psyprobe."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe._json import JsonObject
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import harmless
from psyprobe.running.protocol import DIGEST_DIGITS
from psyprobe.running.store import Store

if TYPE_CHECKING:
    import pandas as pd


def export(store: Store, path: str | Path) -> int:
    """Write the answers of a store as a table with one row for each answer.

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
    table = answer_table(store)
    if table.empty:
        raise InputError(f"{store.name} holds no answers; run an experiment first")
    write_whole(file, partial(_WRITERS[file.suffix], table))
    return len(table)


def answer_table(store: Store) -> pd.DataFrame:
    """Tabulate the answers of a store in the order in which they came.

    Parameters
    ----------
    store : Store
        An open store.

    Returns
    -------
    pandas.DataFrame
        One row for each answer: "question" (the key), "experiment", "observer", "version", "time"
        (UTC), "origin" (JSON), the "levels.", what is stored of the "request." and the "stimulus.",
        for pairs the parameters of "test." and "reference.", "values." by layer and measure, and
        the "answer." itself. Lists are JSON.
    """
    import pandas as pd

    contents = {name: value for name, _, value in store.all_contents()}
    pairs, measures = _read_pair_runs(store)
    rows = []
    for answered, milliseconds in store.all_answers():
        question = answered.question
        card = contents.get(question.observer, {})
        row = {
            "question": question.key,
            "experiment": answered.experiment,
            "observer": card.get("name", question.observer),
            "version": question.version,
            "time": pd.Timestamp(milliseconds, unit="ms"),
            "origin": json.dumps(asdict(answered.origin), sort_keys=True),
            **_flatten("levels", answered.levels),
            **_flatten("request", contents.get(question.request, {})),
            **_flatten("stimulus", contents.get(question.stimulus, {})),
        }
        pair = pairs.get(question.stimulus, ())
        for name, spec in zip(("test", "reference"), pair, strict=False):
            row |= _flatten(name, contents.get(spec[:DIGEST_DIGITS], {}))
        row |= _label_values(
            answered.answer.get("values"),
            card.get("features") or ["difference"],
            measures.get(question.request),
        )
        rows.append(row | _flatten("answer", answered.answer))
    return pd.DataFrame(rows)


def _read_pair_runs(
    store: Store,
) -> tuple[dict[str, tuple[str, str]], dict[str, list[str]]]:
    """Read test and reference by stimulus digest, and measures by request, from runs of pairs."""
    from psyprobe.probes.pair_batches import request_digest, stimulus_digests

    pairs: dict[str, tuple[str, str]] = {}
    measures: dict[str, list[str]] = {}
    for run in store.runs():
        layout = run.layout
        if {"pairs", "measures", "display", "version"} <= set(layout):
            stimuli = [
                stimulus[:DIGEST_DIGITS] for stimulus in stimulus_digests(layout)
            ]
            pairs |= zip(stimuli, map(tuple, layout["pairs"]), strict=True)
            measures[request_digest(layout)[:DIGEST_DIGITS]] = layout["measures"]
    return pairs, measures


def _label_values(
    values: Any, layers: list[str], measures: list[str] | None
) -> dict[str, float]:
    """Name each number by its layer, where there are several, and its measure."""
    if measures is None or len(values) != len(layers):
        return {}
    columns = {}
    for layer, row in zip(layers, values, strict=True):
        prefix = f"values.{layer}" if len(layers) > 1 else "values"
        for measure, value in zip(measures, row, strict=True):
            columns[f"{prefix}.{measure}"] = value
    return columns


def _flatten(prefix: str, value: Any) -> JsonObject:
    """Flatten a nested table to one whose keys are joined with points; lists become JSON."""
    if not isinstance(value, Mapping):
        return {prefix: json.dumps(value) if isinstance(value, list) else value}
    entries: JsonObject = {}
    for key, element in value.items():
        entries |= _flatten(f"{prefix}.{key}", element)
    return entries


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    table.map(harmless).to_csv(path, index=False)


def _write_parquet(table: pd.DataFrame, path: Path) -> None:
    try:
        table.to_parquet(path, engine="pyarrow", index=False)
    except ImportError:
        raise PsyprobeError(
            "Parquet needs pyarrow; pip install psyprobe[parquet], or write .csv or .nc"
        ) from None


def _write_netcdf(table: pd.DataFrame, path: Path) -> None:
    import xarray

    # NetCDF allows no "/" in names, and has neither missing text nor booleans.
    columns = {
        str(name).replace("/", "_"): ("answer", _uniform_column(column).to_numpy())
        for name, column in table.items()
    }
    xarray.Dataset(columns).to_netcdf(path, engine="scipy")


def _uniform_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a column to numbers or text; leave times as they are."""
    if column.name == "time":
        return column
    if all(isinstance(cell, bool | int | float) for cell in column.dropna()):
        return column.astype(float)
    return column.fillna("").astype(str)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".nc": _write_netcdf,
}
