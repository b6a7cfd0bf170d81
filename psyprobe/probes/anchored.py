"""Add the anchor of just noticeable differences: a pair whose response is the criterion.

A response has no criterion of its own. Here it is the response of the same observer to another
pair, at every level: to the target at detection threshold, or to a tenth more contrast. A second
difference can be shown too, for comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray, NamedArrays
from psyprobe.analysis.jnd import ideal_jnd
from psyprobe.analysis.measures import split_measures
from psyprobe.analysis.responses import Variable, labelled, with_status
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.units import unit_symbol
from psyprobe.human.reference import DataReference, Reference, load_reference
from psyprobe.probes.differences import (
    StimulusDifference,
    build_difference,
    human_sensitivity,
    mesh,
)
from psyprobe.probes.feature_distances import json_lists
from psyprobe.probes.pair_batches import Responses
from psyprobe.probes.pairs import Grid
from psyprobe.stimulus import Specification
from psyprobe.stimulus.parameters import ten_digits
from psyprobe.stimulus.specification import with_levels

if TYPE_CHECKING:
    from xarray import Dataset

#: The contrast of the anchor "contrast", as a multiple of the stimulus's contrast.
_ANCHOR_FACTOR = 1.1


def anchored_grids(
    experiment: Experiment,
    difference: StimulusDifference,
    displayed: Specification,
    native: Specification,
    levels: NamedArrays,
) -> tuple[dict[str, Grid], JsonObject]:
    """Build the image pairs of the anchor and of the second difference, with layout entries.

    Parameters
    ----------
    experiment : Experiment
        An experiment with an anchor.
    difference : StimulusDifference
        The difference of the level grid.
    displayed, native : Specification
        The stimulus at the observer's size, and at its own.
    levels : mapping of str to array
        Levels of the grid.

    Raises
    ------
    InputError
        The anchor would be the difference itself.
    """
    anchor = experiment.score.anchor
    shape = tuple(map(len, levels.values()))
    base = with_levels(displayed, **mesh(levels))
    contrasts = np.broadcast_to(
        np.asarray(base.value("contrast"), dtype=np.float64), shape
    )
    if anchor == "contrast":
        if difference.parameter == "contrast":
            raise InputError(
                "score.anchor is 'contrast', and contrast is what differs, so that every "
                "threshold would be a tenth of the pedestal; give 'detection', or a contrast"
            )
        anchor_contrasts: FloatArray = (_ANCHOR_FACTOR - 1) * contrasts
        grids = {
            "anchor": Grid(with_levels(base, contrast=_ANCHOR_FACTOR * contrasts), base)
        }
    else:
        if anchor == "detection":
            castle = load_reference({"model": "castle_csf"}, Path())
            anchor_contrasts = ten_digits(1 / human_sensitivity(castle, native, levels))
        else:
            anchor_contrasts = ten_digits(np.full(shape, anchor))
        masks = {
            name: np.zeros(shape)
            for name in base.levels()
            if name.endswith("_contrast")
        }
        anchor_spec = with_levels(base, contrast=anchor_contrasts, **masks)
        grids = {"anchor": Grid(anchor_spec, anchor_spec.reference())}
    human = experiment.human
    ideal = _ideal_thresholds(difference, base, anchor_contrasts, shape)
    entries: JsonObject = {
        "anchor_contrast": anchor_contrasts.tolist(),
        "anchored": anchor,
        "jnd_human": "" if human is None else human.name,
        "human_jnd": None
        if human is None
        else json_lists(_human_thresholds(human, native, levels)),
        "ideal_jnd": None if ideal is None else json_lists(ideal),
    }
    if experiment.difference is not None and experiment.difference.against is not None:
        second = build_difference(experiment.difference.against, experiment.spec())
        if second.name == difference.name:
            raise InputError(
                f"difference.against.parameter is {second.parameter!r} too; give another parameter"
            )
        second_grid = second.grid(displayed, levels, np.array(second.values))
        assert second_grid is not None
        grids["against"] = second_grid
        entries["against_difference"] = {
            "name": second.name,
            "unit": second.unit,
            "label": second.label,
            "values": list(second.values),
        }
    return grids, entries


def _human_thresholds(
    reference: Reference, native: Specification, levels: NamedArrays
) -> FloatArray:
    """Return human thresholds at every level; NaN where not measured."""
    if not isinstance(reference, DataReference):
        return 1 / human_sensitivity(reference, native, levels)
    thresholds = np.full(tuple(map(len, levels.values())), np.nan)
    for index in np.ndindex(thresholds.shape):
        levels_at_index = {
            name: values[[i]]
            for (name, values), i in zip(levels.items(), index, strict=True)
        }
        try:
            thresholds[index] = (
                1 / human_sensitivity(reference, native, levels_at_index).item()
            )
        except InputError as error:
            missing = error
    if np.isnan(thresholds).all():
        raise missing
    return thresholds


def _ideal_thresholds(
    difference: StimulusDifference,
    base: Specification,
    anchor_contrasts: FloatArray,
    shape: tuple[int, ...],
) -> FloatArray | None:
    """Compute the linear ideal observer's thresholds for round Gabors; None for others."""
    if base.kind != "gabor" or np.any(np.asarray(base.value("aspect")) != 1):
        return None
    parameters = {
        name: np.broadcast_to(base.value(name), shape)
        for name in ("frequency", "radius", "contrast")
    }
    return ideal_jnd(
        f"{difference.parameter} {difference.change}".strip(),
        anchor_contrasts,
        **parameters,
    )


def add_anchor(result: Dataset, layout: JsonMapping, responses: Responses) -> Dataset:
    """Add a result's responses to the anchor and to the second difference."""
    levels = tuple(level["name"] for level in layout["levels"])
    second = layout.get("against_difference")
    grids = {"anchor": (levels, "Response to the anchor")}
    if second is not None:
        second_levels = (*levels, second["name"])
        grids["against"] = (second_levels, "Response to the other difference")
    pair_indices = {}
    data: dict[str, Variable] = {}
    for grid, (dims, label) in grids.items():
        name = f"{grid}_response"
        pair_indices[name] = np.array(layout[grid])
        values, pixels = responses.at(pair_indices[name])
        data[name] = (("layer", "measure", *dims), values, "1", label)
        data[f"pixels_{name}"] = (
            ("measure", *dims),
            pixels,
            "1",
            f"{label} of the pixels",
        )
    data = with_status(data, pair_indices, responses.status, responses.baseline_status)
    unit = unit_symbol(result[layout["difference"]["name"]].attrs)
    for name, label in (
        ("human_jnd", "Human threshold"),
        ("ideal_jnd", "Threshold of the linear ideal observer"),
    ):
        if layout[name] is not None:
            data[name] = (levels, np.array(layout[name], dtype=np.float64), unit, label)
    contrasts = np.array(layout["anchor_contrast"])
    data["anchor_contrast"] = (
        levels,
        contrasts,
        "1",
        "Contrast by which the anchor differs",
    )
    anchor_attributes = {
        "anchor": str(layout["anchored"]),
        "jnd_human": layout["jnd_human"],
    }
    coordinates: dict[str, Variable] = {
        "measure": (("measure",), layout["measures"], "1", "Measure")
    }
    if second is not None:
        name = second["name"]
        coordinates[name] = ((name,), second["values"], second["unit"], second["label"])
        anchor_attributes["against"] = name
    anchored_result = split_measures(labelled(data, coordinates, result.attrs))
    merged = split_measures(result).merge(anchored_result, compat="override")
    return merged.assign_attrs(anchor_attributes)
