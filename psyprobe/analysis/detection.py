"""The score of a detection run: alignment with human sensitivity, and what it is made of.

Everything here works from stored responses; no observer is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis import alignment as statistics
from psyprobe.analysis.direction import told
from psyprobe.analysis.human_observer import Fraction, People, fraction_of, people
from psyprobe.analysis.iso_response import IsoResponse, fit_iso_response
from psyprobe.analysis.responses import (
    LayerScore,
    Responses,
    Scored,
    layer_facts,
    layers_of,
    select,
)
from psyprobe.analysis.result_stimulus import conditions_of
from psyprobe.analysis.score import (
    CONTRAST,
    NO_PEOPLE,
    OBSERVER,
    PERSON,
    PIXELS,
    Entry,
    Metric,
    Recorded,
    Row,
    number,
)
from psyprobe.files.units import unit_symbol

if TYPE_CHECKING:
    import xarray as xr

ALIGNMENT = Metric("alignment", "Alignment $r_s$", more_is_better=True, digits=2)

_KEY = (
    "r_s: Spearman correlation of the response with the multiple of the human threshold, with "
    "its {confidence} "
    "% interval. The interval treats levels as independent. Neighbours are not, so the true one "
    "is wider.",
    "monotone: mean r_s within one slice: one value of every level but contrast.",
    "level: how uneven the response is along the human curve.",
    "shape, shift: the iso-response curve most like the human curve: how far it departs from it "
    "once shifted, "
    "and by how much it is shifted. A range stands where several shifts fit alike.",
    "RMSE: of the iso-response curve nearest to the human curve, not shifted.",
    "reached: values at which that curve exists. Without a level grid (--score-only) there is "
    "no such curve.",
    "level, shape, shift and RMSE are in log10 units of contrast: 0.3 is a factor of two.",
    "in range: r_s on the levels at which single people were measured.",
    "of a person: that, over what one of these people scores there. 1 is as good as another "
    "person; a model may"
    " exceed it.",
    "above flat: the same on a scale from an observer with a flat CSF (0) to a person (1).",
    "f32 floor, noise: share of score points at the floor of the paper's float32 arithmetic, "
    "and share not "
    "above the noise floor.",
)

#: Shifts that differ by more than this, a factor of two, are given as their range.
_SAME_SHIFT = 0.3


@dataclass(frozen=True)
class ResponderScore(Recorded):
    """All statistics of one responder: the observer, or a baseline."""

    #: Spearman's r_s at multiples of human thresholds, with its interval and attainable maximum.
    alignment: statistics.Alignment
    #: What the alignment is made of: monotonicity within each slice, unevenness between them.
    slices: statistics.Slices
    #: The iso-response curve whose shape resembles the human curve best, and its shift. None if no
    #: level is crossed in two conditions or more, or the run was without a level grid.
    shape: IsoResponse | None
    #: The iso-response curve that lies nearest to the human curve, shift included.
    absolute: IsoResponse | None
    #: Beside the persons of each data set of `DetectionScore.people`.
    fractions: tuple[Fraction, ...] = ()

    def cells(self) -> dict[str, str]:
        """Rounded for reading."""
        alignment = self.alignment
        slices = self.slices
        shape = self.shape
        absolute = self.absolute
        interval = (
            "" if alignment.low is None else f" [{number(alignment.low)}, {number(alignment.high)}]"
        )
        return {
            "r_s [interval]": number(alignment.value) + interval,
            "monotone": number(slices.monotonicity),
            "level": number(slices.unevenness),
            "shape": number(None if shape is None else shape.shape_rmse),
            "shift": "-" if shape is None else _shift(shape),
            "RMSE": number(None if absolute is None else absolute.rmse),
            "reached": "-" if shape is None else f"{shape.reached}/{shape.total}",
            **({} if self.first is None else _beside_people(self.first)),
        }

    @property
    def first(self) -> Fraction | None:
        """That of the data set to compare with first; None where no single people were measured."""
        return self.fractions[0] if self.fractions else None

    def remarks(self, gridded: bool) -> list[str]:
        """What the numbers do not say."""
        slices = self.slices
        shape = self.shape
        notes = [self.alignment.note] if self.alignment.note else []
        if slices.constant:
            notes.append(
                f"{slices.constant} of {slices.total} slices have equal responses and no "
                "monotonicity"
            )
        if slices.not_positive:
            notes.append(
                f"{slices.not_positive} of {slices.total} slices have responses of 0 and no level"
            )
        if slices.slope is not None and slices.unevenness is None:
            notes.append(
                "responses do not rise with contrast, so no change of contrast could level them"
            )
        if shape is None:
            uncrossed = gridded and self.alignment.note != statistics.UNTOLD
            notes += ["no response level is crossed at two values or more"] * uncrossed
        elif shape.recrossed:
            told = f"at {shape.recrossed} of {shape.reached} values"
            notes.append(f"{told} the response falls below the level again at higher contrast")
        return notes

    def record(self) -> dict[str, Any]:
        """Every statistic that is a single value."""
        alignment = self.alignment
        slices = self.slices
        shape = self.shape
        absolute = self.absolute
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
            **{name: shape and getattr(shape, name) for name in ("reached", "total", "recrossed")},
            **{name: self.first and value for name, value in vars(self.first or _NOBODY).items()},
        }


_NOBODY = Fraction(None, None, None)


@dataclass(frozen=True)
class DetectionScore(LayerScore):
    """The score of a detection run, beside the scores of trivial responders."""

    #: Of the observer.
    score: ResponderScore
    #: Of the images themselves, without an encoder, by the same measure.
    pixels: ResponderScore
    #: Of a responder whose response is the stimulus contrast (or other difference), the same at
    #: every level.
    contrast: ResponderScore
    #: Single people who were measured under the conditions of the experiment or near them, by data
    #: set, that to compare with first at the head; empty where there are none.
    people: tuple[People, ...]
    #: Unit of the level.
    unit: str

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        return self.score.alignment.confidence

    def rows(self) -> list[Row]:
        """The observer, the pixels, contrast alone, one person, and what can be attained."""
        title = f"{self.experiment} ({self.measure})"
        # Contrast alone has curves wherever a grid was shown, and the key says what a run without
        # one lacks.
        gridded = self.contrast.shape is not None
        rows = []
        for responder, label, short, found in (
            (OBSERVER, "", "observer", self.score),
            (PIXELS, PIXELS, "pixels", self.pixels),
            (CONTRAST, "contrast alone", "contrast", self.contrast),
        ):
            remarks = found.remarks(gridded)
            told = Row(title, responder, label, found.cells(), found.record(), notes=remarks)
            reached = {
                ALIGNMENT: (found.alignment.value, found.alignment.low, found.alignment.high)
            }
            row = self.row(
                told,
                short,
                reached,
                "r_s",
                of_person=None if found.first is None else found.first.fraction,
            )
            rows.append(replace(row, record={**row.record, "note": "; ".join(remarks)}))
        rows += [self._person(title, self.people[0])] if self.people else []
        attainable = {"r_s [interval]": number(self.score.alignment.attainable, 3)}
        return [*rows, Row(title, "attainable", "attainable", attainable)]

    def _person(self, title: str, first: People) -> Row:
        found = first.ceiling
        (low, high) = first.span
        cells = {
            "in range": f"{number(found.value)} [{number(found.low)}, {number(found.high)}]",
            "of a person": "1",
            "above flat": "1",
        }
        told = (
            f"{found.persons} people of {first.dataset}, {low:.3g} to {high:.3g} {self.unit}, from "
            f"{number(min(found.scores))} to {number(max(found.scores))}; a flat CSF scores "
            f"{number(first.flat)} there"
        )
        if not first.determined:
            told += ", as people do, so that a fraction says nothing"
        record = {
            **{
                name: getattr(self, name) for name in ("experiment", "measure", "observer", "layer")
            },
            "responder": PERSON,
            "in_range": found.value,
            "in_range_low": found.low,
            "in_range_high": found.high,
            "confidence": self.confidence,
            "note": told,
        }
        entry = Entry(found.value, found.low, found.high, note=told)
        return Row(title, PERSON, PERSON, cells, record, {ALIGNMENT: entry}, [told])

    def notes(self) -> list[str]:
        """What the headings mean."""
        return [*_KEY] if self.people else [*_KEY, f"{self.experiment}: {NO_PEOPLE}"]


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
    measure, layer : str, optional
        As for `select`; without a layer all.
    confidence, resamples, seed
        As for `align`.

    Returns
    -------
    tuple of DetectionScore
        In the order of the observer's layers; empty where there is no human reference to compare
        with.

    Raises
    ------
    InputError, UnknownNameError
        As for `select`.
    """
    interval = {"confidence": confidence, "resamples": resamples, "seed": seed}
    layers = layers_of(result) if layer is None else [layer]
    found = (
        _score_layer(result, select(result, measure=measure, layer=name), interval)
        for name in layers
    )
    return tuple(one for one in found if one is not None)


