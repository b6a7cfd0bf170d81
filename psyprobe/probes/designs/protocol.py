"""What a design is: it says which contrast to show next, is told what the observer said, and knows when to stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name

#: What may be asked: whether a pattern is there, or in which of two images.
TASKS = ("yes_no", "two_interval")


@dataclass(frozen=True, order=True)
class Level:
    """One stimulus to be shown.

    Parameters
    ----------
    value : float
        Of the level besides contrast: spatial frequency in cpd, or another parameter in its own unit. A catch trial
        carries one too, of which its likelihood makes no use.
    contrast : float
        Contrast, of the kind that the experiment uses throughout; 0 is a catch trial: the uniform field.

    Examples
    --------
    >>> Level(4.0, 0.0).catch
    True
    >>> Level(4.0, -0.1)
    Traceback (most recent call last):
    psyprobe.errors.InputError: contrast is -0.1; give 0 (a catch trial) or more
    """

    value: float
    contrast: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.value):
            raise InputError(f"the level is {self.value}; give a finite number")
        if not (np.isfinite(self.contrast) and self.contrast >= 0):
            raise InputError(f"contrast is {self.contrast}; give 0 (a catch trial) or more")

    @property
    def catch(self) -> bool:
        """Whether nothing is shown but the uniform field."""
        return self.contrast == 0


@dataclass(frozen=True, eq=False)
class DesignEstimate:
    """What a design knows of the observer at some moment: means and central intervals of its posterior.

    Parameters
    ----------
    values : ndarray, shape (F,)
        Of the level besides contrast.
    log10_sensitivity : ndarray, shape (F,)
        Minus the mean of log10 threshold contrast, the threshold being where the psychometric function without guesses
        and lapses is 0.5.
    low, high : ndarray, shape (F,)
        Ends of the central interval of log10 sensitivity that holds `level` of the posterior.
    width : ndarray, shape (F,)
        Mean distance in log10 contrast from 5 % to 95 % of the psychometric function.
    guess, lapse : float
        Mean rates in [0, 1], shared by all values: of "yes" where nothing is shown, of "no" at any contrast.
    asked, excluded : int
        Answers told so far, excluded ones among them; and how many of them were excluded.
    level : float
        Probability that the intervals hold, such as 0.95.
    aulcsf, aulcsf_low, aulcsf_high : float or None
        Area under the log CSF, log10 sensitivity (not below 0) over log10 cpd, with its interval; where the design
        models the CSF as a whole.
    """

    values: FloatArray
    log10_sensitivity: FloatArray
    low: FloatArray
    high: FloatArray
    width: FloatArray
    guess: float
    lapse: float
    asked: int
    excluded: int
    level: float
    aulcsf: float | None
    aulcsf_low: float | None
    aulcsf_high: float | None


@runtime_checkable
class Design(Protocol):
    """Which levels are put to an observer, in which order, and until when.

    A design draws on nothing but its arguments, its seed and what it was told. A new one told the same answers in the
    same order goes on exactly as the first would have, whether or not it was asked for the levels before: this is how
    an interrupted run resumes.
    """

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; none where the design waits for answers, or is finished."""

    def tell(self, level: Level, said: float | None, delivered: float | None = None) -> None:
        """Take in one answer.

        Parameters
        ----------
        level : Level
            As it was asked.
        said : float or None
            1 for yes (or correct, with two intervals), 0 for no, a probability of yes in between; None for an answer
            that is excluded, such as a refusal: it is counted, and tells nothing.
        delivered : float, optional
            Contrast that reached the observer, where it differs from the level's.
        """

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask."""

    def estimate(self) -> DesignEstimate:
        """What is known so far."""


def checked_values(values: Iterable[float]) -> tuple[float, ...]:
    """Values of a level as a tuple; an `InputError` unless there is one, and each is finite and comes once."""
    found = tuple(float(each) for each in values)
    if not found or not np.isfinite(found).all() or len(set(found)) < len(found):
        raise InputError(f"levels are {found}; give at least one, each finite and only once")
    return found


def checked_contrasts(contrasts: Iterable[float]) -> tuple[float, ...]:
    """Contrasts in ascending order as a tuple; an `InputError` unless there are two, each above 0 and only once."""
    found = tuple(sorted(float(each) for each in contrasts))
    if len(set(found)) < max(len(found), 2) or not np.isfinite(found).all() or found[0] <= 0:
        raise InputError(
            f"contrasts are {found}; give at least two, each above 0 and only once (designs add catch trials)"
        )
    return found


def checked_share(catch: float, task: str) -> float:
    """Share of catch trials; 0 with two intervals, where a uniform pair has no right answer."""
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if not 0 <= catch <= 0.9:
        raise InputError(f"catch is {catch}; give the share of catch trials, from 0 to 0.9")
    return float(catch) if task == "yes_no" else 0.0


def checked_said(said: float | None) -> float | None:
    """An answer as a float in [0, 1], or None; an `InputError` where it lies outside."""
    if said is not None and not 0 <= said <= 1:
        raise InputError(f"said is {said}; give 1 (yes), 0 (no), a probability in between, or None (excluded)")
    return None if said is None else float(said)
