"""Ranks of observers whose scores are uncertain: those that cannot be told apart share them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.family import holm, rank_ranges
from psyprobe.analysis.comparison.paired import t_probability
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.intervals import mean_and_error
from psyprobe.files.json_types import JsonMapping

#: Differences within which two scores are one.
_ALIKE = 1e-9
_ALPHA = 0.05


def rank(
    entries: Sequence[JsonMapping], *, lower_is_better: bool
) -> list[tuple[int, int]]:
    """Compute the range of ranks of each entry of a board, all pairs with Holm's correction.

    Entries with samples of the same units are compared unit by unit, others by their intervals; a
    pair without either is not told apart.

    Parameters
    ----------
    entries : sequence of mapping
        Entries with a value, as `board_entries` builds them.
    lower_is_better : bool
        Whether a smaller value has a better rank.

    Examples
    --------
    >>> rows = [{"value": v, "low": v - 0.1, "high": v + 0.1} for v in (0.9, 0.85, 0.2)]
    >>> rank([{**row, "confidence": 0.95, "sample": None} for row in rows], lower_is_better=False)
    [(1, 2), (1, 2), (3, 3)]
    """
    values = np.array([entry["value"] for entry in entries], float)
    differences = values[:, None] - values
    p = interval_probabilities(entries, differences)
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    samples: dict[int, Sample] = {}
    for place, entry in enumerate(entries):
        if entry["sample"]:
            sample = read_sample(entry["sample"])
            samples[place] = sample
            groups[sample.population, sample.keys, sample.scale].append(place)
    for places in groups.values():
        if not samples[places[0]].clusters:
            _compare_group(places, samples, differences, p)
    first, second = np.triu_indices(len(values), 1)
    corrected = holm(p[first, second].tolist())
    better = np.zeros(p.shape)
    for one, other, chance in zip(first, second, corrected, strict=True):
        if chance is not None and chance < _ALPHA:
            wins = (differences[one, other] > 0) != lower_is_better
            better[(one, other) if wins else (other, one)] = 1
    return rank_ranges(better)


def interval_probabilities(
    entries: Sequence[JsonMapping], differences: FloatArray
) -> FloatArray:
    """Compute the p-value of each pair from the ends of intervals that face each other.

    References
    ----------
    Zou & Donner (2008). Construction of confidence limits about effect measures. Stat. Med. 27:
    1693-1702.
    """
    down, up = (
        np.array([reach(entry, end) for entry in entries]) for end in ("low", "high")
    )
    is_above = differences > 0
    errors = np.where(
        is_above,
        np.hypot(down[:, None], up[None, :]),
        np.hypot(up[:, None], down[None, :]),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.abs(differences) / errors
    p: FloatArray = 2 * ndtr(-np.where(np.isnan(z), 0.0, z))
    return p


def reach(entry: JsonMapping, end: str) -> float:
    """Compute one side of an interval as a standard error; infinite where there is none."""
    if entry[end] is None:
        return float("inf")
    deviate = ndtri(0.5 + entry["confidence"] / 2)
    return float(abs(entry["value"] - entry[end]) / deviate)


def read_sample(values: Mapping[str, Any]) -> Sample:
    """Read a sample from the JSON of a board."""
    return Sample(
        values["population"],
        tuple(values["keys"]),
        tuple(values["values"]),
        values["scale"],
        tuple(values["clusters"]),
    )


def _compare_group(
    places: Sequence[int],
    samples: Mapping[int, Sample],
    differences: FloatArray,
    p: FloatArray,
) -> None:
    """Write the differences and p-values of entries with samples of the same units."""
    units = np.array([samples[place].transformed() for place in places])
    for index, place in enumerate(places):
        for other, values in zip(places[index + 1 :], units[index + 1 :], strict=True):
            mean, error = mean_and_error(units[index] - values)
            certain = 0.0 if abs(mean) > _ALIKE else 1.0
            chance = (
                certain if error is None else t_probability(mean / error, len(values))
            )
            differences[place, other] = mean
            differences[other, place] = -mean
            p[place, other] = p[other, place] = chance
