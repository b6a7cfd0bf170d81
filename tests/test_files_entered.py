"""How many of psyprobe's files one run goes through: those in which a function is called, on import
or later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_experiment import write_experiment

import psyprobe as pp

PACKAGE = Path(pp.__file__).parent

#: Prints the files of the package in which the program called a function; class bodies and modules
#: are none.
TRACER = """
import inspect, sys, threading
entered = set()
def trace(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith({package!r}):
        entered.add(code.co_filename)
def stop():
    sys.settrace(None), threading.settrace(None)
    print("entered", *sorted(entered), sep="\\n")
def start():
    threading.settrace(trace), sys.settrace(trace)
"""

COMMAND = """
start()
from psyprobe.cli import main
assert main({arguments!r}) == 0
stop()
unasked = {{"dask", "distributed", "scipy.stats"}} & set(sys.modules)
assert not unasked, unasked
"""

DASK = """
import sys, xarray
from psyprobe.cli import main
main(["list", "probes"])
xarray.Dataset({"x": ("level", [1.0, 2.0])}, {"level": [3, 4]}).mean()
assert "dask" not in sys.modules
import dask.array
chunked = xarray.DataArray(dask.array.ones(4, chunks=2), dims="x")
assert chunked.chunks == ((2, 2),)
assert chunked.mean().chunks == () and chunked.mean().compute().item() == 1
"""

RUN = """
import psyprobe as pp
observer = pp.load_observer("simulated:watson-malo")
start()
result = pp.run({page!r}, observer)
stop()
assert result.sizes["repeat"]
"""

NOISE = """
title = "A small experiment in words"
probe = "yes_no"
[stimulus]
kind = "annulus_noise"
parameters = { frequency = 4.0, contrast = 0.1, luminance = 40.0, ppd = 16, size = 32 }
[levels]
frequency = { values = [2, 4] }
contrast = { values = [0.03, 0.08, 0.2] }
[asking]
prompts = "base"
repeats = { text = 4, p_yes = 2 }
seed = 3
[display]
peak = 185.3
"""


def files_entered(program: str) -> list[str]:
    code = TRACER.format(package=str(PACKAGE)) + program
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=1200
    )
    assert process.returncode == 0, process.stderr
    _, _, listed = process.stdout.partition("entered\n")
    return [str(Path(path).relative_to(PACKAGE)) for path in listed.split()]


# A command goes from its options to table and figure. Files since: the population of intervals, the
# events of a run, the revision of its observer, and functions of thresholds.
@pytest.mark.parametrize(
    ("observer", "limit"), [("pixels", 80), ("packaged:efficientnet_lite0", 85)]
)
def test_files_of_an_encoder_run(tmp_path: Path, observer: str, limit: int) -> None:
    page = write_experiment(tmp_path)
    arguments = [
        "run",
        str(page),
        "--observer",
        observer,
        "--output",
        str(tmp_path / "results"),
    ]
    entered = files_entered(COMMAND.format(arguments=arguments))
    assert "running/loop.py" in entered and "plotting/features.py" in entered
    assert len(entered) <= limit, "\n".join(entered)


def test_xarray_knows_dask_once_it_is_imported() -> None:
    pytest.importorskip("dask.array")
    command = [sys.executable, "-c", DASK]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=240)


def test_files_of_a_chat_run(tmp_path: Path) -> None:
    page = tmp_path / "words.toml"
    page.write_text(NOISE, encoding="utf-8")
    entered = files_entered(RUN.format(page=str(page)))
    assert "running/loop.py" in entered and "analysis/words/reply.py" in entered
    assert len(entered) <= 68, "\n".join(entered)
