"""Write one page over the results of many observers in many experiments.

Each experiment has a section with the tables of its scores and the figures, tables and pictures
that its probe's ``report`` gives. Nothing in this file asks which kind a result is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from psyprobe.analysis.result_stimulus import page_of
from psyprobe.analysis.run_names import name_apart
from psyprobe.analysis.score import (
    OBSERVER,
    Score,
    score_notes,
    score_tables,
)
from psyprobe.analysis.scoreboards import FLAGS, Scoreboard, Test
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping
from psyprobe.plotting.figure_data import Figure, Gallery, Part, Table
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import load_runs, merge_results
from psyprobe.probes.results import joint_scores, score_layers, scoreboard
from psyprobe.reporting.figure_json import compact
from psyprobe.reporting.page import picture, render, write_page
from psyprobe.reporting.provenance import (
    methods,
    observers_table,
    runs_table,
    summarise_stimulus,
)
from psyprobe.running.protocol import labelled
from psyprobe.running.registry_run import is_registry
from psyprobe.running.store import Store, open_store

if TYPE_CHECKING:
    import xarray as xr

    Source: TypeAlias = str | Path | Store | xr.Dataset

#: What the page says could not be shown: its name, and why.
Failure: TypeAlias = tuple[str, str]


@dataclass
class _Section:
    """The results of one experiment, and what the page shows of them."""

    name: str
    title: str
    source: str
    results: list[xr.Dataset]
    scores: list[Score] = field(default_factory=list)
    parts: list[JsonMapping] = field(default_factory=list)
    stimulus: Any = None

    @property
    def tables(self) -> list[JsonMapping]:
        """Build the score tables of the section."""
        return [
            {
                "heading": [table.title, *table.headings],
                "rows": [cells for cells in table.cells() if any(cells[1:])],
                "notes": table.notes(),
            }
            for table in score_tables(self.scores)
        ]

    @property
    def notes(self) -> list[str]:
        """List the explanations of the tables' headings."""
        return score_notes(self.scores)


def report(
    sources: Source | Iterable[Source],
    path: str | Path,
    *,
    title: str = "",
    measure: str | None = None,
    published: bool = False,
    sort: str | None = None,
) -> Path:
    """Write an HTML page with scoreboard, figures, stimuli, methods and provenance of results.

    Parameters
    ----------
    sources : str, Path, Store, xarray.Dataset, or iterable of these
        Stores, result files or results, of any experiments and observers.
    path : str or Path
        Where to write the page: one file that loads nothing. An existing file is replaced.
    title : str, optional
        Without it, the page counts its observers and experiments.
    measure : str, optional
        The measure by which observers are scored; by default the one that each experiment names.
    published, sort
        As for `psyprobe.analysis.scoreboard`.

    Raises
    ------
    InputError
        There is no result, or a source is not one.
    StoreError
        A store cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import psyprobe as pp
    >>> result = pp.run("area", "pixels", score_only=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pp.report(result, f"{folder}/report.html")
    ...     "Contrast sensitivity over area" in page.read_text(encoding="utf-8")
    True
    """
    results, failures = _load(sources)
    if not results:
        raise InputError("there are no results for a report; give a store or a result")
    sections = _sections(results)
    figures: list[Figure] = []
    for section in sections:
        failures += _fill(section, figures, measure)
    scores = [score for section in sections for score in section.scores]
    board, problem = _scoreboard(scores, published, sort)
    if problem:
        failures.append(("scoreboard", problem))
    observers = {result.attrs["observer"] for result in results}
    observer_count = _count_noun(len(observers), "observer")
    summary = f"{observer_count} in {_count_noun(len(sections), 'experiment')}"
    text = render(
        "reporting/report.html",
        title=title or summary,
        summary=summary,
        board=board,
        groups=_test_groups(board) if board else [],
        flags=_board_flags(board) if board else {},
        no_board=f"There is no scoreboard: {problem}."
        if problem
        else "Nothing here is ranked.",
        sections=sections,
        scripted=[compact(figure) for figure in figures],
        methods=methods([section.results for section in sections]),
        observers=observers_table(results),
        failures=failures + _flags(board),
        provenance=runs_table(results),
    )
    return write_page(text, path)


def _fill(
    section: _Section, figures: list[Figure], measure: str | None
) -> list[Failure]:
    """Score and draw the results of a section, and return the failures."""
    failures: list[Failure] = []
    scored_results = []
    for result in section.results:
        try:
            section.scores += score_layers(result, measure=measure)
            scored_results.append(result)
        except PsyprobeError as error:
            name = f"{section.name}, {result.attrs['observer']}"
            failures.append((name, f"not scored: {error}"))
    section.scores += joint_scores(scored_results)
    try:
        section.parts = [
            _template_part(part, figures) for part in _parts(scored_results)
        ]
    except PsyprobeError as error:
        failures.append((section.name, f"not drawn: {error}"))
    try:
        section.stimulus = summarise_stimulus(section.results[0])
    except PsyprobeError as error:
        failures.append((section.name, f"its stimulus is not drawn: {error}"))
    return failures


