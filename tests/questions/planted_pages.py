"""An observer that is told numbers in place of images, and is right as often as planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.experiment import Experiment
from psyprobe.probes.words.delivery import Scene, TrialImages

#: More trials than any run has.
_MOST = 10_000
#: Share of trials in which a task is done without guessing, by the level and the stimulus axis.
Truth = Callable[[float, float], float]


def weibull(level: float, threshold: float, slope: float = 3.5) -> float:
    """Half at the threshold."""
    return float(1 - 0.5 ** ((level / threshold) ** slope))


def run_planted(
    experiment: Experiment,
    truth: Truth,
    patch: pytest.MonkeyPatch,
    *,
    lapse: float = 0.02,
    seed: int = 0,
) -> Any:
    """Run an experiment without drawing an image."""
    trials: list[tuple[TrialImages, int]] = []

    def number_trials(
        scene: Scene, trial: TrialImages, _: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        label = trial.pattern
        if scene.label_values:
            value = float(trial.specs[0].value(scene.label_parameter))
            label = scene.label_values.index(value)
        trials.append((trial, label))
        number = np.full((1, 1, 3), (len(trials) - 1) / _MOST)
        measured = {
            "delivered_contrast": trial.contrast,
            "coherent_gain": 1.0,
            "total_contrast": trial.contrast,
            "refused": "",
        }
        return (number,) * scene.images, measured

    random = np.random.default_rng(seed)
    words = ("first", "second")
    if experiment.probe == "identify":
        from psyprobe.probes.words.identification import read_alternatives

        words = read_alternatives(experiment).names

    def reply(images: Any, prompt: str) -> str:
        trial, label = trials[round(float(images[0][0, 0, 0]) * _MOST)]
        probability = (1 - lapse) * truth(trial.value, trial.contrast)
        if random.random() < probability:
            return words[label]
        return words[int(random.integers(len(words)))]

    with patch.context() as context:
        context.setattr(Scene, "draw", number_trials)
        observer = pp.observer(reply, name="planted", version=str(seed), bits=None)
        return pp.run(experiment, observer, progress=False)
