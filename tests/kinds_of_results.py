"""A store that holds a small run of every kind of probe, design and layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decided_pages import smallest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.experiment import Experiment, load_experiment


def page_of(name: str, **counts: int) -> Experiment:
    """A page of the catalogue without variants, with the middle levels of each kind only."""
    page = load_experiment(name)
    settings = {
        f"levels.{level}": {
            "values": list(values[len(values) // 2 :][: counts.get(level, 2)])
        }
        for level, values in page.levels.items()
        if level in counts
    }
    page = page.with_settings(settings)
    return page.with_variants({}) if page.variants else page


def coarse(images: Any) -> Any:
    """Means of blocks of eight by eight pixels, in red and green."""
    count, height, width, _ = images.shape
    blocks = images[:, : height // 8 * 8, : width // 8 * 8, :2]
    return blocks.reshape(count, height // 8, 8, width // 8, 8, 2).mean(axis=(2, 4))


def two_layers(images: FloatArray) -> dict[str, FloatArray]:
    """Every seventh value, and the squares of every fifth."""
    rows = images.reshape(len(images), -1).astype(np.float64)
    return {"first": rows[:, ::7], "second": rows[:, ::5] ** 2}


def write_kinds(store: Path) -> None:
    """Write small runs into a store, one of each kind."""
    matching = load_experiment("contrast_matching").with_settings(
        {"levels.contrast.n": 3}
    )
    # A probe each: of features,
    small = page_of("gabor_achromatic", frequency=2, contrast=4)
    pages: list[tuple[Experiment, Any]] = [
        (page_of("contrast_discrimination", contrast=3), "pixels"),
        (page_of("acuity_achromatic"), "pixels"),
        (matching.with_variants({}), "pixels"),
        (small.with_variants({"draw": [1, 2]}), "pixels"),
        (small, pp.observer(two_layers, name="layered", features=("first", "second"))),
        # and of answers, by each design.
        (smallest("orientation_csf"), "simulated:watson-malo"),
        (load_experiment("letter_acuity"), "simulated:letters"),
        (smallest("gabor_in_noise"), "simulated:watson-malo"),
        (smallest("hernandez2025"), "simulated:watson-malo"),
    ]
    for page, observer in pages:
        pp.run(page, observer, store=store, progress=False)
    area = page_of("area", area=6)
    pp.run(area, "pixels", store=store, score_only=True, progress=False)
    encoder = pp.observer(coarse, name="coarse", version="1")
    deciding = pp.decide(encoder, stage="template", train="high", pairs=16)
    with pytest.MonkeyPatch.context() as patch:
        # Labels that are swapped, to see what chance finds, take seconds.
        patch.setattr("psyprobe.observers.decisions.training._SWAPS", 2)
        pp.run(smallest("orientation_in_noise"), deciding, store=store, progress=False)
