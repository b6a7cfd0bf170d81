"""The score of runs with an anchor: just noticeable differences beside those of people, and ratios
without a criterion.

The response at which a difference is just noticeable is that of the same observer to another pair,
the anchor. Where people's curve is flat, alignment says nothing: a responder that is the difference
itself would have 1. Everything here works from stored responses; no observer is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.detection import DetectionScore, score_detection
from psyprobe.analysis.jnd import HANDLE, anisotropy, dip, jnd, slope
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import (
    LayerScore,
    chosen,
    layer_facts,
    layers_of,
    levels_of,
    status_of,
    values_of,
)
from psyprobe.analysis.score import CONTRAST, OBSERVER, PIXELS, Metric, Recorded, Row, number
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
    "elevation: threshold at the strongest mask over that without a mask, at the first orientation.",
    "tuning: threshold at the strongest mask, parallel over orthogonal.",
    "response ratio: response to a target of contrast 0.1 with that mask, over that without.",
    "anisotropy: just noticeable change of frequency, as a fraction, over the just noticeable "
    "turn in radians; "
    "geometric mean over levels, and its range. Pixels have 1 at any criterion, people 3.4 to "
    "13 (Burbeck & "
    "Regan 1983).",
)

_KEY_OF_LIMITS = (
    "limit: 1 / threshold, the highest frequency at which the response is as large as that to "
    "the anchor, at "
    "each level. never falls: it is larger still at the finest stripes shown.",
    "Degrees mean nothing to an encoder: read its limit in cycles per pixel.",
)
#: What a status says of a limit.
_OF_LIMITS = {"above": "never falls", "never reached": "none"}


@dataclass(frozen=True)
class Thresholds(Recorded):
    """Just noticeable differences of one responder, and what they come to."""

    #: One a level, in the order of `DiscriminationScore.at`; None where there is none.
    values: tuple[float | None, ...]
    #: What can be said of each, as `psyprobe.analysis.jnd.jnd` has it.
    status: tuple[str, ...]
    #: Of log10 of these over those of people: mean, with its interval over levels, standard
    #: deviation, root mean square; None without people or with fewer than two levels.
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
        """Rounded for reading."""
        interval = "" if self.shift_low is None else f" [{number(self.shift_low, sign=True)}, "
        interval += "" if self.shift_high is None else f"{number(self.shift_high, sign=True)}]"
        told = {
            "shift": number(
                self.shift if self.shift is None else round(self.shift, 9) + 0.0, sign=True
            )
            + interval,
            "shape": number(self.shape),
        }
        told |= {
            "RMSE": number(self.rmse),
            "reached": f"{sum(v is not None for v in self.values)}/{len(self.values)}",
        }
        told |= {
            name: number(value if value is None else round(value, 9) + 0.0)
            for name, value in self.ratios.items()
        }
        if self.anisotropy_range is not None:
            low, high = self.anisotropy_range
            told["anisotropy"] += f" ({number(low)} to {number(high)})"
        return told

    def record(self) -> dict[str, Any]:
        """Every statistic that is a single value."""
        shared = {name: getattr(self, name) for name in ("shape", "rmse")}
        shifts = {
            f"{name}_log10": getattr(self, name) for name in ("shift", "shift_low", "shift_high")
        }
        low, high = self.anisotropy_range or (None, None)
        ends = (
            {"anisotropy_low": low, "anisotropy_high": high} if "anisotropy" in self.ratios else {}
        )
        return {
            **shifts,
            **{f"{name}_log10": value for name, value in shared.items()},
            **self.ratios,
            **ends,
        }


@dataclass(frozen=True)
class DiscriminationScore(LayerScore):
    """Just noticeable differences of an observer at its anchor, beside those of trivial responders
    and of people.
    """

    #: Of the interval of the shift, in (0, 1).
    confidence: float
    #: "detection", "contrast", or the contrast that is told from none.
    anchor: str
    #: What differs, with its unit.
    difference: str
    unit: str
    #: Pixels in a degree.
    ppd: float
    #: Level to its value in each row.
    at: Mapping[str, tuple[float, ...]]
    #: Of the observer and of the images without an encoder.
    score: Thresholds
    pixels: Thresholds
    #: Of a responder whose response is the difference: the same threshold everywhere, that of
    #: people on the mean.
    flat: Thresholds
    #: Of the linear ideal observer in white noise; None where it has no closed form.
    ideal: Thresholds | None
    #: Of people; None without any, and what they are called.
    people: Thresholds | None
    human: str
    #: The alignment with people; None without, and where their curve is flat.
    alignment: DetectionScore | None
    #: Why there is none.
    note: str = ""

    def rows(self) -> list[Row]:
        """The observer, pixels, the difference alone, the ideal observer and people; then the
        alignment's.
        """
        title = f"{self.experiment} ({self.measure}, thresholds at the anchor {self.anchor!r})"
        rows = []
        listed = (
            (OBSERVER, "", "observer", self.score),
            (PIXELS, PIXELS, "pixels", self.pixels),
            (CONTRAST, "the difference alone", "difference", self.flat),
            ("ideal", "linear ideal observer", "ideal", self.ideal),
        )
        beside_people = any(found is not None and found.rmse is not None for *_, found in listed)
        for responder, label, short, found in listed:
            if found is None:
                continue
            remarks = self._remarks(found) if responder == OBSERVER else []
            told = Row(
                title,
                responder,
                label,
                found.cells() | self._limits(found, short),
                found.record(),
                notes=remarks,
            )
            # Who reaches no threshold has no score, and a place among those who have one.
            ranked = {RMSE: (found.rmse, None, None)} if beside_people else {}
            row = self.row(told, short, ranked, "RMSE")
            rows.append(replace(row, record={**row.record, "note": "; ".join(remarks)}))
        if self.people is not None:
            cells = self.people.cells() | self._limits(self.people, "people")
            rows.append(Row(title, "people", f"people ({human_label(self.human)})", cells))
        return rows + ([] if self.alignment is None else self.alignment.rows())

    def _limits(self, found: Thresholds, short: str) -> dict[str, str]:
        """The highest frequencies, level by level, where the finest stripes were looked for."""
        if self.difference != "period":
            return {}
        known = list(zip(found.values, found.status, strict=True))
        cpd = ", ".join(
            _OF_LIMITS.get(status, "-") if value is None else f"{1 / value:.3g}"
            for value, status in known
        )
        inside = (f"{1 / value / self.ppd:.3f}" for value, _ in known if value is not None)
        return {
            "limit (cpd)": cpd,
            "(cycles/px)": "" if short == "people" else ", ".join(inside) or "-",
        }

    def _remarks(self, found: Thresholds) -> list[str]:
        lost = Counter(status for status in found.status if status != "reached")
        told = [
            f"{count} of {len(found.status)} levels: {status}" for status, count in lost.items()
        ]
        return told + ([self.note] if self.note else [])

    def notes(self) -> list[str]:
        """What the headings mean."""
        key = [*_KEY, *_KEY_OF_LIMITS] if self.difference == "period" else [*_KEY]
        return [*key, *([] if self.alignment is None else self.alignment.notes())]


def score_discrimination(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[DiscriminationScore | DetectionScore, ...]:
    """Score just noticeable differences where the run has an anchor, else the alignment alone;
    layer by layer.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run that compares tests with references.
    measure, layer, confidence, resamples, seed
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
        return score_detection(result, measure=measure, layer=layer, **interval)  # type: ignore[arg-type]
    layers = layers_of(result)
    named = layers if layer is None else [layer]
    return tuple(
        _score_layer(result, *chosen(result, layers, measure, one), interval) for one in named
    )


