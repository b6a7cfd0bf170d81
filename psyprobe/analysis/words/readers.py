"""Compare what a judge reads in replies with what the rules read, and score the run under both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.score import Recorded, percent
from psyprobe.analysis.words.trial_table import trials
from psyprobe.files.netcdf import as_text
from psyprobe.running.task import task_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import xarray as xr

#: The variable of a result that holds what a judge made of each reply, and what it is called as a
#: reader.
JUDGE_READING = "judge_reading"
JUDGE = "judge"


@dataclass(frozen=True)
class Rereading(Recorded):
    """How another reader differs from psyprobe's rules, and the score under it."""

    reader: str
    #: Replies of which a text was wanted.
    n: int
    #: Share of these that it reads otherwise: yes, no, or neither.
    differ: float
    #: Share that it reads as the opposite.
    opposite: float
    #: Share that is neither yes nor no to it.
    excluded: float
    #: Statistics of the score under it; empty where probabilities are read and not words, or
    #: nothing can be scored.
    score: Mapping[str, float | None]

    @property
    def cells(self) -> dict[str, str]:
        """Format how two readers differ as table cells."""
        shares = {
            "differs": self.differ,
            "opposite": self.opposite,
            "left out": self.excluded,
        }
        return {name: percent(share, 2) for name, share in shares.items()}


def reread(result: xr.Dataset, reading: npt.NDArray[np.object_]) -> xr.Dataset:
    """Replace how a result's replies were read by another reader's readings.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    reading : ndarray of str, shape (trial,)
        What the reader made of each reply, before polarity: "yes", "no" or "invalid".
    """
    result = trials(result)
    inverted = result["polarity"].values < 0
    if "order" in result and task_of(result).alternatives <= 2:
        # "Yes" stands for the first of two images.
        inverted = inverted ^ (result["order"].values != 0)
    yes = np.where(reading == "yes", 1.0, np.where(reading == "no", 0.0, np.nan))
    by_words = (result["readout"] == "text") & result["was_shown"].astype(bool)
    return result.assign(
        response=result["response"].where(~by_words, np.where(inverted, 1 - yes, yes)),
        reading=result["reading"].where(~by_words, reading),
    )


def judge_rereadings(
    result: xr.Dataset,
    statistics: Mapping[str, float | None],
    score: Callable[[xr.Dataset], Mapping[str, float | None]],
) -> tuple[Rereading, ...]:
    """Compare how a judge and psyprobe's rules read the replies of a result.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    statistics : mapping of str to float or None
        Its statistics under the rules.
    score : callable
        From a result to its statistics; called if the judge differs.

    Returns
    -------
    tuple of Rereading
        One; none where no judge read the replies.
    """
    result = trials(result)
    if JUDGE_READING not in result:
        return ()
    requested = result["reply_requested"].values.astype(bool)
    if not requested.any():
        return ()
    judge = as_text(result[JUDGE_READING].values)
    rules, readings = (
        np.where(np.isin(values, ("yes", "no")), values, "invalid")[requested]
        for values in (as_text(result["reading"].values), judge)
    )
    differ = readings != rules
    invalid = readings == "invalid"
    other_statistics: Mapping[str, float | None] = {}
    if (result["readout"] == "text").any() and not invalid.all():
        other_statistics = score(reread(result, judge)) if differ.any() else statistics
    opposite = differ & ~invalid & (rules != "invalid")
    shares = {"differ": differ, "opposite": opposite, "excluded": invalid}
    means = {name: float(mask.mean()) for name, mask in shares.items()}
    return (Rereading(JUDGE, len(rules), score=other_statistics, **means),)
