"""What is in a store, whether all of it is sound, and its file without what is empty."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from psyprobe.files.output import digest
from psyprobe.running.database import SCHEMA_VERSION
from psyprobe.running.store import DIGITS, Store

#: Kinds of content whose digest is that of its JSON; those of others leave something out.
_NAMED_BY_CONTENT = ("asked", "display", "items")


def summary(store: Store) -> dict[str, Any]:
    """What is in a store: schema, size in bytes, answers, runs, and of each observer who gave its
    answers.
    """
    database = store.database
    asked = database.answers_by_way()
    kinds = {number: kind for number, kind, *_ in database.rows("form")}
    observers = [number for number, kind in kinds.items() if kind == "observer"]
    rows = database.rows("content", form=observers)
    cards = {row[0].hex(): database.value("content", row, *row[1:]) for row in rows}
    answers: Counter[str] = Counter()
    for way, _, _, observer, _ in database.rows("way"):
        answers[observer.hex()] += asked.get(way, 0)
    return {
        "store": str(store.path or "in memory"),
        "schema": SCHEMA_VERSION,
        "bytes": 0 if store.path is None else store.path.stat().st_size,
        "answers": sum(asked.values()),
        "observers": [
            {
                "observer": cards.get(card, {}).get("name", card[:12]),
                "card": card,
                "answers": count,
                "origins": [asdict(origin) for origin in store.origins_of(card)],
            }
            for card, count in answers.items()
        ],
        "runs": [
            {
                name: getattr(run, name)
                for name in ("experiment", "observer", "probe", "started", "finished")
            }
            for run in store.runs()
        ],
    }


def verify(store: Store) -> dict[str, int]:
    """Read all there is, and compute again each digest that can be: how many rows each table has.

    Raises
    ------
    StoreError
        Something is damaged; the message names the first row that is.
    """
    database = store.database
    database.check()
    counts = {table: len(database.rows(table)) for table in ("form", "way", "origin")}
    counts["answer"] = sum(1 for _ in store.kept_answers())
    counts["content"] = 0
    for name, kind, value in store.kept_contents():
        counts["content"] += 1
        if kind in _NAMED_BY_CONTENT and digest(value)[:DIGITS] != name:
            raise database.damaged("content", (bytes.fromhex(name),))
    runs = database.rows("run")
    for row, run in zip(runs, store.runs(), strict=True):
        if run.key[:DIGITS] != row[0].hex():
            raise database.damaged("run", row)
    return {**counts, "run": len(runs)}


def vacuum(store: Store) -> tuple[int, int]:
    """Write the file of a store anew without what is empty in it: its size before and after, in
    bytes.
    """
    assert store.path is not None
    before = store.path.stat().st_size
    store.database.vacuum()
    return before, store.path.stat().st_size
