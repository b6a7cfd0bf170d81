"""The contrast sensitivity function of an observer that was asked in words, wording by wording and
on the whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
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
from psyprobe.files.units import inverse_symbol, unit_attributes, unit_symbol
from psyprobe.running.task import stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr

#: Shares of replies that say neither: above the first a curve is flagged, above the second it has
#: no threshold.
LOW_VALIDITY = 0.1
NO_VALIDITY = 0.5
#: The status of the latter.
UNREADABLE = "unreadable"
#: How a wording can be fitted.
METHODS = ("counts", "logits", "posterior")
#: Fewer wordings than this say nothing of others.
FEW = 3

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
    """Contrast sensitivity of an observer that was asked in words.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    guess, lapse : float or (float, float), optional
        Rates of yes without a pattern and of no to any: fixed, or the bounds between which they are
        fitted, common to all levels of a wording; catch trials tell the guess rate. Without them
        what the experiment says, else (0, 0.5), or 1 / m where one of m answers is right, and
        (0, 0.1). Logits tell the guess rate so well that it is bounded only where it is
        fixed.
    function : str, optional
        Of counts, as for `fit_psychometric`; without it what the experiment says, else "logistic".
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
        `contrast_level` besides: `contrast`, `trials`, `yes`, `excluded`; `catch_yes` and
        `catch_trials` by prompt. Over the level: `mean_sensitivity`, geometric over usable
        wordings, with its interval, and `n_usable`.

        Of a person, the intervals of the mean hold the error of the screen, whose standard
        deviation is `log10_screen_sd`; where `unsure`, the threshold lies below a contrast of 0.03 on a
        screen that nobody measured. By `session`: `log10_session_offset`, and `session_area` under the
        log CSF with its interval.

    Raises
    ------
    InputError
        If this is no result of a questioning run, or a value is out of range.

    Notes
    -----
    A run by qCSF (``design = "quick_csf"``) puts few questions at each frequency, all near the
    threshold that it expects there; one by QUEST+ ends where the threshold looks narrow enough.
    Their thresholds are those of the design: means of its posterior with central credible
    intervals, told the answers as they are read here; of QUEST+ where these are drawn ones, and not
    probabilities. Where `guess`, `lapse`, `function` or `axis` is given, or the page has a [fit],
    each level is fitted by itself, as in all other runs; such fits of a run by qCSF are biased, and
    many are open; of their 95 % intervals after QUEST+ in text 82 to 88 % held the truth of
    simulated observers.

    Replies that are ambiguous, refusals or unreadable are left out and counted: above 10 % a curve
    is flagged (`low_validity`), above 50 % its status is "unreadable" and it has no threshold. The
    interval of the mean is over wordings, Student's t of the log sensitivities; with fewer than
    three wordings that of the curves themselves, than which no interval is narrower. Curves that a
    step fits best ("separable", "quasi_separable") add the whole of their own interval: all
    wordings were shown the same levels, and agreeing between two of them is no precision.

    References
    ----------
    Hernandez-Camara et al. (2025), arXiv 2508.10367.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence:g} must lie between 0 and 1; usual is 0.95")
    given = {"guess": guess, "lapse": lapse, "function": function, "axis": axis}
    design = adaptive_design(result) if all(value is None for value in given.values()) else ""
    at = fit.locate_trials(result, design_frequencies(result) if design == "quick_csf" else ())
    rates = _rates(result, given)
    how = fit.FitSettings(
        **rates, confidence=confidence, resamples=resamples, goodness=goodness, seed=seed
    )
    counts = fit.count_cells(at)
    options = {}
    if design:
        options = design_options(result)
        how = replace(how, function=options["function"], axis="log")
    method = _methods(at, counts, design, how)
    sessions = sessions_of(result) if design == "quick_csf" else ()
    curves = session_curves(result, at, sessions, how) if sessions else None
    found = _fit(at, counts, method, how, None if curves is None else curves.offset)
    made = _dataset(result, counts, _without_unreadable(found, counts), method, how, options)
    return _with_screen(made, curves)


