"""Stores of several processes or machines as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from psyprobe.errors import StoreError, clipped
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import printable_line
from psyprobe.running.database import chunks
from psyprobe.running.protocol import DIGEST_DIGITS, Answered, started_label
from psyprobe.running.registry_run import RUN_FILE, open_run
from psyprobe.running.store import Store

#: So many conflicts are named in a message.
_NAMED_CONFLICTS = 3


@dataclass(frozen=True)
class Merged:
    """What a merged store holds."""

    answers: int
    runs: int
    #: Questions with two answers, of which one stayed.
    conflicts: int


def merge(
    stores: Sequence[str | Path],
    output: str | Path,
    *,
    keep: Literal["first", "last", "both"] | None = None,
) -> Merged:
    """Copy the answers, contents and runs of several stores into one, all or nothing.

    Parameters
    ----------
    stores : sequence of str or Path
        Files, or folders of a registry's runs, which stay as they are.
    output : str or Path
        The one file. One that is there already is the first of the stores, so that nothing answered
        is lost.
    keep : {"first", "last", "both"}, optional
        Which answer stays where one question has two, by the order of the stores. With "both", all
        answers and runs of a store that contradicts an earlier one get a label: when its first run
        began.

    Returns
    -------
    Merged
        How much there is.

    Raises
    ------
    StoreError
        A question has two answers and `keep` is not given, or a store cannot be read or written.

    Examples
    --------
    >>> merge(["shard-1.sqlite", "shard-2.sqlite"], "runs.sqlite")  # doctest: +SKIP
    Merged(answers=1202, runs=1, conflicts=0)
    """
    path = Path(output)
    if path.exists():
        return _merge_into(path, stores, keep)
    results: list[Merged] = []
    write_whole(
        path, lambda partial: results.append(_merge_into(partial, stores, keep))
    )
    return results[0]


def _merge_into(path: Path, sources: Sequence[str | Path], keep: str | None) -> Merged:
    """Copy stores' answers and runs into one, refusing contradictions unless `keep` decides."""
    conflicts: list[str] = []
    with Store(path) as target:
        with target.transaction():
            for source_path in sources:
                with _open_source(Path(source_path)) as source:
                    if not path.samefile(source_path):
                        conflicts += _copy(source, target, keep)
            if conflicts and keep is None:
                raise _conflict_error(conflicts)
        answers = target.database.count("answer")
        return Merged(answers, target.database.count("run"), len(conflicts))


def _open_source(path: Path) -> Store:
    """Open a store, or the folder of a registry's run as one."""
    if (path / RUN_FILE).is_file():
        return open_run(path)
    return Store(path, create=False)


def _describe_conflict(answered: Answered, store: Store) -> str:
    """Name a question that has two different answers, and the store of one."""
    question = answered.question
    return (
        f"{question.key[:12]} ({question.version}, card {question.observer[:8]}, "
        f"{store.path})"
    )


def _conflict_error(conflicts: Sequence[str]) -> StoreError:
    """Build the error about questions that stores answer differently, naming a few."""
    count = len(conflicts)
    questions = "one question has" if count == 1 else f"{count:,} questions have"
    descriptions = ", ".join(conflicts[:_NAMED_CONFLICTS])
    if count > _NAMED_CONFLICTS:
        descriptions += " ..."
    reason = (
        f"{questions} another answer in a later store: {printable_line(descriptions)}"
    )
    return StoreError(
        f"{clipped(reason, 250)}; merge with --keep first or --keep last"
        ", or --keep both for nights side by side"
    )


def _copy(source: Store, target: Store, keep: str | None) -> list[str]:
    """Add one store's rows to another, and describe each question with two answers."""
    if keep == "both":
        return _copy_both(source, target)
    conflicts = []
    contested_observers = set()
    for contents in chunks(source.all_contents()):
        target.add_contents(contents)
    for timed_answers in chunks(source.all_answers()):
        answers = [answered for answered, _ in timed_answers]
        differing = _find_differing(answers, target)
        conflicts += [_describe_conflict(answered, source) for answered in differing]
        contested_observers |= {answered.question.observer for answered in differing}
        if keep == "last":
            target.delete_answers(answered.question.key for answered in differing)
        target.add_timed(timed_answers)
    for record in source.runs():
        # What an adaptive design asked next follows from the answers that stay.
        is_contested = record.observer_digest[:DIGEST_DIGITS] in contested_observers
        target.adopt_run(record, replaces=keep == "last" if is_contested else None)
    for attempt in source.attempts():
        target.add_attempt(attempt)
    return conflicts


def _find_differing(answers: Sequence[Answered], target: Store) -> list[Answered]:
    """Select the answers to questions that a store answers otherwise."""
    present = target.answers(answered.question.key for answered in answers)
    return [
        answered
        for answered in answers
        if present.get(answered.question.key, answered.answer) != answered.answer
    ]


def _copy_both(source: Store, target: Store) -> list[str]:
    """Add a store's rows to another, under a new label where it answers otherwise.

    A run reads answers of one label, so that with one of them all of its label are renamed.
    """
    conflicts: list[str] = []
    labels: dict[str, str] = {}
    for timed_answers in chunks(source.all_answers()):
        for answered in _find_differing(
            [answer for answer, _ in timed_answers], target
        ):
            labels[answered.question.label] = ""
            conflicts.append(_describe_conflict(answered, source))
    records = source.runs()
    for label in labels:
        dates = [run.started for run in records if run.label == label and run.started]
        if not dates:
            raise _conflict_error(conflicts)
        labels[label] = started_label(min(dates))
    for contents in chunks(source.all_contents()):
        target.add_contents(contents)
    for timed_answers in chunks(source.all_answers()):
        renamed = [
            (_with_label(answered, labels), milliseconds)
            for answered, milliseconds in timed_answers
        ]
        if still := _find_differing([answered for answered, _ in renamed], target):
            raise _conflict_error([_describe_conflict(still[0], source)])
        target.add_timed(renamed)
    for record in records:
        target.adopt_run(record.with_label(labels.get(record.label, "")))
    return conflicts


def _with_label(answered: Answered, labels: Mapping[str, str]) -> Answered:
    """Return an answer under the new label of its label, if there is one."""
    question = answered.question
    label = labels.get(question.label, question.label)
    return replace(answered, question=replace(question, label=label))
