"""Questions in files for Batch APIs: written once, read when they are there, over days; nothing
lost, nothing twice."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")
pytest.importorskip("uvicorn", reason="the server extra is not installed")

import xarray as xr
from odd_server import Behaviour, OddServer
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, InputError, PsyprobeError, UnfinishedError
from psyprobe.observers.batch_files import folder as batch_folder
from psyprobe.observers.batch_files import observer as batch_observer
from psyprobe.observers.batch_files.observer import BatchObserver
from psyprobe.observers.chat.prices import Price, Prices
from psyprobe.running.store import Store

#: The simulated server names no more than the name it is asked by, which each round tells.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* says no more of the model than this name"
)

Output = pytest.CaptureFixture[str]
MODEL = "simulated:watson-malo"
KEY = "sk-batch-secret-0123456789"


def post(server: OddServer, body: Any) -> tuple[int, Any]:
    """Return the server's response to the body of a request."""
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions", json.dumps(body).encode(), method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return 200, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def answered(server: OddServer, requests: bytes, number: str) -> list[dict[str, Any]]:
    """A line of a result for each line of requests, as OpenAI has it."""
    lines = []
    for i, line in enumerate(requests.splitlines()):
        request = json.loads(line)
        assert request["method"] == "POST" and request["url"] == "/v1/chat/completions"
        status, body = post(server, request["body"])
        response = {"status_code": status, "request_id": f"r{i}", "body": body}
        response_line = {
            "id": f"batch_req_{number}_{i}",
            "custom_id": request["custom_id"],
            "response": response,
            "error": None,
        }
        lines.append(response_line)
    return lines


def failed(line: dict[str, Any], code: str = "batch_expired") -> dict[str, Any]:
    error = {
        "code": code,
        "message": "This request could not be executed before the completion window expired.",
    }
    return {**line, "response": None, "error": error}


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )


def requests_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("requests-*.jsonl"))


def lines_of(requests: Path) -> list[bytes]:
    return requests.read_bytes().splitlines()


@pytest.fixture
def served() -> Iterator[OddServer]:
    with OddServer(pp.load_observer(MODEL, refusal=0.1)) as server:
        yield server


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither server nor key: what is written into files needs none."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def directly(server: OddServer, path: Path) -> xr.Dataset:
    """The result of the same questions, asked one by one."""
    with (
        pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ConditionWarning)
        return pp.run(path, observer, progress=False)


def assert_same(first: xr.Dataset, second: xr.Dataset) -> None:
    """Alike but for what the server lists, which nobody asks where questions go by file."""
    attributes = [
        {name: value for name, value in result.attrs.items() if name != "served"}
        for result in (first, second)
    ]
    assert attributes[0] == attributes[1]
    xr.testing.assert_identical(first.drop_attrs(), second.drop_attrs())


