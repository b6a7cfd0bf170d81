"""Discrimination: how far two stimuli are apart for an observer that differ in one parameter.

What differs stands in the experiment's [difference]: contrast on a pedestal, orientation, frequency, phase, luminance.
Otherwise it is detection, and pairs that both probes ask about share their answers.
"""

from __future__ import annotations

from typing import Any

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.probes.detection import ABILITIES, VERSION, answer, grid_conditions, plot, report, result, score
from psyprobe.probes.pairs import PairSession

__all__ = ["ABILITIES", "SECTIONS", "answer", "plan", "plot", "report", "result", "score"]

SECTIONS = ("stimulus", "levels", "difference", "variants", "human", "score", "observer")


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> PairSession:
    """As in `Probe`; the experiment must say in what test and reference differ."""
    if experiment.difference is None:
        raise InputError(
            "there is no [difference]; give the parameter in which test and reference differ, such "
            'as parameter = "orientation", and its levels'
        )
    return PairSession(experiment, observer, grid_conditions(experiment, observer.card), VERSION, batch_size)
