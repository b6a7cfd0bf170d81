"""All answers of a store as one table, for whoever works on without psyprobe."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import harmless
from psyprobe.running.protocol import DIGEST_DIGITS
from psyprobe.running.store import Store

if TYPE_CHECKING:
    import pandas as pd


def export(store: Store, path: str | Path) -> int:
    """Write the answers of a store as a table, a row each.

    Parameters
    ----------
    store : Store
        Opened.
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
        raise InputError(f"{file} is to be a table; give a name that ends in {', '.join(_WRITERS)}")
    table = answer_table(store)
    if table.empty:
        raise InputError(f"{store.name} holds no answers; run an experiment first")
    write_whole(file, partial(_WRITERS[file.suffix], table))
    return len(table)


def answer_table(store: Store) -> pd.DataFrame:
    """The answers of a store in the order in which they came.

    Parameters
    ----------
    store : Store
        Opened.

    Returns
    -------
    pandas.DataFrame
        A row each: "question" (the key), "experiment", "observer", "version", "time" (UTC),
        "origin" (JSON), the "levels.", what is stored of the "request." and the "stimulus.", of
        pairs the parameters "test." and "reference.", "values." by layer and measure, and the
        "answer." itself; lists as JSON.
    """
    import pandas as pd

    contents = {name: value for name, _, value in store.all_contents()}
    pairs, measures = _pairs(store)
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
            **_flat("levels", answered.levels),
            **_flat("request", contents.get(question.request, {})),
            **_flat("stimulus", contents.get(question.stimulus, {})),
        }
        for name, spec in zip(
            ("test", "reference"), pairs.get(question.stimulus, ()), strict=False
        ):
            row |= _flat(name, contents.get(spec[:DIGEST_DIGITS], {}))
        row |= _values(
            answered.answer.get("values"),
            card.get("features") or ["difference"],
            measures,
            question.request,
        )
        rows.append(row | _flat("answer", answered.answer))
    return pd.DataFrame(rows)


def _pairs(store: Store) -> tuple[dict[str, tuple[str, str]], dict[str, list[str]]]:
    """Test and reference by what was shown, and measures by what was asked, in all runs about
    pairs.
    """
    from psyprobe.probes.pair_batches import request_digest, stimulus_digests

    pairs: dict[str, tuple[str, str]] = {}
    measures: dict[str, list[str]] = {}
    for run in store.runs():
        layout = run.layout
        if {"pairs", "measures", "display", "version"} <= set(layout):
            pairs |= zip(
                (stimulus[:DIGEST_DIGITS] for stimulus in stimulus_digests(layout)),
                map(tuple, layout["pairs"]),
                strict=True,
            )
            measures[request_digest(layout)[:DIGEST_DIGITS]] = layout["measures"]
    return pairs, measures


def _values(
    values: Any, layers: list[str], measures: Mapping[str, list[str]], request: str
) -> dict[str, float]:
    """Numbers by layer, where there are several, and measure."""
    named = measures.get(request)
    if named is None or len(values) != len(layers):
        return {}
    return {
        ".".join(["values", *([layer] if len(layers) > 1 else []), measure]): value
        for layer, row in zip(layers, values, strict=True)
        for measure, value in zip(named, row, strict=True)
    }


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    """The entries of a nested table by their names joined with points; lists as JSON."""
    if isinstance(value, Mapping):
        return {
            name: entry
            for key, each in value.items()
            for name, entry in _flat(f"{prefix}.{key}", each).items()
        }
    return {prefix: json.dumps(value) if isinstance(value, list) else value}


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

    # NetCDF knows no "/" in names, no missing text and no truth.
    columns = {
        str(name).replace("/", "_"): ("answer", _column(column).to_numpy())
        for name, column in table.items()
    }
    xarray.Dataset(columns).to_netcdf(path, engine="scipy")


def _column(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of numbers, of times or of text."""
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
