"""What the scores of all tasks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.score import OBSERVER, Entry, Metric, Row, number
from psyprobe.analysis.table import Tabled

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


@dataclass(frozen=True)
class TaskScore(Tabled):
    """A score as tables, scoreboards and files take it; see `psyprobe.analysis.score.Score`."""

    #: Of the result: observer, experiment and what else is told of the run.
    attributes: Mapping[str, Any]
    #: Of all intervals, in (0, 1).
    confidence: float
    #: Of the observer, and what was measured; empty where there is no choice.
    layer: str
    measure: str

    @property
    def observer(self) -> str:
        """Whose score."""
        return str(self.attributes["observer"])

    @property
    def experiment(self) -> str:
        """In what."""
        return str(self.attributes["experiment"])

    @property
    def random_weights(self) -> bool:
        """Whether the observer was not trained."""
        return bool(self.attributes["random_weights"])

    def rows(self) -> Sequence[Row]:
        """The observer first, then the trivial responders beside it."""
        raise NotImplementedError

    def row(
        self,
        table: str,
        responder: str,
        values: Mapping[Metric, tuple[float, float | None, float | None]],
        notes: Sequence[str] = (),
    ) -> Row:
        """What a responder reached in each metric: value and the ends of its interval."""
        told: dict[str, Any] = {
            "experiment": self.experiment,
            "observer": self.observer,
            "layer": self.layer,
            "responder": responder,
        }
        cells: dict[str, str] = {}
        entries: dict[Metric, Entry] = {}
        for metric, (value, low, high) in values.items():
            interval = "" if low is None else f" [{number(low, metric.digits)}, {number(high, metric.digits)}]"
            cells[metric.suffix] = number(value, metric.digits) + interval
            told |= {f"{metric.name}{part}": one for part, one in (("", value), ("_low", low), ("_high", high))}
            entries[metric] = Entry(value, low, high)
        label = "" if responder == OBSERVER else responder
        return Row(table, responder, label, cells, told, entries, notes)


def by_observer(results: Sequence[xarray.Dataset]) -> dict[str, xarray.Dataset]:
    """Results by who was asked; in what, too, where they are of several experiments."""
    several = len({result.attrs["experiment"] for result in results}) > 1
    return {
        result.attrs["observer"] + (f", {result.attrs['experiment']}" if several else ""): result for result in results
    }


def place(ax: Axes | None, figure: SubFigure | None) -> Axes | None:
    """Where a probe draws its one panel: the axes that are given, or new ones of a figure that is given."""
    return ax if figure is None else figure.add_subplot()
