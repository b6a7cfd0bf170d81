"""Passes with batch norms folded beside those as networks come: features, S_ac, thresholds, r_s and time.

python benchmarks/folded_passes.py [NAME ...]

By default the packaged networks that are installed, and 20 of timm and torchvision with random
weights and images of 128 px. Set OMP_NUM_THREADS=1. Prints one row of a Markdown table a network.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.observers import list_observers

NAMES = [
    "timm:resnet18",
    "timm:resnet50",
    "timm:resnext50_32x4d",
    "timm:mobilenetv2_100",
    "timm:mobilenetv3_small_100",
    "timm:mobilenetv3_large_100",
    "timm:efficientnet_b0",
    "timm:tf_efficientnetv2_b0",
    "timm:regnety_002",
    "timm:mnasnet_100",
    "timm:densenet121",
    "timm:dla34",
    "timm:rexnet_100",
    "timm:ghostnet_100",
    "timm:repvgg_a0",
    "torchvision:resnet18",
    "torchvision:mobilenet_v2",
    "torchvision:mobilenet_v3_large",
    "torchvision:shufflenet_v2_x1_0",
    "torchvision:regnet_y_400mf",
]
PAGE = """
title = "Few Gabors"
source = "gabor_achromatic, fewer of its levels"
stimulus = "gabor_achromatic"
probe = "detection"
differences = ["fewer levels, one draw"]
[human]
model = "castle_csf"
[levels]
frequency = { from = 1, to = 16, n = 3, scale = "log" }
contrast = { from = 0.001, to = 1, n = 4, scale = "log" }
[score]
multiplier = { from = 0.5, to = 2, n = 2, scale = "log" }
[display]
peak = 400
"""
#: Side of the images of networks with random weights, px.
RANDOM_SIZE = 128
ROUNDS = 3
BATCH = 8


def seconds(observer: Any, images: FloatArray) -> float:
    before = time.process_time()
    observer.features(images)
    return time.process_time() - before


def s_ac(result: Any) -> FloatArray:
    return result["response_angular"].squeeze("layer").transpose(..., "contrast").values


def thresholds(result: Any, level: float) -> FloatArray:
    """Log10 contrasts at which S_ac crosses a level; nan where it does not."""
    log_contrast, crossed, _ = iso_contrast(result["contrast"], s_ac(result), [level])
    return np.where(crossed, log_contrast, np.nan)


def row(name: str, page: Path) -> str:
    options: dict[str, Any] = {}
    if not name.startswith("packaged:"):
        options = {"random_weights": True, "input_size": RANDOM_SIZE}
    plain, folded = (
        pp.load_observer(name, device="cpu", batch_norm=way, **options)
        for way in ("separate", "folded")
    )
    way = folded.card.options.get("batch_norm", "none to fold")
    size = plain.card.input_size
    noise = np.random.default_rng(1).random((BATCH, *size, 3), np.float32)
    images = np.float32(0.5) + np.float32(0.05) * (noise - np.float32(0.5))
    expected, features = (
        observer.features(images)[observer.card.features[-1]]
        for observer in (plain, folded)
    )
    times = np.array(
        [
            [seconds(observer, images) for observer in (plain, folded)]
            for _ in range(ROUNDS)
        ]
    ).min(axis=0)
    before, after = (
        pp.run(page, observer, progress=False) for observer in (plain, folded)
    )
    level = float(np.median(s_ac(before)))
    shift = np.abs(thresholds(after, level) - thresholds(before, level))
    largest_shift = float(np.nanmax(shift)) if np.isfinite(shift).any() else np.nan
    scores = [pp.score(each).score.alignment.value for each in (before, after)]
    cells = [
        name,
        way,
        f"{np.abs(features - expected).max() / np.abs(expected).max():.1e}",
        f"{np.abs(s_ac(after) - s_ac(before)).max():.1e}",
        f"{np.abs(s_ac(after) / s_ac(before) - 1).max():.1e}",
        f"{10**largest_shift - 1:.1e}",
        "none" if None in scores else f"{scores[1] - scores[0]:+.4f}",
        f"{1000 * times[0] / BATCH:.1f}",
        f"{times[1] / times[0]:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    torch.set_num_threads(1)
    packaged = [
        observer.name
        for observer in list_observers("packaged:*")
        if not observer.obstacle and "transnet" not in observer.name
    ]
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.toml"
        few.write_text(PAGE, encoding="utf-8")
        for network in sys.argv[1:] or [*packaged, *NAMES]:
            print(row(network, few), flush=True)
