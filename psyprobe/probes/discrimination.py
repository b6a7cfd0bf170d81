"""Discrimination: how far two stimuli are apart for an observer that differ in one parameter, or
which is which.

What differs stands in the experiment's [difference]: contrast on a pedestal, orientation,
frequency, phase, luminance. For encoders and metrics it is otherwise detection, and pairs that both
probes ask about share their answers; an observer that answers in words is shown both images and
asked which of them has more of it.
"""

from __future__ import annotations

from typing import Any

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.probes import detection
from psyprobe.probes.detection import ABILITIES, answer, in_words, plot, report, result, score, task
from psyprobe.probes.pairs import PairSchedule

__all__ = ["ABILITIES", "SECTIONS", "answer", "plan", "plot", "report", "result", "score", "task"]

SECTIONS = (*detection.SECTIONS, "difference")


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """As in `Probe`; the experiment must say in what test and reference differ."""
    if experiment.difference is None:
        raise InputError(
            "there is no [difference]; give the parameter in which test and reference differ, such "
            'as parameter = "orientation", and its levels'
        )
    if observer.card.ability == "answer":
        return in_words().plan(experiment, observer)
    conditions = detection.grid_conditions(experiment, observer.card)
    return PairSchedule(experiment, observer, conditions, detection.VERSION, batch_size)
