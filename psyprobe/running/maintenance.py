"""What is in a store, whether all of it is sound, and its file without empty space."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import digest
from psyprobe.observers.protocol import card_digest
from psyprobe.running.database import SCHEMA_VERSION
from psyprobe.running.protocol import DIGEST_DIGITS, RunRecord, labelled
from psyprobe.running.store import Store


def summary(store: Store) -> JsonObject:
    """Summarise a store: schema, bytes, answers, observers with origins, and runs."""
    observers = [
        {
            "observer": labelled(
                store.observer_name(card_digest) or card_digest[:12], label
            ),
            "card": card_digest,
            "answers": count,
            "origins": [
                asdict(origin)
                for origin in store.with_label(label).origins(card_digest)
            ],
        }
        for (card_digest, label), count in store.database.count_answers().items()
    ]
    return {
        "store": str(store.path or "in memory"),
        "schema": SCHEMA_VERSION,
        "bytes": 0 if store.path is None else store.path.stat().st_size,
        "answers": store.database.count("answer"),
        "observers": observers,
        "runs": [_summarise_run(store, run) for run in store.runs()],
    }


def _summarise_run(store: Store, run: RunRecord) -> JsonObject:
    """Summarise a run, and how the last attempt at it ended if it is not finished."""
    names = ("experiment", "observer", "label", "probe", "started", "finished")
    attempt = store.last_attempt(run)
    return {
        **{name: getattr(run, name) for name in names},
        "attempt": None if attempt is None else asdict(attempt),
    }


def verify(store: Store) -> dict[str, int]:
    """Read every row of a store, check its digests, and count the rows of each table.

    Raises
    ------
    StoreError
        Something is damaged; the message names the first row that is.
    """
    database = store.database
    database.check()
    counts = {
        table: len(database.rows(table)) for table in ("procedure", "origin", "run")
    }
    if attempts := store.attempts():
        counts["attempt"] = len(attempts)
    counts["answer"] = sum(1 for _ in store.all_answers())
    counts["content"] = verify_contents(store)
    for row, run in zip(database.rows("run"), store.runs(), strict=True):
        has_its_card = (
            content_digest("observer", run.observer_card) == run.observer_digest
        )
        if run.key[:DIGEST_DIGITS] != row[0] or not has_its_card:
            raise database.damaged("run", row)
    return counts


def verify_contents(store: Store) -> int:
    """Check the digests of all contents of a store, and count them.

    Raises
    ------
    StoreError
        Something is damaged; the message names the first row that is.
    """
    count = 0
    for name, kind, value in store.all_contents():
        count += 1
        if content_digest(kind, value)[:DIGEST_DIGITS] != name:
            raise store.database.damaged("content", (name,))
    return count


def content_digest(kind: str, value: Any) -> str:
    """Compute the digest of a stored content by its kind; "" for a value of wrong form."""
    try:
        if kind == "observer":
            return card_digest(value)
        if kind == "stimuli" and isinstance(value, dict):
            stimuli = [digest(content) for content in value["stimuli"]]
            return digest({**value, "stimuli": stimuli})
        return digest(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""


def vacuum(store: Store) -> tuple[int, int]:
    """Rewrite a store's file without empty space, and return its bytes before and after."""
    assert store.path is not None
    size_before = store.path.stat().st_size
    store.database.vacuum()
    return size_before, store.path.stat().st_size
