"""Put models and tests into one table, the scoreboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from psyprobe.analysis import score as table
from psyprobe.analysis.comparison.references import REFERENCES
from psyprobe.analysis.comparison.table import ToldApart, better_than, told_apart
from psyprobe.analysis.detection import ALIGNMENT
from psyprobe.analysis.efficiency.scores import EFFICIENCY
from psyprobe.analysis.matching import ERROR_MEAN, ERROR_POOLED
from psyprobe.analysis.measures import DIFFERENCE
from psyprobe.analysis.published import BASELINE, SHORT_NAMES, published_scores
from psyprobe.analysis.score import (
    CONTRAST,
    OBSERVER,
    ONE_VARIANT,
    PERSON,
    PIXELS,
    Entry,
    Metric,
    Score,
    ends_text,
    interval_note,
    many,
    percent,
    telling_digits,
    without_mathematics,
)
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import lay_out

if TYPE_CHECKING:
    import pandas as pd

#: Flag to what it says.
FLAGS = {
    "p": "no better than the pixels",
    "c": "no better than contrast alone, which shows perfect constancy",
    "s": "saturated matches entered with the end of the contrast range",
    "a": "ambiguous matches",
    "f": "more than 10 % of its points at the paper's float32 floor",
    "n": "more than 10 % of its points not above the noise floor",
    "u": "more than 10 % of its points undefined, since features all but vanish; "
    "score measure='l2'",
    "t": "more than 10 % of its points with a feature of the reference under a tenth as long as "
    "the test's; compare measure='l2'",
    "l": "limited by training: at least so efficient",
    "e": "no score exists: all responses are equal, too many of them undefined, or too few "
    "thresholds reached",
}

_OF_PAPER = {metric.name: metric for metric in (ALIGNMENT, ERROR_MEAN, ERROR_POOLED)}

#: Columns of a text table side by side; more go under each other.
_COLUMNS = 5

#: Values below this have intervals with as many digits.
_SMALL = 0.05

_KEY = (
    "{cell} is Spearman's r_s of the response with the multiple of the human threshold "
    "(larger is better), or of a "
    "matching test the root mean square error in log10 contrast (smaller is better).",
    "f32 floor: share of the score points at the floor of the paper's float32 arithmetic, mean "
    "over tests (-: not known, or no angle is scored).",
)
_PEOPLE = (
    "one person: a person of the data in the place of an observer, on the levels at which that "
    "person was measured. In parentheses: what an observer scores on these levels, over that, "
    "averaged on Fisher's z; 1 is as good as another person, and an observer may exceed it. No "
    "parentheses: not determined, or nobody was measured."
)
_BESIDE = (
    "S_ac (alignment) has no criterion and tells nothing of sensitivity; efficiency and threshold "
    "are those of an encoder with a trained decision stage, geometric means over levels. They may "
    "order observers and stimuli differently."
)
_SOURCE = (
    "Published scores: Cai et al. (2025), Figure 6, final table, without intervals."
)


@dataclass(frozen=True)
class Test:
    """A column of the scoreboard."""

    # pytest would take a class of this name for tests.
    __test__ = False

    experiment: str
    metric: Metric

    @property
    def name(self) -> str:
        """Name the test by its experiment, and for matching by the kind of error.

        The error is " mean" or " pooled".
        """
        return f"{self.experiment} {self.metric.suffix}".strip()

    @property
    def about(self) -> dict[str, str]:
        """Return the test's experiment and metric, for a record."""
        return {"experiment": self.experiment, "metric": self.metric.name}

    @property
    def base(self) -> str:
        """Name the test's experiment without "_published"."""
        return self.experiment.removesuffix("_published")

    @property
    def short_name(self) -> str:
        """Shorten the test's name to a heading that fits above a column.

        Examples
        --------
        >>> Test("contrast_matching_published", ERROR_MEAN).short_name
        'matching mean (pub)'
        """
        name = SHORT_NAMES.get(self.base, self.base)
        published = "(pub)" if self.experiment != self.base else ""
        return " ".join(filter(None, (name, self.metric.suffix, published)))


