"""Describe scores for tables, scoreboards, figures and files, and lay out tables of them."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from psyprobe.analysis.comparison.sample import Sample
from psyprobe.errors import unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.terminal import harmless, lay_out, printable

if TYPE_CHECKING:
    import pandas as pd
    import xarray

    from psyprobe.analysis.comparison.references import References
    from psyprobe.analysis.human_observer import Fraction

#: Responders of rows: the observer, and the trivial responders as the scoreboard calls them.
OBSERVER = "observer"
PIXELS = "pixels (no encoder)"
CONTRAST = "contrast alone (perfect constancy)"
#: Before the name of an observer with features that answers by a decision stage.
DECIDED = "decided:"
#: Responder of the row in which a person stands in the place of an observer.
PERSON = "one person"

#: Note of a score without people in the place of an observer.
NO_PEOPLE = (
    "no single people were measured under its conditions, so there is no ceiling."
)

#: What an interval speaks of, by the units that it is over.
POPULATIONS = {
    "variants": "if other phases, positions or noise samples had been shown (Student's t); levels "
    "and human curve as they are",
    "levels": "if other levels of this range had been drawn, each unrelated to its neighbours: no "
    "word on other variants or another range, since one variant was shown",
    "frequencies": "if other frequencies of this range had been drawn, each unrelated to its "
    "neighbours: no word on other variants or another range, since one variant was shown",
    "people": "if other people had been measured",
    "items": "if other items had been asked",
    "image pairs": "if other image pairs had been asked",
    "photographs": "if other photographs had been shown",
    "variants and people": "if other phases, positions or noise samples had been shown, and other "
    "people measured (MOVER)",
    "trials": "if the same questions had been asked of other images",
    "range of people": "no interval but the smallest and largest value of people",
}


#: Why a score of one variant has no interval.
ONE_VARIANT = (
    "one variant was shown, which tells no interval; show several draws, or score with "
    "over='levels'"
)


def takes_levels(experiment: str, over: str) -> bool:
    """Tell whether the interval of a single variant is over levels, which are no sample.

    Published experiments keep it, as printed; others only if asked by ``over="levels"``.

    Raises
    ------
    UnknownNameError
        `over` is neither "variants" nor "levels".

    Examples
    --------
    >>> takes_levels("area_published", "variants"), takes_levels("area", "variants")
    (True, False)
    """
    if over not in ("variants", "levels"):
        raise unknown_name("population", over, ["variants", "levels"])
    return over == "levels" or experiment.endswith("_published")


def interval_note(over: str) -> str:
    """Say what an interval speaks of, with a place for its confidence.

    Examples
    --------
    >>> interval_note("people")
    'interval over people, {confidence} %: if other people had been measured.'
    """
    meaning = POPULATIONS.get(over, f"if other {over} had been taken")
    return f"interval over {over}, {{confidence}} %: {meaning}."


#: A share of score points, above which it is flagged.
_MANY = 0.1


@dataclass(frozen=True)
class Metric:
    """A number by which observers are ranked in a test."""

    name: str
    #: Label of an axis.
    label: str
    more_is_better: bool
    #: Behind the point, in a table.
    digits: int
    #: End of a column's name, where an experiment has several metrics.
    suffix: str = ""
    #: What a perfect observer scores: 100 where the metric is a percentage.
    full_score: float = 1.0

    def better(self, first: float, second: float) -> bool:
        """Tell whether one value of the metric is better than another."""
        return first > second if self.more_is_better else first < second


def without_mathematics(label: str) -> str:
    """Take the marks of mathematics out of the label of an axis.

    Examples
    --------
    >>> without_mathematics("$r_{s}$")
    'r_s'
    """
    return label.translate(str.maketrans("", "", "${}"))


@dataclass(frozen=True)
class Entry:
    """One score on the scoreboard."""

    value: float | None
    #: Ends of the interval; None where they do not exist or are not published.
    low: float | None = None
    high: float | None = None
    #: Letters of `psyprobe.analysis.scoreboards.FLAGS`.
    flags: str = ""
    #: Share (0 to 1) of the points that the paper's float32 arccosine puts at its floor; None where
    #: unknown.
    float32_floor: float | None = None
    #: Further remarks, such as numbers of saturated matches.
    note: str = ""
    #: The score on the levels at which people were measured over what one person scores there, with
    #: its interval; None where there is no such person.
    of_person: Fraction | None = None
    #: The score with other human references; None where there are none.
    references: References | None = field(default=None, compare=False, repr=False)
    #: What the interval speaks of, in the plural: "variants", "items", "people"; empty where there
    #: is no interval.
    over: str = ""
    #: Letters; observers of a test that share one are not told apart. Empty without a comparison.
    letters: str = ""
    #: The score unit by unit, by which observers are compared; None where it has no units.
    sample: Sample | None = field(default=None, compare=False, repr=False)

    def record(self) -> JsonObject:
        """Collect the entry's single values as a flat record."""
        record = {name: value for name, value in vars(self).items() if name != "sample"}
        person = record.pop("of_person")
        references = record.pop("references")
        ends = {"": "fraction", "_low": "fraction_low", "_high": "fraction_high"}
        return (
            record
            | {
                f"of_person{end}": person and getattr(person, name)
                for end, name in ends.items()
            }
            | reference_record(references)
        )


