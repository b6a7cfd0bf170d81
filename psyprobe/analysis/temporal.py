"""Compute ratios of responses over temporal frequency, which need no criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import (
    layers_of,
    observer_of,
    resolve_measure_and_layer,
)
from psyprobe.errors import InputError
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

_LEVEL = "temporal_frequency"


@dataclass(frozen=True)
class ResponseRatio:
    """How many times as large one response is as another to the same contrast."""

    #: Ratio of the observer: median over contrasts.
    observer: float
    #: Smallest and largest over contrasts.
    interval: tuple[float, float]
    #: Ratio of the images themselves, without an encoder: median over contrasts.
    pixels: float
    #: Sensitivity of people over sensitivity; None where the experiment compares with nobody, or
    #: not there.
    human: float | None


def band_pass(
    result: xr.Dataset,
    high: float = 8.0,
    low: float = 1.0,
    *,
    layer: str | None = None,
    measure: str | None = None,
) -> ResponseRatio:
    """Divide the response at a high temporal frequency by that at a low one, at equal contrast.

    People are band-pass for coarse patterns (more than 1) and low-pass for fine ones (less than 1).
    An observer that is blind to time, such as pixels, has 1.

    People are band-pass for coarse patterns (more than 1) and low-pass for fine ones (less than 1).
    Who cannot tell time, such as pixels, has 1.

    Parameters
    ----------
    result : xarray.Dataset
        Of `psyprobe.run`, with a level "temporal_frequency" and a grid of contrasts.
    high, low : float
        Hz; both are levels of the grid.
    layer, measure : str, optional
        As for `psyprobe.score`.

    Raises
    ------
    InputError
        The result has no such levels.
    """
    ratios = [
        _responses_at(result, frequency, layer, measure) for frequency in (high, low)
    ]
    human = [_human_sensitivity_at(result, frequency) for frequency in (high, low)]
    human_ratio = None if human[0] is None or human[1] is None else human[0] / human[1]
    return _ratio(ratios[0], ratios[1], human_ratio)


def motion_ratio(
    drift: xr.Dataset,
    counterphase: xr.Dataset,
    at: float,
    *,
    layer: str | None = None,
    measure: str | None = None,
) -> ResponseRatio:
    """Divide the response to a drifting wave by that to a reversing one, at equal contrast.

    A counterphase grating is the sum of two that drift at half the contrast. An observer that adds
    up energy over a clip, such as pixels, has the square root of 2.

    A counterphase grating is the sum of two that drift at half the contrast. Who adds up energy
    over a clip, such as pixels, has the square root of 2.

    Parameters
    ----------
    drift, counterphase : xarray.Dataset
        Of the same observer, with the same contrasts.
    at : float
        Temporal frequency, Hz; a level of both.
    layer, measure : str, optional
        As for `psyprobe.score`.

    Raises
    ------
    InputError
        The results are not of the same observer and contrasts.
    """
    names = [stimulus_axis_of(result).name for result in (drift, counterphase)]
    comparable = (
        observer_of(drift) == observer_of(counterphase) and names[0] == names[1]
    )
    if not comparable or not np.array_equal(
        drift[names[0]].values, counterphase[names[1]].values
    ):
        raise InputError(
            "drift and counterphase are compared of one observer, at the same contrasts; run "
            "both alike"
        )
    responses = [
        _responses_at(result, at, layer, measure) for result in (drift, counterphase)
    ]
    return _ratio(responses[0], responses[1], None)


def _ratio(
    numerator: Mapping[str, FloatArray],
    denominator: Mapping[str, FloatArray],
    human: float | None,
) -> ResponseRatio:
    with np.errstate(divide="ignore", invalid="ignore"):
        observer, pixels = (
            numerator[name] / denominator[name]
            for name in ("response", "pixels_response")
        )
    low, middle, high = np.quantile(observer, [0.0, 0.5, 1.0])
    return ResponseRatio(
        float(middle), (float(low), float(high)), float(np.median(pixels)), human
    )


def _responses_at(
    result: xr.Dataset, frequency: float, layer: str | None, measure: str | None
) -> dict[str, FloatArray]:
    """Select responses of observer and pixels over contrast at one temporal frequency."""
    result = join_measures(result)
    layers = layers_of(result)
    if _LEVEL not in result.dims or "response" not in result:
        raise InputError(
            "the result has no grid over temporal_frequency; run an experiment with it as its "
            "one level"
        )
    if not np.isclose(result[_LEVEL].values, frequency, rtol=1e-9).any():
        frequencies = ", ".join(f"{value:.4g}" for value in result[_LEVEL].values)
        raise InputError(
            f"temporal_frequency {frequency:g} Hz is no level of the result; it has "
            f"{frequencies} Hz"
        )
    measure, layer = resolve_measure_and_layer(result, layers, measure, layer)
    at_frequency = result.sel({_LEVEL: frequency}, method="nearest")
    pixels_measure = (
        measure
        if measure in result["pixels_response"]["measure"].values
        else result["measure"].values[0]
    )
    return {
        "response": at_frequency["response"].sel(layer=layer, measure=measure).values,
        "pixels_response": at_frequency["pixels_response"]
        .sel(measure=pixels_measure)
        .values,
    }


def _human_sensitivity_at(result: xr.Dataset, frequency: float) -> float | None:
    name = f"scored_{_LEVEL}"
    if (
        "human_sensitivity" not in result
        or not np.isclose(result[name].values, frequency, rtol=1e-9).any()
    ):
        return None
    return float(result["human_sensitivity"].sel({name: frequency}, method="nearest"))
