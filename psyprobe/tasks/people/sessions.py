"""What a page of a person goes through, whatever it shows: a run in a thread of its own, and a
session before it.
"""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.files.terminal import tell
from psyprobe.observers.chat.protocol import GIVEN_UP
from psyprobe.observers.people.observer import PersonObserver, Session, Showing
from psyprobe.probes.experiments import run_experiment
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store, open_store

if TYPE_CHECKING:
    import xarray


class PersonVisit(ABC):
    """One person before one experiment; an unfinished session of theirs in the store goes on.

    Parameters
    ----------
    experiment : Experiment
        Checked.
    person : str
        A pseudonym.
    store : Path
        Where answers go.
    """

    #: What the page shows, by which it knows its steps.
    kind: str
    #: The command that shows what came of it, before the store's name.
    afterwards: str
    #: Whether a person sits it once in a store: who saw pictures remembers them.
    once: bool

    def __init__(self, experiment: Experiment, person: str, store: Path) -> None:
        self.experiment = experiment
        self.person = person
        self.store = store
        #: What came of it, once it is over.
        self.found: dict[str, Any] = {}
        #: Set when nothing more is to be asked.
        self.over = threading.Event()
        self._session: Session | None = None
        self._one_at_a_time = threading.Lock()
        #: The session that was begun last and not ended, and how much of it is answered.
        self._earlier, self._answered = self._unfinished()
        self._session_id: str = secrets.token_hex(8)
        if self._earlier is not None:
            self._session_id = self._earlier.observer_card["options"]["session"]

    def facts(self) -> Mapping[str, Any]:
        """As in `Visit`."""
        return {
            "kind": self.kind,
            "title": self.experiment.title,
            "person": self.person,
            "store": str(self.store),
            "state": None if self._session is None else self._session.state(),
        }

    @abstractmethod
    def calibrate(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """As in `Visit`."""

    def begin(self, values: Mapping[str, Any]) -> None:
        """As in `Visit`."""
        with self._one_at_a_time:
            if self._session is not None:
                return
            if values.get("consent") is not True:
                raise InputError("nobody has agreed yet; load the page again")
            told = {
                each: values.get(each)
                for each in ("consent", "practice", "browser", "screen")
                if each in values
            }
            session = Session(
                self._showing(), self._session_id, self._answered + 1, self._total(), told
            )
            observer = self._observer(session.put)
            threading.Thread(target=self._ask, args=(observer, session), daemon=True).start()
            self._session = session

    def state(self, seconds: float) -> Mapping[str, Any]:
        """As in `Visit`."""
        state = self._begun().state(seconds)
        if state["phase"] in ("done", "failed"):
            self.over.set()
        return state

    def answer(self, values: Mapping[str, Any]) -> None:
        """As in `Visit`."""
        self._begun().answer(values)

    def pause(self) -> None:
        """Ask nothing more."""
        if self._session is not None:
            self._session.end("paused")

    @abstractmethod
    def _observer(self, put: Any) -> PersonObserver:
        """The person in this session, whom `put` asks."""

    @abstractmethod
    def _showing(self) -> Showing:
        """How questions of this session are shown."""

    @abstractmethod
    def _total(self) -> int | None:
        """Questions in all; None where the design alone knows."""

    @abstractmethod
    def _told(self, result: xarray.Dataset) -> dict[str, Any]:
        """What the page shows at the end."""

    def _unfinished(self) -> tuple[RunRecord | None, int]:
        if not self.store.exists():
            return None, 0
        with open_store(self.store, create=False) as store:
            records = runs_of(store, self.experiment, self.person)
            if self.once and records and records[-1].finished is not None:
                raise InputError(
                    f"{self.person} has answered all of {self.experiment.name} in {self.store}, "
                    "and a second time "
                    "would measure memory; give another person, or another store"
                )
            unfinished = [record for record in records if record.finished is None]
            if not unfinished:
                return None, 0
            # A store knows digests by their first digits.
            kept = (answered for answered, _ in store.all_answers())
            whom = (
                each.question.observer
                for each in kept
                if each.answer["reply"]["finish"] != GIVEN_UP
            )
            return unfinished[-1], sum(
                unfinished[-1].observer_digest.startswith(each) for each in whom
            )

    def _begun(self) -> Session:
        if self._session is None:
            raise InputError("the session has not begun; load the page again")
        return self._session

    def _ask(self, observer: PersonObserver, session: Session) -> None:
        try:
            found = self._told(
                run_experiment(self.experiment, observer, store=self.store, progress=False)
            )
        except Exception as error:  # a thread's error is told on the page, or by nobody
            session.end("failed", error=str(error))
            # Of a pause the command tells at its end.
            if session.state()["phase"] == "failed":
                tell(f"psyprobe observe: {error}")
            return
        self.found = {"phase": "done", **found}
        session.end(**self.found)


def runs_of(store: Store, experiment: Experiment, person: str) -> list[RunRecord]:
    """What of an experiment a person has begun, in order."""
    return [
        record
        for record in store.runs()
        if record.observer == f"person:{person}" and record.experiment_digest == experiment.digest
    ]


def nobody(_: Any) -> Any:
    """Who answers while an experiment is only checked."""
    raise PsyprobeError("nobody is asked while an experiment is checked")
