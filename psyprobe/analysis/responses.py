"""The responses of a detection run, checked and brought to one form for scores and figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import angular_of_rounded_cosine
from psyprobe.errors import InputError, unknown_name

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

#: What every detection result holds, and what those with a human reference hold besides.
_NEEDED = ("noise_floor",)
_OF_PEOPLE = ("scored_response", "pixels_scored_response", "human_sensitivity")


@dataclass(frozen=True)
class Scored:
    """Responses at multiples of human thresholds, all levels together."""

    #: Level to its value in each slice, shape (K,).
    at: dict[str, FloatArray]
    #: Of the human threshold, whatever the experiment multiplied, shape (M,).
    multiplier: FloatArray
    #: In what test and reference differ, shape (K, M).
    difference: FloatArray
    #: Of the observer, shape (K, M).
    response: FloatArray
    #: Of the images themselves, without an encoder, shape (K, M).
    pixels: FloatArray
    #: Of people, 1 / threshold, shape (K,).
    sensitivity: FloatArray


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
    #: Over `levels` and `difference`, shape (levels ..., D); empty where the run was without a level grid.
    grid: FloatArray
    #: The same for the images themselves, without an encoder.
    pixels: FloatArray
    #: None without a human reference.
    scored: Scored | None
    #: The human curve: its level, the values of that, and 1 / threshold; None where people are known point by point.
    curve: tuple[str, FloatArray, FloatArray] | None

    def rows(self, grid: FloatArray) -> tuple[dict[str, FloatArray], FloatArray]:
        """Level to its value in each row of a grid of this shape, and the grid with one row a condition, (X, D)."""
        values = np.meshgrid(*self.levels.values(), indexing="ij")
        at = {name: each.ravel() for name, each in zip(self.levels, values, strict=True)}
        return at, grid.reshape(-1, len(self.difference))


def levels_of(result: xr.Dataset) -> tuple[str, ...]:
    """Names of the levels of a result, in their order."""
    return tuple(json.loads(str(result.attrs.get("levels", "[]"))))


def observer_of(result: xr.Dataset) -> str:
    """Name of the one observer of a result.

    Raises
    ------
    InputError
        If several were concatenated, or one was taken out of them: only the first one's card is still there.
    """
    named = str(result.attrs.get("observer", ""))
    held = result.coords.get("observer")
    if held is None:
        return named
    if held.ndim:
        raise InputError(
            f"the result holds {held.size} observers; score and draw each result before they are concatenated"
        )
    if str(held.values) != named:
        raise InputError(
            f"the responses are those of {held.values!s} and the attributes those of {named}; score and draw the "
            f"results before they are concatenated"
        )
    return named


def layers_of(result: xr.Dataset) -> list[str]:
    """Names of the layers in a detection result, in the observer's order; `InputError` if it is none."""
    held = getattr(result, "variables", ())
    missing = [name for name in _NEEDED if name not in held]
    if not {"response", "scored_response"} & set(held):
        missing = ["scored_response", *missing]
    if "scored_response" in held:
        missing += [name for name in (*_OF_PEOPLE, f"scored_{result.attrs.get('difference')}") if name not in held]
    if missing:
        raise InputError(
            f"this is no detection result: it lacks {', '.join(missing)}; pass what psyprobe.run() returned or a "
            f"store holds"
        )
    return [str(name) for name in result["layer"].values]


def chosen_layer(layers: Sequence[str], layer: str | None) -> str:
    """The layer that was named, or the only one."""
    if layer is None and len(layers) > 1:
        raise InputError(f"the result holds {len(layers)} layers ({', '.join(layers)}); name one with layer=")
    if layer is not None and layer not in layers:
        raise unknown_name("layer", layer, layers)
    return layers[0] if layer is None else layer


def measure_of(result: xr.Dataset, measure: str | None) -> str:
    """The measure that was named, or that of the experiment, or "angular"."""
    return measure or str(result.attrs.get("score_measure", "angular"))


def values_of(
    result: xr.Dataset, name: str, measure: str, layer: str | None = None, order: Sequence[str] = ()
) -> FloatArray:
    """Finite float64 values of a variable for one measure and layer, turned so that they grow with the difference.

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
        If a value is not finite.
    UnknownNameError
        If the measure is not in the result.
    """
    variable = result[name]
    stored = ""
    if "measure" in variable.dims:
        measures = [str(one) for one in result["measure"].values]
        stored = stored_measure(measures, measure)
        variable = variable.isel(measure=measures.index(stored))
    if "layer" in variable.dims:
        variable = variable.isel(layer=[str(one) for one in result["layer"].values].index(str(layer)))
    values: FloatArray = variable.transpose(*[one for one in order if one in variable.dims]).values.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(
            f"{int((~np.isfinite(values)).sum())} of {values.size} values of {name} are not finite; finish the run "
            f"before scoring it"
        )
    return as_difference(values, stored, measure)


