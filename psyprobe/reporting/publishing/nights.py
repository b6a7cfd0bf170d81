"""Compare the main scores of two nights: what changed beyond chance, observer by observer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from psyprobe.analysis.comparison.family import benjamini_hochberg
from psyprobe.analysis.comparison.paired import compare_samples
from psyprobe.analysis.comparison.sample import TRANSFORMS, Scale
from psyprobe.analysis.intervals import normal_quantile
from psyprobe.analysis.score import (
    check_format,
    csv_text,
    document,
    ends_text,
    json_text,
    number,
)
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.terminal import lay_out
from psyprobe.probes.results import score_layers
from psyprobe.reporting.publishing.derive import page_alone
from psyprobe.reporting.publishing.identity import revision, slug
from psyprobe.reporting.publishing.index import read_index
from psyprobe.reporting.publishing.publish import grouped_runs
from psyprobe.reporting.publishing.ranks import (
    interval_probabilities,
    reach,
    read_sample,
)
from psyprobe.reporting.publishing.scoring import (
    board_entries,
    load_records,
    observer_entries,
)
from psyprobe.running.protocol import RunRecord
from psyprobe.running.registry_run import is_registry
from psyprobe.running.store import Store

#: Stands for the night before, of each observer and experiment its own.
PREVIOUS = "previous"
#: Corrected p below which a difference is certain. Without any change the correction alarms in as
#: many nights as its level says. One night in twenty may alarm at most, and intervals of observers
#: in words are a little short: at 0.05 6.2 % of 1,000 nights did, at 0.03 3.1 %
#: (benchmarks/nights.py).
_LEVEL = 0.03
#: Nights whose spread a change must exceed, and by how many median absolute deviations.
_NIGHTS = 10
_DEVIATIONS = 3
#: Differences within which two scores are one.
_ALIKE = 1e-9
#: Facts of a run whose change is said.
_FACTS = ("revision", "fingerprint", "scored_by")
_KEY = (
    "difference: now less before, with its {confidence} % interval; z: on Fisher's z of r_s, "
    "log10: on the logarithm. Paired where both nights scored the same units, else from both "
    "intervals.",
    "p: corrected by Benjamini and Hochberg over {family}; "
    "below {level} of a change. spread: 3 median absolute deviations of the last 10 nights, which "
    "a change exceeds; - with fewer nights.",
)


@dataclass(frozen=True)
class NightRun:
    """A run of one night: whose it is, and how to read its scores."""

    observer: str
    #: First eight digits of the card's digest, as at the end of a revision.
    card: str
    experiment: str
    night: str
    started: str
    #: Why it has no scores; "" for one that has.
    failure: str
    #: Revision, fingerprint and version that scored; "" where unknown.
    facts: JsonMapping
    #: Reads the numbers on its board.
    read_board: Callable[[], Sequence[JsonMapping]]

    @cached_property
    def entries(self) -> dict[tuple[str, str, str], JsonMapping]:
        """The observer's main scores that have a value, by metric, layer and measure."""
        return observer_entries(self.read_board())


