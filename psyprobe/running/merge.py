"""Stores of several processes or machines as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

from psyprobe.errors import StoreError, clipped
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import printable_line
from psyprobe.running.protocol import Answered
from psyprobe.running.store import Store

_T = TypeVar("_T")
#: So many answers are compared at a time, and so many conflicts told.
_TOGETHER = 2000
_TOLD = 3


@dataclass(frozen=True)
class Merged:
    """What came of merging stores."""

    #: In the one store now.
    answers: int
    runs: int
    #: Questions with two answers, of which one was kept.
    conflicts: int


def merge(
    stores: Sequence[str | Path],
    output: str | Path,
    *,
    keep: Literal["first", "last"] | None = None,
) -> Merged:
    """Put the answers, contents and runs of stores into one, all or none of it.

    Parameters
    ----------
    stores : sequence of str or Path
        Files, which stay as they are.
    output : str or Path
        The one file. One that is there already is the first of the stores, so that nothing answered
        is lost.
    keep : {"first", "last"}, optional
        Which answer stays where one question has two, by the order of the stores.

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
        return _into(path, stores, keep)
    made: list[Merged] = []
    write_whole(path, lambda partial: made.append(_into(partial, stores, keep)))
    return made[0]


def _into(path: Path, stores: Sequence[str | Path], keep: str | None) -> Merged:
    found = _Conflicts()
    with Store(path) as one:
        with one.together():
            for store in stores:
                with Store(store, create=False) as other:
                    if not path.samefile(store):
                        _take(one, other, keep, found)
            if found.count and keep is None:
                raise StoreError(found.told())
        return Merged(sum(one.database.answers_by_way().values()), len(one.runs()), found.count)


@dataclass
class _Conflicts:
    """Questions with two answers that differ."""

    count: int = 0
    first: tuple[str, ...] = ()

    def note(self, answered: Answered, store: Store) -> None:
        self.count += 1
        if len(self.first) < _TOLD:
            question = answered.question
            self.first += (
                f"{question.key[:12]} ({question.version}, card {question.observer[:8]}, "
                f"{store.path})",
            )

    def told(self) -> str:
        questions = "one question has" if self.count == 1 else f"{self.count:,} questions have"
        such = ", ".join(self.first) if self.count <= _TOLD else f"{', '.join(self.first)} ..."
        why = f"{questions} another answer in a later store: {printable_line(such)}"
        return f"{clipped(why, 250)}; merge with --keep first or --keep last"


def _take(one: Store, other: Store, keep: str | None, found: _Conflicts) -> None:
    """Add what another store holds to one."""
    for contents in _chunks(other.kept_contents()):
        one.keep(contents)
    for answers in _chunks(other.kept_answers()):
        known = one.answers(each.question.key for each, _ in answers)
        differing = [
            each for each, _ in answers if known.get(each.question.key, each.answer) != each.answer
        ]
        for each in differing:
            found.note(each, other)
        if keep == "last":
            one.forget(each.question.key for each in differing)
        one.add_all(answers)
    for record in other.runs():
        one.adopt(record)


def _chunks(rows: Iterator[_T]) -> Iterator[list[_T]]:
    while chunk := list(islice(rows, _TOGETHER)):
        yield chunk
