"""Score thresholds in noise by their efficiency beside an ideal observer.

References
----------
Tanner & Birdsall (1958). Definitions of d' and eta as psychophysical measures. Journal of the
Acoustical Society of America 30(10).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.ideal_observer import (
    d_prime_at,
    ideal_d_prime,
    ideal_identification_contrast,
    signal_energy,
)
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.result_stimulus import page_of, stimulus_on
from psyprobe.analysis.score import Entry, Metric
from psyprobe.files.flags import flag_words
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.units import unit_attributes
from psyprobe.observers.decisions.recipe import PROTOCOLS
from psyprobe.running.task import CONTRAST_AXIS, Task, task_of
from psyprobe.stimulus.specification import Specification, with_levels

if TYPE_CHECKING:
    import xarray as xr

#: Contrast at which signals are drawn; they grow in proportion to it.
_DRAWN = 0.1
#: The level of a page over densities of its noise.
NOISE_LEVEL = "noise_density"
#: Density, deg², in which the ideal observer stands for none.
_UNIT_DENSITY = 1e-6
#: Sensitivity and its ends, with the ends of efficiency and energy that follow.
_ENDS = (
    ("mean_sensitivity", "efficiency", "energy"),
    ("mean_sensitivity_low", "low", "energy_high"),
    ("mean_sensitivity_high", "high", "energy_low"),
)
#: Standard errors beyond which stages that were trained on swapped labels tell too much.
_SWAPPED_ERRORS = 3.0
#: Share of right answers at the highest contrast below which something is lost there.
_LEAST_TOP = 0.95


@dataclass(frozen=True)
class Efficiency:
    """The efficiency of an observer at one level.

    Parameters
    ----------
    value : float
        Value of the level, such as a frequency in cpd.
    density : float
        Density of the noise, deg².
    ideal : float
        Threshold contrast of the ideal observer in the same noise, task and criterion; 0 without
        noise.
    efficiency : float, optional
        (ideal / threshold)², from 0 to 1 but for error; None without a threshold, or noise.
    low, high : float, optional
        Its interval, from that of the threshold; None where an end is open.
    energy : float, optional
        Contrast energy of the threshold, deg².
    energy_low, energy_high : float, optional
        Its interval.
    """

    value: float
    density: float
    ideal: float
    efficiency: float | None
    low: float | None
    high: float | None
    energy: float | None
    energy_low: float | None
    energy_high: float | None


EFFICIENCY = Metric(
    "efficiency",
    "Efficiency in noise",
    more_is_better=True,
    digits=3,
    suffix="efficiency",
)
THRESHOLD = Metric(
    "threshold",
    "Threshold contrast in noise",
    more_is_better=False,
    digits=4,
    suffix="threshold",
)

#: Variables over the level, each with its unit and description; the fields of `Efficiency`.
_VARIABLES = {
    "density": ("deg²", "Density of the external noise"),
    "ideal": ("1", "Threshold contrast of the ideal observer"),
    "efficiency": ("1", "Efficiency beside the ideal observer"),
    "low": ("1", "Lower end of the interval of the efficiency"),
    "high": ("1", "Upper end of the interval of the efficiency"),
    "energy": ("deg²", "Contrast energy of the threshold"),
    "energy_low": ("deg²", "Lower end of the interval of the energy"),
    "energy_high": ("deg²", "Upper end of the interval of the energy"),
}
#: Their names in a dataset, where a field's own would not say of what it is.
_NAMES = {
    "density": "external_noise_density",
    "ideal": "ideal_threshold",
    "low": "efficiency_low",
    "high": "efficiency_high",
    "energy": "threshold_energy",
    "energy_low": "threshold_energy_low",
    "energy_high": "threshold_energy_high",
}


def add_efficiency(csf: xr.Dataset) -> xr.Dataset:
    """Add efficiencies and threshold energies to a measured CSF.

    Parameters
    ----------
    csf : xarray.Dataset
        Thresholds of a page with a table [noise].

    Returns
    -------
    xarray.Dataset
        With `efficiency`, `ideal_threshold` (contrast), `threshold_energy` (deg²) and
        `external_noise_density` (deg²) over the level; as it was where there is no noise of a
        stated density, where contrast was not varied, or the stimulus lies in a file.

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
    if not noise or stimulus is None:
        return csf
    # What else masks the signal has no density to compare with.
    # An ideal observer looks where noise of a band is silent.
    banded = noise.get("frequency") is not None
    if banded or task.axis != CONTRAST_AXIS or set(stimulus.parts) - {"noise"}:
        return csf
    (level,) = levels_of(csf)
    spec = replace(stimulus, parts={}).spec(contrast=_DRAWN)
    # Energy in deg² is that of the page on any screen; sessions on several have no one size.
    if "ppd" in csf.attrs:
        size = tuple(json.loads(csf.attrs["size"]))
        spec = spec.changed(size=size, ppd=float(csf.attrs["ppd"]))
    ppd = spec.ppd
    guesses = csf["guess"].values
    guesses = guesses[np.isfinite(guesses)]
    # Curves without a fit have no rate of guessing.
    false_alarms = float(np.median(guesses)) if guesses.size else 0.0
    values = csf[level].values.astype(float)
    is_masking = level == NOISE_LEVEL
    density = values if is_masking else np.full(len(values), float(noise["density"]))
    if not is_masking and not noise["density"]:
        return csf
    ideal = np.zeros(len(values))
    energy = np.zeros(len(values))
    for i, value in enumerate(values):
        target = spec if is_masking else with_levels(spec, **{level: value})
        if density[i]:
            level_noise = {**noise, "density": density[i]}
            threshold = _ideal_threshold(target, task, level_noise, false_alarms)
            if threshold is None:
                return csf
            ideal[i] = threshold
        energy[i] = signal_energy(_signal(target), ppd)
    columns = {"density": density, "ideal": ideal}
    for sensitivity_name, share_name, energy_name in _ENDS:
        sensitivity = csf[sensitivity_name].values
        # An end that is open is at no sensitivity, or at an endless one.
        with np.errstate(divide="ignore"):
            columns[energy_name] = energy / sensitivity**2
        columns[share_name] = np.where(density > 0, (ideal * sensitivity) ** 2, np.nan)
    return csf.assign(
        {
            _NAMES.get(name, name): (
                level,
                columns[name],
                {**unit_attributes(unit), "long_name": text},
            )
            for name, (unit, text) in _VARIABLES.items()
        }
    )


