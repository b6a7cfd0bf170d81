"""Clips put to observers: whole, frame by frame, streamed; and what comes back over temporal
frequency."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.analysis.distance import MEASURES, distances
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.experiment import load_experiment
from psyprobe.human import castle_csf
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.protocol import Card
from psyprobe.probes.clips import DisplayedClips, clip_answers
from psyprobe.stimulus import Counterphase, Drift, Flicker
from psyprobe.stimulus.catalogue import catalogue_names

ROOT = Path(__file__).resolve().parents[2]

PAGE = """
title = "Clips"
stimulus.kind = "{kind}"
stimulus.parameters = {{ {shape}, contrast = 0.1, temporal_frequency = 4, size = {size}, {clip} }}
probe = "detection"
[levels]
temporal_frequency = {{ values = {levels} }}
contrast = {{ values = {contrasts} }}
[human]
model = "castle_csf"
[score]
multiplier = {{ from = 0.5, to = 2, n = {n}, scale = "log" }}
[display]
peak = 400
eotf = "{eotf}"
"""
#: The clip of the reference page: 4 cpd, radius 0.2, 30 frames at 60 Hz.
USUAL = {
    "kind": "drift",
    "shape": "frequency = 4, radius = 0.2, luminance = 100",
    "size": 64,
    "clip": "frames = 30",
    "levels": [1, 2, 4, 8, 16, 24],
    "contrasts": [0.02, 0.2],
    "n": 10,
    "eotf": "srgb",
}


def page(folder: Path, name: str = "clips", **changes: Any) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(PAGE.format(**{**USUAL, **changes}), encoding="utf-8")
    return path


def ran(path: Path, observer: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        return pp.run(path, observer, progress=False, **options)


@pytest.fixture(scope="module")
def of_pixels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ran(page(tmp_path_factory.mktemp("pixels")), "pixels")


def test_pixels_have_the_alignment_of_the_reference_page(of_pixels: Any) -> None:
    score = pp.score(of_pixels, layer="pixels")
    assert score.score.alignment.value == pytest.approx(0.584, abs=5e-4)
    assert score.contrast.alignment.value == pytest.approx(0.584, abs=5e-4)
    sensitivity = of_pixels["human_sensitivity"].values
    model = castle_csf(
        4.0,
        temporal_frequency=np.array(USUAL["levels"]),
        luminance=100,
        area=np.pi * 0.04,
        direction="achromatic",
    )
    np.testing.assert_allclose(sensitivity, model, rtol=1e-12)
    log = -np.log10(sensitivity)
    assert (log.std(), np.ptp(log)) == pytest.approx((0.28, 0.79), abs=0.005)


def test_the_result_says_how_it_was_shown(of_pixels: Any, tmp_path: Path) -> None:
    assert (of_pixels.attrs["fps"], of_pixels.attrs["frames"]) == ("60.0", "30")
    assert of_pixels["layer"].values.tolist() == ["pixels", "pixels:mean"]
    with pytest.warns(
        ConditionWarning,
        match="temporal_frequency 1 Hz makes no whole number of cycles in 0.5 s",
    ):
        pp.run(page(tmp_path), "pixels", progress=False, score_only=True)


def test_the_frame_rate_is_part_of_what_is_asked(tmp_path: Path) -> None:
    experiment, store = page(tmp_path, levels=[4, 8], n=2), tmp_path / "store"
    ran(experiment, "pixels", store=store)
    assert (
        pp.plan(experiment, "pixels", store=store).answered
        == pp.plan(experiment, "pixels", store=store).questions
    )
    other = page(tmp_path, "faster", levels=[4, 8], n=2, clip="frames = 30, fps = 120")
    assert pp.plan(other, "pixels", store=store).answered == 0
    for observer in ("pixels", pp.observer(truth, clips=True)):
        timed_plan = pp.plan(experiment, observer, timed=True)
        assert (
            "distinct clips of 30 frames of 64 x 64 px" in str(timed_plan)
            and timed_plan.seconds
            and timed_plan.seconds > 0
        )
        # A run stores its answers batch by batch.
        assert timed_plan.batch_size == 8 and timed_plan.batches == -(
            -timed_plan.questions // 8
        )


def test_beside_an_accelerator_clips_are_shown_alike(tmp_path: Path) -> None:
    experiment, on_cpu, elsewhere = (
        page(tmp_path, levels=[4, 8], n=2),
        *(pp.observer(flat) for _ in range(2)),
    )
    elsewhere.card = dataclasses.replace(on_cpu.card, device="cuda:0")
    results = [
        pp.run(experiment, observer, batch_size=2, score_only=True, progress=False)
        for observer in (on_cpu, elsewhere)
    ]
    np.testing.assert_allclose(
        results[0]["scored_response_angular"],
        results[1]["scored_response_angular"],
        rtol=1e-12,
    )


def flat(clips: Any) -> Any:
    return clips.reshape(len(clips), -1)


@pytest.mark.parametrize("direction", ["achromatic", "red_green"])
def test_whole_clips_and_frames_give_the_same_angles(direction: str) -> None:
    """A function on clips that is the clip itself, against pixels frame by frame, for every way of
    cutting."""
    tests = [
        Drift(
            frequency=4,
            contrast=c,
            temporal_frequency=f,
            radius=0.2,
            size=32,
            frames=9,
            direction=direction,
        )
        for c, f in ((0.02, 4.0), (0.05, 4.0), (0.05, 11.0))
    ] + [
        Flicker(
            contrast=0.05,
            temporal_frequency=7.0,
            radius=0.2,
            edge=0.1,
            size=32,
            frames=9,
            direction=direction,
        )
    ]
    references = [tests[0].reference()]
    display, rows = Display(), [0, 0, 0, 0]
    values_by_observer = []
    for observer, at_once in (
        (load_observer("pixels"), 1),
        (load_observer("pixels"), 8),
        (load_observer("pixels"), 500),
        (pp.observer(flat, clips=True), 1),
        (pp.observer(flat, clips=True), 500),
    ):
        clips = (
            DisplayedClips(tuple(stimuli), display, observer.card)
            for stimuli in (tests, references)
        )
        answers = clip_answers(observer, *clips, rows, MEASURES, at_once)
        values_by_observer.append(np.array([answer["values"][0] for answer in answers]))
        assert all(answer["lengths"][0][2] > 0 for answer in answers)
    for other in values_by_observer[1:]:
        np.testing.assert_allclose(other, values_by_observer[0], rtol=1e-9)
    # Against the numbers themselves.
    drives = [
        np.asarray(display.encode(stimulus.draw()), dtype=np.float64).reshape(1, -1)
        for stimulus in (*tests, *references)
    ]
    for values, drive in zip(values_by_observer[0], drives, strict=False):
        expected = distances(drive, drives[-1])
        np.testing.assert_allclose(
            values, [expected[name][0] for name in MEASURES], rtol=1e-9
        )


def test_an_encoder_of_images_sees_every_frame_and_their_mean() -> None:
    def corner(images: Any) -> Any:
        return np.stack(
            [
                images.mean(axis=(1, 2, 3)),
                (images**2).mean(axis=(1, 2, 3)),
                images[:, 3, 5, 0],
            ],
            axis=1,
        )

    observer = pp.observer(corner)
    tests = [
        Counterphase(
            frequency=4,
            contrast=0.3,
            temporal_frequency=5,
            radius=0.2,
            size=16,
            frames=12,
        )
    ]
    display = Display()
    clips = (
        DisplayedClips((clip,), display, observer.card)
        for clip in (tests[0], tests[0].reference())
    )
    (answer,) = clip_answers(observer, *clips, [0], MEASURES, 5)
    target, other = (
        np.asarray(corner(np.asarray(display.encode(clip.draw()))), dtype=np.float64)
        for clip in (tests[0], tests[0].reference())
    )
    for layer, (a, b) in enumerate(
        ((target.ravel(), other.ravel()), (target.mean(axis=0), other.mean(axis=0)))
    ):
        expected = distances(a, b)
        np.testing.assert_allclose(
            answer["values"][layer],
            [expected[name] for name in MEASURES],
            rtol=1e-6,
            atol=1e-12,
        )
        assert answer["lengths"][layer][0] == pytest.approx(np.linalg.norm(a), rel=1e-6)


def test_a_module_gets_clips_as_tensors_and_a_function_its_frame_rate() -> None:
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
    shapes: list[Any] = []

    class Video(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, clips: Any) -> Any:
            shapes.append(tuple(clips.shape))
            return self.weight * clips.mean(dim=(3, 4)).flatten(1)

    spec = Flicker(contrast=0.5, temporal_frequency=10, radius=0.3, size=16, frames=6)
    observer = pp.observer(
        Video(), clips=True, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)
    )
    reloaded = pp.observer(
        Video(), clips=True, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)
    )
    assert (
        observer.card.clips
        and observer.card.weights_digest
        and observer.card.digest == reloaded.card.digest
    )
    features = observer.clip_features(
        DisplayedClips((spec,), Display(), observer.card)
    )["output"]
    drive = np.asarray(Display().encode(spec.draw())).mean(axis=(1, 2)).T.ravel()
    assert shapes == [(1, 3, 6, 16, 16)]
    np.testing.assert_allclose(features[0], 2 * (drive - 0.5) / 0.25, rtol=1e-4)

    def length(clips: Any, fps: float) -> Any:
        return np.full((len(clips), 1), clips.shape[1] / fps)

    timed = pp.observer(length, clips=True)
    assert timed.card.ability == "features"
    assert timed.clip_features(DisplayedClips((spec,), Display(), timed.card))[
        "output"
    ].tolist() == [[0.1]]
    with pytest.raises(InputError, match=r"takes clips .* and was given still images"):
        timed.features(np.zeros((1, 8, 8, 3)))
    with pytest.raises(
        InputError, match="takes no option 'layers'; it takes mean, std, device"
    ):
        pp.observer(Video(), clips=True, layers="all")
    assert Card.from_dict(observer.card.to_dict()) == observer.card


def truth(test: Any, reference: Any, ppd: float, fps: float) -> Any:
    """An observer of castleCSF's thresholds: contrast at the temporal frequency that a clip holds,
    over threshold."""
    frames = test.shape[1]
    modulation = test[..., 0].astype(np.float64) / reference[..., 0] - 1
    spectrum = np.fft.rfft(modulation, axis=1) / frames
    bins = np.fft.rfftfreq(frames, 1 / fps)
    power = (np.abs(spectrum) ** 2).sum(axis=(2, 3))[:, 1:]
    frequency = bins[1:][power.argmax(axis=1)]
    contrast = 2 * np.abs(spectrum).max(axis=(1, 2, 3))
    people = castle_csf(
        4.0,
        temporal_frequency=frequency,
        luminance=100,
        area=np.pi * 0.04,
        direction="achromatic",
    )
    strength = np.asarray(contrast * people)
    return strength / (1 + strength)


def test_a_truth_that_was_put_in_comes_back(tmp_path: Path) -> None:
    """castleCSF's own thresholds: the attainable alignment, its band-pass ratio, and level and
    shape of the curve."""
    changes = {"clip": "frames = 60", "contrasts": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]}
    result = ran(page(tmp_path, **changes), pp.observer(truth, clips=True))
    score = pp.score(result, over="levels").score
    assert (
        score.alignment.value > 0.9945
        and score.alignment.attainable == pytest.approx(0.995, abs=5e-4)
    )
    assert score.alignment.low <= score.alignment.attainable <= score.alignment.high
    # Interpolated between contrasts half a log10 unit apart.
    assert score.shape.shape_rmse < 0.01 and score.absolute.rmse < 0.05
    people = castle_csf(
        4.0,
        temporal_frequency=[8.0, 1.0],
        luminance=100,
        area=np.pi * 0.04,
        direction="achromatic",
    )
    human = result["human_sensitivity"].sel(
        scored_temporal_frequency=[8, 1], method="nearest"
    )
    assert human[0] / human[1] == pytest.approx(people[0] / people[1], rel=1e-12)
    at = result["response_difference"].isel(contrast=0).sel(temporal_frequency=[8, 1])
    small = at.values.ravel()
    assert small[0] / small[1] == pytest.approx(people[0] / people[1], rel=0.05)


def test_pixels_cannot_tell_time(tmp_path: Path) -> None:
    """On a linear display: 1 at all frequencies, and the square root of 2 for drift over
    counterphase."""
    common = {
        "eotf": "linear",
        "levels": [1, 4, 8],
        "n": 2,
        "clip": "frames = 60",
        "contrasts": [0.05, 0.2],
    }
    drift = ran(page(tmp_path, "drift", **common), "pixels")
    reversing = ran(
        page(tmp_path, "reversing", **common, kind="counterphase"), "pixels"
    )
    pixel_result = drift.sel(layer="pixels")
    for name in ("response_l2", "pixels_response_l2"):
        response = pixel_result[name].transpose("temporal_frequency", ...)
        np.testing.assert_allclose(response / response[0], 1.0, rtol=2e-5)
    ratio = (drift["response_l2"] / reversing["response_l2"]).sel(
        temporal_frequency=8, layer="pixels"
    )
    # 1 / 0.70714, as the page measured on pixels: the envelope is sampled.
    assert ratio.median() == pytest.approx(1 / 0.70714, rel=1e-5)


# 1 - JOD / 10 of contrast 0.1, 4 cpd, radius 0.2, 64 px, as the reference page has them.
@pytest.mark.parametrize(
    ("fps", "frequency", "response"),
    [(60, 0, 0.282), (60, 10, 0.133), (30, 14, 0.028)],
)
def test_cvvdp_reads_clips_as_video(
    fps: int, frequency: float, response: float
) -> None:
    pytest.importorskip(
        "pycvvdp", reason="the metrics extra is not installed", exc_type=ImportError
    )
    import torch

    metric = load_observer("cvvdp", device="cpu")
    spec = Counterphase(
        frequency=4,
        contrast=0.1,
        radius=0.2,
        size=64,
        temporal_frequency=frequency,
        fps=fps,
        frames=fps // 2,
    )
    display = Display()
    clips = [
        DisplayedClips((clip, clip), display, metric.card)
        for clip in (spec, spec.reference())
    ]
    responses = metric.clip_difference(*clips, ppd=60.0)
    assert responses.shape == (2,) and responses[0] == responses[1]
    assert responses[0] == pytest.approx(response, abs=6e-4)
    videos = [
        torch.from_numpy(np.moveaxis(clip.frames(0, fps // 2), -1, 1).copy()).float()
        for clip in clips
    ]
    direct = metric._metric(64, 64, 60.0).predict(
        *videos, dim_order="BCFHW", frames_per_second=fps
    )[0]
    assert responses[0] == pytest.approx(
        1 - float(direct.reshape(-1)[0]) / 10, abs=1e-6
    )


def test_a_metric_of_images_gives_the_mean_over_frames() -> None:
    metric = load_observer("castlecsf")
    spec = Counterphase(
        frequency=4, contrast=0.1, radius=0.2, size=32, temporal_frequency=4, frames=15
    )
    clips = (
        DisplayedClips((clip,), Display(), metric.card)
        for clip in (spec, spec.reference())
    )
    (answer,) = clip_answers(metric, *clips, [0], ("difference",), 4)
    light = [
        np.repeat(clip.draw().pixels[..., None], 3, axis=-1)
        for clip in (spec, spec.reference())
    ]
    expected = metric.difference(*light, ppd=60.0).mean()
    assert answer["values"][0][0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "name",
    [name for name in catalogue_names("experiments") if name.startswith("temporal")],
)
def test_the_catalogue_runs_over_temporal_frequency(name: str) -> None:
    """Each page reads, its clips hold whole cycles, and people are known at all of its levels."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clip_plan = pp.plan(name, "pixels")
    experiment = load_experiment(name)
    spec = experiment.spec()
    assert (
        clip_plan.frames == spec.frames
        and clip_plan.answered == 0
        and not clip_plan.remarks
    )
    assert (
        list(experiment.levels) == ["temporal_frequency", "contrast"]
        and spec.frames == spec.fps
    )
    assert len(experiment.score.multiplier or ()) == 10 and experiment.differences


