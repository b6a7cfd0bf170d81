"""Scores as a table: for the terminal, a page, a paper, a spreadsheet or a program."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from psyprobe.analysis.score import OBSERVER, Recorded, Row, Score, frame
from psyprobe.errors import unknown_name
from psyprobe.files.terminal import lay_out, printable

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("text", "markdown", "latex", "csv", "json")

#: What is said where nothing could be scored.
NO_SCORE = "no score: there is no human reference to compare with"


@dataclass(frozen=True)
class Tabled(Recorded):
    """What the scores of this package do alike."""

    def to_frame(self) -> pd.DataFrame:
        """All single values, one row a responder."""
        return frame(cast(Score, self))

    def __str__(self) -> str:
        return score_table(cast(Score, self))


@dataclass(frozen=True)
class LayerScore(Tabled):
    """Of what a score of features is."""

    observer: str
    experiment: str
    layer: str
    measure: str
    #: True if the observer was not trained, so that the score says nothing about a trained one.
    random_weights: bool

    def about(self, responder: str) -> dict[str, Any]:
        """The first columns of a record."""
        names = ("experiment", "measure", "observer", "layer")
        told = {name: getattr(self, name) for name in names}
        return {**told, "random_weights": int(self.random_weights), "responder": responder}


def score_table(scores: Score | Iterable[Score], format: str = "text") -> str:
    """Lay out scores as a table: the observers of each experiment, and under them the trivial baselines.

    Parameters
    ----------
    scores : Score or iterable of Score
        What to show; those of one experiment and measure stand together.
    format : {"text", "markdown", "latex", "csv", "json"}, optional
        "text", "markdown" and "latex" are rounded for reading; "csv" and "json" hold all digits, and "json" all
        statistics.

    Raises
    ------
    UnknownNameError
        If the format is none of these.
    """
    listed = list(scores) if isinstance(scores, Iterable) else [scores]
    check_format(format)
    if format == "json":
        return json_text([one.to_dict() for one in listed])
    rows = [(one, list(one.rows())) for one in listed]
    if format == "csv":
        return csv_text([row.record for _, own in rows for row in own if row.record])
    groups: dict[str, list[tuple[Score, list[Row]]]] = {}
    for one, own in sorted(rows, key=lambda pair: pair[1][0].table):
        groups.setdefault(own[0].table, []).append((one, own))
    tables = [text for group in groups.values() for text in _tables(group, format)]
    keys: dict[str, list[float]] = {}
    for one in listed:
        for note in one.notes():
            keys.setdefault(note, []).append(one.confidence)
    lines = [
        note.format(confidence=" or ".join(f"{100 * c:g}" for c in sorted(set(found)))) for note, found in keys.items()
    ]
    return document(format, tables, lines) if listed else NO_SCORE


def document(format: str, tables: Sequence[str], lines: Sequence[str]) -> str:
    """Tables in one of the formats for reading, and paragraphs under them."""
    if format == "latex":
        lines = [f"% {line}" for line in lines]
    elif format == "text":
        lines = [textwrap.fill(line, 100) for line in lines]
    return "\n\n".join([*tables, *lines])


def check_format(format: str) -> None:
    """Refuse a format that there is not."""
    if format not in FORMATS:
        raise unknown_name("table format", format, FORMATS)


def json_text(content: Any) -> str:
    """Indented JSON without numbers that JSON has not."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as lines, each with the columns of all."""
    stream = io.StringIO()
    columns = list(dict.fromkeys(column for record in records for column in record))
    writer = csv.DictWriter(stream, columns or ["experiment"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue().rstrip("\n")


def observer_name(one: Score, group: Iterable[Score]) -> str:
    """The observer's name; with the layer where a group has several of an observer, and loud if it is untrained."""
    several = len({other.layer for other in group if other.observer == one.observer}) > 1
    return one.observer + (f" / {one.layer}" if several else "") + (" (random weights)" if one.random_weights else "")


def _tables(group: Sequence[tuple[Score, list[Row]]], format: str) -> list[str]:
    """One table for each title, observers before trivial responders, equal ones of these once."""
    scores = [one for one, _ in group]
    seen: dict[tuple[str, str, str], list[Row]] = {}
    cells: dict[str, dict[str, list[list[str]]]] = {}
    headings: dict[str, list[str]] = {}
    notes: dict[str, dict[str, list[str]]] = {}
    for one, own in group:
        for row in own:
            if not row.table:
                continue
            name = row.label or observer_name(one, scores)
            if row.responder != OBSERVER:
                same = seen.setdefault((row.table, row.responder, row.label), [])
                if any((row.cells, row.entries) == (other.cells, other.entries) for other in same):
                    continue
                # Observers with other input sizes see other pixels, so their baselines differ a little.
                name += f", as shown to {one.observer}" if same else ""
                same.append(row)
            headings.setdefault(row.table, list(row.cells))
            body = cells.setdefault(row.table, {}).setdefault(row.responder, [])
            body.append([printable(name), *(row.cells.get(heading, "") for heading in headings[row.table])])
            said = notes.setdefault(row.table, {}).setdefault(row.responder, [])
            said += [f"{printable(name)}: {note}." for note in row.notes]
    return [
        lay_out(
            format,
            [[printable(title), *headings[title]], *(line for lines in body.values() for line in lines)],
            [note for lines in notes[title].values() for note in lines],
        )
        for title, body in cells.items()
    ]
