"""Contrast at d' = 1 against the catch trials: a threshold that assumes no psychometric function."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.words.counts import ChatCounts


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
    from psyprobe.analysis.words.signal_detection import d_prime_threshold, detect

    out = np.full(counts.trials.shape[:2], np.nan)
    for p, f in np.ndindex(*out.shape):
        if counts.catch_trials[p] == 0:
            continue
        use = counts.trials[p, f] > 0
        # Without dither, two levels may be delivered as one contrast.
        contrast, first = np.unique(counts.contrast[p, f, use], return_index=True)
        yes, trials = counts.yes[p, f, use][first], counts.trials[p, f, use][first]
        if len(contrast) > 1:
            found = detect(yes, trials, counts.catch_yes[p], counts.catch_trials[p])
            out[p, f] = np.log10(d_prime_threshold(contrast, found.d_prime, criterion=criterion))
    return out
