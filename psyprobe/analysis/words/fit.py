"""Psychometric functions of every wording and level of a questioning run, by what the answers allow.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal vision-language
models. arXiv 2508.10367: a logistic function for each frequency; threshold is where half of the answers are yes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.words.counts import ChatCounts, Places
from psyprobe.analysis.words.logit_fit import fit_logits, wild_replicates
from psyprobe.analysis.words.logit_status import logit_status

if TYPE_CHECKING:
    import xarray as xr

#: A fixed rate, or the bounds between which it is fitted.
Rates = float | tuple[float, float]
Axis = Literal["log", "linear"]

#: Statuses whose threshold is a measured one.
USABLE = ("ok", "biased", "separable", "quasi_separable")
#: Statuses that have a number at all.
_WITH_NUMBER = (*USABLE, "extrapolated")


@dataclass(frozen=True, eq=False)
class ChatFit:
    """Fits of P wordings at F levels."""

    #: As `fit_psychometric` gives it, shape (P, F), as all but `samples`.
    status: npt.NDArray[np.str_]
    #: Log10 contrast at F = 0.5; NaN where the status has none.
    threshold: FloatArray
    #: Ends of its interval.
    threshold_low: FloatArray
    threshold_high: FloatArray
    #: From F = 0.05 to 0.95, log10 contrast.
    width: FloatArray
    #: Of all levels of a wording together.
    guess: FloatArray
    lapse: FloatArray
    #: Log10 contrast at which half of the answers are yes; NaN where they never are.
    raw_threshold: FloatArray
    #: Of the deviance, by bootstrap; NaN where it was not asked for.
    p_value: FloatArray
    #: Thresholds of fits to resampled images, shape (B, P, F).
    samples: FloatArray | None = None


def fit_counts(
    counts: ChatCounts,
    *,
    guess: Rates = (0.0, 0.5),
    lapse: Rates = (0.0, 0.1),
    function: str = "logistic",
    axis: Axis = "log",
    confidence: float = 0.95,
    resampled: tuple[FloatArray, FloatArray] | None = None,
    goodness: bool = False,
    seed: int = 0,
) -> ChatFit:
    """Fit numbers of yes by maximum likelihood, guess and lapse rates common to all levels of a wording.

    Parameters
    ----------
    counts : ChatCounts
        What was answered.
    guess, lapse : float or (float, float), optional
        Fixed, or bounds.
    function : str, optional
        As for `fit_psychometric`.
    axis : {"log", "linear"}, optional
        Whether the function is of log10 contrast or, as in the paper, of contrast itself. A threshold at or below
        contrast 0 is "censored_below".
    confidence : float, optional
        Of the intervals.
    resampled : (ndarray, ndarray), optional
        Sums of probabilities of yes, (B, P, F, L) and of catch trials (B, P), over resampled images. Given where
        answers are probabilities: the likelihood's interval would be that of drawn answers.
    goodness : bool, optional
        Whether to find p-values of the deviance, by 999 fits to drawn answers a curve; never of probabilities.
    seed : int, optional
        Of the bootstrap that tests whether a curve rises.

    Returns
    -------
    ChatFit
        Catch trials tell the guess rate.
    """
    from scipy.special import ndtri

    from psyprobe.analysis.psychometric import fit_psychometric

    contrast, yes, trials = with_catch_trials(counts)
    # The fit is of log10 of what it is given; for a linear axis that is a number whose logarithm is contrast.
    given = contrast if axis == "log" else np.where(contrast > 0, 10.0**contrast, 0.0)
    # Curves have nothing in common where both rates are fixed, and are fitted faster alone.
    shared = (-1,) if isinstance(guess, tuple) or isinstance(lapse, tuple) else ()
    options: dict[str, Any] = {"function": function, "guess": guess, "lapse": lapse, "shared": shared, "seed": seed}
    interval: Literal["profile"] | None = "profile" if resampled is None else None
    tested = goodness and resampled is None
    found = fit_psychometric(given, yes, trials, interval=interval, level=confidence, goodness=tested, **options)
    middle, raw = np.array(found.threshold), np.array(found.raw_threshold)
    low, high = np.array(found.threshold_low), np.array(found.threshold_high)
    if resampled is not None:
        again = np.zeros((len(resampled[0]), *yes.shape))
        again[..., 1:], again[..., 0, 0] = resampled
        drawn = fit_psychometric(given, again, trials, interval=None, **options).threshold
        known = np.isfinite(drawn)
        n = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, drawn, 0.0).sum(axis=0) / n
        spread = np.sqrt(np.where(known, (drawn - mean) ** 2, 0.0).sum(axis=0) / np.maximum(n - 1, 1))
        reach = float(ndtri((1 + confidence) / 2)) * spread
        low, high = middle - reach, middle + reach
    status, width = np.asarray(found.status).astype("<U16"), np.array(found.width)
    if axis == "linear":
        with np.errstate(divide="ignore", invalid="ignore"):
            middle, low, high, raw = (np.log10(np.maximum(end, 0.0)) for end in (middle, low, high, raw))
        status[np.isneginf(middle)] = "censored_below"
        width = np.full(width.shape, np.nan)
    guesses, lapses = (np.broadcast_to(np.array(v, dtype=np.float64), status.shape) for v in (found.guess, found.lapse))
    known = np.isin(status, _WITH_NUMBER)
    threshold, raw = np.where(known, middle, np.nan), np.where(known & np.isfinite(raw), raw, np.nan)
    return ChatFit(status, threshold, low, high, width, guesses, lapses, raw, np.array(found.p_value))


def resampled_yes(
    result: xr.Dataset, at: Places, counts: ChatCounts, which: npt.NDArray[np.int64], *, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Sums of what was said over images drawn again, with replacement, at each contrast.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    at : Places
        Where its questions belong.
    counts : ChatCounts
        Of the same.
    which : ndarray of int64, shape (G,)
        Indices of the wordings.
    resamples : int
        How many times, B.
    seed : int
        Of the draws.

    Returns
    -------
    yes : ndarray of float64, shape (B, G, F, L)
        Deviations from the true sums are enlarged by sqrt(n / (n - 1)), as n images drawn again vary too little.
    catch_yes : ndarray of float64, shape (B, G)
        The same for catch trials.
    """
    rng = np.random.default_rng(seed)
    said = result["said"].values.astype(np.float64)
    sums = []
    for values in by_image(result, at, counts.trials.shape, said):
        chosen = values[which]
        has = np.isfinite(chosen)
        n = has.sum(axis=-1)
        mean = np.where(has, chosen, 0.0).sum(axis=-1) / np.maximum(n, 1)
        off = np.where(has, chosen - mean[..., None], 0.0)
        images = chosen.shape[-1]
        # Wordings saw the same images, so these are drawn once for all.
        drawn = rng.multinomial(images, np.full(images, 1 / images), size=(resamples, *chosen.shape[1:-1]))
        moved = (off * drawn[:, None]).sum(axis=-1) * np.sqrt(n / np.maximum(n - 1, 1))
        sums.append((mean * n + moved).clip(0, n))
    return sums[0], sums[1]


