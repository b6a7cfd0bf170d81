"""The six detection experiments, small, and a chat experiment against a local server: the same
whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from killed_runs import MODEL, Witness
from noting import same_bytes
from small_questions import write_questions

import psyprobe as pp
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.observers.simulated.serving import SimulatedServer

DETECTION = (
    "gabor_achromatic",
    "gabor_red_green",
    "gabor_yellow_violet",
    "noise_achromatic",
    "luminance",
    "area",
)


def small(name: str) -> Experiment:
    """An experiment of the catalogue at a few of its levels and multipliers."""
    page = load_experiment(name)
    levels = {axis: values[::7] for axis, values in page.levels.items()}
    score = page.score.model_copy(update={"multiplier": page.score.multiplier[::4]})
    return page.model_copy(update={"levels": levels, "score": score})


def chat_is_the_same(folder: Path, run: Callable[[Path, Any], Any]) -> None:
    """Say whether a way to run a page gives what one process gives, and asks the server
    as much."""
    page = write_questions(folder)
    local, witness = Witness(deg=2), Witness(deg=2)
    with SimulatedServer(local) as server:
        alone = pp.run(
            page, pp.load_observer(f"openai:{MODEL}", base_url=server.base_url)
        )
    with SimulatedServer(witness, latency=0.02) as server:
        result = run(
            page, pp.load_observer(f"openai:{MODEL}", base_url=server.base_url)
        )
    assert same_bytes(alone, result, folder)
    assert sorted(witness.requests) == sorted(local.requests)