def _score_layer(
    result: xr.Dataset, measure: str, layer: str, interval: dict[str, Any]
) -> DiscriminationScore:
    levels = levels_of(result)
    difference = stimulus_axis_of(result).name
    at = np.meshgrid(*[result[name].values.astype(np.float64) for name in levels], indexing="ij")
    rows = {name: values.ravel() for name, values in zip(levels, at, strict=True)}
    people = _column(result, "human_jnd", levels)
    known = np.isfinite(people)
    flat = known.sum() > 1 and float(np.log10(people[known]).std()) < _FLAT

    grid = result[difference].values.astype(np.float64)

    def found(prefix: str) -> Thresholds:
        own, other = (
            _read(result, f"{prefix}{name}", measure, layer)
            for name in ("response", "against_response")
        )
        assert own is not None
        made = _thresholds(rows, own[0], own[1], people, interval["confidence"], difference, other)
        if "mask_contrast" not in rows or difference != "contrast":
            return made
        shown = _defined(result, f"{prefix}response", measure, layer, [*levels, difference])
        return replace(
            made,
            ratios={
                **made.ratios,
                "response ratio": _masked(rows, grid, shown.reshape(-1, len(grid))),
            },
        )

    def responses(of: xr.Dataset, measured: str) -> FloatArray:
        return values_of(of, "response", measured, layer, [*levels, difference])

    def rmse(averaged: xr.Dataset) -> float | None:
        own = _read(averaged, "response", measure, layer)
        assert own is not None
        return _thresholds(rows, *own, people, interval["confidence"], difference, None).rmse

    def constant(values: FloatArray) -> Thresholds:
        reached = np.where(np.isfinite(values), "reached", "never reached")
        return _thresholds(rows, values, reached, people, interval["confidence"], difference, None)

    level = (
        float(10 ** np.log10(people[known]).mean())
        if known.any()
        else float(result[difference].values.mean())
    )
    ideal = _column(result, "ideal_jnd", levels)
    align = "scored_response" in result and not flat
    alignment = score_detection(result, measure=measure, layer=layer, **interval) if align else ()
    note = (
        "no alignment: people's curve is flat, and the difference alone would have 1"
        if flat
        else ""
    )
    facts = (
        responses,
        status_of(result, "response", measure, layer, [*levels, difference]),
        interval,
        rmse,
        (np.asarray, np.asarray),
    )
    return DiscriminationScore(
        confidence=interval["confidence"],
        anchor=str(result.attrs["anchor"]),
        difference=difference,
        unit=unit_symbol(result[difference].attrs),
        ppd=float(result.attrs["ppd"]),
        at={name: tuple(values.tolist()) for name, values in rows.items()},
        score=found(""),
        pixels=found("pixels_"),
        flat=constant(np.full(people.shape, level)),
        ideal=constant(ideal) if np.isfinite(ideal).any() else None,
        people=constant(people) if known.any() else None,
        human=str(result.attrs["jnd_human"]),
        alignment=alignment[0] if alignment else None,
        note=note,
        **layer_facts(result, layer, measure, *facts),
    )


