"""What a design is: it says which contrast to show next, is told what the observer said, and knows
when to stop.

What all designs share stands below: the books of what was asked, a posterior that is told the
answers, and what they report of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.posterior import Posterior
from psyprobe.errors import InputError


@dataclass(frozen=True, order=True)
class Level:
    """One stimulus to be shown.

    Parameters
    ----------
    value : float
        Of the level besides contrast: spatial frequency in cpd, or another parameter in its own
        unit. A catch trial carries one too, of which its likelihood makes no use.
    contrast : float
        Contrast, of the kind that the experiment uses throughout; 0 is a catch trial: the uniform
        field.

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
    """What a design knows of the observer at some moment: means and central intervals of its
    posterior.

    Parameters
    ----------
    values : ndarray, shape (F,)
        Of the level besides contrast.
    log10_sensitivity : ndarray, shape (F,)
        Minus the mean of log10 threshold contrast, the threshold being where the psychometric
        function without guesses and lapses is 0.5.
    low, high : ndarray, shape (F,)
        Ends of the central interval of log10 sensitivity that holds `level` of the posterior.
    width : ndarray, shape (F,)
        Mean distance in log10 contrast from 5 % to 95 % of the psychometric function.
    guess, lapse : float
        Mean rates in [0, 1], shared by all values: of "yes" where nothing is shown, of "no" at any
        contrast.
    asked, excluded : int
        Answers told so far, excluded ones among them; and how many of them were excluded.
    level : float
        Probability that the intervals hold, such as 0.95.
    aulcsf, aulcsf_low, aulcsf_high : float or None
        Area under the log CSF, log10 sensitivity (not below 0) over log10 cpd, with its interval;
        where the design models the CSF as a whole.
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
    aulcsf: float | None = None
    aulcsf_low: float | None = None
    aulcsf_high: float | None = None


@runtime_checkable
class Design(Protocol):
    """Which levels are put to an observer, in which order, and until when.

    A design draws on nothing but its arguments, its seed and what it was told. A new one told the
    same answers in the same order goes on exactly as the first would have, whether or not it was
    asked for the levels before: this is how an interrupted run resumes.

    Examples
    --------
    >>> from psyprobe.probes.designs import constant
    >>> design: Design = constant([4], [0.01, 0.1], repeats=1, catch=0)
    >>> len(design.ask(9)), design.finished
    (2, False)
    """

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; none where the design waits for answers, or is
        finished.
        """

    def tell(
        self, level: Level, said: float | Sequence[float] | None, delivered: float | None = None
    ) -> None:
        """Take in one answer.

        Parameters
        ----------
        level : Level
            As it was asked.
        said : float, sequence of float or None
            1 for yes (or correct, with a forced choice), 0 for no, a probability of yes in between.
            Several of a level that was answered more than once, as in each order of its images:
            drawn answers are no probability, and their mean would tell less where they agree than
            where they do not. None for an answer that is excluded, such as a refusal: it is
            counted, and tells nothing.
        delivered : float, optional
            Contrast that reached the observer, where it differs from the level's.
        """

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask."""

    def estimate(self) -> DesignEstimate:
        """What is known so far."""


def checked(
    values: Iterable[float], contrasts: Iterable[float], catch: float, chance: float | None
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Values of a level; contrasts in ascending order; and the share of catch trials.

    The share is 0 with a forced choice, where the uniform field has no right answer.

    Raises
    ------
    InputError
        There is no value or only one contrast, one comes twice, is not finite or no contrast above
        0, or the share or the chance level is out of range.
    """
    levels = tuple(float(value) for value in values)
    ascending = tuple(sorted(float(contrast) for contrast in contrasts))
    if not levels or not np.isfinite(levels).all() or len(set(levels)) < len(levels):
        raise InputError(f"levels are {levels}; give at least one, each finite and only once")
    if (
        len(set(ascending)) < max(len(ascending), 2)
        or not np.isfinite(ascending).all()
        or ascending[0] <= 0
    ):
        raise InputError(
            f"contrasts are {ascending}; give at least two, each above 0 and only once (designs "
            "add catch trials)"
        )
    if chance is not None and not 0 < chance < 1:
        raise InputError(
            f"chance is {chance}; give the rate of correct guesses, 1 / m of m alternatives, or "
            "None for yes or no"
        )
    if not 0 <= catch <= 0.9:
        raise InputError(f"catch is {catch}; give the share of catch trials, from 0 to 0.9")
    return levels, ascending, float(catch) if chance is None else 0.0


