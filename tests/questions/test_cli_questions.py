"""Asking in words from the command line: a question, a plan, a run, its score and plot; one line an
error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_questions import write_questions

from psyprobe.cli import main

Output = pytest.CaptureFixture[str]
SIMULATED = "simulated:watson-malo"


def succeed(capsys: Output, *arguments: object) -> str:
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return printed.out


def fail(capsys: Output, *arguments: object) -> str:
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    printed = capsys.readouterr()
    assert code == 2 and printed.out == ""
    assert printed.err.startswith("psyprobe") and printed.err.count("\n") == 1
    return printed.err


def test_ask_one_question(capsys: Output, tmp_path: Path) -> None:
    ask = ["ask", "Is there a pattern visible in the image?", "--observer", SIMULATED]
    assert succeed(capsys, *ask, "--stimulus", "noise_hernandez2025") == "Yes.\n"
    faint = [
        "--stimulus",
        "noise_hernandez2025",
        "--set",
        "contrast=0.001",
        "--display",
        "hernandez2025",
        "--json",
    ]
    answer = json.loads(succeed(capsys, *ask, *faint))
    assert (
        answer["reading"] == "no"
        and answer["p_yes"] < 0.1
        and answer["text"].startswith("No")
    )
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(60, 190, (64, 64), np.uint8)).save(
        tmp_path / "noise.png"
    )
    assert (
        json.loads(succeed(capsys, *ask, "--image", tmp_path / "noise.png", "--json"))[
            "p_yes"
        ]
        is not None
    )
    main([*ask, "--stimulus", "noise_hernandez2025"])
    assert "read as yes; P(yes) = " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "?", "--observer", "pixels"], "does not answer in words"),
        (["ask", " ", "--observer", SIMULATED], "the question is empty"),
        (
            ["ask", "?", "--observer", SIMULATED, "--set", "contrast=1"],
            "add --stimulus",
        ),
        (
            ["ask", "?", "--observer", SIMULATED, "--image", "no.png"],
            "no.png cannot be read: No such file",
        ),
        (
            ["ask", "?", "--observer", SIMULATED, "--image", "text.png"],
            "text.png is no image",
        ),
        (
            ["ask", "?", "--observer", SIMULATED, "--temperature", "3"],
            "temperature is 3",
        ),
        (
            ["ask", "?", "--observer", SIMULATED, "--observer-option", "gess=0.1"],
            "gess",
        ),
        (
            ["ask", "?", "--observer", SIMULATED, "--observer-option", "guess"],
            "NAME=VALUE",
        ),
        (["run", "hernandez2025"], "name an observer that answers"),
        (
            ["run", "hernandez2025", "--observer", "pixels"],
            "needs an observer with the ability 'answer'",
        ),
        (
            ["run", "hernandez2025", "--observer", "simulated:watson-mallo"],
            "did you mean 'watson-malo'?",
        ),
        (
            ["run", "hernandez2025", "--observer", SIMULATED, "--variants", "seed=1,2"],
            "takes no variants",
        ),
        (
            ["run", "hernandez2025", "--observer", SIMULATED, "--score-only"],
            "takes no score_only",
        ),
        (
            ["run", "gabor_achromatic", "--observer", SIMULATED],
            "needs an observer with the ability 'features'",
        ),
    ],
)
def test_bad_input_is_one_line(
    capsys: Output,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.png").write_text("no image")
    assert message in fail(capsys, *arguments)


def test_plan_run_score_plot(capsys: Output, tmp_path: Path) -> None:
    path, folder = (
        write_questions(tmp_path, ("[2, 4]", "[1, 2, 4]")),
        tmp_path / "results",
    )
    run = [
        "run",
        path,
        "--observer",
        SIMULATED,
        "--observer-option",
        "deg=2",
        "logit_sd=0.3",
        "--output",
        folder,
    ]
    (planned,) = json.loads(succeed(capsys, *run, "--plan", "--json"))
    assert not folder.exists() and planned["answered"] == 0
    out = succeed(capsys, *run)
    assert "words (P(yes)" in out and SIMULATED in out
    (stem,) = {file.stem for file in folder.iterdir()} - {"runs"}
    assert stem.startswith("words-simulated-watson-malo-")
    assert {file.suffix for file in folder.iterdir()} == {
        ".nc",
        ".json",
        ".png",
        ".sqlite",
    }
    (after,) = json.loads(succeed(capsys, *run, "--plan", "--json"))
    assert after["answered"] == after["questions"] == planned["questions"]
    assert after["measured"] and not planned["measured"]
    from_store = succeed(capsys, "score", folder / "runs.sqlite", "--json")
    from_file = succeed(capsys, "score", folder / f"{stem}.nc", "--json")
    assert from_store == from_file
    succeed(capsys, "plot", folder / "runs.sqlite", "-o", tmp_path / "csf.png")
    assert (tmp_path / "csf.png").stat().st_size > 1000


def test_lists_name_it_all(capsys: Output) -> None:
    assert "hernandez2025_published" in succeed(capsys, "list", "experiments")
    assert "two_interval" in succeed(capsys, "list", "probes")
