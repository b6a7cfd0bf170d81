"""Noise of a page: fresh in every interval, of one density for every observer."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.analysis.result_stimulus import stimulus_on
from psyprobe.errors import GamutError, InputError
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.observers import load_observer
from psyprobe.probes.experiments import plan, run
from psyprobe.probes.words.delivery import Delivery, Scene, TrialImages
from psyprobe.stimulus import ColouredNoise, Gabor, Noise, Sum, WhiteNoise

NOISE = "[noise]\ndensity = 2.78e-6\n"
PAGE = """
title = "Gabor in noise"
probe = "two_interval"
[stimulus]
kind = "gabor"
parameters = { frequency = 4, contrast = 0.1, radius = 0.5, luminance = 100 }
[levels]
frequency = { values = [2, 4] }
contrast = { values = [0.003, 0.2] }
[display]
peak = 400
[asking]
prompts = "two_image"
"""


def page(folder: Path, text: str) -> Experiment:
    path = folder / "noisy.toml"
    path.write_text(text, encoding="utf-8")
    return load_experiment(path)


def scene(**changes: Any) -> Scene:
    gabor = Gabor(frequency=4.0, contrast=0.1, radius=0.5)
    noisy = Sum(parts=(gabor, WhiteNoise(density=2.78e-6)), names=("noise",))
    values: dict[str, Any] = {
        "spec": noisy,
        "level": "frequency",
        "display": load_experiment("gabor_achromatic").display,
        "delivery": Delivery(),
        "refuse": True,
        "seed": 3,
        "intervals": 2,
        "observer": "",
    }
    return Scene(**values | changes)


def noise_of(trial: TrialImages) -> list[float]:
    """Seed of the noise of each image: that of a blank is noise alone."""
    return [
        spec.value("noise_seed" if isinstance(spec, Sum) else "seed")
        for spec in trial.specs
    ]


def test_every_image_has_noise_of_its_own() -> None:
    seeds = []
    for value in (2.0, 4.0):
        for contrast in (0.0, 0.003, 0.2):
            for repeat in range(3):
                for order in range(2):
                    trial = scene().plan_trial(value, contrast, repeat, order)
                    seeds += noise_of(trial)
                    replanned = scene().plan_trial(value, contrast, repeat, order)
                    assert replanned == trial
    # Catch trials know no level, so that both values have one.
    catches = 3 * 2 * 2
    assert len(set(seeds)) == len(seeds) - catches
    fields = {
        tuple(noise_of(scene(seed=seed).plan_trial(4.0, 0.1, 0, 0))) for seed in (1, 2)
    }
    assert len(fields) == 2


def test_two_intervals_differ_by_more_than_the_signal() -> None:
    """Before, their difference was the bare signal to 4e-14 cd/m²."""
    trial = scene().plan_trial(4.0, 0.01, 0, 0)
    first, second = (spec.draw().luminance for spec in trial.specs)
    assert (first - second).std() == pytest.approx(100 * 0.1 * np.sqrt(2), rel=0.02)


def test_a_mask_keeps_its_field_beside_fresh_noise() -> None:
    gabor = Gabor(frequency=4.0, contrast=0.1)
    mask = WhiteNoise(density=1e-6)
    band = Noise(frequency=4.0, contrast=0.05)
    spec = Sum(parts=(gabor, band, mask), names=("mask", "noise"))
    trials = [
        scene(spec=spec).plan_trial(4.0, contrast, 0, order)
        for contrast in (0.01, 0.02)
        for order in (0, 1)
    ]
    patterns = [trial.specs[trial.pattern] for trial in trials]
    assert len({spec.value("mask_seed") for spec in patterns}) == 1
    assert len({spec.value("noise_seed") for spec in patterns}) == 4


@pytest.mark.parametrize("contrast", [0.003, 0.02, 0.1])
@pytest.mark.parametrize("bits", [8, None])
def test_noise_does_not_scatter_what_arrives(contrast: float, bits: int | None) -> None:
    dither = "rpdf" if bits else "none"
    noisy = scene(delivery=Delivery(bits=bits, dither=dither))

    def halved(image: np.ndarray) -> np.ndarray:
        return image.reshape(112, 2, 112, 2, 3).mean(axis=(1, 3))

    for transform in (np.asarray, halved):
        gains = []
        for repeat in range(6):
            trial = noisy.plan_trial(4.0, contrast, repeat, repeat % 2)
            _, measured = noisy.draw(trial, transform)
            assert not measured["refused"]
            gains.append(measured["coherent_gain"])
        # The noise alone scatters the pattern by 0.0027 in contrast, nearly all of the faintest.
        limit = 1e-4 if bits is None and transform is np.asarray else 0.12
        assert np.std(gains) < limit
        assert np.mean(gains) == pytest.approx(
            0.96 if transform is halved else 1, abs=0.06
        )


def test_differences_are_measured_in_the_noise_of_their_image() -> None:
    noisy = scene(change=("contrast", "increment"))
    trial = noisy.plan_trial(4.0, 0.02, 0, 1)
    assert len(set(noise_of(trial))) == 2
    _, measured = noisy.draw(trial, np.asarray)
    assert measured["delivered_contrast"] == pytest.approx(0.02, rel=0.05)


def test_a_page_gives_the_same_density_at_every_size(tmp_path: Path) -> None:
    noisy = page(tmp_path, PAGE + NOISE)
    spec = noisy.spec()
    assert isinstance(spec, Sum)
    assert spec.part_names == ("noise",)
    for size in (224, 112, 260):
        resized = spec.changed(size=size, ppd=60 * size / 224)
        light = resized.reference().draw().luminance / 100 - 1
        density = light.var() / resized.ppd**2
        assert density == pytest.approx(2.78e-6, rel=0.05)
    pink = page(tmp_path, PAGE + NOISE + "exponent = 1.0\n").spec()
    assert isinstance(pink, Sum)
    assert isinstance(pink.parts[1], ColouredNoise)
    stored = stimulus_on(tomllib.loads(noisy.toml))
    assert stored is not None
    assert stored.spec() == spec


def test_nothing_changes_without_noise(tmp_path: Path) -> None:
    plain = page(tmp_path, PAGE)
    assert isinstance(plain.spec(), Gabor)
    assert plain.digest != page(tmp_path, PAGE + NOISE).digest


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"noise\.density"):
        page(tmp_path, PAGE + "[noise]\ndensity = -1\n")
    with pytest.raises(InputError, match=r"unknown key in \[noise\]"):
        page(tmp_path, PAGE + "[noise]\ndensity = 1e-6\ndensit = 1\n")
    with pytest.raises(InputError, match=r"more than 1\.11e-05 deg²"):
        page(tmp_path, PAGE + "[noise]\ndensity = 2e-5\n")
    uniform = PAGE.replace(
        'kind = "gabor"\nparameters = { frequency = 4, contrast = 0.1, radius = 0.5, luminance = 100 }',
        'kind = "uniform"\nparameters = { luminance = 100 }',
    )
    with pytest.raises(InputError, match=r"\[noise\] adds to still patterns"):
        page(tmp_path, uniform + NOISE)


def test_levels_that_noise_carries_out_of_the_display_are_refused_before_a_run(
    tmp_path: Path,
) -> None:
    strong = page(tmp_path, PAGE.replace("0.2]", "0.6]") + NOISE)
    observer = load_observer("simulated:watson-malo")
    with pytest.raises(
        GamutError, match=r"five standard deviations.*lower the highest"
    ):
        plan(strong, observer)
    assert plan(page(tmp_path, PAGE + NOISE), observer)


@pytest.mark.parametrize("name", ["gabor_in_noise", "orientation_in_noise"])
def test_pages_of_the_catalogue_run(name: str) -> None:
    settings = {"asking.options.n_max": 4, "levels.frequency.values": [4]}
    experiment = load_experiment(name).with_settings(settings)
    observer = load_observer("simulated:watson-malo")
    planned = plan(experiment, observer)
    assert not planned.refused
    assert not [remark for remark in planned.remarks if "same noise" in remark]
    result = run(experiment, observer)
    delivered = result["delivered_contrast"] / result["contrast"]
    assert np.asarray(delivered) == pytest.approx(1, abs=0.15)
    assert len(np.unique(result["image_seed"])) >= 1
    # Without noise people's sensitivity is another.
    assert json.loads(result.attrs["human"])["name"] == ""


def test_two_intervals_on_one_mask_of_noise_are_remarked(tmp_path: Path) -> None:
    band = "[stimulus.parts.mask]\nkind = 'noise'\nfrequency = 4\ncontrast = 0.1\n"
    shared = PAGE.replace("[levels]", band + "[levels]")
    observer = load_observer("simulated:watson-malo")
    remark = (
        "both intervals show the same noise; efficiency is not defined; give [noise]"
    )
    assert remark in plan(page(tmp_path, shared), observer).remarks
    assert remark not in plan(page(tmp_path, shared + NOISE), observer).remarks
    assert remark not in plan(page(tmp_path, PAGE), observer).remarks


#: Prompts and levels of each probe.
WORDS = {
    "yes_no": ("base", "frequency.values = [4]", "contrast.values = [0.02, 0.2]"),
    "orientation_4": (
        "orientation_4",
        "frequency.values = [4]",
        "contrast.values = [0.02, 0.2]",
    ),
    "detection": (
        "two_image",
        "frequency.values = [4]",
        "contrast.values = [0.02, 0.2]",
    ),
    "acuity": ("two_image", "frequency.values = [2, 4, 8]", "contrast.values = [0.2]"),
}


@pytest.mark.parametrize("probe", WORDS)
def test_every_probe_in_words_takes_noise(tmp_path: Path, probe: str) -> None:
    prompts, *levels = WORDS[probe]
    text = (
        PAGE.replace('"two_interval"', f'"{probe}"')
        .replace('"two_image"', f'"{prompts}"\nrepeats = 1\nreadout = "text"')
        .replace("frequency = { values = [2, 4] }", levels[0])
        .replace("contrast = { values = [0.003, 0.2] }", levels[1])
    )
    result = run(page(tmp_path, text + NOISE), load_observer("simulated:watson-malo"))
    assert bool(result["was_shown"].all())
    # Contrast of everything in the image: noise of 0.1, times the square root of two.
    assert float(result["total_contrast"].min()) > 0.13
    if "catch_total_contrast" in result:
        catches = result["catch_total_contrast"]
        assert np.asarray(catches) == pytest.approx(0.1414, rel=0.03)
        assert (result["catch_delivered_contrast"] == 0).all()


def test_an_encoder_sees_one_field_or_the_mean_over_several(tmp_path: Path) -> None:
    variants = "[variants]\nnoise_seed = [0, 1, 2]\n"
    text = PAGE.replace('"two_interval"', '"detection"') + variants + NOISE
    seeds = [
        variant.spec().value("noise_seed")
        for variant in page(tmp_path, text).expanded()
    ]
    assert seeds == [0, 1, 2]
