"""Forced choices among m alternatives: chance is 1 / m, and known thresholds come back."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import chat_csf, trials
from psyprobe.analysis.psychometric.posterior import default_grid
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.observers.simulated.comparing import nearest_direction, wave_of
from psyprobe.plotting import plot_psychometric
from psyprobe.probes.designs import QuestPlus, expected_interval_width
from psyprobe.probes.words.schedule import WordsProbe, orientation_4, two_interval
from psyprobe.running.task import CONTRAST_AXIS, Task, task_of

ANSWERS = ("red", "orange", "yellow", "green", "blue", "indigo", "violet", "pink")
WHICH = {
    "id": "which",
    "text": "Which image shows a pattern?",
    "suffix": "Answer with first or second.",
    "yes": ["first"],
    "no": ["second"],
}
TWO_IMAGES = {
    "probe": "two_interval",
    "stimulus": {
        "kind": "grating",
        "parameters": {"frequency": 4, "contrast": 0.1, "luminance": 40, "size": 64},
    },
    "levels": {
        "frequency": {"values": [2, 8]},
        "contrast": {"from": 0.001, "to": 1, "n": 6, "scale": "log"},
    },
    "asking": {"readout": "text", "temperature": 1, "prompts": [WHICH]},
    "fit": {},
}


def offer(monkeypatch: pytest.MonkeyPatch, probe: WordsProbe) -> None:
    """Register a probe as another package does, by an entry point."""
    monkeypatch.setattr("another_package.PROBE", probe, raising=False)
    entry_points = [EntryPoint(probe.name, "another_package:PROBE", "psyprobe.probes")]
    monkeypatch.setattr(
        "psyprobe.probes.entry_points",
        lambda group: entry_points if group == "psyprobe.probes" else [],
    )


@pytest.fixture(autouse=True)
def another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    monkeypatch.setitem(sys.modules, "another_package", ModuleType("another_package"))


@pytest.mark.parametrize("design", ["constant", "quest_plus"])
def test_a_probe_of_another_package_is_fitted_as_the_one_it_equals(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = load_experiment("hernandez2025").with_settings(
        TWO_IMAGES | {"asking.design": design}
    )
    offer(monkeypatch, replace(two_interval, name="choice_of_two"))
    observer = pp.load_observer("simulated:watson-malo")
    built_in, plugged_in = (
        pp.run(page.with_settings({"probe": probe}), observer, progress=False)
        for probe in ("two_interval", "choice_of_two")
    )
    assert plugged_in.attrs["probe"] == "choice_of_two" and task_of(
        plugged_in
    ) == task_of(built_in)
    expected, plugged_in_csf = (
        chat_csf(result, resamples=20) for result in (built_in, plugged_in)
    )
    np.testing.assert_allclose(plugged_in_csf["guess"], 0.5)
    assert plugged_in_csf.drop_attrs(deep=False).identical(
        expected.drop_attrs(deep=False)
    )
    labels = [plot_psychometric(csf).get_ylabel() for csf in (expected, plugged_in_csf)]
    assert labels == ["Share of correct"] * 2


def choice(alternatives: int) -> tuple[WordsProbe, Experiment]:
    """A choice among so many orientations, each with a word, at 4 cpd."""
    answers = ANSWERS[:alternatives]
    orientations = tuple(
        float(180 * place / alternatives) for place in range(alternatives)
    )
    probe = replace(
        orientation_4,
        name="colour_of_stripes",
        words=answers,
        orders=tuple(range(alternatives)),
        orientations=orientations,
    )
    prompt = {
        "id": "colour",
        "text": "Stripes of each orientation have a colour. Which?",
        "suffix": f"Answer with one of {', '.join(answers)}.",
        "yes": [answers[0]],
        "no": list(answers[1:]),
    }
    settings: dict[str, Any] = {
        "probe": probe.name,
        "asking.prompts": [prompt],
        "asking.readout": "text",
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": {"text": 24 // alternatives, "p_yes": 1},
        "levels.contrast.from": 0.004,
        "levels.contrast.to": 0.1,
        "levels.contrast.n": 8,
        "levels.frequency.values": [4],
    }
    return probe, load_experiment("orientation_csf").with_settings(settings)


def chooser(probe: WordsProbe, simulated: Any) -> Any:
    """An observer that names the orientation of what a simulated one sees, and else guesses."""

    def reply(images: list[Any], prompt: str) -> str:
        (image,) = images
        seed = int.from_bytes(hashlib.sha256(np.ascontiguousarray(image)).digest()[:8])
        random = np.random.default_rng(seed)
        visible = simulated.visible(image)
        share = visible ** (2 * np.log(19) / (0.8 * np.log(10)))
        if random.random() < share / (1 + share):
            light = np.asarray(image, dtype=np.float64)[..., 1] ** 2.2
            return probe.words[nearest_direction(wave_of(light), probe.orientations)]
        return str(random.choice(probe.words))

    return pp.observer(reply, name="chooser", bits=8)


@pytest.mark.parametrize("alternatives", [3, 8])
def test_a_choice_among_m_gives_the_threshold_back(
    alternatives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe, experiment = choice(alternatives)
    offer(monkeypatch, probe)
    simulated = pp.load_observer("simulated:watson-malo")
    result = pp.run(experiment, chooser(probe, simulated), progress=False)
    task = Task(probe.words, "correct", CONTRAST_AXIS, probe.orientations)
    assert task_of(result) == task
    table = trials(result)
    # Each alternative is the right answer equally often, and every reply is read.
    orders, counts = np.unique(table["order"], return_counts=True)
    assert (
        orders.size == alternatives
        and (counts == table.sizes["trial"] / alternatives).all()
    )
    right = np.array(probe.words)[table["order"].values.astype(int)]
    np.testing.assert_array_equal(table["response"], table["text"].values == right)
    csf = chat_csf(result, resamples=20).isel(frequency=0)
    assert float(csf["guess"][0]) == 1 / alternatives
    low, high = (float(csf[f"mean_sensitivity_{end}"]) for end in ("low", "high"))
    true = float(
        simulated.true_sensitivity(experiment.spec(frequency=4.0, contrast=0.1)).item()
    )
    assert low < true < high < 2.5 * low


@pytest.mark.parametrize("alternatives", [2, 3, 4, 8])
def test_an_adaptive_design_takes_any_number_of_alternatives(alternatives: int) -> None:
    chance = 1 / alternatives
    assert default_grid((0.001, 1.0), chance).guess.tolist() == [chance]
    contrasts = np.geomspace(0.001, 1, 31)
    random = np.random.default_rng(alternatives)
    design = QuestPlus([4], contrasts, chance=chance, stop=0, n_max=150)
    while not design.finished:
        (level,) = design.ask()
        probability = 1 / (
            1 + (0.02 / level.contrast) ** (2 * np.log(19) / (0.8 * np.log(10)))
        )
        design.tell(level, float(random.random() < chance + (1 - chance) * probability))
    estimate = design.estimate()
    assert estimate.guess == pytest.approx(chance)
    assert estimate.low[0] < -np.log10(0.02) < estimate.high[0]
    # The more alternatives, the less is won by guessing.
    width = expected_interval_width("quest_plus", 300, chance=chance)
    assert width > expected_interval_width("quest_plus", 300, chance=chance / 2)
