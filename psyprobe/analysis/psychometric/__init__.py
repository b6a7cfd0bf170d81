"""Fit psychometric functions: thresholds with intervals, or a status that says why not."""

from __future__ import annotations

from psyprobe.analysis.psychometric.fit import fit_psychometric
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.isotonic import (
    isotonic_fit,
    monotone_p_value,
    spearman_karber,
)
from psyprobe.analysis.psychometric.sigmoids import (
    psychometric_function,
    threshold_at,
)
from psyprobe.analysis.psychometric.statuses import STATUSES, WITH_THRESHOLD
from psyprobe.analysis.psychometric.trials import fit_trials, read_trials

__all__ = [
    "STATUSES",
    "WITH_THRESHOLD",
    "PsychometricFit",
    "fit_psychometric",
    "fit_trials",
    "isotonic_fit",
    "monotone_p_value",
    "psychometric_function",
    "read_trials",
    "spearman_karber",
    "threshold_at",
]
