"""Count who else came to the numbers of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from psyprobe.files.json_types import JsonMapping
from psyprobe.reporting.publishing.scoring import observer_entries

#: Largest difference between numbers of an encoder that two machines count as one.
_TOLERANCE = 1e-4


def count_reproductions(runs: Sequence[JsonMapping]) -> list[int]:
    """Count the other contributors who came to the numbers of each run.

    Their run has the same revision and experiment, and is neither retracted nor failed. Each of its
    main scores lies in the interval of this run's, or within 1e-4 of it where the observer answers
    nothing or the score has no interval.

    Parameters
    ----------
    runs : sequence of mapping
        Runs of an index.

    Examples
    --------
    >>> score = {"responder": "observer", "metric": "alignment", "layer": "", "measure": "cosine"}
    >>> run = {"observer": "pixels", "revision": "n-25808a73", "digest": "ae15", "retracted": None}
    >>> run |= {"ability": "features"}
    >>> count_reproductions([
    ...     {**run, "contributor": name, "board": [{**score, "value": value}]}
    ...     for name, value in (("Ada", 0.47), ("Ben", 0.47004), ("Cy", 0.48))
    ... ])
    [1, 1, 0]
    """
    groups: defaultdict[tuple[str, str, str], list[JsonMapping]] = defaultdict(list)
    for run in runs:
        groups[_subject(run)].append(run)
    return [
        len(
            {
                other["contributor"]
                for other in groups[_subject(run)]
                if other["contributor"] != run["contributor"]
                and _is_reproduced(run, other)
            }
        )
        for run in runs
    ]


def _subject(run: JsonMapping) -> tuple[str, str, str]:
    """Name what a run measured: observer, revision and experiment."""
    return run["observer"], run["revision"], run["digest"]


def _is_reproduced(run: JsonMapping, other: JsonMapping) -> bool:
    """Test whether the main scores of another run are those of a run."""
    if run["retracted"] is not None or other["retracted"] is not None:
        return False
    scores = observer_entries(run["board"])
    others = observer_entries(other["board"])
    return (
        bool(scores)
        and scores.keys() == others.keys()
        and all(
            _is_same(score, others[key]["value"], run["ability"] == "answer")
            for key, score in scores.items()
        )
    )


def _is_same(score: JsonMapping, value: float, samples: bool) -> bool:
    """Test whether a value lies in the interval of a score that samples, or else close to it."""
    if samples and score["low"] is not None and score["high"] is not None:
        return bool(score["low"] <= value <= score["high"])
    return bool(abs(value - score["value"]) <= _TOLERANCE)