def _column(result: xr.Dataset, name: str, levels: Sequence[str]) -> FloatArray:
    """Values at every level, flat; NaN where the result has none."""
    if name not in result:
        return np.full(math.prod(result.sizes[level] for level in levels), np.nan)
    return np.asarray(result[name].transpose(*levels).values.astype(np.float64).ravel())


def _read(
    result: xr.Dataset, name: str, measure: str, layer: str
) -> tuple[FloatArray, npt.NDArray[np.str_]] | None:
    """Just noticeable differences of a variable's responses at the anchor, flat over levels; None
    without it.
    """
    if name not in result:
        return None
    levels = levels_of(result)
    against = name.endswith("against_response")
    other = str(result.attrs["against"]) if against else stimulus_axis_of(result).name
    anchor = f"{'pixels_' if name.startswith('pixels_') else ''}anchor_response"
    level = _defined(result, anchor, measure, layer, levels).ravel()
    grid = _defined(result, name, measure, layer, [*levels, other]).reshape(len(level), -1)
    return jnd(result[other].values.astype(np.float64), grid, level)


def _defined(
    result: xr.Dataset, name: str, measure: str, layer: str, order: Sequence[str]
) -> FloatArray:
    """Responses, NaN where they are undefined."""
    from psyprobe.analysis.direction import UNDEFINED

    lost = status_of(result, name, measure, layer, order) == UNDEFINED
    return np.where(lost, np.nan, values_of(result, name, measure, layer, order))