@dataclass(frozen=True)
class BoardRow:
    """A row of the scoreboard."""

    #: Name of the observer, baseline or published model.
    name: str
    #: Where its scores come from.
    kind: Literal["observer", "baseline", "people", "published"]
    #: Family of a published model; of any other the loader, as "timm".
    family: str
    #: Scores of the tests that it did.
    entries: Mapping[Test, Entry]
    #: Whether it is a metric, which rates how different images look and has no features.
    is_metric: bool = False

    @property
    def float32_floor(self) -> float | None:
        """Average over tests the shares of points at the float32 floor; None where unknown."""
        floors = {
            test.experiment: entry.float32_floor
            for test, entry in self.entries.items()
            if entry.float32_floor is not None
        }
        return sum(floors.values()) / len(floors) if floors else None

    @property
    def title(self) -> str:
        """Name the row as a table shows it."""
        return f"{self.name} (published)" if self.kind == "published" else self.name


@dataclass(frozen=True)
class Scoreboard:
    """Models and tests in one table."""

    #: Columns.
    tests: tuple[Test, ...]
    #: Observers, baselines and published models.
    rows: tuple[BoardRow, ...]
    #: Confidence of the intervals; None if there are none.
    confidence: float | None
    #: By name of a test, which observers are told apart there.
    comparisons: Mapping[str, ToldApart] = field(default_factory=dict)

    def sort(self, test: str) -> Scoreboard:
        """Sort rows from best to worst in one test; those without a score there come last.

        Parameters
        ----------
        test : str
            Name of a column (an experiment; for matching with " mean" or " pooled", without it "
            mean"), or "name".

        Raises
        ------
        UnknownNameError
            If there is no such column.
        """
        column = None if test == "name" else self.column(test)

        def key(row: BoardRow) -> Any:
            if column is None:
                return row.name
            value = row.entries.get(column, Entry(None)).value
            if value is None:
                return float("inf")
            return -value if column.metric.more_is_better else value

        return replace(self, rows=tuple(sorted(self.rows, key=key)))

    def column(self, test: str) -> Test:
        """Find a test by its name."""
        names = {t.name: t for t in reversed(self.tests)}
        names |= {
            t.experiment: t for t in reversed(self.tests) if t.metric == ERROR_MEAN
        }
        if test not in names:
            raise unknown_name("test", test, ["name", *(t.name for t in self.tests)])
        return names[test]

    def table(self, format: str = "text") -> str:
        """Lay out the scoreboard as text, Markdown, LaTeX, CSV or JSON.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "csv", "json"}, optional
            The first three are rounded for reading; "csv" (a line a score) and "json" hold all
            digits.

        Raises
        ------
        UnknownNameError
            If the format is none of these.
        """
        table.check_format(format)
        if format == "csv":
            return table.csv_text(self._records())
        if format == "json":
            return table.json_text(self._content())
        step = _COLUMNS if format == "text" else len(self.tests)
        blocks = [self.tests[i : i + step] for i in range(0, len(self.tests), step)]
        tables = [self._cells(block) for block in blocks]
        if references := self._references():
            tables.append(references)
        laid_out = [lay_out(format, cells) for cells in tables]
        return table.document(format, laid_out, self._lines())

    def to_frame(self) -> pd.DataFrame:
        """Convert the scoreboard to a pandas table, one row a score.

        Examples
        --------
        >>> board = scoreboard(published=True, sort="area")
        >>> area = board.to_frame().query("experiment == 'area'")
        >>> area[["name", "value"]].head(1).values.tolist()
        [['SAM - ViT-B-SAM - SA-1B', 0.9714]]
        """
        import pandas

        return pandas.DataFrame(self._records())

    def _repr_html_(self) -> str:
        """Show the scoreboard as an HTML table in a notebook, with folded notes."""
        from psyprobe.files import html

        tables = [self._cells(self.tests)]
        if references := self._references():
            tables.append(references)
        return "".join(map(html.table, tables)) + html.folded(
            "notes", html.paragraphs("\n".join(self._lines()))
        )

    def __str__(self) -> str:
        return self.table()

    def _cells(self, tests: Sequence[Test]) -> list[list[str]]:
        """Lay out names and scores as rows of cells, headings first."""
        cells = [["observer", *(test.short_name for test in tests), "f32 floor"]]
        for row in self.rows:
            scores = [
                _format_cell(row.entries.get(test), test.metric) for test in tests
            ]
            floor = percent(row.float32_floor)
            if row.kind in ("baseline", "people"):
                floor = floor.strip("-")
            cells.append([row.title, *scores, floor])
        return cells if self._is_of_paper else [line[:-1] for line in cells]

    def _references(self) -> list[list[str]]:
        """Lay out scores with other human references as rows of cells; empty without any."""
        tests = [
            test
            for test in self.tests
            if any(_references_of(row, test) for row in self.rows)
        ]
        rows = [
            [row.title, *cells]
            for row in self.rows
            if any(cells := [_references_of(row, test) for test in tests])
        ]
        return (
            [["references", *(test.short_name for test in tests)], *rows]
            if rows
            else []
        )

    @property
    def _is_of_paper(self) -> bool:
        """Tell whether a column holds a score that Cai et al. (2025) define."""
        return any(test.metric.name in _OF_PAPER for test in self.tests)

    def _lines(self) -> list[str]:
        """Write the legend, notes and sources that stand below the scoreboard."""
        metrics = dict.fromkeys(test.metric for test in self.tests)
        lines = [_legend(metric) for metric in metrics if metric.name not in _OF_PAPER]
        if self._is_of_paper:
            cell = "Each other cell" if lines else "Each cell"
            lines += [text.format(cell=cell) for text in _KEY]
        kinds = {row.kind for row in self.rows}
        lines += self.legend()
        if self._references():
            lines.append(f"references: {REFERENCES}")
        if "people" in kinds:
            lines.append(_PEOPLE)
            lines += self._fraction_populations()
        if {ALIGNMENT, EFFICIENCY} <= set(metrics):
            lines.append(_BESIDE)
        used = ""
        notes = []
        for row in self.rows:
            for test, entry in row.entries.items():
                used += entry.flags
                if entry.note:
                    notes.append(f"{row.title}, {test.experiment}: {entry.note}.")
        lines += [f"{flag}: {text}." for flag, text in FLAGS.items() if flag in used]
        # Both errors of matching stand on the same matches, and so on the same notes.
        lines += dict.fromkeys(notes)
        if "published" in kinds:
            lines.append(_SOURCE)
        return lines

    def legend(self) -> list[str]:
        """Say in sentences what brackets speak of, and which observers are told apart."""
        if self.confidence is None:
            return []
        return [*self._populations(), *self._comparisons()]

    def _populations(self) -> list[str]:
        """Say what the brackets speak of, and in which tests where that differs."""
        tests: dict[str, list[str]] = {}
        for row in self.rows:
            for test, entry in row.entries.items():
                if entry.low is not None and entry.high is not None:
                    tests.setdefault(entry.over, []).append(test.short_name)
        confidence = f"{100 * (self.confidence or 0):g}"
        lines = []
        for over, names in tests.items():
            if not over:
                lines.append(f"Brackets: {confidence} % intervals over unnamed units.")
                continue
            note = interval_note(over)
            where = f" ({', '.join(dict.fromkeys(names))})" if len(tests) > 1 else ""
            lines.append(f"Brackets{where}: {note.format(confidence=confidence)}")
        single = {
            test.short_name: None
            for row in self.rows
            for test, entry in row.entries.items()
            if row.kind == "observer"
            and test.metric.name in _OF_PAPER
            and entry.value is not None
            and entry.low is None
            and entry.sample is None
        }
        if single:
            lines.append(f"No brackets ({', '.join(single)}): {ONE_VARIANT}.")
        return lines

    def _comparisons(self) -> list[str]:
        """Say which observers are told apart, and over how many pairs."""
        tests: dict[tuple[str, int], list[str]] = {}
        for test in self.tests:
            if comparison := self.comparisons.get(test.name):
                facts = (comparison.units, comparison.pairs)
                tests.setdefault(facts, []).append(test.short_name)
        return [
            f"Capital letters ({', '.join(names)}): observers that share one are not told apart "
            f"(paired t over the {units} that both were shown, Holm over {pairs} "
            f"pair{'s' * (pairs != 1)})."
            for (units, pairs), names in tests.items()
        ]

    def _fraction_populations(self) -> list[str]:
        """Say what the brackets of fractions of a person speak of."""
        confidence = f"{100 * (self.confidence or 0):g}"
        fractions = [
            entry.of_person for row in self.rows for entry in row.entries.values()
        ]
        populations = dict.fromkeys(
            fraction.fraction_over for fraction in fractions if fraction is not None
        )
        return [
            f"In parentheses: {interval_note(over).format(confidence=confidence)}"
            for over in populations
            if over
        ]

    def _records(self) -> list[JsonObject]:
        """List each row's score in each test as a flat record."""
        return [
            {
                "name": row.name,
                "kind": row.kind,
                "family": row.family,
                **test.about,
                **entry.record(),
            }
            for row in self.rows
            for test, entry in row.entries.items()
        ]

    def _content(self) -> JsonObject:
        """Collect tests, scores and legends of the scoreboard for JSON."""
        return {
            "tests": [
                {
                    "name": test.name,
                    **test.about,
                    "more_is_better": test.metric.more_is_better,
                }
                for test in self.tests
            ],
            "confidence": self.confidence,
            "flags": FLAGS,
            "scores": self._records(),
            "float32_floor": {row.name: row.float32_floor for row in self.rows},
        }


