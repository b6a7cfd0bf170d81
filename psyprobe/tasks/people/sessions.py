"""The session of a person before an experiment: a page in the browser, a run in a thread."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.files.terminal import tell
from psyprobe.observers.chat.protocol import GIVEN_UP
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.observer import (
    PersonObserver,
    Presenter,
    QuestionExchange,
)
from psyprobe.probes.experiments import run_experiment
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import open_store

if TYPE_CHECKING:
    import xarray


class ParticipantSession(ABC):
    """A session of one person in one experiment; an unfinished one in the store goes on.

    Parameters
    ----------
    experiment : Experiment
        The experiment, checked.
    person : str
        A pseudonym.
    store : Path
        The store that takes the answers.
    """

    #: Kind of stimuli, "patterns" or "pictures", by which the page knows its steps.
    kind: str
    #: The command that shows the result, before the store's name.
    result_command: str
    #: Whether a person takes part only once: people remember pictures.
    single_session: bool

    def __init__(self, experiment: Experiment, person: str, store: Path) -> None:
        self.experiment = experiment
        self.person = person
        self.store = store
        #: What the last page shows; empty before the session is over.
        self.summary: JsonObject = {}
        #: Set when nothing more is to be asked.
        self.over = threading.Event()
        self._exchange: QuestionExchange | None = None
        #: The calibrated screen; None before that, and for pictures.
        self._screen: Screen | None = None
        self._lock = threading.Lock()
        #: The unfinished run of an earlier session, and how many of its questions are answered.
        self._earlier, self._answered = self._unfinished_run()
        self._session_id: str = secrets.token_hex(8)
        if self.single_session:
            # Two commands at once have one session, which one of them asks.
            self._session_id = digest([person, experiment.digest])[:16]
        if self._earlier is not None:
            self._session_id = self._earlier.observer_card["options"]["session"]

    def facts(self) -> JsonMapping:
        """Describe the session for its first page: title, person, questions left."""
        return {
            "kind": self.kind,
            "title": self.experiment.title,
            "person": self.person,
            "store": str(self.store),
            "state": None if self._exchange is None else self._exchange.state(),
        }

    @abstractmethod
    def calibrate(self, values: JsonMapping) -> JsonMapping:
        """Read the screen as the page measured it, and return practice trials."""

    def begin(self, values: JsonMapping) -> None:
        """Begin or resume asking, after consent and practice."""
        with self._lock:
            if self._exchange is not None:
                return
            if values.get("consent") is not True:
                raise InputError("nobody has agreed yet; load the page again")
            names = ("consent", "practice", "browser", "screen")
            beginning = {name: values[name] for name in names if name in values}
            exchange = QuestionExchange(
                self._make_presenter(),
                self._session_id,
                count_answered=lambda: self._unfinished_run()[1],
                total=self._question_count(),
                beginning=beginning,
            )
            observer = PersonObserver(
                self.person, self._session_id, self._screen, exchange.put
            )
            threading.Thread(
                target=self._run_session, args=(observer, exchange), daemon=True
            ).start()
            self._exchange = exchange

    def state(self, seconds: float) -> JsonMapping:
        """Wait some seconds for what the page shows next, and return it."""
        state = self._running_exchange().state(seconds)
        if state["phase"] in ("done", "failed"):
            self.over.set()
        return state

    def answer(self, values: JsonMapping) -> None:
        """Take the page's report of an attempt to answer."""
        self._running_exchange().answer(values)

    def pause(self) -> None:
        """End the session unfinished: ask nothing more."""
        if self._exchange is not None:
            self._exchange.end("paused")

    @abstractmethod
    def _make_presenter(self) -> Presenter:
        """Build what shows the questions of this session."""

    @abstractmethod
    def _question_count(self) -> int | None:
        """Return the number of questions; None where only the design knows."""

    @abstractmethod
    def _summarize(self, result: xarray.Dataset) -> JsonObject:
        """Return what the page shows at the end."""

    def _unfinished_run(self) -> tuple[RunRecord | None, int]:
        """Return the person's unfinished run, if any, and its number of answers."""
        if not self.store.exists():
            return None, 0
        # A process that is killed while it makes the store leaves an empty file.
        with open_store(self.store) as store:
            records = [
                record
                for record in store.runs()
                if record.observer == f"person:{self.person}"
                and record.experiment_digest == self.experiment.digest
            ]
            if self.single_session and records and records[-1].finished is not None:
                raise InputError(
                    f"{self.person} has answered all of {self.experiment.name} in {self.store}, "
                    "and a second time would measure memory; give another person, or another store"
                )
            unfinished = [record for record in records if record.finished is None]
            if not unfinished:
                return None, 0
            run = unfinished[-1]
            # A store holds the first digits of an observer's digest.
            count = sum(
                run.observer_digest.startswith(answered.question.observer)
                for answered, _ in store.all_answers()
                if answered.answer["reply"]["finish"] != GIVEN_UP
            )
            return run, count

    def _running_exchange(self) -> QuestionExchange:
        """Return the exchange of questions with the page, refusing before it has begun."""
        if self._exchange is None:
            raise InputError("the session has not begun; load the page again")
        return self._exchange

    def _run_session(
        self, observer: PersonObserver, exchange: QuestionExchange
    ) -> None:
        """Run the experiment with the person, and tell the page its outcome or failure."""
        try:
            result = run_experiment(
                self.experiment, observer, store=self.store, progress=False
            )
            summary = self._summarize(result)
        except (
            Exception
        ) as error:  # an error of a thread is shown on the page, or nowhere
            exchange.end("failed", error=str(error))
            # The command itself reports a pause.
            if exchange.state()["phase"] == "failed":
                tell(f"psyprobe observe: {error}")
            return
        self.summary = {"phase": "done", **summary}
        exchange.end(**self.summary)
