"""One sensitivity for all wordings, and how far it depends on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.words.fit import USABLE, ChatFit

#: Fewer wordings than this say nothing of others.
FEW = 3


@dataclass(frozen=True, eq=False)
class PromptMean:
    """Mean log10 sensitivity over wordings."""

    #: Level by level, shape (F,); NaN where no wording has a usable threshold.
    log_sensitivity: FloatArray
    #: Ends of its interval.
    low: FloatArray
    high: FloatArray
    #: What the interval is over: "prompts" that could have been chosen, or "trials" of the few that were.
    over: str


def prompt_mean(found: ChatFit, *, confidence: float) -> PromptMean:
    """Average the log10 sensitivities of all usable thresholds at each level.

    Parameters
    ----------
    found : ChatFit
        Of P wordings at F levels.
    confidence : float
        Of the interval.

    Returns
    -------
    PromptMean
        The mean of logarithms: one of sensitivities would grow with the spread between wordings, by a factor of 1.38
        for a standard deviation of 0.35 log10. Its variance is that between wordings over their number, and, where
        images were resampled, what these contribute besides: all wordings saw the same ones.
    """
    from scipy.special import stdtrit

    usable = np.isin(found.status, USABLE) & np.isfinite(found.threshold)
    n = usable.sum(axis=0)
    some = np.maximum(n, 1)
    log_s = np.where(usable, -found.threshold, 0.0)
    mean = log_s.sum(axis=0) / some
    if len(found.status) >= FEW:
        variance = np.where(usable, (log_s - mean) ** 2, 0.0).sum(axis=0) / np.maximum(n - 1, 1) / some
        if found.samples is not None:
            of_images = (np.where(usable, found.samples, 0.0).sum(axis=1) / some).var(axis=0, ddof=1)
            # Each wording's own part of it is already in the spread between wordings.
            own = (np.where(usable, found.samples.var(axis=0, ddof=1), 0.0)).sum(axis=0) / some**2
            variance = variance + np.maximum(of_images - own, 0.0)
        reach = np.where(n > 1, stdtrit(np.maximum(n - 1, 1), (1 + confidence) / 2) * np.sqrt(variance), np.inf)
        low, high, over = mean - reach, mean + reach, "prompts"
    else:
        ends = np.stack([-found.threshold_high, -found.threshold_low])
        own_low, own_high = (np.where(usable, end, 0.0) for end in ends)
        low = mean - np.sqrt((np.where(usable, log_s - own_low, 0.0) ** 2).sum(axis=0)) / some
        high = mean + np.sqrt((np.where(usable, own_high - log_s, 0.0) ** 2).sum(axis=0)) / some
        over = "trials"
    nothing = n == 0
    mean, low, high = (np.where(nothing, np.nan, value) for value in (mean, low, high))
    return PromptMean(mean, low, high, over)
