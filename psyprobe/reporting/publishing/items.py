"""Publish runs about a benchmark's items without the items, which have no licence."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.output import toml_text
from psyprobe.observers.protocol import Card
from psyprobe.probes import load_probe
from psyprobe.reporting.publishing.derive import NobodyAsked, RecordingStore, StandIn
from psyprobe.running.loop import ask
from psyprobe.running.protocol import Content, RunRecord
from psyprobe.running.registry_run import (
    WITHHELD_KINDS,
    UnsoundError,
    is_about_items,
)
from psyprobe.running.store import Store


def withhold_folder(record: RunRecord) -> RunRecord:
    """Return a run whose page names its items by their digest, and not by a folder."""
    if not is_about_items(record):
        return record
    page = tomllib.loads(record.experiment_toml)
    page["items"] = record.layout["items"]
    page.get("changed", {}).pop("items", None)
    text = toml_text(page)
    experiment = experiment_from_text(text, record.experiment, Path())
    return replace(record, experiment_toml=text, experiment_digest=experiment.digest)


def item_contents(records: Sequence[RunRecord], store: Store) -> list[Content]:
    """List what is withheld of a run, from the store that holds it."""
    if not is_about_items(records[0]):
        return []
    return [content for content in store.all_contents() if content[1] in WITHHELD_KINDS]


def refuse_items(record: RunRecord, store: Store) -> None:
    """Refuse answers that hold text of a benchmark's items, and a page of other ones."""
    if tomllib.loads(record.experiment_toml).get("items") != record.layout["items"]:
        raise UnsoundError("record", "the page names other items than the run's")
    kinds = {kind for _, kind, _ in store.all_contents()}
    if not kinds.isdisjoint(WITHHELD_KINDS):
        raise UnsoundError(
            "licence", "it holds items of a benchmark, which have no licence"
        )


def plan_again(record: RunRecord, sets: str | Path) -> Any:
    """Plan a run about items again from the set that has them.

    Parameters
    ----------
    record : RunRecord
        The run.
    sets : str or Path
        Folder of a set, or of several.

    Returns
    -------
    Schedule or None
        The schedule, whose observers must not be asked; None if no set has these items.
    """
    experiment = experiment_from_text(record.experiment_toml, record.experiment, Path())
    probe: Any = load_probe(record.probe)
    for folder in set_folders(sets):
        page = experiment.model_copy(update={"items": folder})
        try:
            schedule = probe.plan_again(page, record, _stand_in)
        except PsyprobeError:
            continue
        if schedule.layout()["items"] == record.layout["items"]:
            return schedule
    return None


def add_items(store: str | Path, sets: str | Path) -> None:
    """Add to a store the items of its runs that it lacks, from the sets that have them.

    Parameters
    ----------
    store : str or Path
        The store.
    sets : str or Path
        Folder of a set, or of several.

    Raises
    ------
    InputError
        No set has the items of a run.
    """
    with Store(store) as opened:
        for record in filter(is_about_items, opened.runs()):
            if opened.contents([record.layout["items"]]):
                continue
            schedule = plan_again(record, sets)
            if schedule is None:
                raise InputError(
                    f"{sets} has no set with the items of {record.experiment}; give the folder "
                    "of the set that was asked about"
                )
            opened.add_contents(schedule.contents())


def set_folders(sets: str | Path) -> list[Path]:
    """List a folder of sets and those in it, or refuse what is no folder."""
    root = Path(sets)
    if not root.is_dir():
        raise InputError(
            f"{sets} is no folder; give that of a benchmark's set, or of several"
        )
    return [root, *sorted(path for path in root.iterdir() if path.is_dir())]


def _stand_in(card: JsonMapping) -> StandIn:
    """Build an observer that has a card and must not be asked."""
    return StandIn(Card.from_dict(card))


def derive_items(
    schedule: Any, record: RunRecord, store: RecordingStore
) -> list[RunRecord]:
    """Run a schedule over stored answers, and return the record as it comes out.

    Raises
    ------
    UnsoundError
        A question has no answer.
    """
    store.read_keys.clear()
    derived = ask(
        store.with_label(record.label),
        load_probe(record.probe),
        schedule,
        description=record.experiment,
        progress=False,
        executor=NobodyAsked(),
    )
    return [derived]
