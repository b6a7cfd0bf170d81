"""The score of a matching run: how far an observer's contrast matches lie from those of people.

Everything here works from stored responses; no observer is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.detection import FLOAT32_FLOOR
from psyprobe.analysis.matching import (
    Estimate,
    Matches,
    MatchingError,
    Method,
    match_contrast,
    matching_error,
    normalise_responses,
)
from psyprobe.analysis.responses import chosen_layer, levels_of, measure_of, observer_of, values_of
from psyprobe.analysis.score import CONTRAST, OBSERVER, PIXELS, Entry, Metric, Recorded, Row, many, percent
from psyprobe.analysis.table import LayerScore
from psyprobe.analysis.variants import Spread, variant_columns, variant_spread
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

ERROR_MEAN = Metric("error_mean", "Error (log$_{10}$ contrast)", more_is_better=False, digits=3, suffix="mean")
ERROR_POOLED = Metric("error_pooled", "Error (log$_{10}$ contrast)", more_is_better=False, digits=3, suffix="pooled")

_KEY = (
    "mean, pooled: root mean square error of matched contrast, log10 units (0.3 is a factor of two), of each "
    "frequency and then averaged, or of all matches at once, with intervals ({confidence} %); smaller is better. "
    "sat. high, sat. low: saturated matches, which do not exist because no contrast draws as much as the reference, or "
    "because the lowest draws more; they enter the errors with the end of the contrast range. ambiguous: matches of "
    "more than one contrast. f32 floor, noise: share of responses to the "
    "reference that the paper's float32 arithmetic puts at its floor, and that are not above the noise floor."
)

_NEEDED = ("response", "reference_response", "human_match", "noise_floor")


@dataclass(frozen=True)
class MatchingResponder(Recorded):
    """The matches of one responder: the observer, or the images themselves."""

    #: In log10 contrast units, with both definitions.
    error: MatchingError
    #: Matches that do not exist since the lowest contrast draws more than the reference; they enter the error with the
    #: end of the contrast range, as those of `saturated_high` do.
    saturated_low: int
    #: Matches that do not exist since no contrast draws as much.
    saturated_high: int
    #: Matches at which more than one contrast draws as much as the reference.
    ambiguous: int
    #: Number of matches.
    total: int

    @property
    def saturated(self) -> int:
        """Number of matches that do not exist."""
        return self.saturated_low + self.saturated_high


@dataclass(frozen=True)
class MatchingScore(LayerScore):
    """The score of a matching run, beside the scores of trivial responders."""

    #: As for `match_contrast`.
    method: Method
    #: Whether responses were divided by those at contrast 1.
    normalised: bool
    #: Of the observer.
    score: MatchingResponder
    #: Of the images themselves, without an encoder; None where they were not measured.
    pixels: MatchingResponder | None
    #: Of a responder that answers the contrast of the reference at every frequency.
    constancy: MatchingError
    #: Share of the responses to reference gratings (0 to 1) that the paper's float32 arccosine puts at its floor.
    float32_floor: float | None
    #: Response to identical images, run again.
    noise_floor: float
    #: Share of the responses to reference gratings (0 to 1) that are not above the noise floor.
    below_noise: float
    #: Of the bootstrap.
    seed: int
    #: Of the bootstrap.
    resamples: int
    #: How far the mean error depends on which variants of the stimulus were shown; None for a run without variants.
    variants: Spread | None = None

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        return self.constancy.mean.confidence

    def rows(self) -> list[Row]:
        """The observer, the pixels where they were measured, and perfect constancy."""
        how = [self.measure, *["bracket"] * (self.method == "bracket"), *["normalised"] * self.normalised]
        title = f"{self.experiment} ({', '.join(how)})"
        found: list[tuple[str, str, str, MatchingError, MatchingResponder | None]] = [
            (OBSERVER, "", "observer", self.score.error, self.score)
        ]
        if self.pixels is not None:
            found.append((PIXELS, PIXELS, "pixels", self.pixels.error, self.pixels))
        found.append((CONTRAST, "perfect constancy", "constancy", self.constancy, None))
        return [self._row(title, *one) for one in found]

    def _row(
        self, title: str, responder: str, label: str, short: str, error: MatchingError, found: MatchingResponder | None
    ) -> Row:
        own = responder == OBSERVER
        record = {
            **self.about(short),
            "confidence": error.mean.confidence,
            "method": self.method,
            "normalised": int(self.normalised),
            "error_mean": error.mean.value,
            "error_mean_low": error.mean.low,
            "error_mean_high": error.mean.high,
            "error_pooled": error.pooled.value,
            "error_pooled_low": error.pooled.low,
            "error_pooled_high": error.pooled.high,
            "saturated_low": found and found.saturated_low,
            "saturated_high": found and found.saturated_high,
            "ambiguous": found and found.ambiguous,
            "matches": found and found.total,
            "float32_floor": self.float32_floor if own else None,
            "noise_floor": self.noise_floor if own else None,
            "below_noise": self.below_noise if own else None,
            **variant_columns(self.variants if own else None),
        }
        counts = {"sat. high": "saturated_high", "sat. low": "saturated_low", "ambiguous": "ambiguous"}
        cells = {
            "mean [interval]": _interval(error.mean),
            "pooled [interval]": _interval(error.pooled),
            **{
                heading: "" if found is None else f"{getattr(found, name)}/{found.total}"
                for heading, name in counts.items()
            },
            "f32 floor": percent(self.float32_floor) if own else "",
            "noise": percent(self.below_noise) if own else "",
        }
        flags, note, floor = "", "", None
        if own:
            flags = "s" * (self.score.saturated > 0) + "a" * (self.score.ambiguous > 0)
            flags += many(self.float32_floor, "f") + many(self.below_noise, "n")
            said = [f"{self.score.saturated} of {self.score.total} matches saturated"] * (self.score.saturated > 0)
            note = "; ".join([*said, *[f"{self.score.ambiguous} ambiguous"] * (self.score.ambiguous > 0)])
            floor = self.float32_floor
        entries = {
            metric: Entry(estimate.value, estimate.low, estimate.high, flags, floor, note)
            for metric, estimate in ((ERROR_MEAN, error.mean), (ERROR_POOLED, error.pooled))
        }
        notes = [f"mean error of the {self.variants}"] * (own and self.variants is not None)
        return Row(title, responder, label, cells, record, entries, notes)

    def notes(self) -> list[str]:
        """What the headings mean."""
        return [_KEY]


@dataclass(frozen=True)
class MatchedCurves:
    """Matches at all test frequencies of a matching result, for figures and scores."""

    #: Of the tests, cpd, shape (F,).
    frequency: FloatArray
    #: Of the reference gratings, shape (K,).
    reference_contrast: FloatArray
    #: Of the observer, shape (K, F).
    matches: Matches
    #: Frequencies at which people matched, shape (H,); among `frequency`.
    measured_frequency: FloatArray
    #: Contrasts that people matched, shape (K, H).
    human: FloatArray
    layer: str
    measure: str

    def measured(self) -> Matches:
        """The matches at the frequencies at which people matched, shape (K, H)."""
        at = np.argmin(np.abs(np.log(self.frequency[:, None] / self.measured_frequency)), axis=0)
        if not np.allclose(self.frequency[at], self.measured_frequency, rtol=1e-6, atol=0):
            raise InputError(
                f"people matched at {', '.join(f'{f:g}' for f in self.measured_frequency)} cpd, and the result was "
                f"measured at {', '.join(f'{f:g}' for f in self.frequency)} cpd; measure it at all of theirs"
            )
        found = self.matches
        return Matches(found.contrast[:, at], found.saturated[:, at], found.ambiguous[:, at])


def match_result(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    method: Method | None = None,
    normalised: bool | None = None,
) -> MatchedCurves:
    """Match contrasts from the responses of a matching run.

    Parameters
    ----------
    result : xarray.Dataset
        Of a matching run.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        Distance between features; without it the measure that the experiment names, else "angular".
    layer : str, optional
        Name of a layer; needed where the result holds more than one.
    method : {"crossing", "bracket"}, optional
        As for `match_contrast`; without it what the experiment names, else "crossing".
    normalised : bool, optional
        Divide each response by that of its frequency at contrast 1; without it what the experiment says, else not.

    Raises
    ------
    InputError
        If this is no matching result, several layers were run and none was named, or values are not finite.
    UnknownNameError
        If the measure or layer is not in the result.
    """
    measure, layer = measure_of(result, measure), chosen_layer(matching_layers(result), layer)
    curves, target = _responses(result, measure, layer, "")
    return _matched(result, curves, target, measure, layer, method, normalised)


def score_matching(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    method: Method | None = None,
    normalised: bool | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[MatchingScore, ...]:
    """Score a matching result against human contrast matches, layer by layer.

    Parameters
    ----------
    result, measure, method, normalised
        As for `match_result`.
    layer : str, optional
        Name of a layer; without it all.
    confidence, resamples, seed
        As for `matching_error`.

    Returns
    -------
    tuple of MatchingScore
        In the order of the observer's layers.

    Raises
    ------
    InputError, UnknownNameError
        As for `match_result` and `matching_error`.
    """
    interval: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    layers = matching_layers(result) if layer is None else [layer]
    return tuple(_score_layer(result, measure, name, method, normalised, interval) for name in layers)


def _score_layer(
    result: xr.Dataset,
    measure: str | None,
    layer: str,
    method: Method | None,
    normalised: bool | None,
    interval: dict[str, Any],
) -> MatchingScore:
    chosen: dict[str, Any] = {"measure": measure, "layer": layer, "method": method, "normalised": normalised}
    found = match_result(result, **chosen)
    _, target = _responses(result, found.measure, found.layer, "")
    floor = float(values_of(result, "noise_floor", found.measure, found.layer))
    pixels = None
    if {"pixels_response", "pixels_reference_response"} <= set(result.variables):
        curves, level = _responses(result, found.measure, found.layer, "pixels_")
        pixels = _matched(result, curves, level, found.measure, "pixels", method, normalised)
    constant = np.broadcast_to(found.reference_contrast[:, None], found.human.shape)
    return MatchingScore(
        observer=observer_of(result),
        experiment=str(result.attrs.get("experiment", "")),
        layer=found.layer,
        measure=found.measure,
        random_weights=bool(result.attrs.get("random_weights", 0)),
        method=_method(result, method),
        normalised=_normalised(result, normalised),
        score=_responder(found, interval),
        pixels=None if pixels is None else _responder(pixels, interval),
        constancy=matching_error(constant, found.human, **interval),
        float32_floor=_share_at_float32_floor(result, found.layer),
        noise_floor=floor,
        below_noise=float((target <= floor).mean()),
        seed=interval["seed"],
        resamples=interval["resamples"],
        variants=variant_spread(
            result,
            lambda averaged: _mean_error(match_result(averaged, **chosen)),
            transform=np.log,
            inverse=np.exp,
            confidence=interval["confidence"],
            seed=interval["seed"],
        ),
    )


def matching_layers(result: xr.Dataset) -> list[str]:
    """Names of the layers in a matching result, in the observer's order; `InputError` if it is none."""
    missing = [name for name in _NEEDED if name not in getattr(result, "variables", ())]
    if missing:
        raise InputError(
            f"this is no matching result: it lacks {', '.join(missing)}; pass what psyprobe.run() returned"
        )
    return [str(name) for name in result["layer"].values]