def _load(
    sources: Source | Iterable[Source],
) -> tuple[list[xr.Dataset], list[Failure]]:
    """Load all results, and list the runs that are not finished."""
    import xarray

    # A dataset is an iterable, too, of the names of its variables.
    if isinstance(sources, str | Path | Store | xarray.Dataset) or not isinstance(
        sources, Iterable
    ):
        sources = [sources]
    results: list[xr.Dataset] = []
    failures: list[Failure] = []
    for source in sources:
        if isinstance(source, xarray.Dataset):
            if not {"experiment", "observer", "probe"} <= set(source.attrs):
                raise InputError(
                    "this is no result of a run: it names no experiment, observer and probe; pass "
                    "what run() gave"
                )
            results.append(source)
            continue
        source_results, unread = load_runs(source)
        results += source_results
        failures += [
            (f"{run.experiment}, {run.observer}", f"not read: {run.failure}")
            for run in unread
        ]
        if is_registry(source):
            continue
        if isinstance(source, Store) or Path(source).suffix != ".nc":
            with open_store(source, create=False) as store:
                unfinished = [
                    (run, store.last_attempt(run))
                    for run in store.iterate_runs()
                    if run.finished is None and not run.given_up
                ]
            failures += [
                (
                    f"{run.experiment}, {labelled(run.observer, run.label)}",
                    f"not finished; begun {run.started}" + f"; {last}" * bool(last),
                )
                for run, last in unfinished
            ]
    return name_apart(merge_results(results)), failures


def _sections(results: Sequence[xr.Dataset]) -> list[_Section]:
    """Group results by experiment, telling apart experiments of one name and other content."""
    sections: dict[tuple[str, str], _Section] = {}
    for result in results:
        name = result.attrs["experiment"]
        key = (name, result.attrs.get("experiment_digest", ""))
        if key not in sections:
            page = page_of(result)
            title = page.get("title", "") or name
            sections[key] = _Section(name, title, page.get("source", ""), [])
        sections[key].results.append(result)
    return list(sections.values())


def _parts(results: Sequence[xr.Dataset]) -> Sequence[Part]:
    """Build the figures, tables and pictures of results by their probe."""
    if not results:
        return ()
    describe = getattr(load_probe(results[0].attrs["probe"]), "report", None)
    return () if describe is None else list(describe(results))


def _template_part(part: Part, figures: list[Figure]) -> JsonMapping:
    """Convert a part for the template, adding its figure to those of the page."""
    if isinstance(part, Figure):
        figures.append(part)
        return {"figure": part, "number": len(figures)}
    if isinstance(part, Gallery):
        pictures = [
            (picture(image, part.width), caption) for image, caption in part.pictures
        ]
        return {"gallery": part, "pictures": pictures}
    if isinstance(part, Table):
        return {"table": part}
    raise InputError(
        f"{type(part).__name__} is no part of a report; give a Figure, a Table or a Gallery"
    )


def _scoreboard(
    scores: Sequence[Score], published: bool, sort: str | None
) -> tuple[Scoreboard | None, str]:
    """Build the scoreboard of scores that are ranked, or say why that fails."""
    ranked = [
        score
        for score in scores
        if any(row.entries and row.responder == OBSERVER for row in score.rows())
    ]
    if not ranked:
        return None, ""
    try:
        return scoreboard(ranked, published=published, sort=sort), ""
    except InputError as error:
        return None, str(error)


def _test_groups(board: Scoreboard) -> list[list[Test]]:
    """Group tests that share observers, so that no table is mostly empty."""
    groups: list[tuple[set[str], list[Test]]] = []
    for test in board.tests:
        observers = {
            row.title
            for row in board.rows
            if row.kind != "baseline" and test in row.entries
        }
        tests = [test]
        disjoint_groups = []
        for group_observers, group_tests in groups:
            if group_observers & observers:
                observers |= group_observers
                tests = group_tests + tests
            else:
                disjoint_groups.append((group_observers, group_tests))
        groups = [*disjoint_groups, (observers, tests)]
    return [tests for _, tests in groups]


def _board_flags(board: Scoreboard) -> dict[str, str]:
    """List the explanations of the flags on the scoreboard."""
    letters = {
        flag
        for row in board.rows
        for entry in row.entries.values()
        for flag in entry.flags
    }
    return {flag: text for flag, text in FLAGS.items() if flag in letters}


def _flags(board: Scoreboard | None) -> list[Failure]:
    """Describe the flags of each observer on the scoreboard."""
    if board is None:
        return []
    return [
        (
            f"{row.title}, {test.short_name}",
            "; ".join(FLAGS[flag] for flag in entry.flags),
        )
        for row in board.rows
        for test, entry in row.entries.items()
        if entry.flags and row.kind == "observer"
    ]


def _count_noun(number: int, noun: str) -> str:
    """Join a number and a noun, with "s" unless it is 1."""
    return f"{number} {noun}{'s' * (number != 1)}"
