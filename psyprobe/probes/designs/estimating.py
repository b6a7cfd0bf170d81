"""From the posterior of a design to what it reports."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from psyprobe.probes.designs.ledger import Ledger
from psyprobe.probes.designs.protocol import DesignEstimate, Level


class Posterior(Protocol):
    """What a design asks of its posterior; thresholds and widths are in log10 contrast."""

    def tell(self, frequency: int | None, x: float, said: float) -> None:
        """Take in one answer; a catch trial has no frequency."""

    def mean(self, frequency: int) -> float:
        """Mean threshold."""

    def interval(self, frequency: int, level: float) -> tuple[float, float]:
        """Central interval of the threshold."""

    def mean_width(self, frequency: int) -> float:
        """Mean width."""

    def mean_guess(self) -> float:
        """Mean guess rate."""

    def mean_lapse(self) -> float:
        """Mean lapse rate."""


def take_in(
    posterior: Posterior, frequencies: tuple[float, ...], level: Level, said: float, delivered: float | None
) -> None:
    """Hand one answer that was not excluded to a posterior."""
    contrast = level.contrast if delivered is None else delivered
    if level.catch or contrast <= 0:
        posterior.tell(None, -np.inf, said)
    else:
        posterior.tell(frequencies.index(level.value), float(np.log10(contrast)), said)


def report(posterior: Posterior, frequencies: tuple[float, ...], books: Ledger, level: float = 0.95) -> DesignEstimate:
    """What is known of the observer, from a posterior and the books of the design.

    Parameters
    ----------
    posterior : Posterior
        Of all answers told.
    frequencies : tuple of float
        In cpd, in the posterior's order.
    books : Ledger
        Counts of the answers.
    level : float
        Probability that the intervals hold.

    Returns
    -------
    DesignEstimate
    """
    indices = range(len(frequencies))
    ends = np.array([posterior.interval(each, level) for each in indices])
    return DesignEstimate(
        frequencies=np.array(frequencies),
        log10_sensitivity=-np.array([posterior.mean(each) for each in indices]),
        low=-ends[:, 1],
        high=-ends[:, 0],
        width=np.array([posterior.mean_width(each) for each in indices]),
        guess=posterior.mean_guess(),
        lapse=posterior.mean_lapse(),
        asked=books.told,
        excluded=books.excluded,
        level=level,
    )
