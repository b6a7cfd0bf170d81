"""One score for each kind of result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psyprobe.analysis import detection
from psyprobe.analysis.detection import DetectionScore
from psyprobe.analysis.matching_score import MatchingScore, is_matching, score_matching
from psyprobe.analysis.words.chat_counts import is_chat
from psyprobe.analysis.words.chat_score import ChatScore, score_chat
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


def score(result: xr.Dataset, **options: Any) -> DetectionScore | MatchingScore | ChatScore:
    """Score a result against people.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection, masking, matching or questioning run.
    **options
        measure, layer, confidence, resamples, seed, and, for matching runs, those of `score_matching`; for questioning
        runs those of `score_chat`.

    Returns
    -------
    DetectionScore, MatchingScore or ChatScore
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
    if is_chat(result):
        return score_chat(result, **_for_answers(options))
    return score_matching(result, **options) if is_matching(result) else detection.score(result, **options)


def score_layers(result: xr.Dataset, **options: Any) -> list[DetectionScore | MatchingScore | ChatScore]:
    """Score each layer of a result.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run.
    **options
        As for `score`, but for the layer.

    Returns
    -------
    list of DetectionScore, MatchingScore or ChatScore
        In the order of the observer's layers; one for a questioning run, which has none.

    Raises
    ------
    InputError
        As for `score`.
    """
    if is_chat(result):
        return [score_chat(result, **_for_answers(options))]
    if is_matching(result):
        return [score_matching(result, layer=str(layer), **options) for layer in result["layer"].values]
    return list(detection.score_layers(result, **options))


def _for_answers(options: dict[str, Any]) -> dict[str, Any]:
    """Options without those of features, which answers in words do not have."""
    named = [name for name in ("measure", "layer") if options.get(name) is not None]
    if named:
        raise InputError(
            f"answers in words have no {' and no '.join(named)}; leave {'it' if len(named) == 1 else 'them'} out"
        )
    return {name: value for name, value in options.items() if name not in ("measure", "layer")}