class Ledger:
    """Levels on their way to the observer and back.

    Examples
    --------
    >>> books = Ledger()
    >>> books.pending.append(Level(4, 0.1))
    >>> books.asked_at(4)
    1
    >>> books.receive(Level(4, 0.1), excluded=False)
    >>> books.pending, books.told
    ([], 1)
    """

    def __init__(self) -> None:
        #: Asked, and not answered yet.
        self.pending: list[Level] = []
        self.told = 0
        self.excluded = 0
        self.by_contrast: Counter[float] = Counter()
        self.by_value: Counter[float] = Counter()

    def receive(self, level: Level, excluded: bool) -> None:
        """Note that a level was answered; when a run is replayed, it need not have been asked."""
        self.told += 1
        self.excluded += excluded
        self.by_contrast[level.contrast] += 1
        if not level.catch:
            self.by_value[level.value] += 1
        if level in self.pending:
            self.pending.remove(level)

    def asked_at(self, value: float) -> int:
        """How often a value was asked, on its way or answered, catch trials not counted."""
        return self.by_value[value] + sum(
            each.value == value and not each.catch for each in self.pending
        )

    def asked_of(self, contrast: float) -> int:
        """How often a contrast was asked, on its way or answered; 0 for catch trials."""
        return self.by_contrast[contrast] + sum(each.contrast == contrast for each in self.pending)

    def below(self, contrast: float, share: float) -> bool:
        """Whether the next question must be of this contrast for it to keep its share of all."""
        return self.asked_of(contrast) < share * (self.told + len(self.pending) + 1)


#: Probability that the intervals of an estimate hold.
INTERVAL = 0.95

P = TypeVar("P", bound=Posterior)


class Estimating(Generic[P]):
    """A design with a posterior over its values, in whose order the posterior has them."""

    #: What the answers told so far tell of the parameters.
    posterior: P

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = values
        self._books = Ledger()

    def tell(
        self, level: Level, said: float | Sequence[float] | None, delivered: float | None = None
    ) -> None:
        """Take in one answer; see `Design`.

        Raises
        ------
        InputError
            The level is none of the design's.
        """
        answers = [] if said is None else np.atleast_1d(np.asarray(said, dtype=np.float64)).tolist()
        if not all(0 <= answer <= 1 for answer in answers):
            raise InputError(
                f"said is {said}; give 1 (yes), 0 (no), a probability in between, or None "
                "(excluded)"
            )
        self._expect(level)
        self._books.receive(level, excluded=not answers)
        contrast = level.contrast if delivered is None else delivered
        catch = level.catch or contrast <= 0
        place = None if catch else self.values.index(level.value)
        for each in answers:
            self.posterior.tell(place, -np.inf if catch else float(np.log10(contrast)), each)

    def estimate(self) -> DesignEstimate:
        """What is known so far."""
        places = range(len(self.values))
        ends = np.array([self.posterior.interval(place, INTERVAL) for place in places])
        return DesignEstimate(
            values=np.array(self.values),
            log10_sensitivity=-np.array([self.posterior.mean(place) for place in places]),
            low=-ends[:, 1],
            high=-ends[:, 0],
            width=np.array([self.posterior.mean_width(place) for place in places]),
            guess=self.posterior.mean_guess(),
            lapse=self.posterior.mean_lapse(),
            asked=self._books.told,
            excluded=self._books.excluded,
            level=INTERVAL,
        )

    def _expect(self, level: Level) -> None:
        if level.value not in self.values:
            raise InputError(f"the level is {level.value}; this design asks at {self.values}")
