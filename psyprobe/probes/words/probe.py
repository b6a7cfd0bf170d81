"""The probes that ask in words whether a pattern is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psyprobe.probes.words.result import words_result
from psyprobe.probes.words.session import Task, WordsSession, put

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psyprobe.analysis.words.chat_score import ChatScore
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

    def plan(self, experiment: Experiment, observer: Any) -> WordsSession:
        """As in `Probe`."""
        return WordsSession(self.task, experiment, observer)

    def result(self, record: RunRecord, store: Store) -> xarray.Dataset:
        """One row a question, read anew from what the observer said."""
        return words_result(record, store)

    def score(self, result: xarray.Dataset, **options: Any) -> Sequence[ChatScore]:
        """As in `psyprobe.analysis.words.score_chat`."""
        from psyprobe.analysis.words.chat_score import score_chat

        return (score_chat(result, **options),)

    def plot(self, results: Sequence[xarray.Dataset], ax: Axes | None = None, **options: Any) -> Axes | Figure:
        """The contrast sensitivity functions of each experiment in one panel."""
        from psyprobe.plotting import plot_csf

        return plot_csf(list(results), ax, **options)


yes_no = WordsProbe(Task("yes_no", "yes_no 1", intervals=1, orders=(0,)))
#: Always asked in both orders: an observer that prefers one position does so in both, so that the mean is free of it.
two_interval = WordsProbe(Task("two_interval", "two_interval 1", intervals=2, orders=(0, 1)))
