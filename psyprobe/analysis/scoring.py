"""One score for each kind of result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psyprobe.analysis import detection
from psyprobe.analysis.detection import DetectionScore
from psyprobe.analysis.matching_score import MatchingScore, is_matching, score_matching

if TYPE_CHECKING:
    import xarray as xr


def score(result: xr.Dataset, **options: Any) -> DetectionScore | MatchingScore:
    """Score a result against people.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection, masking or matching run.
    **options
        measure, layer, confidence, resamples, seed, and, for matching runs, those of `score_matching`.

    Returns
    -------
    DetectionScore or MatchingScore
        Printing it gives a table.

    Raises
    ------
    InputError
        If this is no such result, several layers were run and none was named, or values are not finite.
    UnknownNameError
        If the measure or layer is not in the result.

    See Also
    --------
    score_layers : one score for each layer.
    score_table : several scores as text, Markdown, LaTeX, CSV or JSON.
    scoreboard : models and tests in one table.
    """
    return score_matching(result, **options) if is_matching(result) else detection.score(result, **options)


def score_layers(result: xr.Dataset, **options: Any) -> list[DetectionScore | MatchingScore]:
    """Score each layer of a result.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection, masking or matching run.
    **options
        As for `score`, but for the layer.

    Returns
    -------
    list of DetectionScore or MatchingScore
        In the order of the observer's layers.

    Raises
    ------
    InputError
        As for `score`.
    """
    if is_matching(result):
        return [score_matching(result, layer=str(layer), **options) for layer in result["layer"].values]
    return list(detection.score_layers(result, **options))
