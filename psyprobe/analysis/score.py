"""What every score says of itself, so that tables, scoreboards, figures and files need not know its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd

#: Whose row it is: the observer's, or that of a trivial responder, as the scoreboard calls it.
OBSERVER, PIXELS, CONTRAST = "observer", "pixels (no encoder)", "contrast alone (perfect constancy)"

#: A share of score points, above which it is flagged.
_MANY = 0.1


@dataclass(frozen=True)
class Metric:
    """A number by which observers are ranked in a test."""

    name: str
    #: Of an axis.
    label: str
    more_is_better: bool
    #: Behind the point, in a table.
    digits: int
    #: What a column is called behind the name of its experiment, where one has several metrics.
    suffix: str = ""

    def better(self, first: float, second: float) -> bool:
        """Whether one value is better than another."""
        return first > second if self.more_is_better else first < second


@dataclass(frozen=True)
class Entry:
    """One score on the scoreboard."""

    value: float | None
    #: Ends of the interval; None where they do not exist or are not published.
    low: float | None = None
    high: float | None = None
    #: Letters of `psyprobe.analysis.board.FLAGS`.
    flags: str = ""
    #: Share (0 to 1) of the points that the paper's float32 arccosine puts at its floor; None where unknown.
    float32_floor: float | None = None
    #: What else is to be said, as numbers of saturated matches.
    note: str = ""


@dataclass(frozen=True)
class Row:
    """What one responder did, for a table, the scoreboard and a file."""

    #: Title of the table in which it stands; rows of one title stand together. Empty: in files only.
    table: str
    #: `OBSERVER`, or what a trivial responder is called on the scoreboard. Equal rows of these are printed once.
    responder: str
    #: What the row is called; empty for the observer's own name.
    label: str
    #: Heading to text, rounded for reading, with units in `Score.notes`.
    cells: Mapping[str, str]
    #: Column to value with all digits, its unit in the column's name; empty for rows that are for reading only.
    record: Mapping[str, Any] = field(default_factory=dict)
    #: What the scoreboard shows of it; none for what cannot be ranked.
    entries: Mapping[Metric, Entry] = field(default_factory=dict)
    #: What must be said under the table of this row.
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Recorded:
    """Results that tell everything they hold."""

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON holds them."""
        return dict(json.loads(json.dumps(asdict(self))))


class Score(Protocol):
    """What tables, scoreboards, figures and files take, of a probe of any package."""

    @property
    def observer(self) -> str:
        """Whose score."""

    @property
    def experiment(self) -> str:
        """In what."""

    @property
    def layer(self) -> str:
        """Of the observer; empty where there are none."""

    @property
    def measure(self) -> str:
        """What was measured, as "angular"; empty where there is no choice, so that any may stand in one column."""

    @property
    def random_weights(self) -> bool:
        """Whether the observer was not trained."""

    @property
    def confidence(self) -> float:
        """Of all intervals, in (0, 1)."""

    def rows(self) -> Sequence[Row]:
        """The observer first, then the trivial responders beside it."""

    def notes(self) -> Sequence[str]:
        """What the headings mean and in which unit; "{confidence}" stands for the confidence in percent."""

    def to_frame(self) -> pd.DataFrame:
        """All single values, one row a responder: see `frame`."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""


def frame(score: Score) -> pd.DataFrame:
    """The records of a score as a table of numbers."""
    import pandas

    return pandas.DataFrame([dict(row.record) for row in score.rows() if row.record])


def many(share: float | None, flag: str) -> str:
    """The flag, where more than a tenth of the points are concerned."""
    return flag if share is not None and share > _MANY else ""


def number(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """A value with so many digits, or a dash for none."""
    return "-" if value is None else f"{value:{'+' if sign else ''}.{digits}f}"


def percent(share: float | None) -> str:
    """A share in percent, or a dash for none."""
    return "-" if share is None else f"{100 * share:.0f} %"
