"""The whole way on the command line: photographs, a server, a review by two, and the questions that
are left asked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from children import child
from full_disk import attack
from item_pages import write_page
from simulated_models import SpyModels, photographs

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.observers.chat.protocol import AnswerObserver
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.running import lease, origins
from psyprobe.tasks.review.worklist import worklist


def looking_chat(models: SpyModels) -> AnswerObserver:
    """One model that looks and talks."""

    def say(images: list[Any], prompt: str) -> str:
        observer = models.captioner if images else models.chat
        return observer.answer(images, prompt).text

    return pp.observer(say, name="simulated", bits=8)


def test_from_photographs_to_reviewed_questions_that_a_model_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    folder, models = tmp_path / "set", SpyModels()
    with SimulatedServer(looking_chat(models)) as server:
        command = [
            "mvp-build",
            str(photographs(tmp_path / "photographs")),
            "--chat",
            "openai:simulated",
        ]
        command += [
            "--chat-option",
            f"base_url={server.base_url}",
            "--output",
            str(folder),
        ]
        command += ["--segmenter-option", "scale=200", "min_size=100"]
        assert main([*command, "--plan"]) == 0
        assert (
            "4 photographs: up to 20 questions about images, 12 in words"
            in capsys.readouterr().out
        )
        assert not folder.exists()
        assert main(command) == 0
        assert (
            "4 of 4 photographs are image pairs with 28 questions"
            in capsys.readouterr().out
        )
        assert main([*command, "--json"]) == 0
        assert set(json.loads(capsys.readouterr().out)["states"].values()) == {
            "complete"
        }
        assert len(models.steps) == 32
    for person in ("ann", "bob"):
        reviewing = worklist(folder, "review", person)
        for task in reviewing.tasks:
            reviewing.journal.decide(
                task, "reject" if task.heading.startswith("Pair 1003") else "accept"
            )
    assert main(["review", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "ann and bob: 20 of 20 alike (100.0 %), Cohen's kappa 1.00" in out
    assert "  Yes or no: ann and bob: 8 of 8 alike" in out
    assert "  One image, multiple choice: ann and bob: 4 of 4 alike" in out
    assert "21 rows kept" in out
    bench_command = ["mvp-bench", str(folder / "kept.json"), "--images", str(folder)]
    assert main(bench_command) == 0
    assert "3 image pairs, 9 image files" in capsys.readouterr().out
    with SimulatedServer(
        pp.observer(lambda images, prompt: "Yes", name="yes", bits=8)
    ) as server:
        page = write_page(
            tmp_path / "kept.toml",
            "mvp_bench",
            folder,
            questions=["kept.json"],
            rotations=True,
        )
        command = [
            "run",
            str(page),
            "--observer",
            "openai:yes",
            "--observer-option",
            f"base_url={server.base_url}",
        ]
        assert main([*command, "--output", str(tmp_path / "out")]) == 0
    bench_command += [
        "--rotations",
        "--results",
        str(tmp_path / "out" / "runs.sqlite"),
        "--output",
        str(tmp_path / "out"),
    ]
    assert main(bench_command) == 0
    assert "openai:yes" in capsys.readouterr().out
    for path in (
        path
        for place in (folder, tmp_path / "out")
        for path in place.rglob("*")
        if path.is_file()
    ):
        assert b"sk-of-nobody" not in path.read_bytes()


def test_other_software_is_said_as_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    *_, second, first = sorted(photographs(tmp_path / "all", longest=64).iterdir())
    (tmp_path / "some").mkdir()
    command = [
        "mvp-build",
        str(tmp_path / "some"),
        "--chat",
        "openai:simulated",
        "--output",
        str(tmp_path / "set"),
    ]
    with SimulatedServer(looking_chat(SpyModels())) as server:
        for path, version in ((first, "2.0"), (second, "2.1")):
            shutil.copy(path, tmp_path / "some")
            versions = {"python": "3.12", "psyprobe": "0.1.0", "numpy": version}
            monkeypatch.setattr(
                origins, "software_versions", lambda versions_now=versions: versions_now
            )
            assert main([*command, "--chat-option", f"base_url={server.base_url}"]) == 0
    err = capsys.readouterr().err
    assert (
        "Note: openai:simulated: stored answers were computed with numpy 2.0, and new ones with 2.1"
        in err
    )
    assert "ConditionWarning" not in err


def test_killed_in_the_middle_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    folder, models = tmp_path / "set", SpyModels()
    with SimulatedServer(looking_chat(models), latency=0.05) as server:
        command = [
            "mvp-build",
            str(photographs(tmp_path / "photographs", longest=64)),
            "--chat",
            "openai:simulated",
        ]
        command += [
            "--chat-option",
            f"base_url={server.base_url}",
            "--output",
            str(folder),
        ]
        command += ["--segmenter-option", "scale=100", "min_size=50"]
        with child(
            [sys.executable, "-m", "psyprobe", *command], stderr=subprocess.DEVNULL
        ) as process:
            while len(models.steps) < 14 and process.poll() is None:
                time.sleep(0.01)
        assert not (folder / "questions.json").exists()
        assert main(command) == 0
    # Replies are written as they come, at the latest with the step: at most those of one step were
    # on their way.
    assert 32 <= len(models.steps) <= 36
    assert len((folder / "questions.json").read_text().splitlines()) == 28


def test_bad_requests_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "mvp-build",
        str(tmp_path),
        "--chat",
        "openai:x",
        "--output",
        str(tmp_path / "set"),
    ]
    for options, message in (
        (["--plan"], "has no images"),
        (["--segmenter", "sam"], "unknown segmenter 'sam'"),
        (["--inpainter-option", "radius=3"], "pull_push: takes no arguments"),
    ):
        assert main([*command, *options]) == 2
        output = capsys.readouterr().err
        assert message in output
        assert output.count("\n") == 1


def test_a_disk_that_is_full_and_a_folder_that_is_read_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setattr(lease, "_SILENCE", 0.3)
    photograph_folder = photographs(tmp_path / "photographs", longest=64)
    with SimulatedServer(looking_chat(SpyModels())) as server:
        command = ["mvp-build", str(photograph_folder), "--chat", "openai:simulated"]
        command += ["--chat-option", f"base_url={server.base_url}"]
        command += ["--segmenter-option", "scale=100", "min_size=50"]
        attack([*command, "--output", "{out}"], tmp_path, capsys, grows="items")
