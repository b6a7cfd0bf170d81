"""Clips by decision stages: frames of pixels, their mean, and observers that take clips whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import psyprobe as pp
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.observers.decisions.observer import DrawnClips


def page(**settings: Any) -> Experiment:
    """Return a short drift of one cycle in eight frames, dithered to 8 bits."""
    return pp.load_experiment("temporal_drift").with_settings(
        {
            "stimulus": {
                "kind": "drift",
                "parameters": {
                    "frequency": 2,
                    "temporal_frequency": 2,
                    "contrast": 0.1,
                    "radius": 0.25,
                    "luminance": 100,
                    "size": 16,
                    "ppd": 16,
                    "fps": 16,
                    "frames": 8,
                },
            },
            "levels.temporal_frequency.values": [2],
            "levels.contrast": {"from": 0.00001, "to": 0.02, "n": 3, "scale": "log"},
            "asking.design": "constant",
            "asking.options": {},
            "asking.repeats": 20,
            "asking.catch": 0,
            "delivery.bits": 8,
            "delivery.refuse": False,
            **settings,
        }
    )


def shares(observer: Any, experiment: Experiment) -> list[float]:
    """Return shares of right answers by contrast."""
    result: xr.Dataset = pp.run(experiment, observer)
    means = result["response"].mean(["prompt", "repeat"])
    return [float(share) for share in means.values.ravel()]


def test_all_frames_tell_a_drift_and_their_mean_does_not() -> None:
    """A wave that moves by whole cycles is even light on average."""
    frames = shares(pp.decide("pixels", stage="template", pairs=16), page())
    assert frames[-1] > 0.95
    assert frames[0] <= 0.8
    mean = pp.decide("pixels", stage="template", pairs=16, feature="pixels:mean")
    assert shares(mean, page())[-1] < 0.7


def test_an_observer_of_clips_is_shown_them_whole_with_their_pace() -> None:
    paces = set()

    def change(clips: Any, fps: float) -> Any:
        paces.add((clips.shape[1:], fps))
        return np.diff(clips[..., 0], axis=1).reshape(len(clips), -1)

    moving = pp.observer(change, clips=True, name="change", version="1")
    correct_shares = shares(pp.decide(moving, stage="template", pairs=16), page())
    assert correct_shares[-1] > 0.95
    assert paces == {((8, 16, 16, 3), 16.0)}


def test_films_without_noise_are_encoded_once_a_contrast() -> None:
    calls = 0

    def encode(images: Any) -> Any:
        nonlocal calls
        calls += 1
        return images[..., 1].reshape(len(images), -1)

    observer = pp.decide(
        pp.observer(encode, name="counted", version="1"), stage="template", pairs=16
    )
    experiment = page(**{"asking.repeats": 2, "delivery.bits": "float"})
    planned = pp.plan(experiment, observer)
    pp.run(experiment, observer)
    trials = 3 * 2
    assert 4 <= calls - trials <= 2 * planned.training_images


def test_who_cannot_decide_on_clips_or_stills_is_told_why() -> None:
    moving = pp.observer(
        lambda clips: clips.mean(axis=(1, 2, 3)), clips=True, name="m", version="1"
    )
    with pytest.raises(InputError, match=r"takes clips .* was given still images"):
        pp.run("gabor_in_noise", pp.decide(moving, pairs=16))
    with pytest.raises(InputError, match="does not ask for a still grey pattern"):
        pp.run(page(), pp.decide("pixels", train="natural", pairs=16))
    with pytest.raises(InputError, match="pixels:means"):
        pp.run(page(), pp.decide("pixels", feature="pixels:means", pairs=16))


def test_the_ideal_stage_knows_the_film() -> None:
    assert shares(pp.decide("pixels", stage="ideal"), page())[-1] > 0.95


def test_drawn_clips_give_frames_of_all() -> None:
    clips = DrawnClips(np.arange(48.0).reshape(2, 4, 2, 1, 3), fps=30)
    assert clips.shape == (2, 4, 2, 1, 3)
    assert clips.frames(1, 3).shape == (2, 2, 2, 1, 3)
