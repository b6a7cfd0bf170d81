"""How much memory a whole detection experiment takes over the number of its conditions.

python benchmarks/probing_memory.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import psyprobe as pp


def coarser(folder: Path, levels: int) -> Path:
    text = (
        Path(__file__)
        .parents[1]
        .joinpath("experiments", "gabor_achromatic.toml")
        .read_text(encoding="utf-8")
    )
    path = folder / "grid.toml"
    path.write_text(text.replace("n = 20", f"n = {levels}"), encoding="utf-8")
    return path


def memory_of(levels: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pp.run(
            coarser(Path(folder), levels),
            "pixels",
            store=Path(folder) / "runs.sqlite",
            progress=False,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{levels * levels:6d} grid conditions   peak memory {peak:6.0f} MB", flush=True
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        memory_of(int(sys.argv[1]))
    else:
        for levels in (5, 20, 60):
            subprocess.run([sys.executable, __file__, str(levels)], check=True)
