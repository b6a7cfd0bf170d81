"""Build, read and score results of runs that compare features."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.direction import (
    ADVISED,
    DEFINED_ALWAYS,
    SOUND,
    STATUSES,
    TURNED,
    UNDEFINED,
    share_of,
)
from psyprobe.analysis.distance import angular_of_rounded_cosine
from psyprobe.analysis.measures import (
    BY_VARIANT,
    join_measures,
    measures_of,
)
from psyprobe.analysis.score import OBSERVER, Row, Tabled, many, percent
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.flags import flag_attributes
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.units import inverse_symbol, unit_attributes
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Measures that can be scored and drawn, with the label of an axis or colour bar.
MEASURE_LABELS = {
    "angular": "Angular distance $S_{ac}$",
    "angular_float32": "Angular distance $S_{ac}$ (float32 arccos)",
    "cosine": "1 − cosine similarity",
    "l1": "L1 distance (feature units)",
    "l2": "L2 distance (feature units)",
    "difference": "Difference (the metric's own scale)",
}

#: Angles that the paper's float32 arccosine gives as 0 or as its smallest value other than 0, over
#: pi.
FLOAT32_FLOOR = 1.1e-4


@dataclass(frozen=True)
class Scored:
    """Responses at multiples of human thresholds, all levels together."""

    #: Level to its value in each slice, shape (K,).
    at: dict[str, FloatArray]
    #: Multiples of the human threshold, whatever the experiment multiplied, shape (M,).
    multiplier: FloatArray
    #: Difference of test and reference, shape (K, M).
    difference: FloatArray
    #: Responses of the observer, shape (K, M).
    response: FloatArray
    #: Their status, from `psyprobe.analysis.direction.angle_status`, shape (K, M).
    status: FloatArray
    #: Responses of the images themselves, without an encoder, shape (K, M).
    pixels: FloatArray
    pixels_status: FloatArray
    #: Sensitivity of people, 1 / threshold, shape (K,).
    sensitivity: FloatArray
    #: Responses of the observer and of the images to each variant, shape (V, K, M); (1, K, M) where
    #: all are alike, or one was shown.
    variants: FloatArray
    pixels_variants: FloatArray


@dataclass(frozen=True)
class Responses:
    """Responses of one layer by one measure, larger for stimuli that differ more."""

    layer: str
    measure: str
    #: Response to identical images, run again.
    noise_floor: float
    #: Level to its values on the grid; those that were taken by ``result.sel`` are not among them.
    levels: dict[str, FloatArray]
    #: Contrasts, or other differences, of the grid, shape (D,).
    difference: FloatArray
    #: Over `levels` and `difference`, shape (levels ..., D); empty where the run was without a
    #: level grid.
    grid: FloatArray
    #: Their status, from `psyprobe.analysis.direction.angle_status`.
    status: FloatArray
    #: The same for the images themselves, without an encoder.
    pixels: FloatArray
    pixels_status: FloatArray
    #: None without a human reference.
    scored: Scored | None
    #: The human curve: its level, the values of that, and 1 / threshold; None where people are
    #: known point by point.
    curve: tuple[str, FloatArray, FloatArray] | None


def mesh(levels: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """List the value of each level in every row of a grid, flat."""
    values = np.meshgrid(*levels.values(), indexing="ij")
    return dict(zip(levels, map(np.ravel, values), strict=True))


def levels_of(result: xr.Dataset) -> tuple[str, ...]:
    """List the names of the levels of a result, in their order."""
    return tuple(json.loads(str(result.attrs.get("levels", "[]"))))


def observer_of(result: xr.Dataset) -> str:
    """Read the name of the one observer of a result.

    Raises
    ------
    InputError
        If several were concatenated, or one was taken out of them: only the first one's card is
        still there.
    """
    name = str(result.attrs.get("observer", ""))
    observers = result.coords.get("observer", name)
    if np.ndim(observers):
        raise InputError(
            f"the result holds {np.size(observers)} observers; score and draw each result before "
            "they are concatenated"
        )
    if str(np.asarray(observers)) != name:
        raise InputError(
            f"the responses are those of {np.asarray(observers)!s} and the attributes those of "
            f"{name}; score and draw the results before they are concatenated"
        )
    return name


def layers_of(result: xr.Dataset) -> list[str]:
    """List the layers of a detection result, in the observer's order.

    Raise `InputError` if it is none.
    """
    result = join_measures(result)
    variables = getattr(result, "variables", ())
    needed = ["scored_response", "noise_floor"]
    if "scored_response" in variables:
        difference = stimulus_axis_of(result).name
        needed += [
            "pixels_scored_response",
            "human_sensitivity",
            f"scored_{difference}",
        ]
    elif "response" in variables:
        needed = ["noise_floor"]
    return layers_with(result, "detection", needed)


def layers_with(result: xr.Dataset, probe: str, needed: Sequence[str]) -> list[str]:
    """List the layers of a result, refusing one of another probe or without needed variables.

    Raise `InputError` if it lacks a variable that such results have.
    """
    variables = getattr(join_measures(result), "variables", ())
    missing = [name for name in needed if name not in variables]
    if missing:
        raise InputError(
            f"this is no {probe} result: it lacks {', '.join(missing)}; pass what psyprobe.run() "
            "returned or a store holds"
        )
    return [str(name) for name in result["layer"].values]


def resolve_measure_and_layer(
    result: xr.Dataset, layers: Sequence[str], measure: str | None, layer: str | None
) -> tuple[str, str]:
    """Choose the measure and layer to read: those named, else the defaults.

    The default measure is the experiment's, or "angular"; the default layer is the only one.
    """
    if layer is None and len(layers) > 1:
        raise InputError(
            f"the result holds {len(layers)} layers ({', '.join(layers)}); name one with layer="
        )
    if layer is not None and layer not in layers:
        raise unknown_name("layer", layer, layers)
    return measure or str(
        result.attrs.get("score_measure", "angular")
    ), layer or layers[0]


def values_of(
    result: xr.Dataset,
    name: str,
    measure: str,
    layer: str | None = None,
    order: Sequence[str] = (),
) -> FloatArray:
    """Read a variable's values of one measure and layer as float64, growing with difference.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run that compares features.
    name : str
        Of the variable.
    measure : str
        As for `select`; of no effect on a variable that has none.
    layer : str, optional
        One that the result holds; of no effect on a variable that has none.
    order : sequence of str, optional
        Of the dimensions that are left; those that the variable lacks are passed over.

    Raises
    ------
    InputError
        If a value is not finite and no undefined angle.
    UnknownNameError
        If the measure is not in the result.
    """
    result = join_measures(result)
    # By place, and without coordinates: a label is looked up slowly.
    variable = result.variables[name]
    stored = ""
    if "measure" in variable.dims:
        measures = measures_of(result)
        stored = stored_measure(measures, measure)
        variable = variable.isel(measure=measures.index(stored))
    if "layer" in variable.dims:
        layers = result.variables["layer"].values.tolist()
        variable = variable.isel(layer=layers.index(layer))
    values: FloatArray = variable.transpose(
        *order, missing_dims="ignore"
    ).values.astype(float)
    # What is undefined in one variant is undefined in the mean.
    status = status_of(result, name.removesuffix(BY_VARIANT), measure, layer, order)
    lost = ~np.isfinite(values) & (status != UNDEFINED)
    if lost.any():
        raise InputError(
            f"{int(lost.sum())} of {values.size} values of {name} are not finite; finish the "
            "run before scoring it"
        )
    return as_difference(values, stored, measure)


def status_of(
    result: xr.Dataset,
    name: str,
    measure: str,
    layer: str | None = None,
    order: Sequence[str] = (),
) -> FloatArray:
    """Read the status of a variable's values, of one measure and layer.

    It is `SOUND` where the measure is no angle, or lengths are unknown.
    """
    result = join_measures(result)
    if f"{name}_status" in result and measure not in DEFINED_ALWAYS:
        return values_of(result, f"{name}_status", measure, layer, order)
    sizes = result[name].sizes
    dims = order or [str(dim) for dim in sizes if dim not in ("measure", "layer")]
    return np.full([sizes[dim] for dim in dims if dim in sizes], float(SOUND))


def select(
    result: xr.Dataset, *, measure: str | None = None, layer: str | None = None
) -> Responses:
    """Select one layer and measure of a detection result, as plain arrays.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run. Levels that were taken by ``result.sel`` are taken of what is scored,
        too.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        Distance between features; without it the measure that the experiment names, else "angular".
        "cosine" gives 1 - cosine similarity, so that all measures grow with the difference;
        "angular_float32" gives S_ac in the paper's arithmetic: as stored by the experiments that
        name it, else from the stored cosine, which lacks the rounding errors of the paper's sums.
    layer : str, optional
        Name of a layer; needed where the result holds more than one.

    Raises
    ------
    InputError
        If the result is no detection result, holds several layers and none was named, or holds
        values that are not finite.
    UnknownNameError
        If the measure or the layer is not in the result.
    """
    result = join_measures(result)
    resolved_measure, resolved_layer = resolve_measure_and_layer(
        result, layers_of(result), measure, layer
    )
    observer_of(result)
    names = levels_of(result)
    difference = stimulus_axis_of(result).name
    gridded = "response" in result
    free = [name for name in names if gridded and name in result["response"].dims]
    grid, status, pixels, pixels_status = (
        reader(result, name, resolved_measure, resolved_layer, [*free, difference])
        if gridded
        else np.empty((0, 0))
        for name in ("response", "pixels_response")
        for reader in (values_of, status_of)
    )
    curve = None
    for name in names:
        place = f"curve_{name}"
        if place in result.dims:
            human = values_of(result, "human_curve", resolved_measure, order=[place])
            curve = (name, result[place].values.astype(float), human)
    floor = values_of(result, "noise_floor", resolved_measure, resolved_layer)
    if floor.ndim:
        raise InputError(
            f"the noise floor has the shape {floor.shape} where one number belongs; run it again"
        )
    return Responses(
        layer=resolved_layer,
        measure=resolved_measure,
        noise_floor=float(floor),
        levels={name: result[name].values.astype(float) for name in free},
        difference=result[difference].values.astype(float) if gridded else np.empty(0),
        grid=grid,
        status=status,
        pixels=pixels,
        pixels_status=pixels_status,
        scored=_read_scored(result, names, difference, resolved_measure, resolved_layer)
        if "scored_response" in result
        else None,
        curve=curve,
    )


def _read_scored(
    result: xr.Dataset, names: Sequence[str], difference: str, measure: str, layer: str
) -> Scored:
    """Collect the responses at multiples of the human threshold, as flat arrays per level."""
    for name in names:
        place = f"scored_{name}"
        if name in result.coords and not result[name].ndim and place in result.dims:
            equal = np.isclose(
                result[place].values, float(result[name]), rtol=1e-9, atol=0
            )
            if not equal.any():
                raise InputError(
                    f"{name} {float(result[name]):g} is not scored; take one of "
                    f"{result[place].values}"
                )
            result = result.isel({place: int(equal.argmax())})
    places = [f"scored_{name}" for name in names if f"scored_{name}" in result.dims]
    order = [*places, "multiplier"]
    scale = result.attrs.get("multiplier_of")
    if scale not in ("threshold", "sensitivity"):
        raise InputError(
            f"attribute multiplier_of of the result is {scale!r}; it must be 'threshold' or "
            "'sensitivity'"
        )
    multiplier = result["multiplier"].values.astype(float)
    values = {
        place.removeprefix("scored_"): result[place].values.astype(float)
        for place in places
    }

    def flat(name: str, reader: Callable[..., FloatArray] = values_of) -> FloatArray:
        return reader(result, name, measure, layer, order).reshape(-1, len(multiplier))

    def by_variant(name: str) -> FloatArray:
        if f"{name}{BY_VARIANT}" not in result:
            return flat(name)[None]
        variants = values_of(
            result, f"{name}{BY_VARIANT}", measure, layer, ["variant", *order]
        )
        return variants.reshape(len(variants), -1, len(multiplier))

    return Scored(
        at=mesh(values),
        multiplier=multiplier if scale == "threshold" else 1 / multiplier,
        difference=flat(f"scored_{difference}"),
        response=flat("scored_response"),
        status=flat("scored_response", status_of),
        pixels=flat("pixels_scored_response"),
        pixels_status=flat("pixels_scored_response", status_of),
        sensitivity=values_of(
            result, "human_sensitivity", measure, order=places
        ).ravel(),
        variants=by_variant("scored_response"),
        pixels_variants=by_variant("pixels_scored_response"),
    )


def stored_measure(measures: Sequence[str], measure: str) -> str:
    """Name the stored measure from which another is computed: itself, or "cosine".

    Raises
    ------
    UnknownNameError
        If there is no such measure.

    Examples
    --------
    >>> stored_measure(["angular", "cosine"], "angular_float32")
    'cosine'
    """
    if measure not in MEASURE_LABELS:
        raise unknown_name("measure", measure, MEASURE_LABELS)
    stored = (
        "cosine"
        if measure == "angular_float32" and measure not in measures
        else measure
    )
    if stored not in measures:
        raise unknown_name("measure", stored, measures)
    return stored


def as_difference(values: FloatArray, stored: str, measure: str) -> FloatArray:
    """Convert a measure's stored values to one that grows with the difference, from 0.

    Examples
    --------
    >>> as_difference(np.array([1.0, 0.25]), "cosine", "cosine")
    array([0.  , 0.75])
    """
    if stored != "cosine":
        return values
    if measure != "angular_float32":
        return 1 - values
    angle = np.full(values.shape, np.nan)
    angle[~np.isnan(values)] = angular_of_rounded_cosine(values[~np.isnan(values)])
    return angle


#: Dimensions, values, units and description of a variable; None in place of values leaves it out.
Variable = tuple[tuple[str, ...], Any, str, str]


def labelled(
    data: Mapping[str, Variable],
    coordinates: Mapping[str, Variable],
    attributes: JsonMapping,
) -> xr.Dataset:
    """Build a dataset of float64 variables, and CF flags of statuses, with the observer as a
    coordinate, and measures as a dimension and an attribute.

    Parameters
    ----------
    data, coordinates : mapping of str to Variable
        By name.
    attributes : mapping of str to (str or number)
        Of the whole, "observer" among them.

    Examples
    --------
    >>> variables = {"response": (("contrast",), [0.1, 0.2], "1", "Response")}
    >>> found = labelled(variables, {}, {"observer": "pixels"})
    >>> str(found["observer"].values), found["response"].attrs["units"]
    ('pixels', '1')
    """
    import xarray

    def variable(dims: tuple[str, ...], values: Any, units: str, long_name: str) -> Any:
        return dims, values, {**unit_attributes(units), "long_name": long_name}

    def flags(dims: tuple[str, ...], values: Any, _: str, long_name: str) -> Any:
        return dims, values.astype(np.int8), flag_attributes(STATUSES, long_name)

    measures = {}
    if "measure" in coordinates:
        measures = {"measures": json.dumps(coordinates["measure"][1])}
    return xarray.Dataset(
        {
            name: (flags if name.endswith("_status") else variable)(
                dims, np.asarray(values, float), *description
            )
            for name, (dims, values, *description) in data.items()
            if values is not None
        },
        coords={
            **{name: variable(*coordinate) for name, coordinate in coordinates.items()},
            "observer": variable((), str(attributes["observer"]), "1", "Observer"),
        },
        attrs={**attributes, **measures},
    )


def with_status(
    data: Mapping[str, Variable],
    places: Mapping[str, FloatArray | None],
    observer: FloatArray | None,
    pixels: FloatArray | None,
) -> dict[str, Variable]:
    """Add the status of angles beside each variable of responses.

    Parameters
    ----------
    data : mapping of str to Variable
        By name; those of the pixels are called "pixels_...", and dimensions stand as (layer,
        measure, ...).
    places : mapping of str to array of int, or None
        Of a variable's name, without "pixels_": which pair each response is of; None where there
        are none.
    observer : array, shape (pairs, layers), or None
        Status of each pair; None where it is not known.
    pixels : array, shape (pairs,), or None
        The same of the pixels.
    """
    variables = dict(data)
    for name, at in places.items():
        for variable, status in ((name, observer), (f"pixels_{name}", pixels)):
            if at is not None and status is not None and variable in data:
                dims = tuple(dim for dim in data[variable][0] if dim != "measure")
                values = status[at]
                if "layer" in dims:
                    values = np.moveaxis(values, -1, 0)
                label = f"Status of angles: {data[variable][3]}"
                variables[f"{variable}_status"] = (dims, values, "1", label)
    return variables


def detection_result(
    layout: JsonMapping,
    observer: tuple[FloatArray | None, FloatArray | None],
    pixels: tuple[FloatArray | None, FloatArray | None],
    noise_floor: FloatArray,
    layers: Sequence[str],
    attributes: JsonMapping,
    status: tuple[FloatArray | None, FloatArray | None] = (None, None),
) -> xr.Dataset:
    """Build the result of a run that compares tests with references, over levels and thresholds.

    Parameters
    ----------
    layout : mapping
        What was asked:

        * "levels": a mapping each, "name", "unit", "label", "values" (of the grid) and "scored"
          (which are);
        * "difference", in which test and reference differ: "name" (a dimension: "contrast",
          "orientation_difference"), "unit", "label", "kind" (of a contrast, else absent or empty)
          and "values";
        * "score_measure", "measures", "ppd" and "size";
        * "human", the name of the human reference or "". With one: "human_sensitivity" (scored
          levels ...), "multiplier" and "multiplier_of" ("threshold" or "sensitivity"),
          "scored_difference" (scored levels ..., multiplier), and "curve", a mapping "level",
          "values", "sensitivity", or None.
    observer : (array or None, array or None)
        Responses on the grid (layers, measures, levels ..., difference) and at what is scored
        (layers, measures, scored levels ..., multiplier).
    pixels : (array or None, array or None)
        The same of the images themselves, without layers.
    noise_floor : array, shape (layers, measures)
        Responses to identical images.
    layers : sequence of str
        Names of its features.
    attributes : mapping of str to (str or number)
        Where the result comes from.
    status : (array or None, array or None), optional
        Of the angles of the observer and of the pixels, as `with_status` takes them; places are
        those of `layout`.

    Returns
    -------
    xarray.Dataset
        Dimensions are named after the levels and after the difference: ``response`` (layer,
        measure, frequency, contrast), ``scored_response`` (layer, measure, scored_frequency,
        multiplier). What was not asked is absent.
    """
    levels = layout["levels"]
    difference = layout["difference"]
    human = layout["human"]
    curve = layout["curve"] if human else None
    grid = tuple(axis["name"] for axis in (*levels, difference))
    places = tuple(f"scored_{level['name']}" for level in levels)
    scored = (*places, "multiplier")
    sensitivity = (inverse_symbol(difference["unit"]), "Human sensitivity")
    data = {
        **_response_pair("response", grid, observer[0], pixels[0], "on the level grid"),
        "noise_floor": (
            ("layer", "measure"),
            noise_floor,
            "1",
            "Largest response to identical images",
        ),
    }
    coordinates: dict[str, Variable] = {
        "layer": (("layer",), list(layers), "1", "Features"),
        "measure": (("measure",), list(layout["measures"]), "1", "Measure"),
    }
    descriptions = {"levels": json.dumps([level["name"] for level in levels])}
    if observer[0] is not None:
        for name, axis in zip(grid, (*levels, difference), strict=True):
            coordinates[name] = _axis(name, axis["values"], axis)
    if difference.get("kind"):
        descriptions["contrast_kind"] = difference["kind"]
    if human:
        where = "at multiples of human thresholds"
        data |= _response_pair("scored_response", scored, observer[1], pixels[1], where)
        data[f"scored_{difference['name']}"] = (
            scored,
            layout["scored_difference"],
            difference["unit"],
            difference["label"],
        )
        human_sensitivity = layout["human_sensitivity"]
        data["human_sensitivity"] = (places, human_sensitivity, *sensitivity)
        for place, level in zip(places, levels, strict=True):
            coordinates[place] = _axis(place, level["scored"], level)
        multiplier = {
            "unit": "1",
            "label": f"Multiplier of the human {layout['multiplier_of']}",
        }
        coordinates["multiplier"] = _axis(
            "multiplier", layout["multiplier"], multiplier
        )
        descriptions["multiplier_of"] = layout["multiplier_of"]
    pairs = {
        "response": layout.get("grid", ()),
        "scored_response": layout.get("scored", ()),
    }
    pair_indices = {name: np.array(at) for name, at in pairs.items() if np.size(at)}
    data = with_status(data, pair_indices, *status)
    if curve is not None:
        place = f"curve_{curve['level']}"
        axis = levels[grid.index(curve["level"])]
        data["human_curve"] = ((place,), curve["sensitivity"], *sensitivity)
        coordinates[place] = _axis(place, curve["values"], axis)
    descriptions |= {"score_measure": layout["score_measure"], "human_model": human}
    return labelled(data, coordinates, {**attributes, **descriptions})


def _response_pair(
    name: str, dims: Sequence[str], observer: Any, pixels: Any, where: str
) -> dict[str, Variable]:
    """Describe the responses of observer and pixels to the same images as two variables."""
    return {
        name: (("layer", "measure", *dims), observer, "1", f"Response {where}"),
        f"pixels_{name}": (
            ("measure", *dims),
            pixels,
            "1",
            f"Response of the pixels {where}",
        ),
    }


def _axis(name: str, values: Any, axis: JsonMapping) -> Variable:
    """Describe a result's axis as xarray has it: dimensions, values, unit and label."""
    return (name,), values, axis["unit"], axis["label"]