def scoreboard(
    scores: Iterable[Score] = (), *, published: bool = False, sort: str | None = None
) -> Scoreboard:
    """Put scores of observers in tests into one table, with the trivial responders under them.

    Parameters
    ----------
    scores : iterable of Score
        Of any observers, experiments and layers.
    published : bool, optional
        Whether to add the published scores of the 45 models of Cai et al. (2025). They stand in the
        columns of the experiments with and without "_published"; they were measured with the
        former. Without any scores, the board shows them alone.
    sort : str, optional
        As for `Scoreboard.sort`; without it rows stand as they came.

    Raises
    ------
    InputError
        If a score has no metric, there is nothing to show, one observer has two different scores in
        one test, or published scores are asked for and there are none.

    See Also
    --------
    psyprobe.probes.experiments.scoreboard : of results.

    Examples
    --------
    >>> board = scoreboard(published=True, sort="area")
    >>> [row.name for row in board.rows[:2]]
    ['SAM - ViT-B-SAM - SA-1B', 'DINO - ViT-S/16 - ImageNet']
    """
    listed = list(scores)
    _check_measures(listed)
    entries_by_score = [(score, _entries(score)) for score in listed]
    comparisons = _mark_comparisons(entries_by_score)
    columns = [test for _, entries in entries_by_score for test in entries[OBSERVER]]
    if not listed:
        if not published:
            raise InputError(
                "there are no results for a scoreboard; give some, or published=True"
            )
        columns = [
            Test(score.experiment, _OF_PAPER[score.metric])
            for score in published_scores()
        ]
    order = list(SHORT_NAMES)

    def place(test: Test) -> tuple[int, bool]:
        index = order.index(test.base) if test.base in order else len(order)
        return index, test.experiment != test.base

    tests = sorted(dict.fromkeys(columns), key=place)
    rows = [*_observer_rows(entries_by_score), *_baselines(entries_by_score)]
    if published:
        published_rows = _published_rows(tests)
        if not published_rows:
            raise InputError(
                "there are no published scores of "
                f"{', '.join(dict.fromkeys(t.experiment for t in tests))}, but of "
                f"{', '.join(order)}; leave them out"
            )
        rows += published_rows
    confidence = max((score.confidence for score in listed), default=None)
    board = Scoreboard(tuple(tests), tuple(rows), confidence, comparisons)
    return board if sort is None else board.sort(sort)


