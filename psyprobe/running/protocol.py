"""What is asked and what comes back; what a run needs of a probe, and a probe of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from psyprobe.files.output import digest

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psyprobe.observers.protocol import Observer
    from psyprobe.running.store import Store
    from psyprobe.running.task import Task


@dataclass(frozen=True)
class Question:
    """Everything that makes a question, each part by the digest of its content.

    Two experiments that ask the same question share its answer; a change of any part asks anew.

    Examples
    --------
    >>> asked = Question(shown="a", asked="b", observer="c", version="detection 1")
    >>> asked.key == Question("a", "b", "c", "detection 1").key
    True
    """

    #: What is seen: specifications and display, or files, and how they are delivered.
    shown: str
    #: What is asked: measures, or prompt, system text and decoding.
    asked: str
    #: The card of who is asked.
    observer: str
    #: Of the way of asking, in words.
    version: str

    @cached_property
    def key(self) -> str:
        """The name of the question in a store, hexadecimal: 32 digits of what is shown, 16 of the
        way it is asked.
        """
        return self.shown[:32] + self.way

    @staticmethod
    def keys(shown: Iterable[str], asked: str, observer: str, version: str) -> list[str]:
        """The keys of questions that differ in what is shown alone."""
        way = _way_name(asked, observer, version)
        return [each[:32] + way for each in shown]

    @property
    def way(self) -> str:
        """The name of what is asked of whom, which many questions share: 16 hexadecimal digits."""
        return _way_name(self.asked, self.observer, self.version)


@lru_cache(maxsize=1 << 14)
def _way_name(asked: str, observer: str, version: str) -> str:
    # Of a digest the 32 digits count by which a store knows it.
    return hashlib.sha256("\n".join((asked[:32], observer[:32], version)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Origin:
    """What gave an answer besides what the card's digest tells; no part of the question's key, and
    kept beside it.
    """

    #: Version of each package that had a part in it.
    software: Mapping[str, str] = field(default_factory=dict)
    #: Where it was computed.
    device: str = ""
    #: What a server says of itself: "listed" (its list of models), "model" and "fingerprint" (its
    #: reply).
    served: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """All of it as JSON, as a store keeps it."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Answered:
    """What came back to one question."""

    question: Question
    #: What JSON can hold: {"values": ...} of an encoder, {"text": ...} in words, {"refused": why}
    #: where nothing could be shown.
    answer: Mapping[str, Any]
    #: What digests stand for that only the asking could tell: (digest, kind, what JSON can hold).
    contents: tuple[tuple[str, str, Any], ...] = ()
    #: A probe fills in what the reply of a server says of itself, the loop all else.
    origin: Origin = Origin()


@dataclass(frozen=True)
class Batch:
    """Questions that are put together, as plain data that another process could take: no pixels, no
    features.

    `work` holds what a probe needs to put them, made of values that pickle: specifications,
    display, prompts, paths.
    """

    questions: tuple[Question, ...]
    work: Any
    #: Put all of them to an observer or none: an encoder's rounding depends on which images share a
    #: batch.
    whole: bool = False
    #: Names what a probe makes for the batch and keeps, such as features of references: whoever has
    #: put one batch is given the next of the same name.
    shares: str = ""
    #: Names what a process takes on lease with the batch, so that all of one name are asked by one:
    #: a person's session. By default it is the batch alone.
    session: str = ""


@dataclass(frozen=True)
class RunRecord:
    """What a run was: enough to rebuild its result without the observer or the catalogue."""

    #: Name, digest and text of the experiment's page.
    experiment: str
    experiment_digest: str
    experiment_toml: str
    #: Name of who was asked, and the card, with the device and the software that the run began on.
    observer: str
    observer_digest: str
    observer_card: Mapping[str, Any]
    #: Name of the probe, and all that its `result` needs besides the answers.
    probe: str
    layout: Mapping[str, Any]
    #: Versions of the software with which the run began.
    software: Mapping[str, str]
    #: How questions were grouped; binding for whoever goes on with the run, and no part of its key.
    grouping: Mapping[str, Any] = field(default_factory=dict)
    #: What the session found by itself; empty until the run is finished.
    outcome: Mapping[str, Any] = field(default_factory=dict, compare=False)
    #: All that answered in it, those among it whose answers the store had; empty until the run is
    #: finished.
    origins: Sequence[Origin] = field(default=(), compare=False)
    #: UTC times in ISO 8601; `finished` is None until every question is answered.
    started: str | None = field(default=None, compare=False)
    finished: str | None = field(default=None, compare=False)

    @cached_property
    def key(self) -> str:
        """The name of the run: the same experiment, observer and conditions go on with the same
        run.

        Numbers count to ten digits: human sensitivities come of powers, whose last bit differs
        between processors.
        """
        return digest(
            [self.experiment_digest, self.observer_digest, self.probe, _to_ten_digits(self.layout)]
        )