def reference_record(references: References | None) -> JsonObject:
    """Collect what other human references give as a flat record, a column each."""
    by_people = references and references.by_people
    return {
        "reference_error": references and references.error,
        "references_low": references and references.low,
        "references_high": references and references.high,
        **{
            f"reference_{model}": references and references.by_model.get(model)
            for model in ("postreceptoral_csf", "stela_csf", "barten_csf")
        },
        "reference_people": by_people and by_people.value,
        "reference_people_error": by_people and by_people.error,
        "reference_people_dataset": by_people and by_people.dataset,
    }


@dataclass(frozen=True)
class Row:
    """The row of one responder in a table, on the scoreboard and in a file."""

    #: Title of the table in which it stands; rows of one title stand together. Empty: in files
    #: only.
    table: str
    #: `OBSERVER`, or what a trivial responder is called on the scoreboard. Equal rows of these are
    #: printed once.
    responder: str
    #: Name of the row; empty for the observer's own name.
    label: str
    #: Heading to text, rounded for reading, with units in `Score.notes`.
    cells: Mapping[str, str]
    #: Column to value with all digits, its unit in the column's name; empty for rows that are for
    #: reading only.
    record: JsonMapping = field(default_factory=dict)
    #: Entries on the scoreboard; none for what cannot be ranked.
    entries: Mapping[Metric, Entry] = field(default_factory=dict)
    #: Notes under the table of this row.
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Recorded:
    """Results that can be written as JSON."""

    def to_dict(self) -> JsonObject:
        """Convert all fields to JSON values."""
        return dict(json.loads(json.dumps(asdict(self))))


class Score(Protocol):
    """What tables, scoreboards, figures and files need of a score of any package."""

    @property
    def observer(self) -> str:
        """Name of the observer."""

    @property
    def experiment(self) -> str:
        """Name of the experiment."""

    @property
    def layer(self) -> str:
        """Layer of the observer; empty where there are none."""

    @property
    def measure(self) -> str:
        """Measure of the score, as "angular"; empty where there is no choice.

        Scores without a choice may stand in any column.
        """

    @property
    def random_weights(self) -> bool:
        """True if the observer was not trained."""

    @property
    def confidence(self) -> float:
        """Confidence of all intervals, in (0, 1)."""

    def rows(self) -> Sequence[Row]:
        """Build the table rows of the observer, then of trivial baselines."""

    def notes(self) -> Sequence[str]:
        """Explain the table's headings and units in sentences.

        "{confidence}" stands for the confidence in percent.
        """

    def to_frame(self) -> pd.DataFrame:
        """Convert all single values to a pandas table, one row a responder."""

    def to_dict(self) -> JsonObject:
        """Convert the score to JSON values."""