Entries = dict[str, dict[Test, Entry]]


def _entries(score: Score) -> Entries:
    """Map responders to their scores in tests."""
    entries: Entries = {
        row.responder: {
            Test(score.experiment, metric): entry
            for metric, entry in row.entries.items()
        }
        for row in score.rows()
        if row.entries
    }
    if OBSERVER not in entries:
        raise InputError(
            f"{score.experiment} has no metric by which observers are ranked, as where it was "
            "asked in words; put its scores into a table with psyprobe.analysis.score_table"
        )
    return entries


def _mark_comparisons(
    entries_by_score: Sequence[tuple[Score, Entries]],
) -> dict[str, ToldApart]:
    """Mark observers that no baseline lies below, and those that are not told apart.

    Where several variants were shown both follow from `psyprobe.analysis.comparison`.
    """
    scores = [score for score, _ in entries_by_score]
    comparisons = told_apart(scores)
    baselines = {
        flag: (name, better_than(scores, name))
        for flag, name in (("p", PIXELS), ("c", CONTRAST))
    }
    for score, entries in entries_by_score:
        observer = table.observer_name(score, scores)
        for test, entry in entries[OBSERVER].items():
            flags = "e" if entry.value is None else ""
            for flag, (name, better) in baselines.items():
                trivial = entries.get(name, {}).get(test)
                compared = better.get((test.name, observer))
                if compared is None:
                    compared = _is_better(test.metric, entry, trivial)
                flags += flag * (not compared)
            letters = ""
            if test.name in comparisons:
                letters = comparisons[test.name].letters.get(observer, "")
            entries[OBSERVER][test] = replace(
                entry, flags=flags + entry.flags, letters=letters
            )
    return comparisons


