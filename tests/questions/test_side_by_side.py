"""Answers of an encoder by a decision stage stand beside its angles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_decided import right_half, write

import psyprobe as pp
from psyprobe.analysis.efficiency.scores import Efficiency, mean_entries
from psyprobe.analysis.score import score_table
from psyprobe.probes.results import all_scores, scoreboard

ANGLES = """
title = "Gabors"
probe = "detection"
[stimulus]
kind = "gabor"
parameters = { frequency = 4, contrast = 0.1, radius = 0.25, luminance = 100, size = 32, ppd = 16 }
[levels]
frequency = { values = [1, 2, 4] }
contrast = { from = 0.001, to = 1, n = 5, scale = "log" }
[human]
model = "castle_csf"
[score]
multiplier = { from = 0.5, to = 2, n = 3, scale = "log" }
[display]
peak = 400
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    encoder = pp.observer(right_half, name="right half", version="1")
    folder = tmp_path_factory.mktemp("pages")
    small = folder / "small.toml"
    small.write_text(ANGLES, encoding="utf-8")
    decided = pp.decide(encoder, stage="template", pairs=16)
    noisy = write(folder, ("repeats = 40", "repeats = 20"))
    return [pp.run(small, encoder), pp.run(noisy, decided)]


def test_a_scoreboard_has_both_in_one_row(results: list[Any]) -> None:
    board = scoreboard(results)
    (row,) = (row for row in board.rows if row.kind == "observer")
    assert row.name == "right half"
    names = {test.metric.name for test in row.entries}
    assert names == {"alignment", "efficiency", "threshold"}
    assert "tells nothing of sensitivity" in " ".join(str(board).split())
    alone = scoreboard(results[1:])
    assert [row.name for row in alone.rows] == ["decided:right half"]


def test_scores_end_with_a_table_of_both(results: list[Any]) -> None:
    scores = all_scores(results)
    text = score_table(scores)
    assert "S_ac and decisions side by side" in text
    pair = scores[-1].to_frame().to_dict("records")[0]
    assert 0 < pair["efficiency"] < 1
    assert pair["observer"] == "right half"
    alone = score_table(all_scores(results[:1]))
    assert "side by side" not in alone


def test_a_report_has_both_in_one_row(results: list[Any], tmp_path: Path) -> None:
    page = pp.report(results, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "noisy efficiency" in page and "noisy threshold" in page


def test_the_example_of_the_measurements_prints_both(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(pp.__file__).parents[1] / "benchmarks" / "README.md"
    text = page.read_text(encoding="utf-8")
    code = text.split("```python\nimport psyprobe as pp\nfrom scipy.stats", 1)[1]
    code = "import psyprobe as pp\nfrom scipy.stats" + code.split("```")[0]
    for old, new in (
        ("packaged:efficientnet_lite2", "pixels"),
        ('"asking.repeats": 200', '"asking.repeats": 2'),
        ("pairs=128", 'pairs=16, stage="ideal"'),
        ("range(8)", "range(2)"),
    ):
        assert old in code
        code = code.replace(old, new)
    exec(compile(code, "README.md", "exec"), {})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], line[1]) for line in lines] == [("1", "0.05"), ("16", "0.02")]


def test_means_over_levels_are_geometric_and_what_is_missing_is_told() -> None:
    scores = [
        Efficiency(1, 1e-6, 0.01, 0.01, 0.005, 0.02, 1, 0.5, 2),
        Efficiency(2, 1e-6, 0.01, 0.04, 0.02, 0.08, 1, 0.5, 2),
        Efficiency(4, 1e-6, 0.01, None, None, None, None, None, None),
    ]
    efficiency, threshold = mean_entries(scores, limited=True).values()
    assert efficiency.value == pytest.approx(0.02)
    # Two levels with an interval of a factor of 2 on both sides.
    assert efficiency.high == pytest.approx(0.02 * 2 ** (2**0.5 / 2))
    assert threshold.value == pytest.approx(0.01 / 0.02**0.5)
    assert efficiency.flags == "l"
    assert efficiency.note.startswith("2 of 3 levels")