#: Flags of shares of responses, where these are more than a tenth.
_FACT_FLAGS = {"below_noise": "n", "undefined": "u", "turned": "t"}


@dataclass(frozen=True)
class LayerScore(Tabled):
    """The fields and columns that every score of features has."""

    observer: str
    experiment: str
    layer: str
    measure: str
    #: True if the observer was not trained, so that the score says nothing about a trained one.
    random_weights: bool
    #: Share (0 to 1) of what is scored (of matches, the responses to references) that the paper's
    #: float32 arccosine would have put at 0 or at its smallest value, 1.1e-4: as stored by
    #: experiments that use it, else by rounding the stored cosine.
    float32_floor: float | None
    #: Response to identical images, run again.
    noise_floor: float
    #: Share (0 to 1) of the same responses that are not above the noise floor.
    below_noise: float
    #: Share (0 to 1) of the same responses that are undefined: rounding alone could make them.
    undefined: float
    #: Share (0 to 1) of those at which the feature of the reference is under a tenth as long as
    #: that of the test.
    turned: float
    #: Seed of the bootstrap.
    seed: int
    #: Resamples of the bootstrap.
    resamples: int
    #: The first metric of each variant of the stimulus; None for a run without variants.
    variants: Sample | None

    @property
    def about(self) -> JsonObject:
        """Return the columns that say what was scored: experiment, observer, layer, measure."""
        names = ("experiment", "measure", "observer", "layer")
        return {name: getattr(self, name) for name in names}

    def row(self, base: Row, short: str, first: str, noted: bool = True) -> Row:
        """Complete a table row by the columns that all scores of features share.

        Given are the short name of the responder, the name of the first metric, and whether notes
        have a column.
        """
        is_observer = base.responder == OBSERVER
        facts = {
            name: getattr(self, name) if is_observer else None
            for name in ("float32_floor", "noise_floor", *_FACT_FLAGS)
        }
        record = {
            **self.about,
            "random_weights": int(self.random_weights),
            "responder": short,
            **base.record,
            **facts,
            "variants": self.variants and len(self.variants.keys),
        }
        if noted:
            record["note"] = "; ".join(base.notes)
        cells = {
            **base.cells,
            "f32 floor": percent(self.float32_floor) if is_observer else "",
            "noise": percent(self.below_noise) if is_observer else "",
        }
        floor = facts["float32_floor"]
        flags = many(floor, "f")
        flags += "".join(many(facts[name], flag) for name, flag in _FACT_FLAGS.items())
        entries = {
            metric: replace(entry, flags=entry.flags + flags, float32_floor=floor)
            for metric, entry in base.entries.items()
        }
        notes = list(base.notes)
        if is_observer and self.variants is not None:
            values = self.variants.values
            notes.insert(
                0,
                f"{first}: mean over {len(values)} variants, each alone {min(values):.2f} to "
                f"{max(values):.2f}",
            )
        if facts["undefined"]:
            notes.append(
                f"{percent(self.undefined)} of the responses are undefined: features all but "
                "vanish, and rounding "
                f"alone could turn them so far; score measure={ADVISED!r}, which needs no direction"
            )
        if many(facts["turned"], "t"):
            notes.append(
                f"at {percent(self.turned)} of the responses the feature of the reference is "
                "under a tenth as long as "
                f"that of the test, so that its direction says little; compare measure={ADVISED!r}"
            )
        return replace(base, cells=cells, record=record, entries=entries, notes=notes)


