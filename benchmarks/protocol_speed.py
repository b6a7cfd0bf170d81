"""All nine tests of one ViT-S against the published protocol: one image at a time, each with its
reference.

    OMP_NUM_THREADS=1 python benchmarks/protocol_speed.py [SHARE]

The published code draws a test image and its reference for every point, passes each through the
encoder alone, and asks the encoder for every contrast that a root finder tries: 2 x 1,300 passes
for the scores, 2 x 3,200 for the contour grids and about 1,960 for the matches (section 9 of its
description). That is done here with the same encoder for a random share (5 %) of the points of each
test, between psyprobe's runs of it, and scaled up. It gets psyprobe's stimuli and display, drawn
one by one, and no gradients: the published code itself draws 5 to 30 ms an image longer.

Weights are random: they change no time. Processor time tells more than wall time where others use
the machine too.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import timm
import torch

import psyprobe as pp
from psyprobe.experiment import load_suite
from psyprobe.probes import load_probe

ARCHITECTURE = "vit_small_patch16_224"
#: Encoder passes of the published code for the scores and for the contour grid of each test.
PASSES = {
    "gabor_achromatic": (400, 800),
    "noise_achromatic": (400, 800),
    "gabor_red_green": (400, 800),
    "gabor_yellow_violet": (320, 800),
    "luminance": (400, 800),
    "area": (400, 800),
    "mask_coherent": (160, 800),
    "mask_incoherent": (120, 800),
    "contrast_matching": (1960, 0),
}


def timed(work: Callable[..., object], *arguments: object) -> np.ndarray:
    """Seconds of wall and of processor time."""
    start = time.perf_counter(), time.process_time()
    work(*arguments)
    return np.array([time.perf_counter() - start[0], time.process_time() - start[1]])


def one_by_one(
    network: torch.nn.Module, display: pp.Display, points: list[tuple]
) -> None:
    for specs in points:
        features = []
        for spec in specs:
            drive = display.encode(spec.draw())
            image = torch.from_numpy(
                np.ascontiguousarray(np.moveaxis(drive, -1, 0))[None]
            )
            features.append(network(image).flatten())
        if len(features) == 2:
            cosine = torch.nn.functional.cosine_similarity(*features, dim=0)
            torch.arccos(cosine.clamp(-1, 1)) / torch.pi


def main(share: float) -> None:
    observer = pp.load_observer(f"timm:{ARCHITECTURE}", random_weights=True)
    network = timm.create_model(ARCHITECTURE, num_classes=0).eval()
    rng = np.random.default_rng(1)
    print(
        f"{ARCHITECTURE}, random weights, {torch.get_num_threads()} thread(s) of "
        f"{os.cpu_count()} processors; "
        f"the protocol is timed on {share:.0%} of its passes\n"
        f"{'seconds: wall, processor':24s}{'scores':>16s}{'the rest':>16s}"
        f"{'images':>14s}{'protocol':>18s}{'passes':>8s}"
    )
    # Columns: distinct images; wall and processor seconds. Rows: scores; contour grids; frequencies
    # for a figure alone.
    ours = np.zeros((3, 3))
    protocol = np.zeros(2)
    for experiment in load_suite("cai2025"):
        conditions = load_probe(experiment.probe).plan(experiment, observer).conditions
        matching = experiment.probe == "matching"
        points = [
            (test,) if matching else (test, reference)
            for test, reference in conditions.pairs
        ]
        passes = sum(PASSES[experiment.name])
        sample = rng.choice(
            len(points), max(2, round(share * passes / len(points[0]))), replace=False
        )
        first, second = (
            [points[i] for i in half] for half in np.array_split(sample, 2)
        )
        scored, images = (
            pp.plan(experiment, observer, score_only=only).images
            for only in (True, False)
        )
        with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
            store = Path(folder) / "runs.sqlite"
            one_by_one(network, experiment.display, first[:1])
            peer = timed(one_by_one, network, experiment.display, first)
            scores = timed(score_run, experiment, observer, store, True)
            peer += timed(one_by_one, network, experiment.display, second)
            # What the store holds is not asked again, so this is what is left.
            rest = timed(score_run, experiment, observer, store, False)
        peer *= passes / (len(sample) * len(points[0]))
        protocol += peer
        ours[0] += [scored, *scores]
        ours[2 if matching else 1] += [images - scored, *rest]
        print(
            f"{experiment.name:24s}{scores[0]:8.1f}{scores[1]:8.1f}{rest[0]:8.1f}{rest[1]:8.1f}"
            f"{scored:7d}{images:7d}{peer[0]:9.1f}{peer[1]:9.1f}{passes:8d}",
            flush=True,
        )
    passes = sum(map(sum, PASSES.values()))
    print(
        f"\nagainst {passes} passes of the "
        f"protocol{'images':>17s}{'times faster: wall':>22s}{'processor':>13s}"
    )
    names = (
        "all scores (aim: 5)",
        "and every contour grid (aim: 2.2)",
        "and matches at 18 more frequencies",
    )
    for name, (images, *seconds) in zip(names, np.cumsum(ours, axis=0), strict=True):
        wall, processor = protocol / seconds
        print(f"{name:40s}{images:10.0f}{wall:22.2f}{processor:13.2f}")


def score_run(
    experiment: object, observer: object, store: Path, score_only: bool
) -> None:
    pp.score(
        pp.run(experiment, observer, store=store, score_only=score_only, progress=False)
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 0.05)