def _is_better(metric: Metric, entry: Entry, trivial: Entry | None) -> bool:
    """Tell whether an entry is better than a trivial responder's, as far as both have a value."""
    if trivial is None or trivial.value is None or entry.value is None:
        return True
    return metric.better(entry.value, trivial.value)


def _check_measures(scores: Sequence[Score]) -> None:
    """Refuse scores of one experiment by different measures."""
    measures: dict[str, str] = {}
    for score in scores:
        # A metric has no features, and so no choice of a distance between them.
        if score.measure in ("", DIFFERENCE):
            continue
        other = measures.setdefault(score.experiment, score.measure)
        if other != score.measure:
            raise InputError(
                f"scores of {score.experiment} are of the measures {other} and {score.measure}, "
                "which cannot stand in one column; choose one with measure="
            )


def _observer_rows(entries_by_score: Sequence[tuple[Score, Entries]]) -> list[BoardRow]:
    """Build a row for each scored observer, refusing two different scores in one test."""
    scores = [score for score, _ in entries_by_score]
    names = {table.observer_name(score, scores) for score in scores}
    rows: dict[tuple[str, str, bool], dict[Test, Entry]] = {}
    for score, responders in entries_by_score:
        name = table.observer_name(score, scores)
        # What an encoder answers by a decision stage stands beside its angles.
        if table.encoder_name(name) in names:
            name = table.encoder_name(name)
        loader, colon, _ = table.encoder_name(score.observer).partition(":")
        row = (name, loader if colon else "other", score.measure == DIFFERENCE)
        entries = rows.setdefault(row, {})
        for test, entry in responders[OBSERVER].items():
            if entries.setdefault(test, entry) != entry:
                raise InputError(
                    f"{name} has two different scores in {test.name}; leave out the results of "
                    "one of the runs"
                )
    return [
        BoardRow(name, "observer", family, entries, is_metric)
        for (name, family, is_metric), entries in rows.items()
    ]