def _score_layer(
    result: xr.Dataset, found: Responses, interval: dict[str, Any]
) -> DetectionScore | None:
    points = found.scored
    if points is None:
        return None

    (level, levels), *others = points.at.items()
    shown = (
        None if others or result.attrs.get("human_model") != "castle_csf" else conditions_of(result)
    )
    # Of the bootstrap over levels, intervals over people take the same size and seed.
    beside = () if shown is None else people(shown, levels, **interval)

    def scored(
        response: tuple[FloatArray, FloatArray], grid: tuple[FloatArray, FloatArray], floor: float
    ) -> ResponderScore:
        if not told(*response):
            attainable = statistics.attainable_alignment(
                np.broadcast_to(points.multiplier, response[0].shape)
            )
            none = statistics.Alignment(
                None, None, None, interval["confidence"], attainable, statistics.UNTOLD
            )
            slices = statistics.Slices(None, None, 0, None, None, 0, len(response[0]))
            return ResponderScore(none, slices, None, None, (_NOBODY,) * len(beside))
        return ResponderScore(
            statistics.align(points.multiplier, response[0], **interval),
            statistics.score_slices(points.multiplier, response[0]),
            *(
                _iso_responses(found, points, grid[0], floor)
                if grid[0].size and told(*grid)
                else (None, None)
            ),
            tuple(fraction_of(one, levels, points.multiplier, response[0]) for one in beside),
        )

    def responses(of: xr.Dataset, measure: str) -> FloatArray:
        at = select(of, measure=measure, layer=found.layer).scored
        return np.empty(0) if at is None else at.response

    def r_s(averaged: xr.Dataset) -> float | None:
        response = responses(averaged, found.measure)
        if len(np.unique(response)) < 2 or not told(response, points.status):
            return None
        return statistics.alignment_score(points.multiplier, response)

    sound = np.zeros(points.difference.shape), np.zeros(found.grid.shape)
    stimulus_axis = np.broadcast_to(found.difference, found.grid.shape)
    facts = (responses, points.status, interval, r_s, (statistics.fisher, np.tanh))
    return DetectionScore(
        score=scored(
            (points.response, points.status), (found.grid, found.status), found.noise_floor
        ),
        pixels=scored(
            (points.pixels, points.pixels_status), (found.pixels, found.pixels_status), 0.0
        ),
        contrast=scored((points.difference, sound[0]), (stimulus_axis, sound[1]), 0.0),
        people=beside,
        unit=unit_symbol(result[f"scored_{level}"].attrs),
        **layer_facts(result, found.layer, found.measure, *facts),
    )


