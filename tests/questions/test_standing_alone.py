"""An observer that fails is a row that says why: the others go on, and so do their table and JSON."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from small_questions import Seeing, write_questions

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, PsyprobeError
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]

TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "look"}}
#: Names in the list of the server.
LISTED = [f"good-{i}" for i in range(10)] + ["cut-0", "tools-0"]
#: Response of a server for a model of each name: message and finish reason.
REPLIES: dict[str, tuple[dict[str, Any], str]] = {
    "good": ({"content": "Yes"}, "stop"),
    "cut": ({"content": "The picture that you sent me"}, "length"),
    "tools": ({"content": None, "tool_calls": [TOOL_CALL]}, "tool_calls"),
    "empty": ({"content": ""}, "stop"),
    "rude": ({"content": "Guess yourself, dear friend of the arts."}, "stop"),
    "german": ({"content": "Ja, es gibt ein Muster."}, "stop"),
}


class Models(ThreadingHTTPServer):
    """A server of many models, each of which always says the same; it counts their questions."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.counts: Counter[str] = Counter()

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that hangs up."""


class Handler(BaseHTTPRequestHandler):
    """Speaks as much of the protocol as is needed."""

    server: Models

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": name} for name in LISTED]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = request["model"]
        self.server.counts[model] += 1
        reply = REPLIES.get(model.split("-")[0])
        if reply is None:
            return self._send(404, {"error": {"message": "no such model"}})
        message, finish = reply
        choice = {"message": message, "finish_reason": finish}
        return self._send(200, {"model": model, "choices": [choice]})

    def _send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    with Models() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        host, port = server.server_address[:2]
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{host!s}:{port}/v1")
        yield server
        server.shutdown()
        thread.join(timeout=10)


FEW = (("text = 4", "text = 1"), ("p_yes = 2", "p_yes = 1"))


def run(folder: Path, *observers: str) -> list[str]:
    page = write_questions(folder, *FEW)
    return ["run", str(page), "--output", str(folder / "results"), "--observer"] + [
        f"openai:{observer}" for observer in observers
    ]


GOOD = LISTED[:10]
#: The failing ones stand at the beginning, in the middle and before the end.
THIRTEEN = ["cut-0", *GOOD[:5], "unknown", *GOOD[5:9], "tools-0", GOOD[9]]


def test_three_of_thirteen_fail_and_ten_are_scored(
    models: Models, tmp_path: Path, capsys: Output
) -> None:
    command = run(tmp_path, *THIRTEEN)
    assert main([*command, "--json"]) == 4
    out, err = capsys.readouterr()
    reports = json.loads(out)
    assert [report["observer"] for report in reports] == [
        f"openai:{name}" for name in THIRTEEN
    ]
    failed = {r["observer"]: r["failed"] for r in reports if "failed" in r}
    assert list(failed) == ["openai:cut-0", "openai:unknown", "openai:tools-0"]
    assert "cut off" in failed["openai:cut-0"]
    assert "knows no such model" in failed["openai:unknown"]
    for report in reports:
        assert bool(report["scores"]) == ("failed" not in report)
        assert all(Path(path).is_file() for path in report["files"].values())
    for name in failed:
        assert f"words with {name}" in err
    # The same command asks only what is missing, and which model answers to a name of the list.
    counts = models.counts.copy()
    assert main(command) == 4
    table = capsys.readouterr().out
    asked_again = models.counts - counts
    assert {name: asked_again[name] for name in GOOD} == dict.fromkeys(GOOD, 1)
    rows = [line for line in table.splitlines() if "failed:" in line]
    assert [row.split()[0] for row in rows] == list(failed)
    assert "cut off" in rows[0]
    assert all(f"openai:{name} " in table for name in GOOD)


def test_a_store_with_runs_that_cannot_be_scored_is_scored_drawn_and_reported(
    models: Models, tmp_path: Path, capsys: Output
) -> None:
    store = tmp_path / "runs.sqlite"
    page = write_questions(tmp_path, *FEW)
    for name in ("cut", "good", "german"):
        pp.run(page, f"openai:{name}", store=store, progress=False)
    assert main(["score", str(store)]) == 4
    table = capsys.readouterr().out
    assert [line.split()[0] for line in table.splitlines() if "failed: " in line] == [
        "openai:cut",
        "openai:german",
    ]
    assert "openai:good" in table
    assert main(["score", str(store), "--json"]) == 4
    scores = json.loads(capsys.readouterr().out)
    assert ["failure" in score for score in scores] == [False, True, True]
    assert main(["score", str(store), "--format", "csv"]) == 4
    assert "openai:german" in capsys.readouterr().out
    figure = tmp_path / "figure.png"
    assert main(["plot", str(store), "-o", str(figure)]) == 4
    out, err = capsys.readouterr()
    assert "1 result" in out and figure.is_file()
    assert err.count("left out") == 2
    report = tmp_path / "report.html"
    assert main(["report", str(store), "-o", str(report)]) == 0
    assert "openai:cut" in report.read_text(encoding="utf-8")


def test_where_all_fail_the_code_is_that_of_one_that_fails(
    models: Models, tmp_path: Path, capsys: Output
) -> None:
    assert main(run(tmp_path, "unknown")) == 2
    assert main(run(tmp_path, "unknown", "cut")) == 2
    out, err = capsys.readouterr()
    assert out.count("failed: ") == 2 and "Traceback" not in err
    assert main([*run(tmp_path, "unknown", "nowhere:at-all", "good"), "--debug"]) == 4
    out, err = capsys.readouterr()
    assert "nowhere:at-all" in out and err.count("Traceback") >= 2


def test_a_stored_run_that_cannot_be_read_is_left_out(
    tmp_path: Path, capsys: Output
) -> None:
    store = tmp_path / "runs.sqlite"
    page = write_questions(tmp_path)
    for name in ("flat", "watson-malo"):
        pp.run(page, f"simulated:{name}", store=store, progress=False)
    with Store(store) as opened:
        last_run = opened.runs()[-1]
        key = last_run.outcome["trials"][0]["key"]
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DELETE FROM answer WHERE question = ?", [key])
        connection.commit()
    with pytest.warns(ConditionWarning, match="watson-malo is left out"):
        (result,) = pp.load_results(store)
    assert result.attrs["observer"] == "simulated:flat"
    assert main(["score", str(store)]) == 4
    assert "failed: " in capsys.readouterr().out
    assert main(["report", str(store), "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "not read: " in page and "simulated:watson-malo" in page


def test_a_run_that_was_given_up_is_listed_with_its_reason(
    models: Models, tmp_path: Path, capsys: Output
) -> None:
    page = write_questions(tmp_path, ("text = 4", "text = 40"))
    store = tmp_path / "runs.sqlite"
    with pytest.raises(PsyprobeError, match="none of its first 30 replies"):
        pp.run(page, "openai:cut-0", store=store, progress=False)
    with pytest.raises(PsyprobeError, match="none of its first 30 replies"):
        pp.load_results(store)
    pp.run(page, "simulated:flat", store=store, progress=False)
    capsys.readouterr()
    assert main(["score", str(store)]) == 4
    (row,) = [
        line for line in capsys.readouterr().out.splitlines() if "failed: " in line
    ]
    assert row.startswith("openai:cut-0") and "none of its first 30 replies" in row
    report = tmp_path / "report.html"
    assert main(["report", str(store), "-o", str(report)]) == 0
    text = report.read_text(encoding="utf-8")
    assert "none of its first 30 replies" in text and "not finished" not in text
    # Work that goes on is not given up.
    with Store(store) as opened:
        (given_up, _) = opened.runs()
        assert opened.begin_run(given_up).given_up == ""
        assert opened.runs()[0].outcome == {}


@pytest.mark.parametrize(
    ("model", "cause", "remedy"),
    [
        ("cut-0", "cut off (finish reason 'length'", "max_tokens"),
        ("tools-0", "tool calls (finish reason 'tool_calls'", "no tools"),
        ("empty", "empty (finish reason 'stop'", "psyprobe ask"),
        ("german", "in another language than English", "yes and no"),
        ("rude", "without any answer", "suit the probe"),
    ],
)
def test_an_observer_of_which_nothing_can_be_read_is_asked_thirty_times(
    models: Models, tmp_path: Path, model: str, cause: str, remedy: str
) -> None:
    page = write_questions(tmp_path, ("text = 4", "text = 40"))
    store = tmp_path / "runs.sqlite"
    with pytest.raises(PsyprobeError) as failure:
        pp.run(page, f"openai:{model}", store=store, progress=False)
    message = str(failure.value)
    assert "none of its first 30 replies can be read" in message
    assert cause in message and remedy in message
    # Some are under way as the thirtieth comes; what was answered is stored.
    assert 30 <= models.counts[model] <= 64
    with Store(store) as opened:
        assert len(list(opened.all_answers())) >= 30


def test_who_hedges_refuses_or_answers_once_is_asked_to_the_end(tmp_path: Path) -> None:
    page = write_questions(tmp_path)
    for reply in ("Maybe", "I cannot view images."):
        result = pp.run(page, Seeing(logprobs=False, reply=reply), progress=False)
        assert pp.analysis.trials(result).sizes["trial"] > 50
    # The first token decides, whatever stands after it.
    pp.run(page, Seeing(reply="Thank you"), progress=False)
