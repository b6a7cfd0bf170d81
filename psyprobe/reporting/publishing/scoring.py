"""Score the answers of a run, as ``scores.json`` holds it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.score import OBSERVER, Score
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import plain_value, software_versions
from psyprobe.probes.experiments import load_results
from psyprobe.probes.results import score_layers
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store

if TYPE_CHECKING:
    from xarray import Dataset


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
    versions = software_versions()
    return {
        "schema": "psyprobe-scores/1",
        "run": run["run"],
        "answers_sha256": run["answers"]["sha256"],
        "scored_by": {name: versions[name] for name in ("psyprobe", "numpy", "scipy")},
        "scores": [_finite(score.to_dict()) for score in scores],
        "main": [entry for score in scores for entry in main_scores(score)],
    }


def load_records(records: Sequence[RunRecord], store: Store) -> list[Dataset]:
    """Load the result of a run, of which a store holds the answers alone."""
    with Store(None) as own:
        own.add_contents(store.all_contents())
        own.add_timed(store.all_answers())
        for record in records:
            own.adopt_run(record)
        return load_results(own)


def main_scores(score: Score) -> Iterator[JsonObject]:
    """Iterate over the numbers by which a score's observer is ranked."""
    for row in score.rows():
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


def _finite(value: Any) -> Any:
    """Make a value what JSON can hold, with None for a number that is none."""
    text = json.dumps(value, default=plain_value)
    return json.loads(text, parse_constant=lambda _: None, parse_float=_number)


def _number(text: str) -> float | None:
    """Parse a number; None where it is infinite."""
    value = float(text)
    return value if math.isfinite(value) else None
