"""Stimuli drawn and display-encoded, against stimupy: one thread, interleaved, CPU time per image.

    OMP_NUM_THREADS=1 python benchmarks/stimulus_speed.py

Both draw 224 x 224 px at 60 ppd and encode them as sRGB of a 400 cd/m² display: psyprobe in batches
of 1,000 through its public API (float32), stimupy one image a call (it has no batches; float64)
with the same sRGB transfer function. The errors printed beside are those of the delivered contrast,
by least squares for Gabors and RMS for noise.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import statistics
import time
from collections.abc import Callable

import numpy as np
from stimupy.noises.narrowbands import narrowband
from stimupy.stimuli.gabors import gabor as stimupy_gabor

import psyprobe as pp

BATCH = 1000
PEER_BATCH = 20
ROUNDS = 9
RNG = np.random.default_rng(1)
FREQUENCY = np.geomspace(0.5, 28, BATCH)
PHASE = RNG.uniform(0, 360, BATCH)
ORIENTATION = RNG.uniform(0, 180, BATCH)
DISPLAY = pp.Display(peak=400)
EXTENT = 224 / 60


def srgb(luminance: np.ndarray) -> np.ndarray:
    light = luminance / 400
    return np.where(
        light <= 0.0031308,
        12.92 * light,
        1.055 * np.maximum(light, 0) ** (1 / 2.4) - 0.055,
    )


def our_gabors() -> np.ndarray:
    stimulus = pp.gabor(
        frequency=FREQUENCY,
        phase=PHASE,
        orientation=ORIENTATION,
        contrast=0.5,
        radius=0.5,
        dtype="float32",
    )
    return DISPLAY.encode(stimulus)


def peer_gabors(start: int) -> None:
    for i in range(start, start + PEER_BATCH):
        j = (i * 47) % BATCH
        image = stimupy_gabor(
            visual_size=EXTENT,
            ppd=60,
            frequency=FREQUENCY[j],
            sigma=0.5,
            rotation=ORIENTATION[j],
            phase_shift=PHASE[j],
            intensities=(50, 150),
        )["img"]
        srgb(image)


def our_noise() -> np.ndarray:
    stimulus = pp.noise(
        frequency=NOISE_FREQUENCY, contrast=0.15, seed=np.arange(BATCH), dtype="float32"
    )
    return DISPLAY.encode(stimulus)


NOISE_FREQUENCY = np.repeat(np.geomspace(0.5, 20, 20), BATCH // 20)


def peer_noise(start: int) -> None:
    for i in range(start, start + PEER_BATCH):
        j = (i * 47) % BATCH
        image = narrowband(
            visual_size=EXTENT,
            ppd=60,
            center_frequency=NOISE_FREQUENCY[j],
            bandwidth=1.0,
            intensity_range=(50, 150),
        )["img"]
        srgb(image)


def milliseconds(job: Callable[[], object], images: int) -> float:
    start = time.process_time()
    job()
    return 1000 * (time.process_time() - start) / images


def compare(
    name: str, ours: Callable[[], object], peer: Callable[[int], None], target: float
) -> None:
    for _ in range(
        4
    ):  # the first batches pay for memory that the system has never touched before
        ours()
    peer(0)
    rows = []
    for round_ in range(ROUNDS):
        mine = milliseconds(ours, BATCH)
        theirs = milliseconds(lambda r=round_: peer(r * PEER_BATCH), PEER_BATCH)  # type: ignore[misc]
        rows.append((mine, theirs, theirs / mine))
    mine, theirs, ratio = (
        statistics.median(column) for column in zip(*rows, strict=True)
    )
    low = min(r[2] for r in rows)
    high = max(r[2] for r in rows)
    print(
        f"| {name:<28} | {mine:8.3f} | {theirs:8.3f} | {ratio:6.1f} ({low:.0f}-{high:.0f}) | "
        f"{target:g} |"
    )


def errors() -> None:
    contrast = []
    stimulus = pp.gabor(
        frequency=FREQUENCY,
        phase=PHASE,
        orientation=ORIENTATION,
        contrast=0.5,
        radius=0.5,
        dtype="float32",
    )
    for i in range(0, BATCH, 100):
        spec = pp.stimulus.Gabor(
            frequency=FREQUENCY[i],
            phase=PHASE[i],
            orientation=ORIENTATION[i],
            contrast=0.5,
            radius=0.5,
        )
        basis = [spec.draw().luminance - 100]
        quadrature = pp.stimulus.Gabor.from_dict(
            {k: v for k, v in spec.to_dict().items() if k != "kind"}
            | {"phase": PHASE[i] + 90}
        )
        basis.append(quadrature.draw().luminance - 100)
        columns = np.stack([b.ravel() for b in (*basis, np.ones((224, 224)))], axis=1)
        fit = np.linalg.lstsq(
            columns, stimulus.luminance[i].ravel().astype(float), rcond=None
        )[0]
        contrast.append(abs(np.hypot(fit[0], fit[1]) - 1))
    noise = pp.noise(
        frequency=NOISE_FREQUENCY, contrast=0.15, seed=np.arange(BATCH), dtype="float32"
    ).luminance
    rms = noise.std(axis=(1, 2), dtype=float) / noise.mean(axis=(1, 2), dtype=float)
    worst = np.abs(rms / 0.15 - 1).max()
    print(
        f"\nlargest relative contrast error, float32: Gabor {max(contrast):.1e}, noise {worst:.1e}"
    )


if __name__ == "__main__":
    print(
        "| CPU ms an image, one thread  | psyprobe | stimupy  | ratio (range) | target |"
    )
    print("|---|---|---|---|---|")
    compare("Gabor, drawn and encoded", our_gabors, peer_gabors, 50)
    compare("band noise, drawn and encoded", our_noise, peer_noise, 4)
    errors()
