"""A detection experiment that runs in a moment: 16 px images, 3 x 3 levels, 2 multipliers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import psyprobe as pp
from psyprobe._typing import FloatArray

STIMULUS = """
title = "Small Gabors"
kind = "gabor"
[parameters]
frequency = 2.0
contrast = 0.5
luminance = 100.0
radius = 0.3
ppd = 16
size = 16
"""

EXPERIMENT = """
title = "A small experiment"
source = "psyprobe's own tests"
stimulus = "small_gabors.toml"
probe = "detection"
differences = ["it is small"]
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


def write_experiment(
    folder: Path,
    *changes: tuple[str, str],
    stimulus: tuple[tuple[str, str], ...] = (),
    name: str = "small",
) -> Path:
    """Write both files, each (old, new) text of the experiment (or of the stimulus) replaced, and
    give the path."""
    texts = {"small_gabors": STIMULUS, name: EXPERIMENT}
    for key, replaced in (("small_gabors", stimulus), (name, changes)):
        for old, new in replaced:
            assert old in texts[key], old
            texts[key] = texts[key].replace(old, new)
        (folder / f"{key}.toml").write_text(texts[key], encoding="utf-8")
    return folder / f"{name}.toml"


class Counting:
    """An observer that keeps what it was shown."""

    def __init__(self, **options: Any) -> None:
        self.images: list[FloatArray] = []
        self._inner = pp.observer(_features, name="counting", **options)
        self.card = self._inner.card

    def features(self, images: FloatArray) -> Any:
        self.images.extend(np.array(image) for image in images)
        return self._inner.features(images)


def _features(images: FloatArray) -> FloatArray:
    rows = images.reshape(len(images), -1).astype(np.float64)
    return np.concatenate([rows, np.square(rows[:, ::3] - 0.5)], axis=1)