def chat_csfs(results: Iterable[xr.Dataset], **options: Any) -> list[xr.Dataset]:
    """Contrast sensitivity of several observers; what already is one stays as it is.

    Parameters
    ----------
    results : iterable of xarray.Dataset
        Of questioning runs, or of `chat_csf`.
    **options
        Of `chat_csf`.
    """
    return [
        result if "threshold" in result and "status" in result else chat_csf(result, **options)
        for result in results
    ]


def _with_logits(at: fit.TrialCells) -> npt.NDArray[np.bool_]:
    """Which wordings have a logit for each answer that counts, and were read by it."""
    none = np.zeros(len(at.prompts), dtype=bool)
    if not {"logit", "p_yes", "image_seed"} <= set(at.result.variables):
        return none
    by_logit = np.isfinite(at.column("logit")) & (
        at.result["readout"].values.astype(str) == "p_yes"
    )
    return np.asarray(np.bincount(at.prompt[at.counted & ~by_logit], minlength=len(none)) == 0)


def _methods(
    at: fit.TrialCells, counts: fit.ChatCounts, design: str, how: fit.FitSettings
) -> npt.NDArray[np.str_]:
    """How each wording is fitted; of QUEST+ the posterior counts where answers are drawn ones."""
    if design == "quick_csf":
        return np.full(len(at.prompts), "posterior")
    logits = _with_logits(at) & (how.axis == "log")
    drawn = (counts.yes % 1 == 0).all(axis=(1, 2)) & (counts.catch_yes % 1 == 0)
    other = np.where(drawn & (design == "quest_plus"), "posterior", "counts")
    return np.where(logits, "logits", other)