@pytest.mark.usefixtures("unreachable")
def test_days_of_a_batch(tmp_path: Path, served: OddServer) -> None:
    path, folder, store = (
        write_questions(tmp_path),
        tmp_path / "batch",
        tmp_path / "runs.sqlite",
    )

    def go_on() -> xr.Dataset:
        return pp.run(
            path,
            BatchObserver(pp.load_observer(f"openai:{MODEL}"), folder),
            store=store,
            progress=False,
        )

    # Monday: the first round, whose words tell which reading counts.
    with pytest.raises(
        UnfinishedError,
        match=r"questions wait for an answer; submit requests-0001.jsonl in .* as a b",
    ):
        go_on()
    (pilot,) = requests_in(folder)
    content = pilot.read_bytes()
    keys = [json.loads(line)["custom_id"] for line in content.splitlines()]
    assert len(set(keys)) == len(keys) and all(len(key) <= 64 for key in keys)
    # Nothing came back: nothing is asked a second time.
    with pytest.raises(
        UnfinishedError,
        match=f"{len(keys)} questions wait for an answer; put the results into",
    ):
        go_on()
    assert requests_in(folder) == [pilot] and pilot.read_bytes() == content
    # Tuesday: all but two, one of which expired and one of which is not there.
    lines = answered(served, content, "1")
    write(folder / "batch_1_output.jsonl", lines[2:])
    write(folder / "batch_1_error.jsonl", [failed(lines[0])])
    with pytest.raises(
        UnfinishedError,
        match=r"2 questions wait .*; 1 came back without one \(This request could not",
    ):
        go_on()
    second_file = requests_in(folder)[1]
    assert [
        json.loads(line)["custom_id"] for line in second_file.read_bytes().splitlines()
    ] == [lines[0]["custom_id"]]
    with Store(store) as opened:
        assert sum(1 for _ in opened.all_answers()) == len(keys) - 2
    # Wednesday: the rest of the round; the next one is written. The same error line twice is one.
    write(folder / "batch_1_error_downloaded_twice.jsonl", [failed(lines[0])])
    write(folder / "batch_1_late.jsonl", [lines[1]])
    write(
        folder / "batch_2_output.jsonl", answered(served, second_file.read_bytes(), "2")
    )
    with pytest.raises(UnfinishedError):
        go_on()
    rest = requests_in(folder)[2]
    request_counts = Counter(
        json.loads(line)["custom_id"]
        for path in requests_in(folder)
        for line in lines_of(path)
    )
    assert {key for key, count in request_counts.items() if count > 1} == {
        lines[0]["custom_id"]
    }
    # Thursday: all of it, some lines twice.
    last = answered(served, rest.read_bytes(), "3")
    write(folder / "batch_3_output.jsonl", last)
    write(folder / "batch_3_output (1).jsonl", last[:5])
    result = go_on()
    assert len(requests_in(folder)) == 3
    assert_same(result, directly(served, path))
    with Store(store) as opened:
        stored = [answered_question for answered_question, _ in opened.all_answers()]
    assert (
        len(stored)
        == len({answered_question.question.key for answered_question in stored})
        == int(trials(result)["was_shown"].sum())
    )
    # Friday: all of it is in the store, and the folder is not needed.
    assert_same(
        pp.run(
            path,
            BatchObserver(pp.load_observer(f"openai:{MODEL}"), tmp_path / "none"),
            store=store,
        ),
        result,
    )


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize("design", ["ladder", "quest_plus"])
def test_an_adaptive_design_is_one_batch_a_round(
    tmp_path: Path, served: OddServer, design: str
) -> None:
    options = ", n_max = 3" if design == "quest_plus" else ""
    changed = f'seed = 3\ndesign = "{design}"' + (
        f"\noptions = {{ {options[2:]} }}" if options else ""
    )
    path, folder, store = (
        write_questions(tmp_path, ("seed = 3", changed)),
        tmp_path / "batch",
        tmp_path / "s.sqlite",
    )
    result = None
    for rounds in range(40):
        observer = BatchObserver(pp.load_observer(f"openai:{MODEL}"), folder)
        try:
            result = pp.run(path, observer, store=store, progress=False)
            break
        except UnfinishedError:
            new = requests_in(folder)[-1]
            write(
                folder / f"out-{rounds}.jsonl",
                answered(served, new.read_bytes(), str(rounds)),
            )
    assert result is not None and rounds == len(requests_in(folder)) > 1
    assert_same(result, directly(served, path))


