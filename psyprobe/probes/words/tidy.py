"""Tell trials in plain columns, one row a question, for analyses elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psyprobe.files.json_types import JsonObject
from psyprobe.probes.words.answer_table import (
    TrialReply,
    choose_readouts,
    iterate_replies,
    response_value,
)
from psyprobe.running.protocol import RunRecord, labelled
from psyprobe.running.store import Store
from psyprobe.running.task import Task

#: Answers that say yes or no, as whole numbers.
_WHOLE = {0.0: 0, 1.0: 1}


def count_rows(record: RunRecord) -> int:
    """Count the questions of a finished run in words; 0 of any other run."""
    if record.finished is None or "asking" not in record.layout:
        return 0
    return len(record.outcome.get("trials", ()))


def iterate_rows(record: RunRecord, store: Store) -> Iterator[JsonObject]:
    """Iterate over the trials of a run, with few of its answers in memory at once.

    Parameters
    ----------
    record : RunRecord
        A finished run in words.
    store : Store
        The store of the run, as its label sees it.

    Yields
    ------
    dict
        "experiment", "observer", "person" and "session" (empty of machines), "prompt"; "level" and
        "axis" with the names of the columns that hold the level and what answers depend on, both
        in the units of the page; that of the axis again as it arrived, after "delivered_";
        "repeat", "order" (place of the pattern, or number of the right answer, from 0), "shown"
        and "answer" in words; "yes" or "correct" (1 or 0, a probability where these count, empty
        where the reply decides nothing), "alternatives", "time" (UTC, milliseconds since 1970) and
        "seconds" that the reply took, of a person the reaction time.
    """
    layout = record.layout
    (level,) = layout["levels"]
    task = Task.from_dict(layout["task"])
    assert task.axis is not None
    axis = task.axis.name
    options = record.observer_card.get("options", {})
    readings = (
        (entry.prompt.id, entry.reading) for entry in iterate_replies(record, store)
    )
    readouts = choose_readouts(record, readings)
    for entry in iterate_replies(record, store):
        trial = entry.trial
        readout = readouts[entry.prompt.id]
        value = response_value(entry.reading, readout, entry.polarity)
        # A blank has no right answer.
        is_blank = trial["contrast"] == 0 and task.scored == "correct"
        yield {
            "experiment": record.experiment,
            "observer": labelled(record.observer, record.label),
            "person": options.get("person", ""),
            "session": options.get("session", "") if "person" in options else "",
            "prompt": entry.prompt.id,
            "level": level["name"],
            "axis": axis,
            level["name"]: trial["value"],
            axis: trial["contrast"],
            f"delivered_{axis}": entry.answer["delivered_contrast"],
            "repeat": trial["repeat"],
            "order": trial["order"],
            "shown": "" if task.scored == "yes" or is_blank else _right_word(entry),
            "answer": _answer_word(entry, task),
            task.scored: None
            if is_blank or np.isnan(value)
            else _WHOLE.get(value, value),
            "alternatives": task.alternatives,
            "time": entry.milliseconds,
            "seconds": entry.reply.latency,
        }


def _right_word(entry: TrialReply) -> str:
    """Return the word of the right answer to a question."""
    prompt = entry.variant
    return (prompt.yes if entry.polarity > 0 else prompt.no)[0]


def _answer_word(entry: TrialReply, task: Task) -> str:
    """Return the word that a reply stands for, "other" for a wrong one of several, or why none."""
    reading = entry.reading
    if reading.label:
        return reading.label
    if reading.text == "yes":
        return entry.variant.yes[0]
    if reading.text == "no":
        return entry.variant.no[0] if task.alternatives == 2 else "other"
    return reading.text