def _mean_error(found: MatchedCurves) -> float:
    return matching_error(found.measured().contrast, found.human, resamples=100).mean.value


def _responder(found: MatchedCurves, interval: dict[str, Any]) -> MatchingResponder:
    matches = found.measured()
    return MatchingResponder(
        error=matching_error(matches.contrast, found.human, **interval),
        saturated_low=int((matches.saturated < 0).sum()),
        saturated_high=int((matches.saturated > 0).sum()),
        ambiguous=int(matches.ambiguous.sum()),
        total=matches.ambiguous.size,
    )


def _matched(
    result: xr.Dataset,
    curves: FloatArray,
    target: FloatArray,
    measure: str,
    layer: str,
    method: Method | None,
    normalised: bool | None,
) -> MatchedCurves:
    (level,) = levels_of(result)
    frequency, contrast = (result[name].values.astype(np.float64) for name in (level, result.attrs["difference"]))
    if _normalised(result, normalised):
        own = np.flatnonzero(np.isclose(frequency, float(result.attrs["reference_frequency"]), rtol=1e-6, atol=0))
        if not own.size:
            raise InputError(
                f"normalising needs the response of the reference frequency, {result.attrs['reference_frequency']:g} "
                f"cpd, at contrast 1, and it is not among the test frequencies; match without normalising"
            )
        normal = normalise_responses(contrast, curves)
        curves, target = normal, target / curves[own[0], -1]
    measured = f"measured_{level}"
    return MatchedCurves(
        frequency=frequency,
        reference_contrast=result["reference_contrast"].values.astype(np.float64),
        matches=match_contrast(contrast, curves, target, method=_method(result, method)),
        measured_frequency=result[measured].values.astype(np.float64),
        human=result["human_match"].transpose("reference_contrast", measured).values.astype(np.float64),
        layer=layer,
        measure=measure,
    )


def _method(result: xr.Dataset, method: Method | None) -> Method:
    return cast(Method, method or str(result.attrs.get("match_method", "crossing")))


def _normalised(result: xr.Dataset, normalised: bool | None) -> bool:
    return bool(result.attrs.get("match_normalised", 0)) if normalised is None else normalised


def _responses(result: xr.Dataset, measure: str, layer: str, whose: str) -> tuple[FloatArray, FloatArray]:
    """Curves (F, C) and responses to the references (K,), of a layer or of the pixels ("pixels_")."""
    order = [*levels_of(result), str(result.attrs["difference"]), "reference_contrast"]
    return (
        values_of(result, f"{whose}response", measure, layer, order),
        values_of(result, f"{whose}reference_response", measure, layer, order),
    )


def _share_at_float32_floor(result: xr.Dataset, layer: str) -> float | None:
    if not {"cosine", "angular_float32"} & {str(one) for one in result["measure"].values}:
        return None
    _, target = _responses(result, "angular_float32", layer, "")
    return float((target <= FLOAT32_FLOOR).mean())


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.2f}, {estimate.high:.2f}]"
