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
    [Level(value=4, contrast=0.1)]
    >>> books.receive(Level(4, 0.1), excluded=False)
    >>> books.pending, books.told
    ([], 1)
    """

    def __init__(self) -> None:
        self.pending: list[Level] = []
        self.told = 0
        self.excluded = 0
        self.by_contrast: Counter[float] = Counter()
        self.by_value: Counter[float] = Counter()

    def send(self, level: Level) -> None:
        """Note that a level was asked."""
        self.pending.append(level)

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
        return self.by_value[value] + sum(each.value == value and not each.catch for each in self.pending)

    def asked_of(self, contrast: float) -> int:
        """How often a contrast was asked, on its way or answered; 0 for catch trials."""
        return self.by_contrast[contrast] + sum(each.contrast == contrast for each in self.pending)

    def below(self, contrast: float, share: float) -> bool:
        """Whether the next question must be of this contrast for it to keep its share of all."""
        return self.asked_of(contrast) < share * (self.told + len(self.pending) + 1)