def efficiencies(csf: xr.Dataset) -> tuple[Efficiency, ...]:
    """Read the efficiency at each level of a measured contrast sensitivity.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `psyprobe.analysis.words.csf.chat_csf`.

    Returns
    -------
    tuple of Efficiency
        One a level; empty where there is no noise of a stated density.
    """
    if "threshold_energy" not in csf:
        return ()
    (level,) = levels_of(csf)
    columns = {name: csf[_NAMES.get(name, name)].values for name in _VARIABLES}
    scores = []
    for i, value in enumerate(csf[level].values):
        cells: JsonObject = {
            name: float(column[i]) if np.isfinite(column[i]) else None
            for name, column in columns.items()
        }
        scores.append(Efficiency(float(value), **cells))
    return tuple(scores)


def mean_entries(scores: Sequence[Efficiency], *, limited: bool) -> dict[Metric, Entry]:
    """Average efficiencies and thresholds over the levels of a page for a scoreboard.

    Parameters
    ----------
    scores : sequence of Efficiency
        One a level.
    limited : bool
        Whether a stage would tell more after more training.

    Returns
    -------
    dict
        Geometric means over levels with a threshold; their intervals take levels as independent.
        Empty without any.
    """
    shown = [score for score in scores if score.efficiency]
    if not shown:
        return {}
    logs = np.log10(np.array([score.efficiency for score in shown], float))
    mean = float(logs.mean())
    reach = math.inf
    if all(score.low and score.high for score in shown):
        halves = [
            math.log10((score.high or 0) / (score.low or 1)) / 2 for score in shown
        ]
        reach = math.hypot(*halves) / len(shown)
    threshold = float(np.mean(np.log10([score.ideal for score in shown]) - logs / 2))
    note = ""
    if len(shown) < len(scores):
        note = (
            f"{len(shown)} of {len(scores)} levels have a threshold and an efficiency"
        )
    return {
        metric: Entry(
            10**centre,
            10 ** (centre - half) if math.isfinite(half) else None,
            10 ** (centre + half) if math.isfinite(half) else None,
            flags="l" * limited,
            over="trials" if math.isfinite(half) else "",
            note=note,
        )
        # The threshold is the root of the energy.
        for metric, centre, half in (
            (EFFICIENCY, mean, reach),
            (THRESHOLD, threshold, reach / 2),
        )
    }


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
    if task.values:
        if exponent:
            return None
        signals = np.stack(
            [
                _signal(with_levels(spec, **{task.parameter: value}))
                for value in task.values
            ]
        )
        criterion = (1 + 1 / task.alternatives) / 2
        return ideal_identification_contrast(signals, density, spec.ppd, criterion)
    unit = ideal_d_prime(_signal(spec), level, spec.ppd)
    chance = task.chance
    if chance is not None:
        return d_prime_at((1 + chance) / 2, task.alternatives) / unit
    if not 0 < false_alarms < 1:
        return None
    hits = (1 + false_alarms) / 2
    return float(special.ndtri(hits) - special.ndtri(false_alarms)) / unit


