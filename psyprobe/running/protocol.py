"""Questions, answers and records of runs, and what a run needs of a probe and its schedule."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psyprobe.observers.protocol import Observer
    from psyprobe.running.store import Store
    from psyprobe.running.task import Task


#: Hexadecimal digits of a digest that a store keeps.
DIGEST_DIGITS = 32
#: Hexadecimal digits of the name of a procedure, with which the key of a question ends.
PROCEDURE_DIGITS = 16
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def check_label(label: str) -> str:
    """Return the label of a run, refusing one that no file name could hold.

    Raises
    ------
    InputError
        It has other characters than letters, digits, ".", "_" and "-", or more than 40.
    """
    if label and not _LABEL.fullmatch(label):
        raise InputError(
            f"label is {label!r:.80}; give up to 40 letters, digits, '.', '_' and '-', such as "
            "2026-11-20"
        )
    return label


def labelled(name: str, label: str) -> str:
    """Name an observer in the runs of a label, for tables, figures and reports.

    Examples
    --------
    >>> labelled("openai:m3", "2026-11-20"), labelled("pixels", "")
    ('openai:m3, 2026-11-20', 'pixels')
    """
    return f"{name}, {label}" if label else name


def started_label(started: str | None) -> str:
    """Make a label of when a run began, for runs that have none.

    Examples
    --------
    >>> started_label("2026-11-20T03:17:05+00:00")
    '2026-11-20T031705Z'
    """
    return f"{started[:19].replace(':', '')}Z" if started else ""


@dataclass(frozen=True)
class Question:
    """Everything that makes a question, each part by the digest of its content.

    Two experiments that ask the same question share its answer; a change of any part asks anew.

    Examples
    --------
    >>> question = Question(stimulus="a", request="b", observer="c", version="detection 1")
    >>> question.key == Question("a", "b", "c", "detection 1").key
    True
    """

    #: Digest of what is shown: specifications and display, or files, and how they are delivered.
    stimulus: str
    #: Digest of what is asked for: measures, or prompt, system text and decoding.
    request: str
    #: Digest of the observer's card.
    observer: str
    #: Version of the procedure, in words.
    version: str
    #: Label of the run that asks; with another label the same question is asked anew.
    label: str = ""

    @cached_property
    def key(self) -> str:
        """The question's name in a store: 32 hexadecimal digits of the stimulus, 16 of the
        procedure.
        """
        return self.stimulus[:DIGEST_DIGITS] + self.procedure

    @staticmethod
    def keys(
        stimuli: Iterable[str], request: str, observer: str, version: str
    ) -> Iterator[str]:
        """Compute the keys of questions that differ in their stimulus alone."""
        procedure = _procedure_name(request, observer, version)
        return (stimulus[:DIGEST_DIGITS] + procedure for stimulus in stimuli)

    @property
    def procedure(self) -> str:
        """The digest of what is asked, of whom, in which version: 16 hexadecimal digits."""
        name = _procedure_name(self.request, self.observer, self.version)
        return label_procedure(name, self.label)


@lru_cache(maxsize=1 << 14)
def _procedure_name(request: str, observer: str, version: str) -> str:
    """Hash what is asked, the observer's card and the version to a short name."""
    parts = (request[:DIGEST_DIGITS], observer[:DIGEST_DIGITS], version)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:PROCEDURE_DIGITS]


@lru_cache(maxsize=1 << 14)
def label_procedure(procedure: str, label: str) -> str:
    """Name a procedure under a label; without a label it keeps its name."""
    if not label:
        return procedure
    return hashlib.sha256(f"{procedure}\n{label}".encode()).hexdigest()[
        :PROCEDURE_DIGITS
    ]


@dataclass(frozen=True)
class Origin:
    """What gave an answer, as far as the observer's card does not say; no part of the question's
    key.
    """

    #: Version of each package that had a part in it.
    software: Mapping[str, str] = field(default_factory=dict)
    #: Device that computed it.
    device: str = ""
    #: What a server says of itself: "listed" (its list of models), "model" and "fingerprint" (its
    #: reply).
    served: Mapping[str, str] = field(default_factory=dict)


#: What a digest stands for: digest, kind, what JSON can hold. The digest is that of the JSON; of an
#: "observer" it leaves out circumstances, and in "stimuli" each content counts by its digest.
Content: TypeAlias = tuple[str, str, Any]


