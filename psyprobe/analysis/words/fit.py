"""Count the answers of a questioning run, and fit them by prompt and level.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal
vision-language models. arXiv 2508.10367: 25 prompts, ten questions at each frequency and contrast,
and a logistic function for each frequency; threshold is where half of the answers are yes.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from psyprobe._typing import AnyArray, BoolArray, FloatArray, IntArray, StrArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.logit_fit import (
    averaged,
    fit_logits,
    logit_status,
    satterthwaite,
    student_reach,
    threshold_interval,
    wild_replicates,
)
from psyprobe.analysis.words.trial_table import trials
from psyprobe.errors import InputError
from psyprobe.files.cache import cached
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import as_text
from psyprobe.files.terminal import printable
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Readings of a reply that say neither yes nor no.
EXCLUDED = ("ambiguous", "refusal", "invalid")

#: A pattern of which a smaller share arrives counts as not shown: it has no log contrast.
_LEAST_GAIN = 0.01

_REQUIRED = ("prompt", "response")


def experiment_table(result: xr.Dataset, name: str) -> JsonObject:
    """Read a table ("fit", "human") of a result's experiment; empty without one."""
    table = tomllib.loads(str(result.attrs.get("experiment_toml", ""))).get(name, {})
    return dict(table) if isinstance(table, dict) else {}


