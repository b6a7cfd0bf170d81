"""Runs of one experiment and observer are named by what sets them apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import psyprobe as pp
from psyprobe.analysis.run_names import name_apart
from psyprobe.cli import main


def run_of(page: str = "", name: str = "pixels", **card: Any) -> xr.Dataset:
    about = {"experiment": "area", "observer": name, "experiment_toml": page}
    return xr.Dataset(attrs=about | {"observer_card": json.dumps(card)})


def names_of(*runs: xr.Dataset) -> list[str]:
    return [run.attrs["observer"] for run in name_apart(runs)]


def test_only_what_differs_is_named_and_only_where_names_are_shared() -> None:
    pages = [
        "display = { peak = 400, black = 0.1 }",
        "display = { peak = 200, black = 0.1 }",
    ]
    assert names_of(*map(run_of, pages)) == [
        "pixels, display.peak=400",
        "pixels, display.peak=200",
    ]
    assert names_of(run_of(pages[0]), run_of(pages[1], "contrast")) == [
        "pixels",
        "contrast",
    ]
    assert names_of(run_of(pages[0]), run_of(pages[0])) == ["pixels", "pixels"]


def test_decision_stages_are_named_by_layer_and_options() -> None:
    runs = [
        run_of(
            ability="answer",
            features=[layer],
            options={"encoder": "0" * 64, "pairs": n},
        )
        for layer, n in (("blocks.1", 64), ("embedding", 128))
    ]
    assert names_of(*runs) == [
        "pixels, layer=blocks.1, pairs=64",
        "pixels, layer=embedding, pairs=128",
    ]


def test_a_setting_of_one_run_alone_leaves_the_other_with_its_name() -> None:
    assert names_of(run_of("title = 'A'"), run_of("noise.density = 3e-6")) == [
        "pixels, title=A",
        "pixels, noise.density=3e-06",
    ]
    assert names_of(run_of(), run_of("noise.density = 3e-6")) == [
        "pixels",
        "pixels, noise.density=3e-06",
    ]


def test_score_of_a_store_tells_two_displays_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "runs.sqlite"
    for peak in (400, 300):
        pp.run(
            pp.load_experiment("area").with_settings({"display.peak": peak}),
            "pixels",
            store=store,
            score_only=True,
            progress=False,
            variants=None,
        )
    assert main(["score", str(store)]) == 0
    printed = capsys.readouterr().out
    assert "pixels, display.peak=400" in printed
    assert "pixels, display.peak=300" in printed
