"""The scripts in benchmarks/ keep up with the package: what nobody runs for weeks must still
run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
#: Commands that random_kills.py kills.
KILLED = ("encoder", "chat", "items", "mvp-build", "review", "observe", "corrupt")
#: Packages of extras without which a kind cannot be killed: both change or show photographs.
NEEDED = {"mvp-build": ("skimage",), "corrupt": ("cv2", "skimage")}
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py"))


@pytest.mark.slow
def test_every_script_finds_what_it_imports() -> None:
    # In one process, in which torch is loaded once.
    code = f"""import importlib, json
faults = {{}}
for name in {SCRIPTS!r}:
    try:
        importlib.import_module(name)
    except Exception as fault:
        faults[name] = repr(fault)
print(json.dumps(faults))"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    assert json.loads(process.stdout.splitlines()[-1]) == {}


def test_every_fault_of_the_mutation_check_can_be_put_in() -> None:
    code = """import json, mutation_check as check
read = lambda fault: (check.ROOT / "psyprobe" / fault.file).read_text(encoding="utf-8")
print(json.dumps([fault.description for fault in check.FAULTS if fault.old not in read(fault)]))"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    assert json.loads(process.stdout) == []


@pytest.mark.slow
@pytest.mark.parametrize("script", ["chat_throughput", "mvp_throughput"])
def test_a_server_and_a_bare_client_are_timed(script: str) -> None:
    pytest.importorskip("aiohttp", reason="the chat extra is not installed")
    process = subprocess.run(
        [sys.executable, f"{script}.py", "50"],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert process.returncode == 0, process.stderr
    assert "of the bare client" in process.stdout


@pytest.fixture(scope="module")
def killing() -> subprocess.CompletedProcess[str]:
    """A kill of each kind; the script compares what is left with an unbroken run."""
    kinds = [kind for kind in KILLED if all(map(find_spec, NEEDED.get(kind, ())))]
    # In one process, in which all that serves and reads is loaded once.
    return subprocess.run(
        [sys.executable, "random_kills.py", "1", *kinds],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        timeout=1200,
    )


@pytest.mark.slow
@pytest.mark.skipif(
    "PSYPROBE_KILLS" not in os.environ,
    reason="90 s; other tests kill runs too. Set PSYPROBE_KILLS=1",
)
@pytest.mark.parametrize("kind", KILLED)
def test_what_is_killed_goes_on(
    kind: str, killing: subprocess.CompletedProcess[str]
) -> None:
    for package in NEEDED.get(kind, ()):
        pytest.importorskip(package, reason="the corruption extra is not installed")
    assert re.search(rf"^{kind}[\w ]*: 1 kills", killing.stdout, re.M), killing.stderr
    assert killing.returncode == 0, killing.stderr
