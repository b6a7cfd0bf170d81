"""The one loop: take a round, look up what the store has, ask the rest, write each answer as it comes, tell.

A round is planned from nothing but the answers to the rounds before, and answers are read back from the store. So
neither the number of questions under way, nor the order in which answers arrive, nor an interruption changes a result.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from psyprobe.files.output import software_versions
from psyprobe.files.terminal import progress_bar
from psyprobe.running.origin import Origins
from psyprobe.running.protocol import Answered, Batch, Probe, RunRecord, Session
from psyprobe.running.store import Store

if TYPE_CHECKING:
    from psyprobe.experiment import Experiment

#: Puts batches to observers, as `Probe.answer` does.
Put = Callable[[Mapping[str, Any], Iterable[Batch]], Iterator[Answered]]

#: Answers are written every so many seconds; the first at once.
_WRITTEN_EVERY = 0.5


def ask(store: Store, probe: Probe, session: Session, *, label: str, progress: bool | None = None) -> RunRecord:
    """Ask what a session wants to know and the store does not hold yet.

    Parameters
    ----------
    store : Store
        Opened.
    probe : Probe
        Puts batches to observers.
    session : Session
        Of the probe; says what comes next.
    label : str
        What stands before the progress bar.
    progress : bool, optional
        Whether to show one; by default on a terminal and in a notebook.

    Returns
    -------
    RunRecord
        Of the finished run.
    """
    origins = Origins(store, session.observers)
    planned = session.record(store)
    store.keep(session.contents())
    record = store.begin(planned)
    session.begin(record)
    keys: set[str] = set()
    with progress_bar(0, progress, "question") as bar:
        bar.set_description(label)
        while batches := session.next():
            answers = ask_round(store, probe.answer, session.observers, origins, batches, bar)
            keys |= set(answers)
            session.tell(answers)
    return store.finish(record.key, session.outcome(), keys)


def ask_round(
    store: Store, put: Put, observers: Mapping[str, Any], origins: Origins, batches: Sequence[Batch], bar: Any
) -> dict[str, dict[str, Any]]:
    """Ask what the store does not hold of some batches; all their answers by the keys of their questions."""
    keys = {question.key for batch in batches for question in batch.questions}
    bar.total = (bar.total or 0) + len(keys)
    left = len(store.missing(keys))
    bar.update(len(keys) - left)
    if left:
        origins.say_what_changed()
    with Writer(store) as writer:
        for answered in put(observers, _unanswered(store, batches, writer)):
            origin = origins.of(answered.question.observer, answered.origin.served)
            writer.add(replace(answered, origin=origin))
            if left:
                left -= 1
                bar.update()
    # Another process may have answered the rest meanwhile.
    bar.update(left)
    return store.answers(keys)


def _unanswered(store: Store, batches: Sequence[Batch], writer: Writer) -> Iterator[Batch]:
    """What is left of batches when their turn comes; of questions that are alike, one."""
    put: set[str] = set()
    for batch in batches:
        missing = store.missing(question.key for question in batch.questions) - put
        if not missing:
            continue
        # Whoever takes the next batch has answered the last one: it is written whole.
        writer.write_if_due()
        asked = {question.key: question for question in batch.questions if batch.whole or question.key in missing}
        put |= set(asked)
        yield replace(batch, questions=tuple(asked.values()))


class Writer:
    """Writes answers by the clock: a question that hangs must not hold back the answers to others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[Answered] = deque()
        self._one_at_a_time, self._end = Lock(), Event()
        self._failure: Exception | None = None
        self._written = -math.inf
        self._thread = Thread(target=self._write_now_and_then, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.write()

    def add(self, answered: Answered) -> None:
        """Take an answer; an error of the writing thread is raised here."""
        self._waiting.append(answered)
        if self._failure is not None:
            raise self._failure

    def write_if_due(self) -> None:
        """Write what has come, if the last writing is long enough ago."""
        if monotonic() - self._written >= _WRITTEN_EVERY:
            self.write()

    def write(self) -> None:
        """Write what has come; only what is written is forgotten, so that after a failure all of it is tried again."""
        with self._one_at_a_time:
            # By place and not by iteration: another thread may append meanwhile.
            answered = [self._waiting[i] for i in range(len(self._waiting))]
            if not answered:
                return
            self._store.add(answered)
            for _ in answered:
                self._waiting.popleft()
            self._written = monotonic()

    def _write_now_and_then(self) -> None:
        while not self._end.wait(_WRITTEN_EVERY):
            try:
                self.write()
            except Exception as failure:
                self._failure = failure
                return


class ExperimentSession:
    """What sessions have in common: an experiment that is put to an observer and perhaps to others beside it."""

    remarks: Sequence[str] = ()

    def __init__(self, experiment: Experiment, observer: Any, *others: Any) -> None:
        self.experiment, self.observer = experiment, observer
        self.observers = {who.card.digest: who for who in (observer, *others)}

    def layout(self) -> dict[str, Any]:
        """All that a result needs besides the answers."""
        raise NotImplementedError

    def record(self, store: Store) -> RunRecord:
        """The run as the store keeps it; its key depends on all that could change a question or its reading."""
        experiment, card = self.experiment, self.observer.card
        return RunRecord(
            experiment=experiment.name,
            experiment_digest=experiment.digest,
            experiment_toml=experiment.toml,
            observer=card.name,
            observer_digest=card.digest,
            observer_card=card.to_dict(),
            probe=experiment.probe,
            layout=self.layout(),
            software=software_versions(),
        )

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The cards; what else is asked and shown is kept with the answers."""
        for who in self.observers.values():
            yield who.card.digest, "observer", who.card.to_dict()

    def begin(self, record: RunRecord) -> None:
        """Nothing of an earlier record binds."""

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing depends on the answers."""

    def outcome(self) -> dict[str, Any]:
        """Nothing besides the answers."""
        return {}


def attributes_of(record: RunRecord, **values: Any) -> dict[str, Any]:
    """What a result tells of its run, further values among it as JSON; of software, all versions that answered."""
    versions: dict[str, list[str]] = {}
    for told in (record.software, *(origin.software for origin in record.origins)):
        for name, version in told.items():
            if version not in versions.setdefault(name, []):
                versions[name].append(version)
    software = {name: " and ".join(each) for name, each in versions.items()}
    if served := [origin.served for origin in record.origins if origin.served]:
        values["served"] = served
    return {
        "experiment": record.experiment,
        "experiment_digest": record.experiment_digest,
        "experiment_toml": record.experiment_toml,
        "probe": record.probe,
        "observer": record.observer,
        "random_weights": int(record.observer_card["random_weights"]),
        "psyprobe_version": software["psyprobe"],
        **{
            name: json.dumps(value, sort_keys=True)
            for name, value in {"observer_card": record.observer_card, "software": software, **values}.items()
        },
    }