def _iso_responses(
    found: Responses, points: Scored, grid: FloatArray, floor: float
) -> tuple[IsoResponse | None, IsoResponse | None]:
    at, rows = found.rows(grid)
    human = _human_at(found, points, at)
    known = np.isfinite(human)
    names = next(iter(at.values()), np.arange(len(rows)))[known]
    where = rows[known]
    if known.sum() < 2:
        return None, None
    return (
        fit_iso_response(
            names, found.difference, where, human[known], criterion="shape", floor=floor
        ),
        fit_iso_response(
            names, found.difference, where, human[known], criterion="absolute", floor=floor
        ),
    )


def _human_at(found: Responses, points: Scored, at: dict[str, FloatArray]) -> FloatArray:
    """Sensitivity of people in each row of the grid; NaN where it is not known."""
    rows = len(next(iter(at.values()), [0]))
    human = np.full(rows, np.nan)
    if found.curve is not None and tuple(at) == (found.curve[0],):
        level, where, sensitivity = found.curve
        # A rounding error must not cost the last condition of a grid that ends with the human
        # curve.
        inside = (at[level] >= where[0] * (1 - 1e-9)) & (at[level] <= where[-1] * (1 + 1e-9))
        scale = np.log10 if where[0] > 0 else np.asarray
        human[inside] = 10 ** np.interp(
            scale(at[level][inside]), scale(where), np.log10(sensitivity)
        )
        return human
    same = np.ones((rows, len(points.sensitivity)), dtype=bool)
    for name, values in at.items():
        same &= np.isclose(values[:, None], points.at[name], rtol=1e-9, atol=0)
    human[same.any(axis=1)] = points.sensitivity[same.argmax(axis=1)][same.any(axis=1)]
    return human


def _beside_people(of: Fraction) -> dict[str, str]:
    told = (
        "not determined" if of.in_range is not None and of.fraction is None else number(of.fraction)
    )
    # The pixels may do as a flat CSF does but for rounding, which is no minus 0.
    above = None if of.above_flat is None else round(of.above_flat, 2) + 0.0
    return {"in range": number(of.in_range), "of a person": told, "above flat": number(above)}


def _shift(shape: IsoResponse) -> str:
    low, high = shape.shift_range
    if high - low <= _SAME_SHIFT:
        return number(shape.shift, sign=True)
    return f"{number(low, 1, sign=True)} to {number(high, 1, sign=True)}"
