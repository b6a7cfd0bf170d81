"""Measures of difference in a result: one variable each, as it is kept, and along one dimension, as
analysis reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.files.json_types import JsonMapping

if TYPE_CHECKING:
    import xarray as xr

#: The one measure of a metric, which has no features: its response.
DIFFERENCE = "difference"

#: Measure to what its values are.
_SCALES = {
    "angular": "angle / pi",
    "angular_float32": "angle / pi by a float32 arccosine",
    "cosine": "cosine similarity",
    "l1": "L1 distance in feature units",
    "l2": "L2 distance in feature units",
    DIFFERENCE: "the metric's own scale",
}
#: Ends the name of a variable with the responses to each variant.
BY_VARIANT = "_by_variant"
#: Variables that have a measure, without its name.
_MEASURED = re.compile(
    rf"(pixels_)?(scored_|reference_|anchor_|against_)?response({BY_VARIANT})?|noise_floor"
)


def split_measures(result: xr.Dataset) -> xr.Dataset:
    """Split variables by measure into one each: `response_angular`, `response_l2`.

    Parameters
    ----------
    result : xarray.Dataset
        Some variables have the dimension "measure". One without is returned as it is.
    """
    if "measure" not in result.dims:
        return result
    measures = [str(measure) for measure in result["measure"].values]
    variables: dict[str, xr.Variable] = {}
    for name in map(str, result.data_vars):
        # Variables have no coordinates, which need not be aligned then.
        values = result.variables[name]
        if "measure" not in values.dims:
            variables[name] = values
            continue
        for place, measure in enumerate(measures):
            column = values.isel(measure=place)
            scale = _SCALES.get(measure, measure)
            column.attrs = {
                "units": "1",
                "long_name": f"{values.attrs.get('long_name', name)} ({scale})",
            }
            variables[f"{name}_{measure}"] = column
    coordinates = result.coords.to_dataset().drop_vars("measure", errors="ignore")
    attributes = {**result.attrs, "measures": json.dumps(measures)}
    return _assemble(variables, coordinates, attributes)


def join_measures(result: xr.Dataset) -> xr.Dataset:
    """Join a result's variables of each measure along a dimension "measure".

    Parameters
    ----------
    result : xarray.Dataset
        Of `split_measures`. One that has the dimension, or no measures, is returned as it is.
    """
    import xarray as xr

    if "measures" not in getattr(result, "attrs", {}) or "measure" in result.dims:
        return result
    measures = measures_of(result)
    variables: dict[str, xr.Variable] = {}
    for name in map(str, result.data_vars):
        base, measure = _parts(name, measures)
        if not measure:
            variables[name] = result.variables[name]
        elif measure == measures[0]:
            variables[base] = _joined(result, base, measures)
    variables["measure"] = xr.Variable("measure", measures, {"units": "1"})
    attributes = {
        name: value for name, value in result.attrs.items() if name != "measures"
    }
    return _assemble(variables, result.coords.to_dataset(), attributes)


def _assemble(
    variables: Mapping[str, xr.Variable],
    coordinates: xr.Dataset,
    attributes: JsonMapping,
) -> xr.Dataset:
    """Build a dataset of variables on a dataset's coordinates, which come first.

    `assign` gives the same in twice the time, as it aligns coordinates with themselves.
    """
    import xarray as xr

    dataset = xr.Dataset(variables, coordinates.coords, attributes)
    return dataset[[*coordinates.coords, *variables]]


def measures_of(result: xr.Dataset) -> list[str]:
    """List the measures (distances) that a result holds."""
    if "measure" in result.dims:
        return [str(measure) for measure in result["measure"].values]
    return [
        str(measure) for measure in json.loads(str(result.attrs.get("measures", "[]")))
    ]


def _parts(name: str, measures: list[str]) -> tuple[str, str]:
    """Split a variable's name into its base and its measure, "" where it has none."""
    for measure in measures:
        base = name.removesuffix(f"_{measure}")
        if base != name and _MEASURED.fullmatch(base):
            return base, measure
    return name, ""


def _joined(result: xr.Dataset, base: str, measures: list[str]) -> xr.Variable:
    """Stack the variables of one base name over all measures."""
    import xarray as xr

    columns = [result.variables[f"{base}_{measure}"] for measure in measures]
    dims = list(columns[0].dims)
    place = dims.index("layer") + 1 if "layer" in dims else 0
    dims.insert(place, "measure")
    label = str(columns[0].attrs.get("long_name", base)).rpartition(" (")[0]
    attributes = {"units": "1", "long_name": label}
    values = np.stack([column.values for column in columns], axis=place)
    return xr.Variable(dims, values, attributes)
