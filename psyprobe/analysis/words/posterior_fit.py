"""Estimate thresholds of adaptive runs from the posterior of their design.

qCSF asks near the thresholds that it expects, too little at each frequency for a fit of its own.
QUEST+ ends as soon as a threshold looks narrow enough, which with few answers may be luck: a
profile interval takes that for precision (``benchmarks/interval_coverage.py choices``), and a
posterior does not depend on why it ended. What the answers tell together is in the posterior, here
with whatever reading of them counts.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from psyprobe._typing import AnyArray, FloatArray, IntArray
from psyprobe.analysis.psychometric.csf_posterior import CsfPosterior, csf_posterior
from psyprobe.analysis.psychometric.posterior import (
    Posterior,
    ThresholdPosterior,
    default_grid,
    noise_grid,
    size_grid,
)
from psyprobe.analysis.psychometric.sigmoids import threshold_at
from psyprobe.analysis.words import fit
from psyprobe.analysis.words.reply import posterior_answers
from psyprobe.analysis.words.sessions import SessionRecord, session_offsets
from psyprobe.files.cache import cached
from psyprobe.files.json_types import JsonObject
from psyprobe.running.task import stimulus_axis_of, task_of
from psyprobe.stimulus.catalogue import catalogue_names, read_levels, read_page
from psyprobe.stimulus.parameters import power_of_ten

if TYPE_CHECKING:
    import xarray as xr

#: Draws of curves behind the area under one.
_DRAWS = 2000
#: Options of a design that shape its posterior, unless the page says otherwise.
_DEFAULTS = {
    "quick_csf": {"prior": "any", "function": "logistic"},
    "quest_plus": {"function": "logistic"},
}


def adaptive_design(result: xr.Dataset) -> str:
    """Name the adaptive design whose posterior gives the thresholds, "" where a fit does."""
    design = str(result.attrs.get("design", ""))
    page = str(result.attrs.get("experiment_toml", ""))
    name = str(result.attrs.get("experiment", ""))
    return design if design in _DEFAULTS and not has_own_fit(page, name) else ""


def has_own_fit(page: str, name: str) -> bool:
    """Tell whether the user set how to fit, by an option or in an experiment file.

    The [fit] of a page of the catalogue was written for the design of that page.

    Parameters
    ----------
    page : str
        Text of the experiment's page.
    name : str
        Name of the experiment.
    """
    tables = tomllib.loads(page)
    if not tables.get("fit"):
        return False
    is_option = any(key.split(".")[0] == "fit" for key in tables.get("changed", {}))
    if is_option or name not in catalogue_names("experiments"):
        return True
    _, catalogue_page = read_page("experiments", name)
    return bool(tables["fit"] != catalogue_page.get("fit"))


def fit_notes(design: str, readout: str, page: str, name: str) -> tuple[str, ...]:
    """Note that a user's own fit replaces the posterior of an adaptive design."""
    has_posterior = design == "quick_csf" or (
        design == "quest_plus" and readout == "text"
    )
    if not has_posterior or not has_own_fit(page, name):
        return ()
    return (
        f"[fit] is set, so each threshold is fitted by itself: after {design} such fits are biased "
        "or too sure; without it the posterior of the design counts, whose intervals a plan shows",
    )


def design_frequencies(result: xr.Dataset) -> tuple[float, ...]:
    """Read the frequencies of an adaptive design, through all of which its CSF passes."""
    levels = fit.experiment_table(result, "levels")
    frequencies = levels.get("frequency")
    return tuple(read_levels("frequency", frequencies).tolist()) if frequencies else ()


def design_options(result: xr.Dataset) -> dict[str, str]:
    """Read the psychometric function and prior that an adaptive design took."""
    options = json.loads(str(result.attrs.get("asking", "{}"))).get("options", {})
    return {
        name: str(options.get(name, usual))
        for name, usual in _DEFAULTS[adaptive_design(result)].items()
    }


class TrialAnswer(NamedTuple):
    """The answers of one trial, in whatever orders it was asked."""

    prompt: int
    #: Index of the value of the level; None for a catch trial.
    value_index: int | None
    #: log10 of the delivered contrast.
    x: float
    #: Answers that update the posterior; see `posterior_answers`.
    answers: list[float]
    #: Number of the session, from 0.
    session: int


