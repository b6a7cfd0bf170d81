"""The responses of a detection run, checked and brought to one form for scores and figures."""

from __future__ import annotations

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

_VARIABLES = {
    "response": ("layer", "measure", "x", "contrast"),
    "along": ("layer", "measure", "score_x", "multiplier"),
    "along_contrast": ("score_x", "multiplier"),
    "pixels_response": ("measure", "x", "contrast"),
    "pixels_along": ("measure", "score_x", "multiplier"),
    "human_sensitivity": ("score_x",),
    "human_curve": ("curve_x",),
    "noise_floor": ("layer", "measure"),
}

#: Absent where a run showed only what the score needs.
_OF_THE_GRID = ("response", "pixels_response")


@dataclass(frozen=True)
class Responses:
    """Responses of one layer by one measure, larger for stimuli that differ more.

    Attributes
    ----------
    grid : ndarray of float64, shape (X, C)
        Over `x` and `contrast`; empty, as they are, where the run was without a level grid.
    along : ndarray of float64, shape (K, M)
        At contrasts `along_contrast`, which are `multiplier` times the human threshold at `score_x`.
    pixels_grid, pixels_along : ndarray of float64, shapes (X, C) and (K, M)
        The same for the images themselves, without an encoder.
    noise_floor : float
        Response to identical images, run again.
    x, contrast : ndarray of float64, shapes (X,) and (C,)
        Axes of the grid; `x` in the experiment's unit.
    score_x, multiplier : ndarray of float64, shapes (K,) and (M,)
        Axes of the score points. `multiplier` multiplies the human threshold contrast, whatever it multiplied
        in the experiment.
    along_contrast : ndarray of float64, shape (K, M)
        Contrasts of the score points.
    human_x, human_sensitivity : ndarray of float64, shape (H,)
        The human curve: x, and 1 / threshold contrast.
    layer, measure : str
        What was selected.
    """

    grid: FloatArray
    along: FloatArray
    pixels_grid: FloatArray
    pixels_along: FloatArray
    noise_floor: float
    x: FloatArray
    contrast: FloatArray
    score_x: FloatArray
    multiplier: FloatArray
    along_contrast: FloatArray
    human_x: FloatArray
    human_sensitivity: FloatArray
    layer: str
    measure: str


def layers_of(result: xr.Dataset) -> list[str]:
    """Names of the layers in a detection result, in the observer's order.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.

    Returns
    -------
    list of str
        One name at least.

    Raises
    ------
    InputError
        If it is no detection result.
    """
    missing = [name for name in _VARIABLES if name not in (*_OF_THE_GRID, *getattr(result, "variables", ()))]
    if missing:
        raise InputError(
            f"this is no detection result: it lacks {', '.join(missing)}; pass what psyprobe.run() returned or a "
            f"store holds"
        )
    return [str(name) for name in result["layer"].values]


def select(result: xr.Dataset, *, measure: str = "angular", layer: str | None = None) -> Responses:
    """One layer and measure of a detection result, as plain arrays.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        "cosine" gives 1 - cosine similarity, so that all measures grow with the difference; "angular_float32"
        gives S_ac in the paper's arithmetic: as stored by the experiments that name it, else from the stored cosine,
        which lacks the rounding errors of the paper's sums.
    layer : str, optional
        Name of a layer; needed where the result holds more than one.

    Returns
    -------
    Responses
        float64 arrays without missing values.

    Raises
    ------
    InputError
        If the result is no detection result, holds several layers and none was named, or holds values that
        are not finite.
    UnknownNameError
        If the measure or the layer is not in the result.
    """
    layers = layers_of(result)
    if layer is None and len(layers) > 1:
        raise InputError(f"the result holds {len(layers)} layers ({', '.join(layers)}); name one with layer=")
    chosen = layers[0] if layer is None else layer
    if chosen not in layers:
        raise unknown_name("layer", chosen, layers)
    measures = [str(name) for name in result["measure"].values]
    stored = stored_measure(measures, measure)
    arrays: dict[str, FloatArray] = {}
    for name, dims in _VARIABLES.items():
        if name not in result:
            arrays[name] = np.empty((0, 0))
            continue
        variable = result[name]
        if "layer" in dims:
            variable = variable.isel(layer=layers.index(chosen))
        if "measure" in dims:
            variable = variable.isel(measure=measures.index(stored))
        values = variable.transpose(*[d for d in dims if d not in ("layer", "measure")]).values.astype(np.float64)
        if not np.isfinite(values).all():
            raise InputError(
                f"{int((~np.isfinite(values)).sum())} of {values.size} values of {name} are not finite; "
                f"finish the run before scoring it"
            )
        arrays[name] = as_difference(values, stored, measure) if "measure" in dims else values
    multiplier = result["multiplier"].values.astype(np.float64)
    of = result.attrs.get("multiplier_of")
    if of not in ("threshold", "sensitivity"):
        raise InputError(f"attribute multiplier_of of the result is {of!r}; it must be 'threshold' or 'sensitivity'")
    return Responses(
        grid=arrays["response"],
        along=arrays["along"],
        pixels_grid=arrays["pixels_response"],
        pixels_along=arrays["pixels_along"],
        noise_floor=float(arrays["noise_floor"]),
        x=result["x"].values.astype(np.float64) if "x" in result.coords else np.empty(0),
        contrast=result["contrast"].values.astype(np.float64) if "contrast" in result.coords else np.empty(0),
        score_x=result["score_x"].values.astype(np.float64),
        multiplier=multiplier if of == "threshold" else 1 / multiplier,
        along_contrast=arrays["along_contrast"],
        human_x=result["curve_x"].values.astype(np.float64),
        human_sensitivity=arrays["human_curve"],
        layer=chosen,
        measure=measure,
    )


def stored_measure(measures: list[str], measure: str) -> str:
    """The measure of a result from which a wanted one is computed.

    Parameters
    ----------
    measures : list of str
        Those that the result holds.
    measure : str
        The one that is wanted.

    Returns
    -------
    str
        The same, or "cosine" for a float32 angle that was not stored.

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
    """Stored values of a measure, turned so that they grow with the difference.

    Parameters
    ----------
    values : ndarray of float64, any shape
        As stored.
    stored : str
        What `stored_measure` named.
    measure : str
        What is wanted.

    Returns
    -------
    ndarray of float64, same shape
        0 for no difference.

    Examples
    --------
    >>> as_difference(np.array([1.0, 0.25]), "cosine", "cosine")
    array([0.  , 0.75])
    """
    if stored != "cosine":
        return values
    return angular_of_rounded_cosine(values) if measure == "angular_float32" else 1 - values