@dataclass(frozen=True, eq=False)
class ChatCounts:
    """Answers by prompt (P), level (F) and contrast (L), and those to catch trials by prompt."""

    #: Prompts, by identifier, in the order in which they were asked.
    prompts: tuple[str, ...]
    #: What kind of prompt each is; empty text where the run does not say.
    groups: tuple[str, ...]
    #: Name of the level: "frequency", "phase", "luminance".
    level: str
    #: Values of the level, rising, shape (F,).
    values: FloatArray
    #: Delivered contrast, mean over the questions that count; rising, shape (P, F, L). NaN where
    #: nothing was asked.
    contrast: FloatArray
    #: Sum of what was said (1: pattern seen; a probability counts as it is), shape (P, F, L).
    yes: FloatArray
    #: Number of answers that count, shape (P, F, L).
    trials: FloatArray
    #: Replies that say neither, by `EXCLUDED`, shape (P, F, L, 3).
    excluded: IntArray
    #: Questions that do not count because the display could not deliver the contrast, shape (F,):
    #: not asked, or asked with nothing of the pattern in the image.
    not_shown: IntArray
    #: The same for images without a pattern, which are alike for all levels, shape (P,).
    catch_yes: FloatArray
    catch_trials: FloatArray
    #: Replies to these that say neither, shape (P, 3).
    catch_excluded: IntArray

    @property
    def excluded_rate(self) -> FloatArray:
        """Share of replies that say neither yes nor no, shape (P, F); 0 where nothing was asked."""
        lost = self.excluded.sum(axis=(-2, -1))
        return np.asarray(lost / np.maximum(lost + self.trials.sum(axis=-1), 1))

    def take(self, rows: IntArray) -> ChatCounts:
        """Select the counts of some prompts."""
        names = ["contrast", "yes", "trials", "excluded"]
        names += ["catch_yes", "catch_trials", "catch_excluded"]
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, eq=False)
class TrialCells:
    """Prompt, level and contrast of each question of a run, as indices."""

    result: xr.Dataset
    #: Index into `prompts`, as the next two shape (trials,).
    prompt: IntArray
    #: Index into `values`; catch trials have none.
    value: IntArray
    #: Number of the contrast, from the weakest; catch trials have none.
    step: IntArray
    #: Identifiers.
    prompts: tuple[str, ...]
    level: str
    #: Values of the level, shape (F,).
    values: FloatArray
    #: Number of contrasts L, the most that one prompt has at one level.
    steps: int
    #: Whether it is a catch trial, as the next two shape (trials,).
    catch: BoolArray
    #: Whether it has an answer that says yes or no.
    counted: BoolArray
    #: Whether it was asked at all.
    presented: BoolArray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of counts: prompts, levels and contrasts (P, F, L)."""
        return len(self.prompts), len(self.values), self.steps

    def column(self, name: str) -> FloatArray:
        """Read a numeric column of the table of questions."""
        return self.result[name].values.astype(float)

    def summed(self, mask: BoolArray, values: FloatArray | None = None) -> FloatArray:
        """Sum values, or count questions, in each cell but for catch trials, shape (P, F, L)."""
        mask = mask & ~self.catch
        total = np.zeros(self.shape)
        position = (self.prompt[mask], self.value[mask], self.step[mask])
        np.add.at(total, position, 1.0 if values is None else values[mask])
        return total

    def summed_catch(
        self, mask: BoolArray, values: FloatArray | None = None
    ) -> FloatArray:
        """Sum values, or count questions, over the catch trials of each prompt, shape (P,)."""
        blanks = mask & self.catch
        weights = np.ones(mask.shape) if values is None else values
        total = np.bincount(self.prompt[blanks], weights[blanks], len(self.prompts))
        return total.astype(float)


def locate_trials(result: xr.Dataset, values: Sequence[float] = ()) -> TrialCells:
    """Find the prompt, level and contrast of each question of a result.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    values : sequence of float, optional
        Of the level, that have a place though nobody may have asked there.

    Returns
    -------
    Places
        Contrasts are numbered in the order of what arrives of them, for each prompt and level by
        itself: adaptive designs choose other contrasts for each. A pattern of which less than a
        hundredth arrives, as one that rounding wiped out, counts as not shown.

    Raises
    ------
    InputError
        If this is no result of a questioning run, or none of its questions has an answer that
        counts.
    """
    result = trials(result)
    level = next(iter(levels_of(result)), "levels")
    attributes = getattr(result, "attrs", {})
    stimulus_axis = stimulus_axis_of(result).name if "task" in attributes else "task"
    missing = [
        name
        for name in (level, stimulus_axis, *_REQUIRED)
        if name not in getattr(result, "variables", ())
    ]
    if missing:
        raise InputError(
            f"this is no result of a questioning run: it lacks {', '.join(missing)}; pass what "
            "psyprobe.run() returned"
        )
    prompt, prompts = pd.factorize(as_text(result["prompt"].values))
    nominal = result[stimulus_axis].values.astype(float)
    catch = nominal == 0
    delivered = delivered_contrast(result)
    presented = catch | ~(delivered < _LEAST_GAIN * nominal)
    if "was_shown" in result:
        presented &= result["was_shown"].values.astype(bool)
    counted = presented & np.isfinite(result["response"].values.astype(float))
    if not (counted & ~catch).any():
        if (
            "finish" in result
            and (result["finish"].values[presented] == "length").all()
        ):
            raise InputError(
                f"all {int(presented.sum())} replies of this run were cut off before they said yes "
                f"or no{_quote_commonest_reply(result, presented)}; set asking.max_tokens to more, "
                "or let the server give more"
            )
        raise InputError(
            "no question of this run has an answer that says yes or "
            f"no{_quote_commonest_reply(result, presented)}; do the prompts and "
            f"their words for yes and no suit the probe {result.attrs.get('probe', '')!r}?"
        )
    level_values = result[level].values.astype(float)
    distinct_values = np.union1d(level_values[~catch], np.asarray(values, float))
    value = np.searchsorted(distinct_values, level_values)
    value[catch] = -1
    step = np.full(nominal.shape, -1, dtype=np.int64)
    for p, f in np.ndindex(len(prompts), len(distinct_values)):
        members = (prompt == p) & (value == f) & presented
        _, index = np.unique(nominal[members], return_inverse=True)
        # Without dither, rounding can make a weaker pattern the stronger one.
        arrived = np.bincount(index, delivered[members]) / np.bincount(index)
        step[members] = np.argsort(np.argsort(arrived, kind="stable"))[index]
    return TrialCells(
        result,
        prompt,
        value,
        step,
        tuple(prompts.tolist()),
        level,
        distinct_values,
        int(step.max()) + 1,
        catch,
        counted,
        presented,
    )


def count_answers(result: xr.Dataset) -> ChatCounts:
    """Count the yes, no and unreadable answers of a result at each contrast.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.

    Returns
    -------
    ChatCounts
        Ambiguous replies, refusals and such that cannot be read are counted apart, and never as no.

    Raises
    ------
    InputError
        As for `locate_trials`.
    """
    return count_cells(locate_trials(result))


def count_cells(cells: TrialCells) -> ChatCounts:
    """Count the answers of questions whose prompt, level and contrast are known."""
    result = cells.result
    response = cells.column("response")
    delivered = delivered_contrast(result)
    # A contrast that only got replies that do not count has a contrast all the same.
    has_contrast = cells.presented & np.isfinite(delivered)
    with np.errstate(invalid="ignore"):
        contrast = cells.summed(has_contrast, delivered) / cells.summed(has_contrast)
    reading = np.full(response.shape, "invalid")
    if "reading" in result:
        words = as_text(result["reading"].values)
        reading = np.where(np.isin(words, EXCLUDED), words, "invalid")
    lost = cells.presented & ~cells.counted
    lost_by_reading = [lost & (reading == name) for name in EXCLUDED]
    entries: Any = json.loads(str(result.attrs.get("prompts") or "[]"))
    groups = {
        str(entry["id"]): str(entry.get("group", ""))
        for entry in entries
        if isinstance(entry, dict)
    }
    hidden = ~cells.presented & ~cells.catch
    return ChatCounts(
        prompts=cells.prompts,
        groups=tuple(groups.get(name, "") for name in cells.prompts),
        level=cells.level,
        values=cells.values,
        contrast=contrast,
        yes=cells.summed(cells.counted, response),
        trials=cells.summed(cells.counted),
        excluded=np.stack(list(map(cells.summed, lost_by_reading)), -1).astype(int),
        not_shown=np.bincount(cells.value[hidden], minlength=len(cells.values)),
        catch_yes=cells.summed_catch(cells.counted, response),
        catch_trials=cells.summed_catch(cells.counted),
        catch_excluded=np.stack(
            list(map(cells.summed_catch, lost_by_reading)), -1
        ).astype(int),
    )


def _quote_commonest_reply(result: xr.Dataset, mask: BoolArray) -> str:
    """Quote the commonest reply, for an error message."""
    replies = result["text"].values[mask].tolist() if "text" in result else []
    return "".join(
        f" ({n} of {len(replies)} are {shorten(printable(reply), 60)!r})"
        for reply, n in Counter(replies).most_common(1)
    )


def delivered_contrast(result: xr.Dataset) -> FloatArray:
    """Read the delivered contrast or difference of each question, shape (trials,)."""
    stimulus_axis = stimulus_axis_of(result).name
    delivered = result.get(f"delivered_{stimulus_axis}", result[stimulus_axis])
    return delivered.values.astype(float)


#: A fixed rate, or the bounds between which it is fitted.
Rates = float | tuple[float, float]
Axis = Literal["log", "linear"]

#: Statuses whose threshold is a measured one.
USABLE = ("ok", "biased", "separable", "quasi_separable")
#: Those that stand between levels or at one, whatever answers say beyond that.
STEPS = ("separable", "quasi_separable")
#: Statuses that have a number at all.
_WITH_NUMBER = (*USABLE, "extrapolated")


@dataclass(frozen=True)
class FitSettings:
    """How to fit: the arguments of `chat_csf`, resolved."""

    guess: Rates
    lapse: Rates
    function: str
    axis: Axis
    confidence: float
    resamples: int
    goodness: bool
    seed: int
    #: Whether one of several answers is right, so that the guess rate is that of chance.
    is_choice: bool = False


@dataclass(frozen=True, eq=False)
class ChatFit:
    """Fits of P prompts at F levels."""

    #: Status of `fit_psychometric`, shape (P, F), as all but `samples`.
    status: StrArray
    #: Log10 contrast at F = 0.5; NaN where the status has none.
    log10_threshold: FloatArray
    #: Ends of its interval.
    log10_threshold_low: FloatArray
    log10_threshold_high: FloatArray
    #: Width from F = 0.05 to 0.95, log10 contrast.
    log10_width: FloatArray
    #: Rates that all levels of a prompt share.
    guess: FloatArray
    lapse: FloatArray
    #: Log10 contrast at which half of the answers are yes; NaN where they never are.
    log10_raw_threshold: FloatArray
    #: P-value of the deviance, by bootstrap; NaN where it was not asked for.
    p_value: FloatArray
    #: Thresholds of fits to resampled images, shape (B, P, F).
    samples: FloatArray | None = None
    #: Of posteriors of whole curves: `Misfit` of each prompt, shape (P, 4), and mean and standard
    #: deviation of how far log10 sensitivity lies above the parabola, shape (P, 2, F).
    misfit: FloatArray | None = None
    deviations: FloatArray | None = None


def fit_counts(
    counts: ChatCounts,
    settings: FitSettings,
    resampled_sums: tuple[FloatArray, FloatArray] | None,
) -> ChatFit:
    """Fit psychometric functions to counts of yes; a prompt's levels share rates.

    Parameters
    ----------
    counts : ChatCounts
    settings : FitSettings
        No p-values of probabilities. On a linear axis a threshold at or below contrast 0 is
        "censored_below".
    resampled_sums : (ndarray, ndarray) or None
        Sums of probabilities of yes, (B, P, F, L) and of catch trials (B, P), over resampled
        images. Given where answers are probabilities: the likelihood's interval would be that of
        drawn answers.

    Returns
    -------
    ChatFit
        Catch trials tell the guess rate. Answers that were fitted so before, by any process, are
        not fitted again.
    """
    answers = (
        counts.contrast,
        counts.yes,
        counts.trials,
        counts.catch_yes,
        counts.catch_trials,
        *(resampled_sums or ()),
    )
    return _cached_fit(
        settings, answers, lambda: _count_fields(counts, settings, resampled_sums)
    )


def _cached_fit(
    settings: FitSettings,
    answers: Sequence[AnyArray],
    compute: Callable[[], dict[str, AnyArray]],
) -> ChatFit:
    """Return the fit of answers by settings, computed where no process has."""
    name = hashlib.sha256(repr(settings).encode())
    for values in answers:
        name.update(
            repr(values.shape).encode() + np.ascontiguousarray(values).tobytes()
        )
    return ChatFit(**cached(name.hexdigest(), Path(__file__).parents[1], compute))


def _count_fields(
    counts: ChatCounts,
    settings: FitSettings,
    resampled_sums: tuple[FloatArray, FloatArray] | None,
) -> dict[str, AnyArray]:
    """Fit counts of yes, and compute the fields of a `ChatFit`."""
    from psyprobe.analysis.psychometric import fit_psychometric
    from psyprobe.analysis.psychometric.fit import Kind
    from psyprobe.analysis.psychometric.integration import FEW_TRIALS
    from psyprobe.analysis.psychometric.posterior import Function

    # One more contrast, 0: the catch trials, which stand with the first curve of a prompt, and
    # once only, since its levels have the guess rate in common. Steps without trials have contrast
    # 1.
    tested = np.where(counts.trials > 0, counts.contrast, 1.0)
    contrast, yes, trials = (
        np.pad(v, ((0, 0), (0, 0), (1, 0))) for v in (tested, counts.yes, counts.trials)
    )
    yes[:, 0, 0] = counts.catch_yes
    trials[:, 0, 0] = counts.catch_trials
    # The fit is of log10 of what it is given; for a linear axis that is a number whose logarithm is
    # contrast.
    fitted_contrast = (
        contrast
        if settings.axis == "log"
        else np.where(contrast > 0, 10.0**contrast, 0.0)
    )
    # Curves have nothing in common where both rates are fixed, and are fitted faster alone.
    fitted_rates = tuple in map(type, (settings.guess, settings.lapse))
    options: JsonObject = {
        "function": settings.function,
        "guess": settings.guess,
        "lapse": settings.lapse,
        "shared": (-1,) if fitted_rates else (),
        "seed": settings.seed,
    }
    of_counts = resampled_sums is None
    # Few trials of a forced choice leave profile intervals open, or too short.
    has_posterior = settings.axis == "log" and settings.function in get_args(Function)
    is_few = counts.trials.sum(axis=-1).max(initial=0) < FEW_TRIALS
    is_integrated = settings.is_choice and has_posterior and is_few
    counts_interval: Kind = "posterior" if is_integrated else "profile"
    fit = fit_psychometric(
        fitted_contrast,
        yes,
        trials,
        interval=counts_interval if of_counts else None,
        level=settings.confidence,
        goodness=settings.goodness and of_counts,
        **options,
    )
    values: JsonObject = {
        field.name: np.array(getattr(fit, field.name))
        for field in fields(ChatFit)
        if field.default is MISSING
    }
    values["status"] = values["status"].astype("<U16")
    if resampled_sums is not None:
        resampled_counts = np.zeros((len(resampled_sums[0]), *yes.shape))
        resampled_counts[..., 1:], resampled_counts[..., 0, 0] = resampled_sums
        resampled_thresholds = fit_psychometric(
            fitted_contrast, resampled_counts, trials, interval=None, **options
        ).log10_threshold
        reach = _reach_over_images(
            resampled_thresholds, resampled_counts, trials, settings.confidence
        )
        values["log10_threshold_low"] = fit.log10_threshold - reach
        values["log10_threshold_high"] = fit.log10_threshold + reach
    thresholds = [name for name in values if "threshold" in name]
    if settings.axis == "linear":
        with np.errstate(divide="ignore", invalid="ignore"):
            for name in thresholds:
                values[name] = np.log10(np.maximum(values[name], 0.0))
        values["status"][np.isneginf(values["log10_threshold"])] = "censored_below"
        values["log10_width"] = np.full(values["status"].shape, np.nan)
    has_number = np.isin(values["status"], _WITH_NUMBER)
    for name in ("log10_threshold", "log10_raw_threshold"):
        usable = has_number & np.isfinite(values[name])
        values[name] = np.where(usable, values[name], np.nan)
    return values


def _reach_over_images(
    thresholds: FloatArray, yes: FloatArray, trials: FloatArray, confidence: float
) -> FloatArray:
    """Compute how far Student's t intervals reach over resampled images, shape (P, F).

    What each contrast adds to the variance of a threshold comes from how the two move together;
    each is known with the degrees of freedom of its own images.

    Parameters
    ----------
    thresholds : ndarray, shape (B, P, F)
        Of fits to resampled images; NaN where one has none.
    yes : ndarray, shape (B, P, F, L)
        The sums that were fitted.
    trials : ndarray, shape (P, F, L)
    confidence : float
    """
    finite = np.isfinite(thresholds)
    n = np.maximum(finite.sum(axis=0), 1)
    mean = np.where(finite, thresholds, 0.0).sum(axis=0) / n
    deviations = np.where(finite, thresholds - mean, 0.0)
    variance = (deviations**2).sum(axis=0) / np.maximum(n - 1, 1)
    yes_deviations = (yes - yes.mean(axis=0)) * finite[..., None]
    squares = (yes_deviations**2).sum(axis=0) * n[..., None]
    covariance = np.einsum("bpf,bpfl->pfl", deviations, yes_deviations)
    parts = np.where(
        squares > 0, covariance**2 / np.where(squares > 0, squares, 1.0), 0
    )
    half_square = (parts**2 / np.maximum(trials - 1, 1)).sum(axis=-1)
    freedom = satterthwaite(parts.sum(axis=-1), half_square)
    return student_reach(np.sqrt(variance), freedom, confidence)


def resampled_yes(
    cells: TrialCells, prompt_indices: IntArray, *, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Sum responses at each contrast over images drawn with replacement.

    Parameters
    ----------
    cells : TrialCells
        Of the questions of a run.
    prompt_indices : ndarray of int64, shape (G,)
        Indices of the prompts.
    resamples : int
        How many times, B.
    seed : int

    Returns
    -------
    yes : ndarray of float64, shape (B, G, F, L)
        Deviations from the true sums are enlarged by sqrt(n / (n - 1)), as n images drawn again
        vary too little.
    catch_yes : ndarray of float64, shape (B, G)
        The same for catch trials.
    """
    rng = np.random.default_rng(seed)
    sums = []
    for values in by_image(cells, cells.column("response")):
        selected = values[prompt_indices]
        mean, n = averaged(selected)
        off = np.where(np.isfinite(selected), selected - mean[..., None], 0.0)
        images = selected.shape[-1]
        # Prompts saw the same images, so these are drawn once for all.
        weights = rng.multinomial(
            images, np.full(images, 1 / images), size=(resamples, *selected.shape[1:-1])
        )
        moved = (off * weights[:, None]).sum(axis=-1) * np.sqrt(
            n / np.maximum(n - 1, 1)
        )
        sums.append((mean * n + moved).clip(0, n))
    return sums[0], sums[1]


