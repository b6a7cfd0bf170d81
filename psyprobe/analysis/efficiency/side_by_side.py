"""Put the angles of an encoder beside what a decision stage tells of its features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from psyprobe.analysis.detection import ALIGNMENT
from psyprobe.analysis.efficiency.scores import EFFICIENCY, THRESHOLD
from psyprobe.analysis.score import (
    OBSERVER,
    Entry,
    Metric,
    Row,
    Score,
    Tabled,
    encoder_name,
    ends_text,
    interval_note,
)

_KEY = (
    "alignment: Spearman's r_s of S_ac with multiples of people's threshold; S_ac has no criterion "
    "and tells nothing of sensitivity.",
    "efficiency, threshold: of the same encoder with a trained decision stage in noise, geometric "
    "means over levels; the encoder holds at least so much. They may order observers and stimuli "
    "otherwise than S_ac does.",
)


@dataclass(frozen=True)
class SideBySide(Tabled):
    """The alignment of an encoder in one experiment, and its efficiency in another.

    Parameters
    ----------
    observer : str
        The encoder.
    layer : str
        Its layer in the experiment of angles.
    angles, decisions : str
        The experiments.
    alignment, efficiency, threshold : Entry
        The scores.
    random_weights : bool
        True if the encoder was not trained.
    confidence : float
        Confidence of all intervals.
    """

    observer: str
    layer: str
    angles: str
    decisions: str
    alignment: Entry
    efficiency: Entry
    threshold: Entry | None
    random_weights: bool
    confidence: float
    measure: ClassVar[str] = ""

    @property
    def experiment(self) -> str:
        """Name both experiments."""
        return f"{self.angles}, {self.decisions}"

    def rows(self) -> list[Row]:
        """Build one table row with the scores of encoder and decision stages side by side."""
        cells = {
            "experiment of S_ac": self.angles,
            "alignment": _text(self.alignment, 2),
            "experiment of decisions": self.decisions,
            "efficiency": _text(self.efficiency, 3),
            "threshold": _text(self.threshold, 4),
        }
        record = {
            "experiment": self.experiment,
            "observer": self.observer,
            "layer": self.layer,
            "alignment": self.alignment.value,
            "efficiency": self.efficiency.value,
            "threshold_contrast": self.threshold and self.threshold.value,
        }
        title = "S_ac and decisions side by side"
        return [Row(title, OBSERVER, "", cells, record)]

    def notes(self) -> Sequence[str]:
        """Explain what each score may claim, and of what its interval speaks."""
        entries = (self.alignment, self.efficiency, self.threshold)
        populations = {
            entry.over: interval_note(entry.over)
            for entry in entries
            if entry is not None and entry.over
        }
        return [*_KEY, *populations.values()]


def side_by_side(scores: Sequence[Score]) -> list[SideBySide]:
    """Pair the scores of each encoder with those of its decision stages.

    Parameters
    ----------
    scores : sequence of Score
        Of any observers and experiments.

    Returns
    -------
    list of SideBySide
        One for each experiment of angles and each of decisions; empty where no encoder has both.
    """
    return [
        SideBySide(
            angle_score.observer,
            angle_score.layer,
            angle_score.experiment,
            score.experiment,
            alignment,
            efficiency,
            _entries(score).get(THRESHOLD),
            angle_score.random_weights,
            score.confidence,
        )
        for score, efficiency in _scores_with(EFFICIENCY, scores)
        for angle_score, alignment in _scores_with(ALIGNMENT, scores)
        if encoder_name(score.observer) == angle_score.observer != score.observer
    ]


def _scores_with(
    metric: Metric, scores: Sequence[Score]
) -> Iterator[tuple[Score, Entry]]:
    """Iterate over the scores that have the observer's value in a metric, with that value."""
    for score in scores:
        entry = _entries(score).get(metric)
        if entry is not None:
            yield score, entry


def _entries(score: Score) -> dict[Metric, Entry]:
    """Map the metrics of a score to the observer's values."""
    return {
        metric: entry
        for row in score.rows()
        if row.responder == OBSERVER
        for metric, entry in row.entries.items()
    }


def _text(entry: Entry | None, digits: int) -> str:
    """Format a value with its interval and flags, or a missing one as "-"."""
    if entry is None or entry.value is None:
        return "-"
    flags = f" {entry.flags}" * bool(entry.flags)
    return f"{entry.value:.{digits}f}{ends_text(entry.low, entry.high, digits)}{flags}"
