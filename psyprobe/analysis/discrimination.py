"""Score just noticeable differences of runs with an anchor beside those of people.

The response at which a difference is just noticeable is that of the same observer to another pair,
the anchor. Where people's curve is flat, alignment says nothing: a responder that is the difference
itself would have 1. Everything here works from stored responses; no observer is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import BoolArray, FloatArray, StrArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.detection import DetectionScore, score_detection
from psyprobe.analysis.direction import UNDEFINED
from psyprobe.analysis.intervals import student_quantile
from psyprobe.analysis.jnd import HANDLE, anisotropy, dip, jnd, slope
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import (
    LayerScore,
    layer_facts,
    layers_of,
    levels_of,
    mesh,
    resolve_measure_and_layer,
    status_of,
    values_of,
)
from psyprobe.analysis.score import (
    CONTRAST,
    OBSERVER,
    PIXELS,
    Entry,
    Metric,
    Recorded,
    Row,
    number,
)
from psyprobe.analysis.variants import variant_sample
from psyprobe.files.json_types import JsonObject
from psyprobe.files.units import unit_symbol
from psyprobe.human.models import human_label
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

RMSE = Metric(
    "jnd_rmse",
    "Thresholds beside people, RMSE ($log_{10}$)",
    more_is_better=False,
    digits=2,
    suffix="jnd",
)

#: Contrast of a target that is plainly seen.
_SEEN = 0.1
#: Standard deviation of log10 thresholds under which a curve is flat: no two observers' curves
#: differ by so little.
_FLAT = 0.01

_KEY = (
    "thresholds: differences at which the response is as large as that to the anchor.",
    "shift, shape, RMSE: mean (with its {confidence} % interval over levels), standard "
    "deviation and root mean "
    "square of log10(threshold / threshold of people). 0.3 is a factor of two.",
    "reached: levels with a threshold, of all.",
    "dip: the smallest threshold on a pedestal, over that on none.",
    "handle, slope: of log threshold over log level.",
    "elevation: threshold at the strongest mask over that without a mask, at the first "
    "orientation.",
    "tuning: threshold at the strongest mask, parallel over orthogonal.",
    "response ratio: response to a target of contrast 0.1 with that mask, over that without.",
    "anisotropy: just noticeable change of frequency, as a fraction, over the just noticeable turn "
    "in radians; geometric mean over levels, and its range. Pixels have 1 at any criterion, people "
    "3.4 to 13 (Burbeck & Regan 1983).",
)

#: Differences of which anisotropy is the ratio.
_ORIENTATION_AND_FREQUENCY = ("orientation_difference", "frequency_difference")

_KEY_OF_LIMITS = (
    "limit: 1 / threshold, the highest frequency at which the response is as large as that to the "
    "anchor, at each level. never falls: it is larger still at the finest stripes shown.",
    "Degrees mean nothing to an encoder: read its limit in cycles per pixel.",
)
#: Words for a status, of a limit.
_OF_LIMITS = {"above": "never falls", "never reached": "none"}


@dataclass(frozen=True)
class Thresholds(Recorded):
    """Just noticeable differences of one responder, and their statistics."""

    #: Thresholds, one a level, in the order of `DiscriminationScore.at`; None where there is none.
    values: tuple[float | None, ...]
    #: Status of each, in the words of `psyprobe.analysis.jnd.jnd`.
    status: tuple[str, ...]
    #: Statistics of log10 of these over those of people: mean, with its interval over levels,
    #: standard deviation, root mean square; None without people or with fewer than two levels.
    shift: float | None
    shift_low: float | None
    shift_high: float | None
    shape: float | None
    rmse: float | None
    #: Ratios that need no criterion, by name: "dip", "handle", "slope", "anisotropy"; None where
    #: they do not exist.
    ratios: Mapping[str, float | None]
    #: Ends of the range of the anisotropy over levels.
    anisotropy_range: tuple[float, float] | None = None

    def cells(self) -> dict[str, str]:
        """Format the statistics as table cells, by heading."""
        interval = ""
        if self.shift_low is not None and self.shift_high is not None:
            interval = (
                f" [{number(self.shift_low, sign=True)}, "
                f"{number(self.shift_high, sign=True)}]"
            )
        reached = sum(value is not None for value in self.values)
        cells = {
            "shift": number(_unsigned_zero(self.shift), sign=True) + interval,
            "shape": number(self.shape),
            "RMSE": number(self.rmse),
            "reached": f"{reached}/{len(self.values)}",
        }
        for name, value in self.ratios.items():
            cells[name] = number(_unsigned_zero(value))
        if self.anisotropy_range is not None:
            low, high = self.anisotropy_range
            cells["anisotropy"] += f" ({number(low)} to {number(high)})"
        return cells

    def record(self) -> JsonObject:
        """Collect all single-valued statistics as a flat record."""
        names = ("shift", "shift_low", "shift_high", "shape", "rmse")
        record = {f"{name}_log10": getattr(self, name) for name in names} | dict(
            self.ratios
        )
        if "anisotropy" in self.ratios:
            low, high = self.anisotropy_range or (None, None)
            record |= {"anisotropy_low": low, "anisotropy_high": high}
        return record


@dataclass(frozen=True)
class DiscriminationScore(LayerScore):
    """Just noticeable differences of an observer, of trivial responders and of people."""

    #: Confidence of the interval of the shift, in (0, 1).
    confidence: float
    #: "detection", "contrast", or the contrast that is told from none.
    anchor: str
    #: Parameter that differs, with its unit.
    difference: str
    unit: str
    #: Pixels in a degree.
    ppd: float
    #: Level to its value in each row.
    at: Mapping[str, tuple[float, ...]]
    #: Thresholds of the observer and of the images without an encoder.
    score: Thresholds
    pixels: Thresholds
    #: Thresholds of a responder whose response is the difference: everywhere the same, that of
    #: people on the mean.
    flat: Thresholds
    #: Thresholds of the linear ideal observer in white noise; None without a closed form.
    ideal: Thresholds | None
    #: Thresholds of people, None without any; and the name of the data.
    people: Thresholds | None
    human: str
    #: The alignment with people; None without, and where their curve is flat.
    alignment: DetectionScore | None
    #: RMSE of the pixels in each variant of the stimulus; None for a run without variants.
    pixels_variants: Sample | None = None
    #: Why there is no alignment.
    note: str = ""

    def rows(self) -> list[Row]:
        """Build the table rows of observer, pixels, ideal observer, people and other baselines."""
        title = f"{self.experiment} ({self.measure}, thresholds at the anchor {self.anchor!r})"
        rows = []
        listed = (
            (OBSERVER, "", "observer", self.score),
            (PIXELS, PIXELS, "pixels", self.pixels),
            (CONTRAST, "the difference alone", "difference", self.flat),
            ("ideal", "linear ideal observer", "ideal", self.ideal),
        )
        beside_people = any(
            thresholds is not None and thresholds.rmse is not None
            for *_, thresholds in listed
        )
        for responder, label, short, thresholds in listed:
            if thresholds is not None:
                row = Row(
                    title,
                    responder,
                    label,
                    thresholds.cells() | self._limits(thresholds, short),
                    thresholds.record(),
                    # Who reaches no threshold has no score, and a place among those who have one.
                    {RMSE: self._entry(responder, thresholds)} if beside_people else {},
                    self._remarks(thresholds) if responder == OBSERVER else [],
                )
                rows.append(self.row(row, short, "RMSE"))
        if self.people is not None:
            cells = self.people.cells() | self._limits(self.people, "people")
            rows.append(
                Row(title, "people", f"people ({human_label(self.human)})", cells)
            )
        return rows + ([] if self.alignment is None else self.alignment.rows())

    def _entry(self, responder: str, thresholds: Thresholds) -> Entry:
        """Build a responder's scoreboard entry, over variants where several were shown."""
        samples = {OBSERVER: self.variants, PIXELS: self.pixels_variants}
        sample = samples.get(responder)
        if sample is None or thresholds.rmse is None:
            return Entry(thresholds.rmse)
        ends = sample.interval(self.confidence)
        low, high = ends or (None, None)
        over = sample.population if ends else ""
        return Entry(sample.mean(), low, high, over=over, sample=sample)

    def _limits(self, thresholds: Thresholds, short: str) -> dict[str, str]:
        """Format the highest frequency told apart at each level, where the period was varied."""
        if self.difference != "period":
            return {}
        limits = list(zip(thresholds.values, thresholds.status, strict=True))
        cpd = ", ".join(
            _OF_LIMITS.get(status, "-") if value is None else f"{1 / value:.3g}"
            for value, status in limits
        )
        inside = (
            f"{1 / value / self.ppd:.3f}" for value, _ in limits if value is not None
        )
        return {
            "limit (cpd)": cpd,
            "(cycles/px)": "" if short == "people" else ", ".join(inside) or "-",
        }

    def _remarks(self, thresholds: Thresholds) -> list[str]:
        """Count the levels without a threshold by status, and add the score's note."""
        lost = Counter(status for status in thresholds.status if status != "reached")
        remarks = [
            f"{count} of {len(thresholds.status)} levels: {status}"
            for status, count in lost.items()
        ]
        return remarks + ([self.note] if self.note else [])

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        key = [*_KEY, *_KEY_OF_LIMITS] if self.difference == "period" else [*_KEY]
        return [*key, *([] if self.alignment is None else self.alignment.notes())]