def answers_of_trials(cells: fit.TrialCells) -> Iterator[TrialAnswer]:
    """Iterate over the trials of a result with a usable answer, in the order of asking."""
    result = cells.result
    table = pd.DataFrame(
        {
            "session": cells.column("session") if "session" in result else 0,
            "prompt": cells.prompt,
            "value": cells.value,
            "contrast": cells.column(stimulus_axis_of(result).name),
            "repeat": cells.column("repeat")
            if "repeat" in result
            else range(cells.prompt.size),
            "delivered": fit.delivered_contrast(result),
            "response": cells.column("response"),
            "readout": result["readout"].values.astype(str),
        }
    )
    keys = ["session", "prompt", "value", "contrast", "repeat"]
    answered = table.assign(response=table["response"].where(cells.counted))
    trials = answered[cells.presented].groupby(keys, sort=False, dropna=False)
    for (session, prompt, value, contrast, _), rows in trials:
        answers = rows["response"].dropna().tolist()
        if answers:
            delivered = rows["delivered"].iloc[0]
            value_index = None if contrast == 0 else int(value)
            arrived = delivered if delivered > 0 else contrast
            x = -np.inf if value_index is None else float(np.log10(arrived))
            answers = posterior_answers(answers, rows["readout"].iloc[0])
            yield TrialAnswer(int(prompt), value_index, x, answers, int(session))


def update_posteriors(
    cells: fit.TrialCells,
    prompt_indices: IntArray,
    offsets: FloatArray | None = None,
    session: int | None = None,
) -> list[Posterior]:
    """Update the posterior of some prompts by all answers of a result.

    Parameters
    ----------
    cells : TrialCells
        Of the questions of a run by an adaptive design.
    prompt_indices : ndarray of int64, shape (G,)
        Indices of the prompts.
    offsets : ndarray, shape (S,), optional
        By how many log10 units the thresholds of each session lie above those of all.
    session : int, optional
        Told is this one alone.
    """
    answers: dict[int, list[tuple[int | None, float, float]]] = {
        int(prompt): [] for prompt in prompt_indices
    }
    for answer in answers_of_trials(cells):
        if answer.prompt in answers and session in (None, answer.session):
            shift = 0.0 if offsets is None else float(offsets[answer.session])
            answers[answer.prompt] += [
                (answer.value_index, answer.x - shift, response)
                for response in answer.answers
            ]
    posteriors = []
    for answers_of_prompt in answers.values():
        posterior = _prior_of(cells)
        if isinstance(posterior, CsfPosterior):
            csf = posterior.csf
            posterior = posterior.with_grid(csf.fewer_deviations())
            posterior.tell_all(answers_of_prompt)
            posterior = posterior.refined(csf)
        else:
            posterior.tell_all(answers_of_prompt)
        posteriors.append(posterior)
    return posteriors


def _prior_of(cells: fit.TrialCells) -> Posterior:
    """Build the posterior with which a result's adaptive design began."""
    result = cells.result
    contrasts: tuple[float, ...] = tuple(_contrasts(result).tolist())
    chance = task_of(result).chance
    options: JsonObject = design_options(result)
    if adaptive_design(result) == "quick_csf":
        return csf_posterior(tuple(cells.values.tolist()), contrasts, chance, **options)
    noise = fit.experiment_table(result, "noise")
    # Noise of a band is silent where a signal may lie, so no efficiency is told.
    if noise.get("density") and noise.get("frequency") is None:
        # A decision stage has no lapses.
        lapse = 0.005 if json.loads(result.attrs.get("training", "[]")) else 0.1
        grid = noise_grid(contrasts, chance, **options, lapse=lapse)
    elif stimulus_axis_of(result).name == "letter_size":
        grid = size_grid(contrasts, chance, **options)
    else:
        grid = default_grid(contrasts, chance, **options)
    return ThresholdPosterior(len(cells.values), grid)


class SessionCurves(NamedTuple):
    """Offsets and areas of the sessions of a person, estimated one by one."""

    #: How many log10 units the thresholds of each lie above those of all, shape (S,).
    offset: FloatArray
    #: Area under the log CSF: mean and ends of its interval, shape (3, S).
    area: FloatArray


def session_curves(
    cells: fit.TrialCells,
    sessions: Sequence[SessionRecord],
    settings: fit.FitSettings,
) -> SessionCurves:
    """Estimate each session's offset and area under the log CSF from its own posterior."""
    level = np.empty(len(sessions))
    variance = np.empty(len(sessions))
    areas = np.empty((3, len(sessions)))
    ends = [(1 - settings.confidence) / 2, (1 + settings.confidence) / 2]
    for number in range(len(sessions)):
        (posterior,) = update_posteriors(cells, np.arange(1), session=number)
        assert isinstance(posterior, CsfPosterior)
        heights = posterior.draw(_DRAWS, settings.seed).mean(axis=1)
        level[number], variance[number] = heights.mean(), heights.var()
        area = posterior.areas(_DRAWS, settings.seed)
        areas[:, number] = area.mean(), *np.quantile(area, ends)
    return SessionCurves(
        session_offsets(level, variance, [session.screen for session in sessions]),
        areas,
    )


