"""Time and memory of each command over a million questions, in stores that are merged.

    OMP_NUM_THREADS=1 python benchmarks/million_questions.py pixels|words|published
        [--questions 1000000] [--workers N | --cluster] [-o FOLDER]
    python benchmarks/million_questions.py draw    # docs/images/scaling.png, from million_questions.csv

`pixels` asks ten joint draws of phase and position in two shares, each with a store of its own; a
simulated observer in words answers ten times to each condition, under ten labels, each in a store of
its own; `published` asks pixels under labels, 25,000 questions each, as a registry takes them.
Images are 16 x 16 px, so that the time is psyprobe's own. Each line is a process of its own:
processor time of it and its workers, its start included, and the largest memory of one of these
processes. With --cluster two Dask workers are processes of their own, with a line each in the end. A
run of more questions than a registry takes is refused by `publish`, which then ends with 4.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from growth import OBSERVERS, page_of

RUNS = 10
#: Answers in words to each condition.
ANSWERS = 10
#: Questions of a run that a registry takes.
PUBLISHED = 25_000
SHARES = 2
WORKERS = 2
#: How `publish` ends where it left a run out.
LEFT_OUT = 4


def write_page(kind: str, questions: int, folder: Path) -> Path:
    """Write a page of a tenth of the questions, of pixels in ten draws, or of a published run."""
    if kind == "published":
        return page_of("pixels", PUBLISHED, folder)
    if kind == "words":
        path = page_of(kind, questions // RUNS // ANSWERS, folder)
        repeated = ("repeats = 1", f"repeats = {ANSWERS}")
    else:
        path = page_of(kind, questions // RUNS, folder)
        repeated = ("[display]", f"[variants]\ndraw = {RUNS}\n[display]")
    path.write_text(path.read_text().replace(*repeated))
    return path


def commands(
    kind: str, questions: int, page: Path, folder: Path, executor: Sequence[str]
) -> Iterator[list[str]]:
    """List what is run, in order: words of the command line."""
    store = str(folder / "runs.sqlite")
    observer = OBSERVERS["words" if kind == "words" else "pixels"]
    run = ["run", str(page), "--observer", observer, "--output", str(folder)]
    runs = questions // PUBLISHED if kind == "published" else RUNS
    if kind == "pixels":
        parts = [["--shard", f"{i}/{SHARES}"] for i in range(1, SHARES + 1)]
    else:
        parts = [["--label", f"night-{i}"] for i in range(runs)]
    stores = [str(folder / f"part-{i}.sqlite") for i in range(len(parts))]
    yield [*run, "--store", stores[0], "--plan"]
    for part, part_store in zip(parts, stores, strict=True):
        yield [*run, *executor, *part, "--store", part_store]
    yield ["store", "merge", *stores, "-o", store]
    if kind == "pixels":
        yield [*run, "--store", store]
    yield [*run, "--store", store, "--plan"]
    yield ["score", store]
    yield ["store", "export", store, "-o", str(folder / "all.parquet")]
    if kind == "words":
        yield ["store", "export", store, "--tidy", "-o", str(folder / "tidy.csv")]
    yield ["report", store, "-o", str(folder / "report.html")]
    registry = str(folder / "registry")
    yield ["publish", store, "-o", registry, "--contributor", "Benchmark"]
    yield ["registry", "check", registry]
    yield ["registry", "build", registry, "-o", str(folder / "site")]


def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start Python with some words of a command line."""
    environment = {**os.environ, "PSYPROBE_CACHE": "", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", *words], env=environment, stdout=subprocess.DEVNULL
    )


def used(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for a process: processor seconds of it and its own, and the largest memory of one, MB."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "megabytes": usage.ru_maxrss // 1024,
    }


def measure(words: Sequence[str]) -> dict[str, Any]:
    """Run a command of psyprobe, and return what it used."""
    child = start(["psyprobe", *words])
    line = {"command": " ".join(word for word in words if not word.startswith("/"))}
    line |= used(child)
    if child.returncode not in (0, LEFT_OUT):
        raise RuntimeError(f"psyprobe {' '.join(words)} failed")
    return line


