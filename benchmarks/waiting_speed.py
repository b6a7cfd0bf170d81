"""What a user waits for at a terminal: whole commands, in processor time of their processes.

    OMP_NUM_THREADS=1 python benchmarks/waiting_speed.py [ROW ...]

Each function gives rows (work, condition, value, bar); a value is the least of three processes, of
the site one. A peer, what the same work takes without psyprobe, has no bar.
Rows: nine_images, cold_start (of the default observer), scores (of ten observers on nine tests, for
which it asks them first, half an hour; scores:STORE of a copy of a store), exports (of 100,000
conditions), inspect_logs, certificates and plaids (over drawing, as speed_table.py has them), site
(with the packages of the extra `docs`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from growth import OBSERVERS, page_of

import psyprobe as pp
from psyprobe.observers.registry import DEFAULT_OBSERVER

Row = tuple[str, str, float, float | None]
NINE = """
title = "Nine images"
probe = "detection"
stimulus = { kind = "gabor", parameters = { frequency = 2.0, contrast = 0.5, radius = 0.3, ppd = 16, size = 16 } }
[human]
model = "castle_csf"
[levels]
frequency = { from = 1, to = 4, n = 3, scale = "log" }
contrast = { from = 0.01, to = 1, n = 3, scale = "log" }
[score]
multiplier = { from = 0.5, to = 2, n = 2, scale = "log" }
[display]
peak = 400
"""
WORDS = """
title = "Images of 224 px"
probe = "yes_no"
stimulus = { kind = "annulus_noise", parameters = { frequency = 4, contrast = 0.1, luminance = 40, ppd = 60, size = 224 } }
[levels]
frequency = { from = 1, to = 16, n = 5, scale = "log" }
contrast = { from = 0.01, to = 0.3, n = 10, scale = "log" }
[asking]
prompts = "base"
repeats = { text = 16, p_yes = 8 }
seed = 3
[display]
peak = 185.3
"""
#: Ten observers of different pooling and compression.
POOLED = """
import numpy as np
def pooled(images, side, exponent):
    count, height, width, _ = images.shape
    blocks = np.asarray(images, float).reshape(count, height // side, side, width // side, side, 3)
    return (blocks.mean(axis=(2, 4)) ** exponent).reshape(count, -1)
""" + "".join(
    f"def pooled_{k}(images): return pooled(images, {8 + 6 * (k % 2)}, {1 + k / 5})\n"
    for k in range(10)
)
#: What the figure of nine images takes without psyprobe.
FIGURE = """
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt, numpy as np, xarray
figure, axes = plt.subplots(1, 2, layout="constrained")
for ax in axes:
    contours = ax.contourf(np.geomspace(1, 4, 3), np.geomspace(1, 100, 3), np.eye(3))
    ax.set(xscale="log", yscale="log")
figure.colorbar(contours)
figure.savefig("figure.png")
"""
#: Writes the finished run of a store as a log twice, with the time of inspect-ai's writer alone; what
#: the first imports is not counted.
INSPECT_LOG = """
import time
from inspect_ai import log
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.inspect_logs import write_inspect_log
write = log.write_eval_log
def timed(*words, **options):
    global writing
    start = time.process_time()
    write(*words, **options)
    writing = time.process_time() - start
log.write_eval_log = timed
with Store("words.sqlite", create=False) as store:
    (record,) = store.runs()
    for _ in range(2):
        start = time.process_time()
        samples = write_inspect_log(record, store, "words.eval")
        seconds = time.process_time() - start
    print(seconds / samples, writing / samples)
"""


class Used(NamedTuple):
    """What a process took."""

    #: Processor time, s.
    seconds: float
    #: Largest memory, MB.
    megabytes: float
    output: str


def run(arguments: list[str], folder: Path, cache: str = "") -> Used:
    """Run Python with arguments in a folder, as an installed psyprobe runs: with byte code.

    `cache` names the folder for what is kept from one process to the next; by default none.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PSYPROBE_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout and child.stderr
        output = child.stdout.read()
        errors = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
    if status:
        raise RuntimeError(errors[-500:])
    return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output)


def measure_cheapest(arguments: list[str], folder: Path, cache: str = "") -> Used:
    """Run a command four times, and return what the cheapest run but the first took."""
    return min([run(arguments, folder, cache) for _ in range(4)][1:])


def command(*words: str) -> list[str]:
    return ["-m", "psyprobe", *words]


