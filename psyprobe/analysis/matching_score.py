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
    Matches,
    MatchingError,
    Method,
    match_contrast,
    matching_error,
    normalise_responses,
)
from psyprobe.analysis.responses import as_difference, stored_measure
from psyprobe.analysis.variants import Spread, variant_spread
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    import xarray as xr

_NEEDED = ("response", "reference_response", "human_match", "noise_floor")


@dataclass(frozen=True)
class MatchingResponder:
    """The matches of one responder: the observer, or the images themselves.

    Attributes
    ----------
    error : MatchingError
        In log10 contrast units, with both definitions.
    saturated_low, saturated_high : int
        Matches that do not exist: the lowest contrast draws more than the reference, or no contrast draws as much.
        They enter the error with the end of the contrast range.
    ambiguous : int
        Matches at which more than one contrast draws as much as the reference.
    total : int
        Number of matches.
    """

    error: MatchingError
    saturated_low: int
    saturated_high: int
    ambiguous: int
    total: int

    @property
    def saturated(self) -> int:
        """Number of matches that do not exist."""
        return self.saturated_low + self.saturated_high

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON can hold them."""
        return {**vars(self), "error": self.error.to_dict()}


@dataclass(frozen=True)
class MatchingScore:
    """The score of a matching run, beside the scores of trivial responders.

    Attributes
    ----------
    observer, experiment, layer, measure : str
        What was scored.
    random_weights : bool
        True if the observer was not trained.
    method : "crossing" or "bracket"
        As for `match_contrast`.
    normalised : bool
        Whether responses were divided by those at contrast 1.
    score : MatchingResponder
        Of the observer.
    pixels : MatchingResponder or None
        Of the images themselves, without an encoder; None where they were not measured.
    constancy : MatchingError
        Of a responder that answers the contrast of the reference at every frequency.
    float32_floor : float or None
        Share of the responses to reference gratings (0 to 1) that the paper's float32 arccosine puts at its floor.
    noise_floor : float
        Response to identical images, run again.
    below_noise : float
        Share of the responses to reference gratings (0 to 1) that are not above the noise floor.
    seed, resamples : int
        Of the bootstrap.
    variants : Spread or None
        How far the mean error depends on which variants of the stimulus were shown; None for a run without variants.
    """

    observer: str
    experiment: str
    layer: str
    measure: str
    random_weights: bool
    method: Method
    normalised: bool
    score: MatchingResponder
    pixels: MatchingResponder | None
    constancy: MatchingError
    float32_floor: float | None
    noise_floor: float
    below_noise: float
    seed: int
    resamples: int
    variants: Spread | None = None

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON can hold them."""
        parts = (MatchingResponder, MatchingError, Spread)
        return {name: value.to_dict() if isinstance(value, parts) else value for name, value in vars(self).items()}

    def __str__(self) -> str:
        from psyprobe.analysis.table import score_table

        return score_table([self])


@dataclass(frozen=True)
class MatchedCurves:
    """Matches at all test frequencies of a matching result, for figures and scores.

    Attributes
    ----------
    x : ndarray of float64, shape (X,)
        Test frequencies, cpd.
    reference_contrast : ndarray of float64, shape (K,)
        Of the reference gratings.
    matches : Matches
        Of the observer, shape (K, X).
    x_measured : ndarray of float64, shape (F,)
        Frequencies at which people matched; among `x`.
    human : ndarray of float64, shape (K, F)
        Contrasts that people matched.
    layer, measure : str
        What was selected.
    """

    x: FloatArray
    reference_contrast: FloatArray
    matches: Matches
    x_measured: FloatArray
    human: FloatArray
    layer: str
    measure: str

    def measured(self) -> Matches:
        """The matches at the frequencies at which people matched, shape (K, F)."""
        at = np.argmin(np.abs(np.log(self.x[:, None] / self.x_measured)), axis=0)
        if not np.allclose(self.x[at], self.x_measured, rtol=1e-6, atol=0):
            raise InputError(
                f"people matched at {', '.join(f'{x:g}' for x in self.x_measured)} cpd, and the result was measured at "
                f"{', '.join(f'{x:g}' for x in self.x)} cpd; measure it at all of theirs"
            )
        found = self.matches
        return Matches(found.contrast[:, at], found.saturated[:, at], found.ambiguous[:, at])