def _to_ten_digits(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, Mapping):
        return {name: _to_ten_digits(each) for name, each in value.items()}
    if not isinstance(value, list | tuple) or {*map(type, value)} <= {str, int}:
        return value
    return [*map(_to_ten_digits, value)]


class Plan(Protocol):
    """What a run means before anything is asked; it prints as a paragraph."""

    #: Questions in all, and how many of them the store has answered.
    questions: int
    answered: int
    #: Distinct images that are drawn.
    images: int
    #: What is left takes about so long; None where that was not asked for.
    seconds: float | None

    def with_all(self, others: Sequence[Any]) -> Plan:
        """The plan of several variants of one experiment."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as numbers, text and lists."""


class Schedule(Protocol):
    """One run of a probe: which questions come next, given the answers so far. Adaptive designs
    live here.
    """

    #: Everyone who is asked, by the digest of the card; questions name them so.
    observers: Mapping[str, Observer]
    #: What a reader should know before anything is asked, such as a stimulus that differs from what
    #: people saw.
    remarks: Sequence[str]

    def record(self, store: Store) -> RunRecord:
        """The run as it would begin now; the store tells what needs no asking."""

    def contents(self) -> Iterable[tuple[str, str, Any]]:
        """What the digests of questions stand for, as far as it is known before: (digest, kind,
        what JSON can hold).
        """

    def narrow(self, holds: Callable[[str], bool]) -> None:
        """Ask only a part from now on: that whose digests the function holds, and all that it
        depends on.
        """

    def begin(self, record: RunRecord) -> None:
        """Take the record that counts: its own, or that of an earlier process that began the same
        run.
        """

    def next(self) -> Sequence[Batch]:
        """The batches of one round; none when everything is asked."""

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the answers to a round by the keys of its questions."""

    def outcome(self) -> dict[str, Any]:
        """What `result` needs besides answers and layout once all is asked, as JSON can hold it."""

    def cost(self, store: Store, *, timed: bool) -> Plan:
        """What is left to ask and what it takes; nothing is asked, but where time is wanted a
        network may be timed.
        """


class Probe(Protocol):
    """A task that is put to observers; a module or an object with these names.

    One about items may have ``marks(result)`` besides: how right each answer is, by the name of its
    question, which logs for other harnesses tell; and ``judge_replies(result, judge, *, store,
    progress)``: the result with what a judge makes of each reply, which its score then tells beside
    its own reading.
    """

    #: Of "features", "difference" and "answer": an observer has one of these.
    ABILITIES: tuple[str, ...]
    #: Tables and keys of a page that the probe reads, besides those of every experiment.
    SECTIONS: tuple[str, ...]

    def plan(self, experiment: Any, observer: Any, **options: Any) -> Schedule:
        """Check that the experiment can be put to the observer, and say how; nothing is asked."""

    def answer(self, observers: Mapping[str, Any], batches: Iterable[Batch]) -> Iterator[Answered]:
        """Put batches to observers and yield each answer as it comes, in any order.

        `operator.length_hint` tells how many batches are known; whoever takes one more may be told
        that there is none.
        """

    def task(self, record: RunRecord) -> Task:
        """What the observer of a run is asked to do; every result carries it."""

    def result(self, record: RunRecord, store: Store) -> xarray.Dataset:
        """Put the answers of a finished run where they belong."""

    def score(self, result: xarray.Dataset, **options: Any) -> Sequence[Any]:
        """Scores of a result: objects that are a `psyprobe.analysis.score.Score`."""

    def plot(
        self, results: Sequence[xarray.Dataset], ax: Axes | None = None, **options: Any
    ) -> Axes | Figure:
        """The figure that fits results."""