@contextmanager
def started_cluster(folder: Path, report: Callable[[Any], None]) -> Iterator[list[str]]:
    """Start a scheduler of Dask and its workers on this machine; report what each used."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    place = ["--scheduler-file", str(file), "--no-dashboard"]
    worker = ["worker", "--nthreads", "1", "--no-nanny"]
    words = [["scheduler", "--host", "127.0.0.1", "--port", "0"], *[worker] * WORKERS]
    children = [start(["dask", *each, *place]) for each in words]
    try:
        while not file.exists():
            time.sleep(0.1)
        yield ["--scheduler", json.loads(file.read_text())["address"]]
    finally:
        # The workers first: without a scheduler they would wait for it.
        for child, (name, *_) in reversed([*zip(children, words, strict=True)]):
            child.terminate()
            report({"command": f"dask {name}", **used(child)})


#: What the figure shows: the command, its colour for all kinds of colour vision, and its mark.
DRAWN = {
    "plan": ("#000000", "o"),
    "run": ("#d55e00", "s"),
    "merge": ("#009e73", "^"),
    "score": ("#0072b2", "D"),
    "export": ("#cc79a7", "v"),
    "report": ("#e69f00", "P"),
}
QUANTITIES = {"seconds": "Processor time (s)", "megabytes": "Largest memory (MB)"}


def draw(measurements: Path, path: Path) -> None:
    """Draw processor time and largest memory of each command over the number of questions."""
    import matplotlib.pyplot as plt
    import pandas as pd

    table = pd.read_csv(measurements)
    figure, grid = plt.subplots(
        2, 2, figsize=(9, 7), layout="constrained", sharex=True, sharey="row"
    )
    for row, (quantity, label) in zip(grid, QUANTITIES.items(), strict=True):
        for ax, kind in zip(row, OBSERVERS, strict=True):
            for name, (colour, mark) in DRAWN.items():
                lines = table[(table.kind == kind) & (table.command == name)]
                x, y = lines.questions, lines[quantity]
                ax.plot(x, y, color=colour, marker=mark, label=name)
            if quantity == "seconds":
                slope = [1e4, 1e6]
                ax.plot(slope, [1e4 / 400, 1e6 / 400], "k--", label="slope 1")
            else:
                ax.axhline(1000, color="k", linestyle=":", label="1 GB")
            title = {"pixels": "Pixels", "words": "Words"}[kind]
            ax.set(xscale="log", yscale="log", title=title)
            ax.grid(alpha=0.3)
        row[0].set_ylabel(label)
    for ax in grid[1]:
        ax.set_xlabel("Questions in the store")
    keys = {
        name: handle
        for ax in (grid[0, 0], grid[1, 0])
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        keys.values(), keys, loc="outside lower center", ncols=4, frameon=False
    )
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=[*OBSERVERS, "published", "draw"])
    parser.add_argument("--questions", type=int, default=1_000_000)
    parser.add_argument("-o", "--output", type=Path, help="folder for all files")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--workers", type=int, help="worker processes of each run")
    group.add_argument("--cluster", action="store_true", help="run through Dask")
    options = parser.parse_args()
    if options.kind == "draw":
        here = Path(__file__)
        image = here.parents[1] / "docs" / "images" / "scaling.png"
        draw(here.with_suffix(".csv"), image)
        return
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = options.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)

        def report(line: Any) -> None:
            """Print a line and keep it in a file: what is measured is not lost."""
            print(json.dumps(line), flush=True)
            with (folder / "lines.jsonl").open("a") as file:
                file.write(f"{json.dumps(line)}\n")

        executor: list[str] = []
        if options.workers is not None:
            executor = ["--workers", str(options.workers)]
        if options.cluster:
            executor = stack.enter_context(started_cluster(folder, report))
        page = write_page(options.kind, options.questions, folder)
        for words in commands(options.kind, options.questions, page, folder, executor):
            # Where every run was left out, nothing is published.
            if words[0] != "registry" or (folder / "registry" / "results").exists():
                report(measure(words))
        for name in ("runs.sqlite", "all.parquet", "report.html"):
            report({f"{name}, MB": round((folder / name).stat().st_size / 1e6, 1)})


if __name__ == "__main__":
    main()
