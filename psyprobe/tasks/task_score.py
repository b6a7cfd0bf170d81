"""What the scores of all tasks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.score import Row, frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TaskScore:
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

    def to_frame(self) -> pd.DataFrame:
        """The records of all rows."""
        return frame(self)  # type: ignore[arg-type]
