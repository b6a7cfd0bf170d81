"""Find the stimulus of a result from its page, and the people measured under its conditions."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.human.castle import DIRECTIONS
from psyprobe.human.points import Conditions, Level, matched_thresholds
from psyprobe.human.reference import human_inputs, is_number
from psyprobe.stimulus.catalogue import (
    StimulusSet,
    catalogue_folder,
    load_stimulus,
    read_page,
    stimulus_set,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from psyprobe.experiment import Experiment

#: Kinds that people were shown, but for size and luminance, and kinds to which these thresholds are
#: moved.
_GABORS = ("gabor", "grating", "cai2025_gabor")
_NOISE = ("noise", "annulus_noise", "cai2025_noise")
#: Factor by which measured values of a level may lie beyond those of the experiment.
_BEYOND: Mapping[str, float] = {"frequency": 1.1, "luminance": 1.0, "area": 2.6}
#: RMS contrast of a sinusoid is its peak over this.
_RMS = math.sqrt(2)


def page_of(result: xr.Dataset) -> JsonMapping:
    """Read from a result the values of its experiment's TOML page; empty where there is none.

    Replayed responses have that of the catalogue.
    """
    try:
        if result.attrs.get("replayed") == 1:
            return read_page("experiments", str(result.attrs["experiment"]))[1]
        return tomllib.loads(str(result.attrs.get("experiment_toml", "")))
    except (tomllib.TOMLDecodeError, InputError):
        return {}


def stimulus_on(page: JsonMapping) -> StimulusSet | None:
    """Load the stimulus that a TOML page names, with its noise.

    None where a file defines it, since a store from elsewhere could name any code there, and where
    its photographs are not here.
    """
    entry = page.get("stimulus")
    if isinstance(entry, str):
        if "/" in entry or "\\" in entry or entry.endswith(".toml"):
            return None
        stimulus = load_stimulus(entry)
    elif not isinstance(entry, Mapping) or ".py" in json.dumps(entry):
        return None
    else:
        described = {"title": "stimulus", **entry}
        # Paths of the catalogue's pages are relative to their folder.
        for folder in (Path(), catalogue_folder("experiments")):
            with suppress(InputError):
                stimulus = stimulus_set(described, "stimulus", folder)
                break
        else:
            return None
    noise = page.get("noise")
    return stimulus.with_noise(noise) if isinstance(noise, Mapping) else stimulus


def contrast_kind_of(result: xr.Dataset) -> str:
    """Name the kind of contrast of a result's stimulus, as "michelson"; empty if unknown."""
    try:
        stimulus = stimulus_on(page_of(result))
        return (
            ""
            if stimulus is None or set(stimulus.parts) - {"noise"}
            else str(stimulus.spec().contrast_kind or "")
        )
    except InputError:
        return ""


def conditions_of(result: xr.Dataset) -> Conditions | None:
    """Find the conditions under which people's measured thresholds fit a result.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run, or of `chat_csf`. Levels that were taken by ``result.sel`` count as fixed.

    Returns
    -------
    Conditions or None
        None where nobody was measured: with a mask, in another difference than contrast, off the
        fovea, over another level than frequency, luminance or area, in a colour that is none of
        castleCSF's mechanisms.
    """
    # A run without a level grid has only the levels that are scored.
    levels = {
        name: result[f"scored_{name}" if f"scored_{name}" in result else name]
        for name in levels_of(result)
    }
    return _read_conditions(
        page_of(result),
        {
            name: np.asarray(values.values, np.float64)
            for name, values in levels.items()
        },
    )


def thresholds_for(experiment: Experiment | str | Path) -> pd.DataFrame:
    """Look up the measured human thresholds that fit an experiment.

    They come as measured and as castleCSF's ratio moves them.

    Parameters
    ----------
    experiment : Experiment, str or Path
        A name of the catalogue, an experiment file, or an experiment that was read.

    Returns
    -------
    pandas.DataFrame
        As `psyprobe.human.matched_thresholds` has it.

    Raises
    ------
    InputError
        Nobody was measured under such conditions, as with a mask or over another level than
        frequency, luminance or area.

    Examples
    --------
    >>> found = thresholds_for("area")
    >>> float(found["x"].min().round(3)), int((found["match"] == "direct").sum())
    (0.012, 37)
    """
    from psyprobe.experiment import Experiment, load_experiment

    page = (
        experiment
        if isinstance(experiment, Experiment)
        else load_experiment(experiment)
    )
    levels = {
        name: np.asarray(values, np.float64)
        for name, values in page.levels.items()
        if name != "contrast"
    }
    conditions = _read_conditions(tomllib.loads(page.toml), levels)
    if conditions is None:
        raise InputError(
            f"{page.name}: nobody's thresholds belong to it; they are of Gabors and gratings "
            "without a mask, over one of frequency, luminance and area"
        )
    return matched_thresholds(conditions)


def _read_conditions(
    page: JsonMapping, levels: Mapping[str, FloatArray]
) -> Conditions | None:
    """Read from an experiment where people were measured alike; None if no data can apply."""
    free = [name for name, values in levels.items() if values.ndim]
    try:
        stimulus = stimulus_on(page)
    except InputError:
        return None
    if (
        stimulus is None
        or stimulus.parts
        or "difference" in page
        or len(free) != 1
        or free[0] not in _BEYOND
    ):
        return None
    level = cast(Level, free[0])
    inputs = _model_inputs(stimulus, page.get("human", {}))
    inputs |= {
        name: float(values) for name, values in levels.items() if name not in free
    }
    noise = stimulus.kind in _NOISE
    direction = inputs.get("direction")
    fixed = {name: inputs.get(name) for name in _BEYOND if name != level}
    if not all(
        value is not None and is_number(value) and value > 0 for value in fixed.values()
    ):
        return None
    if (
        stimulus.kind not in (*_GABORS, *_NOISE)
        or direction not in DIRECTIONS
        or inputs.get("x")
        or inputs.get("y")
    ):
        return None
    values = levels[level]
    beyond = _BEYOND[level]
    span = float(values.min()) / beyond, float(values.max()) * beyond
    rms = stimulus.spec().contrast_kind == "rms"
    return Conditions(
        level, span, str(direction), **fixed, noise=noise, gain=_RMS if rms else 1.0
    )


def _model_inputs(stimulus: StimulusSet, human: JsonMapping) -> JsonObject:
    """Collect a human model's inputs from the stimulus and the [human] table."""
    spec = stimulus.spec()
    inputs = human_inputs(
        {field.name: getattr(spec, field.name) for field in fields(spec)}
    )
    if "area" not in inputs and stimulus.kind in _NOISE:
        height, width = spec.shape
        inputs["area"] = height * width / spec.ppd**2
    return inputs | {
        name: human[name] for name in (*_BEYOND, "direction") if name in human
    }
