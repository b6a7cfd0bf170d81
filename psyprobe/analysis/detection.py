"""The score of a detection run: alignment with human sensitivity, and what it is made of.

Everything here works from stored responses; no observer is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.alignment import Alignment, align, alignment_score
from psyprobe.analysis.iso_response import IsoResponse, fit_iso_response
from psyprobe.analysis.responses import Responses, Scored, layers_of, observer_of, select
from psyprobe.analysis.score import CONTRAST, OBSERVER, PIXELS, Entry, Metric, Recorded, Row, many, number, percent
from psyprobe.analysis.slices import Slices, score_slices
from psyprobe.analysis.table import LayerScore
from psyprobe.analysis.variants import Spread, variant_columns, variant_spread

if TYPE_CHECKING:
    import xarray as xr

#: Angles that the paper's float32 arccosine gives as 0 or as its smallest value other than 0, over pi.
FLOAT32_FLOOR = 1.1e-4

ALIGNMENT = Metric("alignment", "Alignment $r_s$", more_is_better=True, digits=2)

_KEY = (
    "r_s: Spearman of response with multiples of the human threshold, and its interval ({confidence} %). monotone: "
    "mean r_s within a slice. level, shape, shift, RMSE: log10 contrast units (0.3 is a factor of two); level: "
    "unevenness along the human curve; shape and shift: of the iso-response curve most like the human one, with the "
    "range of shifts where several fit alike; RMSE: of the one nearest to it; reached: x at which it exists "
    "(without a level grid, as of --score-only, there is no such curve). "
    "f32 floor, noise: share of score points that the paper's float32 arithmetic puts at its floor, and that are not "
    "above the noise floor."
)

#: Shifts that differ by more than this, a factor of two, are given as their range.
_SAME_SHIFT = 0.3


@dataclass(frozen=True)
class ResponderScore(Recorded):
    """All statistics of one responder: the observer, or a baseline."""

    #: Spearman's r_s at multiples of human thresholds, with its interval and attainable maximum.
    alignment: Alignment
    #: What the alignment is made of: monotonicity within each slice, unevenness between them.
    slices: Slices
    #: The iso-response curve whose shape resembles the human curve best, and its shift. None if no level is crossed in
    #: two conditions or more, or the run was without a level grid.
    shape: IsoResponse | None
    #: The iso-response curve that lies nearest to the human curve, shift included.
    absolute: IsoResponse | None

    def entry(self) -> Entry:
        """The alignment, for the scoreboard."""
        return Entry(self.alignment.value, self.alignment.low, self.alignment.high)

    def cells(self) -> dict[str, str]:
        """Rounded for reading."""
        alignment, slices, shape, absolute = self.alignment, self.slices, self.shape, self.absolute
        interval = "" if alignment.low is None else f" [{number(alignment.low)}, {number(alignment.high)}]"
        return {
            "r_s [interval]": number(alignment.value) + interval,
            "monotone": number(slices.monotonicity),
            "level": number(slices.unevenness),
            "shape": number(None if shape is None else shape.shape_rmse),
            "shift": "-" if shape is None else _shift(shape),
            "RMSE": number(None if absolute is None else absolute.rmse),
            "reached": "-" if shape is None else f"{shape.reached}/{shape.total}",
        }

    def remarks(self, gridded: bool) -> list[str]:
        """What the numbers do not say."""
        slices, shape = self.slices, self.shape
        notes = [self.alignment.note] if self.alignment.note else []
        if slices.constant:
            notes.append(f"{slices.constant} of {slices.total} slices have equal responses and no monotonicity")
        if slices.not_positive:
            notes.append(f"{slices.not_positive} of {slices.total} slices have responses of 0 and no level")
        if slices.slope is not None and slices.unevenness is None:
            notes.append("responses do not rise with contrast, so no change of contrast could level them")
        if shape is None:
            notes += ["no response level is crossed at two x or more"] * gridded
        elif shape.recrossed:
            notes.append(f"{shape.recrossed} of {shape.reached} x fall under the level again at higher contrast")
        return notes

    def record(self) -> dict[str, Any]:
        """Every statistic that is a single value."""
        alignment, slices, shape, absolute = self.alignment, self.slices, self.shape, self.absolute
        return {
            "alignment": alignment.value,
            "alignment_low": alignment.low,
            "alignment_high": alignment.high,
            "confidence": alignment.confidence,
            "attainable": alignment.attainable,
            "monotonicity": slices.monotonicity,
            "slope": slices.slope,
            "unevenness_log10": slices.unevenness,
            "shape_rmse_log10": shape and shape.shape_rmse,
            "shape_level": shape and shape.level,
            "shift_log10": shape and shape.shift,
            "shift_low_log10": shape and shape.shift_range[0],
            "shift_high_log10": shape and shape.shift_range[1],
            "absolute_rmse_log10": absolute and absolute.rmse,
            "absolute_level": absolute and absolute.level,
            "reached": shape and shape.reached,
            "total": shape and shape.total,
            "recrossed": shape and shape.recrossed,
        }


@dataclass(frozen=True)
class DetectionScore(LayerScore):
    """The score of a detection run, beside the scores of trivial responders."""

    #: Of the observer.
    score: ResponderScore
    #: Of the images themselves, without an encoder, by the same measure.
    pixels: ResponderScore
    #: Of a responder whose response is the stimulus contrast (or other difference), the same at every level.
    contrast: ResponderScore
    #: Share of the score points (0 to 1) that the paper's float32 arccosine would have put at 0 or at its smallest
    #: value, 1.1e-4: as stored by experiments that use it, else by rounding the stored cosine.
    float32_floor: float | None
    #: Response to identical images, run again.
    noise_floor: float
    #: Share of the score points (0 to 1) with responses not above the noise floor.
    below_noise: float
    #: Of the bootstrap.
    seed: int
    #: Of the bootstrap.
    resamples: int
    #: How far r_s depends on which variants of the stimulus were shown; None for a run without variants.
    variants: Spread | None = None

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        return self.score.alignment.confidence

    def rows(self) -> list[Row]:
        """The observer, the pixels, contrast alone, and what can be attained."""
        title = f"{self.experiment} ({self.measure})"
        # Contrast alone has curves wherever a grid was shown, and the key says what a run without one lacks.
        gridded = self.contrast.shape is not None
        rows = []
        for responder, label, short, found in (
            (OBSERVER, "", "observer", self.score),
            (PIXELS, PIXELS, "pixels", self.pixels),
            (CONTRAST, "contrast alone", "contrast", self.contrast),
        ):
            own, entry, notes = responder == OBSERVER, found.entry(), found.remarks(gridded)
            record = {
                **self.about(short),
                **found.record(),
                "float32_floor": self.float32_floor if own else None,
                "noise_floor": self.noise_floor if own else None,
                "below_noise": self.below_noise if own else None,
                **variant_columns(self.variants if own else None),
                "note": "; ".join(notes),
            }
            shares = {"f32 floor": "", "noise": ""}
            if own:
                shares = {"f32 floor": percent(self.float32_floor), "noise": percent(self.below_noise)}
                flags = many(self.float32_floor, "f") + many(self.below_noise, "n")
                entry = Entry(entry.value, entry.low, entry.high, flags, self.float32_floor)
                notes = [f"r_s of the {self.variants}"] * (self.variants is not None) + notes
            rows.append(Row(title, responder, label, {**found.cells(), **shares}, record, {ALIGNMENT: entry}, notes))
        attainable = {"r_s [interval]": number(self.score.alignment.attainable, 3)}
        return [*rows, Row(title, "attainable", "attainable", attainable)]

    def notes(self) -> list[str]:
        """What the headings mean."""
        return [_KEY]


def score_detection(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[DetectionScore, ...]:
    """Score a detection result against human sensitivity, layer by layer.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        As for `select`.
    layer : str, optional
        Name of a layer; without it all.
    confidence : float, optional
        Of the interval, in (0, 1).
    resamples : int, optional
        Number of bootstrap samples.
    seed : int, optional
        Of the bootstrap.

    Returns
    -------
    tuple of DetectionScore
        In the order of the observer's layers; empty where there is no human reference to compare with.

    Raises
    ------
    InputError
        If this is no detection result, or values are not finite.
    UnknownNameError
        If the measure or layer is not in the result.
    """
    layers = layers_of(result) if layer is None else [layer]
    found = (_score_layer(result, measure, name, confidence, resamples, seed) for name in layers)
    return tuple(one for one in found if one is not None)


def _score_layer(
    result: xr.Dataset, measure: str | None, layer: str, confidence: float, resamples: int, seed: int
) -> DetectionScore | None:
    found = select(result, measure=measure, layer=layer)
    points = found.scored
    if points is None:
        return None

    def scored(response: FloatArray, grid: FloatArray, floor: float) -> ResponderScore:
        alignment = align(points.multiplier, response, confidence=confidence, resamples=resamples, seed=seed)
        slices = score_slices(points.multiplier, response)
        shape, absolute = _iso_responses(found, points, grid, floor) if grid.size else (None, None)
        return ResponderScore(alignment, slices, shape, absolute)

    return DetectionScore(
        observer=observer_of(result),
        experiment=str(result.attrs.get("experiment", "")),
        layer=found.layer,
        measure=found.measure,
        random_weights=bool(result.attrs.get("random_weights", 0)),
        score=scored(points.response, found.grid, found.noise_floor),
        pixels=scored(points.pixels, found.pixels, 0.0),
        contrast=scored(points.difference, np.broadcast_to(found.difference, found.grid.shape), 0.0),
        float32_floor=_share_at_float32_floor(result, found.layer),
        noise_floor=found.noise_floor,
        below_noise=float((points.response <= found.noise_floor).mean()),
        seed=seed,
        resamples=resamples,
        variants=_by_variant(result, found, points, confidence, seed),
    )


def _iso_responses(
    found: Responses, points: Scored, grid: FloatArray, floor: float
) -> tuple[IsoResponse | None, IsoResponse | None]:
    at, rows = found.rows(grid)
    human = _human_at(found, points, at)
    known = np.isfinite(human)
    names, where = next(iter(at.values()), np.arange(len(rows)))[known], rows[known]
    if known.sum() < 2:
        return None, None
    return (
        fit_iso_response(names, found.difference, where, human[known], criterion="shape", floor=floor),
        fit_iso_response(names, found.difference, where, human[known], criterion="absolute", floor=floor),
    )


def _human_at(found: Responses, points: Scored, at: dict[str, FloatArray]) -> FloatArray:
    """Sensitivity of people in each row of the grid; NaN where it is not known."""
    rows = len(next(iter(at.values()), [0]))
    human = np.full(rows, np.nan)
    if found.curve is not None and tuple(at) == (found.curve[0],):
        level, where, sensitivity = found.curve
        # A rounding error must not cost the last condition of a grid that ends with the human curve.
        inside = (at[level] >= where[0] * (1 - 1e-9)) & (at[level] <= where[-1] * (1 + 1e-9))
        scale = np.log10 if where[0] > 0 else np.asarray
        human[inside] = 10 ** np.interp(scale(at[level][inside]), scale(where), np.log10(sensitivity))
        return human
    same = np.ones((rows, len(points.sensitivity)), dtype=bool)
    for name, values in at.items():
        same &= np.isclose(values[:, None], points.at[name], rtol=1e-9, atol=0)
    human[same.any(axis=1)] = points.sensitivity[same.argmax(axis=1)][same.any(axis=1)]
    return human


def _by_variant(result: xr.Dataset, found: Responses, points: Scored, confidence: float, seed: int) -> Spread | None:
    def r_s(averaged: xr.Dataset) -> float | None:
        scored = select(averaged, measure=found.measure, layer=found.layer).scored
        if scored is None or len(np.unique(scored.response)) < 2:
            return None
        return alignment_score(points.multiplier, scored.response)

    return variant_spread(result, r_s, transform=_fisher, inverse=np.tanh, confidence=confidence, seed=seed)


def _fisher(r: Any) -> Any:
    return np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))


def _share_at_float32_floor(result: xr.Dataset, layer: str) -> float | None:
    if not {"cosine", "angular_float32"} & set(result["measure"].values):
        return None
    scored = select(result, measure="angular_float32", layer=layer).scored
    return None if scored is None else float((scored.response <= FLOAT32_FLOOR).mean())


def _shift(shape: IsoResponse) -> str:
    low, high = shape.shift_range
    if high - low <= _SAME_SHIFT:
        return number(shape.shift, sign=True)
    return f"{number(low, 1, sign=True)} to {number(high, 1, sign=True)}"