def test_what_clips_cannot_be_asked_is_one_sentence(tmp_path: Path) -> None:
    published = page(tmp_path)
    published.write_text(
        published.read_text().replace("[score]", '[score]\nmeasure = "angular_float32"')
    )
    with pytest.raises(
        InputError, match="the published arithmetic of still images; name 'angular'"
    ):
        ran(published, "pixels")
    words = page(tmp_path, "words")
    text = words.read_text().replace('"detection"', '"yes_no"')
    words.write_text(
        text.split("[human]")[0] + '[asking]\nprompts = ["Do you see a pattern?"]\n',
        encoding="utf-8",
    )
    assert "30 frames, and no prompt tells how many come in a second" in str(
        pp.plan(words, "simulated:watson-malo")
    )
    with pytest.raises(
        InputError,
        match=r"the frames of one film .* 'frames a second', and was shown 30 images",
    ):
        ran(words, "simulated:watson-malo")


def test_one_film_can_be_asked_about(tmp_path: Path) -> None:
    words = page(tmp_path, "words")
    text = words.read_text().replace('"detection"', '"yes_no"').split("[human]")[0]
    prompt = (
        "These are {frames} frames, {fps} frames a second. Do you see a pattern? Answer "
        "with yes or no."
    )
    words.write_text(f"{text}[asking]\nprompts = [{prompt!r}]\n", encoding="utf-8")
    result = trials(pp.run(words, "simulated:castlecsf", progress=False))
    strongest = result["response"].where(
        result["contrast"] == result["contrast"].max(), drop=True
    )
    assert (
        strongest.mean()
        > 0.9
        > 0.1
        > result["response"].where(result["catch"], drop=True).mean()
    )


_CHILD = """
import sys
import numpy as np
import psyprobe as pp
from psyprobe.light.display import Display
from psyprobe.probes.clips import DisplayedClips, clip_answers
from psyprobe.stimulus import Drift
spec = Drift(frequency=4, contrast=0.2, temporal_frequency=5, frames=int(sys.argv[1]), size=224)
for who in (pp.load_observer("pixels"), pp.observer(lambda images: images.mean(axis=(1, 3)), name="rows")):
    shown = (DisplayedClips((each,), Display(), who.card) for each in (spec, spec.reference()))
    (answer,) = clip_answers(who, *shown, [0], ("angular", "l2"), 8)
    assert answer["values"][0][1] > 0
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)
def test_ten_seconds_need_no_more_memory_than_one() -> None:
    """At 60 Hz and 224 px: shown to pixels and to an encoder, frame by frame."""
    peaks = []
    for frames in (60, 600):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        arguments = [sys.executable, "-c", _CHILD, str(frames)]
        with child(
            arguments, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            out, _ = process.communicate()
        assert process.returncode == 0
        peaks.append(int(out))
    assert peaks[1] < 1.05 * peaks[0], peaks
