"""A user finds public names at the top level by pressing Tab, and own files by FILE.py:NAME."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError, UnknownNameError

SUITE = """
title = "Two small experiments"
experiments = ["one.toml", "two.toml"]
"""

OBSERVERS = """
import psyprobe as pp


def mean_colour(images):
    return images.mean(axis=(1, 2))


ready = pp.observer(mean_colour, name="ready-made")
number = 3
"""

PROBE = """
from psyprobe.probes import load_probe

mine = load_probe("detection")
"""


def test_lists_name_what_loads() -> None:
    names = [row.name for row in pp.list_experiments()]
    assert {"gabor_achromatic", "cai2025"} <= set(names)
    assert pp.load_experiment("area").name == "area"
    stimuli = {row.name: row for row in pp.list_stimuli()}
    assert (
        stimuli["gabor_achromatic"].title and not stimuli["gabor_achromatic"].obstacle
    )
    assert pp.read_reply("Yes, there is.") == "yes"


def test_a_suite_runs_as_one(tmp_path: Path) -> None:
    page = write_experiment(tmp_path)
    text = page.read_text(encoding="utf-8")
    for name in ("one", "two"):
        other = text.replace("A small experiment", f"Experiment {name}")
        (tmp_path / f"{name}.toml").write_text(other, encoding="utf-8")
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE, encoding="utf-8")
    results = pp.run(suite, "pixels", store=tmp_path / "runs.sqlite", progress=False)
    assert [result.attrs["experiment"] for result in results] == ["one", "two"]
    alone = pp.run(page, "pixels", progress=False)
    for result in results:
        np.testing.assert_array_equal(
            result["response_angular"], alone["response_angular"]
        )


def test_an_observer_of_a_file_answers(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OBSERVERS, encoding="utf-8")
    images = np.full((2, 8, 8, 3), 0.5, "float32")
    observer = pp.load_observer(f"{file}:mean_colour")
    np.testing.assert_array_equal(
        observer.features(images)["output"], np.full((2, 3), 0.5)
    )
    assert pp.load_observer(f"{file}:ready").card.name == "ready-made"
    with pytest.raises(UnknownNameError, match="mean_colour"):
        pp.load_observer(f"{file}:mean_color")
    with pytest.raises(InputError, match="no torch module and no function"):
        pp.load_observer(f"{file}:number")


def test_an_edited_observer_of_a_file_is_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OBSERVERS, encoding="utf-8")
    before = pp.load_observer(f"{file}:mean_colour").card.digest
    file.write_text(OBSERVERS.replace("(1, 2)", "(2, 1)"), encoding="utf-8")
    assert pp.load_observer(f"{file}:mean_colour").card.digest != before


def test_a_probe_of_a_file_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROBE, encoding="utf-8")
    page = write_experiment(tmp_path)
    text = page.read_text(encoding="utf-8")
    page_of_file = tmp_path / "own.toml"
    assert 'probe = "detection"' in text
    page_of_file.write_text(
        text.replace('probe = "detection"', 'probe = "mine.py:mine"'), encoding="utf-8"
    )
    result = pp.run(page_of_file, "pixels", progress=False)
    np.testing.assert_array_equal(
        result["response_angular"],
        pp.run(page, "pixels", progress=False)["response_angular"],
    )


def test_a_store_runs_no_file_of_a_probe() -> None:
    from psyprobe.probes import load_probe

    with pytest.raises(InputError, match="run the experiment again"):
        load_probe("/nowhere/mine.py:mine")


def test_a_number_may_begin_with_a_point(tmp_path: Path) -> None:
    for text in (".5", "5e-1", "+0.5"):
        picture = tmp_path / "picture.npz"
        settings = ["--set", f"contrast={text}", "frequency=4."]
        assert main(["render", "gabor_achromatic", *settings, "-o", str(picture)]) == 0


def test_several_layers_score_as_one_table(tmp_path: Path) -> None:
    def features(images: np.ndarray) -> dict[str, np.ndarray]:
        return {"mean": images.mean(axis=(1, 2)), "spread": images.std(axis=(1, 2))}

    observer = pp.observer(features, name="two layers", features=("mean", "spread"))
    result = pp.run("area", observer, score_only=True, progress=False)
    scores = pp.score(result)
    assert [score.layer for score in scores] == ["mean", "spread"]
    assert "mean" in str(scores) and "spread" in str(scores)
    assert {"mean", "spread"} <= set(scores.to_frame()["layer"])
    assert pp.score(result, layer="spread").layer == "spread"
