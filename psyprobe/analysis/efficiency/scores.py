"""Score thresholds in noise by their efficiency beside an ideal observer.

References
----------
Tanner & Birdsall (1958). Definitions of d' and eta as psychophysical measures. Journal of the
Acoustical Society of America 30(10).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.ideal_observer import (
    d_prime_at,
    ideal_contrast,
    ideal_d_prime,
    ideal_identification,
)
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.result_stimulus import page_of, stimulus_on
from psyprobe.files.json_types import JsonMapping
from psyprobe.running.task import CONTRAST_AXIS, Task, task_of
from psyprobe.stimulus.specification import Specification, with_levels

if TYPE_CHECKING:
    import xarray as xr

#: Contrasts between which the threshold of an ideal observer is looked for.
_LOWEST = 1e-8
_HIGHEST = 1.0
#: Contrast at which signals are drawn; they grow in proportion to it.
_DRAWN = 0.1
#: Standard errors beyond which stages that were trained on swapped labels tell too much.
_SWAPPED_ERRORS = 3.0


@dataclass(frozen=True)
class Efficiency:
    """The efficiency of an observer at one level.

    Parameters
    ----------
    value : float
        Value of the level, such as a frequency in cpd.
    ideal : float
        Threshold contrast of the ideal observer in the same noise, task and criterion.
    efficiency : float, optional
        (ideal / threshold)², from 0 to 1 but for error; None without a threshold.
    low, high : float, optional
        Its interval, from that of the threshold; None where an end is open.
    """

    value: float
    ideal: float
    efficiency: float | None
    low: float | None
    high: float | None


def efficiencies(csf: xr.Dataset) -> tuple[Efficiency, ...]:
    """Compute the efficiency at each level of a measured contrast sensitivity.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `psyprobe.analysis.words.csf.chat_csf`, of a page with a table [noise].

    Returns
    -------
    tuple of Efficiency
        One a level; empty where there is no noise of a stated density, where contrast was not
        varied, or the stimulus lies in a file.

    Notes
    -----
    The criterion is that of the thresholds: halfway between guessing and 1 in a forced choice. For
    yes and no it is halfway between the measured rate of false alarms and 1, of an ideal observer
    with this rate.
    """
    page = page_of(csf)
    noise = page.get("noise")
    stimulus = stimulus_on(page)
    task = task_of(csf)
    if not noise or not noise["density"] or stimulus is None:
        return ()
    # What else masks the signal has no density to compare with.
    if task.axis != CONTRAST_AXIS or set(stimulus.parts) - {"noise"}:
        return ()
    (level,) = levels_of(csf)
    height, width = json.loads(csf.attrs["size"])
    ppd = float(csf.attrs["ppd"])
    spec = replace(stimulus, parts={}).spec(contrast=_DRAWN)
    spec = spec.changed(size=height if height == width else (height, width), ppd=ppd)
    false_alarms = float(np.nanmedian(csf["guess"].values))
    scores = []
    for i, value in enumerate(csf[level].values):
        ideal = _ideal_threshold(
            with_levels(spec, **{level: float(value)}), task, noise, false_alarms
        )
        if ideal is None:
            continue
        shares = [
            None
            if not np.isfinite(csf[name].values[i])
            else (ideal * float(csf[name].values[i])) ** 2
            for name in (
                "mean_sensitivity",
                "mean_sensitivity_low",
                "mean_sensitivity_high",
            )
        ]
        scores.append(Efficiency(float(value), ideal, *shares))
    return tuple(scores)


def _ideal_threshold(
    spec: Specification, task: Task, noise: JsonMapping, false_alarms: float
) -> float | None:
    """Find the threshold contrast of the ideal observer of a task in noise."""
    density = float(noise["density"])
    exponent = float(noise.get("exponent", 0.0))
    lowest = 1 / max(spec.field)

    def coloured(frequency: FloatArray) -> FloatArray:
        return np.asarray(density / np.maximum(frequency, lowest) ** exponent)

    level = coloured if exponent else density
    if task.orientations:
        if exponent:
            return None
        signals = np.stack(
            [
                _signal(with_levels(spec, orientation=angle))
                for angle in task.orientations
            ]
        )
        criterion = (1 + 1 / task.alternatives) / 2
        return ideal_contrast(
            lambda contrast: ideal_identification(
                contrast * signals, density, spec.ppd
            ),
            criterion,
            low=_LOWEST,
            high=_HIGHEST,
        )
    unit = ideal_d_prime(_signal(spec), level, spec.ppd)
    chance = task.chance
    if chance is not None:
        return d_prime_at((1 + chance) / 2, task.alternatives) / unit
    if not 0 < false_alarms < 1:
        return None
    hits = (1 + false_alarms) / 2
    return float(special.ndtri(hits) - special.ndtri(false_alarms)) / unit


def _signal(spec: Specification) -> FloatArray:
    """Draw the signal of unit contrast: light over that of the background, less 1."""
    light = np.asarray(spec.draw().luminance, float)
    even = np.asarray(spec.reference().draw().luminance, float)
    return np.asarray((light - even) / even.mean() / _DRAWN)


def training_notes(result: xr.Dataset) -> list[str]:
    """Say in sentences what the training of decision stages leaves open.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run; of an observer without a decision stage there is nothing to say.
    """
    stages = json.loads(result.attrs.get("training", "[]"))
    if not stages:
        return []
    notes = []
    unreached = [stage for stage in stages if not stage["reached"]]
    if unreached:
        notes.append(
            f"at {_values(unreached)} no contrast of the page is told apart with a d' of 2, so the "
            "stage was trained at the highest; give higher contrasts"
        )
    limited = [
        stage for stage in stages if stage["learning"] and not stage["endless_d_prime"]
    ]
    if limited:
        notes.append(
            f"at {_values(limited)} d' still grows with training: efficiency is at least what is "
            "shown; give more pairs"
        )
    leaks = [
        stage
        for stage in stages
        if abs(stage["swapped"][0]) > _SWAPPED_ERRORS * stage["swapped"][1] > 0
    ]
    if leaks:
        notes.append(
            f"at {_values(leaks)} stages trained on swapped labels still tell signal from none"
        )
    if "noise" not in page_of(result):
        notes.append(
            "no external noise: efficiency is not defined, and the threshold is a rounding floor"
        )
    return notes


def _values(stages: list[JsonMapping]) -> str:
    """List as text the levels (frequencies, say) at which decision stages were trained."""
    return ", ".join(f"{stage['value']:g}" for stage in stages)