def fit_p_yes(
    cells: TrialCells,
    contrast: FloatArray,
    prompt_indices: IntArray,
    settings: FitSettings,
) -> ChatFit:
    """Fit psychometric functions to log-odds of yes; a prompt's levels share rates.

    Parameters
    ----------
    cells, prompt_indices
        As for `resampled_yes`; the run has logits.
    contrast : ndarray, shape (P, F, L)
        Of `ChatCounts`.
    settings : FitSettings
        The guess rate has no bounds, or is fixed.

    Returns
    -------
    ChatFit
        Of these prompts, with samples. Answers that were fitted so before are not fitted again.
    """
    logit, catch_logit = (
        v[prompt_indices] for v in by_image(cells, _logit_of_seeing(cells))
    )
    images = np.isfinite(logit).sum(axis=-1)
    x = np.log10(np.where(images > 0, contrast[prompt_indices], 1.0))
    return _cached_fit(
        settings,
        (x, logit, catch_logit),
        lambda: _logit_fields(x, logit, catch_logit, settings),
    )


def _logit_fields(
    x: FloatArray, logit: FloatArray, catch_logit: FloatArray, settings: FitSettings
) -> dict[str, AnyArray]:
    """Fit log-odds of yes, and compute the fields of a `ChatFit`."""
    from psyprobe.analysis.psychometric.sigmoids import threshold_at

    guess = (0.0, 1.0) if isinstance(settings.guess, tuple) else (settings.guess,) * 2
    fit = fit_logits(x, logit, catch_logit, guess, bounds_of(settings.lapse))
    samples = wild_replicates(
        fit, logit, catch_logit, resamples=settings.resamples, seed=settings.seed
    )
    status = logit_status(fit, logit)
    has_number = np.isin(status, _WITH_NUMBER)
    threshold, low, high = (
        np.where(has_number, value, np.nan)
        for value in (
            fit.threshold,
            *threshold_interval(fit, logit, catch_logit, settings.confidence),
        )
    )
    width = np.where(np.isnan(threshold), np.nan, fit.width)
    guesses, lapses = (
        np.tile(rate[:, None], x.shape[1]) for rate in (fit.guess, fit.lapse)
    )
    return dict(
        status=status,
        log10_threshold=threshold,
        log10_threshold_low=low,
        log10_threshold_high=high,
        log10_width=width,
        guess=guesses,
        lapse=lapses,
        log10_raw_threshold=threshold_at(0.5, threshold, width, guesses, lapses),
        p_value=np.full(threshold.shape, np.nan),
        samples=samples,
    )


