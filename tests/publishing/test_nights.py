"""Nights beside each other: no alarm by chance, planted changes named, stores and registries alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kinds_of_results import page_of

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import UnknownNameError
from psyprobe.reporting.publishing.nights import (
    NightComparison,
    NightRun,
    compare_runs,
)
from psyprobe.reporting.publishing.publish import Terms, publish

Output = pytest.CaptureFixture[str]


def night_run(
    observer: str, night: int, entry: dict[str, Any], **facts: Any
) -> NightRun:
    """A run of an observer on a night, with one number on its board."""
    date = f"2026-{1 + night // 28:02}-{1 + night % 28:02}"
    board = [
        {"responder": "observer", "metric": "m", "layer": "", "measure": "", **entry}
    ]
    values = {"card": "89abcdef", "failure": "", "facts": {}, **facts}
    return NightRun(
        observer=observer,
        experiment="area-01234567",
        night=date,
        started=f"{date}T03:17:05+00:00",
        read_board=lambda: board,
        **values,
    )


def units(values: Any, *, lower_is_better: bool = False) -> dict[str, Any]:
    """A number that is the mean of eight variants."""
    sample = {
        "population": "variants",
        "keys": list("abcdefgh"),
        "values": list(values),
        "scale": "linear",
        "clusters": [],
    }
    ends = {"low": None, "high": None, "confidence": 0.95}
    value = float(np.mean(values))
    return {
        "value": value,
        "sample": sample,
        "lower_is_better": lower_is_better,
        **ends,
    }


def interval(value: float, error: float) -> dict[str, Any]:
    """A number with an interval and without units."""
    ends = {"low": value - 1.96 * error, "high": value + 1.96 * error}
    return {
        "value": value,
        "sample": None,
        "lower_is_better": True,
        "confidence": 0.95,
        **ends,
    }


def errors_of(run: NightRun) -> Any:
    """The board of a run, its number an error."""
    return lambda: [{**run.read_board()[0], "lower_is_better": True}]


def compare_last(runs: list[NightRun]) -> NightComparison:
    """Compare the last night with the one before."""
    return compare_runs(runs, runs[-1].night)


def test_nights_without_a_change_alarm_in_at_most_one_of_twenty() -> None:
    draw = np.random.default_rng(35)
    nights: list[list[NightRun]] = []
    alarms = 0
    for night in range(91):
        measured = [
            night_run(
                f"a{k}", night, units(0.1 * np.arange(8) + draw.normal(0, 0.05, 8))
            )
            for k in range(4)
        ]
        measured += [
            night_run(f"b{k}", night, interval(draw.normal(0.5, 0.05), 0.05))
            for k in range(4)
        ]
        nights = [*nights[-11:], measured]
        if night > 10:
            runs = [run for night_runs in nights for run in night_runs]
            compared = compare_last(runs)
            alarms += any(row.changed for row in compared.rows)
            assert all(row.spread for row in compared.rows)
    # One of twenty would be 4 of these 80 nights; the level of 3 % makes 2.4 of them expected.
    assert alarms <= 2


def test_a_change_is_named_with_its_direction() -> None:
    draw = np.random.default_rng(1)
    base = draw.normal(0.5, 0.1, 8)
    runs = [
        night_run(
            f"o{k}",
            night,
            units(base + draw.normal(0, 0.01, 8) - 0.1 * (k * night == 3)),
        )
        for night in range(2)
        for k in range(10)
    ]
    rows = compare_last(runs).rows
    (row,) = (row for row in rows if row.changed)
    assert row.observer == "o3" and row.worse and row.pairs == "8 variants"
    assert row.low is not None and row.high is not None
    assert row.low < -0.1 < row.high < 0
    # Of an error the same difference is for the better.
    better = compare_last([replace(run, read_board=errors_of(run)) for run in runs])
    assert [row.verdict for row in better.rows if row.verdict] == ["better"]
    assert "1 changed, 1 of them for the worse" in compare_last(runs).table()


def test_a_difference_that_nights_have_anyway_is_no_change() -> None:
    values = [0.0, 0.3, 0.1, 0.4, 0.2, 0.5, 0.1, 0.3, 0.0, 0.4]
    last = night_run("o", 10, interval(0.1, 0.02))
    runs = [
        night_run("o", night, interval(value, 0.02))
        for night, value in enumerate(values)
    ]
    (row,) = compare_last([*runs, last]).rows
    # The median is 0.25, and the deviations from it 0.05 three times, 0.15 five and 0.25 times two.
    assert row.spread == pytest.approx(3 * 0.15)
    assert row.p_adjusted is not None and row.p_adjusted < 0.001
    assert not row.changed and row.verdict == "within the spread of nights"
    (row,) = compare_last([*runs[1:], last]).rows
    assert row.spread is None and row.changed


def test_the_interval_without_units_excludes_zero_where_its_p_says_so() -> None:
    for value in (0.50, 0.62, 0.71, 0.73, 0.9):
        runs = [
            night_run("o", 0, {**interval(0.5, 0.05), "high": 0.7}),
            night_run("o", 1, {**interval(value, 0.02), "low": value - 0.01}),
        ]
        (row,) = compare_last(runs).rows
        assert row.low is not None and row.high is not None and row.p is not None
        assert (row.low > 0) == (row.p < 0.05)
        assert row.changed == (value > 0.72) == (row.p < 0.03)
        # Zou and Donner's ends, by hand.
        assert row.low == pytest.approx(value - 0.5 - np.hypot(0.01, 0.2))
        assert row.high == pytest.approx(
            value - 0.5 + np.hypot(1.96 * 0.02, 1.96 * 0.05)
        )


def test_what_cannot_be_compared_is_said() -> None:
    number = units(np.arange(8.0))
    runs = [
        night_run("gone", 0, number),
        night_run(
            "other weights", 0, number, card="00000000", facts={"revision": "w-1"}
        ),
        night_run("down", 0, number),
        night_run("two", 0, number, card="00000000"),
        night_run("two", 0, units(np.arange(8.0) + 1)),
        night_run("new", 1, number),
        night_run("other weights", 1, number, facts={"revision": "w-2"}),
        night_run("down", 1, number, failure="no server answers"),
        night_run("two", 1, units(np.arange(8.0) + 1)),
        night_run("two", 1, number, card="00000000"),
        night_run("silent", 1, {**number, "value": None}),
    ]
    rows = [
        (row.observer, row.difference, row.remark) for row in compare_last(runs).rows
    ]
    assert set(rows) == {
        ("gone", None, "no run of this night; the last is of 2026-01-01"),
        ("other weights", 0.0, "another revision"),
        ("down", None, "failed: no server answers"),
        # Two observers of one name, told apart by their cards.
        ("two", 0.0, ""),
        ("new", None, "new"),
        ("silent", None, "new, no number"),
    }
    with pytest.raises(UnknownNameError, match="2026-01-02"):
        compare_runs(runs, "2026-01-02", "2026-01-03")


def coarse(images: Any) -> Any:
    """Every seventh pixel."""
    return images[:, ::7, ::7, 0]


def scrambled(images: Any) -> Any:
    """What does not grow with contrast."""
    return np.sin(300 * images[:, ::7, ::7, 0])


def test_a_store_and_its_registry_say_the_same(tmp_path: Path, capsys: Output) -> None:
    store, registry = tmp_path / "runs.sqlite", tmp_path / "registry"
    page = page_of("area", area=3, contrast=4).with_variants({"phase": [0, 90]})
    for label, function in (("a", coarse), ("b", scrambled)):
        observer = pp.observer(function, name="mine", version=label)
        pp.run(page, observer, store=store, score_only=True, label=label)
    publish(store, registry, Terms("Example Laboratory"))
    records = []
    for source in (store, registry):
        assert main(["compare", "--label", "b", "--json", str(source)]) == 0
        (record,) = json.loads(capsys.readouterr().out)["rows"]
        # Which psyprobe scored is known of what is published alone.
        records.append({**record, "remark": record["remark"].partition(";")[0]})
    first, second = records
    assert first == second
    assert first["difference"] and first["p"] and first["pairs"] == "2 variants"
    assert (first["before"], first["remark"]) == ("a", "another revision")


def test_the_command_ends_as_it_was_asked(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = [
        night_run("o", k, units(np.arange(8.0) + k + 0.01 * np.arange(8) ** k))
        for k in (0, 1)
    ]
    compared = compare_last(better)
    assert [row.verdict for row in compared.rows] == ["better"]
    monkeypatch.setattr(
        "psyprobe.reporting.publishing.nights.compare_nights", lambda *_: compared
    )
    words = ["compare", "runs.sqlite", "--label", "b"]
    assert main(words) == 0
    assert main([*words, "--fail-on", "worse"]) == 0
    assert main([*words, "--fail-on", "change"]) == 1
    assert main([*words, "--baseline", "pixels"]) == 2
    assert main(["compare", "runs.sqlite", "--fail-on", "change"]) == 2
    assert "--label NIGHT" in capsys.readouterr().err