@dataclass(frozen=True)
class NightDifference:
    """What became of one main score from one night to another."""

    observer: str
    experiment: str
    #: Metric, layer and measure of the score; empty where a night has none.
    metric: str = ""
    layer: str = ""
    measure: str = ""
    #: The night before, and the scores of both nights.
    before: str = ""
    value_before: float | None = None
    value: float | None = None
    #: Later less earlier score on the scale; None where nothing can be compared.
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    scale: Scale = "linear"
    #: Both nights' units, where they are paired, as "8 variants".
    pairs: str = ""
    #: Two-sided, and corrected over all differences; None without an interval.
    p: float | None = None
    p_adjusted: float | None = None
    #: Three median absolute deviations of the last ten nights on the scale; None of fewer nights.
    spread: float | None = None
    lower_is_better: bool = False
    #: What else differs, or why there is no difference.
    remark: str = ""

    @property
    def changed(self) -> bool:
        """Tell whether the difference is certain, and more than nights differ anyway."""
        if self.difference is None or self.p_adjusted is None:
            return False
        return self.p_adjusted < _LEVEL and abs(self.difference) > (self.spread or 0.0)

    @property
    def worse(self) -> bool:
        """Tell whether the score surely changed for the worse."""
        return self.changed and ((self.difference or 0.0) > 0) == self.lower_is_better

    @property
    def verdict(self) -> str:
        """Describe the change in words; "" without one."""
        if self.changed:
            return "worse" if self.worse else "better"
        if self.p_adjusted is not None and self.p_adjusted < _LEVEL:
            return "within the spread of nights"
        return ""

    def cells(self) -> list[str]:
        """Format the difference as table cells."""
        interval = ""
        if self.difference is not None:
            interval = number(self.difference, 3, sign=True)
            interval += ends_text(self.low, self.high, 3)
            interval += f" {self.scale}" * (self.scale != "linear")
        layer = f" / {self.layer}" * bool(self.layer)
        before = number(self.value_before, 3)
        return [
            f"{self.observer}{layer}",
            self.experiment,
            f"{before} ({self.before})" if self.before else before,
            number(self.value, 3),
            interval,
            "-" if self.p_adjusted is None else f"{self.p_adjusted:.2g}",
            number(self.spread, 3),
            ", ".join(filter(None, [self.verdict, self.remark])),
        ]

    def record(self) -> JsonObject:
        """Collect all values as a flat record."""
        return {**asdict(self), "changed": self.changed, "verdict": self.verdict}


@dataclass(frozen=True)
class NightComparison:
    """What changed from one night to another, a row a main score."""

    night: str
    against: str
    rows: tuple[NightDifference, ...]
    confidence: float

    #: Headings of the cells of a row.
    headings: ClassVar[tuple[str, ...]] = (
        *("observer", "experiment", "before", "now", "difference [interval]"),
        *("p (BH)", "spread", "verdict"),
    )

    def table(self, format: str = "text") -> str:
        """Lay out all differences as text, Markdown, LaTeX, CSV or JSON.

        Raises
        ------
        UnknownNameError
            If the format is none of these.
        """
        check_format(format)
        if format == "json":
            return json_text(self.to_dict())
        if format == "csv":
            return csv_text([row.record() for row in self.rows])
        cells = [row.cells() for row in self.rows]
        tables = [lay_out(format, [[*self.headings], *cells])]
        return document(format, tables, self.lines())

    @property
    def differing(self) -> list[list[str]]:
        """The cells of all rows whose numbers differ or that have a remark."""
        rows = (row for row in self.rows if row.difference != 0 or row.remark)
        return [row.cells() for row in rows]

    def lines(self) -> list[str]:
        """Count the changes, and say what the columns mean, in sentences."""
        changes = sum(row.changed for row in self.rows)
        worse = sum(row.worse for row in self.rows)
        comparisons = sum(row.p is not None for row in self.rows)
        facts = {
            "confidence": f"{100 * self.confidence:g}",
            "level": f"{_LEVEL:g}",
            "family": f"{comparisons} comparison{'s' * (comparisons != 1)}",
        }
        counts = f"{self.night}: {changes} changed, {worse} of them for the worse."
        return [counts, *(line.format(**facts) for line in _KEY)]

    def to_dict(self) -> JsonObject:
        """Convert everything to what JSON holds."""
        return {
            "night": self.night,
            "against": self.against,
            "confidence": self.confidence,
            "rows": [row.record() for row in self.rows],
        }


def compare_nights(
    source: str | Path,
    night: str,
    against: str = PREVIOUS,
    confidence: float = 0.95,
) -> NightComparison:
    """Compare the main scores of two nights of the same observers and experiments.

    A change is a difference whose p is below 0.03 after Benjamini and Hochberg's correction over
    all scores of the night, and that exceeds three median absolute deviations of the last ten
    nights, where there are ten.

    Parameters
    ----------
    source : str or Path
        A store, or the folder of a registry.
    night : str
        Label of the later night; of runs without a label, the day on which they began.
    against : str, optional
        Label of the earlier night; "previous" for the last one before, of each observer and
        experiment.
    confidence : float, optional
        Coverage of each interval, in (0, 1).

    Raises
    ------
    InputError
        Nothing can be read.
    UnknownNameError
        There is no such night.

    Examples
    --------
    >>> compare_nights("registry", "2026-11-24").rows  # doctest: +SKIP
    """
    if is_registry(source):
        return compare_runs(
            index_runs(read_index(source).runs), night, against, confidence
        )
    with Store(source, create=False) as store:
        return compare_runs(list(_store_runs(store)), night, against, confidence)