def bounds_of(rates: Rates) -> tuple[float, float]:
    """Return the lowest and highest value of a rate, the same if it is fixed."""
    return rates if isinstance(rates, tuple) else (rates, rates)


def by_image(cells: TrialCells, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Arrange values of questions by the image that they are about.

    Parameters
    ----------
    cells : TrialCells
        Of the questions of a run.
    values : ndarray, shape (trials,)
        One a question.

    Returns
    -------
    tests : ndarray of float64, shape (P, F, L, R)
        NaN where a prompt has no answer to an image. The image of one place is the same for all
        prompts. Of two images asked about in both orders, the mean, which a preference for one
        position does not move.
    blanks : ndarray of float64, shape (P, K)
        The same for catch trials.
    """
    seeds = cells.result["image_seed"].values
    tests = cells.counted & ~cells.catch
    blanks = cells.counted & cells.catch
    # Images are numbered at each level and contrast, by seed.
    image = _number_images(
        np.stack([cells.value[tests], cells.step[tests]]), seeds[tests]
    )
    catch_image = np.unique(seeds[blanks], return_inverse=True)[1]
    return (
        _cell_means(
            (cells.prompt[tests], cells.value[tests], cells.step[tests], image),
            cells.shape,
            values[tests],
        ),
        _cell_means(
            (cells.prompt[blanks], catch_image), cells.shape[:1], values[blanks]
        ),
    )


def _cell_means(
    position: tuple[IntArray, ...], shape: tuple[int, ...], values: FloatArray
) -> FloatArray:
    """Average values in each cell (prompt, level, contrast, image)."""
    full_shape = (*shape, int(position[-1].max(initial=0)) + 1)
    total = np.zeros(full_shape)
    count = np.zeros(full_shape)
    np.add.at(total, position, values)
    np.add.at(count, position, 1.0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _logit_of_seeing(cells: TrialCells) -> FloatArray:
    """Compute the log-odds of "pattern seen" from those of yes, by polarity and order."""
    logit, p_yes, response = (
        cells.column(name) for name in ("logit", "p_yes", "response")
    )
    upright = np.abs(response - p_yes) <= np.abs(response - (1 - p_yes))
    return np.where(upright, logit, -logit)


def _number_images(cell: IntArray, seeds: npt.NDArray[np.generic]) -> IntArray:
    """Number the images within each cell by their seeds."""
    codes = np.unique(seeds, return_inverse=True)[1]
    ranks = pd.Series(codes).groupby(list(cell)).rank("dense")
    return np.asarray(ranks, np.int64) - 1
