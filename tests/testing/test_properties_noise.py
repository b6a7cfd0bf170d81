"""Calibration properties 19 to 27: band-limited noise, in float64 and float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_measures import phase_scrambled, sector_energy, spectral_slope

from psyprobe.stimulus import Noise, estimate
from psyprobe.testing import (
    assert_band,
    assert_batch_equals_loop,
    assert_contrast,
    assert_mean_luminance,
    assert_reproducible,
    strategies,
)

SIZE, PPD = 96, 60.0
FIELD: dict[str, Any] = {"ppd": PPD, "size": SIZE}
DTYPES = st.sampled_from(["float64", "float32"])
SEEDS = 64

noises = strategies.noises(direction="achromatic", sampling=FIELD)


def ensemble(**values: Any) -> np.ndarray:
    """Modulations of 64 seeds, (64, H, W)."""
    pixels = (
        Noise(contrast=0.1, seed=np.arange(SEEDS), **(FIELD | values)).draw().pixels
    )
    return np.asarray(pixels) / 100.0 - 1


@given(noises, DTYPES)
def test_p19_rms_of_every_sample(spec: Noise, dtype: str) -> None:
    assert_contrast(spec.draw(dtype=dtype))


@given(noises, DTYPES)
def test_p20_mean_of_every_sample(spec: Noise, dtype: str) -> None:
    assert_mean_luminance(spec.draw(dtype=dtype))


@given(noises, DTYPES)
def test_p21_no_energy_outside_the_band(spec: Noise, dtype: str) -> None:
    assert_band(spec.draw(dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_p21_tolerance_is_not_stretched_at_ordinary_contrast(dtype: str) -> None:
    energy_outside = assert_band(
        Noise(frequency=6.0, contrast=0.2, **FIELD).draw(dtype=dtype)
    )["energy outside band"]
    assert energy_outside.tolerance is not None and energy_outside.tolerance < (
        1.1e-26 if dtype == "float64" else 3e-11
    )


@pytest.mark.parametrize(
    ("frequency", "bandwidth", "edge"), [(6.0, 1.0, 0.5), (8.0, 2.0, 0.8)]
)
def test_p22_half_power_lies_at_the_stated_edges(
    frequency: float, bandwidth: float, edge: float
) -> None:
    spec = Noise(
        frequency=frequency, contrast=0.1, bandwidth=bandwidth, edge=edge, **FIELD
    )
    power = estimate.fourier_power(
        ensemble(frequency=frequency, bandwidth=bandwidth, edge=edge)
    ).mean(axis=0)
    power[:, 1:] /= (
        2  # a coefficient beside the first column stands for its conjugate too
    )
    octaves = np.log2(np.maximum(estimate.radial_frequency((SIZE, SIZE), PPD), 1e-9))
    low, high = (float(np.log2(value)) for value in spec.band)
    plateau = power[(octaves > low + edge / 2) & (octaves < high - edge / 2)].mean()
    for cutoff, outward in ((low, -1.0), (high, 1.0)):
        ramp = np.abs(octaves - cutoff) < edge / 3
        # Through the middle of a raised cosine runs a straight line but for its cubic term.
        expected = 0.5 * (1 - np.sin(np.pi * outward * (octaves[ramp] - cutoff) / edge))
        excess = power[ramp] / plateau - expected
        standard_error = expected / np.sqrt(SEEDS)
        slope = np.pi / 2 / edge
        shift = (
            np.sum(excess / standard_error**2) / np.sum(1 / standard_error**2) / slope
        )
        error = 1 / np.sqrt(np.sum(1 / standard_error**2)) / slope
        assert abs(shift) < 4 * error


def test_p23_isotropy() -> None:
    images = ensemble(frequency=8.0, bandwidth=1.5)
    power = np.abs(np.fft.fft2(images)) ** 2
    v, u = np.fft.fftfreq(SIZE)[:, None], np.fft.fftfreq(SIZE)[None, :]
    sector = np.round((np.degrees(np.arctan2(v, u)) % 180) / 22.5).astype(int) % 8
    ring = power.mean(axis=0) > 1e-9 * power.max()
    counts = np.array([np.count_nonzero(ring & (sector == k)) for k in range(8)])
    energy = np.array([power[:, ring & (sector == k)].mean() for k in range(8)])
    # Conjugate coefficients are one: half as many independent, exponentially distributed powers.
    deviations = (energy / np.average(energy, weights=counts) - 1) * np.sqrt(
        SEEDS * counts / 2
    )
    assert np.sum(deviations**2) < 29.9  # chi-square, 7 degrees of freedom, p = 1e-4
    assert np.all(np.abs(sector_energy(images).mean(axis=0) - 1) < 0.5)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_p24_slope_of_the_spectrum(exponent: float) -> None:
    slopes, errors = spectral_slope(
        ensemble(frequency=8.0, bandwidth=3.0, exponent=exponent), PPD, 3.0, 22.0
    )
    assert abs(slopes.mean() + 2 * exponent) < 3 * errors[0] / np.sqrt(SEEDS)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([(32, 32), (31, 32), (32, 31), (15, 15)])
)
def test_p25_phase_scrambling_keeps_the_amplitude_spectrum(
    seed: int, shape: tuple[int, int]
) -> None:
    image = np.random.default_rng(seed).random(shape)
    scrambled = phase_scrambled(image, seed + 1)
    before, after = np.abs(np.fft.fft2(image)), np.abs(np.fft.fft2(scrambled))
    assert np.abs(after - before).max() / before.max() < 1e-13
    assert np.abs(scrambled - image).max() > 1e-3


def test_p26_seeds_are_independent() -> None:
    images = ensemble(frequency=6.0).reshape(SEEDS, -1)
    correlations = np.corrcoef(images)[np.triu_indices(SEEDS, 1)]
    radius = estimate.radial_frequency((SIZE, SIZE), PPD)
    low, high = 6.0 / np.sqrt(2), 6.0 * np.sqrt(2)
    coefficients = 2 * np.count_nonzero((radius >= low) & (radius <= high))
    assert np.abs(correlations).max() < 5 / np.sqrt(coefficients)
    assert correlations.std() == pytest.approx(1 / np.sqrt(coefficients), rel=0.15)


@given(noises)
def test_p27_a_seed_gives_the_same_bits(spec: Noise) -> None:
    assert_reproducible(spec)


def test_p27_whatever_was_drawn_before_or_beside_it() -> None:
    shared: dict[str, Any] = {"frequency": 6.0, "contrast": 0.1} | FIELD
    alone = np.asarray(Noise(seed=7, **shared).draw().pixels)
    np.random.default_rng(1).normal(size=10)
    batch = np.asarray(Noise(seed=[3, 9, 7, 1, 5, 7], **shared).draw().pixels)
    assert np.array_equal(batch[2], alone) and np.array_equal(batch[5], alone)
    assert_batch_equals_loop(
        Noise(seed=[3, 9, 7], luminance=[10.0, 20.0, 30.0], **shared)
    )
