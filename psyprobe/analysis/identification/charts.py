"""Score letters as charts do: by letter, along lines in equal steps.

References
----------
Ferris et al. (1993), American Journal of Ophthalmology 116:735 (ETDRS). Elliott, Bullimore & Bailey
(1991), Clinical Vision Sciences 6:471 (Pelli-Robson by letter).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.trial_table import trials
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Fewest lines of a chart, and by how much of a step its steps may differ.
_FEWEST_LINES = 5
_UNEVEN = 0.05


def score_by_letter(result: xr.Dataset) -> float | None:
    """Score letters as on a chart: each right one counts its share of a line's step.

    The score is log10 of the stimulus axis. With lines from 1.0 logMAR down in steps of 0.1 and
    five letters a line it is, as logMAR, 1.1 - 0.02 n of n right letters; with triplets that fade
    by 0.15 log10 from contrast 1 on it is -0.05 (n - 3), which is log10 sensitivity without the
    sign. Letters that are named by guessing count; those below a stop (`stop_below`) do not.

    Parameters
    ----------
    result : xarray.Dataset
        Of the probe `identify`, or its `trials`.

    Returns
    -------
    float or None
        None where levels are chosen by answers, are not in equal steps, or there are several series
        of them.
    """
    asking = json.loads(result.attrs["asking"])
    (level,) = levels_of(result)
    table = trials(result)
    if asking["design"] != "constant" or len(np.unique(table[level])) > 1:
        return None
    right = table["response"].values
    answered = ~np.isnan(right)
    easiness = np.log10(table[stimulus_axis_of(result).name].values[answered])
    lines, line_of_trial = np.unique(easiness.round(9), return_inverse=True)
    steps = np.diff(lines)
    stops = "stop_below" in asking
    fewest_lines = 2 if stops else _FEWEST_LINES
    if len(lines) < fewest_lines or np.ptp(steps) > _UNEVEN * steps.mean():
        return None
    counts = np.bincount(line_of_trial)
    # A line that one of several sessions did not reach has no right answer there.
    shares = np.bincount(line_of_trial, right[answered]) / (
        counts.max() if stops else counts
    )
    return float(lines[-1] + steps.mean() * (1 - shares.sum()))
