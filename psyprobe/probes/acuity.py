"""Acuity: the finest stripes that are told from uniform.

It is detection in which not contrast but the period of the stripes, 1 / frequency, grows until the
pattern is seen: at the criterion of the page's anchor, or in three of four choices between two
images. To an encoder degrees mean nothing: its limit is to be read in cycles a pixel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.probes import detection
from psyprobe.probes.detection import ABILITIES, SECTIONS, answer, in_words, result, score, task
from psyprobe.probes.differences import PERIOD, Differing, periods
from psyprobe.probes.pairs import Grid, PairSchedule
from psyprobe.running.task import task_of
from psyprobe.stimulus import Specification
from psyprobe.stimulus.specification import with_levels

__all__ = ["ABILITIES", "SECTIONS", "answer", "plan", "plot", "report", "result", "score", "task"]


@dataclass(frozen=True)
class Period(Differing):
    """The period of the stripes of a test, whose reference is its background."""

    def grid(
        self, drawn: Specification, levels: Mapping[str, FloatArray], differences: FloatArray
    ) -> Grid | None:
        """As of any difference."""
        if not differences.size:
            return None
        every = np.meshgrid(*levels.values(), indexing="ij", sparse=True)
        base = with_levels(
            drawn, **{name: each[..., None] for name, each in zip(levels, every, strict=True)}
        )
        shape = (*map(len, levels.values()), differences.shape[-1])
        tests = with_levels(base, frequency=np.broadcast_to(1 / differences, shape))
        return Grid(tests, tests.reference())


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """As in `Probe`; among the levels is frequency."""
    if "frequency" not in experiment.levels:
        raise InputError(
            "[levels] has no 'frequency'; give for example frequency = { from = 4, to = 54, n = "
            "20 }"
        )
    if observer.card.ability == "answer":
        return replace(in_words(), period=True).plan(experiment, observer)
    if experiment.score.anchor is None:
        raise InputError(
            "[score] has no anchor; give 'detection': the limit is where that response is reached"
        )
    values = periods(experiment.levels["frequency"])
    by = Period(PERIOD.name, "frequency", PERIOD.unit, PERIOD.label, "", values, level="frequency")
    conditions = detection.grid_conditions(experiment, observer.card, by)
    return PairSchedule(experiment, observer, conditions, detection.VERSION, batch_size)


def plot(results: Sequence[Any], ax: Any = None, **options: Any) -> Any:
    """As in `Probe`: responses over contrast and period, or thresholds of answers."""
    if all(task_of(result).answered for result in results):
        return in_words().plot(results, ax, **options)
    from psyprobe.plotting.features import contour_panels

    return contour_panels(results, ax, **options)


def report(results: Sequence[Any]) -> list[Any]:
    """As in `Probe`."""
    from psyprobe.plotting.feature_parts import contour_parts

    words, others = (
        [result for result in results if task_of(result).answered == answered]
        for answered in (True, False)
    )
    return [*(in_words().report(words) if words else []), *contour_parts(others)]
