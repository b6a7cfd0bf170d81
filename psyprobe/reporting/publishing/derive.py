"""Derive a run again from its page and its stored answers, asking nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from psyprobe.experiment import Experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.protocol import Card
from psyprobe.probes.experiments import run_experiment
from psyprobe.running.loop import Executor
from psyprobe.running.protocol import Answered, RunRecord
from psyprobe.running.registry_run import UnsoundError
from psyprobe.running.store import Store

#: Observers whose runs need what no answer holds: training, a person, or a file of responses.
NOT_DERIVED = ("decided:", "person:", "replay:")


class RecordingStore(Store):
    """A store, by default in memory, that records which questions a run reads and lacks."""

    def __init__(self, path: str | Path | None = None) -> None:
        super().__init__(path)
        self.read_keys: set[str] = set()
        self._lacking: set[str] = set()

    def missing(self, keys: Iterable[str]) -> set[str]:
        """Select the keys of questions that have no answer yet, recording all."""
        keys = set(keys)
        names = self.stored_names(keys)
        missing = super().missing(keys)
        self._lacking |= {
            name
            for name, key in names.items()
            if key in missing and name not in self.read_keys
        }
        self.read_keys |= set(names)
        return missing

    def count_asked(self) -> tuple[int, int]:
        """Count the questions that were answered since the store was opened, and those before."""
        lacking = len(self._lacking)
        missing = len(Store.missing(self.with_label(""), self._lacking))
        return lacking - missing, len(self.read_keys) - lacking


class StandIn:
    """An observer that has a card and must not be asked.

    Parameters
    ----------
    card : Card
        The card of the observer that it stands in for.
    """

    #: No observer that is not loaded is asked to repeat an answer.
    loaded = False
    bits = None
    images_at_once = None

    def __init__(self, card: Card) -> None:
        self.card = card

    def delivered(self, image: Any) -> Any:
        """Return the image as it is."""
        return image

    def features(self, images: Any) -> Any:
        """Refuse to answer."""
        raise unanswered()

    def difference(self, test: Any, reference: Any) -> Any:
        """Refuse to answer."""
        raise unanswered()

    def answer(self, *images: Any, **request: Any) -> Any:
        """Refuse to answer."""
        raise unanswered()


class NobodyAsked:
    """An executor that refuses to put a question to anyone, the bare image included."""

    def put(self, *_: Any) -> Iterator[Answered]:
        """Refuse a round that has questions without answers."""
        raise unanswered()


def unanswered() -> UnsoundError:
    """Build the error about a question without an answer."""
    return UnsoundError(
        "answers-missing", "a question that the page asks has no answer in the run"
    )


@contextmanager
def page_alone(text: str, name: str, variants: JsonMapping) -> Iterator[Experiment]:
    """Read a page that stands alone: files beside it are not there.

    Parameters
    ----------
    text : str
        The page.
    name : str
        Name of the experiment.
    variants : mapping
        Those of the run, in place of those of the page.
    """
    with TemporaryDirectory() as folder:
        page = experiment_from_text(text, name, Path(folder))
        yield page.with_variants(variants) if variants or page.variants else page


def derive(
    page: Experiment,
    record: RunRecord,
    store: RecordingStore,
    *,
    score_only: bool,
    executor: Executor | None = None,
) -> list[RunRecord]:
    """Run a page over stored answers, and return the records as they come out.

    Parameters
    ----------
    page : Experiment
        The page.
    record : RunRecord
        The run, or one of its variants; its observer has a stand-in.
    store : RecordingStore
        The answers. It must not hold the run; it records which answers were read.
    score_only : bool
        Whether only what the score needs was shown.
    executor : Executor, optional
        Puts questions that the store has no answers to; by default nobody does.

    Raises
    ------
    UnsoundError
        A question has no answer.
    """
    store.read_keys.clear()
    before = {*store.run_keys()}
    batch_size: Any = record.grouping.get("batch_size")
    run_experiment(
        page,
        StandIn(Card.from_dict(record.observer_card)),
        store=store,
        batch_size=batch_size,
        score_only=score_only,
        label=record.label,
        executor=executor or NobodyAsked(),
        progress=False,
    )
    derived = (store.find_run(key) for key in store.run_keys() if key not in before)
    return [record for record in derived if record is not None]


def same_record(records: Sequence[RunRecord], others: Sequence[RunRecord]) -> bool:
    """Tell whether runs have the same layout and outcome, to ten digits."""
    return _forms(records) == _forms(others)


def _forms(records: Sequence[RunRecord]) -> list[JsonObject]:
    """List the keys and outcomes of runs, sorted: two derivations must agree in them."""
    return sorted(
        ({"key": record.key, "outcome": record.outcome_digest} for record in records),
        key=lambda form: form["key"],
    )
