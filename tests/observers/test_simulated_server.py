"""The simulated server speaks the protocol as clients know it, and goes wrong only as it is told
to."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from children import child

from psyprobe.cli import main
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import encode_png
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Decoding
from psyprobe.observers.simulated.observer import SimulatedObserver
from psyprobe.observers.simulated.serving import Faults, SimulatedServer

CODES = np.random.default_rng(1).integers(120, 136, (64, 64, 3)).astype(np.uint8)
PROMPT = "Is there a pattern visible in the image?"
MODEL = "simulated:watson-malo"


@pytest.fixture(scope="module")
def observer() -> SimulatedObserver:
    loaded: SimulatedObserver = load_observer(MODEL)
    return loaded


def data_url(codes: Any = CODES) -> str:
    return f"data:image/png;base64,{base64.b64encode(encode_png(codes)).decode()}"


def question(*urls: str, **fields: Any) -> dict[str, Any]:
    images = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in urls or (data_url(),)
    ]
    content = [*images, {"type": "text", "text": PROMPT}]
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "temperature": 1,
        **fields,
    }


def send(
    server: SimulatedServer,
    value: Any,
    path: str = "/v1/chat/completions",
    method: str = "POST",
    **headers: str,
) -> tuple[int, Any, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        body = value if isinstance(value, bytes) else json.dumps(value)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text), response
    finally:
        connection.close()


def test_answers_as_the_observer_does(observer: SimulatedObserver) -> None:
    with SimulatedServer(observer) as server:
        status, reply, _ = send(
            server, question(logprobs=True, top_logprobs=5, seed=7, max_tokens=9)
        )
        expected = observer.answer(
            [CODES.astype(np.float32) / 255],
            PROMPT,
            decoding=Decoding(1.0, max_tokens=9, seed=7),
        )
        assert status == 200
        (choice,) = reply["choices"]
        assert choice["message"] == {"role": "assistant", "content": expected.text}
        assert choice["finish_reason"] == expected.finish
        listed = choice["logprobs"]["content"][0]["top_logprobs"]
        assert expected.first_tokens is not None
        assert [(entry["token"], entry["logprob"]) for entry in listed] == list(
            expected.first_tokens[:5]
        )
        assert bytes(listed[0]["bytes"]).decode() == listed[0]["token"]
        assert reply["usage"]["prompt_tokens"] == expected.tokens_in
        assert reply["system_fingerprint"] == expected.server
        assert send(server, question())[1]["choices"][0]["logprobs"] is None
        assert server.counts == {"answered": 2} and server.asked.total() == 2


def test_the_openai_client_understands_it(observer: SimulatedObserver) -> None:
    openai = pytest.importorskip("openai", reason="the chat extra is not installed")
    with (
        SimulatedServer(observer) as server,
        openai.OpenAI(base_url=server.base_url, api_key="any") as client,
    ):
        assert [model.id for model in client.models.list()] == [MODEL]
        reply = client.chat.completions.create(
            **question(logprobs=True, top_logprobs=20)
        )
        assert reply.choices[0].message.content
        assert len(reply.choices[0].logprobs.content[0].top_logprobs) == 20
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(**{**question(), "model": "another"})


@pytest.mark.parametrize(
    ("value", "status", "message"),
    [
        (b"{", 400, "Invalid JSON"),
        ([], 400, "an object"),
        ({**question(), "model": "another"}, 404, "does not exist"),
        ({**question(), "messages": []}, 400, "at least 1 item"),
        (question(stream=True), 400, "stream"),
        (question(top_logprobs=21), 400, "less than or equal to 20"),
        (question(temperature=3), 400, "temperature"),
        (question(*[data_url()] * 3), 400, "was shown 3 images"),
        (question("https://example.org/a.png"), 400, "nothing is fetched"),
        (question("data:image/png;base64,AAAA"), 400, "cannot be read"),
        (
            {**question(), "messages": [{"role": "user", "content": "no image"}]},
            400,
            "0 images",
        ),
        (
            {
                **question(),
                "messages": [{"role": "user", "content": [{"type": "sound"}]}],
            },
            400,
            "'text' or 'image_url'",
        ),
        (
            {**question(), "messages": [{"role": "robot", "content": "?"}]},
            400,
            "role: Input should be 'system'",
        ),
    ],
)
def test_refuses_in_the_protocol_s_own_form(
    observer: SimulatedObserver, value: Any, status: int, message: str
) -> None:
    with SimulatedServer(observer) as server:
        reply_status, reply, _ = send(server, value)
        assert (reply_status, message in reply["error"]["message"]) == (status, True), (
            reply
        )
        assert server.counts == {"refused": 1}


def nested(depth: int) -> list[bytes]:
    """Bodies that go deep at once, in what nobody reads, and in a message."""
    lists = b"[" * depth + b"]" * depth
    part = b'[{"type":"text","text":' * depth + b'"?"' + b"}]" * depth
    message = b'[{"role":"user","content":' + part + b"}]"
    return [
        lists,
        b'{"a":' + lists + b"}",
        b'{"model":"m","messages":' + message + b"}",
    ]


@pytest.mark.parametrize("depth", [150, 250, 100_000])
def test_a_deep_body_is_refused(observer: SimulatedObserver, depth: int) -> None:
    with SimulatedServer(observer) as server:
        assert [send(server, body)[0] for body in nested(depth)] == [400] * 3
        assert send(server, question())[0] == 200


def test_requests_for_other_machines_are_refused(observer: SimulatedObserver) -> None:
    """A page elsewhere whose name leads here sends its own name, on whichever line."""
    path = "/v1/models"
    with SimulatedServer(observer) as server:
        for host in ("evil.example", f"evil.example:{server.port}", ""):
            assert status(server, path, host) == 400
        assert status(server, f"http://evil.example{path}", "localhost") == 404
        for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}"):
            assert status(server, path, host) == 200


def status(server: SimulatedServer, target: str, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with closing(connection):
        connection.request("GET", target, headers={"Host": host})
        return connection.getresponse().status


def test_other_paths(observer: SimulatedObserver) -> None:
    with SimulatedServer(observer) as server:
        assert send(server, "", "/v1/models", "GET")[1]["data"][0]["id"] == MODEL
        assert send(server, "", "/v2", "GET")[0] == 404


def test_asks_for_its_key(observer: SimulatedObserver) -> None:
    with SimulatedServer(observer, key="secret") as server:
        assert send(server, question())[0] == 401
        assert send(server, question(), Authorization="Bearer wrong")[0] == 401
        assert send(server, question(), Authorization="Bearer secret")[0] == 200
        assert server.counts == {"unauthorised": 2, "answered": 1}
        assert "secret" not in repr(server)


def test_refuses_or_leaves_out_log_probabilities(observer: SimulatedObserver) -> None:
    request = question(logprobs=True, top_logprobs=5)
    with SimulatedServer(observer, logprobs="refused") as server:
        status, reply, _ = send(server, request)
        assert (status, reply["error"]["param"]) == (400, "logprobs")
        assert send(server, question())[0] == 200
    with SimulatedServer(observer, logprobs="absent") as server:
        assert send(server, request)[1]["choices"][0]["logprobs"] is None


def test_faults_come_at_their_rates_and_in_their_order() -> None:
    faults = Faults(
        overload=0.1, error=0.05, hang=0.02, truncated=0.01, reset=0.01, seed=3
    )
    draws, second_draws = faults.draws(), faults.draws()
    kinds = [next(draws) for _ in range(20000)]
    assert kinds == [next(second_draws) for _ in range(20000)]
    for kind, share in {
        "overload": 0.1,
        "error": 0.05,
        "hang": 0.02,
        "truncated": 0.01,
        "reset": 0.01,
        "": 0.81,
    }.items():
        assert kinds.count(kind) / 20000 == pytest.approx(
            share, abs=4 * np.sqrt(share / 20000)
        )


def test_each_fault_is_what_it_says(observer: SimulatedObserver) -> None:
    with SimulatedServer(
        observer, faults=Faults(overload=0.999, retry_after=2)
    ) as server:
        status, reply, response = send(server, question())
        assert (status, response.headers["Retry-After"], reply["error"]["code"]) == (
            429,
            "2",
            "rate_limit_exceeded",
        )
    with SimulatedServer(observer, faults=Faults(error=0.999)) as server:
        assert send(server, question())[0] == 500
    with (
        SimulatedServer(observer, faults=Faults(truncated=0.999)) as server,
        pytest.raises(json.JSONDecodeError),
    ):
        send(server, question())
    with (
        SimulatedServer(observer, faults=Faults(reset=0.999)) as server,
        pytest.raises(ConnectionResetError),
    ):
        send(server, question())
    with SimulatedServer(observer, faults=Faults(hang=0.999)) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.2)
        connection.request("POST", "/v1/chat/completions", json.dumps(question()))
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()


def test_takes_its_time(observer: SimulatedObserver) -> None:
    with SimulatedServer(observer, latency=(0.1, 0.15)) as server:
        start = time.monotonic()
        send(server, question())
        assert time.monotonic() - start >= 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Faults(overload=-0.1), "give 0 to below 1"),
        (lambda: Faults(overload=0.5, error=0.5), "leaves no answer"),
        (lambda: Faults(retry_after=-1), "seconds >= 0"),
        (lambda: Faults.parse(["hang"]), "not NAME=NUMBER"),
        (lambda: Faults.parse(["hung=0.1"]), "one of overload"),
        (
            lambda: SimulatedServer(load_observer(MODEL), latency=(0.2, 0.1)),
            "latency",
        ),
    ],
)
def test_one_clear_line(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_says_that_a_port_is_taken(observer: SimulatedObserver) -> None:
    with (
        SimulatedServer(observer) as server,
        pytest.raises(PsyprobeError, match="give another --port"),
        SimulatedServer(observer, port=server.port),
    ):
        pass


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_end(ending: signal.Signals) -> None:
    command = (
        "serve-simulated watson-malo --port 0 --json --set guess=0.2 --faults "
        "overload=0.1 --key-variable THE_KEY"
    )
    with child(
        [sys.executable, "-m", "psyprobe", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "THE_KEY": "secret"},
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["model"] == MODEL and ready["pid"] == process.pid
        with socket.create_connection(
            ("127.0.0.1", ready["port"]), timeout=60
        ) as connection:
            connection.sendall(
                b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                b"Authorization: Bearer secret\r\n\r\n"
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
            process.send_signal(ending)
            out, err = process.communicate(timeout=1200)
    assert (process.returncode, out) == (0, "")
    assert err == "psyprobe serve-simulated: ended; requests: 1 listed\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["watson"], "did you mean 'watson-malo'"),
        (["flat", "--set", "guess"], "write --set NAME=VALUE"),
        (["flat", "--set", "guess=much"], "guess is 'much'; give a number"),
        (["flat", "--latency", "1", "2", "3"], "one or two numbers"),
        (["flat", "--port", "99999"], "port 99999 cannot be used"),
        (["flat", "--key-variable", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is empty"),
    ],
)
def test_the_command_ends_with_one_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve-simulated", "--port", "0", *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
