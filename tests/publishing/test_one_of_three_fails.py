"""Of three observers the middle one fails: the others are as if alone, and the same command ends it."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any, TypeAlias

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from local_server import Handler, listed, local

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.files.output import json_text

Output: TypeAlias = pytest.CaptureFixture[str]

PAGE = """
title = "A small experiment in words"
source = "psyprobe's own tests"
probe = "yes_no"
differences = ["it is small"]
[stimulus]
kind = "gabor"
parameters = { frequency = 2, contrast = 0.1, luminance = 40, ppd = 16, size = 32, radius = 0.4 }
[human]
model = "watson_malo_csf"
[levels]
frequency = { values = [1, 2] }
contrast = { values = [0.01, 0.1] }
[asking]
prompts = ["Do you see a pattern? Answer yes or no."]
readout = "text"
repeats = { text = 2, p_yes = 1 }
seed = 3
[display]
peak = 185.3
"""
OBSERVERS = """
[[observers]]
name = "simulated:watson-malo"
[[observers]]
name = "openai:m3"
base_url = "{address}"
retries = 0
timeout = {timeout}
concurrency = 1
[[observers]]
name = "simulated:flat"
"""
NAMES = ("simulated:watson-malo", "openai:m3", "simulated:flat")


class Faulty(Handler):
    """Fails as its server says, after as many answers as this gives."""

    def do_POST(self) -> None:
        fault = getattr(self.server, "fault", "")
        questions = [text for text in self.server.requests if text != "models"]
        if not fault or len(questions) < self.server.answers:
            super().do_POST()
        elif fault == "hangs":
            self.server.released.wait(30)
        elif fault == "dies":
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._send(int(fault), {"error": {"message": "no"}})


def run_three(
    folder: Path, address: str, capsys: Output, timeout: float = 60.0
) -> tuple[int, list[Any]]:
    """Run the page with three observers, and read the events of the pairs and of the end."""
    rows = OBSERVERS.format(address=address, timeout=timeout)
    (folder / "observers.toml").write_text(rows, encoding="utf-8")
    (folder / "page.toml").write_text(PAGE, encoding="utf-8")
    words = ["run", str(folder / "page.toml"), "--jsonl", "--output", str(folder)]
    code = main([*words, "--observer", str(folder / "observers.toml")])
    start, *events = map(json.loads, capsys.readouterr().out.splitlines())
    assert start["pairs"] == 3
    return code, events


def scores_of(store: Path) -> dict[str, str]:
    """The scores of a store by observer, as JSON text."""
    results = pp.load_results(store)
    return {
        result.attrs["observer"]: json_text(pp.score(result).to_dict())
        for result in results
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The scores of the first and the third observer, each run alone."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "page.toml").write_text(PAGE, encoding="utf-8")
    for name in NAMES[::2]:
        pp.run(folder / "page.toml", name, store=folder / "runs.sqlite", progress=False)
    return scores_of(folder / "runs.sqlite")


@pytest.mark.parametrize(
    ("fault", "kind", "answers"),
    [
        ("down", "unreachable", 0),
        ("401", "refused", 0),
        ("404", "not_found", 0),
        ("hangs", "timeout", 0),
        ("dies", "unreachable", 5),
    ],
)
def test_the_others_are_as_if_alone_and_the_same_command_ends_it(
    alone: dict[str, str],
    fault: str,
    kind: str,
    answers: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    # Figures take half of the time.
    monkeypatch.setattr("psyprobe.cli.running.write_result", lambda *_: {})
    monkeypatch.setattr("local_server.Handler", Faulty)
    with local("Yes", listed("m3")) as server:
        server.fault, server.answers = fault, answers
        server.released = threading.Event()
        nowhere = "http://127.0.0.1:9/v1"
        address = nowhere if fault == "down" else server.url
        # A loaded machine may take long to answer; where nobody answers, waiting is in vain.
        timeout = 0.3 if fault == "hangs" else 60.0
        code, (*pairs, end) = run_three(tmp_path, address, capsys, timeout)
        server.released.set()
        assert code == end["exit"] == 4
        assert [pair["status"] for pair in pairs] == ["done", "failed", "done"]
        names = [pair["observer"].partition("?")[0] for pair in pairs]
        assert names == [*NAMES]
        assert pairs[1]["failure"]["kind"] == kind
        assert scores_of(tmp_path / "runs.sqlite") == alone
        server.fault = ""
        code, (*pairs, end) = run_three(tmp_path, server.url, capsys)
    assert code == end["exit"] == 0 and end["done"] == 3
    assert [pair["asked"] for pair in pairs[::2]] == [0, 0]
    assert pairs[1]["from_store"] == answers and pairs[1]["asked"] > 0
    assert {*scores_of(tmp_path / "runs.sqlite")} == {*NAMES}
