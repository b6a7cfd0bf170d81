"""What just noticeable differences are read at: a pair that anchors the response, and another
difference beside it.

A response has no criterion of its own. Here it is that of the same observer to another pair, at
every level: to the target at detection threshold, or to a tenth more contrast.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.jnd import ideal_jnd
from psyprobe.analysis.measures import join_measures, split_measures
from psyprobe.analysis.responses import Variable, with_flags, with_status
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.units import unit_attributes, unit_symbol
from psyprobe.human.reference import DataReference, Reference, load_reference
from psyprobe.probes.differences import Differing, changing, sensitivity_at
from psyprobe.probes.pair_batches import Responses
from psyprobe.probes.pairs import Grid
from psyprobe.stimulus import Specification
from psyprobe.stimulus.parameters import ten_digits
from psyprobe.stimulus.specification import with_levels

if TYPE_CHECKING:
    import xarray as xr

#: By which factor the anchor "contrast" is above the contrast.
_MORE = 1.1


def beside(
    experiment: Experiment,
    by: Differing,
    drawn: Specification,
    native: Specification,
    levels: Mapping[str, FloatArray],
) -> tuple[dict[str, Grid], dict[str, Any]]:
    """What is shown besides the level grid, by name, and what the layout tells of it.

    Parameters
    ----------
    experiment : Experiment
        With an anchor.
    by : Differing
        Of its grid.
    drawn, native : Specification
        The stimulus at the size at which the observer gets it, and at its own.
    levels : mapping of str to array
        Of the grid.

    Raises
    ------
    InputError
        The anchor would be the difference itself.
    """
    anchor = experiment.score.anchor
    shape = tuple(map(len, levels.values()))
    every = dict(zip(levels, np.meshgrid(*levels.values(), indexing="ij"), strict=True))
    base = with_levels(drawn, **every)
    own = np.broadcast_to(np.asarray(base.value("contrast"), dtype=np.float64), shape)
    if anchor == "contrast":
        if by.parameter == "contrast":
            raise InputError(
                "score.anchor is 'contrast', and contrast is what differs, so that every "
                "threshold would be a tenth of "
                "the pedestal; give 'detection', or a contrast"
            )
        faint: FloatArray = (_MORE - 1) * own
        grids = {"anchor": Grid(with_levels(base, contrast=_MORE * own), base)}
    else:
        castle = load_reference({"model": "castle_csf"}, Path())
        thresholds = (
            1 / sensitivity_at(castle, native, levels)
            if anchor == "detection"
            else np.full(shape, anchor)
        )
        faint = ten_digits(thresholds)
        masks = {name: np.zeros(shape) for name in base.levels() if name.endswith("_contrast")}
        alone = with_levels(base, contrast=faint, **masks)
        grids = {"anchor": Grid(alone, alone.reference())}
    told: dict[str, Any] = {
        "anchor_contrast": faint.tolist(),
        "anchored": anchor,
        "jnd_human": "" if experiment.human is None else experiment.human.name,
        "human_jnd": None
        if experiment.human is None
        else _told(_thresholds(experiment.human, native, levels)),
        "ideal_jnd": _told(_ideal(by, base, faint, shape)),
    }
    against = None if experiment.difference is None else experiment.difference.against
    if against is not None:
        other = changing(against, experiment.spec())
        if other.name == by.name:
            raise InputError(
                f"difference.against.parameter is {other.parameter!r} too; give another parameter"
            )
        found = other.grid(drawn, levels, np.array(other.values))
        assert found is not None
        grids["against"] = found
        told["against_difference"] = {
            name: getattr(other, name) for name in ("name", "unit", "label")
        } | {"values": list(other.values)}
    return grids, told


def _told(values: FloatArray | None) -> Any:
    """As JSON can hold it; None for NaN."""
    if values is None:
        return None
    told = values.astype(object)
    told[np.isnan(values)] = None
    return told.tolist()


def _thresholds(
    reference: Reference, native: Specification, levels: Mapping[str, FloatArray]
) -> FloatArray:
    """What people need at every level; NaN where they were not measured."""
    if not isinstance(reference, DataReference):
        return 1 / sensitivity_at(reference, native, levels)
    found = np.full(tuple(map(len, levels.values())), np.nan)
    for place in itertools.product(*map(range, found.shape)):
        at = {name: values[[i]] for (name, values), i in zip(levels.items(), place, strict=True)}
        try:
            found[place] = 1 / sensitivity_at(reference, native, at).item()
        except InputError as error:
            missing = error
    if np.isnan(found).all():
        raise missing
    return found


def _ideal(
    by: Differing, base: Specification, faint: FloatArray, shape: tuple[int, ...]
) -> FloatArray | None:
    """Of the linear ideal observer, where it has a closed form: of round Gabors."""
    if base.kind != "gabor" or np.any(np.asarray(base.value("aspect")) != 1):
        return None
    known = {
        name: np.broadcast_to(base.value(name), shape)
        for name in ("frequency", "radius", "contrast")
    }
    return ideal_jnd(f"{by.parameter} {by.change}".strip(), faint, **known)


def with_anchor(result: xr.Dataset, layout: Mapping[str, Any], found: Responses) -> xr.Dataset:
    """A result, and what was shown besides: the anchor over the levels, and responses to the other
    difference.
    """
    import xarray

    levels = tuple(level["name"] for level in layout["levels"])
    other = layout.get("against_difference")
    places = {"anchor_response": np.array(layout["anchor"])}
    grids = {"anchor_response": (levels, "Response to the anchor")}
    if other is not None:
        places["against_response"] = np.array(layout["against"])
        grids["against_response"] = ((*levels, other["name"]), "Response to the other difference")
    data: dict[str, Variable] = {}
    for name, at in places.items():
        dims, label = grids[name]
        values = np.moveaxis(found.observer[at], (-2, -1), (0, 1))
        pixels = np.moveaxis(found.baseline[at], -1, 0)
        data[name] = (("layer", "measure", *dims), values, "1", label)
        data[f"pixels_{name}"] = (("measure", *dims), pixels, "1", f"{label} of the pixels")
    data = with_status(data, places, found.status, found.baseline_status)
    unit = unit_symbol(result[layout["difference"]["name"]].attrs)
    for name, label in (
        ("human_jnd", "Human threshold"),
        ("ideal_jnd", "Threshold of the linear ideal observer"),
    ):
        if layout[name] is not None:
            data[name] = (levels, np.array(layout[name], dtype=np.float64), unit, label)
    data["anchor_contrast"] = (
        levels,
        np.array(layout["anchor_contrast"]),
        "1",
        "Contrast by which the anchor differs",
    )
    added = {
        name: xarray.Variable(
            dims,
            np.asarray(values, dtype=np.float64),
            {**unit_attributes(units), "long_name": label},
        )
        for name, (dims, values, units, label) in data.items()
    }
    if other is not None:
        about = {**unit_attributes(other["unit"]), "long_name": other["label"]}
        result = result.assign_coords(
            {other["name"]: xarray.Variable((other["name"],), other["values"], about)}
        )
    told = {"anchor": str(layout["anchored"]), "jnd_human": layout["jnd_human"]}
    added_result = join_measures(result).assign(added)
    return split_measures(with_flags(added_result)).assign_attrs(
        told | ({} if other is None else {"against": other["name"]})
    )
