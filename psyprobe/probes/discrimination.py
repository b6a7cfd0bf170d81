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

# The other parts of this probe are those of detection.
from psyprobe.probes.detection import (  # noqa: F401
    ABILITIES,
    answer,
    plot,
    report,
    result,
    score,
    task,
)

SECTIONS = (*detection.SECTIONS, "difference")


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """Plan a run of the discrimination probe; the experiment must have a [difference]."""
    if experiment.difference is None:
        raise InputError(
            "there is no [difference]; give the parameter in which test and reference differ, such "
            'as parameter = "orientation", and its levels'
        )
    return detection.plan(experiment, observer, batch_size)