def layer_facts(
    result: xr.Dataset,
    layer: str,
    measure: str,
    scored: Callable[[xr.Dataset, str], FloatArray],
    status: FloatArray,
    interval: JsonMapping,
    variants: Sample | None,
) -> JsonObject:
    """Compute the fields that all scores of features share, for one layer.

    Parameters
    ----------
    result, layer, measure
        What was scored.
    scored : callable
        From a result and a measure to the responses that are scored.
    status : array
        Of the same responses.
    interval : mapping
        "confidence", "resamples" and "seed".
    variants : Sample or None
        The first metric of each variant.
    """
    floor = float(values_of(result, "noise_floor", measure, layer))
    rounded = {"cosine", "angular_float32"} & set(measures_of(result))
    return {
        "observer": observer_of(result),
        "experiment": str(result.attrs.get("experiment", "")),
        "layer": layer,
        "measure": measure,
        "random_weights": bool(result.attrs.get("random_weights", 0)),
        "float32_floor": float(
            (scored(result, "angular_float32") <= FLOAT32_FLOOR).mean()
        )
        if rounded
        else None,
        "noise_floor": floor,
        "below_noise": float((scored(result, measure) <= floor).mean()),
        "undefined": share_of(status, UNDEFINED),
        "turned": share_of(status, TURNED),
        "seed": interval["seed"],
        "resamples": interval["resamples"],
        "variants": variants,
    }
