"""The score of a questioning run: its contrast sensitivity function beside those of people and of trivial observers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.analysis.words.answer_agreement import Agreement, answer_agreement
from psyprobe.analysis.words.chat_csf import chat_csf
from psyprobe.analysis.words.csf_human import default_human, human_curve, human_names
from psyprobe.analysis.words.csf_scores import STATISTICS, CsfScores, compare_with_human

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class CsfPoint:
    """The sensitivity found at one frequency.

    Attributes
    ----------
    frequency : float
        In cpd.
    sensitivity, low, high : float or None
        Geometric mean over usable wordings and its interval; None where there is none, or an end is open.
    human : float or None
        Sensitivity of people; None where the curve does not reach.
    usable, prompts : int
        Wordings with a usable threshold, of all.
    statuses : mapping of str to int
        How many wordings have which status.
    low_validity : int
        Wordings of which more than 10 % of the replies say neither yes nor no.
    not_shown : int
        Questions that do not count because their contrast could not be delivered.
    """

    frequency: float
    sensitivity: float | None
    low: float | None
    high: float | None
    human: float | None
    usable: int
    prompts: int
    statuses: Mapping[str, int]
    low_validity: int
    not_shown: int


@dataclass(frozen=True)
class ChatScore:
    """The score of a questioning run.

    Attributes
    ----------
    observer, experiment, readout : str
        What was scored, and what of its answers counted.
    random_weights : bool
        True if the observer was not trained.
    human : str
        The curve with which it is compared first.
    scores : mapping of str to CsfScores
        By human curve, `human` first.
    flat, blind : mapping of str to float or None
        The same statistics, against `human`, of two observers that know nothing of frequency: the constant sensitivity
        nearest to people (of the sensitivities for linear statistics, of their logarithms for the others), and none.
    curve : tuple of CsfPoint
        Frequency by frequency.
    guess, lapse : float or None
        Median over wordings of the rates of yes without a pattern, and of no to any.
    excluded : float
        Share of replies that say neither yes nor no, and are left out.
    agreement : Agreement or None
        Between first tokens and text, where both were read.
    confidence : float
        Of all intervals.
    """

    observer: str
    experiment: str
    readout: str
    random_weights: bool
    human: str
    scores: Mapping[str, CsfScores]
    flat: Mapping[str, float | None]
    blind: Mapping[str, float | None]
    curve: tuple[CsfPoint, ...]
    guess: float | None
    lapse: float | None
    excluded: float
    agreement: Agreement | None
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON can hold them."""
        return asdict(self)

    def __str__(self) -> str:
        from psyprobe.analysis.table import score_table

        return score_table([self])


def score_chat(
    result: xr.Dataset, *, human: str | None = None, confidence: float = 0.95, resamples: int = 2000, seed: int = 0,
    **options: Any,
) -> ChatScore:  # fmt: skip
    """Score a questioning run against human contrast sensitivity.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    human : str, optional
        The curve to compare with first, as `human_names` lists them; without it the experiment's.
    confidence : float, optional
        Of the intervals.
    resamples : int, optional
        Of the bootstrap of the scores.
    seed : int, optional
        Of all resampling.
    **options
        How to fit, as for `chat_csf`.

    Returns
    -------
    ChatScore
        Printing it gives a table.

    Raises
    ------
    InputError
        If this is no result of a questioning run, or nothing of it can be read.
    UnknownNameError
        If there is no such human curve.
    """
    csf = chat_csf(result, confidence=confidence, seed=seed, **options)
    first = human or default_human(csf)
    name, curve = human_curve(csf, first)
    scores = {
        each: compare_with_human(csf, each, resamples=resamples, seed=seed)
        for each in dict.fromkeys([name, *human_names()])
    }
    flat, blind = _trivial(curve[np.isfinite(curve)])
    trials = float(csf["trials"].sum() + csf["catch_trials"].sum())
    excluded = float(csf["excluded"].sum())
    return ChatScore(
        observer=str(result.attrs.get("observer", "")),
        experiment=str(result.attrs.get("experiment", "")),
        readout=str(result.attrs.get("readout", "text")),
        random_weights=bool(result.attrs.get("random_weights", 0)),
        human=name,
        scores=scores,
        flat=flat,
        blind=blind,
        curve=_points(csf, curve),
        guess=_median(csf["guess"].values),
        lapse=_median(csf["lapse"].values),
        excluded=excluded / max(trials + excluded, 1.0),
        agreement=answer_agreement(result),
        confidence=confidence,
    )


def _points(csf: xr.Dataset, human: Any) -> tuple[CsfPoint, ...]:
    return tuple(
        CsfPoint(
            frequency=float(csf["frequency"].values[i]),
            sensitivity=_finite(csf["mean_sensitivity"].values[i]),
            low=_finite(csf["mean_sensitivity_low"].values[i]),
            high=_finite(csf["mean_sensitivity_high"].values[i]),
            human=_finite(human[i]),
            usable=int(csf["n_usable"].values[i]),
            prompts=csf.sizes["prompt"],
            statuses=dict(Counter(csf["status"].values[:, i].tolist())),
            low_validity=int(csf["low_validity"].values[:, i].sum()),
            not_shown=int(csf["not_shown"].values[i]),
        )
        for i in range(csf.sizes["frequency"])
    )


def _trivial(human: Any) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Statistics of the best constant, and of no sensitivity at all."""
    flat: dict[str, float | None] = dict.fromkeys(STATISTICS)
    blind: dict[str, float | None] = dict.fromkeys(STATISTICS)
    log_spread = float(np.log10(human).std())
    flat |= {"rmse_linear": float(human.std()), "rmse_log10": log_spread, "shape_rmse_log10": log_spread}
    blind["rmse_linear"] = float(np.sqrt((human**2).mean()))
    return flat, blind


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _median(values: Any) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else None