@dataclass(frozen=True)
class Answered:
    """A question with the observer's answer."""

    question: Question
    #: What JSON can hold: {"values": ...} of an encoder, {"text": ...} in words, {"refused": why}
    #: if nothing could be shown.
    answer: JsonMapping
    #: What digests stand for that only asking could tell.
    contents: tuple[Content, ...] = ()
    #: A probe fills in what the reply of a server says of itself, the loop all else.
    origin: Origin = Origin()
    #: Name of the experiment that asked first; the loop fills it in.
    experiment: str = ""
    #: Values of what the experiment varies, by name, for whoever reads the store.
    levels: JsonMapping = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Questions that are put together, as plain data that another process could take: no pixels, no
    features.

    `work` holds what a probe needs to put them, made of values that pickle: specifications,
    display, prompts, paths.
    """

    questions: tuple[Question, ...]
    work: Any
    #: Whether all of them are put to an observer or none: an encoder's rounding depends on which
    #: images share a batch.
    atomic: bool = False
    #: Name of what a probe makes for several batches, such as features of references: a worker that
    #: has put one batch of the group is given the next one of it.
    group: str = ""
    #: Name of what a process takes on lease together, so that one process asks it all, such as a
    #: person's session; by default the batch alone.
    session: str = ""
    #: Whether answers only prepare later questions, such as the training of a stage: these are not
    #: asked again to see whether an observer has changed.
    preparatory: bool = False


def question_keys(batches: Iterable[Batch]) -> set[str]:
    """Return the keys of all questions of some batches."""
    return {question.key for batch in batches for question in batch.questions}


@dataclass(frozen=True)
class RunRecord:
    """One run: enough to rebuild its result without the observer or the catalogue."""

    #: Name, digest and text of the experiment's page.
    experiment: str
    experiment_digest: str
    experiment_toml: str
    #: The observer's name, and its card with the device and the software that the run began on.
    observer: str
    observer_digest: str
    observer_card: JsonMapping
    #: Name of the probe, and all that its `result` needs besides the answers.
    probe: str
    layout: JsonMapping
    #: Versions of the software with which the run began.
    software: Mapping[str, str]
    #: The batches into which questions were grouped; whatever goes on with the run keeps to them.
    #: They are no part of its key.
    grouping: JsonMapping = field(default_factory=dict)
    #: What the schedule found by itself; until the run is finished, at most why it was given up.
    outcome: JsonMapping = field(default_factory=dict, compare=False)
    #: The origins of all its answers, of those too that the store had before; empty until the run
    #: is finished.
    origins: Sequence[Origin] = field(default=(), compare=False)
    #: UTC times in ISO 8601; `finished` is None until every question is answered.
    started: str | None = field(default=None, compare=False)
    finished: str | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """The label of the run; "" of a run without."""
        return str(self.layout.get("label", ""))

    def with_label(self, label: str) -> RunRecord:
        """Return the record under a label, which is a part of its key if it is not empty."""
        layout = {**self.layout, "label": label} if label else self.layout
        return replace(self, layout=layout)

    @property
    def given_up(self) -> str:
        """Why no more was asked of the observer; "" unless the run was ended so."""
        return str(self.outcome.get("given_up", "")) if self.finished is None else ""

    def give_up(self, reason: str) -> RunRecord:
        """Return the record with why no more was asked; "" for a run that goes on."""
        return replace(self, outcome={"given_up": reason} if reason else {})

    @cached_property
    def key(self) -> str:
        """The run's digest, the same for the same experiment, observer and conditions.

        Numbers count to ten digits: human sensitivities come of powers, whose last bit differs
        between processors.
        """
        return digest(
            [
                self.experiment_digest,
                self.observer_digest,
                self.probe,
                _to_ten_digits(self.layout),
            ]
        )

    @property
    def outcome_digest(self) -> str:
        """The digest of what the schedule found, its numbers to ten digits."""
        return digest(_to_ten_digits(self.outcome))


@dataclass(frozen=True)
class Attempt:
    """How an attempt at a run ended that did not finish it."""

    #: Key of the run, its first 128 bits.
    run: str
    #: UTC times in ISO 8601.
    started: str
    ended: str
    #: "failed", "unfinished" (budget, batch) or "interrupted".
    how: str
    #: Kind of the failure, as `psyprobe run --jsonl` names it; "" of others.
    kind: str
    message: str
    #: Answers that the store then had of the observer under the run's label.
    answers: int

    def __str__(self) -> str:
        kind = f" ({self.kind})" * bool(self.kind)
        return f"{self.how}{kind} {self.ended}, with {self.answers:,} answers: {self.message}"


def _to_ten_digits(value: Any) -> Any:
    """Round all floats in nested JSON to ten significant digits."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, Mapping):
        return {name: _to_ten_digits(entry) for name, entry in value.items()}
    if not isinstance(value, list | tuple) or {*map(type, value)} <= {str, int}:
        return value
    return [*map(_to_ten_digits, value)]


