"""Ask some stored questions again, to see whether the same observer would answer alike now.

The card of an observer does not show its code: a function that was edited under its name, a forward
hook, a module with another attribute, a kind of stimulus that reads a picture. So a few answers are
compared before the others are used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, StoreError
from psyprobe.files.json_types import JsonMapping
from psyprobe.observers.protocol import (
    DeferredObserver,
    PaidObserver,
    SeatedObserver,
    ServedObserver,
    SubmittingObserver,
)
from psyprobe.running.protocol import Answered, Batch, question_keys
from psyprobe.running.store import Store

#: Puts batches to observers, as `Probe.answer` does.
Answer = Callable[[JsonMapping, Iterable[Batch]], Iterator[Answered]]

#: Batches are asked again until they hold so many questions.
_QUESTIONS = 8
#: Largest change of a number by rounding, as a share of the largest of its kind; and of features in
#: short formats.
_ROUNDING = 1e-3
_ROUNDING_BY_DTYPE = {"float16": 0.1, "bfloat16": 0.1}
#: What a distance between features is compared with at least, so that those of features that are
#: all but equal, which are rounding alone, may change.
_SMALLEST_DISTANCE = 0.01
#: Largest change of the log-probability of the likeliest token by rounding, and in short formats.
_SLACK = 0.05
_SLACK_SHORT = 0.5
#: Largest share of replies that may differ: an observer may lapse.
_LAPSES = 1 / 8


class Repeats:
    """The observers of a run of which stored answers were not compared yet.

    Servers, people and whoever else has a price are never asked again, nor is an observer whose
    network is not loaded.

    Parameters
    ----------
    store : Store
        Has the answers.
    observers : mapping of str to observer
        The observers that would answer now, by the digests of their cards.
    answer : callable, optional
        Puts batches to observers, as `Probe.answer` does; without it nothing is asked.
    """

    def __init__(
        self, store: Store, observers: JsonMapping, answer: Answer | None
    ) -> None:
        self._store = store
        self._answer = answer
        self._unchecked = {
            digest: observer
            for digest, observer in observers.items()
            if answer is not None and _computes_here(observer)
        }

    def check(self, batches: Sequence[Batch]) -> None:
        """Ask a few stored questions of some batches again, once for each observer.

        Raises
        ------
        StoreError
            An observer repeats another answer than the stored one.
        """
        if not self._unchecked:
            return
        missing = self._store.missing(question_keys(batches))
        for digest, observer in list(self._unchecked.items()):
            sample = _sample(batches, digest, missing)
            if sample:
                del self._unchecked[digest]
                self._compare(digest, observer, sample)

    def _compare(self, digest: str, observer: Any, sample: list[Batch]) -> None:
        """Ask a few stored questions again, and refuse an observer whose answers have changed."""
        card = observer.card
        stored = self._store.answers(question_keys(sample))
        repeated = self._ask(digest, observer, sample)
        change = _describe_change(stored, repeated, card)
        if not change:
            return
        if _describe_change(repeated, self._ask(digest, observer, sample), card):
            warnings.warn(
                f"{card.name}: it answers the same question differently each time, so nothing "
                "tells whether stored answers are of the same code; give it a seed, and keep no "
                "state",
                ConditionWarning,
                stacklevel=5,
            )
            return
        raise StoreError(
            f"{card.name}: {change} that {self._store.name} holds, so its code, its weights or "
            "what a stimulus reads has changed, or its answers depend on the images beside; load "
            "it under a new version= (or another name), or use a new store"
        )

    def _ask(
        self, digest: str, observer: Any, sample: list[Batch]
    ) -> dict[str, JsonMapping]:
        """Ask an observer the questions of batches, and return its answers by key."""
        assert self._answer is not None
        answers = self._answer({digest: observer}, iter(sample))
        return {answered.question.key: answered.answer for answered in answers}


def _computes_here(observer: Any) -> bool:
    """Tell whether an observer is loaded and computes in this process, at no price."""
    if isinstance(observer, DeferredObserver) and not observer.loaded:
        return False
    elsewhere = ServedObserver | SubmittingObserver | PaidObserver | SeatedObserver
    return observer.card.device != "server" and not isinstance(observer, elsewhere)


def _sample(batches: Sequence[Batch], observer: str, missing: set[str]) -> list[Batch]:
    """Choose the last stored questions to an observer, whose responses lie far above noise."""
    sample = []
    count = 0
    for batch in reversed(batches):
        if batch.preparatory:
            continue
        questions = [
            question for question in batch.questions if question.observer == observer
        ]
        stored = {q.key: q for q in questions if q.key not in missing}
        if batch.atomic:
            chosen = questions if len(stored) == len(questions) else []
        else:
            chosen = [*stored.values()][: _QUESTIONS - count]
        if chosen:
            sample.append(replace(batch, questions=tuple(chosen)))
            count += len(chosen)
        if count >= _QUESTIONS:
            break
    return sample


def _describe_change(before: JsonMapping, after: JsonMapping, card: Any) -> str:
    """Describe how answers to the same questions differ beyond rounding; "" if they do not."""
    keys = [key for key in before if key in after]
    if not keys:
        return ""
    rounding = _ROUNDING_BY_DTYPE.get(card.dtype, _ROUNDING)
    for name in ("values", "lengths"):
        numbers, others = (
            [answers[key].get(name) for key in keys] for answers in (before, after)
        )
        if any(entry is None for entry in (*numbers, *others)):
            continue
        stored = np.array(numbers, dtype=np.float64)
        current = np.array(others, dtype=np.float64)
        if stored.shape != current.shape:
            return "its answers have another form than those"
        has_features = "lengths" in before[keys[0]]
        if name == "values" and has_features:
            # The angle has one scale for all features; a length of differences has none.
            stored = stored[..., :1]
            current = current[..., :1]
        scale = _scale(name, stored, has_features=has_features)
        share = np.max(np.abs(current - stored) / np.where(scale > 0, scale, 1.0))
        if share > rounding:
            return f"it now gives {name} that differ by {share:.2g} of the largest from those"
    differing = sum(not _agree(before[key], after[key], card) for key in keys)
    if differing > _LAPSES * len(keys):
        return f"{differing} of its {len(keys)} replies are others than those"
    return ""


def _scale(name: str, stored: FloatArray, *, has_features: bool) -> FloatArray:
    """Compute the size of stored numbers that changes are compared with, by layer and measure."""
    if name == "lengths":
        largest: FloatArray = stored.max(axis=(0, -1), keepdims=True)
        return largest
    largest = np.abs(stored).max(axis=0, keepdims=True)
    return largest + _SMALLEST_DISTANCE if has_features else largest


def _agree(before: JsonMapping, after: JsonMapping, card: Any) -> bool:
    """Tell whether two answers in words are alike, or two distances could both be shown."""
    if before.get("refused") != after.get("refused"):
        return False
    replies = [answer.get("reply") or {} for answer in (before, after)]
    likeliest, tokens = (dict(reply.get("first_tokens") or ()) for reply in replies)
    is_short = card.dtype in _ROUNDING_BY_DTYPE
    for token, logprob in [*likeliest.items()][:1]:
        slack = _SLACK_SHORT if is_short else _SLACK
        return token in tokens and abs(tokens[token] - logprob) < slack
    # In a short format a long text may go another way for the texts that share its batch.
    return is_short or replies[0].get("text") == replies[1].get("text")
