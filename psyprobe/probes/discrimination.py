"""Measure discrimination: how well an observer tells two stimuli apart that differ in a parameter.

The experiment's [difference] names the parameter: contrast on a pedestal, orientation, frequency,
phase, luminance. For encoders and metrics the probe is otherwise detection, and pairs that both
probes show share their answers; an observer that answers in words is shown both images and asked
which of them has more of it.
"""

from __future__ import annotations

from typing import Any

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.probes import detection
from psyprobe.probes.detection import (
    ABILITIES,
    answer,
    plot,
    report,
    result,
    score,
    task,
    words_probe,
)
from psyprobe.probes.pairs import PairSchedule

__all__ = [
    "ABILITIES",
    "SECTIONS",
    "answer",
    "plan",
    "plot",
    "report",
    "result",
    "score",
    "task",
]

SECTIONS = (*detection.SECTIONS, "difference")


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """Plan a run as `Probe` describes; the experiment must have a [difference]."""
    if experiment.difference is None:
        raise InputError(
            "there is no [difference]; give the parameter in which test and reference differ, such "
            'as parameter = "orientation", and its levels'
        )
    if observer.card.ability == "answer":
        return words_probe().plan(experiment, observer)
    conditions = detection.grid_conditions(experiment, observer.card)
    return PairSchedule(experiment, observer, conditions, detection.VERSION, batch_size)
