"""What a whole detection experiment costs beyond the bare forward passes of its images, and how much memory it takes.

    python benchmarks/probing_overhead.py [LEVELS]   # time: ViT-S, random weights (marked), interleaved
    python benchmarks/probing_overhead.py memory     # peak memory over the number of conditions

Bare passes are timed on tensors that are ready: float32, normalised, contiguous, in the batches of the run. Both are
timed in turn, several times; processor time tells more than wall time where others use the machine too.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psyprobe as pp

ARCHITECTURE = "vit_small_patch16_224"
ROUNDS = 5


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> tuple[float, float]:
    return time.perf_counter() - start[0], time.process_time() - start[1]


def bare(images: int, batch: int) -> tuple[float, float]:
    import timm
    import torch

    network = timm.create_model(ARCHITECTURE, num_classes=0).eval()
    tensor = torch.rand(batch, 3, 224, 224)
    with torch.inference_mode():
        network(tensor)
        start = now()
        for first in range(0, images, batch):
            network(tensor[: min(batch, images - first)])
        return since(start)


def whole(experiment: Path, observer: object) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        start = now()
        pp.run(experiment, observer, store=Path(folder) / "runs.sqlite", progress=False)
        return since(start)


def timing(levels: int) -> None:
    observer = pp.load_observer(f"timm:{ARCHITECTURE}", random_weights=True)
    with tempfile.TemporaryDirectory() as folder:
        experiment = coarser(Path(folder), levels)
        plan = pp.plan(experiment, observer)
        print(f"{plan}\n{os.cpu_count()} processors")
        whole(experiment, observer)
        ratios = []
        for _ in range(ROUNDS):
            passes, run = bare(plan.images, plan.batch_size), whole(experiment, observer)
            ratios.append([b / a for a, b in zip(passes, run, strict=True)])
            print(
                f"bare passes {passes[0]:6.2f} s wall {passes[1]:6.2f} s processor   whole experiment {run[0]:6.2f} s "
                f"{run[1]:6.2f} s   ratio {ratios[-1][0]:.3f} {ratios[-1][1]:.3f}",
                flush=True,
            )
    wall, processor = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"median ratio: wall {wall:.3f}, processor {processor:.3f} (target 1.05)")


def coarser(folder: Path, levels: int) -> Path:
    text = Path(__file__).parents[1].joinpath("experiments", "gabor_achromatic.toml").read_text(encoding="utf-8")
    path = folder / "grid.toml"
    path.write_text(text.replace("n = 20", f"n = {levels}"), encoding="utf-8")
    return path


def memory_of(levels: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pp.run(coarser(Path(folder), levels), "pixels", store=Path(folder) / "runs.sqlite", progress=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{levels * levels:6d} grid conditions   peak memory {peak:6.0f} MB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        for levels in (5, 20, 60):
            subprocess.run([sys.executable, __file__, "memory-of", str(levels)], check=True)
    elif sys.argv[1:2] == ["memory-of"]:
        memory_of(int(sys.argv[2]))
    else:
        timing(int(sys.argv[1]) if sys.argv[1:] else 20)
