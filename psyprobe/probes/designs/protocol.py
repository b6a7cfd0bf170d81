"""What a design is: it chooses the next contrast, takes the responses and knows when to stop.

All designs share what stands below: counts of questions, a posterior that learns from the
responses, and an estimate that reports it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.csf_posterior import Misfit
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
            raise InputError(
                f"contrast is {self.contrast}; give 0 (a catch trial) or more"
            )

    @property
    def catch(self) -> bool:
        """Tell whether nothing but the uniform field is shown."""
        return self.contrast == 0


@dataclass(frozen=True, eq=False)
class DesignEstimate:
    """What a design knows of the observer so far: means and central intervals of its posterior.

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
    misfit : Misfit or None
        How far the answers deviate from the log-parabola of such a design.
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
    misfit: Misfit | None = None


@runtime_checkable
class Design(Protocol):
    """A rule that chooses which levels an observer is asked about, and when to stop.

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
        """Choose up to `n` levels to ask about at once.

        There are none where the design waits for responses, or is finished.
        """

    def tell(
        self,
        level: Level,
        response: float | Sequence[float] | None,
        delivered: float | None = None,
    ) -> None:
        """Take the response to a level.

        Parameters
        ----------
        level : Level
            As it was asked.
        response : float, sequence of float or None
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
        """Tell whether nothing is left to ask."""

    def estimate(self) -> DesignEstimate:
        """Estimate thresholds from the responses so far."""


class DesignLevels(NamedTuple):
    """The levels that a design chooses from."""

    #: Of the level besides contrast.
    values: tuple[float, ...]
    #: Ascending.
    contrasts: tuple[float, ...]
    #: Share of catch trials; 0 with a forced choice, where the uniform field has no right answer.
    catch_share: float


def check_levels(
    values: Iterable[float],
    contrasts: Iterable[float],
    catch: float,
    chance: float | None,
) -> DesignLevels:
    """Check the levels of a design, and return its values and sorted contrasts.

    Raises
    ------
    InputError
        There is no value or only one contrast, one comes twice, is not finite or no contrast above
        0, or the share or the chance level is out of range.
    """
    distinct_values = tuple(float(value) for value in values)
    ascending = tuple(sorted(float(contrast) for contrast in contrasts))
    repeated = len(set(distinct_values)) < len(distinct_values)
    if not distinct_values or repeated or not np.isfinite(distinct_values).all():
        raise InputError(
            f"levels are {distinct_values}; give at least one, each finite and only once"
        )
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
        raise InputError(
            f"catch is {catch}; give the share of catch trials, from 0 to 0.9"
        )
    catch_share = float(catch) if chance is None else 0.0
    return DesignLevels(distinct_values, ascending, catch_share)


#: Probability that the intervals of an estimate hold.
INTERVAL = 0.95

P = TypeVar("P", bound=Posterior)


class PosteriorDesign(Generic[P]):
    """A design with a posterior over its values, which the posterior has in the same order."""

    #: What is known of the parameters from the responses so far.
    posterior: P

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = values
        #: Levels whose response is awaited.
        self._pending: list[Level] = []
        #: Numbers of responses, and of the excluded ones among them.
        self._responses = 0
        self._excluded = 0
        self._by_contrast: Counter[float] = Counter()
        self._by_value: Counter[float] = Counter()

    def tell(
        self,
        level: Level,
        response: float | Sequence[float] | None,
        delivered: float | None = None,
    ) -> None:
        """Update the posterior by the response to a level.

        Raises
        ------
        InputError
            The level is none of the design's.
        """
        responses = [] if response is None else np.atleast_1d(response).tolist()
        if not all(0 <= probability <= 1 for probability in responses):
            raise InputError(
                f"response is {response}; give 1 (yes), 0 (no), a probability in between, or None "
                "(excluded)"
            )
        self._take(level)
        self._responses += 1
        self._excluded += not responses
        self._by_contrast[level.contrast] += 1
        if not level.catch:
            self._by_value[level.value] += 1
        # A replayed run need not have asked about the level.
        if level in self._pending:
            self._pending.remove(level)
        contrast = level.contrast if delivered is None else delivered
        catch = level.catch or contrast <= 0
        place = None if catch else self.values.index(level.value)
        log_contrast = -np.inf if catch else float(np.log10(contrast))
        for probability in responses:
            self.posterior.tell(place, log_contrast, float(probability))

    def estimate(self) -> DesignEstimate:
        """Estimate thresholds from the responses so far."""
        return self._describe(self.posterior)

    def _describe(self, posterior: Posterior) -> DesignEstimate:
        """Describe a posterior of the responses so far."""
        places = range(len(self.values))
        ends = np.array([posterior.interval(place, INTERVAL) for place in places])
        return DesignEstimate(
            values=np.array(self.values),
            log10_sensitivity=-np.array([posterior.mean(place) for place in places]),
            low=-ends[:, 1],
            high=-ends[:, 0],
            width=np.array([posterior.mean_width(place) for place in places]),
            guess=posterior.mean_guess(),
            lapse=posterior.mean_lapse(),
            asked=self._responses,
            excluded=self._excluded,
            level=INTERVAL,
        )

    def _take(self, level: Level) -> None:
        """Remove a level from those still to be answered."""
        if level.value not in self.values:
            raise InputError(
                f"the level is {level.value}; this design asks at {self.values}"
            )
