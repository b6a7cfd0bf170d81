"""Measure acuity: the finest stripes that an observer tells from uniform.

This is detection in which not contrast but the period of the stripes, 1 / frequency, grows until
the pattern is seen: at the criterion of the page's anchor, or in three of four choices between two
images. Degrees mean nothing to an encoder: read its limit in cycles a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from psyprobe._typing import FloatArray, NamedArrays
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.probes import detection

# Further parts of this probe are those of detection.
from psyprobe.probes.detection import (  # noqa: F401
    ABILITIES,
    SECTIONS,
    answer,
    plot,
    report,
    result,
    score,
    task,
    words_probe,
)
from psyprobe.probes.differences import PERIOD, StimulusDifference, to_periods
from psyprobe.probes.pairs import Grid, PairSchedule
from psyprobe.stimulus import Specification


@dataclass(frozen=True)
class Period(StimulusDifference):
    """The period of the stripes of a test, whose reference is its background."""

    def grid(
        self,
        displayed: Specification,
        levels: NamedArrays,
        differences: FloatArray,
    ) -> Grid | None:
        """Build gratings of given periods (deg) and their backgrounds, at all levels."""
        return super().grid(displayed, levels, 1 / differences)


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """Plan a run of the acuity probe; the levels must include frequency."""
    if "frequency" not in experiment.levels:
        raise InputError(
            "[levels] has no 'frequency'; give for example frequency = { from = 4, to = 54, n = "
            "20 }"
        )
    if observer.card.ability == "answer":
        return replace(words_probe(), period=True).plan(experiment, observer)
    if experiment.score.anchor is None:
        raise InputError(
            "[score] has no anchor; give 'detection': the limit is where that response is reached"
        )
    values = to_periods(experiment.levels["frequency"])
    period = Period(
        PERIOD.name,
        "frequency",
        PERIOD.unit,
        PERIOD.label,
        "",
        values,
        level="frequency",
    )
    conditions = detection.grid_conditions(experiment, observer.card, period)
    return PairSchedule(experiment, observer, conditions, detection.VERSION, batch_size)