def is_matching(result: xr.Dataset) -> bool:
    """Whether a result is that of a matching run.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run.

    Returns
    -------
    bool
        By its attribute "probe".
    """
    return getattr(result, "attrs", {}).get("probe") == "matching"


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

    Returns
    -------
    MatchedCurves
        With flags.

    Raises
    ------
    InputError
        If this is no matching result, several layers were run and none was named, or values are not finite.
    UnknownNameError
        If the measure or layer is not in the result.
    """
    measure = measure or str(result.attrs.get("score_measure", "angular"))
    layer = _layer(result, layer)
    curves, target = _responses(result, measure, layer)
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
) -> MatchingScore:
    """Score a matching result against human contrast matches.

    Parameters
    ----------
    result : xarray.Dataset
        Of a matching run.
    measure, layer, method, normalised
        As for `match_result`.
    confidence, resamples, seed
        As for `matching_error`.

    Returns
    -------
    MatchingScore
        Printing it gives a table.

    Raises
    ------
    InputError, UnknownNameError
        As for `match_result` and `matching_error`.
    """
    chosen: dict[str, Any] = {"measure": measure, "layer": layer, "method": method, "normalised": normalised}
    found = match_result(result, **chosen)
    _, target = _responses(result, found.measure, found.layer)
    floor = float(_values(result, "noise_floor", found.measure, found.layer))
    interval: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    pixels = None
    if {"pixels_response", "pixels_reference_response"} <= set(result.variables):
        curves, level = _responses(result, found.measure, None)
        pixels = _matched(result, curves, level, found.measure, "pixels", method, normalised)
    constant = np.broadcast_to(found.reference_contrast[:, None], found.human.shape)
    return MatchingScore(
        observer=str(result.attrs.get("observer", "")),
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
        seed=seed,
        resamples=resamples,
        variants=variant_spread(
            result,
            lambda averaged: _mean_error(match_result(averaged, **chosen)),
            transform=np.log,
            inverse=np.exp,
            confidence=confidence,
            seed=seed,
        ),
    )


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
    x, contrast = (result[name].values.astype(np.float64) for name in ("x", "contrast"))
    if _normalised(result, normalised):
        own = np.flatnonzero(np.isclose(x, float(result.attrs["reference_frequency"]), rtol=1e-6, atol=0))
        if not own.size:
            raise InputError(
                f"normalising needs the response of the reference frequency, {result.attrs['reference_frequency']:g} "
                f"cpd, at contrast 1, and it is not among the test frequencies; match without normalising"
            )
        normal = normalise_responses(contrast, curves)
        curves, target = normal, target / curves[own[0], -1]
    return MatchedCurves(
        x=x,
        reference_contrast=result["reference_contrast"].values.astype(np.float64),
        matches=match_contrast(contrast, curves, target, method=_method(result, method)),
        x_measured=result["x_measured"].values.astype(np.float64),
        human=result["human_match"].transpose("reference_contrast", "x_measured").values.astype(np.float64),
        layer=layer,
        measure=measure,
    )


def _method(result: xr.Dataset, method: Method | None) -> Method:
    return cast(Method, method or str(result.attrs.get("match_method", "crossing")))


def _normalised(result: xr.Dataset, normalised: bool | None) -> bool:
    return bool(result.attrs.get("match_normalised", 0)) if normalised is None else normalised


def _layer(result: xr.Dataset, layer: str | None) -> str:
    missing = [name for name in _NEEDED if name not in getattr(result, "variables", ())]
    if missing:
        raise InputError(
            f"this is no matching result: it lacks {', '.join(missing)}; pass what psyprobe.run() returned"
        )
    layers = [str(name) for name in result["layer"].values]
    if layer is None and len(layers) > 1:
        raise InputError(f"the result holds {len(layers)} layers ({', '.join(layers)}); name one with layer=")
    chosen = layers[0] if layer is None else layer
    if chosen not in layers:
        raise unknown_name("layer", chosen, layers)
    return chosen


def _responses(result: xr.Dataset, measure: str, layer: str | None) -> tuple[FloatArray, FloatArray]:
    """Curves (X, C) and responses to the references (K,), of a layer or, without one, of the pixels."""
    prefix = "" if layer is not None else "pixels_"
    return (
        _values(result, f"{prefix}response", measure, layer),
        _values(result, f"{prefix}reference_response", measure, layer),
    )


def _values(result: xr.Dataset, name: str, measure: str, layer: str | None) -> FloatArray:
    measures = [str(one) for one in result["measure"].values]
    stored = stored_measure(measures, measure)
    variable = result[name].isel(measure=measures.index(stored))
    if layer is not None:
        variable = variable.isel(layer=[str(one) for one in result["layer"].values].index(layer))
    if variable.ndim == 2:
        variable = variable.transpose("x", "contrast")
    values = variable.values.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(
            f"{int((~np.isfinite(values)).sum())} of {values.size} values of {name} are not finite; finish the run "
            f"before scoring it"
        )
    return as_difference(values, stored, measure)


def _share_at_float32_floor(result: xr.Dataset, layer: str) -> float | None:
    if not {"cosine", "angular_float32"} & {str(one) for one in result["measure"].values}:
        return None
    _, target = _responses(result, "angular_float32", layer)
    return float((target <= FLOAT32_FLOOR).mean())