def compare_runs(
    runs: Sequence[NightRun],
    night: str,
    against: str = PREVIOUS,
    confidence: float = 0.95,
) -> NightComparison:
    """Compare the main scores of two nights, as `compare_nights` does, of runs that were read.

    Parameters
    ----------
    runs : sequence of NightRun
        All runs of any nights.
    night, against, confidence
        As of `compare_nights`.
    """
    runs = sorted(runs, key=lambda run: run.started)
    nights = list(dict.fromkeys(run.night for run in runs))
    for name in {night, against} - {PREVIOUS}:
        if name not in nights:
            raise unknown_name("night", name, nights)
    groups: defaultdict[tuple[str, str], list[NightRun]] = defaultdict(list)
    for run in runs:
        groups[run.observer, run.experiment].append(run)
    rows: list[NightDifference] = []
    for group in groups.values():
        rows += _compare_group(group, night, against, confidence)
    adjusted = benjamini_hochberg([row.p for row in rows])
    corrected = (
        replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)
    )
    return NightComparison(night, against, tuple(corrected), confidence)


def index_runs(runs: Sequence[JsonMapping]) -> list[NightRun]:
    """List the runs of a registry's index by night; those taken back are left out."""
    return [
        NightRun(
            run["observer"],
            run["revision"][-8:],
            run["path"].split("/")[3],
            run["label"] or run["started"][:10],
            run["started"],
            run["failure"] or "no reason" if run["status"] == "failed" else "",
            {name: run[name] for name in _FACTS},
            partial(run.__getitem__, "board"),
        )
        for run in runs
        if run["retracted"] is None
    ]


def _store_runs(store: Store) -> Iterator[NightRun]:
    """Iterate over the finished runs of a store, which are scored when they are needed."""
    for records in grouped_runs(store):
        first = records[0]
        started = min(str(record.started) for record in records)
        origins = [asdict(origin) for record in records for origin in record.origins]
        served = {origin["served"].get("fingerprint", "") for origin in origins}
        digest = _experiment_digest(first)
        name = revision(first.observer_card, first.observer_digest, origins)
        yield NightRun(
            first.observer,
            first.observer_digest[:8],
            f"{slug(first.experiment)}-{digest[:8]}",
            first.label or started[:10],
            started,
            "",
            {"revision": name, "fingerprint": ", ".join(sorted(served - {""}))},
            partial(_score_board, records, store),
        )


def _experiment_digest(record: RunRecord) -> str:
    """Return the digest of a run's experiment, of all variants together."""
    if "variant" not in record.layout:
        return record.experiment_digest
    variants = record.layout["variants"]
    with page_alone(record.experiment_toml, record.experiment, variants) as page:
        return page.digest


def _score_board(records: Sequence[RunRecord], store: Store) -> list[JsonObject]:
    """Score a run of a store, and list the numbers on its board."""
    return [
        entry
        for result in load_records(records, store)
        for score in score_layers(result)
        for entry in board_entries(score, score.rows())
    ]