def score_discrimination(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    over: str = "variants",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[DiscriminationScore | DetectionScore, ...]:
    """Score a result's just noticeable differences, one score for each layer.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run that compares tests with references.
    measure, layer, over, confidence, resamples, seed
        As for `psyprobe.analysis.score_detection`.

    Returns
    -------
    tuple of DiscriminationScore or DetectionScore
        In the order of the observer's layers.

    Raises
    ------
    InputError, UnknownNameError
        As for `psyprobe.analysis.score_detection`.
    """
    interval = {"confidence": confidence, "resamples": resamples, "seed": seed}
    result = join_measures(result)
    if "anchor_response" not in result:
        facts = {"measure": measure, "layer": layer, "over": over}
        return score_detection(result, **facts, **interval)  # type: ignore[arg-type]
    layers = layers_of(result)
    selected = layers if layer is None else [layer]
    return tuple(
        _score_layer(
            result,
            *resolve_measure_and_layer(result, layers, measure, name),
            interval,
            over,
        )
        for name in selected
    )


def _score_layer(
    result: xr.Dataset, measure: str, layer: str, interval: JsonObject, over: str
) -> DiscriminationScore:
    """Score one layer's just noticeable differences against people and trivial baselines."""
    levels = levels_of(result)
    difference = stimulus_axis_of(result).name
    order = [*levels, difference]
    rows = mesh({name: result[name].values.astype(float) for name in levels})
    people = _column(result, "human_jnd", levels)
    measured = people[np.isfinite(people)]
    is_flat = len(measured) > 1 and float(np.log10(measured).std()) < _FLAT
    differences = result[difference].values.astype(float)
    thresholds = partial(_thresholds, rows, people, interval["confidence"], difference)

    def thresholds_of(prefix: str) -> Thresholds:
        values, status = _read(result, f"{prefix}response", measure, layer)
        other = None
        if f"{prefix}against_response" in result:
            other, _ = _read(result, f"{prefix}against_response", measure, layer)
        statistics = thresholds(values, status, other)
        if "mask_contrast" in rows and difference == "contrast":
            responses = _defined(result, f"{prefix}response", measure, layer, order)
            by_level = responses.reshape(-1, len(differences))
            ratio = {"response ratio": _masked(rows, differences, by_level)}
            return replace(statistics, ratios={**statistics.ratios, **ratio})
        return statistics

    def constant(values: FloatArray) -> Thresholds:
        reached = np.where(np.isfinite(values), "reached", "never reached")
        return thresholds(values, reached)

    def responses(of: xr.Dataset, scored_measure: str) -> FloatArray:
        return values_of(of, "response", scored_measure, layer, order)

    def rmse(of: xr.Dataset, prefix: str) -> float | None:
        return thresholds(*_read(of, f"{prefix}response", measure, layer)).rmse

    sample, pixels_sample = (
        variant_sample(result, partial(rmse, prefix=prefix), "log10")
        for prefix in ("", "pixels_")
    )

    level = 10 ** np.log10(measured).mean() if len(measured) else differences.mean()
    ideal = _column(result, "ideal_jnd", levels)
    alignment: DetectionScore | None = None
    if "scored_response" in result and not is_flat:
        scores = score_detection(
            result, measure=measure, layer=layer, over=over, **interval
        )
        alignment = next(iter(scores), None)
    note = "no alignment: people's curve is flat, and the difference alone would have 1"
    return DiscriminationScore(
        confidence=interval["confidence"],
        anchor=str(result.attrs["anchor"]),
        difference=difference,
        unit=unit_symbol(result[difference].attrs),
        ppd=float(result.attrs["ppd"]),
        at={name: tuple(values.tolist()) for name, values in rows.items()},
        score=thresholds_of(""),
        pixels=thresholds_of("pixels_"),
        flat=constant(np.full(people.shape, float(level))),
        ideal=constant(ideal) if np.isfinite(ideal).any() else None,
        people=constant(people) if len(measured) else None,
        human=str(result.attrs["jnd_human"]),
        alignment=alignment,
        note=note if is_flat else "",
        **layer_facts(
            result,
            layer,
            measure,
            responses,
            status_of(result, "response", measure, layer, order),
            interval,
            sample,
        ),
        pixels_variants=pixels_sample,
    )


def _unsigned_zero(value: float | None) -> float | None:
    """Round to nine digits, so that no table shows minus 0."""
    return None if value is None else round(value, 9) + 0.0


def _column(result: xr.Dataset, name: str, levels: Sequence[str]) -> FloatArray:
    """Read a variable's values at every level, flat; NaN where the result has none."""
    if name not in result:
        return np.full(math.prod(result.sizes[level] for level in levels), np.nan)
    return np.asarray(result[name].transpose(*levels).values.astype(float).ravel())


def _read(
    result: xr.Dataset, name: str, measure: str, layer: str
) -> tuple[FloatArray, StrArray]:
    """Compute just noticeable differences from a variable's responses, flat over levels."""
    levels = levels_of(result)
    against = name.endswith("against_response")
    other = str(result.attrs["against"]) if against else stimulus_axis_of(result).name
    anchor = f"{'pixels_' if name.startswith('pixels_') else ''}anchor_response"
    level = _defined(result, anchor, measure, layer, levels).ravel()
    grid = _defined(result, name, measure, layer, [*levels, other])
    differences = result[other].values.astype(float)
    return jnd(differences, grid.reshape(len(level), -1), level)


def _defined(
    result: xr.Dataset, name: str, measure: str, layer: str, order: Sequence[str]
) -> FloatArray:
    """Read responses, with NaN where they are undefined."""
    lost = status_of(result, name, measure, layer, order) == UNDEFINED
    return np.where(lost, np.nan, values_of(result, name, measure, layer, order))


def _thresholds(
    rows: Mapping[str, FloatArray],
    people: FloatArray,
    confidence: float,
    difference: str,
    values: FloatArray,
    status: StrArray,
    other: FloatArray | None = None,
) -> Thresholds:
    """Compare thresholds with those of people, and with those for another kind of difference."""
    comparable = np.isfinite(values) & np.isfinite(people)
    shift = low = high = shape = rmse = None
    if comparable.sum() > 1:
        off = np.log10(values[comparable] / people[comparable])
        shift = float(off.mean())
        shape = float(off.std())
        rmse = float(np.sqrt((off**2).mean()))
        if off.size > 2 and shape > 1e-9:
            scale = student_quantile(off.size, confidence)
            reach = float(scale * off.std(ddof=1) / math.sqrt(off.size))
            low = shift - reach
            high = shift + reach
    ratios = _ratios(rows, values, difference)
    ends = None
    if other is not None and difference in _ORIENTATION_AND_FREQUENCY:
        pair = [values, other]
        if difference == "orientation_difference":
            pair.reverse()
        ratio = anisotropy(*pair)
        ratio = ratio[np.isfinite(ratio)]
        ratios["anisotropy"] = None
        if ratio.size:
            ratios["anisotropy"] = float(np.exp(np.log(ratio).mean()))
            ends = (float(ratio.min()), float(ratio.max()))
    return Thresholds(
        tuple(float(v) if np.isfinite(v) else None for v in values),
        tuple(status.tolist()),
        shift,
        low,
        high,
        shape,
        rmse,
        ratios,
        ends,
    )


def _ratios(
    rows: Mapping[str, FloatArray], values: FloatArray, difference: str
) -> dict[str, float | None]:
    """Compute dip and handle over pedestal or mask contrasts, and log slopes over other levels."""
    ratios: dict[str, float | None] = {}
    for name, level in rows.items():
        first = _lowest(rows, name)
        x = level[first]
        t = values[first]
        suffix = "" if len(rows) == 1 else f" ({name})"
        if name.endswith("contrast") and difference in (
            "contrast",
            "contrast_difference",
        ):
            if name == "contrast":
                suffix = ""
            ratios[f"dip{suffix}"] = dip(x, t)
            ratios[f"handle{suffix}"] = slope(x, t, HANDLE)
            if name.endswith("mask_contrast") and (x == 0).any():
                ratios["elevation"] = _over(t[x == x.max()], t[x == 0])
        elif (x > 0).all():
            ratios[f"slope{suffix}"] = slope(x, t)
    if {"mask_orientation", "mask_contrast"} <= set(rows) and len(rows) == 2:
        strong = rows["mask_contrast"] == rows["mask_contrast"].max()
        parallel, orthogonal = (
            strong & (rows["mask_orientation"] == angle) for angle in (0, 90)
        )
        ratios["tuning"] = _over(values[parallel], values[orthogonal])
    return ratios


def _masked(
    rows: Mapping[str, FloatArray], contrast: FloatArray, response: FloatArray
) -> float | None:
    """Divide the response to a target of contrast 0.1 on the strongest mask by that on none."""
    near = response[:, int(np.abs(np.log(contrast / _SEEN)).argmin())]
    mask = rows["mask_contrast"]
    first = _lowest(rows, "mask_contrast")
    return _over(near[first & (mask == mask.max())], near[first & (mask == 0)])


def _lowest(rows: Mapping[str, FloatArray], name: str) -> BoolArray:
    """Mark the rows that have the first value of every level but one."""
    lowest = [values == values.min() for other, values in rows.items() if other != name]
    return np.asarray(np.all([np.ones(len(rows[name]), dtype=bool), *lowest], axis=0))


def _over(first: FloatArray, second: FloatArray) -> float | None:
    """Divide one threshold by another, None unless both are single and measured."""
    single = (first.size, second.size) == (1, 1) and bool(
        np.isfinite(first).all() and np.isfinite(second).all()
    )
    return float(first[0] / second[0]) if single else None
