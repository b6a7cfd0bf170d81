"""The estimators reach the rounding of the pixels on images written out here, and the certificate
tells the truth."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_measures import centroid, michelson_contrast, sector_energy, spectral_slope

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.light.display import Display
from psyprobe.stimulus import (
    Disc,
    Gabor,
    Grating,
    Noise,
    Specification,
    Sum,
    Uniform,
    estimate,
)
from psyprobe.stimulus.certificate import (
    Certificate,
    ImageMeasurements,
    Measurement,
)
from psyprobe.stimulus.kinds.gratings import Ring
from psyprobe.stimulus.measuring import certify
from psyprobe.stimulus.sines import Sine
from psyprobe.stimulus.tolerances import (
    PRECISIONS,
    TOLERANCES,
    precision_of,
    roundoff,
    tolerance,
)

SIZE, PPD, LEVEL = 128, 60.0, 100.0


def grid(size: int = SIZE, ppd: float = PPD) -> tuple[np.ndarray, np.ndarray]:
    """Pixel centres, written out: column and row indices about the middle, rows counted upwards."""
    index = np.arange(size) - (size - 1) / 2
    return index[None, :] / ppd + np.zeros((size, 1)), -index[:, None] / ppd + np.zeros(
        (1, size)
    )


def wave(
    frequency: float,
    degrees: float = 0.0,
    phase: float = 0.0,
    x0: float = 0.0,
    y0: float = 0.0,
) -> np.ndarray:
    x, y = grid()
    angle = np.radians(degrees)
    across = (x - x0) * np.cos(angle) + (y - y0) * np.sin(angle)
    return np.cos(2 * np.pi * frequency * across + np.radians(phase))


def envelope(sigma: float, x0: float = 0.0, y0: float = 0.0) -> np.ndarray:
    x, y = grid()
    return np.exp(-((x - x0) ** 2 + (y - y0) ** 2) / (2 * sigma**2))


frequencies = st.floats(1.0, 28.0)
angles = st.floats(-180.0, 180.0)


@given(frequencies, angles, angles, st.floats(0.001, 1.0))
def test_amplitude_phase_and_background_of_any_sine_are_exact(
    frequency: float, degrees: float, phase: float, contrast: float
) -> None:
    image = LEVEL * (1 + contrast * wave(frequency, degrees, phase))
    fit = Sine(
        shape=image.shape, ppd=PPD, frequency=frequency, orientation=degrees
    ).fit(image)
    assert float(fit.amplitude) == pytest.approx(
        contrast * LEVEL, rel=1e-11 / contrast * 1e-2
    )
    assert float(fit.background) == pytest.approx(LEVEL, rel=1e-13)
    assert abs((float(fit.phase) - phase + 180) % 360 - 180) < 1e-10 / contrast


@pytest.mark.parametrize("ratio", [2.5, 3.0, 4.0, 5.0, 6.0])
@pytest.mark.parametrize("phase", [0.0, 45.0, 90.0])
def test_amplitude_is_exact_where_samples_miss_the_peaks(
    ratio: float, phase: float
) -> None:
    image = LEVEL * (1 + 0.5 * wave(PPD / ratio, 0.0, phase))
    fit = Sine(shape=image.shape, ppd=PPD, frequency=PPD / ratio).fit(image)
    assert float(fit.amplitude) == pytest.approx(50.0, rel=1e-12)


@given(
    frequencies,
    st.floats(-80.0, 80.0),
    angles,
    st.floats(0.2, 0.35),
    st.floats(-0.2, 0.2),
    st.floats(0.98, 1.02),
)
def test_all_parameters_of_a_gabor_are_found_from_a_wrong_start(
    frequency: float,
    degrees: float,
    phase: float,
    sigma: float,
    place: float,
    off: float,
) -> None:
    image = LEVEL * (
        1
        + 0.3
        * envelope(sigma, place, -place)
        * wave(frequency, degrees, phase, place, -place)
    )
    start: dict[str, Any] = {
        "frequency": off * frequency,
        "orientation": degrees + 1,
        "radius": off * sigma,
    }
    fit = Sine(shape=image.shape, ppd=PPD, x=place, y=-place, **start).refine(image)
    assert fit.frequency == pytest.approx(frequency, rel=1e-10)
    assert fit.orientation == pytest.approx(degrees, abs=1e-9)
    assert (fit.x, fit.y) == pytest.approx((place, -place), abs=1e-10)
    assert fit.radius == pytest.approx(sigma, rel=1e-9)
    assert fit.aspect == pytest.approx(1.0, rel=1e-9)
    assert fit.amplitude == pytest.approx(0.3 * LEVEL, rel=1e-10)
    assert fit.residual < 1e-12 * LEVEL


def test_a_frequency_far_from_the_start_is_found_by_its_spectrum() -> None:
    image = LEVEL * (1 + 0.3 * wave(17.3, 40.0))
    fit = Sine(shape=image.shape, ppd=PPD, frequency=4.0).refine(image)
    assert (fit.frequency, fit.orientation % 180) == pytest.approx(
        (17.3, 40.0), abs=1e-9
    )


def test_a_batch_is_fitted_image_by_image() -> None:
    images = np.stack([LEVEL * (1 + c * wave(5.0)) for c in (0.1, 0.4)])
    sine = Sine(shape=images[0].shape, ppd=PPD, frequency=5.0)
    fit = sine.fit(images)
    np.testing.assert_allclose(fit.amplitude, [10.0, 40.0], rtol=1e-12)
    with pytest.raises(InputError, match=r"of 3 x 4 px.*of 128 x 128"):
        sine.fit(np.ones((3, 4)))


def test_standard_errors_are_those_of_noisy_repetitions() -> None:
    rng = np.random.default_rng(1)
    clean = LEVEL * (1 + 0.5 * envelope(0.3) * wave(4.0, 20.0))
    sine = Sine(shape=clean.shape, ppd=PPD, frequency=4.0, orientation=20.0, radius=0.3)
    fits = [sine.refine(clean + rng.normal(size=clean.shape)) for _ in range(60)]
    for name in ("frequency", "x", "radius", "background"):
        scatter = np.std([getattr(fit, name) for fit in fits])
        predicted = fits[0].gain[name] * (1 if name != "frequency" else 1 / np.sqrt(2))
        assert scatter == pytest.approx(predicted, rel=0.35), name


def test_contrasts_of_samples() -> None:
    image = np.array([[50.0, 150.0], [100.0, 100.0]])
    assert float(estimate.rms_contrast(image)) == pytest.approx(
        np.sqrt(0.125), rel=1e-15
    )
    assert float(michelson_contrast(image)) == 0.5


def test_centroid_of_an_even_pattern_is_its_centre() -> None:
    image = LEVEL * (
        1 + 0.4 * envelope(0.1, 0.25, -0.15) * wave(8.0, 30.0, 0.0, 0.25, -0.15)
    )
    x, y = centroid(image, LEVEL, PPD)
    assert (float(x), float(y)) == pytest.approx((0.25, -0.15), abs=1e-6)


def test_parseval() -> None:
    for shape in ((16, 16), (15, 17), (16, 9)):
        image = np.random.default_rng(2).normal(size=shape)
        assert estimate.fourier_power(image).sum() == pytest.approx(
            image.var() * image.size**2, rel=1e-12
        )


def test_energy_outside_a_band_is_what_was_put_there() -> None:
    x, _ = grid(128, 64.0)
    image = LEVEL + 3 * np.cos(2 * np.pi * 4 * x) + 1 * np.cos(2 * np.pi * 12 * x)
    assert float(estimate.out_of_band_energy(image, 64.0, 2.0, 8.0)) == pytest.approx(
        0.1, rel=1e-12
    )
    assert [float(edge) for edge in estimate.band_limits(image, 64.0)] == [4.0, 12.0]


def test_slope_and_isotropy_of_filtered_noise() -> None:
    rng = np.random.default_rng(3)
    radius = estimate.radial_frequency((128, 128), 128.0)
    radius[0, 0] = 1.0
    pink = np.fft.irfft2(
        np.fft.rfft2(rng.normal(size=(8, 128, 128))) / radius, s=(128, 128)
    )
    slopes, error = spectral_slope(pink, 128.0, 2.0, 60.0)
    assert np.abs(slopes.mean() + 2) < 4 * error[0] / np.sqrt(8)
    assert np.all(
        np.abs(sector_energy(rng.normal(size=(8, 128, 128))).mean(axis=0) - 1) < 0.05
    )


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InputError, match="two dimensions"):
        estimate.to_float64([1.0, 2.0])
    with pytest.raises(InputError, match="1 of 4 values are NaN"):
        estimate.to_float64([[1.0, np.nan], [0.0, 0.0]])
    with pytest.raises(InputError, match="no band"):
        estimate.out_of_band_energy(np.full((4, 4), 3.0), 1.0, 0.1, 0.2)
    for function in (estimate.rms_contrast, michelson_contrast):
        with pytest.raises(InputError, match="above 0"):
            function(np.zeros((4, 4)))


def test_tensors_are_measured_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    image = LEVEL * (1 + 0.5 * wave(5.0))
    fit = Sine(shape=image.shape, ppd=PPD, frequency=5.0).fit(torch.from_numpy(image))
    assert float(fit.amplitude) == pytest.approx(50.0, rel=1e-12)
    assert precision_of(torch.zeros(3, dtype=torch.bfloat16)) == "bfloat16"
    assert (
        estimate.to_float64(torch.zeros(2, 2, dtype=torch.bfloat16)).dtype == np.float64
    )


EXAMPLES: list[Specification] = [
    Gabor(frequency=4.0, contrast=0.5, radius=0.4, size=SIZE),
    Gabor(frequency=2.0, contrast=0.3, radius=0.3, phase=70, balanced=True, size=SIZE),
    Gabor(frequency=4.0, contrast=0.0, radius=0.4, size=SIZE),
    Gabor(frequency=4.0, contrast=0.05, radius=0.4, size=SIZE, direction="red_green"),
    Grating(frequency=7.0, contrast=0.5, orientation=33, size=SIZE),
    Grating(frequency=7.0, contrast=0.5, window="disc", radius=0.6, size=SIZE),
    Ring(
        frequency=7.0,
        contrast=0.5,
        radius=0.7,
        inner=0.3,
        edge=0.1,
        orientation=20,
        size=SIZE,
    ),
    Noise(frequency=5.0, contrast=0.1, size=SIZE),
    Noise(frequency=5.0, contrast=0.05, direction="yellow_violet", size=SIZE),
    Disc(contrast=-0.3, radius=0.4, size=SIZE),
    Disc(contrast=0.05, radius=0.4, direction=(1.0, 0.0, 0.0), size=SIZE),
    Uniform(luminance=20.0, size=SIZE),
    Uniform(luminance=20.0, chromatic=True, size=SIZE),
    Sum(
        parts=(
            Gabor(frequency=2.0, contrast=0.1, size=SIZE),
            Noise(frequency=6.0, contrast=0.1, size=SIZE),
        )
    ),
]


@pytest.mark.parametrize("spec", EXAMPLES, ids=lambda spec: repr(spec)[:60])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_certificate_of_our_stimuli_passes(spec: Specification, dtype: str) -> None:
    result = spec.draw(dtype=dtype).measure(Display())
    assert result.passed, result
    assert result.precision == dtype and "values outside gamut" in result
    json.dumps(result.to_dict(), allow_nan=False)


def test_certificate_reads_like_a_table() -> None:
    result = Gabor(frequency=4.0, contrast=0.5, size=SIZE).draw().measure()
    assert "contrast" in result and result["contrast"].delivered == pytest.approx(
        0.5, rel=1e-12
    )
    first, head, *rows = repr(result).splitlines()
    assert first.startswith("Certificate of Gabor(") and first.endswith("passed")
    assert head.split()[:3] == ["quantity", "requested", "delivered"] and len(
        rows
    ) == len(result.measurements)
    with pytest.raises(UnknownNameError, match="did you mean 'contrast'"):
        result["contrasst"]


def test_a_batch_tells_its_worst_image() -> None:
    spec = Gabor(frequency=4.0, contrast=[[0.1, 0.2], [0.3, 0.4]], size=64)
    pixels = np.array(spec.draw().pixels)
    pixels[1, 0] = LEVEL + 0.9 * (pixels[1, 0] - LEVEL)
    rows = {row.quantity: row for row in certify(pixels, "luminance", spec)}
    assert rows["contrast"].image == 2 and rows["contrast"].error == pytest.approx(
        -0.1, rel=1e-6
    )


BATCHES: list[Specification] = [
    Gabor(frequency=[1.0, 4, 15, 6], contrast=0.2, phase=30, radius=0.2, size=64),
    Gabor(frequency=4.0, contrast=0.2, radius=0.2, aspect=[1, 2.0, 0.7], size=64),
    Gabor(frequency=4.0, contrast=[0.1, 0.0, 1.0], luminance=[9, 70, 70.0], size=64),
    Gabor(frequency=[3.0, 5.0], contrast=0.3, balanced=True, radius=0.2, size=64),
    Grating(frequency=[3.0, 5.0], contrast=0.3, window="disc", radius=0.4, size=64),
    Ring(frequency=5.0, contrast=0.3, radius=[0.4, 0.5], inner=0.2, size=64),
]


@pytest.mark.parametrize("spec", BATCHES, ids=lambda spec: repr(spec)[:60])
def test_a_batch_gives_each_image_the_certificate_that_it_gets_alone(
    spec: Specification,
) -> None:
    # Beside faithful images are some with other waves, some with noise and blank ones.
    faithful = np.array(spec.draw().pixels)
    noise = 0.1 * np.random.default_rng(4).random((64, 64))
    blank = np.full(faithful.shape, LEVEL)
    images = np.concatenate([faithful, faithful.mT, faithful + noise, blank])
    repeated = spec.joined([*spec.singles()] * 4)
    together = list[Measurement]()
    start = 0
    for part in repeated.measured_together(7):
        places = range(start, start + part.batch[0])
        start = places.stop
        conditions = ImageMeasurements(part.luminance, "float64", images=places)
        together += part.measure_image(images[places], conditions)
    alone = list[Measurement]()
    for index, single in enumerate(repeated.singles()):
        conditions = ImageMeasurements(single.luminance, "float64", images=[index])
        alone += single.measure_image(images[index], conditions)
    assert start == len(images) and len(together) == len(alone)
    together.sort(key=lambda row: row.image or 0)
    for row, expected in zip(together, alone, strict=True):
        assert (row.quantity, row.image) == (expected.quantity, expected.image)
        assert row.passed == expected.passed
        for ours, other in (
            (row.requested, expected.requested),
            (row.tolerance, expected.tolerance),
        ):
            assert ours == pytest.approx(other, rel=1e-9)
        scale = abs(expected.requested or 0.0) if expected.relative else 1.0
        rounding = 0.02 * (expected.tolerance or 0.0) * scale
        assert row.delivered == pytest.approx(
            expected.delivered, rel=1e-9, abs=rounding
        )


def test_a_certificate_is_only_as_good_as_its_worst_row() -> None:
    row = Measurement("contrast", "", 0.5, 0.6, 1e-9, True, "by hand")
    result = Certificate((row,), "something", "float64", 1)
    assert (
        not result.passed and result.failures == (row,) and "! contrast" in repr(result)
    )
    assert Measurement("peak", "", None, 1.0, None, False, "by hand").passed


def test_what_a_display_cuts_off_is_told() -> None:
    result = (
        Gabor(frequency=4.0, contrast=0.9, size=64).draw().measure(Display(peak=150.0))
    )
    assert not result["values outside gamut"].passed
    assert result["gamut margin"].delivered < 0
    assert result["shown contrast"].delivered < 0.89


def test_wrong_shapes_and_spaces_are_refused() -> None:
    spec = Gabor(frequency=4.0, contrast=0.5, size=64)
    with pytest.raises(InputError, match="has shape"):
        certify(np.ones((32, 32)), "luminance", spec)
    with pytest.raises(InputError, match="images do not go with"):
        certify(np.ones((3, 64, 64)), "luminance", spec)
    coloured = Gabor(frequency=4.0, contrast=0.05, direction="red_green", size=64)
    with pytest.raises(InputError, match="has colour"):
        certify(np.ones((64, 64)), "luminance", coloured)


def test_tolerances_are_complete() -> None:
    for name, entry in TOLERANCES.items():
        assert len(entry.values) == len(PRECISIONS) and entry.origin, name
        assert (
            entry.values[0] <= entry.values[1] <= entry.values[2] <= entry.values[3]
        ), name
    for function in (
        lambda: tolerance("contast", "float64"),
        lambda: roundoff("float23"),
    ):
        with pytest.raises(UnknownNameError, match="did you mean"):
            function()


def test_published_kinds_are_described_without_expectations() -> None:
    from psyprobe.stimulus.catalogue import load_stimulus

    result = load_stimulus("gabor_red_green_published").spec().draw().measure()
    assert result.passed and result["mean luminance"].requested is None