def with_catch_trials(counts: ChatCounts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Contrast, yes and trials with one more contrast, 0: the catch trials, which stand with the first curve.

    Parameters
    ----------
    counts : ChatCounts
        What was answered.

    Returns
    -------
    contrast, yes, trials : ndarray of float64, shape (P, F, 1 + L)
        Steps without trials have contrast 1.
    """
    shape = counts.trials.shape
    contrast = np.zeros((shape[0], shape[1], 1 + shape[2]))
    yes, trials = np.zeros_like(contrast), np.zeros_like(contrast)
    contrast[..., 1:] = np.where(counts.trials > 0, counts.contrast, 1.0)
    yes[..., 1:], trials[..., 1:] = counts.yes, counts.trials
    # Once only: the levels of a wording have the guess rate, and so these trials, in common.
    yes[:, 0, 0], trials[:, 0, 0] = counts.catch_yes, counts.catch_trials
    return contrast, yes, trials


def fit_p_yes(
    result: xr.Dataset,
    at: Places,
    counts: ChatCounts,
    which: npt.NDArray[np.int64],
    *,
    guess: tuple[float, float] = (0.0, 1.0),
    lapse: tuple[float, float] = (0.0, 0.1),
    confidence: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> ChatFit:
    """Fit logits of yes by least squares, guess and lapse rates common to all levels of a wording.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run, with logits.
    at : Places
        Where its questions belong.
    counts : ChatCounts
        Of the same.
    which : ndarray of int64, shape (G,)
        Indices of the wordings to fit.
    guess, lapse : (float, float), optional
        Bounds.
    confidence : float, optional
        Of the intervals.
    resamples : int, optional
        Of the bootstrap over images.
    seed : int, optional
        Of the bootstrap.

    Returns
    -------
    ChatFit
        Of these wordings, with samples.
    """
    from scipy.special import stdtrit

    from psyprobe.analysis.psychometric.sigmoids import threshold_at

    x = np.log10(np.where(counts.trials > 0, counts.contrast, 1.0))[which]
    logit, catch_logit = (v[which] for v in by_image(result, at, counts.trials.shape, _seen_logit(result)))
    has, blank = np.isfinite(logit), np.isfinite(catch_logit)
    images, catch_images = has.sum(axis=-1).astype(np.float64), blank.sum(axis=-1).astype(np.float64)
    mean = np.where(has, logit, 0.0).sum(axis=-1) / np.maximum(images, 1)
    catch_mean = np.where(blank, catch_logit, 0.0).sum(axis=-1) / np.maximum(catch_images, 1)
    fit = fit_logits(x, mean, images, catch_mean, catch_images, guess=guess, lapse=lapse)
    samples = wild_replicates(fit, x, logit, catch_logit, guess=guess, lapse=lapse, resamples=resamples, seed=seed)
    status = logit_status(fit, x, logit)
    freedom = np.maximum(images.sum(axis=(1, 2)) + catch_images - 2 * x.shape[1] - 2, 1)[:, None]
    reach = stdtrit(freedom, (1 + confidence) / 2) * samples.std(axis=0, ddof=1)
    threshold = np.where(np.isin(status, _WITH_NUMBER), fit.threshold, np.nan)
    ones = np.ones_like(threshold)
    width, guesses, lapses = np.where(np.isnan(threshold), np.nan, fit.width), fit.guess[:, None], fit.lapse[:, None]
    return ChatFit(
        status=status,
        threshold=threshold,
        threshold_low=threshold - reach,
        threshold_high=threshold + reach,
        width=width,
        guess=guesses * ones,
        lapse=lapses * ones,
        raw_threshold=threshold_at(0.5, threshold, width, guesses, lapses),
        p_value=np.nan * ones,
        samples=samples,
    )


def by_image(
    result: xr.Dataset, at: Places, shape: tuple[int, ...], values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Values of questions, image by image.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    at : Places
        Where its questions belong.
    shape : tuple of int
        Of the counts, (P, F, L).
    values : ndarray, shape (trials,)
        One a question.

    Returns
    -------
    tests : ndarray of float64, shape (P, F, L, R)
        NaN where a wording has no answer to an image. The image of one place is the same for all wordings. Of two
        images asked about in both orders, the mean, which a preference for one position does not move.
    blanks : ndarray of float64, shape (P, K)
        The same for catch trials.
    """
    seeds = result["image_seed"].values
    tests, blanks = at.counted & ~at.catch, at.counted & at.catch
    # Images are numbered at each level and contrast, by seed.
    image = _numbered(np.stack([at.value[tests], at.step[tests]]), seeds[tests])
    catch_image = np.unique(seeds[blanks], return_inverse=True)[1]
    return (
        _means((at.prompt[tests], at.value[tests], at.step[tests], image), shape, values[tests]),
        _means((at.prompt[blanks], catch_image), shape[:1], values[blanks]),
    )


def _means(place: tuple[npt.NDArray[np.int64], ...], shape: tuple[int, ...], values: FloatArray) -> FloatArray:
    """Mean of the values at each place: an image may be asked about twice, as in either order of two."""
    whole = (*shape, int(place[-1].max(initial=0)) + 1)
    total, count = np.zeros(whole), np.zeros(whole)
    np.add.at(total, place, values)
    np.add.at(count, place, 1.0)
    out: FloatArray = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return out


def _seen_logit(result: xr.Dataset) -> FloatArray:
    """Logit of "pattern seen": polarity of the question, and of the order of images, is in what was said."""
    logit, p_yes, said = (result[name].values.astype(np.float64) for name in ("logit", "p_yes", "said"))
    turned: FloatArray = np.where(np.abs(said - p_yes) <= np.abs(said - (1 - p_yes)), logit, -logit)
    return turned


def _numbered(cell: npt.NDArray[np.int64], seeds: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Number of each question's seed among those of its cell."""
    _, seed = np.unique(seeds, return_inverse=True)
    keys = np.concatenate([cell, seed[None]])
    distinct, inverse = np.unique(keys, axis=1, return_inverse=True)
    starts = np.r_[True, (np.diff(distinct[:-1], axis=1) != 0).any(axis=0)]
    within = np.arange(distinct.shape[1]) - np.maximum.accumulate(np.where(starts, np.arange(distinct.shape[1]), 0))
    numbers: npt.NDArray[np.int64] = within[inverse.reshape(-1)]
    return numbers
