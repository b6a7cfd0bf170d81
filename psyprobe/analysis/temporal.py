"""Ratios over temporal frequency that need no criterion: band-pass or low-pass, and moving against
reversing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import chosen, layers_of, observer_of
from psyprobe.errors import InputError
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

_LEVEL = "temporal_frequency"


@dataclass(frozen=True)
class ResponseRatio:
    """How many times as large one response is as another to the same contrast."""

    #: Of the observer: median over contrasts.
    observer: float
    #: Smallest and largest over contrasts.
    interval: tuple[float, float]
    #: Of the images themselves, without an encoder: median over contrasts.
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
    """Response at a high temporal frequency over that at a low one, at equal contrast.

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
    both = [_at(result, each, layer, measure) for each in (high, low)]
    human = [_of_people(result, each) for each in (high, low)]
    told = None if human[0] is None or human[1] is None else human[0] / human[1]
    return _ratio(both[0], both[1], told)


def motion_ratio(
    drift: xr.Dataset,
    counterphase: xr.Dataset,
    at: float,
    *,
    layer: str | None = None,
    measure: str | None = None,
) -> ResponseRatio:
    """Response to a wave that drifts over that to one that reverses in place, at equal contrast.

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
    names = [stimulus_axis_of(each).name for each in (drift, counterphase)]
    same = observer_of(drift) == observer_of(counterphase) and names[0] == names[1]
    if not same or not np.array_equal(drift[names[0]].values, counterphase[names[1]].values):
        raise InputError(
            "drift and counterphase are compared of one observer, at the same contrasts; run "
            "both alike"
        )
    both = [_at(each, at, layer, measure) for each in (drift, counterphase)]
    return _ratio(both[0], both[1], None)


def _ratio(
    one: Mapping[str, FloatArray], other: Mapping[str, FloatArray], human: float | None
) -> ResponseRatio:
    with np.errstate(divide="ignore", invalid="ignore"):
        observer, pixels = (one[name] / other[name] for name in ("response", "pixels_response"))
    low, middle, high = np.quantile(observer, [0.0, 0.5, 1.0])
    return ResponseRatio(float(middle), (float(low), float(high)), float(np.median(pixels)), human)


def _at(
    result: xr.Dataset, frequency: float, layer: str | None, measure: str | None
) -> dict[str, FloatArray]:
    """Responses of the observer and of the pixels over contrast at one temporal frequency."""
    result = join_measures(result)
    layers = layers_of(result)
    if _LEVEL not in result.dims or "response" not in result:
        raise InputError(
            "the result has no grid over temporal_frequency; run an experiment with it as its "
            "one level"
        )
    if not np.isclose(result[_LEVEL].values, frequency, rtol=1e-9).any():
        known = ", ".join(f"{value:.4g}" for value in result[_LEVEL].values)
        raise InputError(
            f"temporal_frequency {frequency:g} Hz is no level of the result; it has {known} Hz"
        )
    measure, layer = chosen(result, layers, measure, layer)
    here = result.sel({_LEVEL: frequency}, method="nearest")
    of_pixels = (
        measure
        if measure in result["pixels_response"]["measure"].values
        else result["measure"].values[0]
    )
    return {
        "response": here["response"].sel(layer=layer, measure=measure).values,
        "pixels_response": here["pixels_response"].sel(measure=of_pixels).values,
    }


def _of_people(result: xr.Dataset, frequency: float) -> float | None:
    name = f"scored_{_LEVEL}"
    if (
        "human_sensitivity" not in result
        or not np.isclose(result[name].values, frequency, rtol=1e-9).any()
    ):
        return None
    return float(result["human_sensitivity"].sel({name: frequency}, method="nearest"))
