"""Measure the contrast sensitivity function of an observer that was asked in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import BoolArray, FloatArray, IntArray, StrArray
from psyprobe.analysis.efficiency.learning import add_learning
from psyprobe.analysis.efficiency.scores import add_efficiency
from psyprobe.analysis.intervals import normal_quantile
from psyprobe.analysis.psychometric import STATUSES
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words import fit
from psyprobe.analysis.words.posterior_fit import (
    SessionCurves,
    adaptive_design,
    design_frequencies,
    design_options,
    fit_posterior,
    session_curves,
)
from psyprobe.analysis.words.sessions import screen_error, sessions_of
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.flags import encode_flags, flag_attributes
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.files.units import inverse_symbol, unit_attributes, unit_symbol
from psyprobe.running.task import CONTRAST_AXIS, stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr

#: Shares of replies that say neither: above the first a curve is flagged, above the second it has
#: no threshold.
LOW_VALIDITY = 0.1
NO_VALIDITY = 0.5
#: Errors by which right answers of a decision stage may fall towards higher contrast.
_FALL_ERRORS = 3.0
#: The status of unreadable replies.
UNREADABLE = "unreadable"
#: How a prompt can be fitted.
METHODS = ("counts", "logits", "posterior")
#: Fewer prompts than this say nothing of others.
FEW = 3
#: Endings of the names of a value and of the ends of its interval.
_ENDS = ("", "_low", "_high")
#: How far a curve of qCSF deviates from the log-parabola.
_MISFIT = ("misfit", "misfit_low", "misfit_high", "misfit_bayes_factor")
_THRESHOLDS = ("threshold", "threshold_low", "threshold_high")

_COPIED = (
    "experiment",
    "experiment_digest",
    "experiment_toml",
    "display",
    "observer",
    "observer_card",
    "random_weights",
    "probe",
    "levels",
    "readout",
    "design",
    "size",
    "human",
    "ppd",
    "psyprobe_version",
    "sessions",
    "task",
    "training",
)


def chat_csf(
    result: xr.Dataset,
    *,
    guess: fit.Rates | None = None,
    lapse: fit.Rates | None = None,
    function: str | None = None,
    axis: fit.Axis | None = None,
    confidence: float = 0.95,
    resamples: int = 200,
    goodness: bool = False,
    seed: int = 0,
) -> xr.Dataset:
    """Measure an observer's contrast sensitivity function from its answers in words.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    guess, lapse : float or (float, float), optional
        Rates of yes without a pattern and of no to any: fixed, or the bounds between which they are
        fitted, common to all levels of a prompt; catch trials tell the guess rate. Without them
        what the experiment says, else (0, 0.5), or 1 / m where one of m answers is right, and
        (0, 0.1), of decision stages (0, 0.005). Logits tell the guess rate so well that it is
        bounded only where it is fixed.
    function : str, optional
        Of counts, as for `fit_psychometric`; without it what the experiment says, else "weibull" in
        external noise and where the observer names what is shown, "logistic" elsewhere.
        Logits are always fitted by a logistic function.
    axis : {"log", "linear"}, optional
        Whether the function is of log10 of the delivered contrast or, as in the paper, of the
        contrast itself; without it what the experiment says, else "log". The paper's fit is
        ``axis="linear", guess=0, lapse=0``; on a linear axis probabilities are fitted as counts.
    confidence : float, optional
        Of all intervals.
    resamples : int, optional
        Of the bootstrap over images.
    goodness : bool, optional
        Whether to find `p_value`, by bootstrap: half a second a curve. Only counts of yes have one.
    seed : int, optional
        Of the bootstrap.

    Returns
    -------
    xarray.Dataset
        Over `prompt` and the level (`frequency`, in cpd): `status`, `threshold` (contrast) and
        `sensitivity` with `_low` and `_high`, `usable` (the threshold enters means and scores),
        `log10_width`, `guess`, `lapse`, `p_value` of the deviance, `raw_threshold` (where half of
        the answers are yes), `dprime_threshold` (where d' = 1 against the catch trials); log10 of
        each threshold, to the last digit that was fitted, under `log10_threshold` and so on;
        `excluded_rate`, `low_validity` and `method` ("counts", "logits" or "posterior"); with
        `contrast_level` besides: `contrast`, `trials`, `yes`, `excluded`; `catch_yes`,
        `catch_trials` and `catch_excluded` by prompt. Over the level: `mean_sensitivity`, geometric
        over usable prompts, with its interval, and `n_usable`.

        Of a person, the intervals of the mean hold the error of the screen, whose standard
        deviation is `log10_screen_sd`; where `unsure`, the threshold lies below a contrast of 0.03
        on a screen that nobody measured. By `session`: `log10_session_offset`, and `session_area`
        under the log CSF with its interval.

        In noise of a stated density also what
        `psyprobe.analysis.efficiency.scores.add_efficiency` adds; of decision stages what
        `psyprobe.analysis.efficiency.learning.add_learning` adds. After qCSF: `misfit`, the
        standard deviation of frequencies from the log-parabola, with its interval and Bayes factor,
        and `deviation` of each.

    Raises
    ------
    InputError
        If this is no result of a questioning run, or a value is out of range.

    Notes
    -----
    A run by qCSF (``design = "quick_csf"``) puts few questions at each frequency, all near the
    threshold that it expects there; one by QUEST+ ends where the threshold looks narrow enough. In
    a forced choice with fewer than 400 trials a level, thresholds and intervals are those of a
    posterior too, integrated over widths and lapses (`fit_psychometric`, ``interval="posterior"``).
    Their thresholds are those of the design: means of its posterior with central credible
    intervals, told the answers as they are read here; of QUEST+ where these are drawn ones, and not
    probabilities, in white or coloured noise of a stated density with the prior of `noise_grid`,
    over the size of letters with that of `size_grid`.
    Where `guess`, `lapse`, `function` or `axis` is given, or the user's page has a [fit], each
    level is fitted by itself, as in all other runs; such fits of a run by qCSF are biased, and many
    are open; of their 95 % intervals after QUEST+ in text 82 to 88 % held the truth of simulated
    observers.

    Replies that are ambiguous, refusals or unreadable are left out and counted: above 10 % a curve
    is flagged (`low_validity`), above 50 % its status is "unreadable" and it has no threshold. The
    interval of the mean is over prompts, Student's t of the log sensitivities; with fewer than
    three prompts that of the curves themselves, than which no interval is narrower. Curves that a
    step fits best ("separable", "quasi_separable") add the whole of their own interval: all
    prompts were shown the same levels, and agreeing between two of them is no precision.

    References
    ----------
    Hernandez-Camara et al. (2025), arXiv 2508.10367.
    """
    if not 0 < confidence < 1:
        raise InputError(
            f"confidence {confidence:g} must lie between 0 and 1; usual is 0.95"
        )
    arguments = {"guess": guess, "lapse": lapse, "function": function, "axis": axis}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    design = "" if arguments else adaptive_design(result)
    frequencies = design_frequencies(result) if design == "quick_csf" else ()
    cells = fit.locate_trials(result, frequencies)
    options = design_options(result) if design else {}
    rates = _rates(result, arguments)
    if design:
        rates |= {"function": options["function"], "axis": "log"}
    settings = fit.FitSettings(
        **rates,
        confidence=confidence,
        resamples=resamples,
        goodness=goodness,
        seed=seed,
        is_choice=rates["guess"] == task_of(result).chance,
    )
    counts = fit.count_cells(cells)
    method = _methods(cells, counts, design, settings)
    sessions = sessions_of(result) if design == "quick_csf" else ()
    curves = session_curves(cells, sessions, settings) if sessions else None
    chat_fit = _fit(
        cells, counts, method, settings, None if curves is None else curves.offset
    )
    unreadable = counts.excluded_rate > NO_VALIDITY
    chat_fit = _blank_curves(chat_fit, unreadable, UNREADABLE)
    if "training" in result.attrs:
        chat_fit = _blank_curves(chat_fit, _falling(counts), "non_monotone")
    csf = _dataset(result, counts, chat_fit, method, settings, options)
    return add_learning(add_efficiency(_add_screen_error(csf, curves)))


def chat_csfs(results: Iterable[xr.Dataset], **options: Any) -> list[xr.Dataset]:
    """Measure the contrast sensitivity functions of several results, keeping those measured.

    Parameters
    ----------
    results : iterable of xarray.Dataset
        Of questioning runs, or of `chat_csf`.
    **options
        Of `chat_csf`.
    """
    return [
        result
        if "threshold" in result and "status" in result
        else chat_csf(result, **options)
        for result in results
    ]


def _have_logits(cells: fit.TrialCells) -> BoolArray:
    """Mark the prompts all of whose usable answers were read as log-odds of yes."""
    none = np.zeros(len(cells.prompts), dtype=bool)
    if not {"logit", "p_yes", "image_seed"} <= set(cells.result.variables):
        return none
    by_logit = np.isfinite(cells.column("logit")) & (
        cells.result["readout"].values.astype(str) == "p_yes"
    )
    return np.asarray(
        np.bincount(cells.prompt[cells.counted & ~by_logit], minlength=len(none)) == 0
    )


def _methods(
    cells: fit.TrialCells,
    counts: fit.ChatCounts,
    design: str,
    settings: fit.FitSettings,
) -> StrArray:
    """Choose how each prompt is fitted: "logits", "counts" or "posterior".

    After QUEST+ the posterior counts where answers are drawn ones.
    """
    if design == "quick_csf":
        return np.full(len(cells.prompts), "posterior")
    logits = _have_logits(cells) & (settings.axis == "log")
    whole_answers = (counts.yes % 1 == 0).all(axis=(1, 2)) & (counts.catch_yes % 1 == 0)
    other = np.where(whole_answers & (design == "quest_plus"), "posterior", "counts")
    return np.where(logits, "logits", other)


def _fit(
    cells: fit.TrialCells,
    counts: fit.ChatCounts,
    method: StrArray,
    settings: fit.FitSettings,
    offsets: FloatArray | None,
) -> fit.ChatFit:
    """Fit the psychometric functions of all prompts, each by its method."""

    def by_posterior(rows: IntArray) -> fit.ChatFit:
        return fit_posterior(cells, counts, settings, rows, offsets)

    def by_logits(rows: IntArray) -> fit.ChatFit:
        return fit.fit_p_yes(cells, counts.contrast, rows, settings)

    def by_counts(rows: IntArray) -> fit.ChatFit:
        own_counts = counts.take(rows)
        resampled = None
        if (own_counts.yes % 1 != 0).any() or (own_counts.catch_yes % 1 != 0).any():
            resamples = max(settings.resamples // 4, 2)
            resampled = fit.resampled_yes(
                cells, rows, resamples=resamples, seed=settings.seed
            )
        return fit.fit_counts(own_counts, settings, resampled)

    fits = {"posterior": by_posterior, "logits": by_logits, "counts": by_counts}
    parts = []
    for name in filter(method.tolist().count, fits):
        rows = np.flatnonzero(method == name)
        parts.append((rows, fits[name](rows)))
    return parts[0][1] if len(parts) == 1 else _joined(parts, counts.trials.shape[:2])


def _rates(result: xr.Dataset, arguments: JsonMapping) -> JsonObject:
    """Choose how to fit guess and lapse rates: by arguments, the experiment, or default."""
    defaults: JsonObject = {
        "guess": (0.0, 0.5),
        "lapse": (0.0, 0.1),
        "function": "logistic",
        "axis": "log",
    }
    chance = task_of(result).chance
    if chance is not None:
        defaults["guess"] = chance
    # [options] are what an observer is to name.
    if fit.experiment_table(result, "noise") or fit.experiment_table(result, "options"):
        # Where d' grows in proportion to contrast, the proportion correct is close to a Weibull
        # function: a logistic one puts the threshold of an ideal observer 0.03 log10 too low.
        # Pages that ask for names by QUEST+ take it as well.
        defaults["function"] = "weibull"
    if json.loads(result.attrs.get("training", "[]")):
        # A decision stage has no lapses, and its efficiency is that at the ideal observer's
        # proportion of right answers. With lapses up to 0.1 it comes out 8 to 15 % too high.
        defaults["lapse"] = (0.0, 0.005)
    page_rates = fit.experiment_table(result, "fit").items()
    rates = defaults | {name: rate for name, rate in page_rates if name in defaults}
    rates |= arguments
    for name in ("guess", "lapse"):
        bounds = rates[name]
        several = isinstance(bounds, list | tuple)
        rates[name] = tuple(map(float, bounds)) if several else float(bounds)
        low, high = fit.bounds_of(rates[name])
        if not 0 <= low <= high < 1:
            raise InputError(
                f"{name} is {bounds}; give a rate from 0 to below 1, or rising bounds such as "
                "(0, 0.5)"
            )
    if rates["axis"] not in ("log", "linear"):
        raise unknown_name("axis", str(rates["axis"]), ["log", "linear"])
    return rates


def _joined(
    parts: Sequence[tuple[IntArray, fit.ChatFit]], shape: tuple[int, ...]
) -> fit.ChatFit:
    """Join the fits of different prompts."""
    values: JsonObject = {}
    for name, first in vars(parts[0][1]).items():
        if name not in ("samples", "misfit", "deviations"):
            values[name] = np.empty(shape, dtype=first.dtype)
            for rows, part in parts:
                values[name][rows] = getattr(part, name)
    for rows, part in parts:
        if part.samples is not None:
            # Curves without samples stand still in them: their own spread is in the spread
            # between prompts.
            still = np.tile(values["log10_threshold"], (len(part.samples), 1, 1))
            values.setdefault("samples", still)[:, rows] = part.samples
    return fit.ChatFit(**values)


def _blank_curves(chat_fit: fit.ChatFit, curves: BoolArray, reason: str) -> fit.ChatFit:
    """Give some curves a status that has no threshold, and blank their numbers."""
    status = chat_fit.status.astype("<U16")
    status[curves] = reason
    blank = {
        name: np.where(curves, np.nan, getattr(chat_fit, name))
        for name in (
            "log10_threshold",
            "log10_threshold_low",
            "log10_threshold_high",
            "log10_width",
            "log10_raw_threshold",
            "p_value",
        )
    }
    # Rates of a prompt to which nothing was answered are nobody's.
    silent = np.all(np.isin(status, (UNREADABLE, "empty")), axis=1, keepdims=True)
    rates = {
        name: np.where(silent, np.nan, getattr(chat_fit, name))
        for name in ("guess", "lapse")
    }
    return replace(chat_fit, status=status, **blank, **rates)


def _falling(counts: fit.ChatCounts) -> BoolArray:
    """Mark curves in which a contrast has fewer right answers than a lower one, by 3 errors."""
    trials = counts.trials
    with np.errstate(divide="ignore", invalid="ignore"):
        share = counts.yes / trials
        both = trials[..., :, None] + trials[..., None, :]
        pooled = (counts.yes[..., :, None] + counts.yes[..., None, :]) / both
        inverse = 1 / trials[..., :, None] + 1 / trials[..., None, :]
        error = np.sqrt(pooled * (1 - pooled) * inverse)
        fall = np.triu((share[..., :, None] - share[..., None, :]) / error)
    return np.asarray((np.nan_to_num(fall) > _FALL_ERRORS).any(axis=(-2, -1)))


def _add_screen_error(csf: xr.Dataset, curves: SessionCurves | None) -> xr.Dataset:
    """Widen the intervals of the mean by the error of a person's screen calibration.

    The curve of any other observer stays as it is.
    """
    sessions = sessions_of(csf)
    if not sessions:
        return csf
    (level,) = levels_of(csf)
    # An open interval ends at 0.
    with np.errstate(divide="ignore"):
        mean, low, high = (
            np.log10(csf[f"mean_sensitivity{end}"].values) for end in _ENDS
        )
    screens = [session.screen for session in sessions]
    error = screen_error(
        screens,
        [session.trials for session in sessions],
        -mean,
        of_contrast=task_of(csf).axis == CONTRAST_AXIS,
        in_noise=bool(fit.experiment_table(csf, "noise").get("density")),
    )
    reach = normal_quantile(float(csf.attrs["confidence"])) * error.total
    values: JsonObject = {
        "mean_sensitivity_low": 10.0 ** (mean - np.hypot(mean - low, reach)),
        "mean_sensitivity_high": 10.0 ** (mean + np.hypot(high - mean, reach)),
        "log10_screen_sd": error.total,
        "unsure": error.unsure,
    }
    if curves is not None:
        values["log10_session_offset"] = curves.offset
        areas = (f"session_area{end}" for end in _ENDS)
        values |= zip(areas, curves.area, strict=True)
    return csf.assign(_variables(csf, level, values)).assign_attrs(
        screen_offset=error.offset
    )


def prompt_mean(
    chat_fit: fit.ChatFit, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray, str]:
    """Average log10 sensitivity over the prompts with usable thresholds at each level.

    One of sensitivities would grow with the spread between prompts, by a factor of 1.38 for a
    standard deviation of 0.35 log10. Its variance is that between prompts over their number, and,
    where images were resampled, what these contribute besides: all prompts saw the same ones. The
    interval is over "prompts" that could have been chosen, or over the "trials" of the few that
    were. It is never narrower than that of trials alone; and where a step fits best, prompts agree
    because they were shown the same levels, so that their steps' intervals do not shrink with their
    number.
    """
    from scipy.special import stdtrit

    usable = np.isin(chat_fit.status, fit.USABLE) & np.isfinite(
        chat_fit.log10_threshold
    )
    step = usable & np.isin(chat_fit.status, fit.STEPS)
    n = usable.sum(axis=0)
    count = np.maximum(n, 1)
    log_s = np.where(usable, -chat_fit.log10_threshold, 0.0)
    mean = log_s.sum(axis=0) / count
    between = np.zeros(mean.shape)
    over = "trials"
    if len(chat_fit.status) >= FEW:
        over = "prompts"
        freedom = np.maximum(n - 1, 1)
        squares = np.where(usable, (log_s - mean) ** 2, 0.0)
        variance = squares.sum(axis=0) / freedom / count
        if chat_fit.samples is not None:
            samples = np.where(usable, chat_fit.samples, 0.0)
            of_images = (samples.sum(axis=1) / count).var(axis=0, ddof=1)
            # Each prompt's own part of it is already in the spread between prompts.
            single_variance = samples.var(axis=0, ddof=1).sum(axis=0) / count**2
            variance = variance + np.maximum(of_images - single_variance, 0.0)
        reach_of_prompts = stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(variance)
        between = np.where(n > 1, reach_of_prompts, np.inf)
    keep_open = over == "trials"

    def reach(half: FloatArray) -> FloatArray:
        squares = _sum_halves(half**2, usable & ~step, keep_open)
        steps = _sum_halves(half, step, keep_open) / count
        return np.asarray(np.maximum(between, np.sqrt(squares) / count) + steps)

    low = mean - reach(chat_fit.log10_threshold_high - chat_fit.log10_threshold)
    high = mean + reach(chat_fit.log10_threshold - chat_fit.log10_threshold_low)
    mean, low, high = (np.where(n == 0, np.nan, value) for value in (mean, low, high))
    return mean, low, high, over


def _sum_halves(half: FloatArray, mask: BoolArray, keep_open: bool) -> FloatArray:
    """Sum half-widths of intervals over some prompts, infinite where one is open.

    Of many prompts, an infinite one counts as the others do on average.
    """
    closed = mask & (np.isfinite(half) | keep_open)
    count = mask.sum(axis=0)
    finite_count = closed.sum(axis=0)
    share = count / np.maximum(finite_count, 1)
    total = np.where(closed, half, 0.0).sum(axis=0) * share
    return np.where((finite_count == 0) & (count > 0), np.inf, total)


def _variables(dataset: xr.Dataset, level: str, values: JsonMapping) -> JsonObject:
    """Convert values to xarray variables over the level, with their units and names."""
    axis = stimulus_axis_of(dataset).name
    unit = unit_symbol(dataset[axis].attrs)
    units = {"": "", "axis": unit, "1/axis": inverse_symbol(unit)}
    table = packaged_toml("psyprobe.analysis.words", "csf_variables.toml")
    variables: JsonObject = {}
    for name, (dims, unit_name, text) in table.items():
        if values.get(name) is not None:
            label = text.replace("AXIS", axis.replace("_", " "))
            variables[name.replace("AXIS", axis)] = (
                dims.replace("LEVEL", level).split(),
                values[name],
                {**unit_attributes(units[unit_name]), "long_name": label},
            )
    return variables


def _dataset(
    result: xr.Dataset,
    counts: fit.ChatCounts,
    chat_fit: fit.ChatFit,
    method: StrArray,
    settings: fit.FitSettings,
    options: Mapping[str, str],
) -> xr.Dataset:
    """Build the dataset of a measured contrast sensitivity function."""
    import xarray as xr

    from psyprobe.analysis.words.signal_detection import dprime_thresholds

    usable = np.isin(chat_fit.status, fit.USABLE)
    *means, over = prompt_mean(chat_fit, settings.confidence)
    values: JsonObject = {
        **vars(counts),
        **vars(chat_fit),
        "usable": usable,
        "log10_dprime_threshold": dprime_thresholds(counts),
        "sensitivity": 10.0**-chat_fit.log10_threshold,
        "sensitivity_low": 10.0**-chat_fit.log10_threshold_high,
        "sensitivity_high": 10.0**-chat_fit.log10_threshold_low,
        "method": method,
        "group": np.array(counts.groups),
        "AXIS": counts.contrast,
        "excluded": counts.excluded.sum(axis=2),
        "catch_excluded": counts.catch_excluded.sum(axis=1),
        "excluded_rate": counts.excluded_rate,
        "low_validity": counts.excluded_rate > LOW_VALIDITY,
        "n_usable": usable.sum(axis=0),
        "log10_threshold_samples": chat_fit.samples,
    }
    if chat_fit.misfit is not None and chat_fit.deviations is not None:
        values |= zip(_MISFIT, chat_fit.misfit.T, strict=True)
        values["deviation"] = chat_fit.deviations[:, 0]
        values["deviation_sd"] = chat_fit.deviations[:, 1]
    for end, mean in zip(_ENDS, means, strict=True):
        values[f"mean_sensitivity{end}"] = 10.0**mean
    for name in (*_THRESHOLDS, "raw_threshold", "dprime_threshold"):
        values[name] = 10.0 ** values[f"log10_{name}"]
    variables = _variables(result, counts.level, values)
    flags = {"status": (*STATUSES, UNREADABLE), "method": METHODS}
    for name, meanings in flags.items():
        dims, words, attributes = variables[name]
        flagged = flag_attributes(meanings, attributes["long_name"])
        variables[name] = (dims, encode_flags(words, meanings), flagged)
    level_attributes = result[counts.level].attrs
    # Without what the column of a run says of catch trials.
    label = str(level_attributes.get("long_name", counts.level)).split(";")[0]
    fitted = {
        name: getattr(settings, name) for name in ("guess", "lapse", "function", "axis")
    } | dict(options)
    return xr.Dataset(
        variables,
        coords={
            "prompt": list(counts.prompts),
            counts.level: (
                counts.level,
                counts.values,
                {**unit_attributes(unit_symbol(level_attributes)), "long_name": label},
            ),
            "reading": list(fit.EXCLUDED),
            "observer": str(result.attrs.get("observer", "")),
        },
        attrs={name: result.attrs[name] for name in _COPIED if name in result.attrs}
        | {
            "fit": json.dumps(fitted),
            "confidence": settings.confidence,
            "seed": settings.seed,
            "interval_over": over,
        },
    )
