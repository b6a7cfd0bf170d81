"""Put a share of a run's questions again: what was delivered is measured anew, and an observer
that is here is asked anew.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psyprobe.errors import PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.protocol import Card
from psyprobe.reporting.publishing.derive import RecordingStore, StandIn, unanswered
from psyprobe.running.protocol import DIGEST_DIGITS, Answered, RunRecord

#: What psyprobe measures of a shown image, and keeps with the reply.
_MEASURED = ("delivered_contrast", "coherent_gain", "total_contrast")
#: Fewest images that are drawn again, and questions that are asked again.
_FEWEST = 20
#: Largest difference, as a share, of what is drawn or simulated, and of an encoder.
_EXACT = 1e-9
_ROUNDING = 1e-4
#: Kinds of observers that answer alike wherever they are.
_HERE = ("simulated:", "packaged:", "timm:", "pixels", "cvvdp")


class _Mute(Answering):
    """An observer that is shown images and says nothing."""

    takes_all = True

    def __init__(self, card: Card) -> None:
        self.card = card

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Iterate over empty answers."""
        for inquiry in inquiries:
            yield inquiry, Answer("")


class Repeater:
    """An executor that puts questions again, compares, and gives the stored answers back.

    Parameters
    ----------
    store : RecordingStore
        Holds the answers; those that are to be repeated are deleted, and come back.
    record : RunRecord
        The run.
    observer : observer, optional
        The observer of the run, which is asked; without one images are drawn, and nobody is asked.
    """

    def __init__(
        self, store: RecordingStore, record: RunRecord, observer: Any = None
    ) -> None:
        self._store = store.with_label(record.label)
        self._observer = observer
        self._stored = {
            replace(answered.question, label="").key: answered
            for answered, _ in store.all_answers()
        }
        self._asked_digest = record.observer_digest[:DIGEST_DIGITS]
        is_exact = record.observer.startswith("simulated:")
        self._tolerance = _EXACT if is_exact or observer is None else _ROUNDING
        self.count = 0
        #: What of an answer was another one, by the name of its entry.
        self.differing: list[str] = []

    def choose(self, share: float, seed: str) -> None:
        """Delete a share of the answers, so that they are put again.

        Parameters
        ----------
        share : float
            Of all that can be repeated, in [0, 1]; at least 20 are.
        seed : str
            Chooses which.
        """
        keys = [
            key
            for key, answered in self._stored.items()
            if self._is_repeatable(answered)
        ]
        count = min(len(keys), max(_FEWEST, math.ceil(share * len(keys))))
        chosen = random.Random(seed).sample(sorted(keys), count)
        self._store.delete_answers(chosen)

    def _is_repeatable(self, answered: Answered) -> bool:
        """Tell whether an answer can be put again: by its observer, or by drawing its image."""
        if self._observer is not None:
            return answered.question.observer == self._asked_digest
        return answered.answer.get("delivered_contrast") is not None

    def put(
        self, answer: Any, observers: Mapping[str, Any], agenda: Any
    ) -> Iterator[Answered]:
        """Put the questions of an agenda, and yield their stored answers."""
        present = {
            digest: self._present(observer) for digest, observer in observers.items()
        }
        for answered in answer(present, agenda):
            stored = self._stored.get(answered.question.key)
            if stored is None:
                raise unanswered()
            self.count += 1
            self.differing += self._differences(answered.answer, stored.answer)
            yield replace(answered, answer=stored.answer)

    def _present(self, observer: Any) -> Any:
        """Return who is put the questions of a stand-in; others are asked themselves."""
        if not isinstance(observer, StandIn):
            return observer
        return _Mute(observer.card) if self._observer is None else self._observer

    def _differences(self, answer: JsonMapping, stored: JsonMapping) -> Iterator[str]:
        """Iterate over the entries in which an answer differs from the stored one."""
        for name in (*_MEASURED, "values", "lengths"):
            if not self._agree(_numbers(answer.get(name)), _numbers(stored.get(name))):
                yield name
        if self._observer is not None:
            texts = [
                (entry.get("reply") or {}).get("text") for entry in (answer, stored)
            ]
            if texts[0] != texts[1]:
                yield "reply"

    def _agree(self, values: Sequence[float], stored: Sequence[float]) -> bool:
        """Tell whether numbers agree, to a share of the largest."""
        scale = max(map(abs, stored), default=0.0)
        reach = self._tolerance * max(scale, _EXACT)
        return len(values) == len(stored) and all(
            abs(value - other) <= reach
            for value, other in zip(values, stored, strict=True)
        )


def _numbers(value: Any) -> list[float]:
    """List the numbers in nested lists, skipping missing values."""
    if isinstance(value, list):
        return [number for entry in value for number in _numbers(entry)]
    return [] if value is None else [float(value)]


def load_here(record: RunRecord) -> Any:
    """Load the observer of a run if it is here and the same; None if it is not."""
    name = record.observer
    if not name.startswith(_HERE):
        return None
    # Before networks folded their batch norms, all ran as the second.
    choices: tuple[JsonObject, ...] = ({}, {"batch_norm": "separate"})
    for options in choices:
        try:
            observer = load_observer(name, **options)
        except (PsyprobeError, ImportError):
            return None
        if observer.card.digest == record.observer_digest:
            return observer
    return None
