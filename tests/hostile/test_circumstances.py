"""Circumstances outside any file: certificates that are not trusted, and clocks that jump."""

from __future__ import annotations

import json
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import xarray
from hostile_network import REPLY, http
from small_questions import write_questions

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.running.maintenance import verify
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]
ASK = ("ask", "Is it?", "--observer", "openai:m", "--observer-option")


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that does one thing with each connection; its port."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def accept() -> None:
            while not over.is_set():
                with suppress(OSError):
                    connection, _ = server.accept()
                    with connection:
                        connection.settimeout(5)
                        serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join(timeout=10)


def certificate(folder: Path, host: str) -> ssl.SSLContext:
    """A context of a server with a certificate that it signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not here")
    key, signed = folder / "key.pem", folder / "signed.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    command += ["-keyout", str(key), "-out", str(signed)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    return context


def answer(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(http(json.dumps(REPLY).encode()))


@pytest.mark.parametrize("trusted", [False, True])
def test_a_certificate_of_nobody_or_of_another_host_is_one_line(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    context = certificate(tmp_path, "elsewhere.example")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "signed.pem"))
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            received.append(secure.recv(65536))
            secure.sendall(http(json.dumps(REPLY).encode()))

    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-no-one")
    with listening(serve) as port:
        url = f"base_url=https://127.0.0.1:{port}/v1"
        assert main([*ASK, url, "retries=0"]) == 2
    printed = capsys.readouterr()
    assert "certificate" in printed.err and printed.err.count("\n") == 1, printed.err
    # Neither key nor question reached whoever is behind the certificate.
    assert not any(received) and printed.out == ""


def test_a_server_of_the_other_scheme_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    context = certificate(tmp_path, "127.0.0.1")

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            answer(secure)  # type: ignore[arg-type]

    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-no-one")

    def silent(connection: socket.socket) -> None:
        time.sleep(1.5)

    for scheme, served in (("https", answer), ("http", serve), ("https", silent)):
        with listening(served) as port:
            url = f"base_url={scheme}://127.0.0.1:{port}/v1"
            assert main([*ASK, url, "retries=0", "timeout=1"]) == 2, (scheme, served)
        printed = capsys.readouterr()
        assert printed.err.count("\n") == 1 and printed.out == "", printed.err


def test_a_clock_that_jumps_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_questions(tmp_path)
    expected = pp.run(page, "simulated:watson-malo", progress=False)
    draw = random.Random(31)
    jumps = (0, 86_400, -86_400, 3600, -3600, -2e9)
    clock = time.time

    def jumping() -> float:
        return clock() + draw.choice(jumps)

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr("psyprobe.running.store.time", jumping)
    for _ in range(2):
        result = pp.run(
            page,
            "simulated:watson-malo",
            store=tmp_path / "runs.sqlite",
            progress=False,
        )
        xarray.testing.assert_equal(result, expected)
    with Store(tmp_path / "runs.sqlite", create=False) as store:
        assert verify(store)["run"] == 1