def frame(score: Score) -> pd.DataFrame:
    """Convert a score's flat records to a pandas table."""
    import pandas

    return pandas.DataFrame([dict(row.record) for row in score.rows() if row.record])


def many(share: float | None, flag: str) -> str:
    """Return a flag where more than a tenth of the points are concerned, else ""."""
    return flag if share is not None and share > _MANY else ""


def number(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """Format a value with so many decimals, or a missing one as "-"."""
    return "-" if value is None else f"{value:{'+' if sign else ''}z.{digits}f}"


def interval_text(
    value: float | None, low: float | None, high: float | None, digits: int = 2
) -> str:
    """Format a value with its interval, "0.90 [0.80, 0.95]"; without one where an end is open."""
    return number(value, digits) + ends_text(low, high, digits)


def telling_digits(low: float | None, high: float | None, digits: int) -> int:
    """Count the decimals at which two ends read unlike, up to two more than usual.

    Examples
    --------
    >>> telling_digits(0.9251, 0.9259, 2), telling_digits(0.1, 0.9, 2)
    (3, 2)
    """
    if low is not None and high is not None:
        for more in (digits, digits + 1):
            if f"{low:.{more}f}" != f"{high:.{more}f}":
                return more
        return digits + 2
    return digits


def ends_text(low: float | None, high: float | None, digits: int = 2) -> str:
    """Format the ends of an interval, " [0.80, 0.95]"; empty where one is open."""
    if low is None or high is None:
        return ""
    return f" [{number(low, digits)}, {number(high, digits)}]"


def open_ends_text(low: float | None, high: float | None) -> str:
    """Format the ends of an interval of which one may not be bounded, " [0.80, -]"."""
    return f" [{number(low)}, {number(high)}]"


def percent(share: float | None, digits: int | None = None) -> str:
    """Format a share as a percentage, or a missing one as "-".

    Examples
    --------
    >>> percent(0.996), percent(0.996, 2), percent(0.0123, 2), percent(None)
    ('100 %', '100 %', '1.2 %', '-')
    """
    if share is None:
        return "-"
    # "{:.2g}" alone writes 100 as 1e+02.
    if digits is None:
        return f"{100 * share:.0f} %"
    return f"{float(f'{100 * share:.{digits}g}'):g} %"


FORMATS = ("text", "markdown", "latex", "csv", "json")

#: Text in place of a table where nothing could be scored.
NO_SCORE = "no score: there is no human reference to compare with"


class Scores(tuple[Score, ...]):
    """The scores of several layers of a result, which print as one table."""

    def to_frame(self) -> pd.DataFrame:
        """Convert all scores to a pandas table, one row a responder of each layer."""
        import pandas

        return pandas.concat([score.to_frame() for score in self], ignore_index=True)

    def _repr_html_(self) -> str:
        """Show the scores as HTML tables in a notebook."""
        return html_tables(self)

    def __str__(self) -> str:
        return score_table(self)


@dataclass(frozen=True)
class Tabled(Recorded):
    """A score with tables for files, terminals and notebooks."""

    def to_frame(self) -> pd.DataFrame:
        """Convert the score to a pandas table, one row a responder."""
        return frame(cast(Score, self))

    def _repr_html_(self) -> str:
        """Show the score as an HTML table in a notebook."""
        return html_tables([cast(Score, self)])

    def __str__(self) -> str:
        return score_table(cast(Score, self))


@dataclass(frozen=True)
class FailedScore(Tabled):
    """The place of a score that does not exist, since something failed: a row that says why.

    Examples
    --------
    >>> print(FailedScore("area", "openai:m", "all replies were cut off; set more max_tokens"))
    no score  experiment                               why
    ------------------------------------------------------
    openai:m        area  failed: all replies were cut off
    openai:m: all replies were cut off; set more max_tokens.
    """

    experiment: str
    observer: str
    #: What was wrong and what to do, as a sentence.
    failure: str
    layer: ClassVar[str] = ""
    measure: ClassVar[str] = ""
    random_weights: ClassVar[bool] = False
    confidence: ClassVar[float] = 0.95

    @classmethod
    def of_result(cls, result: xarray.Dataset, problem: Exception) -> FailedScore:
        """Record why a result cannot be scored or drawn, with its experiment and observer."""
        attributes = result.attrs
        return cls(attributes["experiment"], attributes["observer"], str(problem))

    def rows(self) -> Sequence[Row]:
        """Build the observer's table row, which says that it failed."""
        problem = textwrap.shorten(self.failure.partition("; ")[0], 80)
        cells = {"experiment": self.experiment, "why": f"failed: {problem}"}
        return (
            Row(
                "no score",
                OBSERVER,
                "",
                cells,
                self.to_dict(),
                notes=(self.failure.rstrip("."),),
            ),
        )

    def notes(self) -> Sequence[str]:
        """Return no explanations: there are no headings."""
        return ()


def html_tables(scores: Sequence[Score]) -> str:
    """Build HTML tables of scores for a notebook, with folded explanations."""
    from psyprobe.files import html

    tables = [
        html.table([["", *table.headings], *table.cells()], table.title)
        + html.paragraphs("\n".join(table.notes()))
        for table in score_tables(scores)
    ]
    return "".join(tables) + html.folded(
        "what the columns mean", html.paragraphs("\n".join(score_notes(scores)))
    )


def score_table(scores: Score | Iterable[Score], format: str = "text") -> str:
    """Lay out scores as a table: the observers of each experiment, and trivial baselines.

    Parameters
    ----------
    scores : Score or iterable of Score
        What to show; those of one experiment and measure stand together.
    format : {"text", "markdown", "latex", "csv", "json"}, optional
        "text", "markdown" and "latex" are rounded for reading; "csv" and "json" hold all digits,
        and "json" all statistics.

    Raises
    ------
    UnknownNameError
        If the format is none of these.
    """
    listed = list(scores) if isinstance(scores, Iterable) else [scores]
    check_format(format)
    if format == "json":
        return json_text([score.to_dict() for score in listed])
    if format == "csv":
        return csv_text(
            [row.record for score in listed for row in score.rows() if row.record]
        )
    tables = [
        lay_out(format, [[table.title, *table.headings], *table.cells()], table.notes())
        for table in score_tables(listed)
    ]
    return document(format, tables, score_notes(listed)) if listed else NO_SCORE


def document(format: str, tables: Sequence[str], lines: Sequence[str]) -> str:
    """Join tables and the lines below them as text, Markdown or LaTeX."""
    if format == "text":
        filled = [textwrap.fill(line, 100, subsequent_indent="  ") for line in lines]
    else:
        filled = [f"{'%' if format == 'latex' else '-'} {line}" for line in lines]
    return "\n\n".join([*tables, *["\n".join(filled)] * bool(filled)])


def check_format(format: str) -> None:
    """Refuse an unknown table format."""
    if format not in FORMATS:
        raise unknown_name("table format", format, FORMATS)


def json_text(content: Any) -> str:
    """Write indented JSON, without numbers that JSON lacks."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)


def csv_text(records: Sequence[JsonMapping]) -> str:
    """Write records as CSV, with the columns of all of them."""
    stream = io.StringIO()
    columns = list(dict.fromkeys(column for record in records for column in record))
    writer = csv.DictWriter(stream, columns or ["experiment"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {column: harmless(cell) for column, cell in record.items()}
        for record in records
    )
    return stream.getvalue().rstrip("\n")


def encoder_name(observer: str) -> str:
    """Return the name of the encoder behind a decision stage, or the observer's own.

    Examples
    --------
    >>> encoder_name("decided:timm:resnet50"), encoder_name("pixels")
    ('timm:resnet50', 'pixels')
    """
    return observer.removeprefix(DECIDED)


def observer_name(score: Score, group: Iterable[Score]) -> str:
    """Name a score's observer, with what tells it from others of that name.

    The layer is added where the group has several of this observer, and "(random weights)" if it is
    untrained.
    """
    name = score.observer
    if len({other.layer for other in group if other.observer == name}) > 1:
        name += f" / {score.layer}"
    return f"{name} (random weights)" if score.random_weights else name


@dataclass(frozen=True)
class ScoreTable:
    """Rows of scores that stand together."""

    title: str
    #: Headings of the columns behind the name.
    headings: Sequence[str]
    #: Name and row, observers before trivial responders, equal ones of these once.
    rows: Sequence[tuple[str, Row]]

    def cells(self) -> list[list[str]]:
        """List the name and cells of each row, as text."""
        return [
            [name, *(row.cells.get(heading, "") for heading in self.headings)]
            for name, row in self.rows
        ]

    def notes(self) -> list[str]:
        """List the notes below the table, repeated ones once."""
        names_by_note: dict[str, list[str]] = {}
        for name, row in self.rows:
            for note in row.notes:
                names_by_note.setdefault(note, []).append(name)
        return [f"{', '.join(names)}: {note}." for note, names in names_by_note.items()]


def score_tables(scores: Iterable[Score]) -> list[ScoreTable]:
    """Group rows of scores into tables by title, in order of each score's first title.

    Examples
    --------
    >>> score_tables([])
    []
    """
    rows = sorted(((score, list(score.rows())) for score in scores), key=_title)
    return [
        table
        for _, group in groupby(rows, _title)
        for table in _group_tables(list(group))
    ]


def score_notes(scores: Iterable[Score]) -> list[str]:
    """List the explanations of scores' headings, each once."""
    keys: dict[str, set[float]] = {}
    for score in scores:
        for note in score.notes():
            keys.setdefault(note, set()).add(score.confidence)
    return [
        note.format(confidence=" or ".join(f"{100 * c:g}" for c in sorted(confidences)))
        for note, confidences in keys.items()
    ]


def _title(pair: tuple[Score, list[Row]]) -> str:
    """Return the title of the table that a score's rows go to."""
    return pair[1][0].table


def _is_contained(row: Row, other: Row) -> bool:
    """Tell whether each cell of a row equals the other row's, or is empty."""
    return all(
        text in ("", "-") or other.cells.get(name) == text
        for name, text in row.cells.items()
    )


def _group_tables(group: Sequence[tuple[Score, list[Row]]]) -> list[ScoreTable]:
    """Build the tables of scores of one kind, one a title, leaving out repeated baselines."""
    scores = [score for score, _ in group]
    titles: dict[str, dict[str, list[tuple[str, Row]]]] = {}
    pairs = [(score, row) for score, rows in group for row in rows if row.table]
    for score, row in pairs:
        placed = titles.setdefault(row.table, {}).setdefault(row.responder, [])
        name = row.label or observer_name(score, scores)
        if row.responder != OBSERVER:
            equal_labels = [other for _, other in placed if other.label == row.label]
            if any(_is_contained(row, other) for other in equal_labels):
                continue
            # Observers with other input sizes see other pixels, so their baselines differ a little.
            name += f", as shown to {score.observer}" if equal_labels else ""
        placed.append((printable(name), row))
    tables = []
    for title, responders in titles.items():
        rows = [entry for placed in responders.values() for entry in placed]
        tables.append(ScoreTable(printable(title), list(rows[0][1].cells), rows))
    return tables
