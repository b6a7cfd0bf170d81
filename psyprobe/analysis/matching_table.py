"""What a table says about matching scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psyprobe.analysis.matching import Estimate, MatchingError
from psyprobe.analysis.matching_score import MatchingResponder, MatchingScore
from psyprobe.analysis.variants import Spread
from psyprobe.files.terminal import printable

HEADINGS = ("mean [interval]", "pooled [interval]", "sat. high", "sat. low", "ambiguous", "f32 floor", "noise")

KEY = (
    "mean, pooled: root mean square error of matched contrast, log10 units (0.3 is a factor of two), of each "
    "frequency and then averaged, or of all matches at once, with intervals ({confidence} %); smaller is better. "
    "sat. high, sat. low: saturated matches, which do not exist because no contrast draws as much as the reference, or "
    "because the lowest draws more; they enter the errors with the end of the contrast range. ambiguous: matches of "
    "more than one contrast. f32 floor, noise: share of responses to the "
    "reference that the paper's float32 arithmetic puts at its floor, and that are not above the noise floor."
)


def title(one: MatchingScore) -> str:
    """What stands above the observers.

    Parameters
    ----------
    one : MatchingScore
        Any of a group.

    Returns
    -------
    str
        Experiment, measure, and how matches were found where that is not the usual way.
    """
    how = [one.measure, *["bracket"] * (one.method == "bracket"), *["normalised"] * one.normalised]
    return printable(f"{one.experiment} ({', '.join(how)})")


def cells(name: str, error: MatchingError, responder: MatchingResponder | None, shares: Sequence[str]) -> list[str]:
    """One row of the table.

    Parameters
    ----------
    name : str
        Of the responder.
    error : MatchingError
        Its error.
    responder : MatchingResponder or None
        Its flags; None for one that has none.
    shares : sequence of str
        At the float32 floor and not above the noise.

    Returns
    -------
    list of str
        As many as `HEADINGS`, and the name.
    """
    counts = ["", "", ""]
    if responder is not None:
        counts = [
            f"{count}/{responder.total}"
            for count in (responder.saturated_high, responder.saturated_low, responder.ambiguous)
        ]
    return [printable(name), _interval(error.mean), _interval(error.pooled), *counts, *shares]


def flat(one: MatchingScore) -> list[dict[str, Any]]:
    """One record for the observer and for each baseline, every statistic that is a single value.

    Parameters
    ----------
    one : MatchingScore
        What to write down.

    Returns
    -------
    list of dict
        All with the same keys.
    """
    named: list[tuple[str, MatchingError, MatchingResponder | None]] = [("observer", one.score.error, one.score)]
    if one.pixels is not None:
        named.append(("pixels", one.pixels.error, one.pixels))
    named.append(("constancy", one.constancy, None))
    return [
        {
            "experiment": one.experiment,
            "measure": one.measure,
            "observer": one.observer,
            "layer": one.layer,
            "random_weights": int(one.random_weights),
            "responder": name,
            "confidence": error.mean.confidence,
            "method": one.method,
            "normalised": int(one.normalised),
            "error_mean": error.mean.value,
            "error_mean_low": error.mean.low,
            "error_mean_high": error.mean.high,
            "error_pooled": error.pooled.value,
            "error_pooled_low": error.pooled.low,
            "error_pooled_high": error.pooled.high,
            "saturated_low": responder and responder.saturated_low,
            "saturated_high": responder and responder.saturated_high,
            "ambiguous": responder and responder.ambiguous,
            "matches": responder and responder.total,
            "float32_floor": one.float32_floor if name == "observer" else None,
            "noise_floor": one.noise_floor if name == "observer" else None,
            "below_noise": one.below_noise if name == "observer" else None,
            **variant_columns(one.variants if name == "observer" else None),
        }
        for name, error, responder in named
    ]


def variant_columns(spread: Spread | None) -> dict[str, Any]:
    """What a record says about variants of the stimulus.

    Parameters
    ----------
    spread : Spread or None
        None where there were none.

    Returns
    -------
    dict
        Number of variants and the ends of the interval over them.
    """
    return {
        "variants": spread and spread.count,
        "variants_low": spread and spread.low,
        "variants_high": spread and spread.high,
    }


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.2f}, {estimate.high:.2f}]"