def _fit(
    at: fit.TrialCells,
    counts: fit.ChatCounts,
    method: npt.NDArray[np.str_],
    how: fit.FitSettings,
    offsets: FloatArray | None,
) -> fit.ChatFit:
    parts: list[tuple[npt.NDArray[np.int64], fit.ChatFit]] = []
    by_logit, by_count, by_design = (
        np.flatnonzero(method == name) for name in ("logits", "counts", "posterior")
    )
    if by_design.size:
        parts.append((by_design, fit_posterior(at.result, at, counts, how, by_design, offsets)))
    if by_logit.size:
        parts.append((by_logit, fit.fit_p_yes(at, counts.contrast, by_logit, how)))
    if by_count.size:
        names = (
            "contrast",
            "yes",
            "trials",
            "excluded",
            "catch_yes",
            "catch_trials",
            "catch_excluded",
        )
        own = replace(counts, **{name: getattr(counts, name)[by_count] for name in names})
        again = None
        if (own.yes % 1 != 0).any() or (own.catch_yes % 1 != 0).any():
            again = fit.resampled_yes(
                at, by_count, resamples=max(how.resamples // 4, 2), seed=how.seed
            )
        parts.append((by_count, fit.fit_counts(own, how, again)))
    return parts[0][1] if len(parts) == 1 else _joined(parts, counts.trials.shape[:2])


def _rates(result: xr.Dataset, given: Mapping[str, Any]) -> dict[str, Any]:
    """How to fit: as it was said, else as the experiment says, else as usual."""
    usual: dict[str, Any] = {
        "guess": (0.0, 0.5),
        "lapse": (0.0, 0.1),
        "function": "logistic",
        "axis": "log",
    }
    chance = task_of(result).chance
    if chance is not None:
        usual["guess"] = chance
    said = usual | {
        name: value for name, value in fit.experiment_table(result, "fit").items() if name in usual
    }
    chosen = said | {name: value for name, value in given.items() if value is not None}
    for name in ("guess", "lapse"):
        rates = chosen[name]
        chosen[name] = tuple(map(float, rates)) if isinstance(rates, list | tuple) else float(rates)
        low, high = fit.bounds_of(chosen[name])
        if not 0 <= low <= high < 1:
            raise InputError(
                f"{name} is {rates}; give a rate from 0 to below 1, or rising bounds such as "
                "(0, 0.5)"
            )
    if chosen["axis"] not in ("log", "linear"):
        raise unknown_name("axis", str(chosen["axis"]), ["log", "linear"])
    return chosen


def _joined(
    parts: list[tuple[npt.NDArray[np.int64], fit.ChatFit]], shape: tuple[int, ...]
) -> fit.ChatFit:
    values: dict[str, Any] = {}
    for name, first in vars(parts[0][1]).items():
        if name != "samples":
            values[name] = np.empty(shape, dtype=first.dtype)
            for rows, part in parts:
                values[name][rows] = getattr(part, name)
    sizes = [len(part.samples) for _, part in parts if part.samples is not None]
    if not sizes:
        return fit.ChatFit(**values)
    # Curves without samples stand still in them: their own spread is in the spread between
    # wordings.
    size = max(sizes)
    samples = np.broadcast_to(values["log10_threshold"], (size, *shape)).copy()
    for rows, part in parts:
        if part.samples is not None:
            samples[:, rows] = part.samples
    return fit.ChatFit(**values, samples=samples)


def _without_unreadable(found: fit.ChatFit, counts: fit.ChatCounts) -> fit.ChatFit:
    unreadable = counts.excluded_rate > NO_VALIDITY
    status = found.status.astype("<U16")
    status[unreadable] = UNREADABLE
    blank = {
        name: np.where(unreadable, np.nan, getattr(found, name))
        for name in (
            "log10_threshold",
            "log10_threshold_low",
            "log10_threshold_high",
            "log10_width",
            "log10_raw_threshold",
            "p_value",
        )
    }
    # Rates of a wording to which nothing was answered are nobody's.
    silent = np.all(np.isin(status, (UNREADABLE, "empty")), axis=1, keepdims=True)
    rates = {name: np.where(silent, np.nan, getattr(found, name)) for name in ("guess", "lapse")}
    return replace(found, status=status, **blank, **rates)


def _with_screen(csf: xr.Dataset, curves: SessionCurves | None) -> xr.Dataset:
    """The curve of a person with the error of the screen in the intervals of its mean; any other as
    it is.
    """
    from scipy.special import ndtri

    sessions = sessions_of(csf)
    if not sessions:
        return csf
    (level,) = levels_of(csf)
    # An open interval ends at 0.
    with np.errstate(divide="ignore"):
        mean, low, high = (
            np.log10(csf[f"mean_sensitivity{end}"].values) for end in ("", "_low", "_high")
        )
    error = screen_error(
        [session.screen for session in sessions], [session.trials for session in sessions], -mean
    )
    reach = float(ndtri((1 + float(csf.attrs["confidence"])) / 2)) * error.total
    about = {name: csf[name].attrs for name in ("mean_sensitivity_low", "mean_sensitivity_high")}
    shares = {
        "units": "1",
        "long_name": "Standard deviation, log10 contrast, of the error that stays with the screen",
    }
    told = {
        "units": "1",
        "long_name": "Whether so little of the panel is known that its single steps may decide",
    }
    ends = {
        "mean_sensitivity_low": 10.0 ** (mean - np.hypot(mean - low, reach)),
        "mean_sensitivity_high": 10.0 ** (mean + np.hypot(high - mean, reach)),
    }
    added: dict[str, Any] = {name: ((level,), values, about[name]) for name, values in ends.items()}
    added |= {
        "log10_screen_sd": ((level,), error.total, shares),
        "unsure": ((level,), error.unsure, told),
    }
    if curves is not None:
        areas = {"units": "1", "long_name": "Area under the log CSF"}
        offsets = {
            "units": "1",
            "long_name": "log10 of thresholds of the session over those of all",
        }
        added["log10_session_offset"] = (("session",), curves.offset, offsets)
        for name, values in zip(
            ("session_area", "session_area_low", "session_area_high"), curves.area, strict=True
        ):
            added[name] = (("session",), values, areas)
    return csf.assign(added).assign_attrs(screen_offset=error.offset)


def prompt_mean(
    found: fit.ChatFit, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray, str]:
    """Average the log10 sensitivities of all usable thresholds at each level.

    One of sensitivities would grow with the spread between wordings, by a factor of 1.38 for a
    standard deviation of 0.35 log10. Its variance is that between wordings over their number, and,
    where images were resampled, what these contribute besides: all wordings saw the same ones. The
    interval is over "prompts" that could have been chosen, or over the "trials" of the few that
    were. It is never narrower than that of trials alone; and where a step fits best, wordings agree
    because they were shown the same levels, so that their steps' intervals do not shrink with their
    number.
    """
    from scipy.special import stdtrit

    usable = np.isin(found.status, fit.USABLE) & np.isfinite(found.log10_threshold)
    step = usable & np.isin(found.status, fit.STEPS)
    n = usable.sum(axis=0)
    some = np.maximum(n, 1)
    log_s = np.where(usable, -found.log10_threshold, 0.0)
    mean = log_s.sum(axis=0) / some
    between = np.zeros(mean.shape)
    over = "trials"
    if len(found.status) >= FEW:
        over = "prompts"
        variance = (
            np.where(usable, (log_s - mean) ** 2, 0.0).sum(axis=0) / np.maximum(n - 1, 1) / some
        )
        if found.samples is not None:
            of_images = (np.where(usable, found.samples, 0.0).sum(axis=1) / some).var(
                axis=0, ddof=1
            )
            # Each wording's own part of it is already in the spread between wordings.
            own = (np.where(usable, found.samples.var(axis=0, ddof=1), 0.0)).sum(axis=0) / some**2
            variance = variance + np.maximum(of_images - own, 0.0)
        between = np.where(
            n > 1, stdtrit(np.maximum(n - 1, 1), (1 + confidence) / 2) * np.sqrt(variance), np.inf
        )

    def reach(own: FloatArray) -> FloatArray:
        trials = np.sqrt(_summed(own**2, usable & ~step, few=over == "trials")) / some
        return np.asarray(
            np.maximum(between, trials) + _summed(own, step, few=over == "trials") / some
        )

    low = mean - reach(found.log10_threshold_high - found.log10_threshold)
    high = mean + reach(found.log10_threshold - found.log10_threshold_low)
    mean, low, high = (np.where(n == 0, np.nan, value) for value in (mean, low, high))
    return mean, low, high, over


def _summed(own: FloatArray, which: npt.NDArray[np.bool_], *, few: bool) -> FloatArray:
    """Sum over some wordings, infinite where one is; of many, an infinite one counts as the others
    do on average.
    """
    closed = which & (np.isfinite(own) | few)
    count = which.sum(axis=0)
    shown = closed.sum(axis=0)
    known = np.where(closed, own, 0.0).sum(axis=0) * (count / np.maximum(shown, 1))
    return np.asarray(np.where(shown < np.minimum(count, 1), np.inf, known))


def _in_both(
    dims: tuple[str, ...], log10_contrast: FloatArray, unit: str, name: str, label: str
) -> dict[str, tuple[tuple[str, ...], Any, str, str]]:
    """The variables of a threshold: contrast, and its log10 under a name of its own."""
    return {
        name: (dims, 10.0**log10_contrast, unit, label),
        f"log10_{name}": (dims, log10_contrast, "1", f"{label}, log10"),
    }


def _dataset(
    result: xr.Dataset,
    counts: fit.ChatCounts,
    found: fit.ChatFit,
    method: npt.NDArray[np.str_],
    how: fit.FitSettings,
    options: Mapping[str, str],
) -> xr.Dataset:
    import xarray as xr

    from psyprobe.analysis.words.signal_detection import dprime_thresholds

    dims = ("prompt", counts.level)
    usable = np.isin(found.status, fit.USABLE)
    mean, low, high, over = prompt_mean(found, how.confidence)
    stimulus_axis = stimulus_axis_of(result).name
    rate = ""
    unit = unit_symbol(result[stimulus_axis].attrs)
    of_contrast = inverse_symbol(unit)
    fields: dict[str, tuple[tuple[str, ...], Any, str, str]] = {
        "status": (dims, found.status, "", "What can be said of the curve"),
        "usable": (dims, usable, "", "Whether the threshold enters means and scores"),
        **_in_both(dims, found.log10_threshold, unit, "threshold", "Threshold, F = 0.5"),
        **_in_both(
            dims, found.log10_threshold_low, unit, "threshold_low", "Lower end of the interval"
        ),
        **_in_both(
            dims, found.log10_threshold_high, unit, "threshold_high", "Upper end of the interval"
        ),
        "sensitivity": (dims, 10.0**-found.log10_threshold, of_contrast, "Sensitivity"),
        "sensitivity_low": (
            dims,
            10.0**-found.log10_threshold_high,
            of_contrast,
            "Lower end of the interval",
        ),
        "sensitivity_high": (
            dims,
            10.0**-found.log10_threshold_low,
            of_contrast,
            "Upper end of the interval",
        ),
        "log10_width": (dims, found.log10_width, "1", "Width in log10 units, F = 0.05 to 0.95"),
        "guess": (dims, found.guess, rate, "Guess rate: yes without a pattern"),
        "lapse": (dims, found.lapse, rate, "Lapse rate: no to any contrast"),
        "p_value": (dims, found.p_value, "", "Of the deviance"),
        **_in_both(
            dims,
            found.log10_raw_threshold,
            unit,
            "raw_threshold",
            "Where half of the answers are yes",
        ),
        **_in_both(
            dims,
            dprime_thresholds(counts),
            unit,
            "dprime_threshold",
            "Where d' = 1 against the catch trials",
        ),
        "method": (dims[:1], method, "", "What was fitted"),
        "group": (dims[:1], np.array(counts.groups), "", "Kind of wording"),
        stimulus_axis: (
            (*dims, "contrast_level"),
            counts.contrast,
            unit,
            f"Delivered {stimulus_axis.replace('_', ' ')}",
        ),
        "trials": ((*dims, "contrast_level"), counts.trials, "", "Answers that count"),
        "yes": ((*dims, "contrast_level"), counts.yes, "", "Yes, or the sum of its probabilities"),
        "excluded": (
            (*dims, "reading"),
            counts.excluded.sum(axis=2),
            "",
            "Replies that say neither",
        ),
        "excluded_rate": (dims, counts.excluded_rate, "", "Share of replies that say neither"),
        "low_validity": (
            dims,
            counts.excluded_rate > LOW_VALIDITY,
            "",
            "Whether that is more than 10 %",
        ),
        "catch_yes": (dims[:1], counts.catch_yes, "", "Yes to catch trials"),
        "catch_trials": (dims[:1], counts.catch_trials, "", "Catch trials that count"),
        "not_shown": (
            dims[1:],
            counts.not_shown,
            "",
            "Questions whose contrast could not be delivered",
        ),
        "mean_sensitivity": (dims[1:], 10.0**mean, of_contrast, "Geometric mean over wordings"),
        "mean_sensitivity_low": (dims[1:], 10.0**low, of_contrast, "Lower end of the interval"),
        "mean_sensitivity_high": (dims[1:], 10.0**high, of_contrast, "Upper end of the interval"),
        "n_usable": (dims[1:], usable.sum(axis=0), "", "Wordings in the mean"),
    }
    if found.samples is not None:
        fields["log10_threshold_samples"] = (
            ("sample", *dims),
            found.samples,
            "1",
            "Thresholds from resampled images",
        )
    about = result[counts.level].attrs
    # Without what the column of a run says of catch trials.
    label = str(about.get("long_name", counts.level)).split(";")[0]
    fitted = {name: getattr(how, name) for name in ("guess", "lapse", "function", "axis")} | dict(
        options
    )
    variables: dict[str, Any] = {
        name: (dims, values, {**unit_attributes(unit), "long_name": text})
        for name, (dims, values, unit, text) in fields.items()
    }
    for name, meanings in {"status": (*STATUSES, UNREADABLE), "method": METHODS}.items():
        flagged, words, _, text = fields[name]
        flags = encode_flags(words, meanings)
        variables[name] = (flagged, flags, flag_attributes(meanings, text))
    return xr.Dataset(
        variables,
        coords={
            "prompt": list(counts.prompts),
            counts.level: (
                counts.level,
                counts.values,
                {**unit_attributes(unit_symbol(about)), "long_name": label},
            ),
            "reading": list(fit.EXCLUDED),
            "observer": str(result.attrs.get("observer", "")),
        },
        attrs={name: result.attrs[name] for name in _COPIED if name in result.attrs}
        | {
            "fit": json.dumps(fitted),
            "confidence": how.confidence,
            "seed": how.seed,
            "interval_over": over,
        },
    )
