"""What a design is: it says which contrast to show next, is told what the observer said, and knows when to stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError


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

    Raises
    ------
    InputError
        The value is not finite or the contrast is negative.

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
    frequencies : ndarray, shape (F,)
        Spatial frequencies in cpd.
    log10_sensitivity : ndarray, shape (F,)
        Minus the mean of log10 threshold contrast, the threshold being where the psychometric function without guesses
        and lapses is 0.5.
    low, high : ndarray, shape (F,)
        Ends of the central interval of log10 sensitivity that holds `level` of the posterior.
    width : ndarray, shape (F,)
        Mean distance in log10 contrast from 5 % to 95 % of the psychometric function.
    guess, lapse : float
        Mean rates in [0, 1], shared by all frequencies: of "yes" where nothing is shown, of "no" at any contrast.
    asked, excluded : int
        Answers told so far, excluded ones among them; and how many of them were excluded.
    level : float
        Probability that the intervals hold, such as 0.95.
    aulcsf, aulcsf_low, aulcsf_high : float, optional
        Area under the log CSF, log10 sensitivity (not below 0) over log10 cpd, with its interval; where the design
        models the CSF as a whole.
    """

    frequencies: FloatArray
    log10_sensitivity: FloatArray
    low: FloatArray
    high: FloatArray
    width: FloatArray
    guess: float
    lapse: float
    asked: int
    excluded: int
    level: float = 0.95
    aulcsf: float | None = None
    aulcsf_low: float | None = None
    aulcsf_high: float | None = None


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


def checked_frequencies(frequencies: Iterable[float]) -> tuple[float, ...]:
    """Spatial frequencies in cpd, or values of another level, as a tuple.

    Raises
    ------
    InputError
        There is none, one is not finite, or one comes twice.
    """
    values = tuple(float(each) for each in frequencies)
    if not values or not np.isfinite(values).all() or len(set(values)) < len(values):
        raise InputError(f"levels are {values}; give at least one, each finite and only once")
    return values


def checked_contrasts(contrasts: Iterable[float]) -> tuple[float, ...]:
    """Contrasts in ascending order as a tuple.

    Raises
    ------
    InputError
        There are fewer than two, one is not above 0, or one comes twice.
    """
    values = tuple(sorted(float(each) for each in contrasts))
    if (
        len(values) < 2
        or any(not (np.isfinite(each) and each > 0) for each in values)
        or len(set(values)) < len(values)
    ):
        raise InputError(
            f"contrasts are {values}; give at least two, each above 0 and only once (designs add catch trials)"
        )
    return values


def checked_said(said: float | None) -> float | None:
    """An answer as a float in [0, 1], or None.

    Raises
    ------
    InputError
        It lies outside [0, 1].
    """
    if said is None:
        return None
    value = float(said)
    if not 0 <= value <= 1:
        raise InputError(f"said is {said}; give 1 (yes), 0 (no), a probability in between, or None (excluded)")
    return value
