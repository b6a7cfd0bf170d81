"""Whatever stands in an option, a file, a store or a reply: one line and exit 2, or a right result.

Every case asserts more: no traceback, no file left, under 10 s and 1 GB. `psyprobe.cli.main` runs
in this process.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import pytest
import rooms
from hostile_bombs import BOMB_CASES
from hostile_cases import Case, Hole
from hostile_files import FILE_CASES
from hostile_network import NETWORK_CASES
from hostile_options import OPTION_CASES
from hostile_pages import PAGE_CASES
from hostile_stores import STORE_CASES

from psyprobe.cli import main
from psyprobe.cli.commands import all_commands

ALL_CASES = [*PAGE_CASES, *OPTION_CASES, *FILE_CASES, *STORE_CASES, *NETWORK_CASES]
ALL_CASES += BOMB_CASES
#: Commands of optional rooms that are not there.
ABSENT = {*rooms.COMMANDS} - all_commands().commands.keys()
CASES = [case for case in ALL_CASES if not ABSENT & {*case.arguments[:1]}]
#: Limit of processor time, s; a busy machine gets longer by the clock.
MOST_SECONDS, MOST_WAITED = 10.0, 60.0
MOST_BYTES = 10**9


class HungError(BaseException):
    """The command did not end; no handler of an Exception holds it back."""


def test_there_are_enough_cases_and_no_two_of_one_name() -> None:
    assert len({case.name for case in ALL_CASES}) == len(ALL_CASES) >= 300


@pytest.fixture(scope="module", autouse=True)
def _heavy_imports() -> None:
    """Load what takes seconds once, so that it is no case's own time."""
    for name in ("matplotlib.pyplot", "aiohttp", "torch", "openpyxl", "inspect_ai.log"):
        with suppress(ImportError):
            import_module(name)
    import_module("timm").create_model("test_vit.r160_in1k")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hostile(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-no-one")
    for name, content in (case.files() if callable(case.files) else case.files).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Hole):
            (tmp_path / name).write_bytes(content.head)
            os.truncate(tmp_path / name, len(content.head) + content.size)
        else:
            (tmp_path / name).write_bytes(content)
    before = contents(tmp_path)
    with served(case.reply) as url, guarded():
        code = command([argument.replace("{url}", url) for argument in case.arguments])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err + printed.out
    assert code in case.codes, (code, printed.out[-500:], printed.err[-500:])
    if code == 2:
        assert printed.out == ""
        *remarks, line = printed.err.splitlines() or [""]
        assert line.startswith("psyprobe") and len(remarks) <= case.remarks, printed.err
        assert len(line) < 400 and "did not foresee" not in line, printed.err
        assert set(contents(tmp_path)) <= set(before), "files are left"


def contents(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()
    }


def command(arguments: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            # Warn as in a process of its own, where most warnings are one more line.
            warnings.simplefilter("default")
            for quiet in (
                ResourceWarning,
                DeprecationWarning,
                PendingDeprecationWarning,
                ImportWarning,
            ):
                warnings.simplefilter("ignore", quiet)
            warnings.showwarning = lambda message, category, *_: print(
                category.__name__, message, file=sys.stderr
            )
            return main(arguments)
    except SystemExit as exit_:
        return int(exit_.code or 0)


@contextmanager
def guarded() -> Iterator[None]:
    """The bounds of a case in time and memory; what allocates without end is stopped by the system
    before."""

    def stop(*_: object) -> None:
        raise HungError(f"it did not end within {MOST_WAITED:g} s")

    start, computed, peak = time.perf_counter(), time.process_time(), peak_memory()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (address_space() + 6 * MOST_BYTES, limits[1])
    )
    earlier = signal.signal(signal.SIGALRM, stop)
    seconds_left, _ = signal.setitimer(signal.ITIMER_REAL, MOST_WAITED)
    try:
        yield
    finally:
        signal.setitimer(
            signal.ITIMER_REAL,
            max(seconds_left - (time.perf_counter() - start), 0.1)
            if seconds_left
            else 0,
        )
        signal.signal(signal.SIGALRM, earlier)
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert time.process_time() - computed < MOST_SECONDS
    assert peak_memory() - peak < MOST_BYTES


def peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def address_space() -> int:
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[0]) if statm.exists() else 0
    return pages * os.sysconf("SC_PAGE_SIZE") if pages else 2**45


@contextmanager
def served(reply: Callable[[], Iterator[bytes]] | None) -> Iterator[str]:
    """A server on loopback that sends the same to whoever asks, until the case is over."""
    if reply is None:
        yield ""
        return
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)

        def serve() -> None:
            while not over.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    continue
                threading.Thread(target=send, args=(connection,), daemon=True).start()

        def send(connection: socket.socket) -> None:
            with connection:
                connection.settimeout(1)
                try:
                    connection.recv(65536)
                    for piece in reply():
                        if over.is_set():
                            return
                        connection.sendall(piece)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            over.set()
            thread.join(timeout=2)