def _baselines(entries_by_score: Sequence[tuple[Score, Entries]]) -> list[BoardRow]:
    """Build a row for each trivial baseline and for people; more where their scores differ."""
    rows: dict[str, dict[Test, Entry]] = {PIXELS: {}, CONTRAST: {}}
    for score, responders in entries_by_score:
        for name, entries in responders.items():
            for test, entry in entries.items() if name != OBSERVER else ():
                # Observers of one size were shown the same, but for rounding; they share a row.
                further = [
                    row for row in rows if row.startswith(f"{name}, as shown to ")
                ]
                places = [name, *further, f"{name}, as shown to {score.observer}"]
                if not any(
                    _reads_alike(
                        test, rows.setdefault(row, {}).setdefault(test, entry), entry
                    )
                    for row in places
                ):
                    raise InputError(
                        f"{places[-1]}, has two different scores in {test.name}; leave out one "
                        "of its results"
                    )
    board_rows = []
    for name, entries in rows.items():
        is_person = name.startswith(PERSON)
        kind: Literal["people", "baseline"] = "people" if is_person else "baseline"
        if entries:
            board_rows.append(BoardRow(name, kind, kind, entries))
    return board_rows


def _reads_alike(test: Test, first: Entry, second: Entry) -> bool:
    """Tell whether two scores differ by less than the last digit that a table shows."""
    if first.value is None or second.value is None:
        return first.value == second.value
    return (
        abs(first.value - second.value) < 10**-test.metric.digits
        and first.flags == second.flags
    )


def _published_rows(tests: Sequence[Test]) -> list[BoardRow]:
    """Build a row for each published model that has scores in these tests."""
    rows: dict[tuple[str, str, bool], dict[Test, Entry]] = {}
    # The first model is the pixels.
    pixels: dict[Test, Entry] = {}
    for published in published_scores():
        row = (published.label, published.family, published.is_metric)
        entries = rows.setdefault(row, {})
        for test in tests:
            if (test.base, test.metric.name) == (
                published.experiment,
                published.metric,
            ):
                floor = published.float32_floor
                entry = Entry(published.score, float32_floor=floor)
                if published.model == BASELINE:
                    pixels[test] = entry
                is_better = published.model == BASELINE or _is_better(
                    test.metric, entry, pixels[test]
                )
                flags = ("" if is_better else "p") + many(floor, "f")
                entries[test] = replace(entry, flags=flags)
    return [
        BoardRow(label, "published", family, entries, is_metric)
        for (label, family, is_metric), entries in rows.items()
        if entries
    ]


def _legend(metric: Metric) -> str:
    """Describe what the cells under a metric's heading are, in plain characters."""
    label = without_mathematics(metric.label).replace("_", "")
    direction = "larger" if metric.more_is_better else "smaller"
    return f"{metric.suffix}: {label} ({direction} is better)."


def _references_of(row: BoardRow, test: Test) -> str:
    """Format a row's score in a test with other human references; empty without any."""
    entry = row.entries.get(test)
    return "" if entry is None or entry.references is None else entry.references.text()


def _format_cell(entry: Entry | None, metric: Metric) -> str:
    """Format a score with its interval, its fraction of a person's and its flags."""
    if entry is None:
        return ""
    is_small = abs(entry.value or 1.0) < _SMALL
    digits = telling_digits(entry.low, entry.high, metric.digits if is_small else 2)
    value = table.number(entry.value, max(digits, metric.digits))
    interval = ends_text(entry.low, entry.high, digits)
    of_person = ""
    if entry.of_person is not None and entry.of_person.fraction is not None:
        of_person = f" ({entry.of_person.text()})"
    marks = "".join(f" {mark}" for mark in (entry.flags, entry.letters) if mark)
    return value + interval + of_person + marks
