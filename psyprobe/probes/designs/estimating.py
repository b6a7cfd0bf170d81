"""What designs share: the books of what was asked, a posterior that is told the answers, and what they report of it."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from psyprobe.errors import InputError
from psyprobe.probes.designs.ledger import Ledger
from psyprobe.probes.designs.posterior import Posterior
from psyprobe.probes.designs.protocol import DesignEstimate, Level, checked_said

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

    def tell(self, level: Level, said: float | None, delivered: float | None = None) -> None:
        """Take in one answer; see `Design`.

        Raises
        ------
        InputError
            The level is none of the design's.
        """
        value = checked_said(said)
        self._expect(level)
        self._books.receive(level, excluded=value is None)
        if value is None:
            return
        contrast = level.contrast if delivered is None else delivered
        if level.catch or contrast <= 0:
            self.posterior.tell(None, -np.inf, value)
        else:
            self.posterior.tell(self.values.index(level.value), float(np.log10(contrast)), value)

    def estimate(self) -> DesignEstimate:
        """What is known so far."""
        places = range(len(self.values))
        ends = np.array([self.posterior.interval(each, INTERVAL) for each in places])
        return DesignEstimate(
            values=np.array(self.values),
            log10_sensitivity=-np.array([self.posterior.mean(each) for each in places]),
            low=-ends[:, 1],
            high=-ends[:, 0],
            width=np.array([self.posterior.mean_width(each) for each in places]),
            guess=self.posterior.mean_guess(),
            lapse=self.posterior.mean_lapse(),
            asked=self._books.told,
            excluded=self._books.excluded,
            level=INTERVAL,
            aulcsf=None,
            aulcsf_low=None,
            aulcsf_high=None,
        )

    def _expect(self, level: Level) -> None:
        if level.value not in self.values:
            raise InputError(f"the level is {level.value}; this design asks at {self.values}")