@pytest.mark.usefixtures("unreachable")
def test_files_are_no_larger_than_they_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: OddServer
) -> None:
    path = write_questions(tmp_path, ("seed = 3", 'seed = 3\nreadout = "text"'))

    def sizes(folder: str) -> list[tuple[int, int]]:
        with pytest.raises(UnfinishedError) as raised:
            pp.run(
                path,
                BatchObserver(pp.load_observer(f"openai:{MODEL}"), tmp_path / folder),
                progress=False,
            )
        assert len(str(raised.value)) <= 360
        files = requests_in(tmp_path / folder)
        assert (
            f"{files[0].name} to {files[-1].name}" in str(raised.value)
            or len(files) == 1
        )
        return [(file.read_bytes().count(b"\n"), file.stat().st_size) for file in files]

    assert (batch_folder.MAX_REQUESTS, batch_folder.MAX_BYTES) == (
        50_000,
        200_000_000,
    )
    ((count, size),) = sizes("one")
    monkeypatch.setattr(batch_folder, "MAX_REQUESTS", 10)
    file_sizes = sizes("ten")
    assert [lines for lines, _ in file_sizes] == [10] * (count // 10) + [count % 10] * (
        count % 10 > 0
    )
    monkeypatch.setattr(batch_folder, "MAX_REQUESTS", 50_000)
    monkeypatch.setattr(batch_folder, "MAX_BYTES", size // 3)
    file_sizes = sizes("bytes")
    assert (
        max(size_in_bytes for _, size_in_bytes in file_sizes) <= size // 3
        and sum(lines for lines, _ in file_sizes) == count
    )
    monkeypatch.setattr(batch_folder, "MAX_BYTES", 100)
    with pytest.raises(InputError, match="show a smaller image"):
        pp.run(
            path,
            BatchObserver(pp.load_observer(f"openai:{MODEL}"), tmp_path / "small"),
            progress=False,
        )
    assert requests_in(tmp_path / "small") == []


def test_a_refusal_is_an_answer_and_an_error_is_none() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": "I cannot help with that.",
    }
    body = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    line = {
        "id": "a",
        "custom_id": "ab",
        "response": {"status_code": 200, "body": body},
        "error": None,
    }
    key, mark, answer = batch_folder._read_result(json.dumps(line).encode())
    assert (key, mark, getattr(answer, "text", None)) == (
        "ab",
        "a",
        "I cannot help with that.",
    )
    for status in (400, 429, 500):
        line["response"] = {
            "status_code": status,
            "body": {"error": {"message": "Too many."}},
        }
        assert (
            str(batch_folder._read_result(json.dumps(line).encode())[2])
            == f"HTTP {status}: Too many"
        )


TEXT = ("seed = 3", 'seed = 3\nreadout = "text"')


def one_round(path: Path, folder: Path) -> xr.Dataset:
    return pp.run(
        path, BatchObserver(pp.load_observer(f"openai:{MODEL}"), folder), progress=False
    )


