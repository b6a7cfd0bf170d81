"""The books of a design: what was asked and not yet answered, and how many answers of each sort there were."""

from __future__ import annotations

from collections import Counter

from psyprobe.probes.designs.protocol import Level


class Ledger:
    """Levels on their way to the observer and back.

    Examples
    --------
    >>> books = Ledger()
    >>> books.send(Level(4, 0.1))
    >>> books.pending
    [Level(frequency=4, contrast=0.1)]
    >>> books.receive(Level(4, 0.1), excluded=False)
    >>> books.pending, books.told
    ([], 1)
    """

    def __init__(self) -> None:
        self.pending: list[Level] = []
        self.told = 0
        self.excluded = 0
        self.catches = 0
        self.by_frequency: Counter[float] = Counter()

    def send(self, level: Level) -> None:
        """Note that a level was asked."""
        self.pending.append(level)

    def receive(self, level: Level, excluded: bool) -> None:
        """Note that a level was answered; when a run is replayed, it need not have been asked."""
        self.told += 1
        self.excluded += excluded
        if level.catch:
            self.catches += 1
        else:
            self.by_frequency[level.frequency] += 1
        if level in self.pending:
            self.pending.remove(level)
