"""Build the site of a registry: static pages that load nothing, ranked by experiment."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.analysis.published import published_scores
from psyprobe.analysis.score import OBSERVER, csv_text, number, without_mathematics
from psyprobe.analysis.scoreboards import FLAGS
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import make_folder, write_text
from psyprobe.plotting.figure_data import Axis, Figure, Line, Panel
from psyprobe.reporting.figure_json import compact
from psyprobe.reporting.page import render, write_page
from psyprobe.reporting.publishing.feed import FEED_FILE, feed
from psyprobe.reporting.publishing.index import (
    INDEX_FILE,
    Index,
    index_text,
    read_index,
    table_rows,
    write_file,
)
from psyprobe.reporting.publishing.nights import compare_runs, index_runs
from psyprobe.reporting.publishing.ranks import rank
from psyprobe.running.registry_run import PAGE_FILE, REGISTRY_PAGE

#: Rows of all rankings on the first page; of more, each ranking shows its first ones.
_MOST_ROWS = 2000
_FIRST_ROWS = 50
#: Kinds of observers that are ranked beside each other.
_RANKED_KINDS = ("model", "metric", "baseline", "replayed", "person", "person_remote")
_TEMPLATES = "reporting/publishing"


@dataclass(frozen=True)
class BoardLine:
    """One line of a ranking."""

    #: "observer", or "baseline" for trivial responders, people and the ceiling.
    kind: str
    name: str
    entry: JsonMapping
    #: The run behind it; of a baseline none.
    run: JsonMapping = field(default_factory=dict)
    #: First and last rank that it may have; None where it is not ranked.
    ranks: tuple[int, int] | None = None
    #: Number of runs of this revision, of which the latest counts.
    nights: int = 1
    #: Why it is not ranked.
    reason: str = ""

    @property
    def rank_text(self) -> str:
        """The ranks as text: "2" or "2-5"."""
        if self.ranks is None:
            return ""
        first, last = self.ranks
        return str(first) if first == last else f"{first}-{last}"

    @property
    def page(self) -> str:
        """The file name of the observer's page."""
        return f"observer-{self.run['path'].split('/')[1]}.html" if self.run else ""


