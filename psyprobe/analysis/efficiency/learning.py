"""Arrange what decision stages cost to train: d' over training fields, and after endless training.

The variance of d' of normal decision variables with and without a signal, n of each, is
(2 + d'^2 / 4) / n.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.intervals import normal_quantile
from psyprobe.analysis.responses import levels_of
from psyprobe.files.units import unit_attributes
from psyprobe.observers.decisions.stages import FOLDS
from psyprobe.observers.decisions.training import extrapolated_d_prime
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Fields of noise that a stage was trained on.
FIELDS = "training_fields"
#: The level on the stimulus axis at which a stage was trained, where each has its own.
LEVEL = "trained_level"
#: Signs of the ends of an interval, by the suffix of a variable.
_ENDS = {"": 0.0, "_low": -1.0, "_high": 1.0}
_TEXTS = {
    "": "",
    "_low": ", lower end of the interval",
    "_high": ", upper end of the interval",
}


def add_learning(csf: xr.Dataset) -> xr.Dataset:
    """Add the learning curves of decision stages to a measured CSF.

    Parameters
    ----------
    csf : xarray.Dataset
        Thresholds of an observer that answers by decision stages.

    Returns
    -------
    xarray.Dataset
        With `learning_d_prime`, over the level and `training_fields` (a quarter, a half and all of
        them), and `endless_d_prime`, extrapolated to endless fields, NaN where training limits it;
        both with `_low` and `_high`. `training_contrast` is where a stage was trained first, and
        NaN where on other images. Where each level on the stimulus axis has a stage, also over
        `trained_level`. As it was where no stage was trained.

    Notes
    -----
    Values are d' in folds that were not trained on. Their intervals take the held-out fields as
    independent, and those of endless training move all points of a curve together.
    """
    stages = json.loads(csf.attrs.get("training", "[]"))
    stages = [stage for stage in stages if stage["learning"]]
    if not stages:
        return csf
    (name,) = levels_of(csf)
    values = csf[name].values.tolist()
    levels = sorted({stage.get("level") or 0.0 for stage in stages})
    counts = [count for count, _ in stages[0]["learning"]]
    held_out = counts[-1] * FOLDS / (FOLDS - 1)
    quantile = normal_quantile(float(csf.attrs["confidence"]))
    shape = (len(values), len(levels))
    contrast = np.full(shape, np.nan)
    learned = {end: np.full((*shape, len(counts)), np.nan) for end in _ENDS}
    endless = {end: np.full(shape, np.nan) for end in _ENDS}
    for stage in stages:
        place = (values.index(stage["value"]), levels.index(stage.get("level") or 0.0))
        contrast[place] = next(iter(stage["contrasts"]), np.nan)
        for end, sign in _ENDS.items():
            points = [
                (n, d + sign * quantile * math.sqrt((2 + d**2 / 4) / held_out))
                for n, d in stage["learning"]
            ]
            learned[end][place] = [d for _, d in points]
            if stage["endless_d_prime"]:
                endless[end][place] = extrapolated_d_prime(points) or np.nan
    by_level = stages[0].get("level") is not None
    axis = stimulus_axis_of(csf)
    places = (name, LEVEL) if by_level else (name,)
    keep = (slice(None), slice(None) if by_level else 0)

    variables = {
        "training_contrast": (
            places,
            contrast[keep],
            {**unit_attributes(axis.unit), "long_name": f"{axis.label} of training"},
        )
    }
    for end, text in _TEXTS.items():
        variables[f"learning_d_prime{end}"] = (
            (*places, FIELDS),
            learned[end][keep],
            {**unit_attributes("1"), "long_name": f"d' in held-out fields{text}"},
        )
        variables[f"endless_d_prime{end}"] = (
            places,
            endless[end][keep],
            {**unit_attributes("1"), "long_name": f"d' after endless training{text}"},
        )
    fields_attributes = {**unit_attributes("1"), "long_name": "Fields trained on"}
    coordinates = {FIELDS: (FIELDS, counts, fields_attributes)}
    if by_level:
        level_attributes = {**unit_attributes(axis.unit), "long_name": axis.label}
        coordinates[LEVEL] = (LEVEL, levels, level_attributes)
    return csf.assign(variables).assign_coords(coordinates)
