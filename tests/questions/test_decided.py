"""Encoders that answer by decision stages: known efficiencies, chance, and the same bytes anyhow."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from noting import same_bytes

import psyprobe as pp
from psyprobe.analysis.efficiency.ideal_observer import (
    ideal_d_prime,
    proportion_correct,
)
from psyprobe.analysis.efficiency.scores import training_notes
from psyprobe.analysis.psychometric import fit_psychometric
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.observers.decisions.recipe import Recipe
from psyprobe.observers.decisions.training import (
    TrainedStage,
    _Features,
    _swapped_d_prime,
    extrapolated_d_prime,
)
from psyprobe.running.store import open_store
from psyprobe.running.workers import WorkerPool

PAGE = """
title = "Gabor in noise"
probe = "two_interval"
[stimulus]
kind = "gabor"
[stimulus.parameters]
frequency = 4
contrast = 0.1
radius = 0.25
luminance = 100
size = 32
ppd = 16
[noise]
density = 1e-5
[levels]
frequency = { values = [2, 4] }
contrast = { from = 0.004, to = 0.06, n = 5, scale = "log" }
[asking]
prompts = "two_image"
repeats = 40
catch = 0
seed = 3
[display]
peak = 400
"""
DENSITY = 1e-5


def write(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the page, each (old, new) text replaced."""
    text = PAGE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "noisy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def right_half(images: Any) -> Any:
    """The green of the right half of each image."""
    return images[:, :, images.shape[2] // 2 :, 1].reshape(len(images), -1)


def blind(images: Any) -> Any:
    """Features of noise alone, which the images only seed."""
    seeds = [int(np.abs(image).sum() * 1e6) % 2**32 for image in images]
    rows = [np.random.default_rng(seed).normal(size=8) for seed in seeds]
    return np.array(rows, dtype=np.float32)


def correct(result: Any) -> tuple[float, float, int]:
    """The share of right answers, that of the ideal observer, and the number of answers."""
    shares = []
    for frequency in result["frequency"].values:
        signal = (
            pp.gabor(
                frequency=frequency,
                contrast=1,
                radius=0.25,
                luminance=100,
                size=32,
                ppd=16,
            ).luminance
            / 100
            - 1
        )
        unit = ideal_d_prime(signal, DENSITY, 16)
        shares.append(proportion_correct(result["contrast"].values * unit))
    answers = result["response"].values
    return float(answers.mean()), float(np.mean(shares)), answers.size


@pytest.mark.parametrize("stage", ["ideal", "template", "lda"])
def test_the_pixels_are_as_right_as_the_ideal_observer(
    tmp_path: Path, stage: str
) -> None:
    result = pp.run(write(tmp_path), pp.decide("pixels", stage=stage, pairs=32))
    share, ideal, count = correct(result)
    assert share == pytest.approx(ideal, abs=3 * (0.25 / count) ** 0.5)


def test_half_of_the_pixels_have_half_of_the_energy(tmp_path: Path) -> None:
    half = pp.observer(right_half, name="right half", version="1")
    result = pp.run(write(tmp_path), pp.decide(half, stage="template", pairs=16))
    score = pp.score(result)
    for point in score.curve:
        assert point.efficiency is not None
        assert point.efficiency.low < 0.5 < point.efficiency.high
    assert "efficiency" in str(score)
    text = " ".join(str(score).split())
    assert "d' where stages were trained, of endless fields:" in text
    labels = [line.get_label() for line in pp.plot(result).get_lines()]
    assert "ideal observer" in labels


def test_features_of_noise_answer_by_chance_and_say_so(tmp_path: Path) -> None:
    observer = pp.decide(pp.observer(blind, name="blind", version="1"), pairs=32)
    result = pp.run(write(tmp_path), observer)
    share, _, count = correct(result)
    assert share == pytest.approx(0.5, abs=3 * (0.25 / count) ** 0.5)
    score = pp.score(result)
    assert "no contrast of the page is told apart" in str(score)


@pytest.mark.parametrize("probe", ["orientation", "orientation_4"])
def test_directions_are_named_as_often_as_the_ideal_observer_names_them(
    tmp_path: Path, probe: str
) -> None:
    page = write(
        tmp_path, ('"two_interval"', f'"{probe}"'), ('"two_image"', f'"{probe}"')
    )
    score = pp.score(pp.run(page, pp.decide("pixels", stage="template", pairs=32)))
    for point in score.curve:
        assert point.efficiency is not None
        shares = (
            point.efficiency.low,
            point.efficiency.efficiency,
            point.efficiency.high,
        )
        low, middle, high = np.log10(shares)
        # Within three standard deviations of 1: half of the interval is 1.96 of them.
        assert abs(middle) < 3 / 1.96 * (high - low) / 2


def test_a_frequency_that_cannot_be_shown_is_not_trained(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        ("values = [2, 4]", "values = [2, 9]"),
        ("repeats = 40", "repeats = 2"),
    )
    result = pp.run(page, pp.decide("pixels", stage="template", pairs=16))
    assert [stage["value"] for stage in json.loads(result.attrs["training"])] == [2]


def test_yes_has_the_rate_of_false_alarms_that_was_asked_for(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        ('"two_interval"', '"yes_no"'),
        ('"two_image"', '["base"]'),
        ("catch = 0", "catch = 0.4"),
        ("repeats = 40", "repeats = 60"),
    )
    result = pp.run(page, pp.decide("pixels", stage="template", false_alarms=0.2))
    csf = pp.analysis.words.csf.chat_csf(result)
    rate = float(csf["catch_yes"].sum() / csf["catch_trials"].sum())
    count = float(csf["catch_trials"].sum())
    # The criterion comes from 128 fields, so it has an error of its own.
    spread = (0.2 * 0.8 * (1 / count + 1 / 128)) ** 0.5
    assert rate == pytest.approx(0.2, abs=3 * spread)


def test_workers_and_resumption_give_the_same_bytes(tmp_path: Path) -> None:
    page = write(tmp_path, ("repeats = 40", "repeats = 6"))
    observer = pp.load_observer("decided:pixels?pairs=16")
    alone = pp.run(page, observer, store=tmp_path / "one.sqlite")
    with WorkerPool(2) as pool:
        assert same_bytes(alone, pp.run(page, observer, executor=pool), tmp_path)
    second = pp.run(page, observer, store=tmp_path / "one.sqlite")
    assert same_bytes(alone, second, tmp_path)


DYING = """
import os, signal, sys
import psyprobe as pp

calls = 0

def encode(images):
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return images[..., 1].reshape(len(images), -1)

encoder = pp.observer(encode, name="dying", version="1")
pp.run(sys.argv[1], pp.decide(encoder, pairs=16), store=sys.argv[2])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_run_killed_in_training_and_after_goes_on_to_the_same_bytes(
    tmp_path: Path,
) -> None:
    page = write(tmp_path, ("repeats = 40", "repeats = 4"))
    calls = 0

    def encode(images: Any) -> Any:
        nonlocal calls
        calls += 1
        return images[..., 1].reshape(len(images), -1)

    observer = pp.decide(pp.observer(encode, name="dying", version="1"), pairs=16)
    uninterrupted = pp.run(page, observer)
    trials = 2 * 5 * 4
    training = calls - trials
    store = tmp_path / "killed.sqlite"
    # In the second stage's training, which is done anew, and in trials.
    for moment in (training * 3 // 4, training // 2 + trials // 2):
        killed = subprocess.run(
            [sys.executable, "-c", DYING, page, store, str(moment)],
            check=False,
            timeout=120,
        )
        assert killed.returncode == -signal.SIGKILL
    calls = 0
    resumed = pp.run(page, observer, store=store)
    assert 0 < calls <= trials
    assert same_bytes(uninterrupted, resumed, tmp_path)


def test_no_trial_shows_a_field_of_noise_that_trained_a_stage(tmp_path: Path) -> None:
    """Images without a signal are their field of noise, so none may be in both."""
    trial_images: set[str] = set()
    training_images: set[str] = set()

    def right_half_noting(images: Any) -> Any:
        # A trial shows two images, and training many.
        digests = trial_images if len(images) == 2 else training_images
        digests.update(hashlib.sha256(image.tobytes()).hexdigest() for image in images)
        return right_half(images)

    observer = pp.decide(
        pp.observer(right_half_noting, name="seen", version="1"), pairs=16
    )
    pp.run(write(tmp_path, ("repeats = 40", "repeats = 8")), observer)
    # Two frequencies at five contrasts, eight times, each time in fresh noise.
    assert len(trial_images) >= 2 * 5 * 8 * 2
    # Fields without a signal are common to both frequencies.
    assert len(training_images) >= 16
    assert not trial_images & training_images


def test_a_stage_is_stored_and_trained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write(tmp_path, ("repeats = 40", "repeats = 6"))
    store = tmp_path / "one.sqlite"
    pp.run(page, pp.decide("pixels", pairs=16), store=store)
    with open_store(store) as opened:
        (record,) = opened.runs()
    stages = record.outcome["training"]
    assert [stage["value"] for stage in stages] == [2, 4]
    assert all(stage["reached"] for stage in stages)
    longer_page = write(tmp_path, ("repeats = 40", "repeats = 10"))
    monkeypatch.setattr(
        "psyprobe.probes.words.training.train_stage",
        lambda *_, **__: pytest.fail("a stage was trained anew"),
    )
    pp.run(longer_page, pp.decide("pixels", pairs=16), store=store)


def test_two_intervals_have_two_fields_of_noise(tmp_path: Path) -> None:
    batches: list[Any] = []

    def right_half_noting(images: Any) -> Any:
        batches.append(np.array(images))
        return right_half(images)

    observer = pp.decide(
        pp.observer(right_half_noting, name="seen", version="1"), pairs=16
    )
    pp.run(write(tmp_path, ("repeats = 40", "repeats = 2")), observer)
    pairs = [images for images in batches if len(images) == 2]
    assert pairs
    for first, second in pairs:
        assert np.corrcoef(first[..., 1].ravel(), second[..., 1].ravel())[0, 1] < 0.5


def test_without_noise_efficiency_is_not_defined(tmp_path: Path) -> None:
    page = write(
        tmp_path, ("[noise]\ndensity = 1e-5\n", ""), ("repeats = 40", "repeats = 4")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = pp.score(pp.run(page, pp.decide("pixels", pairs=16)))
    assert "no external noise: efficiency is not defined" in str(score)
    assert all(point.efficiency is None for point in score.curve)


def test_the_plan_counts_the_images_of_training(tmp_path: Path) -> None:
    plan = pp.plan(write(tmp_path), pp.decide("pixels", pairs=16), timed=True)
    # A pilot of six contrasts, and three contrasts of which two have half of the fields; images
    # without a signal are those of both frequencies.
    assert plan.training_images == 16 + 2 * (6 * 16 + 32)
    assert f"{plan.training_images:,} images" in str(plan)


def test_a_page_says_how_stages_are_trained_and_options_count_before(
    tmp_path: Path,
) -> None:
    page = write(
        tmp_path,
        ("[levels]", '[decision]\nstage = "template"\npairs = 16\n[levels]'),
        ("repeats = 40", "repeats = 2"),
    )
    result = pp.run(page, "decided:pixels")
    assert json.loads(result.attrs["training"])[0]["learning"][-1][0] == 13
    result = pp.run(page, "decided:pixels?pairs=20")
    assert json.loads(result.attrs["training"])[0]["learning"][-1][0] == 16


def test_what_cannot_decide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a decision stage needs features"):
        pp.decide("castlecsf")
    with pytest.raises(UnknownNameError, match="decision stage 'ldo'"):
        pp.decide("pixels", stage="ldo")
    with pytest.raises(InputError, match="ask it by psyprobe run"):
        pp.decide("pixels").answer([np.full((8, 8, 3), 0.5)], "Is it there?")
    page = write(tmp_path, ("[levels]", '[decision]\nstages = "template"\n[levels]'))
    with pytest.raises(UnknownNameError, match="option of a decision 'stages'"):
        pp.run(page, "decided:pixels")


def test_a_trained_stage_survives_json() -> None:
    from psyprobe.observers.decisions.stages import Stage

    trained = TrainedStage(
        Stage(np.array([[0.1, -2.5e-7]]), np.array([0.3])),
        0.25,
        (0.01, 0.015),
        learning=((32, 1.5), (64, 1.7)),
    )
    back = TrainedStage.from_dict(json.loads(json.dumps(trained.to_dict())))
    assert np.array_equal(back.stage.weights, trained.stage.weights)
    assert back.to_dict() == trained.to_dict()


def test_a_stage_that_training_limits_says_at_least() -> None:
    stage = {"value": 4.0, "reached": True, "swapped": [0.0, 0.1]}
    limited = {**stage, "learning": [[32, 0.5], [128, 0.9]], "endless_d_prime": None}
    ample = {**stage, "learning": [[32, 1.8], [128, 1.9]], "endless_d_prime": 1.93}
    attributes = {"training": json.dumps([limited, {**ample, "value": 8.0}])}
    notes = training_notes(xr.Dataset(attrs=attributes))
    assert any(
        "training-limited: at least 0.90 at 4, 1.93 at 8" in note for note in notes
    )


def test_a_fall_of_three_errors_towards_higher_contrast_has_no_threshold() -> None:
    """Right answers that rise and fall again are told as no threshold."""
    contrast = np.geomspace(0.01, 0.3, 6)
    trials = np.full(6, 80)
    right = np.array([42, 50, 66, 76, 76, 76])
    rising = fit_psychometric(contrast, right, trials, guess=0.5)
    assert rising.status == "ok"
    # 60 of 80 after 76 of 80: a difference of 3.7 errors.
    falling = fit_psychometric(contrast, [*right[:-1].tolist(), 60], trials, guess=0.5)
    assert falling.status == "non_monotone"
    assert np.isnan(falling.threshold)


SMALL = {"stimulus.parameters.size": 64, "stimulus.parameters.ppd": 16}
#: Pages of tasks, at a few levels of a small image.
TASKS: dict[str, dict[str, Any]] = {
    "contrast_discrimination": {"levels.contrast.values": [0.05], **SMALL},
    "landolt_4": {"levels.logmar.values": [0.3, 0.6]},
}


def test_labels_are_swapped_sixty_times_by_chance() -> None:
    signals, blanks = np.random.default_rng(4).normal(size=(2, 40, 6))
    features = _Features.spanned(Recipe(), signals[None], blanks)
    mean, error = _swapped_d_prime(Recipe(), features)
    assert abs(mean) < 3 * error
    # A single swap scatters by about 0.3 with eight held-out fields.
    assert error < 0.055


@pytest.mark.parametrize("name", TASKS)
def test_pages_of_each_task_are_answered(name: str) -> None:
    page = pp.load_experiment(name).with_settings(
        {
            "asking.design": "constant",
            "asking.options": {},
            "asking.repeats": 1,
            **TASKS[name],
        }
    )
    result = pp.run(page, pp.decide("pixels", stage="template", pairs=16))
    assert np.isfinite(result["response"].values.astype(float)).any()


def test_endless_training_is_told_only_near_it() -> None:
    truth = [(n, 2 / (1 + 20 / n) ** 0.5) for n in (64, 128, 256)]
    assert extrapolated_d_prime(truth) == pytest.approx(2)
    assert extrapolated_d_prime([(32, 1.2), (64, 1.1), (128, 1.1)]) == 1.1
    assert extrapolated_d_prime([(32, 0.5), (64, 0.7), (128, 0.9)]) is None


def test_a_trial_is_asked_in_one_order_drawn_by_its_seed(tmp_path: Path) -> None:
    """The same images in the other order would be the same answer of a stage, counted twice."""
    batches: list[Any] = []

    def right_half_noting(images: Any) -> Any:
        batches.append(np.array(images))
        return right_half(images)

    # Without external noise both orders would show the same images.
    page = write(
        tmp_path, ("density = 1e-5", "density = 0"), ("repeats = 40", "repeats = 8")
    )
    observer = pp.decide(
        pp.observer(right_half_noting, name="seen", version="1"), pairs=16
    )
    assert pp.plan(page, observer).questions == 2 * 5 * 8
    result = pp.run(page, observer)
    assert result["response"].size == 2 * 5 * 8
    assert set(result["order"].values.ravel().tolist()) == {0, 1}
    second = pp.run(page, observer, store=tmp_path / "again.sqlite")
    assert (second["order"].values == result["order"].values).all()