def _compare_group(
    runs: Sequence[NightRun], night: str, against: str, confidence: float
) -> Iterator[NightDifference]:
    """Compare the runs of one observer and experiment, in the order in which they began."""
    nothing = NightDifference(runs[0].observer, runs[0].experiment)
    latest = {run.card: run for run in runs if run.night == night}
    if not latest:
        remark = f"no run of this night; the last is of {runs[-1].night}"
        yield replace(nothing, remark=remark)
    for run in latest.values():
        if run.failure:
            yield replace(nothing, remark=f"failed: {run.failure}")
            continue
        others = [run for run in runs if run.night != night and not run.failure]
        earlier = [other for other in others if other.started <= run.started]
        candidates = (
            earlier
            if against == PREVIOUS
            else [other for other in others if other.night == against]
        )
        before = _earlier_run(run, candidates, latest)
        facts = "new" if before is None else _other_facts(run, before)
        row = replace(nothing, before=before.night if before else "", remark=facts)
        if not run.entries:
            yield _remarked(row, "no number")
        for key, entry in run.entries.items():
            metric, layer, measure = key
            row_of_score = replace(
                row, metric=metric, layer=layer, measure=measure, value=entry["value"]
            )
            if before is not None and key in before.entries:
                cards = (run.card, before.card)
                past = [other for other in earlier if other.card in cards]
                row_of_score = _with_difference(
                    row_of_score, entry, before.entries[key], confidence
                )
                spread = _spread(key, row_of_score.scale, past)
                row_of_score = replace(row_of_score, spread=spread)
            yield row_of_score


def _earlier_run(
    run: NightRun, candidates: Sequence[NightRun], latest: JsonMapping
) -> NightRun | None:
    """Find the last run with the same card, else the last with one that is gone tonight."""
    same = [other for other in candidates if other.card == run.card]
    gone = [other for other in candidates if other.card not in latest]
    return next(reversed(same or gone), None)


def _remarked(row: NightDifference, remark: str) -> NightDifference:
    """Add a remark to a row."""
    return replace(row, remark=", ".join(filter(None, [row.remark, remark])))


def _other_facts(run: NightRun, before: NightRun) -> str:
    """Name the facts in which a run differs from an earlier one."""
    names = [name for name in _FACTS if run.facts.get(name) != before.facts.get(name)]
    return "; ".join(f"another {name.replace('_', ' ')}" for name in names)


def _with_difference(
    row: NightDifference, entry: JsonMapping, before: JsonMapping, confidence: float
) -> NightDifference:
    """Add the difference of two scores: paired over their units, else from both intervals."""
    row = replace(
        row,
        value_before=before["value"],
        lower_is_better=bool(entry["lower_is_better"]),
    )
    if entry["sample"] and before["sample"]:
        sample = read_sample(entry["sample"])
        try:
            paired = compare_samples(sample, read_sample(before["sample"]), confidence)
        except InputError:
            # Other units were scored: the intervals of both nights remain.
            pass
        else:
            certain = 0.0 if abs(paired.mean) > _ALIKE else 1.0
            if paired.units > 1:
                return replace(
                    row,
                    difference=paired.mean,
                    low=paired.low,
                    high=paired.high,
                    scale=sample.scale,
                    pairs=f"{paired.units} {sample.population}",
                    p=certain if paired.p is None else paired.p,
                )
    difference = entry["value"] - before["value"]
    row = replace(row, difference=difference)
    down = float(np.hypot(reach(entry, "low"), reach(before, "high")))
    up = float(np.hypot(reach(entry, "high"), reach(before, "low")))
    if not np.isfinite([down, up]).all():
        return _remarked(row, "no interval")
    quantile = normal_quantile(confidence)
    p = interval_probabilities(
        [entry, before], np.array([[0.0, difference], [-difference, 0.0]])
    )
    return replace(
        row,
        low=difference - quantile * down,
        high=difference + quantile * up,
        p=float(p[0, 1]),
    )


def _spread(
    key: tuple[str, str, str], scale: Scale, runs: Sequence[NightRun]
) -> float | None:
    """Compute three median absolute deviations of the last ten nights; None of fewer nights."""
    by_night = {run.night: run for run in runs}
    recent = [run for run in reversed(by_night.values()) if key in run.entries]
    if len(recent) < _NIGHTS:
        return None
    values = [run.entries[key]["value"] for run in recent[:_NIGHTS]]
    transformed = TRANSFORMS[scale][0](np.array(values, float))
    deviations = np.abs(transformed - np.median(transformed))
    return float(_DEVIATIONS * np.median(deviations))