@pytest.mark.usefixtures("unreachable")
def test_lines_that_nobody_meant(tmp_path: Path, served: OddServer) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    with pytest.raises(UnfinishedError):
        one_round(path, folder)
    lines = answered(served, requests_in(folder)[0].read_bytes(), "1")
    good = [json.dumps(line).encode() for line in lines]
    # vLLM's earlier run-batch has the completion in place of the response.
    good[0] = json.dumps(
        {**lines[0], "response": lines[0]["response"]["body"]}
    ).encode()
    evil = [
        *(
            b"",
            b"\x00\xff",
            b"null",
            b"[1]",
            b'{"custom_id": 5}',
            b'{"custom_id": null, "response": {}}',
            b"{" * 9000,
        ),
        *(b'{"id": "x"}', b'{"custom_id": "feed", "response": null, "error": null}'),
        b'{"custom_id": "' + b"a" * (9 * 2**20) + b'"}',
        good[1][: len(good[1]) // 2],
        b'{"custom_id": "%s", "response": {"status_code": [], "body": []}}'
        % lines[2]["custom_id"].encode(),
        b'{"custom_id": "%s", "response": "text", "error": {"message": ["\\u001b[2J"]}}'
        % lines[3]["custom_id"].encode(),
    ]
    (folder / "a.jsonl").write_bytes(b"\n".join([*evil, *good[:1], *good[4:]]))
    with pytest.raises(
        UnfinishedError,
        match=r"3 questions wait .* 2 came back without one .* lines .* cannot be read",
    ):
        one_round(path, folder)
    assert len(requests_in(folder)) == 2
    (folder / "b.jsonl").write_bytes(b"\n".join([*good[1:4], *good[1:4]]))
    assert_same(one_round(path, folder), directly(served, path))


@pytest.mark.usefixtures("unreachable")
def test_what_a_server_refuses_is_left_out_of_the_next_file(tmp_path: Path) -> None:
    path, folder = write_questions(tmp_path), tmp_path / "batch"
    with OddServer(
        pp.load_observer(MODEL),
        behaviour=Behaviour(temperature="one", logprobs="refused"),
    ) as server:
        # Three refusals one after the other, the answers to the first round, and those to the
        # second.
        for number in range(5):
            with pytest.raises(UnfinishedError):
                one_round(path, folder)
            new = requests_in(folder)[number]
            write(
                folder / f"out-{number}.jsonl",
                answered(server, new.read_bytes(), str(number)),
            )
        result = one_round(path, folder)
        expected = directly(server, path)
    assert {
        setting["name"] for setting in json.loads(result.attrs["replaced_settings"])
    } >= {
        "temperature",
        "logprobs",
    }
    assert_same(result, expected)


def test_one_question_put_directly_saves_those_rounds(tmp_path: Path) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    with OddServer(
        pp.load_observer(MODEL),
        behaviour=Behaviour(temperature="one", logprobs="refused"),
    ) as server:
        with pp.load_observer(f"openai:{MODEL}", base_url=server.base_url) as observer:
            with pytest.warns(ConditionWarning, match="temperature left out"):
                planned = pp.plan(path, BatchObserver(observer, folder), timed=True)
            assert (
                server.counts["answered"] == 1
                and "one question that was put" in str(planned)
                and not folder.exists()
            )
            observer.close()
            with (
                pytest.raises(UnfinishedError),
                pytest.warns(UserWarning, match="temperature left out"),
            ):
                pp.run(
                    path,
                    BatchObserver(observer, folder, probe=True),
                    store=tmp_path / "s.sqlite",
                    progress=False,
                )
            (new,) = requests_in(folder)
            assert not any(
                {"temperature", "logprobs"} & set(json.loads(line)["body"])
                for line in lines_of(new)
            )
            write(folder / "out.jsonl", answered(server, new.read_bytes(), "1"))
            result = pp.run(
                path,
                BatchObserver(observer, folder),
                store=tmp_path / "s.sqlite",
                progress=False,
            )
        assert_same(result, directly(server, path))


@pytest.mark.usefixtures("unreachable")
def test_a_model_that_thinks_is_given_room_in_the_next_file(tmp_path: Path) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    with OddServer(
        pp.load_observer(MODEL), behaviour=Behaviour(thinking="tags")
    ) as server:
        for number in range(2):
            with pytest.raises(UnfinishedError):
                one_round(path, folder)
            new = requests_in(folder)[number]
            write(
                folder / f"out-{number}.jsonl",
                answered(server, new.read_bytes(), str(number)),
            )
        assert_same(one_round(path, folder), directly(server, path))


@pytest.mark.usefixtures("unreachable")
def test_what_is_half_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    call_count = 0
    real = batch_observer.request_body

    def breaking(*arguments: Any) -> bytes:
        nonlocal call_count
        call_count += 1
        if call_count == 5:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(batch_observer, "request_body", breaking)
    with pytest.raises(KeyboardInterrupt):
        one_round(path, folder)
    assert list(folder.iterdir()) == []
    monkeypatch.undo()
    (folder / "requests-0001.jsonl").write_text("{}\n")
    with pytest.raises(
        InputError,
        match=r"is not in batches.json beside it; take another folder, or remove the file",
    ):
        one_round(path, folder)
    (folder / "batches.json").write_text('{"requests-0001.jsonl": {"model": 5}}')
    with pytest.raises(InputError, match="is not what psyprobe wrote"):
        one_round(path, folder)


@pytest.mark.usefixtures("unreachable")
def test_a_batch_has_its_own_price(tmp_path: Path, served: OddServer) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    prices = Prices({MODEL: Price(1000.0, 5000.0, batch=0.5)})
    plain = pp.plan(path, pp.load_observer(f"openai:{MODEL}"), prices=prices)
    batched = pp.plan(
        path, BatchObserver(pp.load_observer(f"openai:{MODEL}"), folder), prices=prices
    )
    assert plain.left.cost and batched.left.cost == plain.left.cost / 2
    assert not folder.exists()
    with pytest.raises(UnfinishedError):
        one_round(path, folder)
    write(
        folder / "out.jsonl", answered(served, requests_in(folder)[0].read_bytes(), "1")
    )
    result = pp.run(
        path,
        BatchObserver(pp.load_observer(f"openai:{MODEL}"), folder),
        prices=prices,
        progress=False,
    )
    tokens = (
        1000 * trials(result)["tokens_in"].sum()
        + 5000 * trials(result)["tokens_out"].sum()
    )
    assert json.loads(result.attrs["spent"])["cost"]["USD"] == pytest.approx(
        float(tokens) / 2e6
    )


def test_who_is_not_asked_in_batches(tmp_path: Path, capsys: Output) -> None:
    with pytest.raises(InputError, match="batches are for openai:MODEL"):
        BatchObserver(pp.load_observer(MODEL), tmp_path)
    batched: Any = BatchObserver(pp.load_observer(f"openai:{MODEL}"), tmp_path)
    with pytest.raises(InputError, match="leave workers out"):
        pp.run("hernandez2025", batched, executor=2)
    with pytest.raises(
        InputError, match="leave the batch folder out to ask a single question"
    ):
        batched.answer((), "Yes?")
    run = [
        "run",
        "hernandez2025",
        "--observer",
        f"openai:{MODEL}",
        "--output",
        str(tmp_path),
    ]
    assert (
        main([*run, "--submit"]) == 2
        and "add --batch FOLDER" in capsys.readouterr().err
    )
    assert main([*run, "--batch", str(tmp_path), "--budget", "1"]) == 2
    assert "leave one of them out" in capsys.readouterr().err


# -- a server that takes batches
# --------------------------------------------------------------------------------------


class BatchServer(ThreadingHTTPServer):
    """Files and batches as OpenAI has them; a simulated server answers a batch when it is looked at
    again."""

    daemon_threads = True

    def __init__(self, behind: OddServer) -> None:
        super().__init__(("127.0.0.1", 0), BatchHandler)
        self.behind = behind
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.looked: Counter[str] = Counter()
        self.uploads = 0
        #: How many replies to submissions are lost on their way.
        self.lost = 0
        #: What becomes of each batch: it fails as a whole; it expires with two questions left; it
        #: is completed.
        self.fates = ["failed", "expired", "completed", "completed"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def make_file(self, kind: str, content: bytes) -> str:
        name = f"file-{kind}-{len(self.files)}"
        self.files[name] = content
        return name

    def look(self, name: str) -> dict[str, Any]:
        """The first time it is under way, the second time at its end."""
        batch = self.batches[name]
        self.looked[name] += 1
        if self.looked[name] < 2 or batch["status"] in (
            "failed",
            "expired",
            "completed",
        ):
            return batch
        fate = batch["status"] = self.fates.pop(0)
        if fate == "failed":
            batch["errors"] = {
                "data": [
                    {
                        "code": "token_limit_exceeded",
                        "message": "Enqueued token limit reached.",
                    }
                ]
            }
            return batch
        lines = answered(self.behind, self.files[batch["input_file_id"]], name)
        failed_count = 2 if fate == "expired" else 0
        parts = {
            "output": lines[failed_count:],
            "error": [failed(line) for line in lines[:failed_count]],
        }
        for kind, part in parts.items():
            content = b"".join(json.dumps(line).encode() + b"\n" for line in part)
            batch[f"{kind}_file_id"] = self.make_file(kind, content) if part else None
        return batch


class BatchHandler(BaseHTTPRequestHandler):
    server: BatchServer

    def _send(self, status: int, value: Any) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self._body()
        if self.headers["Authorization"] != f"Bearer {KEY}":
            return self._send(
                401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}
            )
        if self.path == "/v1/files":
            boundary = self.headers["Content-Type"].partition("boundary=")[2].encode()
            fields = body.split(b"--" + boundary)[1:-1]
            parts = {
                part.partition(b'name="')[2].partition(b'"')[0]: part for part in fields
            }
            assert (
                b"\r\n\r\nbatch\r\n" in parts[b"purpose"]
                and b"requests-" in parts[b"file"]
            )
            self.server.uploads += 1
            content = parts[b"file"].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
            return self._send(
                200, {"id": self.server.make_file("in", content), "object": "file"}
            )
        request = json.loads(body)
        assert (
            request["endpoint"] == "/v1/chat/completions"
            and request["completion_window"] == "24h"
        )
        name = f"batch_{len(self.server.batches)}"
        self.server.batches[name] = {
            "id": name,
            "status": "in_progress",
            "input_file_id": request["input_file_id"],
            "metadata": request["metadata"],
        }
        if self.server.lost:
            self.server.lost -= 1
            self.close_connection = True
            return None
        return self._send(200, self.server.batches[name])

    def do_GET(self) -> None:
        part = self.path.split("/")
        if part[2].startswith("batches?"):
            listed = [*self.server.batches.values()][::-1]
            return self._send(200, {"data": listed, "has_more": False})
        if part[2] == "batches":
            return self._send(200, self.server.look(part[3]))
        return self._send(200, self.server.files[part[3]])

    def _body(self) -> bytes:
        if (length := self.headers.get("Content-Length")) is not None:
            return self.rfile.read(int(length))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def taking_batches(behind: OddServer) -> Iterator[BatchServer]:
    with BatchServer(behind) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.02,), daemon=True
        )
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_submitted_fetched_and_asked_again(
    tmp_path: Path,
    served: OddServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    with taking_batches(served) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "another-key")
        run = [
            "run",
            str(path),
            "--observer",
            f"openai:{MODEL}",
            "--output",
            str(tmp_path / "out"),
        ]
        run += ["--batch", str(folder), "--submit"]
        assert main(run) == 2
        assert "set OPENAI_API_KEY to a key that it takes" in capsys.readouterr().err
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert main(run) == 3
        assert (
            "wait for an answer; run the same command later" in capsys.readouterr().err
        )
        store = tmp_path / "out" / "runs.sqlite"

        def go_on() -> xr.Dataset:
            batched = BatchObserver(
                pp.load_observer(f"openai:{MODEL}"), folder, submit=True
            )
            with batched.directly:
                return pp.run(path, batched, store=store, progress=False)

        with pytest.raises(UnfinishedError, match="run the same command later"):
            go_on()
        assert server.uploads == 1
        with pytest.raises(
            PsyprobeError,
            match=r"refused batch_0 as a whole \(Enqueued token limit reached\)",
        ):
            go_on()
        for _ in range(4):
            with pytest.raises(UnfinishedError):
                go_on()
        result = go_on()
    # The file as a whole, again after it was refused, and then the two questions that expired.
    assert server.uploads == 3 and len(requests_in(folder)) == 2
    assert requests_in(folder)[1].read_bytes().count(b"\n") == 2
    assert_same(result, directly(served, path))
    assert not any(KEY in file.read_text(errors="replace") for file in folder.iterdir())
    with pytest.raises(PsyprobeError, match="the server's batches cannot be reached"):
        unreachable: Any = pp.load_observer(
            f"openai:{MODEL}", base_url="http://127.0.0.1:9/v1"
        )
        pp.run(
            path,
            BatchObserver(unreachable, tmp_path / "new", submit=True),
            progress=False,
        )


