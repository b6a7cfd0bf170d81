"""The probes that ask in words whether a pattern is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.words.score import score_chat
from psyprobe.plotting.words import csf_panels
from psyprobe.probes.words.result import words_result
from psyprobe.probes.words.session import Task, WordsSession, put

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment import Experiment
    from psyprobe.running.protocol import RunRecord
    from psyprobe.running.store import Store


@dataclass(frozen=True)
class WordsProbe:
    """A task in words as a probe."""

    task: Task
    ABILITIES: tuple[str, ...] = ("answer",)
    SECTIONS: tuple[str, ...] = ("stimulus", "levels", "asking", "delivery", "human", "fit")
    answer = staticmethod(put)
    score = staticmethod(score_chat)
    plot = staticmethod(csf_panels)

    def plan(self, experiment: Experiment, observer: Any) -> WordsSession:
        """As in `Probe`."""
        return WordsSession(self.task, experiment, observer)

    def result(self, record: RunRecord, store: Store) -> xarray.Dataset:
        """One row a question, read anew from what the observer said."""
        return words_result(record, store)


yes_no = WordsProbe(Task("yes_no", "yes_no 1", intervals=1, orders=(0,)))
#: Always asked in both orders: an observer that prefers one position does so in both, so that the mean is free of it.
two_interval = WordsProbe(Task("two_interval", "two_interval 1", intervals=2, orders=(0, 1)))
