"""Average variants of one experiment (phases, orientations, seeds), and measure their spread."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import draw_counts, student_reach
from psyprobe.analysis.measures import join_measures, split_measures
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

#: Responses of the observer; all else is alike in every variant, or is taken from the
#: baselines.
_RESPONSES = (
    "response",
    "scored_response",
    "reference_response",
    "anchor_response",
    "against_response",
)


@dataclass(frozen=True)
class Spread(Recorded):
    """How far a score depends on which variants were shown."""

    #: The score of each variant alone.
    values: tuple[float | None, ...]
    #: Ends of the interval of the score of the mean, over variants; None where it does not exist.
    low: float | None
    high: float | None
    #: Confidence of the interval, in (0, 1).
    confidence: float

    @property
    def count(self) -> int:
        """Number of variants."""
        return len(self.values)

    def __str__(self) -> str:
        scores = [value for value in self.values if value is not None]
        singles = (
            f"; each alone {min(scores):.2f} to {max(scores):.2f}" if scores else ""
        )
        interval = (
            "no interval" if self.low is None else f"[{self.low:.2f}, {self.high:.2f}]"
        )
        return f"mean of {self.count} variants, {interval} over variants{singles}"


def average_variants(
    results: Sequence[xr.Dataset],
    variants: Mapping[str, Sequence[float]],
    labels: Sequence[str],
) -> xr.Dataset:
    """Average the results of an experiment's variants, keeping those of each variant.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of the same experiment and observer, one a variant.
    variants : mapping of str to sequence of float
        What was varied, and its values.
    labels : sequence of str
        Of each result: "phase 90, orientation 0".

    Returns
    -------
    xarray.Dataset
        As one of `results`, with mean responses, the largest noise floor, and
        ``response_by_variant`` and the like along the dimension "variant".

    Raises
    ------
    InputError
        If they are not of one experiment and observer.
    """
    results = [join_measures(result) for result in results]
    first = results[0]
    for name in ("experiment", "observer", "observer_card", "display"):
        different = {str(result.attrs.get(name)) for result in results}
        if len(different) > 1:
            raise InputError(
                f"variants of one experiment share their {name}; these have {len(different)} of "
                "them"
            )
    averaged = first.copy()

    def stacked(name: str) -> FloatArray:
        dims = first[name].dims
        return np.stack([result[name].transpose(*dims).values for result in results])

    for name in map(str, first.data_vars):
        variable = first[name]
        if name.removeprefix("pixels_") in _RESPONSES:
            values = stacked(name)
            averaged[name] = variable.copy(data=values.mean(axis=0))
            if name in _RESPONSES:
                label = f"{variable.attrs['long_name']}, by variant"
                averaged[f"{name}_by_variant"] = (
                    ("variant", *variable.dims),
                    values,
                    {**variable.attrs, "long_name": label},
                )
        elif name.endswith("_status"):
            # What is undefined in one variant is undefined in the mean.
            averaged[name] = variable.copy(data=stacked(name).max(axis=0))
    floors = stacked("noise_floor")
    # A cosine similarity of identical images is worst where it is smallest.
    cosine = first["measure"].values == "cosine"
    worst = np.where(cosine, floors.min(axis=0), floors.max(axis=0))
    averaged["noise_floor"] = first["noise_floor"].copy(data=worst)
    attributes = {"units": "1", "long_name": "Variant of the stimulus"}
    averaged = averaged.assign_coords(variant=("variant", list(labels), attributes))
    averaged.attrs["variants"] = json.dumps(
        {name: list(values) for name, values in variants.items()}
    )
    averaged.attrs.pop("variant", None)
    return split_measures(averaged)


def variant_spread(
    result: xr.Dataset,
    statistic: Callable[[xr.Dataset], float | None],
    transform: Callable[[Any], Any] = np.asarray,
    inverse: Callable[[Any], Any] = np.asarray,
    *,
    confidence: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> Spread:
    """Estimate how much a statistic of mean responses depends on the variants shown.

    Parameters
    ----------
    result : xarray.Dataset
        As `average_variants` gives it.
    statistic : callable
        From a result to its score, or None where there is none.
    transform, inverse : callable, optional
        To and from the scale on which the interval is symmetric, such as arctanh and tanh for a
        correlation.
    confidence, resamples, seed
        As for `psyprobe.analysis.align`.

    Notes
    -----
    Variants are drawn with replacement, their responses averaged, and the statistic taken anew. The
    interval is z ± t s with s the standard deviation of the transformed samples times sqrt(V / (V -
    1)) and t the quantile of Student's t with V - 1 degrees of freedom, since V is small.
    """
    result = join_measures(result)
    by_variant = {
        name: result[f"{name}_by_variant"]
        for name in _RESPONSES
        if f"{name}_by_variant" in result
    }
    count = result.sizes["variant"]

    def of(weights: FloatArray) -> float | None:
        mean = {
            name: result[name].copy(data=np.tensordot(weights, responses.values, 1))
            for name, responses in by_variant.items()
        }
        return statistic(result.assign(mean))

    spread = Spread(tuple(map(of, np.eye(count))), None, None, confidence)
    value = of(np.full(count, 1 / count))
    if value is None or count < 2:
        return spread
    draws = draw_counts(count, resamples, seed) / count
    samples = np.array([value for value in map(of, draws) if value is not None])
    if len(samples) < 2:
        return spread
    middle = float(transform(value))
    reach = student_reach(transform(samples), count, confidence)
    low, high = (float(inverse(middle + side * reach)) for side in (-1, 1))
    # Variants that score alike tell no interval, and none of zero width is one.
    return replace(spread, low=low, high=high) if high - low > 1e-9 else spread
