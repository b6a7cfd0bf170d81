"""Check registries of 100,000 files: `python benchmarks/many_files.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from psyprobe.running.registry_run import run_folders

ROOT = Path(__file__).resolve().parents[1]
VALID = ROOT / "tests" / "data" / "registry" / "valid_encoder"
COUNT = 100_000


def places(registry: Path) -> Iterator[tuple[str, Path]]:
    """Where the files lie: in a folder of four, among runs, and among observers."""
    run = run_folders(registry)[0]
    yield "in a run", run
    yield "among runs", run.parent
    yield "among observers", registry / "results"


def main() -> None:
    """Print how long each check takes and what it says."""
    names = [name for name, _ in places(VALID)]
    print("| 100,000 files | exit | lines | processor time | wall time | memory |")
    for index, name in enumerate(names):
        with tempfile.TemporaryDirectory() as folder:
            registry = shutil.copytree(VALID, Path(folder) / "registry")
            _, place = list(places(registry))[index]
            for number in range(COUNT):
                (place / f"{number}.txt").touch()
            begun = time.monotonic()
            with (Path(folder) / "out").open("w+") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", "psyprobe", "registry", "check", registry],
                    stdout=output,
                    cwd=ROOT,
                )
                _, status, usage = os.wait4(process.pid, 0)
                seconds = time.monotonic() - begun
                output.seek(0)
                lines = output.read().splitlines()
        code = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        print(
            f"| {name} | {code} | {len(lines)} | {cpu:.1f} s | {seconds:.1f} s "
            f"| {usage.ru_maxrss / 1024:.0f} MB |",
            flush=True,
        )
        for line in lines[:3]:
            print("   ", line[:200])


if __name__ == "__main__":
    main()
