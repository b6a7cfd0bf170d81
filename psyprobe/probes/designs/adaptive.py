"""What adaptive designs share: each level is the one that tells most, or a catch or top trial whose turn it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.designs.choosing import most_telling
from psyprobe.probes.designs.estimating import Estimating, P
from psyprobe.probes.designs.protocol import Level, checked_contrasts, checked_share, checked_values
from psyprobe.probes.designs.psychometric_grid import Task


class Adaptive(Estimating[P]):
    """A design that chooses every level by the answers before it; parameters as in `QuestPlus`."""

    def __init__(
        self,
        values: Iterable[float],
        contrasts: Iterable[float],
        task: Task,
        stop: float,
        n_max: int,
        catch: float,
        top: float,
        seed: int,
    ) -> None:
        super().__init__(checked_values(values))
        self.contrasts = checked_contrasts(contrasts)
        if n_max < 1 or not stop >= 0 or not 0 <= top <= 0.5:
            raise InputError(
                f"n_max is {n_max}, stop {stop} and top {top}; give at least 1, at least 0 and a share from 0 to 0.5"
            )
        self._stop, self._n_max = stop, n_max
        self._catch, self._top = checked_share(catch, task), top
        self._order: list[int] = np.random.default_rng(seed).permutation(len(self.values)).tolist()

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; see `Design`."""
        levels: list[Level] = []
        known: dict[int, FloatArray] = {}
        while len(levels) < n and (open_ones := self._open()):
            level = self._due(open_ones)
            if level is None:
                known |= {each: self._information(each) for each in open_ones if each not in known}
                promises = {each: known[each] for each in open_ones}
                level = most_telling(promises, self.values, self.contrasts, self._books.pending)
            self._books.send(level)
            levels.append(level)
        return levels

    @property
    def finished(self) -> bool:
        """Whether everything is known well enough or was asked often enough, and all is answered."""
        return not self._books.pending and not self._open()

    def _due(self, open_ones: list[int]) -> Level | None:
        """A catch trial or one at the highest contrast, where its share would fall below what was asked for."""
        if self._books.below(0.0, self._catch):
            turn = self._books.asked_of(0.0) % len(self._order)
            return Level(self.values[self._order[turn]], 0.0)
        if self._books.below(self.contrasts[-1], self._top):
            # Where the pattern is seen most surely, a "no" tells of lapses.
            return Level(self.values[min(open_ones, key=self.posterior.mean)], self.contrasts[-1])
        return None

    @abstractmethod
    def _open(self) -> list[int]:
        """Places of the values that may still be asked."""

    @abstractmethod
    def _information(self, place: int) -> FloatArray:
        """What an answer is expected to tell, at each contrast."""
