"""Average variants of one experiment (phases, orientations, seeds), and score each of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.sample import TRANSFORMS, Sample, Scale
from psyprobe.analysis.measures import BY_VARIANT, join_measures, split_measures
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

#: Responses, those of the pixels under names that begin with "pixels_"; all else is alike in every
#: variant.
_RESPONSES = (
    "response",
    "scored_response",
    "reference_response",
    "anchor_response",
    "against_response",
)


def average_variants(
    results: Sequence[xr.Dataset],
    variants: Mapping[str, Sequence[float]],
    labels: Sequence[str],
) -> xr.Dataset:
    """Average the results of many variants of an experiment, and keep those of each variant.

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
    # Of joint draws one alone may hold what the score does not need.
    first = max(results, key=lambda result: len(result.variables))
    for name in ("experiment", "observer", "observer_card", "display"):
        different = {str(result.attrs.get(name)) for result in results}
        if len(different) > 1:
            raise InputError(
                f"variants of one experiment share their {name}; these have {len(different)} of "
                "them"
            )

    def stacked(name: str) -> FloatArray:
        dims = first.variables[name].dims
        variables = [result.variables[name] for result in results]
        return np.stack([variable.transpose(*dims).values for variable in variables])

    shared = set.intersection(*(set(map(str, result.data_vars)) for result in results))
    changed: dict[str, Any] = {}
    for name in map(str, first.data_vars):
        variable = first.variables[name]
        if name not in shared:
            continue
        if name.removeprefix("pixels_") in _RESPONSES:
            values = stacked(name)
            changed[name] = variable.copy(data=values.mean(axis=0))
            label = f"{variable.attrs['long_name']}, by variant"
            changed[f"{name}{BY_VARIANT}"] = (
                ("variant", *variable.dims),
                values,
                {**variable.attrs, "long_name": label},
            )
        elif name.endswith("_status"):
            # What is undefined in one variant is undefined in the mean.
            changed[name] = variable.copy(data=stacked(name).max(axis=0))
    floors = stacked("noise_floor")
    # A cosine similarity of identical images is worst where it is smallest.
    cosine = first["measure"].values == "cosine"
    worst = np.where(cosine, floors.min(axis=0), floors.max(axis=0))
    changed["noise_floor"] = first.variables["noise_floor"].copy(data=worst)
    attributes = {"units": "1", "long_name": "Variant of the stimulus"}
    changed["variant"] = ("variant", list(labels), attributes)
    averaged = first.assign(changed)
    averaged.attrs["variants"] = json.dumps(
        {name: list(values) for name, values in variants.items()}
    )
    for name in ("variant", "measures"):
        averaged.attrs.pop(name, None)
    return split_measures(averaged)


def variant_sample(
    result: xr.Dataset,
    statistic: Callable[[xr.Dataset], float | None],
    scale: Scale,
) -> Sample | None:
    """Compute a statistic of each variant alone, as a sample of what could be shown.

    None for a result without variants, and where a variant has no such statistic.

    Parameters
    ----------
    result : xarray.Dataset
        As `average_variants` gives it.
    statistic : callable
        From a result to its score, or None where there is none.
    scale : {"z", "log10", "linear"}
        On which variants are averaged.

    Notes
    -----
    The mean response of many variants is no response to any of them, and more even than each: its
    score rises with their number. So each variant is scored, and scores are averaged.

    Combinations of several parameters are no independent draws: what shares a phase is alike. Their
    scores are averaged over each value of the parameter with the fewest, which are the units then.
    """
    return sample_of(result, map(statistic, iterate_variants(result)), scale)


def sample_of(
    result: xr.Dataset, statistics: Iterable[float | None], scale: Scale
) -> Sample | None:
    """Collect a statistic of each variant, in their order, as `variant_sample` does."""
    values = []
    for value in statistics:
        if value is None:
            return None
        values.append(value)
    if not values:
        return None
    labels = [str(label) for label in result["variant"].values]
    transform, inverse = TRANSFORMS[scale]
    groups = _independent_groups(result, labels)
    means = {
        key: float(inverse(np.mean([transform(values[place]) for place in places])))
        for key, places in groups.items()
    }
    return Sample("variants", tuple(means), tuple(means.values()), scale)


def iterate_variants(result: xr.Dataset) -> Iterator[xr.Dataset]:
    """Iterate over the variants of a result, the responses to each in place of the mean ones.

    A result without variants has none.
    """
    result = join_measures(result)
    names = [str(name) for name in result.data_vars if str(name).endswith(BY_VARIANT)]
    for place in range(result.sizes.get("variant", 0)):
        yield result.assign(
            {
                name.removesuffix(BY_VARIANT): result[name].isel(
                    variant=place, drop=True
                )
                for name in names
            }
        )


def _independent_groups(
    result: xr.Dataset, labels: Sequence[str]
) -> dict[str, list[int]]:
    """Group the places of variants into independent draws, each by its label."""
    varied: dict[str, list[float]] = json.loads(str(result.attrs["variants"]))
    several = {name: values for name, values in varied.items() if len(values) > 1}
    if len(several) < 2 or len(labels) != math.prod(map(len, varied.values())):
        return {label: [place] for place, label in enumerate(labels)}
    name = min(several, key=lambda parameter: len(several[parameter]))
    places = np.arange(len(labels)).reshape([len(values) for values in varied.values()])
    rows = np.moveaxis(places, list(varied).index(name), 0).reshape(
        len(varied[name]), -1
    )
    return {
        f"{name} {value:g}": row.tolist()
        for value, row in zip(varied[name], rows, strict=True)
    }