def nine_images() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nine.toml").write_text(NINE, encoding="utf-8")
        # Without a store, each run asks anew.
        code = (
            "import shutil, sys; shutil.rmtree('out', ignore_errors=True); "
            "from psyprobe.cli import main; sys.exit(main(sys.argv[1:]))"
        )
        words = ["run", "nine.toml", "--observer", "pixels", "--output", "out"]
        used = measure_cheapest(["-c", code, *words], folder)
        peer = measure_cheapest(["-c", FIGURE], folder)
    libraries = "numpy, xarray, matplotlib and one figure, s"
    return [
        ("psyprobe run", "nine images, score and figure, s", used.seconds, 1.5),
        ("its peer", libraries, peer.seconds, None),
    ]


def cold_start() -> list[Row]:
    load = (
        "import numpy, psyprobe; "
        f"observer = psyprobe.load_observer({DEFAULT_OBSERVER!r}); "
        "observer.features(numpy.full((1, 260, 260, 3), 0.5, 'float32'))"
    )
    with tempfile.TemporaryDirectory() as name:
        used, *peers = (
            measure_cheapest(["-c", code], Path(name)).seconds
            for code in (load, "import timm", "import torch")
        )
    return [
        ("cold start", f"{DEFAULT_OBSERVER}, one image, s", used, 2.5),
        ("its peer", "import timm, s", peers[0], None),
        ("its peer", "import torch, s", peers[1], None),
    ]


def scores(store: str = "") -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not store:
            (folder / "ten.py").write_text(POOLED, encoding="utf-8")
            observers = [f"ten.py:pooled_{k}" for k in range(10)]
            words = ["cai2025", "--score-only", "--output", "out", "--observer"]
            run(command("run", *words, *observers), folder)
        path = str(Path(store).absolute()) if store else "out/runs.sqlite"
        words = command("score", path)
        first = measure_cheapest(words, folder)
        again = measure_cheapest(words, folder, str(folder / "cache"))
    condition = "ten observers on nine tests of eight variants"
    return [
        ("psyprobe score", f"{condition}, s", first.seconds, 6.0),
        ("psyprobe score", f"{condition}, again, s", again.seconds, 2.0),
    ]


def exports() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = page_of("pixels", 100_000, folder)
        store = folder / "runs.sqlite"
        # Not in this process: a child's largest memory begins with that of its parent.
        words = ["run", str(page), "--observer", OBSERVERS["pixels"]]
        run(command(*words, "--store", str(store)), folder)
        for ending in ("parquet", "csv"):
            words = ["store", "export", str(store), "-o", f"table.{ending}"]
            used = measure_cheapest(command(*words), folder)
            condition = f"100,000 conditions to .{ending}"
            rows += [
                ("psyprobe store export", f"{condition}, s", used.seconds, 5.0),
                ("psyprobe store export", f"{condition}, MB", used.megabytes, 200.0),
            ]
    return rows


def inspect_logs() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "words.toml").write_text(WORDS, encoding="utf-8")
        pp.run(
            folder / "words.toml",
            "simulated:watson-malo",
            store=folder / "words.sqlite",
            progress=False,
        )
        outputs = [run(["-c", INSPECT_LOG], folder).output for _ in range(3)]
    condition = "445 questions, an image of 224 px each, ms a question"
    value, writer = (
        1000 * min(map(float, column))
        for column in zip(*map(str.split, outputs), strict=True)
    )
    return [
        ("export to an inspect log", condition, value, 5.0),
        ("its peer", "inspect-ai's writer of these samples alone, ms", writer, None),
    ]


def site() -> list[Row]:
    docs = Path(__file__).resolve().parents[1] / "docs"
    with tempfile.TemporaryDirectory() as name:
        words = ["-m", "sphinx", "-q", "-b", "html", str(docs), "site"]
        used = run(words, Path(name))
    return [("documentation site", "the whole, built once, s", used.seconds, 90.0)]


def of_speed_table(name: str) -> list[Row]:
    import speed_table

    rows = speed_table.ROWS[name]()
    return [(row.work, row.condition, row.value, row.bar) for row in rows]


ROWS: dict[str, Callable[..., list[Row]]] = {
    "nine_images": nine_images,
    "cold_start": cold_start,
    "scores": scores,
    "exports": exports,
    "inspect_logs": inspect_logs,
    "certificates": partial(of_speed_table, "certificates"),
    "plaids": partial(of_speed_table, "plaids"),
    "site": site,
}


def main() -> None:
    for word in sys.argv[1:] or ROWS:
        name, *store = word.split(":", 1)
        for work, condition, value, bar in ROWS[name](*store):
            line = f"{work:27}{condition:70}{value:9.2f}"
            if bar is not None:
                line += f"{bar:8g}  {'met' if value <= bar else 'NOT met'}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
