"""A probe of another package: its results are scored, tabled, ranked, drawn and written with no
edit in ours."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import numpy as np
import pytest
import xarray as xr
from detection_results import simulated_result
from matplotlib.axes import Axes
from matplotlib.figure import Figure

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import psyprobe as pp
from psyprobe.analysis import score_table
from psyprobe.analysis.score import OBSERVER, PIXELS, Entry, Metric, Row, frame
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.probes import detection
from psyprobe.probes.results import score_layers, scoreboard
from psyprobe.running.task import StimulusAxis, Task, with_task

OFFSETS = Task(("left", "right"), "correct", StimulusAxis("offset", "arcsec", "Offset"))
VERNIER = Metric(
    "vernier", "Vernier threshold (arcsec)", more_is_better=False, digits=1
)


@dataclass(frozen=True)
class VernierScore:
    observer: str
    threshold: float
    pixels: float
    experiment: str = "vernier"
    layer: str = ""
    measure: str = ""
    random_weights: bool = False
    confidence: float = 0.95

    def rows(self) -> list[Row]:
        return [
            Row(
                "vernier offsets",
                responder,
                label,
                {"threshold": f"{value:.1f}"},
                {"responder": responder, "threshold_arcsec": value},
                {VERNIER: Entry(value)},
                notes,
            )
            for responder, label, value, notes in (
                (OBSERVER, "", self.threshold, ["beyond the pixel grid"]),
                (PIXELS, PIXELS, self.pixels, []),
            )
        ]

    def notes(self) -> list[str]:
        return ["threshold: arcsec, smaller is better."]

    def to_frame(self) -> Any:
        return frame(self)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def score(result: xr.Dataset, **options: Any) -> tuple[VernierScore, ...]:
    return (
        VernierScore(result.attrs["observer"], float(result["offset"].min()), 60.0),
    )


def plot(
    results: list[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: Any = None,
    **options: Any,
) -> Axes:
    ax = ax or (figure or plt.figure()).add_subplot()
    for result in results:
        ax.plot(result["offset"])
    ax.set_title("offsets")
    return ax


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> xr.Dataset:
    module = ModuleType("another_package_probe")
    module.score, module.plot = score, plot  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "another_package_probe", module)
    entry_points = [EntryPoint("vernier", "another_package_probe", "psyprobe.probes")]
    monkeypatch.setattr(
        "psyprobe.probes.entry_points",
        lambda group: entry_points if group == "psyprobe.probes" else [],
    )
    attributes = {"probe": "vernier", "experiment": "vernier", "observer": "lab:eye"}
    return with_task(
        xr.Dataset({"offset": ("trial", np.array([9.0, 5.5, 7.0]))}, attrs=attributes),
        OFFSETS,
    )


def test_it_is_scored_and_tabled_beside_others(result: xr.Dataset) -> None:
    score = pp.score(result)
    assert score.threshold == 5.5
    text = score_table(
        [score, pp.score(simulated_result(lambda x, c: 0.2 * c + 0 * x), resamples=100)]
    )
    assert (
        "vernier offsets" in text
        and "lab:eye" in text
        and "gabor_achromatic (angular)" in text
    )
    assert (
        "lab:eye: beyond the pixel grid." in text
        and "arcsec, smaller is better." in text
    )
    rows = list(csv.DictReader(io.StringIO(score_table(score, "csv"))))
    assert [row["threshold_arcsec"] for row in rows] == ["5.5", "60.0"]
    assert json.loads(score_table(score, "json"))[0]["threshold"] == 5.5
    assert score.to_frame()["threshold_arcsec"].tolist() == [5.5, 60.0]


def test_it_stands_on_the_scoreboard(result: xr.Dataset) -> None:
    blunt = result.assign(offset=result["offset"] * 100).assign_attrs(
        observer="lab:blunt"
    )
    board = scoreboard(
        [blunt, result, simulated_result(lambda x, c: 0.2 * c + 0 * x)], sort="vernier"
    )
    assert [row.name for row in board.rows][:3] == ["lab:eye", PIXELS, "lab:blunt"]
    (test,) = (test for test in board.tests if test.name == "vernier")
    assert {row.name: row.entries[test].flags for row in board.rows[:3]} == {
        "lab:eye": "",
        PIXELS: "",
        "lab:blunt": "p",
    }
    assert "5.5" in board.table() and "vernier" in board.table("latex")


def test_it_is_drawn_alone_and_in_one_figure_with_others(result: xr.Dataset) -> None:
    assert pp.plot(result).get_title() == "offsets"
    figure = pp.plot([simulated_result(lambda x, c: 0.2 * c + 0 * x), result])
    assert isinstance(figure, Figure)
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == [
        "simulated",
        "offsets",
    ]
    figure.canvas.draw()
    with pytest.raises(InputError, match="ax holds one panel"):
        pp.plot(
            [simulated_result(lambda x, c: 0.2 * c + 0 * x), result],
            Figure().add_subplot(),
        )
    plt.close("all")


def test_commands_take_it(
    result: xr.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = tmp_path / "vernier.nc", tmp_path / "vernier.png"
    result.to_netcdf(path, engine="scipy")
    assert main(["score", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["threshold"] == 5.5
    assert main(["score", str(path), "--scoreboard"]) == 0
    assert "lab:eye" in capsys.readouterr().out
    assert main(["plot", str(path), "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_one_that_does_not_say_how_is_told_apart(
    result: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules["another_package_probe"], "plot")
    with pytest.raises(
        InputError, match="probe 'vernier' does not say how its results are drawn"
    ):
        pp.plot(result)
    monkeypatch.setattr(
        sys.modules["another_package_probe"], "score", lambda result: ()
    )
    assert score_layers(result) == ()
    with pytest.raises(InputError, match="no human reference"):
        pp.score(result)
    assert "no human reference" in score_table(score_layers(result))


def test_one_that_does_not_say_what_it_asks_is_refused_before_it_asks(
    result: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["another_package_probe"]
    for name in ("ABILITIES", "SECTIONS", "plan"):
        monkeypatch.setattr(module, name, getattr(detection, name), raising=False)
    page = load_experiment("gabor_achromatic").with_settings({"probe": "vernier"})
    with pytest.raises(
        InputError, match="probe 'vernier' does not say what it asks; give it a"
    ):
        pp.run(page, "pixels", progress=False)
