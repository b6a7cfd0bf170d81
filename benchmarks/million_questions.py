"""Time and memory of each command over a million questions, kept in one store.

    OMP_NUM_THREADS=1 python benchmarks/million_questions.py pixels|words [--questions 1000000]
        [--workers N] [-o FOLDER]

Ten runs of a tenth each: `pixels` in ten joint draws of phase and position, a simulated observer in
words under ten labels. Images are 16 x 16 px, so that the time is psyprobe's own. Each line is a
process of its own: processor time and largest memory of the whole of it, its start included, and
of the largest worker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from growth import OBSERVERS, page_of

RUNS = 10


def write_page(kind: str, questions: int, folder: Path) -> Path:
    """Write a page of a tenth of the questions, of pixels in ten draws."""
    path = page_of(kind, questions // RUNS, folder)
    if kind == "pixels":
        draws = f"[variants]\ndraw = {RUNS}\n[display]"
        path.write_text(path.read_text().replace("[display]", draws))
    return path


def commands(
    kind: str, page: Path, folder: Path, workers: int | None
) -> Iterator[list[str]]:
    """List what is run, in order: words of the command line."""
    store = str(folder / "runs.sqlite")
    run = ["run", str(page), "--observer", OBSERVERS[kind], "--store", store]
    run += ["--output", str(folder)]
    parallel = [] if workers is None else ["--workers", str(workers)]
    labels = ["", *(f"night-{i}" for i in range(1, RUNS))] if kind == "words" else [""]
    yield [*run, "--plan"]
    for label in labels:
        yield [*run, *parallel, *(["--label", label] if label else [])]
    yield [*run, "--plan"]
    yield ["score", store]
    yield ["store", "export", store, "-o", str(folder / "all.parquet")]
    if kind == "words":
        yield ["store", "export", store, "--tidy", "-o", str(folder / "tidy.csv")]
    yield ["report", store, "-o", str(folder / "report.html")]


def measure(words: list[str]) -> dict[str, object]:
    """Run a command of psyprobe: processor seconds, and largest memory of a process, MB."""
    environment = {**os.environ, "PSYPROBE_CACHE": ""}
    with subprocess.Popen(
        [sys.executable, "-m", "psyprobe", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    if status:
        raise RuntimeError(f"psyprobe {' '.join(words)} failed")
    return {
        "command": " ".join(word for word in words if not word.startswith("/")),
        "seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "megabytes": usage.ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=[*OBSERVERS])
    parser.add_argument("--questions", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, help="worker processes of each run")
    parser.add_argument("-o", "--output", type=Path, help="folder for all files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        page = write_page(options.kind, options.questions, folder)
        for words in commands(options.kind, page, folder, options.workers):
            print(json.dumps(measure(words)), flush=True)
        size = (folder / "runs.sqlite").stat().st_size
        print(json.dumps({"store, MB": size // 10**6}))


if __name__ == "__main__":
    main()
