"""Results as labelled arrays: what their dimensions, units and attributes are called, in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray

if TYPE_CHECKING:
    import xarray

#: Dimensions, values, units and description of a variable; None in place of values leaves it out.
Variable = tuple[tuple[str, ...], Any, str, str]

SCALE = "angular: angle / pi; cosine: cosine similarity; l1, l2: feature units; difference: the metric's own"


def labelled(
    data: Mapping[str, Variable], coordinates: Mapping[str, Variable], attributes: Mapping[str, Any]
) -> xarray.Dataset:
    """A dataset of float64 variables, with the observer as a coordinate: results concatenate along it.

    Parameters
    ----------
    data, coordinates : mapping of str to Variable
        By name.
    attributes : mapping of str to (str or number)
        Of the whole, "observer" among them.

    Examples
    --------
    >>> found = labelled({"response": (("contrast",), [0.1, 0.2], "1", "Response")}, {}, {"observer": "pixels"})
    >>> str(found["observer"].values), found["response"].attrs["units"]
    ('pixels', '1')
    """
    import xarray

    def described(units: str, long_name: str) -> dict[str, str]:
        return {"units": units, "long_name": long_name}

    return xarray.Dataset(
        {
            name: (dims, np.asarray(values, dtype=np.float64), described(units, text))
            for name, (dims, values, units, text) in data.items()
            if values is not None
        },
        coords={
            **{name: (dims, values, described(*text)) for name, (dims, values, *text) in coordinates.items()},
            "observer": ((), str(attributes["observer"]), described("1", "Observer")),
        },
        attrs=dict(attributes),
    )


def detection_result(
    layout: Mapping[str, Any],
    observer: tuple[FloatArray | None, FloatArray | None],
    pixels: tuple[FloatArray | None, FloatArray | None],
    noise_floor: FloatArray,
    layers: Sequence[str],
    attributes: Mapping[str, Any],
) -> xarray.Dataset:
    """The result of a run that compares tests with references, on a grid of levels and at multiples of thresholds.

    Parameters
    ----------
    layout : mapping
        What was asked:

        * "levels": a mapping each, "name", "unit", "label", "values" (of the grid) and "scored" (which are);
        * "difference", in which test and reference differ: "name" (a dimension: "contrast", "orientation_difference"),
          "unit", "label", "kind" (of a contrast, else absent or empty) and "values";
        * "score_measure", "measures", "ppd" and "size";
        * "human", the name of the human reference or "". With one: "human_sensitivity" (scored levels ...),
          "multiplier" and "multiplier_of" ("threshold" or "sensitivity"), "scored_difference" (scored levels ...,
          multiplier), and "curve", a mapping "level", "values", "sensitivity", or None.
    observer : (array or None, array or None)
        Responses on the grid (layers, measures, levels ..., difference) and at what is scored (layers, measures,
        scored levels ..., multiplier).
    pixels : (array or None, array or None)
        The same of the images themselves, without layers.
    noise_floor : array, shape (layers, measures)
        Responses to identical images.
    layers : sequence of str
        Names of its features.
    attributes : mapping of str to (str or number)
        Where the result comes from.

    Returns
    -------
    xarray.Dataset
        Dimensions are named after the levels and after the difference: ``response`` (layer, measure, frequency,
        contrast), ``scored_response`` (layer, measure, scored_frequency, multiplier). What was not asked is absent.
    """
    levels, difference, human = layout["levels"], layout["difference"], layout["human"]
    grid = (*(level["name"] for level in levels), difference["name"])
    sensitivity = "1" if difference["unit"] == "1" else f"1 / ({difference['unit']})"
    places = tuple(f"scored_{level['name']}" for level in levels)
    scored = (*places, "multiplier")
    data: dict[str, Variable] = {
        "response": (("layer", "measure", *grid), observer[0], SCALE, "Response on the level grid"),
        "pixels_response": (("measure", *grid), pixels[0], SCALE, "Response of the pixels on the level grid"),
        "noise_floor": (("layer", "measure"), noise_floor, SCALE, "Largest response to identical images"),
    }
    coordinates: dict[str, Variable] = {
        "layer": (("layer",), list(layers), "1", "Features"),
        "measure": (("measure",), list(layout["measures"]), "1", "Measure"),
    }
    if observer[0] is not None:
        for one in (*levels, difference):
            coordinates[one["name"]] = ((one["name"],), one["values"], one["unit"], one["label"])
    if human:
        at_threshold = "at multiples of human thresholds"
        data |= {
            "scored_response": (("layer", "measure", *scored), observer[1], SCALE, f"Response {at_threshold}"),
            "pixels_scored_response": (
                ("measure", *scored), pixels[1], SCALE, f"Response of the pixels {at_threshold}",
            ),
            f"scored_{difference['name']}": (
                scored, layout["scored_difference"], difference["unit"], difference["label"],
            ),
            "human_sensitivity": (places, layout["human_sensitivity"], sensitivity, "Human sensitivity"),
        }  # fmt: skip
        for name, one in zip(places, levels, strict=True):
            coordinates[name] = ((name,), one["scored"], one["unit"], one["label"])
        multiplier = f"Multiplier of the human {layout['multiplier_of']}"
        coordinates["multiplier"] = (("multiplier",), layout["multiplier"], "1", multiplier)
    if human and layout["curve"] is not None:
        curve = layout["curve"]
        name, one = f"curve_{curve['level']}", next(one for one in levels if one["name"] == curve["level"])
        data["human_curve"] = ((name,), curve["sensitivity"], sensitivity, "Human sensitivity")
        coordinates[name] = ((name,), curve["values"], one["unit"], one["label"])
    named = {
        "levels": json.dumps([level["name"] for level in levels]),
        "difference": difference["name"],
        "difference_label": difference["label"],
        **({"contrast_kind": difference["kind"]} if difference.get("kind") else {}),
        **({"multiplier_of": layout["multiplier_of"]} if human else {}),
        "score_measure": layout["score_measure"],
        "human_model": human,
    }
    return labelled(data, coordinates, {**attributes, **named})