def _thresholds(
    rows: Mapping[str, FloatArray],
    values: FloatArray,
    status: npt.NDArray[np.str_],
    people: FloatArray,
    confidence: float,
    difference: str,
    other: tuple[FloatArray, npt.NDArray[np.str_]] | None,
) -> Thresholds:
    both = np.isfinite(values) & np.isfinite(people)
    shift = low = high = shape = rmse = None
    if both.sum() > 1:
        off = np.log10(values[both] / people[both])
        shift = float(off.mean())
        shape = float(off.std())
        rmse = float(np.sqrt((off**2).mean()))
        if off.size > 2 and shape > 1e-9:
            reach = _student(off, confidence)
            low = shift - reach
            high = shift + reach
    ratios: dict[str, float | None] = _ratios(rows, values, difference)
    spread = None
    if other is not None and difference in ("orientation_difference", "frequency_difference"):
        turned = difference == "orientation_difference"
        found = anisotropy(other[0], values) if turned else anisotropy(values, other[0])
        found = found[np.isfinite(found)]
        ratios["anisotropy"] = float(np.exp(np.log(found).mean())) if found.size else None
        spread = (float(found.min()), float(found.max())) if found.size else None
    return Thresholds(
        tuple(float(v) if np.isfinite(v) else None for v in values),
        tuple(status.tolist()),
        shift,
        low,
        high,
        shape,
        rmse,
        ratios,
        spread,
    )


def _student(off: FloatArray, confidence: float) -> float:
    """Half the width of Student's interval of a mean."""
    from scipy.special import stdtrit

    return float(
        stdtrit(off.size - 1, (1 + confidence) / 2) * off.std(ddof=1) / math.sqrt(off.size)
    )


def _ratios(
    rows: Mapping[str, FloatArray], values: FloatArray, difference: str
) -> dict[str, float | None]:
    """Dip and handle over contrasts of pedestals and masks, slopes over other levels above 0."""
    found: dict[str, float | None] = {}
    for name, level in rows.items():
        others = [each for other, each in rows.items() if other != name]
        # At the first value of every other level, which is none of a mask.
        first = (
            np.all([each == each.min() for each in others], axis=0)
            if others
            else np.ones(level.shape, bool)
        )
        x = level[first]
        t = values[first]
        if name.endswith("contrast") and difference in ("contrast", "contrast_difference"):
            suffix = "" if name == "contrast" or len(rows) == 1 else f" ({name})"
            found[f"dip{suffix}"], found[f"handle{suffix}"] = dip(x, t), slope(x, t, HANDLE)
            if name.endswith("mask_contrast") and (x == 0).any():
                found["elevation"] = _over(t[x == x.max()], t[x == 0])
        elif (x > 0).all():
            found["slope" if len(rows) == 1 else f"slope ({name})"] = slope(x, t)
    if {"mask_orientation", "mask_contrast"} <= set(rows) and len(rows) == 2:
        strong = rows["mask_contrast"] == rows["mask_contrast"].max()
        parallel, orthogonal = (strong & (rows["mask_orientation"] == angle) for angle in (0, 90))
        found["tuning"] = _over(values[parallel], values[orthogonal])
    return found


def _masked(
    rows: Mapping[str, FloatArray], contrast: FloatArray, response: FloatArray
) -> float | None:
    """Response under the strongest mask over that without, of the first orientation, near contrast
    0.1.
    """
    near = response[:, int(np.abs(np.log(contrast / _SEEN)).argmin())]
    mask = rows["mask_contrast"]
    first = np.all(
        [each == each.min() for name, each in rows.items() if name != "mask_contrast"], axis=0
    )
    return _over(near[first & (mask == mask.max())], near[first & (mask == 0)])


def _over(first: FloatArray, second: FloatArray) -> float | None:
    """The ratio of two thresholds, where each is one and known."""
    both = (first.size, second.size) == (1, 1) and bool(
        np.isfinite(first).all() and np.isfinite(second).all()
    )
    return float(first[0] / second[0]) if both else None
