"""What a whole detection experiment costs beyond the bare forward passes of its images, and how much memory it takes.

    python benchmarks/probing_overhead.py            # time: ViT-S, random weights (marked), interleaved
    python benchmarks/probing_overhead.py memory     # peak memory over the number of conditions

Bare passes are timed on tensors that are ready: float32, normalised, contiguous, in the batches of the run.
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
ROUNDS = 3


def bare(images: int, batch: int) -> float:
    import timm
    import torch

    network = timm.create_model(ARCHITECTURE, num_classes=0).eval()
    tensor = torch.rand(batch, 3, 224, 224)
    with torch.inference_mode():
        network(tensor)
        start = time.perf_counter()
        for first in range(0, images, batch):
            network(tensor[: min(batch, images - first)])
        return time.perf_counter() - start


def whole(observer: object) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        pp.run("gabor_achromatic", observer, store=Path(folder) / "runs.sqlite", progress=False)
        return time.perf_counter() - start


def timing() -> None:
    observer = pp.load_observer(f"timm:{ARCHITECTURE}", random_weights=True)
    plan = pp.plan("gabor_achromatic", observer)
    print(f"{plan}\n{os.cpu_count()} processors")
    whole(observer)
    ratios = []
    for _ in range(ROUNDS):
        passes, run = bare(plan.images, plan.batch_size), whole(observer)
        ratios.append(run / passes)
        print(f"bare passes {passes:6.2f} s   whole experiment {run:6.2f} s   ratio {run / passes:.3f}")
    print(f"median ratio {statistics.median(ratios):.3f} (target 1.05)")


def memory_of(levels: int) -> None:
    text = Path(__file__).parents[1].joinpath("experiments", "gabor_achromatic.toml").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.toml"
        path.write_text(text.replace("n = 20", f"n = {levels}"), encoding="utf-8")
        pp.run(path, "pixels", store=Path(folder) / "runs.sqlite", progress=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{levels * levels:6d} grid conditions   peak memory {peak:6.0f} MB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        for levels in (5, 20, 60):
            subprocess.run([sys.executable, __file__, "memory-of", str(levels)], check=True)
    elif sys.argv[1:2] == ["memory-of"]:
        memory_of(int(sys.argv[2]))
    else:
        timing()
