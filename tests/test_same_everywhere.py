"""What is asked is the same on every machine, though the last bits of a power differ from processor
to processor.

Shards are merged, and runs go on, by digests of what is shown: a contrast that differs in its last
bit would be asked anew. Here numpy is kept from all that this processor has beyond what each of its
architecture has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.experiment import load_experiment, load_suite
from psyprobe.files.output import digest
from psyprobe.probes import load_probe
from psyprobe.probes.designs import QuestPlus, QuickCSF
from psyprobe.running.store import Store
from psyprobe.stimulus.parameters import log_spaced


def displayed_digests() -> dict[str, list[str]]:
    """Of the nine tests and two pages with other levels and thresholds: a digest of what is shown,
    and the key."""
    pages = [
        *load_suite("cai2025"),
        *map(load_experiment, ("gabor_red_green_published", "contrast_discrimination")),
    ]
    schedules = [
        (page, load_probe(page.probe).plan(page, pp.load_observer("pixels")))
        for page in pages
    ]
    with Store(None) as store:
        return {
            page.name: [digest(run.layout()["pairs"]), run.record(store).key]
            for page, run in schedules
        }


def levels_asked() -> dict[str, list[list[float]]]:
    """What adaptive designs ask an observer that answers with the same words, or the same
    probabilities, each time."""
    contrasts = log_spaced(0.001, 1.0, 61).tolist()
    return {
        f"{make.__name__} {kind}": played(make, contrasts, has_probability)
        for make in (QuestPlus, QuickCSF)
        for kind, has_probability in (("words", False), ("probabilities", True))
    }


def played(
    make: Callable[..., QuestPlus | QuickCSF],
    contrasts: list[float],
    has_probability: bool,
) -> list[list[float]]:
    luck, levels = np.random.default_rng(5), []
    design = make([1, 2, 4, 8], contrasts, n_max=40, seed=3)
    while not design.finished:
        for level in design.ask(3):
            probability = (
                0.02
                if level.catch
                else 0.02 + 0.96 / (1 + (0.02 * level.value**0.5 / level.contrast) ** 3)
            )
            design.tell(
                level,
                round(probability, 6)
                if has_probability
                else float(luck.random() < round(probability, 6)),
            )
            levels.append([level.value, level.contrast])
    return levels


def test_another_processor_asks_the_same() -> None:
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[index, call-overload]
    if not extensions:
        pytest.skip("this processor has nothing that another one lacks")
    code = "import json, test_same_everywhere as here; print(json.dumps([here.displayed_digests(), here.levels_asked()]))"
    plain = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(extensions)},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    assert json.loads(plain.stdout) == json.loads(
        json.dumps([displayed_digests(), levels_asked()])
    )
