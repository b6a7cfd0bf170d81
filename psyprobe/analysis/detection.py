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
from psyprobe.analysis.responses import Responses, layers_of, select
from psyprobe.analysis.slices import Slices, score_slices
from psyprobe.analysis.variants import Spread, variant_spread

if TYPE_CHECKING:
    import xarray as xr

#: Angles that the paper's float32 arccosine gives as 0 or as its smallest value other than 0, over pi.
FLOAT32_FLOOR = 1.1e-4


@dataclass(frozen=True)
class ResponderScore:
    """All statistics of one responder: the observer, or a baseline.

    Attributes
    ----------
    alignment : Alignment
        Spearman's r_s along the human curve, with its interval and attainable maximum.
    slices : Slices
        What the alignment is made of: monotonicity within each x, levelness between them.
    shape : IsoResponse or None
        The iso-response curve whose shape resembles the human curve best, and its shift. None if no level is
        crossed at two x or more, or the run was without a level grid.
    absolute : IsoResponse or None
        The iso-response curve that lies nearest to the human curve, shift included.
    """

    alignment: Alignment
    slices: Slices
    shape: IsoResponse | None
    absolute: IsoResponse | None

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON can hold them."""
        return {name: None if part is None else part.to_dict() for name, part in vars(self).items()}


@dataclass(frozen=True)
class DetectionScore:
    """The score of a detection run, beside the scores of trivial responders.

    Attributes
    ----------
    observer, experiment, layer, measure : str
        What was scored.
    random_weights : bool
        True if the observer was not trained, so that the score says nothing about a trained one.
    score : ResponderScore
        Of the observer.
    pixels : ResponderScore
        Of the images themselves, without an encoder, by the same measure.
    contrast : ResponderScore
        Of a responder whose response is the stimulus contrast, the same at every x.
    float32_floor : float or None
        Share of the score points (0 to 1) that the paper's float32 arccosine would have put at 0 or at its
        smallest value, 1.1e-4: as stored by experiments that use it, else by rounding the stored cosine.
    noise_floor : float
        Response to identical images, run again.
    below_noise : float
        Share of the score points (0 to 1) with responses not above the noise floor.
    seed, resamples : int
        Of the bootstrap.
    variants : Spread or None
        How far r_s depends on which variants of the stimulus were shown; None for a run without variants.
    """

    observer: str
    experiment: str
    layer: str
    measure: str
    random_weights: bool
    score: ResponderScore
    pixels: ResponderScore
    contrast: ResponderScore
    float32_floor: float | None
    noise_floor: float
    below_noise: float
    seed: int
    resamples: int
    variants: Spread | None = None

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON can hold them."""
        parts = (ResponderScore, Spread)
        return {name: value.to_dict() if isinstance(value, parts) else value for name, value in vars(self).items()}

    def __str__(self) -> str:
        from psyprobe.analysis.table import score_table

        return score_table([self])


def score(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> DetectionScore:
    """Score a detection result against human contrast sensitivity.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        Distance between features; without it the measure that the experiment names, else "angular".
        "angular_float32" is S_ac in the paper's arithmetic.
    layer : str, optional
        Name of a layer; needed where the result holds more than one (see `score_layers`).
    confidence : float, optional
        Of the interval, in (0, 1).
    resamples : int, optional
        Number of bootstrap samples.
    seed : int, optional
        Of the bootstrap.

    Returns
    -------
    DetectionScore
        Printing it gives a table.

    Raises
    ------
    InputError
        If this is no detection result, several layers were run and none was named, or values are not finite.
    UnknownNameError
        If the measure or layer is not in the result.

    See Also
    --------
    score_layers : one score for each layer.
    score_table : several scores as text, Markdown, LaTeX, CSV or JSON.
    """
    wanted = measure or str(result.attrs.get("score_measure", "angular"))
    found = select(result, measure=wanted, layer=layer)

    def scored(along: FloatArray, grid: FloatArray, floor: float) -> ResponderScore:
        return _score_responder(found, along, grid, floor, confidence, resamples, seed)

    return DetectionScore(
        observer=str(result.attrs.get("observer", "")),
        experiment=str(result.attrs.get("experiment", "")),
        layer=found.layer,
        measure=found.measure,
        random_weights=bool(result.attrs.get("random_weights", 0)),
        score=scored(found.along, found.grid, found.noise_floor),
        pixels=scored(found.pixels_along, found.pixels_grid, 0.0),
        contrast=scored(found.along_contrast, np.broadcast_to(found.contrast, found.grid.shape), 0.0),
        float32_floor=_share_at_float32_floor(result, found.layer),
        noise_floor=found.noise_floor,
        below_noise=float((found.along <= found.noise_floor).mean()),
        seed=seed,
        resamples=resamples,
        variants=_by_variant(result, found, confidence, seed),
    )


def score_layers(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> list[DetectionScore]:
    """Score each layer of a detection result.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    measure, confidence, resamples, seed
        As for `score`.

    Returns
    -------
    list of DetectionScore
        In the order of the observer's layers.

    Raises
    ------
    InputError
        As for `score`.
    """
    return [
        score(result, measure=measure, layer=layer, confidence=confidence, resamples=resamples, seed=seed)
        for layer in layers_of(result)
    ]


def _score_responder(
    found: Responses,
    along: FloatArray,
    grid: FloatArray,
    floor: float,
    confidence: float,
    resamples: int,
    seed: int,
) -> ResponderScore:
    alignment = align(found.multiplier, along, confidence=confidence, resamples=resamples, seed=seed)
    slices = score_slices(found.multiplier, along)
    if not grid.size:
        return ResponderScore(alignment, slices, shape=None, absolute=None)
    # A rounding error must not cost the last x of a grid that ends with the human curve.
    inside = (found.x >= found.human_x[0] * (1 - 1e-9)) & (found.x <= found.human_x[-1] * (1 + 1e-9))
    x, rows = found.x[inside], grid[inside]
    human = 10 ** np.interp(np.log10(x), np.log10(found.human_x), np.log10(found.human_sensitivity))
    return ResponderScore(
        alignment=alignment,
        slices=slices,
        shape=fit_iso_response(x, found.contrast, rows, human, criterion="shape", floor=floor),
        absolute=fit_iso_response(x, found.contrast, rows, human, criterion="absolute", floor=floor),
    )


def _by_variant(result: xr.Dataset, found: Responses, confidence: float, seed: int) -> Spread | None:
    def r_s(averaged: xr.Dataset) -> float | None:
        along = select(averaged, measure=found.measure, layer=found.layer).along
        return alignment_score(found.multiplier, along) if len(np.unique(along)) > 1 else None

    return variant_spread(result, r_s, transform=_fisher, inverse=np.tanh, confidence=confidence, seed=seed)


def _fisher(r: Any) -> Any:
    return np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))


def _share_at_float32_floor(result: xr.Dataset, layer: str) -> float | None:
    if not {"cosine", "angular_float32"} & set(result["measure"].values):
        return None
    return float((select(result, measure="angular_float32", layer=layer).along <= FLOAT32_FLOOR).mean())