def test_a_file_whose_submission_lost_its_reply_is_not_paid_for_twice(
    tmp_path: Path, served: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_questions(tmp_path, TEXT)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with taking_batches(served) as server:
        server.fates = ["completed"] * 4
        server.lost = 1

        def go_on() -> xr.Dataset:
            observer = pp.load_observer(f"openai:{MODEL}", base_url=server.url)
            batched = BatchObserver(observer, tmp_path / "batch", submit=True)
            with batched.directly:
                return pp.run(
                    path, batched, store=tmp_path / "s.sqlite", progress=False
                )

        with pytest.raises(PsyprobeError, match="batches cannot be reached"):
            go_on()
        for _ in range(2):
            with pytest.raises(UnfinishedError):
                go_on()
        assert len(go_on()["response"])
    assert len(server.batches) == 1


@pytest.mark.usefixtures("unreachable")
def test_questions_that_a_filter_refuses_are_not_sent_for_ever(tmp_path: Path) -> None:
    path, folder = write_questions(tmp_path, TEXT), tmp_path / "batch"
    behaviour = Behaviour(filtered=0.2)
    with OddServer(pp.load_observer(MODEL), behaviour=behaviour) as server:
        with pytest.raises(UnfinishedError):
            one_round(path, folder)
        (requests,) = requests_in(folder)
        write(folder / "results.jsonl", answered(server, requests.read_bytes(), "1"))
        table = trials(one_round(path, folder))
    refused = table["finish"].values == "refused"
    assert 0 < refused.sum() == server.counts["filtered"]
