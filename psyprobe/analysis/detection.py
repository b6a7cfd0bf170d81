"""Score a detection run by its alignment with human sensitivity, and what that consists of.

Everything here works from stored responses; no observer is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis import alignment as statistics
from psyprobe.analysis.comparison.references import (
    REFERENCES,
    LevelGrid,
    References,
    ScoredSlices,
    score_references,
)
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.direction import can_be_scored
from psyprobe.analysis.human_observer import (
    Fraction,
    People,
    fraction_of,
    measured_people,
    people,
    scores_in_range,
)
from psyprobe.analysis.iso_response import IsoResponse, fit_iso_response, within
from psyprobe.analysis.responses import (
    LayerScore,
    Responses,
    Scored,
    layer_facts,
    layers_of,
    mesh,
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
    interval_note,
    interval_text,
    number,
    open_ends_text,
    reference_record,
    takes_levels,
    telling_digits,
)
from psyprobe.analysis.variants import sample_of
from psyprobe.files.json_types import JsonObject
from psyprobe.files.remembering import remembered
from psyprobe.files.units import unit_symbol
from psyprobe.human.leave_one_out import fitted_studies

if TYPE_CHECKING:
    import xarray as xr

ALIGNMENT: Metric = Metric(
    "alignment", "Alignment $r_s$", more_is_better=True, digits=2
)

_KEY = (
    "r_s: Spearman correlation of the response with the multiple of the human threshold.",
    "monotone: mean r_s within one slice: one value of every level but contrast.",
    "level: how uneven the response is along the human curve.",
    "shape, shift: the iso-response curve most like the human curve: how far it departs from it "
    "once shifted, and by how much it is shifted. A range stands where several shifts fit alike.",
    "RMSE: of the iso-response curve nearest to the human curve, not shifted.",
    "reached: values at which that curve exists. Without a level grid (--score-only) there is "
    "no such curve.",
    "level, shape, shift and RMSE are in log10 units of contrast: 0.3 is a factor of two.",
    "in range: r_s on the levels at which single people were measured.",
    "of a person: that, over what one of these people scores there, averaged on Fisher's z. 1 is "
    "as good as another person; a model may exceed it.",
    "above flat: the same on a scale from an observer with a flat CSF (0) to a person (1).",
    f"references: {REFERENCES}",
    "f32 floor, noise: share of score points at the floor of the paper's float32 arithmetic, and "
    "share not above the noise floor.",
)

#: Shifts that differ by more than this, a factor of two, are given as their range.
_SAME_SHIFT = 0.3


@dataclass(frozen=True)
class ResponderScore(Recorded):
    """All statistics of one responder: the observer, or a baseline."""

    #: Spearman's r_s at multiples of human thresholds, with its interval and attainable maximum.
    alignment: statistics.Alignment
    #: Parts of the alignment: monotonicity within each slice, unevenness between them.
    slices: statistics.Slices
    #: The iso-response curve whose shape resembles the human curve best, and its shift. None if no
    #: level is crossed in two conditions or more, or the run was without a level grid.
    shape: IsoResponse | None
    #: The iso-response curve that lies nearest to the human curve, shift included.
    absolute: IsoResponse | None
    #: Beside the persons of each data set of `DetectionScore.people`.
    fractions: tuple[Fraction, ...] = ()
    #: The alignment with other human references; None where castleCSF is not the reference, or
    #: several levels vary.
    references: References | None = None

    def cells(self) -> dict[str, str]:
        """Format the statistics as table cells, by heading."""
        alignment = self.alignment
        slices = self.slices
        shape = self.shape
        absolute = self.absolute
        return {
            "r_s [interval]": interval_text(
                alignment.value,
                alignment.low,
                alignment.high,
                telling_digits(alignment.low, alignment.high, 2),
            ),
            **(
                {}
                if self.references is None
                else {"references": self.references.text()}
            ),
            "monotone": number(slices.monotonicity),
            "level": number(slices.unevenness),
            "shape": number(None if shape is None else shape.shape_rmse),
            "shift": "-" if shape is None else _format_shift(shape),
            "RMSE": number(None if absolute is None else absolute.rmse),
            "reached": "-" if shape is None else f"{shape.reached}/{shape.total}",
            **({} if self.first is None else _format_fraction(self.first)),
        }

    @property
    def first(self) -> Fraction | None:
        """Return the score as a fraction of a person's in the first data set, or None."""
        return self.fractions[0] if self.fractions else None

    def remarks(self, gridded: bool) -> list[str]:
        """List in sentences what reduces the meaning of the numbers."""
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
            count = f"at {shape.recrossed} of {shape.reached} values"
            notes.append(
                f"{count} the response falls below the level again at higher contrast"
            )
        return notes

    def record(self) -> JsonObject:
        """Collect all single-valued statistics as a flat record."""
        alignment = self.alignment
        slices = self.slices
        shape = self.shape
        absolute = self.absolute
        return {
            "alignment": alignment.value,
            "alignment_low": alignment.low,
            "alignment_high": alignment.high,
            "confidence": alignment.confidence,
            "interval_over": alignment.over,
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
            **{
                name: shape and getattr(shape, name)
                for name in ("reached", "total", "recrossed")
            },
            **vars(self.first or _NOBODY),
            **reference_record(self.references),
        }


