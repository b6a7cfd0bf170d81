"""Any level is the stimulus axis of a question in words, and one condition alone can be asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.experiment import load_experiment
from psyprobe.probes.words.prompt_variant import axis_levels

GABOR = {
    "kind": "gabor",
    "parameters": {
        "frequency": 4,
        "contrast": 0.05,
        "luminance": 40,
        "size": 64,
        "ppd": 16,
    },
}


def page(levels: dict[str, Any], **asking: Any) -> Any:
    """A page of Gabors that asks yes or no."""
    settings = {
        "stimulus": GABOR,
        "levels": levels,
        "asking.prompts": "base",
        "asking.readout": "text",
        **{f"asking.{name}": value for name, value in asking.items()},
    }
    return load_experiment("hernandez2025").with_settings(settings)


def test_one_condition_alone_is_asked() -> None:
    experiment = page({"contrast": {"from": 0.001, "to": 1, "n": 7}}, repeats=4)
    result = pp.run(experiment, "simulated:watson-malo", progress=False)
    assert result["frequency"].values.tolist() == [4.0]
    csf = chat_csf(result)
    observer = pp.load_observer("simulated:watson-malo")
    truth = float(observer.true_sensitivity(experiment.spec(contrast=0.1)).item())
    assert float(csf["sensitivity_low"].squeeze()) < truth
    assert truth < float(csf["sensitivity_high"].squeeze())


def test_the_size_of_a_pattern_is_an_axis() -> None:
    levels = {"radius": {"from": 0.05, "to": 0.6, "n": 6}}
    experiment = page(levels, axis="radius", repeats=4)
    result = pp.run(experiment, "simulated:flat", progress=False)
    assert "delivered_radius" in result and result["radius"].attrs["units"] == "degree"
    # The one condition of a page without another level.
    assert result["frequency"].values.tolist() == [4.0]
    # People's sensitivity to contrast, which the page names, says nothing of it.
    text = str(pp.score(result))
    assert "threshold (deg)" in text and "people" not in text


@pytest.mark.parametrize(
    ("probe", "prompts"),
    [
        ("yes_no", "base"),
        ("two_interval", "two_image"),
        ("orientation", "orientation"),
        ("orientation_4", "orientation_4"),
    ],
)
@pytest.mark.parametrize("axis", ["contrast", "radius", "1/phase", "luminance"])
def test_every_probe_asks_one_condition_over_any_level(
    probe: str, prompts: str, axis: str
) -> None:
    level = axis.removeprefix("1/")
    levels = {level: {"values": [0.5, 1.0]}}
    experiment = page(levels, axis=axis, prompts=prompts, repeats=1, catch=0)
    experiment = experiment.with_settings({"probe": probe, "fit.guess": 0.0})
    observer = pp.observer(lambda images, prompt: "first", name="one", bits=8)
    plan = pp.plan(experiment, observer)
    orders = {"yes_no": 1, "two_interval": 2, "orientation": 2, "orientation_4": 4}
    assert experiment.asking is not None
    wordings = len(experiment.asking.prompts)
    assert plan.questions == 2 * orders[probe] * wordings


@pytest.mark.parametrize(
    ("levels", "axis", "name", "values", "sign"),
    [
        ({"area": {"values": [0.1, 0.4]}}, "area", "radius", [0.17841, 0.35682], 1),
        (
            {"orientation": {"values": [4, 20]}},
            "1/orientation",
            "inverse_orientation",
            [0.05, 0.25],
            1,
        ),
    ],
)
def test_derived_levels_and_reciprocals(
    levels: dict[str, Any], axis: str, name: str, values: list[float], sign: int
) -> None:
    levels_on_axis = axis_levels(page(levels, axis=axis))
    assert levels_on_axis.axis.name == name and levels_on_axis.sign == sign
    np.testing.assert_allclose(levels_on_axis.values, values, rtol=1e-4)


def test_ink_darker_than_its_ground_has_its_contrast_as_a_magnitude() -> None:
    levels_on_axis = axis_levels(load_experiment("letter_contrast"))
    assert levels_on_axis.sign == -1 and levels_on_axis.values[-1] == 1.0
    observer = pp.observer(lambda images, prompt: "C", name="c", bits=8)
    from psyprobe.probes import load_probe

    schedule = load_probe("identify").plan(load_experiment("letter_contrast"), observer)
    scene = getattr(schedule, "scene")  # noqa: B009
    trial = scene.plan_trial(0.4, 0.25, 0, 3)
    assert trial.specs[0].value("contrast") == -0.25
    _, measured = scene.draw(trial, np.asarray)
    assert measured["delivered_contrast"] == pytest.approx(0.25, rel=0.05)
