"""Contrast at d' = 1 against the catch trials: a threshold that assumes no psychometric function."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.chat_counts import ChatCounts
from psyprobe.analysis.logit_status import isotonic


def dprime_thresholds(counts: ChatCounts, criterion: float = 1.0) -> FloatArray:
    """Log10 contrast at which d' rises to 1, between levels linear in log contrast.

    Parameters
    ----------
    counts : ChatCounts
        With catch trials, whose yes are the false alarms.
    criterion : float, optional
        The d' wanted.

    Returns
    -------
    ndarray of float64, shape (P, F)
        NaN where there are no catch trials, or d' is not on both sides of 1. d' is made to rise first (isotonic
        regression), and rates are (yes + 0.5) / (trials + 1).

    References
    ----------
    Hautus (1995). Corrections for extreme proportions and their biasing effects on estimated values of d'. Behavior
    Research Methods 27(1), 46-51.
    """
    from scipy.special import ndtri

    hits = (counts.yes + 0.5) / (counts.trials + 1)
    alarms = (counts.catch_yes + 0.5) / (counts.catch_trials + 1)
    out = np.full(counts.trials.shape[:2], np.nan)
    for p, f in np.ndindex(*out.shape):
        use = counts.trials[p, f] > 0
        if use.sum() < 2 or counts.catch_trials[p] == 0:
            continue
        x = np.log10(counts.contrast[p, f, use])
        d = isotonic(ndtri(hits[p, f, use]) - ndtri(alarms[p]), counts.trials[p, f, use])
        k = int(np.searchsorted(d, criterion))
        if 0 < k < len(d):
            out[p, f] = x[k - 1] + (criterion - d[k - 1]) / (d[k] - d[k - 1]) * (x[k] - x[k - 1])
    return out