_NOBODY = Fraction()


@dataclass(frozen=True)
class DetectionScore(LayerScore):
    """The score of a detection run, beside the scores of trivial responders."""

    #: Score of the observer.
    score: ResponderScore
    #: Score of the images themselves, without an encoder, by the same measure.
    pixels: ResponderScore
    #: Score of a responder whose response is the stimulus contrast (or other difference), the
    #: same at every level.
    contrast: ResponderScore
    #: Single people who were measured under the conditions of the experiment or near them, by data
    #: set, that to compare with first at the head; empty where there are none.
    people: tuple[People, ...]
    #: Unit of the level.
    unit: str

    @property
    def confidence(self) -> float:
        """Return the confidence level of all intervals."""
        return self.score.alignment.confidence

    def rows(self) -> list[Row]:
        """Build the table rows of observer, pixels, contrast alone, one person, and best
        attainable.
        """
        title = f"{self.experiment} ({self.measure})"
        # Contrast alone has curves wherever a grid was shown, and the key says what a run without
        # one lacks.
        gridded = self.contrast.shape is not None
        rows = []
        for responder, label, short, score in (
            (OBSERVER, "", "observer", self.score),
            (PIXELS, PIXELS, "pixels", self.pixels),
            (CONTRAST, "contrast alone", "contrast", self.contrast),
        ):
            alignment = score.alignment
            entry = Entry(
                alignment.value,
                alignment.low,
                alignment.high,
                of_person=score.first,
                references=score.references,
                over=alignment.over,
                sample=alignment.sample,
            )
            row = Row(
                title,
                responder,
                label,
                score.cells(),
                score.record(),
                {ALIGNMENT: entry},
                score.remarks(gridded),
            )
            rows.append(self.row(row, short, "r_s"))
        rows += [self._person_row(title, self.people[0])] if self.people else []
        attainable = {"r_s [interval]": number(self.score.alignment.attainable, 3)}
        return [*rows, Row(title, "attainable", "attainable", attainable)]

    def _person_row(self, title: str, first: People) -> Row:
        """Build the table row that says how well one person agrees with the others."""
        noise_ceiling = first.ceiling
        (low, high) = first.span
        cells = {
            "in range": interval_text(
                noise_ceiling.value, noise_ceiling.low, noise_ceiling.high
            ),
            "of a person [interval]": "1",
            "above flat [interval]": "1",
        }
        worst = number(min(noise_ceiling.scores))
        best = number(max(noise_ceiling.scores))
        refit = ""
        if first.dataset in fitted_studies():
            published = number(first.published.value)
            refit = f" with castleCSF refitted without them ({published} as published)"
        note = (
            f"{noise_ceiling.persons} people of {first.dataset}, {low:.3g} to {high:.3g} "
            f"{self.unit}, from {worst} to {best}{refit}; a flat CSF scores {number(first.flat)} "
            "there"
        )
        if not first.determined:
            note += ", as people do, so that a fraction says nothing"
        record = {
            **self.about,
            "responder": PERSON,
            "in_range": noise_ceiling.value,
            "in_range_low": noise_ceiling.low,
            "in_range_high": noise_ceiling.high,
            "in_range_published": first.published.value,
            "confidence": self.confidence,
            "note": note,
        }
        entry = Entry(
            noise_ceiling.value,
            noise_ceiling.low,
            noise_ceiling.high,
            note=note,
            over="people",
        )
        return Row(title, PERSON, PERSON, cells, record, {ALIGNMENT: entry}, [note])

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        populations = [self.score.alignment.over, *["people"] * bool(self.people)]
        intervals = [interval_note(over) for over in populations if over]
        first = self.score.first
        if first is not None and first.fraction_over:
            note = interval_note(first.fraction_over)
            intervals.append(f"of a person, above flat: {note}")
        remark = [] if self.people else [f"{self.experiment}: {NO_PEOPLE}"]
        return [*_KEY, *intervals, *remark]


