"""Score the answers of a run, as ``scores.json`` holds it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.score import OBSERVER, Entry, Metric, Row, Score
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import plain_value, software_versions
from psyprobe.probes.experiments import finished_results, merge_results
from psyprobe.probes.results import score_layers
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store

if TYPE_CHECKING:
    from xarray import Dataset


#: By what curves of sensitivity are ranked: their shape, whatever their height.
SHAPE = Metric("shape_rmse_log10", "RMSE of the shape, log10", False, 2)
#: Levels of a curve of which fewer are no shape.
_FEWEST_LEVELS = 3


def score_records(
    run: JsonMapping, records: Sequence[RunRecord], store: Store
) -> JsonObject:
    """Score a run from its answers.

    Parameters
    ----------
    run : mapping
        What ``run.json`` holds.
    records : sequence of RunRecord
        The run, one record for each variant.
    store : Store
        Holds the answers; it is left without the run.

    Returns
    -------
    dict
        What ``scores.json`` holds.
    """
    scores = [
        score
        for result in load_records(records, store)
        for score in score_layers(result)
    ]
    rows = [list(score.rows()) for score in scores]
    versions = software_versions()
    return {
        "schema": "psyprobe-scores/1",
        "run": run["run"],
        "answers_sha256": run["answers"]["sha256"],
        "scored_by": {name: versions[name] for name in ("psyprobe", "numpy", "scipy")},
        "scores": [_finite(score.to_dict()) for score in scores],
        "board": [*chain(*map(board_entries, scores, rows))],
        "main": [*chain(*map(main_scores, scores, rows))],
    }


def load_records(records: Sequence[RunRecord], store: Store) -> list[Dataset]:
    """Load the result of a run, of which a store holds the answers alone."""
    results, _ = finished_results(store, records)
    if not results:
        raise InputError(
            "it is not finished; run the experiment again to go on with it"
        )
    return merge_results(results)


def main_scores(score: Score, rows: Sequence[Row]) -> Iterator[JsonObject]:
    """Iterate over the numbers by which a score's observer is ranked, from all rows."""
    for row in rows:
        if row.responder != OBSERVER:
            continue
        for metric, entry in row.entries.items():
            values = {
                "metric": metric.name,
                "layer": score.layer,
                "measure": score.measure,
                "value": entry.value,
                "low": entry.low,
                "high": entry.high,
                "confidence": score.confidence,
                "lower_is_better": not metric.more_is_better,
                "flags": list(entry.flags),
            }
            yield _finite(values)


def board_entries(score: Score, rows: Sequence[Row]) -> Iterator[JsonObject]:
    """Iterate over what a board shows of a score: of its observer, baselines, people and ceiling.

    An observer whose task has no metric of its own is ranked by the distance of its curve's shape
    from that of people. Numbers of baselines without an entry are rounded, as in its table.
    """
    rows = [row for row in rows if row.table]
    metric = next((metric for row in rows for metric in row.entries), SHAPE)
    for row in rows:
        entry = (
            row.entries.get(metric) or shape_entry(row) or _printed_entry(row, metric)
        )
        if entry is None:
            continue
        values = {
            "responder": row.responder,
            "name": row.label,
            "metric": metric.name,
            "text": metric.label,
            "digits": metric.digits,
            "lower_is_better": not metric.more_is_better,
            "layer": score.layer,
            "measure": score.measure,
            "value": entry.value,
            "low": entry.low,
            "high": entry.high,
            "confidence": score.confidence,
            "over": entry.over,
            "flags": list(entry.flags),
            "note": entry.note,
            "sample": None if entry.sample is None else asdict(entry.sample),
        }
        yield _finite(values)


def observer_entries(
    board: Sequence[JsonMapping],
) -> dict[tuple[str, str, str], JsonMapping]:
    """Select the entries of an observer that have a value, by metric, layer and measure."""
    return {
        (entry["metric"], entry["layer"], entry["measure"]): entry
        for entry in board
        if entry["responder"] == OBSERVER and entry["value"] is not None
    }


def shape_entry(row: Row) -> Entry | None:
    """Build the entry of a curve's shape, without a value where too few levels are usable."""
    record = row.record
    if SHAPE.name not in record:
        return None
    usable = record.get("n_frequencies", 0)
    asked = record.get("n_asked", 0)
    if usable < _FEWEST_LEVELS or 2 * usable < asked:
        return Entry(None, note=f"{usable} of {asked} levels usable")
    return Entry(
        record[SHAPE.name],
        record.get(f"{SHAPE.name}_low"),
        record.get(f"{SHAPE.name}_high"),
        over=record.get("interval_over", ""),
    )


def _printed_entry(row: Row, metric: Metric) -> Entry | None:
    """Build the entry of a row whose number stands in its table alone."""
    first = next(iter(row.cells.values()), "")
    text = row.cells.get("shape", "") if metric is SHAPE else first
    try:
        return None if row.responder == OBSERVER else Entry(float(text))
    except ValueError:
        return None


def _finite(value: Any) -> Any:
    """Convert a value to JSON, with None for numbers that are not finite."""
    text = json.dumps(value, default=plain_value)
    return json.loads(text, parse_constant=lambda _: None, parse_float=_number)


def _number(text: str) -> float | None:
    """Parse a number; None where it is infinite."""
    value = float(text)
    return value if math.isfinite(value) else None