@dataclass(frozen=True)
class Ranking:
    """Observers of one experiment, with baselines, people and ceiling among them."""

    experiment: str
    #: NAME-DIGEST8, by which files are named.
    name: str
    #: Name of the number by which observers are ranked.
    metric: str
    #: Column of the number, its unit with it.
    heading: str
    lower_is_better: bool
    lines: Sequence[BoardLine]
    #: Simulated observers, random weights and runs that were taken back.
    aside: Sequence[BoardLine]
    #: Failed runs, and those without a number.
    unranked: Sequence[BoardLine]
    runs: Sequence[JsonMapping]
    #: Keys of the page by which it differs from others of its name.
    differs: Sequence[str] = ()

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest number that a picture must show."""
        ends = [
            line.entry[name]
            for line in self.lines
            for name in ("value", "low", "high")
            if line.entry[name] is not None
        ]
        return min(ends, default=0.0), max(ends, default=1.0)

    def place(self, value: float) -> float:
        """Place a number on the picture of a line, from 2 to 98."""
        low, high = self.span
        return round(2 + 96 * (value - low) / ((high - low) or 1.0), 1)


def build_site(registry: str | Path, output: str | Path, title: str = "") -> JsonObject:
    """Build the site of a registry in a folder.

    Scores are those of ``scores.json``: check the registry first.

    Parameters
    ----------
    registry : str or Path
        The folder of the registry.
    output : str or Path
        The folder of the site, new or one that was built before.
    title : str, optional
        Of the pages; by default the registry's name.

    Returns
    -------
    dict
        Counts of "runs", "experiments", "observers" and "pages", and the "unsound" runs, which are
        left out, with reasons.

    Raises
    ------
    InputError
        There is no registry or no sound run, or the folder holds something else.
    """
    root = Path(registry)
    index = read_index(root)
    if not index.runs:
        raise InputError(f"{registry} has no sound run; see psyprobe registry check")
    site = Path(output)
    if site.exists() and any(site.iterdir()) and not (site / INDEX_FILE).exists():
        raise InputError(
            f"{output} holds something else than a site of a registry; give a new folder"
        )
    make_folder(site)
    name = title or index.name
    rankings = rank_experiments(root, index)
    _write_downloads(root, site, index)
    write_file(site / FEED_FILE, feed(name, index.runs))
    pages = [
        _write_first_page(site, name, index, rankings),
        _write_changes(site, name, index),
        *(_write_experiment(root, site, name, ranking) for ranking in rankings),
        *_write_observers(site, name, index),
        *(_write_run(site, name, run) for run in index.runs),
    ]
    return {
        "runs": len(index.runs),
        "experiments": len(rankings),
        "observers": len({run["observer"] for run in index.runs}),
        "pages": len(pages),
        "unsound": [list(pair) for pair in index.unsound],
    }


def rank_experiments(root: Path, index: Index) -> list[Ranking]:
    """Rank the observers of each experiment of an index, by the latest run of each revision."""
    groups: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    for run in sorted(index.runs, key=lambda run: run["started"]):
        groups[run["path"].split("/")[3]].append(run)
    return [
        _rank_experiment(name, runs, list(_differing_keys(root, name, groups)))
        for name, runs in sorted(groups.items())
    ]


def _rank_experiment(
    name: str, runs: Sequence[JsonMapping], differs: Sequence[str]
) -> Ranking:
    """Rank the observers of one experiment."""
    nights: defaultdict[tuple[str, str], list[JsonMapping]] = defaultdict(list)
    aside: list[BoardLine] = []
    unranked: list[BoardLine] = []
    for run in runs:
        if run["retracted"] is not None:
            aside += _lines_of(run, reason=f"retracted: {run['retracted']}")
        elif run["status"] == "failed":
            unranked.append(_line_without_number(run, f"failed: {run['failure']}"))
        else:
            nights[run["observer"], run["revision"]].append(run)
    candidates: list[BoardLine] = []
    trivial: dict[tuple[str, str], BoardLine] = {}
    for members in nights.values():
        latest = members[-1]
        for entry in latest["board"]:
            if entry["responder"] != OBSERVER and entry["value"] is not None:
                key = (entry["responder"], f"{entry['value']:.{entry['digits']}f}")
                trivial.setdefault(
                    key,
                    BoardLine("baseline", entry["name"] or entry["responder"], entry),
                )
        lines = list(_lines_of(latest, nights=len(members)))
        kind = latest["kind"]
        if latest["random_weights"] or kind not in _RANKED_KINDS:
            aside += lines
            continue
        for line in lines:
            (unranked if line.reason else candidates).append(line)
        if not lines:
            unranked.append(_line_without_number(latest, "no number"))
    entries = (entry for run in runs for entry in run["board"])
    first = candidates[0].entry if candidates else next(entries, {})
    lower_is_better = bool(first.get("lower_is_better", False))
    ranks = rank([line.entry for line in candidates], lower_is_better=lower_is_better)
    ranked = [
        replace(line, ranks=pair) for line, pair in zip(candidates, ranks, strict=True)
    ]
    lines = sorted(
        [*ranked, *trivial.values()],
        key=lambda line: line.entry["value"] * (1 if lower_is_better else -1),
    )
    return Ranking(
        runs[-1]["experiment"],
        name,
        first.get("metric", ""),
        without_mathematics(first.get("text", "number")),
        lower_is_better,
        lines,
        aside,
        unranked,
        runs,
        differs,
    )


def _line_without_number(run: JsonMapping, reason: str) -> BoardLine:
    """Build the line of a run that has no number to be ranked by."""
    return BoardLine(OBSERVER, run["observer"], {}, run, reason=reason)


def _lines_of(
    run: JsonMapping, nights: int = 1, reason: str = ""
) -> Iterator[BoardLine]:
    """Iterate over the lines of a run's observer, one a layer."""
    entries = [entry for entry in run["board"] if entry["responder"] == OBSERVER]
    for entry in entries:
        layer = f" / {entry['layer']}" * (len(entries) > 1)
        name = f"{run['observer']}{layer}"
        missing = "" if entry["value"] is not None else entry["note"] or "no value"
        yield BoardLine(
            OBSERVER, name, entry, run, nights=nights, reason=reason or missing
        )