def _signal(spec: Specification) -> FloatArray:
    """Draw the signal at contrast 1, as light relative to the background less 1."""
    light = np.asarray(spec.draw().luminance, float)
    even = np.asarray(spec.reference().draw().luminance, float)
    return np.asarray((light - even) / even.mean() / _DRAWN)


def training_notes(result: xr.Dataset) -> list[str]:
    """Describe in sentences what limits the decision stages that were trained.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run; of an observer without a decision stage there is nothing to say.
    """
    stages = json.loads(result.attrs.get("training", "[]"))
    if not stages:
        return []
    notes = [_protocol_note(stages[0])] if "train" in stages[0] else []
    unreached = [stage for stage in stages if not stage["reached"]]
    if unreached:
        notes.append(
            f"at {_list_levels(unreached)} no contrast of the page is told apart with a d' of 2, "
            "so the stage was trained at the highest; give higher contrasts"
        )
    limited = limited_stages(result)
    if limited:
        notes.append(
            f"at {_list_levels(limited)} d' still grows with training: efficiency is at least what "
            "is shown; give more pairs"
        )
    learned = [
        _endless_note(stage)
        for stage in stages
        if stage["learning"] and stage.get("level") is None
    ]
    if learned:
        notes.append(
            f"d' where stages were trained, of endless fields: {', '.join(learned)}"
        )
    leaks = [
        stage
        for stage in stages
        if abs(stage["swapped"][0]) > _SWAPPED_ERRORS * stage["swapped"][1] > 0
    ]
    if leaks:
        notes.append(
            f"at {_list_levels(leaks)} stages trained on swapped labels still tell signal from none"
        )
    if "noise" not in page_of(result):
        notes.append(
            "no external noise: efficiency is not defined, and the threshold is a rounding floor"
        )
    return notes


def _protocol_note(stage: JsonMapping) -> str:
    """Describe where stages were trained, and what that tells."""
    train = stage["train"]
    return f"stages were trained {PROTOCOLS[train]} (train = {train!r})"


def curve_notes(csf: xr.Dataset, with_lapses: xr.Dataset) -> list[str]:
    """Describe in sentences where psychometric functions of decision stages fall or end low.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `psyprobe.analysis.words.csf.chat_csf`; of other observers there is nothing to say.
    with_lapses : xarray.Dataset
        The same, fitted with lapses, which thresholds of decision stages leave out.
    """
    if "training" not in csf.attrs:
        return []
    (level,) = levels_of(csf)
    notes = []
    falling = (flag_words(csf["status"]) == "non_monotone").any(axis=0)
    if falling.any():
        values = ", ".join(f"{value:g}" for value in csf[level].values[falling])
        notes.append(
            f"at {values} right answers fall towards higher contrast, so there is no threshold: "
            "features saturate, or the stage was trained elsewhere; train 'mixed', or lower the "
            "highest contrast"
        )
    top = 1 - float(np.nan_to_num(with_lapses["lapse"].values).max())
    if top < _LEAST_TOP:
        notes.append(
            f"psychometric functions end at {top:.2f}, below {_LEAST_TOP:g}: right answers are "
            "lost at any contrast"
        )
    return notes


def _endless_note(stage: JsonMapping) -> str:
    """Describe the d' of a stage after endless training, or that training limits it."""
    endless = stage["endless_d_prime"]
    if endless:
        return f"{endless:.2f} at {stage['value']:g}"
    _, reached = stage["learning"][-1]
    return f"training-limited: at least {reached:.2f} at {stage['value']:g}"


def limited_stages(result: xr.Dataset) -> list[JsonMapping]:
    """List the stages of a run whose d' still grows with training."""
    return [
        stage
        for stage in json.loads(result.attrs.get("training", "[]"))
        if stage["learning"] and not stage["endless_d_prime"]
    ]


def _list_levels(stages: list[JsonMapping]) -> str:
    """List as text the levels (frequencies, say) at which decision stages were trained."""
    places = []
    for stage in stages:
        level = stage.get("level")
        own = "" if level is None else f" (level {level:g})"
        places.append(f"{stage['value']:g}{own}")
    return ", ".join(places)