# Pixels and differences are the same beside every observer, and are scored once.
_align_variants = remembered(statistics.align_variants)
_score_slices = remembered(statistics.score_slices)
_fit_iso_response = remembered(fit_iso_response)
_fraction_of = remembered(fraction_of)
_scores_in_range = remembered(scores_in_range)
_score_references = remembered(score_references)
_people = remembered(people)


def score_detection(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    over: str = "variants",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[DetectionScore, ...]:
    """Score a detection result against human sensitivity, one score for each layer.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    measure, layer : str, optional
        As for `select`; without a layer all.
    over : {"variants", "levels"}, optional
        What the interval of a single variant speaks of: by default it has none, but for published
        experiments; over levels it says what others of this range would give if they were
        unrelated, which they are not.
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
    by_levels = takes_levels(str(result.attrs.get("experiment", "")), over)
    scores = (
        _score_layer(
            result, select(result, measure=measure, layer=name), interval, by_levels
        )
        for name in layers
    )
    return tuple(score for score in scores if score is not None)


def _score_layer(
    result: xr.Dataset, selected: Responses, interval: JsonObject, by_levels: bool
) -> DetectionScore | None:
    """Score one layer's responses against human sensitivity; None if none are to score."""
    points = selected.scored
    if points is None:
        return None

    (level, levels), *other_levels = points.at.items()
    conditions = (
        None
        if other_levels or result.attrs.get("human_model") != "castle_csf"
        else conditions_of(result)
    )
    # Of the bootstrap over levels, intervals over people take the same size and seed.
    persons = () if conditions is None else _people(conditions, levels, **interval)
    reference_people = None
    if conditions is not None and persons:
        reference_people = measured_people(
            conditions, persons[0].dataset, (levels.min(), levels.max())
        )

    multiplier = points.multiplier
    confidence = interval["confidence"]

    def scored(
        response: FloatArray,
        status: FloatArray,
        grid: FloatArray,
        grid_status: FloatArray,
        responder: str,
        floor: float = 0.0,
    ) -> ResponderScore:
        if not can_be_scored(response, status):
            attainable = statistics.attainable_alignment(
                np.broadcast_to(multiplier, response.shape)
            )
            none = statistics.Alignment(
                None, None, None, interval["confidence"], attainable, statistics.UNTOLD
            )
            slices = statistics.Slices(None, None, 0, None, None, 0, len(response))
            return ResponderScore(none, slices, None, None, (_NOBODY,) * len(persons))
        shape = absolute = None
        if grid.size and can_be_scored(grid, grid_status):
            shape, absolute = _iso_responses(selected, points, grid, floor)
        return ResponderScore(
            _align_variants(
                multiplier, response, samples[responder], by_levels, interval
            ),
            _score_slices(multiplier, response),
            shape,
            absolute,
            tuple(
                _fraction_of(dataset, sample, confidence)
                for dataset, sample in zip(persons, in_ranges(responder), strict=True)
            ),
            references(responder, grid),
        )

    def responses(of: xr.Dataset, measure: str) -> FloatArray:
        if measure == selected.measure:
            return points.response
        at = select(of, measure=measure, layer=selected.layer).scored
        return np.empty(0) if at is None else at.response

    by_variant = {
        "response": points.variants,
        "pixels": points.pixels_variants,
        "difference": points.difference[None],
    }

    def scores_of(
        variants: FloatArray, dataset: People | None = None
    ) -> list[float | None]:
        # A variant is sound where the mean of all is.
        if not all(can_be_scored(response, points.status) for response in variants):
            return [None]
        if dataset is not None:
            return _scores_in_range(dataset, levels, multiplier, variants)
        scores = statistics.alignment_scores(multiplier, variants)
        return [None if np.isnan(score) else score for score in scores.tolist()]

    def sample_variants(responder: str, dataset: People | None = None) -> Sample | None:
        count = result.sizes.get("variant", 0)
        scores = scores_of(by_variant[responder], dataset) if count else []
        # What no variant changes is scored once.
        if len(scores) == 1:
            scores = scores * count
        return sample_of(result, scores, "z")

    def in_ranges(responder: str) -> list[Sample | None]:
        samples = []
        for dataset in persons:
            sample = sample_variants(responder, dataset)
            if sample is None:
                (value,) = scores_of(getattr(points, responder)[None], dataset)
                if value is not None:
                    sample = Sample("variants", ("shown",), (value,), "z")
            samples.append(sample)
        return samples

    def references(responder: str, grid: FloatArray) -> References | None:
        if conditions is None:
            return None
        slices = ScoredSlices(multiplier, points.difference, by_variant[responder])
        level_grid = None
        if grid.size and list(selected.levels) == [level]:
            grid_levels = selected.levels[level]
            level_grid = LevelGrid(grid_levels, selected.difference, grid)
        return _score_references(
            conditions, levels, slices, level_grid, reference_people, confidence
        )

    responders = ("response", "pixels", "difference")
    samples = {responder: sample_variants(responder) for responder in responders}
    grid = selected.grid
    stimulus_axis = np.broadcast_to(selected.difference, grid.shape)
    facts = (responses, points.status, interval, samples["response"])
    return DetectionScore(
        score=scored(
            points.response,
            points.status,
            grid,
            selected.status,
            "response",
            selected.noise_floor,
        ),
        pixels=scored(
            points.pixels,
            points.pixels_status,
            selected.pixels,
            selected.pixels_status,
            "pixels",
        ),
        contrast=scored(
            points.difference,
            np.zeros(points.difference.shape),
            stimulus_axis,
            np.zeros(grid.shape),
            "difference",
        ),
        people=persons,
        unit=unit_symbol(result[f"scored_{level}"].attrs),
        **layer_facts(result, selected.layer, selected.measure, *facts),
    )


def _iso_responses(
    selected: Responses, points: Scored, grid: FloatArray, floor: float
) -> tuple[IsoResponse | None, IsoResponse | None]:
    """Fit contours of equal response to the human CSF, of any height and at its own height."""
    at = mesh(selected.levels)
    rows = grid.reshape(-1, len(selected.difference))
    human = _human_at(selected, points, at, len(rows))
    finite = np.isfinite(human)
    if finite.sum() < 2:
        return None, None
    fit = partial(
        _fit_iso_response,
        next(iter(at.values()), np.arange(len(rows)))[finite],
        selected.difference,
        rows[finite],
        human[finite],
        floor=floor,
    )
    return fit(criterion="shape"), fit(criterion="absolute")


def _human_at(
    selected: Responses, points: Scored, at: dict[str, FloatArray], rows: int
) -> FloatArray:
    """Look up human sensitivity for each row of the grid; NaN where it is not known."""
    if selected.curve is not None and list(at) == [selected.curve[0]]:
        level, curve_values, sensitivity = selected.curve
        human = np.full(rows, np.nan)
        # A rounding error must not cost the last condition of a grid that ends with the human
        # curve.
        inside = within(at[level], curve_values[0], curve_values[-1])
        scale = np.log10 if curve_values[0] > 0 else np.asarray
        human[inside] = 10 ** np.interp(
            scale(at[level][inside]), scale(curve_values), np.log10(sensitivity)
        )
        return human
    matching = np.ones((rows, len(points.sensitivity)), dtype=bool)
    for name, values in at.items():
        matching &= np.isclose(values[:, None], points.at[name], rtol=1e-9, atol=0)
    matched = points.sensitivity[matching.argmax(axis=1)]
    return np.where(matching.any(axis=1), matched, np.nan)


def _format_fraction(score: Fraction) -> dict[str, str]:
    """Format a score as a fraction of a person's and its gain over a flat CSF, as cells."""
    undetermined = score.in_range is not None and score.fraction is None
    gain_ends = open_ends_text(score.above_flat_low, score.above_flat_high)
    gain = number(score.above_flat) + gain_ends
    return {
        "in range": number(score.in_range),
        "of a person [interval]": "not determined" if undetermined else score.text(),
        "above flat [interval]": "-" if score.above_flat is None else gain,
    }


def _format_shift(shape: IsoResponse) -> str:
    """Format the shift of the best contour, or its range where many are equally good."""
    low, high = shape.shift_range
    if high - low <= _SAME_SHIFT:
        return number(shape.shift, sign=True)
    return f"{number(low, 1, sign=True)} to {number(high, 1, sign=True)}"
