"""Random dots move as they should under each algorithm, and the certificate measures it in the
frames."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus import Dots, specification_from_dict
from psyprobe.stimulus.kinds.dots import ALGORITHMS
from psyprobe.stimulus.measuring import certify
from psyprobe.testing import assert_calibrated, strategies

#: Steps of 4 px to the right and 3 up.
VALUES: dict[str, Any] = {
    "contrast": 0.5,
    "speed": 7.5,
    "heading": float(np.degrees(np.arctan2(3, 4))),
    "radius": 0.05,
    "density": 8.0,
    "ppd": 40.0,
    "size": 96,
    "frames": 24,
}


def correlation(frames: FloatArray, lag: int) -> FloatArray:
    """Circular cross-correlation of frames with those `lag` later, 1 where they are equal."""
    spectra = np.fft.fft2(frames - frames.mean(axis=(1, 2), keepdims=True))
    cross = (spectra[:-lag].conj() * spectra[lag:]).mean(axis=0)
    return np.asarray(
        np.fft.ifft2(cross).real
        / np.fft.ifft2(np.abs(spectra) ** 2).real[:, 0, 0].mean()
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_frames_repeat_at_the_step_of_the_signal(name: str) -> None:
    clip = Dots(coherence=0.6, algorithm=name, **VALUES)
    sets = ALGORITHMS[name].sets
    matches = correlation(np.asarray(clip.draw().luminance), sets)
    row, column = np.unravel_index(matches.argmax(), matches.shape)
    assert column == pytest.approx(4 * sets, abs=1)
    assert 96 - row == pytest.approx(3 * sets, abs=1)
    certificate = clip.measure()
    assert certificate.passed
    assert certificate["speed"].delivered == pytest.approx(7.5, rel=0.01)
    assert certificate["heading"].delivered == pytest.approx(VALUES["heading"], abs=1)
    assert certificate["coherence"].delivered == pytest.approx(0.6, abs=0.05)


def test_whole_coherence_moves_the_image_and_changes_nothing_else() -> None:
    frames = np.asarray(Dots(coherence=1.0, **VALUES).draw().luminance)
    for frame, later in pairwise(frames):
        np.testing.assert_allclose(np.roll(frame, (-3, 4), (0, 1)), later, atol=1e-9)


def test_a_lifetime_ends_as_many_dots_as_it_says() -> None:
    certificate = Dots(coherence=1.0, lifetime=4, **VALUES).measure()
    assert certificate["coherence"].requested == pytest.approx(0.75)
    assert certificate["coherence"].delivered == pytest.approx(0.75, abs=0.03)
    assert Dots(coherence=1.0, lifetime=1, **VALUES).measure().passed
    display = pp.Display(peak=400)
    assert Dots(coherence=0.4, **VALUES).measure(display).passed


def places(name: str, coherence: float = 0.0) -> FloatArray:
    """Places of the dots in frames, px, (T, n), complex."""
    clip = Dots(coherence=coherence, algorithm=name, **VALUES)
    layouts = [frame.layout() for frame in clip.stills(0, clip.frames).singles()]
    x, y, _ = np.moveaxis(np.array(layouts), -1, 0) * 40
    return np.asarray(x + 1j * y)


def steps(tracks: FloatArray, lag: int = 1) -> FloatArray:
    """Steps of the dots over edges of the field that meet, px, complex."""
    change = tracks[lag:] - tracks[:-lag]
    wrapped = (np.stack([change.real, change.imag]) + 48) % 96 - 48
    return np.asarray(wrapped[0] + 1j * wrapped[1])


def test_noise_dots_do_what_their_algorithm_says() -> None:
    anywhere = steps(places("white_noise"))
    assert np.abs(anywhere).mean() == pytest.approx(96 * 0.3826, rel=0.05)
    for name in ("brownian", "direction_same"):
        step = steps(places(name))
        np.testing.assert_allclose(np.abs(step), 5.0, atol=1e-9)
        assert abs(step.mean()) < 1.0
    turns = np.angle(steps(places("brownian")))
    assert np.ptp(turns, axis=0).min() > 1
    turns = np.angle(steps(places("direction_same")))
    assert np.ptp(turns, axis=0).max() < 1e-9


def test_signal_dots_are_the_same_or_drawn_anew() -> None:
    for name, keeps_dots in (("position_same", True), ("white_noise", False)):
        signal = np.abs(steps(places(name, 0.5)) - (4 + 3j)) < 1e-9
        assert signal.mean() == pytest.approx(0.5, abs=0.01)
        always = signal.all(axis=0)
        assert always.mean() == (pytest.approx(0.5, abs=0.02) if keeps_dots else 0)


def test_a_seed_is_the_same_dots_in_every_batch_and_chunk() -> None:
    clip = Dots(coherence=[0.2, 0.8], **VALUES)
    luminance = np.asarray(clip.draw().luminance)
    chunks = np.concatenate([np.asarray(c.luminance) for c in clip.chunks(7)], axis=1)
    np.testing.assert_array_equal(chunks, luminance)
    single = list(clip.singles())[1]
    np.testing.assert_array_equal(np.asarray(single.draw().luminance), luminance[1])
    assert specification_from_dict(clip.to_dict()) == clip
    assert single.reference().draw().pixels.std() == 0


@pytest.mark.parametrize(
    ("values", "quantity"),
    [
        ({"coherence": 0.5}, "coherence"),
        ({"speed": 7.2}, "speed"),
        ({"heading": 42.0}, "heading"),
        ({"density": 7.0}, "dot density"),
    ],
)
def test_other_motion_than_was_asked_for_is_noticed(
    values: dict[str, float], quantity: str
) -> None:
    spec = Dots(**(VALUES | {"coherence": 0.8}))
    image = spec.changed(**values).draw().luminance
    certificate = certify(image, "luminance", spec)
    assert not certificate[quantity].passed
    if quantity != "dot density":
        delivered = certificate[quantity].delivered
        assert delivered == pytest.approx(values[quantity], rel=0.05)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"algorithm": "newsome"}, "unknown algorithm 'newsome'"),
        ({"coherence": 1.5}, "coherence is 1.5; it must be >= 0 and <= 1"),
        ({"radius": 0.01}, r"standard deviation of a pixel \(0.025 deg\) or more"),
        ({"lifetime": 2.5}, "a lifetime is a whole number"),
    ],
)
def test_dots_that_cannot_be_are_one_sentence(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        pp.dots(**(VALUES | values))


@settings(max_examples=15)
@given(strategies.kinematograms())
def test_every_clip_of_dots_is_calibrated(spec: Dots) -> None:
    assert_calibrated(spec.draw())
