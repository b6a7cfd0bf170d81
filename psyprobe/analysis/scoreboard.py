"""The scoreboard: models and tests in one table, each score with its interval, beside trivial responders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from psyprobe.analysis.alignment import Alignment
from psyprobe.analysis.detection import DetectionScore
from psyprobe.analysis.matching import Estimate, MatchingError
from psyprobe.analysis.matching_score import MatchingScore
from psyprobe.analysis.published import EXPERIMENT_OF_TEST, Metric, published_scores
from psyprobe.analysis.scoring import score_layers
from psyprobe.analysis.words.chat_score import ChatScore
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    import xarray as xr

#: A share of score points, above which it is flagged.
_MANY = 0.1

#: Names of the baselines on the board.
PIXELS, CONTRAST = "pixels (no encoder)", "contrast alone (perfect constancy)"

#: Flag to what it says.
FLAGS = {
    "p": "no better than the pixels",
    "c": "no better than contrast alone, which shows perfect constancy",
    "s": "saturated matches entered with the end of the contrast range",
    "a": "ambiguous matches",
    "f": "more than 10 % of its points at the paper's float32 floor",
    "n": "more than 10 % of its points not above the noise floor",
    "e": "no score exists, because all responses are equal",
}

_SUFFIX = "_published"


@dataclass(frozen=True)
class Test:
    """A column of the scoreboard.

    Attributes
    ----------
    experiment : str
        Name of the experiment.
    metric : "alignment", "error_mean" or "error_pooled"
        Spearman's r_s, of which more is better, or an error of contrast matches in log10 units, of which less is.
    """

    # pytest would take a class of this name for tests.
    __test__ = False

    experiment: str
    metric: Metric

    @property
    def name(self) -> str:
        """How `Scoreboard.sort` calls it: the experiment, for matching with " mean" or " pooled"."""
        return self.experiment + {"alignment": "", "error_mean": " mean", "error_pooled": " pooled"}[self.metric]

    @property
    def base(self) -> str:
        """The experiment, published or corrected."""
        return self.experiment.removesuffix(_SUFFIX)

    @property
    def more_is_better(self) -> bool:
        """Whether larger values are better."""
        return self.metric == "alignment"

    def better(self, first: float, second: float) -> bool:
        """Whether one value is better than another."""
        return first > second if self.more_is_better else first < second


@dataclass(frozen=True)
class Entry:
    """One score on the board.

    Attributes
    ----------
    value, low, high : float or None
        Score and interval; None where they do not exist or are not published.
    flags : str
        Letters of `FLAGS`.
    float32_floor : float or None
        Share (0 to 1) of the points that the paper's float32 arccosine puts at its floor; None where unknown.
    note : str
        What else is to be said, as numbers of saturated matches.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    flags: str = ""
    float32_floor: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row of the scoreboard.

    Attributes
    ----------
    name : str
        Of the observer, baseline or published model.
    kind : "observer", "baseline" or "published"
        Where its scores come from.
    family : str
        Of models; for those that are not published the loader, as "timm".
    entries : mapping of Test to Entry
        Scores of the tests that it did.
    """

    name: str
    kind: Literal["observer", "baseline", "published"]
    family: str
    entries: Mapping[Test, Entry]

    @property
    def float32_floor(self) -> float | None:
        """Mean over tests of the shares of points at the float32 floor; None where none is known."""
        known = {t.experiment: e.float32_floor for t, e in self.entries.items() if e.float32_floor is not None}
        return sum(known.values()) / len(known) if known else None


@dataclass(frozen=True)
class Scoreboard:
    """Models and tests in one table.

    Attributes
    ----------
    tests : tuple of Test
        Columns.
    rows : tuple of Row
        Observers, baselines and published models.
    confidence : float or None
        Of the intervals; None if there are none.
    """

    tests: tuple[Test, ...]
    rows: tuple[Row, ...]
    confidence: float | None

    def sort(self, test: str) -> Scoreboard:
        """Rows from best to worst in one test; those that did not do it come last.

        Parameters
        ----------
        test : str
            Name of a column (an experiment; for matching with " mean" or " pooled", without it " mean"), or "name".

        Returns
        -------
        Scoreboard
            The same rows.

        Raises
        ------
        UnknownNameError
            If there is no such column.
        """
        if test == "name":
            return replace(self, rows=tuple(sorted(self.rows, key=lambda row: row.name)))
        names = {t.name: t for t in reversed(self.tests)}
        names |= {t.experiment: t for t in reversed(self.tests) if t.metric == "error_mean"}
        if test not in names:
            raise unknown_name("test", test, ["name", *(t.name for t in self.tests)])
        column = names[test]

        def key(row: Row) -> float:
            entry = row.entries.get(column)
            if entry is None or entry.value is None:
                return float("inf")
            return -entry.value if column.more_is_better else entry.value

        return replace(self, rows=tuple(sorted(self.rows, key=key)))

    def table(self, format: str = "text") -> str:
        """The board as text, Markdown, LaTeX, CSV or JSON: see `scoreboard_table`.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "csv", "json"}, optional
            The first three are rounded for reading.

        Returns
        -------
        str
            Without a final line break.

        Raises
        ------
        UnknownNameError
            If the format is none of these.
        """
        from psyprobe.analysis.scoreboard_table import scoreboard_table

        return scoreboard_table(self, format)

    def __str__(self) -> str:
        return self.table()


Scored = DetectionScore | MatchingScore


def scoreboard(
    results_or_scores: Iterable[xr.Dataset | Scored] = (),
    *,
    published: bool = False,
    sort: str | None = None,
    **options: Any,
) -> Scoreboard:
    """Put scores of observers in tests into one table, with the trivial responders under them.

    Parameters
    ----------
    results_or_scores : iterable of xarray.Dataset, DetectionScore or MatchingScore
        Of any observers, experiments and layers. Results are scored, each layer by itself.
    published : bool, optional
        Whether to add the published scores of the 45 models of Cai et al. (2025). They stand in the columns of the
        experiments with and without "_published"; they were measured with the former. Without any results, the board
        shows them alone.
    sort : str, optional
        As for `Scoreboard.sort`; without it rows stand as they came.
    **options
        For scoring results: measure, confidence, resamples, seed.

    Returns
    -------
    Scoreboard
        Printing it gives a table.

    Raises
    ------
    InputError
        If something is no result, there is nothing to show, one observer has two different scores in one test, or
        published scores are asked for and there are none.

    Examples
    --------
    >>> board = scoreboard(published=True, sort="area")
    >>> [row.name for row in board.rows[:2]]
    ['SAM - ViT-B-SAM - SA-1B', 'DINO - ViT-S/16 - ImageNet']
    """
    scores: list[Scored] = []
    for one in results_or_scores:
        for scored in [one] if isinstance(one, Scored | ChatScore) else score_layers(one, **options):
            if isinstance(scored, ChatScore):
                raise InputError(
                    f"{scored.experiment} was asked in words, and the scoreboard is of features and metrics; put its "
                    f"scores into a table with psyprobe.analysis.score_table"
                )
            scores.append(scored)
    _check_measures(scores)
    tests = list(dict.fromkeys(test for one in scores for test in _tests(one)))
    if not scores:
        if not published:
            raise InputError("there are no results for a scoreboard; give some, or published=True")
        tests = list(dict.fromkeys(Test(one.experiment, one.metric) for one in published_scores()))
    order = list(EXPERIMENT_OF_TEST.values())
    tests.sort(key=lambda t: (order.index(t.base) if t.base in order else len(order), t.experiment.endswith(_SUFFIX)))
    rows = [*_observers(scores), *_baselines(scores)]
    if published:
        beside = _published(tests)
        if not beside:
            raise InputError(
                f"there are no published scores of {', '.join(dict.fromkeys(t.experiment for t in tests))}, but of "
                f"{', '.join(order)}; leave them out"
            )
        rows += beside
    confidences = {_confidence(one) for one in scores}
    board = Scoreboard(tuple(tests), tuple(rows), max(confidences) if confidences else None)
    return board if sort is None else board.sort(sort)


def _tests(one: Scored) -> tuple[Test, ...]:
    if isinstance(one, DetectionScore):
        return (Test(one.experiment, "alignment"),)
    return (Test(one.experiment, "error_mean"), Test(one.experiment, "error_pooled"))


def _confidence(one: Scored) -> float:
    return one.score.alignment.confidence if isinstance(one, DetectionScore) else one.constancy.mean.confidence


def _check_measures(scores: Sequence[Scored]) -> None:
    measures: dict[str, str] = {}
    for one in scores:
        # A metric has no features, and so no choice of a distance between them.
        if one.measure != "difference" and measures.setdefault(one.experiment, one.measure) != one.measure:
            raise InputError(
                f"scores of {one.experiment} are of the measures {measures[one.experiment]} and {one.measure}, which "
                f"cannot stand in one column; choose one with measure="
            )


def _observers(scores: Sequence[Scored]) -> list[Row]:
    layers: dict[str, set[str]] = {}
    for one in scores:
        layers.setdefault(one.observer, set()).add(one.layer)
    rows: dict[str, Row] = {}
    for one in scores:
        name = one.observer + (f" / {one.layer}" if len(layers[one.observer]) > 1 else "")
        name += " (random weights)" if one.random_weights else ""
        family = one.observer.split(":")[0] if ":" in one.observer else "other"
        entries = dict(rows[name].entries) if name in rows else {}
        for test, entry in _entries(one).items():
            if entries.setdefault(test, entry) != entry:
                raise InputError(
                    f"{name} has two different scores in {test.name}; leave out the results of one of the runs"
                )
        rows[name] = Row(name, "observer", family, entries)
    return list(rows.values())


def _entries(one: Scored) -> dict[Test, Entry]:
    shares = "f" * (_many(one.float32_floor)) + "n" * _many(one.below_noise)
    if isinstance(one, DetectionScore):
        (test,) = _tests(one)
        entry = _of_alignment(one.score.alignment)
        flags = "e" if entry.value is None else _compared(test, entry.value, one.pixels.alignment.value, "p")
        if entry.value is not None:
            flags += _compared(test, entry.value, one.contrast.alignment.value, "c")
        return {test: replace(entry, flags=flags + shares, float32_floor=one.float32_floor)}
    found: dict[Test, Entry] = {}
    for test in _tests(one):
        entry = _of_error(test, one.score.error)
        assert entry.value is not None
        pixels = None if one.pixels is None else _of_error(test, one.pixels.error).value
        flags = _compared(test, entry.value, pixels, "p")
        flags += _compared(test, entry.value, _of_error(test, one.constancy).value, "c")
        flags += "s" * (one.score.saturated > 0) + "a" * (one.score.ambiguous > 0) + shares
        note = f"{one.score.saturated} of {one.score.total} matches saturated" if one.score.saturated else ""
        note += f"{'; ' * bool(note)}{one.score.ambiguous} ambiguous" if one.score.ambiguous else ""
        found[test] = replace(entry, flags=flags, float32_floor=one.float32_floor, note=note)
    return found


def _many(share: float | None) -> bool:
    return share is not None and share > _MANY


def _compared(test: Test, value: float, baseline: float | None, flag: str) -> str:
    return "" if baseline is None or test.better(value, baseline) else flag


def _of_alignment(alignment: Alignment) -> Entry:
    return Entry(alignment.value, alignment.low, alignment.high)


def _of_error(test: Test, error: MatchingError) -> Entry:
    estimate: Estimate = error.mean if test.metric == "error_mean" else error.pooled
    return Entry(estimate.value, estimate.low, estimate.high)


def _baselines(scores: Sequence[Scored]) -> list[Row]:
    """One row for each trivial responder; a second one for observers that saw other pixels (at another input size)."""
    rows: dict[str, dict[Test, Entry]] = {PIXELS: {}, CONTRAST: {}}
    for one in scores:
        for baseline in (PIXELS, CONTRAST):
            for test, entry in _baseline(one, baseline).items():
                if rows[baseline].setdefault(test, entry) != entry:
                    rows.setdefault(f"{baseline}, as shown to {one.observer}", {})[test] = entry
    return [Row(name, "baseline", "baseline", entries) for name, entries in rows.items() if entries]


def _baseline(one: Scored, name: str) -> dict[Test, Entry]:
    if isinstance(one, DetectionScore):
        responder = one.pixels if name == PIXELS else one.contrast
        return {test: _of_alignment(responder.alignment) for test in _tests(one)}
    error = one.constancy if name == CONTRAST else None if one.pixels is None else one.pixels.error
    return {} if error is None else {test: _of_error(test, error) for test in _tests(one)}


def _published(tests: Sequence[Test]) -> list[Row]:
    listed = published_scores()
    pixels = {(one.experiment, one.metric): one.score for one in listed if one.model == "no_encoder"}
    rows: dict[str, Row] = {}
    for one in listed:
        entries = dict(rows[one.model].entries) if one.model in rows else {}
        for test in tests:
            if (test.base, test.metric) == (one.experiment, one.metric):
                baseline = None if one.model == "no_encoder" else pixels[test.base, test.metric]
                flags = _compared(test, one.score, baseline, "p") + "f" * _many(one.float32_floor)
                entries[test] = Entry(one.score, flags=flags, float32_floor=one.float32_floor)
        rows[one.model] = Row(one.label, "published", one.family, entries)
    return [row for row in rows.values() if row.entries]
