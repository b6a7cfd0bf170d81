"""A reply that no file can hold ends no run, neither the one that got it nor those after it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from odd_server import Faults, OddServer
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main

MODEL = "simulated:watson-malo"


def test_half_a_character_in_a_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = write_questions(tmp_path), tmp_path / "results"
    with OddServer(
        pp.load_observer(MODEL), faults=Faults(surrogate=0.3, odd_usage=0.2, seed=1)
    ) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        command = [
            "run",
            str(path),
            "--observer",
            f"openai:{MODEL}",
            "--output",
            str(folder),
        ]
        assert main(command) == 0
        assert server.counts["surrogate"] and server.counts["odd_usage"]
        request_count = server.counts.total() - server.counts["listed"]
        assert main(command) == 0
        assert server.counts.total() - server.counts["listed"] == request_count
    result = trials(pp.load_results(folder / "runs.sqlite")[0])
    assert any(str(text).endswith("\\ud800") for text in result["text"].values)