class Plan(Protocol):
    """What a run means before anything is asked; it prints as a paragraph."""

    #: Number of questions, and how many of them are answered in the store.
    questions: int
    answered: int
    #: Distinct images that are drawn.
    images: int
    #: How long the rest takes; None if it was not estimated.
    seconds: float | None

    def with_all(self, plans: Sequence[Any]) -> Plan:
        """Join this plan and those of other variants of one experiment."""

    def to_dict(self) -> JsonObject:
        """Return the plan as numbers, text and lists."""


class Schedule(Protocol):
    """One run of a probe: which questions come next, given the answers so far. Adaptive designs
    live here.
    """

    #: All observers that are asked, by the digests of their cards, as in questions.
    observers: Mapping[str, Observer]
    #: What a reader should know before anything is asked, such as a stimulus that differs from what
    #: people saw.
    remarks: Sequence[str]
    #: Questions of all rounds, as far as it knows them before; for the progress bar.
    question_count: int

    def record(self, store: Store) -> RunRecord:
        """Return the record of the run as it would begin now, with what the store has answered."""

    def contents(self) -> Iterable[Content]:
        """Iterate over what the questions' digests stand for: (digest, kind, JSON value)."""

    def narrow(self, holds: Callable[[str], bool]) -> None:
        """Restrict questions to those whose digest a function accepts, and what they depend on."""

    def begin(self, record: RunRecord) -> None:
        """Adopt the record of the run: this one's, or that of an earlier process."""

    def next(self) -> Sequence[Batch]:
        """Return the batches of questions of the next round, none when all are asked."""

    def watch(self, answered: Answered) -> None:
        """Look at a new answer as it comes, and raise an error if asking on is of no use."""

    def tell(self, answers: Mapping[str, JsonMapping]) -> None:
        """Take the answers to a round, by the keys of its questions."""

    def outcome(self) -> JsonObject:
        """Return what the result needs besides answers and layout, once all is asked."""

    def cost(self, store: Store, *, timed: bool) -> Plan:
        """Estimate what is left to ask and what it takes, asking nothing.

        A network may be timed to tell how long it takes.
        """


class Probe(Protocol):
    """A task that is put to observers; a module or an object with these names.

    One about items may have ``marks(result)`` besides: how right each answer is, by the name of its
    question, which logs for other harnesses tell; and ``judge_replies(result, judge, *, store,
    progress)``: the result with what a judge makes of each reply, which its score then tells beside
    its own reading; and ``plan_again(experiment, record, stand_in)``: the schedule of a recorded
    run, whose observers nobody loads.
    """

    #: Of "features", "difference" and "answer": an observer has one of these.
    ABILITIES: tuple[str, ...]
    #: Tables and keys of a page that the probe reads, besides those of every experiment.
    SECTIONS: tuple[str, ...]

    def plan(self, experiment: Any, observer: Any, **options: Any) -> Schedule:
        """Check that an experiment can be put to an observer, and schedule its questions."""

    def answer(
        self, observers: JsonMapping, batches: Iterable[Batch]
    ) -> Iterator[Answered]:
        """Ask observers the questions of batches, and iterate over answers as they come.

        `operator.length_hint` tells how many batches are known; there may be none beyond these.
        """

    def task(self, record: RunRecord) -> Task:
        """Return what the observer of a run is asked to do, which every result carries."""

    def result(self, record: RunRecord, store: Store) -> xarray.Dataset:
        """Arrange the answers of a finished run as a dataset."""

    def score(self, result: xarray.Dataset, **options: Any) -> Sequence[Any]:
        """Score a result: a list of `psyprobe.analysis.score.Score`."""

    def plot(
        self, results: Sequence[xarray.Dataset], ax: Axes | None = None, **options: Any
    ) -> Axes | Figure:
        """Draw the figure that fits some results."""
