"""One page over everything: what observers did in all experiments of some stores, as a paper's
results read.

A section is what the probe of its experiment offers: tables of its scores, and the figures, tables
and pictures of its ``report``. Nothing here asks which kind a result is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.result_stimulus import page_of
from psyprobe.analysis.score import OBSERVER, Metric, Score, number, score_notes, score_tables
from psyprobe.analysis.scoreboards import FLAGS, Scoreboard, Test
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.plotting.figure_data import Figure, Gallery, Part, Table
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import load_results, together
from psyprobe.probes.results import score_layers, scoreboard, scores_together
from psyprobe.reporting.figure_json import compact
from psyprobe.reporting.page import picture, render, write_page
from psyprobe.reporting.provenance import made_with, methods, observers_table, stimulus_of
from psyprobe.running.store import Store, open_store

if TYPE_CHECKING:
    import xarray as xr


@dataclass
class _Section:
    """One experiment."""

    name: str
    title: str
    source: str
    results: list[xr.Dataset]
    scores: list[Score] = field(default_factory=list)
    parts: list[Mapping[str, Any]] = field(default_factory=list)
    stimulus: Any = None

    @property
    def tables(self) -> list[Mapping[str, Any]]:
        """Of its scores."""
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
        """What the headings mean."""
        return score_notes(self.scores)


def report(
    sources: str | Path | Store | xr.Dataset | Iterable[str | Path | Store | xr.Dataset],
    path: str | Path,
    *,
    title: str = "",
    measure: str | None = None,
    published: bool = False,
    sort: str | None = None,
) -> Path:
    """Write one page over all results: scoreboard, figures to point at, stimuli, methods and
    provenance.

    Parameters
    ----------
    sources : str, Path, Store, xarray.Dataset, or iterable of these
        Stores, result files or results, of any experiments and observers.
    path : str or Path
        Of the page: one file that loads nothing. An existing one is replaced.
    title : str, optional
        Without it, the page counts its observers and experiments.
    measure : str, optional
        By which observers are scored; without it what each experiment names.
    published, sort
        As for `psyprobe.analysis.scoreboard`.

    Raises
    ------
    InputError
        There is no result, or something is none.
    StoreError
        A store cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import psyprobe as pp
    >>> result = pp.run("gabor_achromatic", "pixels", score_only=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pp.report(result, f"{folder}/report.html")
    ...     "Contrast sensitivity over spatial frequency" in page.read_text(encoding="utf-8")
    True
    """
    listed: list[Any] = _listed(sources)
    results, left = _loaded(listed)
    if not results:
        raise InputError("there are no results for a report; give a store or a result")
    failures = list(left)
    sections = _sections(results)
    figures: list[Figure] = []
    for section in sections:
        sound = []
        for one in section.results:
            try:
                section.scores += score_layers(one, measure=measure)
                sound.append(one)
            except PsyprobeError as error:
                failures.append(
                    (f"{section.name}, {one.attrs['observer']}", f"not scored: {error}")
                )
        section.scores += scores_together(sound)
        try:
            section.parts = [_shown(part, figures) for part in _parts(sound)]
        except PsyprobeError as error:
            failures.append((section.name, f"not drawn: {error}"))
        try:
            section.stimulus = stimulus_of(section.results[0])
        except PsyprobeError as error:
            failures.append((section.name, f"its stimulus is not drawn: {error}"))
    scores = [score for section in sections for score in section.scores]
    board, problem = _board(scores, published, sort)
    failures += [("scoreboard", problem)] * bool(problem)
    observers = list(dict.fromkeys(str(result.attrs["observer"]) for result in results))
    told = f"{_count(len(observers), 'observer')} in {_count(len(sections), 'experiment')}"
    text = render(
        "reporting/report.html",
        title=title or told,
        told=told,
        boards=[]
        if board is None
        else [_board_table(board, tests) for tests in _asked_together(board)],
        board=None if board is None else _board_key(board),
        no_board=f"There is no scoreboard: {problem}." if problem else "Nothing here is ranked.",
        sections=sections,
        scripted=[compact(figure) for figure in figures],
        methods=methods([section.results for section in sections]),
        observers=observers_table(results),
        failures=failures + _flagged(board),
        provenance=made_with(results),
    )
    return write_page(text, path)


def _listed(sources: Any) -> list[Any]:
    """One or several as several; a dataset is an iterable of names, and one."""
    one = isinstance(sources, str) or hasattr(sources, "attrs") or not isinstance(sources, Iterable)
    return [sources] if one else [*sources]


def _loaded(sources: Sequence[Any]) -> tuple[list[xr.Dataset], list[tuple[str, str]]]:
    """All results, and what is not finished."""
    results: list[xr.Dataset] = []
    left: list[tuple[str, str]] = []
    for source in sources:
        if hasattr(source, "attrs"):
            if not {"experiment", "observer", "probe"} <= set(source.attrs):
                raise InputError(
                    "this is no result of a run: it does not say who was asked what; pass what "
                    "run() gave"
                )
            results.append(source)
            continue
        results += load_results(source)
        if isinstance(source, Store) or Path(source).suffix != ".nc":
            with open_store(source, create=False) as store:
                unfinished = [run for run in store.runs() if run.finished is None]
            left += [
                (f"{run.experiment}, {run.observer}", f"not finished; begun {run.started}")
                for run in unfinished
            ]
    return together(results), left


def _sections(results: Sequence[xr.Dataset]) -> list[_Section]:
    """One for each experiment; pages of one name that say different things are two."""
    found: dict[tuple[str, str], _Section] = {}
    for result in results:
        name = str(result.attrs["experiment"])
        page = page_of(result)
        new = _Section(name, str(page.get("title", "")) or name, str(page.get("source", "")), [])
        found.setdefault(
            (name, str(result.attrs.get("experiment_digest", ""))), new
        ).results.append(result)
    return list(found.values())


def _parts(results: Sequence[xr.Dataset]) -> Sequence[Part]:
    """What the probe of an experiment has to show."""
    offered = (
        getattr(load_probe(str(results[0].attrs["probe"])), "report", None) if results else None
    )
    return () if offered is None else list(offered(results))


def _shown(part: Part, figures: list[Figure]) -> Mapping[str, Any]:
    """A part as the template takes it."""
    if isinstance(part, Figure):
        figures.append(part)
        return {"figure": part, "number": len(figures)}
    if isinstance(part, Gallery):
        pictures = [(picture(image, part.width), caption) for image, caption in part.pictures]
        return {"gallery": part, "pictures": pictures}
    if isinstance(part, Table):
        return {"table": part}
    raise InputError(
        f"{type(part).__name__} is no part of a report; give a Figure, a Table or a Gallery"
    )


def _board(
    scores: Sequence[Score], published: bool, sort: str | None
) -> tuple[Scoreboard | None, str]:
    """The scoreboard of all that is ranked, or why there is none."""
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


def _asked_together(board: Scoreboard) -> list[list[Test]]:
    """Tests that share observers stand in one table, so that no table is mostly empty."""
    groups: list[tuple[set[str], list[Test]]] = []
    for test in board.tests:
        asked = {row.title for row in board.rows if row.kind != "baseline" and test in row.entries}
        joined = [group for group in groups if group[0] & asked]
        groups = [group for group in groups if not group[0] & asked]
        tests = [each for group in joined for each in group[1]]
        groups.append((asked.union(*(group[0] for group in joined)), [*tests, test]))
    return [tests for _, tests in groups]


def _board_table(board: Scoreboard, tests: Sequence[Test]) -> Mapping[str, Any]:
    """Tests of the scoreboard as the template takes them: a cell is value, interval, flags and
    rank.
    """
    rows = []
    for row in board.rows:
        if not any(test in row.entries for test in tests):
            continue
        cells = []
        for test in tests:
            entry = row.entries.get(test)
            if entry is None:
                cells.append({"text": "", "interval": "", "flags": "", "said": "", "sort": ""})
                continue
            digits = test.metric.digits
            interval = (
                f"[{number(entry.low, digits)}, {number(entry.high, digits)}]"
                if entry.low is not None
                else ""
            )
            said = "; ".join(
                [*(FLAGS[flag] for flag in entry.flags), *[entry.note] * bool(entry.note)]
            )
            value = "" if entry.value is None else f"{_rank(test.metric, entry.value):.6g}"
            cell = {"text": number(entry.value, digits), "interval": interval, "flags": entry.flags}
            cells.append(cell | {"said": said, "sort": value})
        rows.append({"name": row.title, "kind": row.kind, "cells": cells})
    return {
        "tests": [
            (
                test.short_name,
                "larger is better" if test.metric.more_is_better else "smaller is better",
            )
            for test in tests
        ],
        "rows": rows,
    }


def _board_key(board: Scoreboard) -> Mapping[str, Any]:
    """What flags and brackets on the scoreboard mean."""
    used = {flag for row in board.rows for entry in row.entries.values() for flag in entry.flags}
    return {
        "flags": {flag: text for flag, text in FLAGS.items() if flag in used},
        "confidence": board.confidence and f"{100 * board.confidence:g}",
    }


def _rank(metric: Metric, value: float) -> float:
    """Smaller for better ones."""
    return -value if metric.more_is_better else value


def _flagged(board: Scoreboard | None) -> list[tuple[str, str]]:
    """What the flags on the scoreboard say, observer by observer."""
    if board is None:
        return []
    return [
        (f"{row.title}, {test.short_name}", "; ".join(FLAGS[flag] for flag in entry.flags))
        for row in board.rows
        for test, entry in row.entries.items()
        if entry.flags and row.kind == "observer"
    ]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