def _differing_keys(root: Path, name: str, groups: JsonMapping) -> Iterator[str]:
    """Iterate over the keys by which a page differs from others of its experiment's name."""
    first = groups[name][0]
    page = _read_page(root, first)
    for other, runs in groups.items():
        if other != name and runs[0]["experiment"] == first["experiment"]:
            other_page = _read_page(root, runs[0])
            keys = sorted(
                key
                for key in {*page, *other_page}
                if page.get(key) != other_page.get(key)
            )
            yield f"{other}: {', '.join(keys) or 'nothing that is named'}"


def _read_page(root: Path, run: JsonMapping) -> JsonObject:
    """Read the page of a run as a flat table; empty of a failed run."""
    path = root / run["path"] / PAGE_FILE
    if PAGE_FILE not in run["files"]:
        return {}
    return dict(_flat(tomllib.loads(path.read_text(encoding="utf-8"))))


def _flat(table: JsonMapping, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over the values of nested tables, their keys joined by dots."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _write_downloads(root: Path, site: Path, index: Index) -> None:
    """Copy the files of runs, and write the index and all numbers as a table."""
    names = [REGISTRY_PAGE]
    names += [f"{run['path']}/{name}" for run in index.runs for name in run["files"]]
    for name in names:
        content = (root / name).read_bytes()
        target = site / name
        make_folder(target.parent)
        write_file(target, content)
    write_text(site / INDEX_FILE, index_text(index))
    write_text(site / "scores.csv", f"{csv_text(table_rows(index.runs))}\n")


def _used_flags(rankings: Sequence[Ranking]) -> dict[str, str]:
    """Select the flags that entries of rankings have, with what they mean."""
    letters = {
        flag
        for ranking in rankings
        for line in ranking.lines
        for flag in line.entry["flags"]
    }
    return {flag: text for flag, text in FLAGS.items() if flag in letters}


def _write_first_page(
    site: Path, title: str, index: Index, rankings: Sequence[Ranking]
) -> Path:
    """Write the page with a ranking for each experiment."""
    is_long = sum(len(ranking.lines) for ranking in rankings) > _MOST_ROWS
    text = render(
        f"{_TEMPLATES}/site_index.html",
        title=title,
        rankings=rankings,
        first=_FIRST_ROWS if is_long else None,
        flags=_used_flags(rankings),
        unsound=index.unsound,
        runs=index.runs,
        scripted=[],
    )
    return write_page(text, site / "index.html")


def _write_changes(site: Path, title: str, index: Index) -> Path:
    """Write the page that says what the latest night changed."""
    runs = sorted(index_runs(index.runs), key=lambda run: run.started)
    compared = compare_runs(runs, runs[-1].night) if runs else None
    text = render(
        f"{_TEMPLATES}/site_changes.html",
        title=f"What changed - {title}",
        compared=compared,
    )
    return write_page(text, site / "changes.html")


def _write_experiment(root: Path, site: Path, title: str, ranking: Ranking) -> Path:
    """Write the page of an experiment: its ranking, its page and how to run it."""
    last = next((run for run in ranking.runs if PAGE_FILE in run["files"]), None)
    page = "" if last is None else f"{last['path']}/{PAGE_FILE}"
    text = render(
        f"{_TEMPLATES}/site_experiment.html",
        title=f"{ranking.experiment} - {title}",
        ranking=ranking,
        flags=_used_flags([ranking]),
        page=page,
        page_text=(root / page).read_text(encoding="utf-8") if page else "",
        printed=_printed_rows(ranking),
        scripted=[],
    )
    return write_page(text, site / f"experiment-{ranking.name}.html")


def _printed_rows(ranking: Ranking) -> list[list[str]]:
    """Tabulate the printed scores of models in an experiment, which are of no run, best first."""
    scores = [
        score
        for score in published_scores()
        if score.experiment == ranking.experiment.removesuffix("_published")
        and score.metric == ranking.metric
    ]
    scores.sort(key=lambda score: score.score, reverse=not ranking.lower_is_better)
    return [
        [score.label, score.family, number(score.score), number(score.float32_floor)]
        for score in scores
    ]


def _write_observers(site: Path, title: str, index: Index) -> Iterator[Path]:
    """Write the page of each observer: its runs and their history."""
    groups: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    for run in sorted(index.runs, key=lambda run: run["started"]):
        groups[run["path"].split("/")[1]].append(run)
    for slug, runs in groups.items():
        text = render(
            f"{_TEMPLATES}/site_observer.html",
            title=f"{runs[0]['observer']} - {title}",
            runs=runs,
            scripted=[compact(figure) for figure in history_figures(runs)],
        )
        yield write_page(text, site / f"observer-{slug}.html")


def history_figures(runs: Sequence[JsonMapping]) -> Iterator[Figure]:
    """Draw the number of an observer over the dates of its runs, a line for each revision.

    A failed run is a gap, with its reason; where a fingerprint or the version that scored changes,
    a point says so.
    """
    groups: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    for run in runs:
        groups[run["path"].split("/")[3]].append(run)
    for name, runs_of_name in groups.items():
        members = _with_revisions(runs_of_name)
        entries = [
            next((e for e in run["board"] if e["responder"] == OBSERVER), None)
            for run in members
        ]
        measured = [entry for entry in entries if entry is not None]
        if len(members) < 2 or not measured:
            continue
        revisions = list(dict.fromkeys(run["revision"] for run in members))
        lines = [
            _history_line(members, entries, revision, colour)
            for colour, revision in enumerate(revisions)
        ]
        dates = [run["label"] or run["started"][:10] for run in members]
        yield Figure(
            name,
            Axis("Run", names=dates),
            Axis(without_mathematics(measured[0]["text"])),
            [Panel("", {"": {"": lines}})],
            "A line is a revision: the same weights or the same served model. "
            "A gap is a run that failed or was retracted.",
        )


def _with_revisions(runs: Sequence[JsonMapping]) -> list[JsonMapping]:
    """Count each failed run, of which no answer tells the revision, to that of the run before."""
    members: list[JsonMapping] = []
    for run in runs:
        if run["status"] == "failed" and members:
            run = {**run, "revision": members[-1]["revision"]}
        members.append(run)
    return members


def _history_line(
    runs: Sequence[JsonMapping],
    entries: Sequence[JsonMapping | None],
    revision: str,
    colour: int,
) -> Line:
    """Build the line of one revision over the runs of an experiment."""
    places = [place for place, run in enumerate(runs) if run["revision"] == revision]
    columns: dict[str, list[float]] = {name: [] for name in ("value", "low", "high")}
    notes = []
    before: JsonMapping = {}
    for place in places:
        run = runs[place]
        entry = entries[place]
        is_sound = entry is not None and run["retracted"] is None
        for name, column in columns.items():
            value = entry[name] if is_sound and entry is not None else None
            column.append(np.nan if value is None else value)
        changes = [
            f"{name.replace('_', ' ')} {run[name]}"
            for name in ("fingerprint", "scored_by")
            if before and run[name] != before[name]
        ]
        reason = run["failure"] or run["retracted"] or ""
        notes.append("; ".join(filter(None, [run["run"], *changes, reason])))
        before = run
    return Line(
        revision,
        np.array(places, float),
        np.array(columns["value"]),
        np.array(columns["low"]),
        np.array(columns["high"]),
        colour=colour,
        notes=notes,
    )


def _write_run(site: Path, title: str, run: JsonMapping) -> Path:
    """Write the page of a run: where it comes from, its numbers and its files."""
    hidden = ("files", "board", "path", "run", "retracted", "failure")
    text = render(
        f"{_TEMPLATES}/site_run.html",
        title=f"{run['experiment']} with {run['observer']} - {title}",
        run=run,
        facts=[
            [name, run[name]] for name in run if name not in hidden and run[name] != ""
        ],
    )
    return write_page(text, site / f"run-{run['run']}.html")
