"""Thresholds of a run by an adaptive design: the posterior of the design, told the answers again.

qCSF asks near the thresholds that it expects, too little at each frequency for a fit of its own.
QUEST+ ends as soon as a threshold looks narrow enough, which with few answers may be luck: a
profile interval takes that for precision (``benchmarks/interval_coverage.py choices``), and a
posterior does not depend on why it ended. What the answers tell together is in the posterior, here
with whatever reading of them counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.csf_posterior import CsfPosterior, csf_posterior
from psyprobe.analysis.psychometric.posterior import Posterior, ThresholdPosterior, default_grid
from psyprobe.analysis.psychometric.sigmoids import threshold_at
from psyprobe.analysis.words import fit
from psyprobe.analysis.words.reply import answers_told
from psyprobe.analysis.words.sessions import SessionRecord, session_offsets
from psyprobe.files.cache import cached
from psyprobe.running.task import stimulus_axis_of, task_of
from psyprobe.stimulus.catalogue import read_levels
from psyprobe.stimulus.parameters import power_of_ten

if TYPE_CHECKING:
    import xarray as xr

#: Draws of curves behind the area under one.
_DRAWS = 2000
#: What of the design shapes its posterior, unless the page says otherwise.
_USUAL = {
    "quick_csf": {"prior": "any", "function": "logistic"},
    "quest_plus": {"function": "logistic"},
}


def adaptive_design(result: xr.Dataset) -> str:
    """Name of the adaptive design of a run, unless its page says how to fit; empty for any other
    run.
    """
    design = str(result.attrs.get("design", ""))
    return design if design in _USUAL and not fit.experiment_table(result, "fit") else ""


def design_frequencies(result: xr.Dataset) -> tuple[float, ...]:
    """Frequencies of the design: its curve passes through all, whether or not they were asked."""
    levels = fit.experiment_table(result, "levels")
    return (
        tuple(read_levels("frequency", levels["frequency"]).tolist())
        if "frequency" in levels
        else ()
    )


def design_options(result: xr.Dataset) -> dict[str, str]:
    """The psychometric function that the adaptive design took, and of qCSF the prior."""
    given = json.loads(str(result.attrs.get("asking", "{}"))).get("options", {})
    return {
        name: str(given.get(name, usual)) for name, usual in _USUAL[adaptive_design(result)].items()
    }


class TrialAnswer(NamedTuple):
    """One trial, in whatever orders it was asked."""

    prompt: int
    #: Of the level; None for a catch trial.
    place: int | None
    #: log10 of the delivered contrast.
    x: float
    #: What the posterior is told; see `answers_told`.
    said: list[float]
    #: In which session, from 0.
    session: int


def trial_answers(at: fit.Places) -> Iterator[TrialAnswer]:
    """The trials of a run that have an answer which counts, in the order in which they were put."""
    result = at.result
    readout = result["readout"].values.astype(str)
    nominal = at.column(stimulus_axis_of(result).name)
    responses = at.column("response")
    delivered = fit.delivered_contrast(result)
    repeat = at.column("repeat") if "repeat" in result else np.arange(len(responses))
    session = (
        result["session"].values.astype(int)
        if "session" in result
        else np.zeros(len(responses), dtype=int)
    )
    rows: dict[tuple[Any, ...], list[int]] = {}
    for i in np.flatnonzero(at.shown).tolist():
        rows.setdefault((session[i], at.prompt[i], at.value[i], nominal[i], repeat[i]), []).append(
            i
        )
    for (of, prompt, value, contrast, _), own in rows.items():
        heard = [responses[i] for i in own if at.counted[i]]
        if heard:
            arrived = delivered[own[0]] if delivered[own[0]] > 0 else contrast
            place = None if contrast == 0 else int(value)
            x = -np.inf if place is None else float(np.log10(arrived))
            yield TrialAnswer(int(prompt), place, x, answers_told(heard, readout[own[0]]), int(of))


def told_posteriors(
    result: xr.Dataset,
    at: fit.Places,
    which: npt.NDArray[np.int64],
    offsets: FloatArray | None = None,
    session: int | None = None,
) -> list[Posterior]:
    """The posterior of each of some wordings.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run by an adaptive design.
    at : Places
        Of its questions.
    which : ndarray of int64, shape (G,)
        Indices of the wordings.
    offsets : ndarray, shape (S,), optional
        By how many log10 units the thresholds of each session lie above those of all.
    session : int, optional
        Told is this one alone.
    """
    found = {int(prompt): _untold(result, at) for prompt in which}
    for answer in trial_answers(at):
        if answer.prompt not in found or (session is not None and answer.session != session):
            continue
        shift = 0.0 if offsets is None else float(offsets[answer.session])
        for each in answer.said:
            found[answer.prompt].tell(answer.place, answer.x - shift, each)
    return list(found.values())


def _untold(result: xr.Dataset, at: fit.Places) -> Posterior:
    """The posterior with which the design of a run begins."""
    contrasts: tuple[float, ...] = tuple(_contrasts(result).tolist())
    chance = task_of(result).chance
    options: dict[str, Any] = design_options(result)
    if adaptive_design(result) == "quick_csf":
        return csf_posterior(tuple(at.values.tolist()), contrasts, chance, **options)
    return ThresholdPosterior(len(at.values), default_grid(contrasts, chance, **options))


class SessionCurves(NamedTuple):
    """What the sessions of a person tell one by one."""

    #: By how many log10 units the thresholds of each lie above those of all, shape (S,).
    offset: FloatArray
    #: Area under the log CSF: mean and ends of its interval, shape (3, S).
    area: FloatArray


def session_curves(
    result: xr.Dataset, at: fit.Places, sessions: Sequence[SessionRecord], how: fit.FitSettings
) -> SessionCurves:
    """The offset and the area under the log CSF of each session, from its own posterior."""
    level = np.empty(len(sessions))
    variance = np.empty(len(sessions))
    areas = np.empty((3, len(sessions)))
    ends = [(1 - how.confidence) / 2, (1 + how.confidence) / 2]
    for number in range(len(sessions)):
        (posterior,) = told_posteriors(result, at, np.arange(1), session=number)
        assert isinstance(posterior, CsfPosterior)
        heights = posterior.draw(_DRAWS, how.seed).mean(axis=1)
        level[number], variance[number] = heights.mean(), heights.var()
        area = posterior.areas(_DRAWS, how.seed)
        areas[:, number] = area.mean(), *np.quantile(area, ends)
    return SessionCurves(
        session_offsets(level, variance, [session.screen for session in sessions]), areas
    )


def fit_posterior(
    result: xr.Dataset,
    at: fit.Places,
    counts: fit.ChatCounts,
    how: fit.FitSettings,
    which: npt.NDArray[np.int64],
    offsets: FloatArray | None = None,
) -> fit.ChatFit:
    """Thresholds of some wordings with their central credible intervals; of qCSF draws of whole
    curves besides.

    A threshold expected beyond the contrasts that could be shown is censored where the level was
    asked. Answers that were taken in so before, by any process, are not taken in again.
    """
    design = (
        adaptive_design(result),
        task_of(result),
        design_options(result),
        _contrasts(result).tolist(),
    )
    told = [answer for answer in trial_answers(at) if answer.prompt in which]
    given = (
        design,
        how,
        at.values.tolist(),
        which.tolist(),
        None if offsets is None else offsets.tolist(),
        told,
    )
    name = hashlib.sha256(
        repr((given, counts.trials[which].tolist(), counts.not_shown.tolist())).encode()
    ).hexdigest()
    found = cached(
        name, Path(__file__).parents[1], lambda: _fitted(result, at, counts, how, which, offsets)
    )
    return fit.ChatFit(**found)


def _fitted(
    result: xr.Dataset,
    at: fit.Places,
    counts: fit.ChatCounts,
    how: fit.FitSettings,
    which: npt.NDArray[np.int64],
    offsets: FloatArray | None,
) -> dict[str, npt.NDArray[Any]]:
    """The fields of a `ChatFit`."""
    posteriors = told_posteriors(result, at, which, offsets)
    places = range(len(at.values))
    threshold = np.array([[posterior.mean(place) for place in places] for posterior in posteriors])
    ends = np.array(
        [
            [posterior.interval(place, how.confidence) for place in places]
            for posterior in posteriors
        ]
    )
    shape = np.ones_like(threshold)
    width = np.array(
        [[posterior.mean_width(place) for place in places] for posterior in posteriors]
    )
    guess = shape * np.array([[posterior.mean_guess()] for posterior in posteriors])
    lapse = shape * np.array([[posterior.mean_lapse()] for posterior in posteriors])
    status = np.full(threshold.shape, "ok", dtype="<U16")
    low, high = np.log10(_contrasts(result)[[0, -1]])
    asked = counts.trials[which].sum(axis=-1) > 0
    # What could not be shown is not measured, though the curve of qCSF passes there.
    status[~asked & ((counts.not_shown > 0) | (adaptive_design(result) == "quest_plus"))] = "empty"
    status[asked & (threshold > high)] = "censored_above"
    status[asked & (threshold < low)] = "censored_below"
    known = status == "ok"
    curves = [
        posterior.draw(how.resamples, how.seed)
        for posterior in posteriors
        if isinstance(posterior, CsfPosterior)
    ]
    raw = threshold_at(0.5, threshold, width, guess, lapse, function=how.function)
    return {
        "status": status,
        "log10_threshold": np.where(known, threshold, np.nan),
        "log10_threshold_low": ends[..., 0],
        "log10_threshold_high": ends[..., 1],
        "log10_width": width,
        "guess": guess,
        "lapse": lapse,
        "log10_raw_threshold": np.where(known, raw, np.nan),
        "p_value": np.full(threshold.shape, np.nan),
        **({"samples": -np.stack(curves, axis=1)} if curves else {}),
    }


def _contrasts(result: xr.Dataset) -> FloatArray:
    """Least and greatest contrast, or difference, that the design could show; without its page,
    that it did show.
    """
    stimulus_axis = stimulus_axis_of(result).name
    levels = fit.experiment_table(result, "levels")
    if stimulus_axis == "contrast" and "contrast" in levels:
        shown = read_levels("contrast", levels["contrast"])[[0, -1]]
    elif stimulus_axis == "period" and "frequency" in levels:
        shown = 1 / read_levels("frequency", levels["frequency"])[[-1, 0]]
    elif difference := fit.experiment_table(result, "difference"):
        shown = read_levels("levels", difference["levels"])[[0, -1]]
    else:
        nominal = result[stimulus_axis].values.astype(np.float64)
        return np.array([nominal[nominal > 0].min(), nominal.max()])
    # As designs round them.
    return np.array([power_of_ten(x) for x in np.log10(shown).tolist()])