def fit_posterior(
    cells: fit.TrialCells,
    counts: fit.ChatCounts,
    settings: fit.FitSettings,
    prompt_indices: IntArray,
    offsets: FloatArray | None = None,
) -> fit.ChatFit:
    """Estimate thresholds of some prompts with credible intervals, from posteriors.

    After qCSF draws of whole curves stand besides. A threshold expected beyond the contrasts that
    could be shown is censored where the level was asked. Answers that any process has taken in
    before are not taken in again: their results are cached.

    A threshold expected beyond the contrasts that could be shown is censored where the level was
    asked. Answers that were taken in so before, by any process, are not taken in again.
    """
    result = cells.result
    inputs = (
        (adaptive_design(result), task_of(result), design_options(result)),
        _contrasts(result).tolist(),
        settings,
        cells.values.tolist(),
        prompt_indices.tolist(),
        None if offsets is None else offsets.tolist(),
        [row for row in answers_of_trials(cells) if row.prompt in prompt_indices],
        counts.trials[prompt_indices].tolist(),
        counts.not_shown.tolist(),
    )
    fields = cached(
        hashlib.sha256(repr(inputs).encode()).hexdigest(),
        Path(__file__).parents[1],
        lambda: _posterior_fields(cells, counts, settings, prompt_indices, offsets),
    )
    return fit.ChatFit(**fields)


def _posterior_fields(
    cells: fit.TrialCells,
    counts: fit.ChatCounts,
    settings: fit.FitSettings,
    prompt_indices: IntArray,
    offsets: FloatArray | None,
) -> dict[str, AnyArray]:
    """Compute posteriors and from them the fields of a `ChatFit`."""
    posteriors = update_posteriors(cells, prompt_indices, offsets)

    def by_level(estimate: Callable[[Posterior, int], Any]) -> AnyArray:
        levels = range(len(cells.values))
        return np.array([[estimate(p, level) for level in levels] for p in posteriors])

    threshold = by_level(lambda posterior, level: posterior.mean(level))
    confidence = settings.confidence
    ends = by_level(lambda posterior, level: posterior.interval(level, confidence))
    width = by_level(lambda posterior, level: posterior.mean_width(level))
    guess = by_level(lambda posterior, _: posterior.mean_guess())
    lapse = by_level(lambda posterior, _: posterior.mean_lapse())
    status = np.full(threshold.shape, "ok", dtype="<U16")
    low, high = np.log10(_contrasts(cells.result)[[0, -1]])
    has_trials = counts.trials[prompt_indices].sum(axis=-1) > 0
    # What could not be shown is not measured, though the curve of qCSF passes there.
    quest_plus = adaptive_design(cells.result) == "quest_plus"
    status[~has_trials & ((counts.not_shown > 0) | quest_plus)] = "empty"
    status[has_trials & (threshold > high)] = "censored_above"
    status[has_trials & (threshold < low)] = "censored_below"
    measured = status == "ok"
    of_curves = [p for p in posteriors if isinstance(p, CsfPosterior)]
    of_csf: dict[str, AnyArray] = {}
    if of_curves:
        draws = [p.draw(settings.resamples, settings.seed) for p in of_curves]
        misfits = [astuple(p.misfit(confidence)) for p in of_curves]
        deviations = np.array([p.deviations() for p in of_curves])
        of_csf = {
            "samples": -np.stack(draws, axis=1),
            "misfit": np.array(misfits),
            "deviations": deviations,
        }
    raw = threshold_at(0.5, threshold, width, guess, lapse, function=settings.function)
    return {
        "status": status,
        "log10_threshold": np.where(measured, threshold, np.nan),
        "log10_threshold_low": ends[..., 0],
        "log10_threshold_high": ends[..., 1],
        "log10_width": width,
        "guess": guess,
        "lapse": lapse,
        "log10_raw_threshold": np.where(measured, raw, np.nan),
        "p_value": np.full(threshold.shape, np.nan),
        **of_csf,
    }


def _contrasts(result: xr.Dataset) -> FloatArray:
    """Find the least and greatest contrast that an adaptive design could show.

    Without its page, that it did show.
    """
    stimulus_axis = stimulus_axis_of(result).name
    levels = fit.experiment_table(result, "levels")
    if stimulus_axis == "contrast" and "contrast" in levels:
        # Those of dark ink are below 0 on the page.
        ends = np.sort(np.abs(read_levels("contrast", levels["contrast"])[[0, -1]]))
    elif stimulus_axis == "period" and "frequency" in levels:
        ends = 1 / read_levels("frequency", levels["frequency"])[[-1, 0]]
    elif difference := fit.experiment_table(result, "difference"):
        ends = read_levels("levels", difference["levels"])[[0, -1]]
    else:
        nominal = result[stimulus_axis].values.astype(float)
        return np.array([nominal[nominal > 0].min(), nominal.max()])
    # As designs round them.
    return np.array([power_of_ten(x) for x in np.log10(ends).tolist()])
