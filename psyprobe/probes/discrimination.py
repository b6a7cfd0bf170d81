"""Discrimination: how far two stimuli are apart for an observer that differ in one parameter, or which is which.

What differs stands in the experiment's [difference]: contrast on a pedestal, orientation, frequency, phase, luminance.
For encoders and metrics it is otherwise detection, and pairs that both probes ask about share their answers; an
observer that answers in words is shown both images and asked which of them has more of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.probes import detection
from psyprobe.probes.pairs import PairSession, Work
from psyprobe.running.protocol import Answered, Batch, RunRecord
from psyprobe.running.store import Store

__all__ = ["ABILITIES", "SECTIONS", "answer", "plan", "plot", "report", "result", "score"]

ABILITIES = (*detection.ABILITIES, "answer")
SECTIONS = (
    "stimulus", "levels", "difference", "variants", "human", "score", "observer", "asking", "delivery", "fit",
)  # fmt: skip


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """As in `Probe`; the experiment must say in what test and reference differ."""
    if experiment.difference is None:
        raise InputError(
            "there is no [difference]; give the parameter in which test and reference differ, such "
            'as parameter = "orientation", and its levels'
        )
    if observer.card.ability == "answer":
        return in_words().plan(experiment, observer)
    conditions = detection.grid_conditions(experiment, observer.card)
    return PairSession(experiment, observer, conditions, detection.VERSION, batch_size)


def answer(observers: Mapping[str, Any], batches: Iterable[Batch]) -> Iterator[Answered]:
    """As in `Probe`: batches of one run are all of pairs, or all in words."""
    every = iter(batches)
    first = next(every, None)
    if first is None:
        return iter(())
    asked = detection.answer if isinstance(first.work, Work) else in_words().answer
    return asked(observers, chain([first], every))


def result(record: RunRecord, store: Store) -> Any:
    """As in `Probe`."""
    return (in_words() if "asking" in record.layout else detection).result(record, store)


def score(result: Any, **options: Any) -> Any:
    """As in `Probe`: just noticeable differences where there is an anchor, alignment, or thresholds of answers."""
    return _of(result).score(result, **options)


def plot(results: Sequence[Any], ax: Any = None, **options: Any) -> Any:
    """As in `Probe`; what was answered in words is drawn apart."""
    kinds = {id(_of(one)): _of(one) for one in results}
    if len(kinds) > 1:
        raise InputError("answers in words and responses of encoders go on figures of their own; draw them apart")
    (of,) = kinds.values()
    return of.plot(results, ax, **options)


def report(results: Sequence[Any]) -> list[Any]:
    """As in `Probe`."""
    parts = ([one for one in results if ("trial" in one.dims) == words] for words in (False, True))
    return [part for some in parts if some for part in _of(some[0]).report(some)]


def _of(result: Any) -> Any:
    return in_words() if "trial" in result.dims else detection


def in_words() -> Any:
    """The probe that shows two images and asks about them, which loads on use."""
    from psyprobe.probes.words.session import two_interval

    return two_interval
