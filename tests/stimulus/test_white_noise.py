"""Noise of a stated density: the same at every resolution, nowhere zero, and its own each seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.errors import GamutError, InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import (
    BandNoise,
    ColouredNoise,
    Gabor,
    Sum,
    WhiteNoise,
    coloured_noise,
    specification_from_dict,
    white_noise,
)
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.testing import assert_batch_equals_loop, assert_reproducible

SIZES = st.sampled_from([(64, 64), (63, 64), (64, 63), (48, 96)])
SEEDS = st.integers(0, 2**32 - 1)


def periodogram(spec: WhiteNoise) -> np.ndarray:
    """Power spectral density of one sample, deg²."""
    modulation = spec.draw().luminance / spec.luminance - 1
    power = np.abs(np.fft.fft2(modulation)) ** 2
    return np.asarray(power / modulation.size / spec.ppd**2)


@given(st.floats(1e-8, 4e-6), st.floats(15.0, 90.0), SEEDS, SIZES)
def test_density_is_that_of_every_resolution(
    density: float, ppd: float, seed: int, size: tuple[int, int]
) -> None:
    spec = WhiteNoise(density=density, ppd=ppd, seed=seed, size=size)
    assert spec.rms == pytest.approx(np.sqrt(density) * ppd)
    # Each of the P coefficients scatters by its own size; conjugates count twice.
    pixels = size[0] * size[1]
    assert periodogram(spec).mean() == pytest.approx(
        density, rel=6 * np.sqrt(2 / pixels)
    )
    assert spec.measure().passed


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("ppd", [30.0, 60.0, 69.6])
def test_periodogram_has_the_stated_slope_and_no_zero(
    exponent: float, ppd: float
) -> None:
    size = round(4 * ppd)
    specs = [
        ColouredNoise(density=1e-6, exponent=exponent, ppd=ppd, size=size, seed=seed)
        for seed in range(8)
    ]
    mean = np.mean([periodogram(spec) for spec in specs], axis=0)
    frequency = np.hypot(*np.meshgrid(*2 * [np.fft.fftfreq(size, 1 / ppd)]))
    expected = 1e-6 / np.maximum(frequency, ppd / size) ** exponent
    np.testing.assert_allclose(specs[0].density_at(frequency), expected)
    for low, high in [(0, 1), (1, 4), (4, 8), (8, 15)]:
        band = (frequency >= low) & (frequency < high)
        ratio = mean[band] / expected[band]
        assert ratio.mean() == pytest.approx(1, abs=5 * np.sqrt(2 / 8 / band.sum()))
    # Its pixels have the variance of the whole spectrum.
    variance = np.mean([(spec.draw().luminance / 100 - 1).var() for spec in specs])
    assert variance == pytest.approx(float(specs[0].rms) ** 2, rel=0.2)
    assert expected[0, 0] > 0


@given(st.sampled_from([0.0, 1.0, 2.0]), st.floats(1e-9, 1e-6), SEEDS, SIZES)
@settings(max_examples=40)
def test_certificate_passes_by_sampling_error(
    exponent: float, density: float, seed: int, size: tuple[int, int]
) -> None:
    spec = ColouredNoise(density=density, exponent=exponent, seed=seed, size=size)
    certificate = spec.measure()
    assert certificate.passed, certificate
    # Another density, or another slope, is no sampling error.
    image = spec.draw()
    for wrong in (
        spec.changed(density=density * 1.5),
        spec.changed(exponent=exponent + 0.5),
    ):
        assert not wrong.draw().measure().failures
        other = type(image)(image.pixels, image.space, image.ppd, wrong)
        assert not other.measure().passed


def test_mean_and_deviation_of_samples_scatter_as_they_should() -> None:
    seeds = np.arange(200)
    light = white_noise(density=2.78e-6, seed=seeds, size=64).luminance / 100 - 1
    means = light.mean(axis=(1, 2))
    expected = np.sqrt(2.78e-6) * 60 / 64
    assert means.std() == pytest.approx(expected, rel=0.2)
    assert light.std(axis=(1, 2)).std() == pytest.approx(0.1 / np.sqrt(2) / 64, rel=0.2)


@given(SEEDS, SEEDS)
def test_seeds_are_independent(first: int, second: int) -> None:
    fields = white_noise(density=1e-6, seed=[first, second], size=64).luminance - 100
    correlation = float(np.corrcoef(fields.reshape(2, -1))[0, 1])
    if first == second:
        assert correlation == pytest.approx(1)
    else:
        assert abs(correlation) < 6 / 64


@pytest.mark.parametrize("kind", [WhiteNoise, ColouredNoise])
def test_precisions_batches_and_pages_mean_one_image(kind: type[WhiteNoise]) -> None:
    spec = kind(density=[1e-6, 2e-7], seed=[3, 4], size=(32, 48))
    exact = spec.draw().luminance
    single = spec.draw(dtype="float32").luminance
    np.testing.assert_allclose(single, exact, rtol=2**-23)
    assert_batch_equals_loop(spec)
    assert_reproducible(spec)
    assert specification_from_dict(spec.to_dict()) == spec


def test_pixels_end_at_five_standard_deviations() -> None:
    spec = WhiteNoise(density=4e-6, ppd=100.0, size=2048, seed=1)
    light = spec.draw().luminance
    assert light.min() == pytest.approx(100 * (1 - 5 * 0.2), abs=1e-9)
    assert light.max() <= 100 * (1 + 5 * 0.2) + 1e-9


def test_a_sum_has_the_target_and_the_noise() -> None:
    target = Gabor(frequency=4.0, contrast=0.05)
    noise = WhiteNoise(density=2.78e-6, seed=7)
    light = Sum(parts=(target, noise), names=("noise",)).draw().luminance
    alone = target.draw().luminance + noise.draw().luminance - 100
    np.testing.assert_allclose(light, alone, rtol=1e-13)
    masked = target + noise
    assert masked.reference() == noise
    assert masked.measure().passed
    assert masked.changed(mask_density=1e-6).value("mask_density") == 1e-6


def test_noise_in_colour_is_along_its_direction() -> None:
    noise = WhiteNoise(density=1e-7, direction="red_green", size=64)
    certificate = noise.measure()
    assert certificate.passed, certificate
    assert certificate["luminance modulation"].delivered < 1e-12


def test_no_noise_is_a_uniform_field() -> None:
    spec = WhiteNoise(density=0.0)
    assert np.ptp(spec.draw().luminance) == 0
    assert spec.measure().passed


def test_what_cannot_be_light_is_refused() -> None:
    with pytest.raises(InputError, match=r"density is 1.2e-05 deg².*1.11e-05 deg²"):
        WhiteNoise(density=1.2e-5)
    with pytest.raises(InputError, match="fewer pixels per degree"):
        WhiteNoise(density=2.78e-6).changed(ppd=150.0)
    with pytest.raises(InputError, match="density in place of a contrast"):
        WhiteNoise(density=1e-6, contrast=0.5)
    with pytest.raises(InputError, match="exponent is 1e\\+308"):
        ColouredNoise(density=1e-6, exponent=1e308)
    with pytest.raises(InputError, match="density is -1"):
        WhiteNoise(density=-1.0)
    with pytest.raises(InputError, match="negative light"):
        coloured_noise(density=1e-2, exponent=2)
    with pytest.raises(GamutError):
        Display(peak=120).encode(white_noise(density=2.78e-6))


@pytest.mark.parametrize("passes", ["band", "low", "high"])
def test_noise_of_a_band_has_its_density_there_and_none_elsewhere(passes: str) -> None:
    spec = BandNoise(density=1e-6, frequency=6.0, passes=passes, seed=3, size=96)
    certificate = spec.measure()
    assert certificate.passed
    frequency = np.hypot(*np.meshgrid(*2 * [np.fft.fftfreq(96, 1 / 60)]))
    low, high = {"band": (6 / 2**0.5, 6 * 2**0.5), "low": (0, 6), "high": (6, 99)}[
        passes
    ]
    inside = (frequency > low) & (frequency < high)
    power = np.mean([periodogram(spec.changed(seed=seed)) for seed in range(8)], axis=0)
    error = 5 * np.sqrt(2 / 8 / inside.sum())
    assert power[inside].mean() / 1e-6 == pytest.approx(1, abs=error)
    outside = (frequency < low - 1) | (frequency > high + 1)
    assert power[outside].max(initial=0) < 1e-3 * power[inside].max()
    # Another band is noticed.
    other = spec.changed(frequency=9.0)
    image = spec.draw()
    assert not type(image)(image.pixels, image.space, image.ppd, other).measure().passed
    assert_batch_equals_loop(spec.changed(frequency=[3.0, 6.0]))
    assert_reproducible(spec)


def test_a_page_may_name_a_band_and_no_slope_besides() -> None:
    stimulus = load_stimulus("letter_sloan")
    noise = {"density": 1e-6, "exponent": 0.0, "frequency": 5.0, "bandwidth": 1.0}
    assert stimulus.with_noise(noise).spec().value("noise_frequency") == 5.0
    with pytest.raises(InputError, match="an exponent and a frequency"):
        stimulus.with_noise({**noise, "exponent": 2.0})
