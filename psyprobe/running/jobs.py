"""What a worker in another process needs to put batches to observers, and how it puts them.

Only plain data travels, batches out and answers back, and only the process that called writes. A
worker loads an observer once, by name and options, and must come to the same card; what a probe
makes for one batch and keeps for the next, such as features of references, stays with the worker. A
batch is put whole and to one worker, and networks compute with as many threads as in the process
that called, so that neither the workers nor their number change a byte.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Self

from psyprobe.errors import InputError, PsyprobeError, describe_failure
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import software_versions
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import load_observer, loaded_as
from psyprobe.running.protocol import Answered, Batch, Origin, question_keys

Answer = Callable[..., Iterator[Answered]]

#: Entries of a card that its digest does not cover, but for the device, which moves numbers.
_BESIDE_DIGEST = ("software", "weights", "licence", "paper")


@dataclass(frozen=True)
class ObserverRecipe:
    """What a worker needs to come by an observer."""

    card: JsonMapping
    #: Name and options that load it, or None ...
    loading: tuple[str, JsonMapping] | None
    #: ... and then the observer itself.
    observer: Any = None


@dataclass(frozen=True)
class Job:
    """What a worker needs before it can be given batches."""

    answer: Answer
    recipes: Mapping[str, ObserverRecipe]
    #: Threads with which torch computes; None if it was never imported.
    threads: int | None


def pack_job(
    answer: Answer, observers: JsonMapping, dumps: Callable[[Any], bytes] = pickle.dumps
) -> bytes:
    """Pickle what a worker needs: the function that asks, and the observers.

    Raises
    ------
    InputError
        An observer that was handed in cannot be sent.
    """
    recipes = {}
    for digest, observer in observers.items():
        loading = loaded_as(observer)
        recipe = ObserverRecipe(
            observer.card.to_dict(), loading, None if loading else observer
        )
        try:
            dumps(recipe)
        except (
            Exception
        ) as problem:  # each object that cannot be sent says so in its own way
            raise InputError(
                f"{observer.card.name} cannot be sent to workers ({describe_failure(problem):.120})"
                "; load it by name, such as torch:FILE.py:FUNCTION, make it of a function that a "
                "module holds, or run without workers"
            ) from problem
        recipes[digest] = recipe
    torch = sys.modules.get("torch")
    return dumps(
        Job(answer, recipes, None if torch is None else torch.get_num_threads())
    )


class _BatchQueue(deque[Batch]):
    """Batches as they are put, each handed out once; its length tells how many are known.

    What a probe keeps between batches outlives a unit.
    """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if not self:
            raise StopIteration
        return self.popleft()


class JobRunner:
    """A worker's part of a job: puts batches to the observers that it has loaded.

    Parameters
    ----------
    packed_job : bytes
        As `pack_job` gives it.
    last : JobRunner, optional
        Of the job before, whose observers serve again if they were loaded alike.
    """

    def __init__(self, packed_job: bytes, last: JobRunner | None = None) -> None:
        job: Job = pickle.loads(packed_job)
        self._answer = job.answer
        loaded = {} if last is None else last._observers
        self._observers: JsonObject = {
            digest: _load(recipe, loaded.get(digest))
            for digest, recipe in job.recipes.items()
        }
        self._origins = {
            digest: Origin(
                {**software_versions(), **observer.card.software}, observer.card.device
            )
            for digest, observer in self._observers.items()
        }
        if job.threads is not None:
            import torch

            torch.set_num_threads(job.threads)
        self._queue = _BatchQueue()
        self._answers: Iterator[Answered] | None = None

    def put(self, batches: Sequence[Batch]) -> list[Answered]:
        """Ask the observers some batches, and return all answers."""
        missing = question_keys(batches)
        answers: list[Answered] = []
        self._queue.extend(batches)
        try:
            while missing:
                if self._answers is None:
                    self._answers = self._answer(self._observers, self._queue)
                answered = next(self._answers, None)
                if answered is not None:
                    missing.discard(answered.question.key)
                    answers.append(replace(answered, origin=self._origin(answered)))
                elif not self._queue:
                    break
                else:
                    self._answers = None
        except BaseException:
            self._answers = None
            self._queue.clear()
            raise
        return answers

    def _origin(self, answered: Answered) -> Origin:
        """Return what computed an answer: software, device, and what a server said of itself."""
        origin = self._origins[answered.question.observer]
        served = answered.origin.served
        return replace(origin, served=served) if served else origin


def _load(recipe: ObserverRecipe, loaded: Any) -> Any:
    """Load a recipe's observer, refusing another card; reuse the one that is loaded."""
    expected = Card.from_dict(recipe.card)
    if recipe.loading is None:
        observer = recipe.observer
    elif loaded_as(loaded) == recipe.loading and loaded.card.digest == expected.digest:
        return loaded
    else:
        name, options = recipe.loading
        observer = load_observer(name, **options)
    device = observer.card.device.partition(":")[0]
    has_same_device = device == expected.device.partition(":")[0]
    if observer.card.digest == expected.digest and has_same_device:
        return observer
    card = observer.card.to_dict()
    differing_entry = next(
        name
        for name, value in recipe.card.items()
        if name not in _BESIDE_DIGEST and card[name] != value
    )
    raise InputError(
        f"a worker's {expected.name} is another one: its {differing_entry} is "
        f"{card[differing_entry]!r:.80} and not {recipe.card[differing_entry]!r:.80}; give all "
        "workers the same weights, packages and devices"
    )


def portable_error(problem: BaseException) -> PsyprobeError:
    """Convert a worker's exception to an error that can be raised in another process."""
    if isinstance(problem, PsyprobeError):
        try:
            pickle.loads(pickle.dumps(problem))
            return problem
        except Exception:  # an error that carries what cannot travel: its sentence can
            return PsyprobeError(str(problem))
    return PsyprobeError(f"a worker failed at {describe_failure(problem)}")


class TimedAnswers(NamedTuple):
    """The answers to some batches, and how long they took."""

    seconds: float
    answers: list[Answered]


def put_timed(runner: JobRunner, batches: Sequence[Batch]) -> TimedAnswers:
    """Ask some batches, and return the answers with the seconds taken."""
    start = perf_counter()
    answers = runner.put(batches)
    return TimedAnswers(perf_counter() - start, answers)


#: The runner of a process to which a cluster gives units, by the digest of its job; it puts one
#: unit at a time.
_RUNNERS: dict[str, JobRunner] = {}
_LOCK = threading.Lock()


def put_anywhere(packed_job: bytes, batches: Sequence[Batch]) -> TimedAnswers:
    """Ask some batches of a pickled job in whatever process this runs."""
    with _LOCK:
        digest = hashlib.sha256(packed_job).hexdigest()
        try:
            if digest not in _RUNNERS:
                runner = JobRunner(packed_job, *_RUNNERS.values())
                _RUNNERS.clear()
                _RUNNERS[digest] = runner
            return put_timed(_RUNNERS[digest], batches)
        except Exception as problem:
            raise portable_error(problem) from None
