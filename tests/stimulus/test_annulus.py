"""Noise in an annulus: the components of the laboratory's generator, exact contrast, one pattern at
all resolutions."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.errors import InputError
from psyprobe.stimulus import AnnulusNoise, Gabor, Sum, Uniform
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.testing import (
    assert_batch_equals_loop,
    assert_calibrated,
    assert_reproducible,
)


def amplitudes(light: Any) -> np.ndarray:
    return np.asarray(np.abs(np.fft.fft2(light - light.mean())))


def sinusoid_contrast(light: Any) -> float:
    return float(np.sqrt(2) * light.std() / light.mean())


def test_components_are_those_of_the_oracle(oracle_data: Path) -> None:
    with (oracle_data / "chat_csf" / "noise_band_oracle.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        octave = {"low": 1 / np.sqrt(2), "high": np.sqrt(2)}
        band = {} if row["band"].startswith("lab") else octave
        light = (
            AnnulusNoise(frequency=float(row["f0_cpd"]), contrast=0.1, seed=3, **band)
            .draw()
            .luminance
        )
        spectrum = amplitudes(light)
        components = spectrum[spectrum > 1e-9 * spectrum.max()]
        expected = next(
            int(value) for key, value in row.items() if key.startswith("n_fft")
        )
        assert components.size == expected, row
        assert components.std() / components.mean() < 1e-12
    assert len(rows) == 24


@given(
    st.floats(4.0, 30.0),
    st.floats(1e-4, 0.2),
    st.integers(0, 2**32 - 1),
    st.sampled_from([(64, 64), (63, 64), (64, 63), (33, 33), (48, 96)]),
    st.sampled_from([0.0, 0.3]),
)
def test_contrast_and_mean_are_exact(
    f: float, c: float, seed: int, size: tuple[int, int], window: float
) -> None:
    spec = AnnulusNoise(frequency=f, contrast=c, seed=seed, size=size, window=window)
    try:
        light = spec.draw().luminance
    except InputError as error:
        assert "negative light" in str(error)
        return
    assert light.shape == size
    assert abs(sinusoid_contrast(light) - c) < 1e-12
    assert light.mean() == pytest.approx(40.0, rel=1e-13)


@pytest.mark.parametrize("frequency", [1.0, 4.0, 16.0, 30.0])
def test_nothing_outside_the_ring(frequency: float) -> None:
    spectrum = amplitudes(
        AnnulusNoise(frequency=frequency, contrast=0.1).draw().luminance
    )
    radius = np.hypot(np.fft.fftfreq(256)[:, None], np.fft.fftfreq(256)) * 64
    inside = (radius > 0.75 * frequency) & (radius < 1.25 * frequency)
    assert spectrum[~inside].max() < 1e-12 * spectrum.max()


def test_catch_trial_is_exactly_uniform() -> None:
    light = AnnulusNoise(frequency=4.0, contrast=0.0).draw().luminance
    assert (light == 40.0).all()


def test_one_seed_is_one_pattern_at_every_resolution() -> None:
    coarse = (
        AnnulusNoise(frequency=8.0, contrast=0.1, seed=5, ppd=56, size=224)
        .draw()
        .luminance
    )
    fine = (
        AnnulusNoise(frequency=8.0, contrast=0.1, seed=5, ppd=168, size=672)
        .draw()
        .luminance
    )
    # Three times as fine: every coarse pixel's centre is that of a fine one.
    assert np.abs(fine[1::3, 1::3] - coarse).max() < 1e-11


def test_window_multiplies_the_noise() -> None:
    plain, windowed = (
        AnnulusNoise(frequency=8.0, contrast=0.02, window=w, seed=1).draw().luminance
        / 40
        - 1
        for w in (0.0, 1.0)
    )
    centre = (slice(112, 144), slice(112, 144))
    # The window's own RMS over 4 deg is sqrt(pi/2)/4 = 0.3133: the centre gains what the surround
    # loses.
    assert windowed[centre].std() / plain[centre].std() == pytest.approx(
        3.192, rel=0.05
    )
    assert np.abs(windowed[0]).max() < 0.02


def test_batches_seeds_and_backends() -> None:
    spec = AnnulusNoise(
        frequency=np.array([[2.0], [8.0]]), contrast=0.1, seed=[1, 2, 3], size=64
    )
    assert spec.batch == (2, 3)
    assert_batch_equals_loop(spec)
    assert_reproducible(spec)
    assert_calibrated(spec.draw(dtype="float32"))
    first, second, third = spec.draw().luminance[0]
    assert not np.allclose(first, second) and not np.allclose(second, third)
    ladder = (
        AnnulusNoise(frequency=8.0, contrast=[0.01, 0.1], seed=4).draw().luminance / 40
        - 1
    )
    assert np.allclose(10 * ladder[0], ladder[1], atol=1e-13)


def test_reference_is_the_same_field() -> None:
    assert AnnulusNoise(frequency=4, contrast=0.1).reference() == Uniform(
        luminance=40, ppd=64, size=256
    )
    reference = load_stimulus("noise_hernandez2025_atd").spec().reference()
    assert (
        isinstance(reference, Uniform)
        and reference.chromatic
        and reference.white == "E"
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"frequency": 33.0}, "33 cpd; noise is drawn from 0 up to 32 cpd"),
        ({"frequency": 0.0}, "frequency is 0 cpd"),
        ({"frequency": 0.1}, "holds no frequency of a field of 4 x 4 deg"),
        ({"low": 1.3}, "the outer edge must lie above"),
        ({"window": -1.0}, "window is -1 deg"),
        ({"seed": 1.5}, "whole number"),
        ({"contrast": -0.1}, "contrast is -0.1"),
    ],
)
def test_refusals(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AnnulusNoise(**({"frequency": 4.0, "contrast": 0.1} | parameters))


def test_negative_light_is_refused() -> None:
    with pytest.raises(InputError, match="negative light"):
        AnnulusNoise(frequency=8.0, contrast=0.6).draw()


def test_a_target_on_annulus_noise() -> None:
    shared: dict[str, Any] = {"luminance": 40.0, "ppd": 64, "size": 128, "white": "E"}
    target = Gabor(frequency=4, contrast=0.1, radius=0.4, **shared)
    for chromatic, space in ((False, "luminance"), (True, "lms")):
        mask = AnnulusNoise(frequency=8, contrast=0.1, chromatic=chromatic, **shared)
        stimulus = Sum(parts=(target, mask)).draw()
        assert stimulus.space == space
        assert_calibrated(stimulus)