def select(result: xr.Dataset, *, measure: str | None = None, layer: str | None = None) -> Responses:
    """One layer and measure of a detection result, as plain arrays.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run. Levels that were taken by ``result.sel`` are taken of what is scored, too.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        Distance between features; without it the measure that the experiment names, else "angular". "cosine" gives
        1 - cosine similarity, so that all measures grow with the difference; "angular_float32" gives S_ac in the
        paper's arithmetic: as stored by the experiments that name it, else from the stored cosine, which lacks the
        rounding errors of the paper's sums.
    layer : str, optional
        Name of a layer; needed where the result holds more than one.

    Raises
    ------
    InputError
        If the result is no detection result, holds several layers and none was named, or holds values that
        are not finite.
    UnknownNameError
        If the measure or the layer is not in the result.
    """
    chosen, wanted = chosen_layer(layers_of(result), layer), measure_of(result, measure)
    observer_of(result)
    stored_measure([str(name) for name in result["measure"].values], wanted)
    names, difference = levels_of(result), str(result.attrs["difference"])
    gridded = "response" in result
    free = [name for name in names if gridded and name in result["response"].dims]
    grid, pixels = (
        values_of(result, name, wanted, chosen, [*free, difference]) if gridded else np.empty((0, 0))
        for name in ("response", "pixels_response")
    )
    curve = next((name for name in names if f"curve_{name}" in result.dims), None)
    return Responses(
        layer=chosen,
        measure=wanted,
        noise_floor=float(values_of(result, "noise_floor", wanted, chosen)),
        levels={name: result[name].values.astype(np.float64) for name in free},
        difference=result[difference].values.astype(np.float64) if gridded else np.empty(0),
        grid=grid,
        pixels=pixels,
        scored=_scored(result, names, difference, wanted, chosen) if "scored_response" in result else None,
        curve=None
        if curve is None
        else (
            curve,
            result[f"curve_{curve}"].values.astype(np.float64),
            values_of(result, "human_curve", wanted, order=[f"curve_{curve}"]),
        ),
    )


def _scored(result: xr.Dataset, names: Sequence[str], difference: str, measure: str, layer: str) -> Scored:
    for name in names:
        place = f"scored_{name}"
        if name in result.coords and not result[name].ndim and place in result.dims:
            same = np.isclose(result[place].values, float(result[name]), rtol=1e-9, atol=0)
            if not same.any():
                raise InputError(f"{name} {float(result[name]):g} is not scored; take one of {result[place].values}")
            result = result.isel({place: int(same.argmax())})
    places = [f"scored_{name}" for name in names if f"scored_{name}" in result.dims]
    order = [*places, "multiplier"]
    of = result.attrs.get("multiplier_of")
    if of not in ("threshold", "sensitivity"):
        raise InputError(f"attribute multiplier_of of the result is {of!r}; it must be 'threshold' or 'sensitivity'")
    multiplier = result["multiplier"].values.astype(np.float64)
    at = np.meshgrid(*[result[place].values.astype(np.float64) for place in places], indexing="ij")

    def flat(name: str) -> FloatArray:
        return values_of(result, name, measure, layer, order).reshape(-1, len(multiplier))

    return Scored(
        at={place.removeprefix("scored_"): values.ravel() for place, values in zip(places, at, strict=True)},
        multiplier=multiplier if of == "threshold" else 1 / multiplier,
        difference=flat(f"scored_{difference}"),
        response=flat("scored_response"),
        pixels=flat("pixels_scored_response"),
        sensitivity=values_of(result, "human_sensitivity", measure, order=places).ravel(),
    )


def stored_measure(measures: Sequence[str], measure: str) -> str:
    """The measure of a result from which a wanted one is computed: itself, or "cosine" for a float32 angle.

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
    stored = "cosine" if measure == "angular_float32" and measure not in measures else measure
    if stored not in measures:
        raise unknown_name("measure", stored, measures)
    return stored


def as_difference(values: FloatArray, stored: str, measure: str) -> FloatArray:
    """Stored values of a measure, turned so that they grow with the difference and are 0 without one.

    Examples
    --------
    >>> as_difference(np.array([1.0, 0.25]), "cosine", "cosine")
    array([0.  , 0.75])
    """
    if stored != "cosine":
        return values
    return angular_of_rounded_cosine(values) if measure == "angular_float32" else 1 - values
