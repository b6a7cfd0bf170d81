"""Calibration properties 1 to 18: Gabors and gratings, in float64 and float32.

The numbers are those of `calibration.md`, section 8; docs/testing.md tells where each property is
asserted.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_measures import centroid, michelson_contrast

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import Gabor, Grating, estimate
from psyprobe.stimulus.sines import Sine
from psyprobe.testing import (
    assert_calibrated,
    assert_contrast,
    assert_frequency,
    assert_mean_luminance,
    assert_orientation,
    strategies,
    tolerance,
)

SIZE, PPD, LEVEL = 96, 60.0, 100.0
FIELD = {"ppd": PPD, "size": SIZE}
DTYPES = st.sampled_from(["float64", "float32"])
#: Six standard deviations to the edge, where a Gaussian is 1.5e-8 of its peak: the formulas are for
#: endless fields.
SIGMA = SIZE / PPD / 12

waves = st.one_of(
    strategies.gabors(direction="achromatic", sampling=FIELD),
    strategies.gratings(direction="achromatic", sampling=FIELD),
)


def pixels(spec: Any, dtype: str = "float64") -> np.ndarray:
    return np.asarray(spec.draw(dtype=dtype).pixels, dtype=np.float64)


@given(waves, DTYPES)
def test_p01_contrast_delivered(spec: Any, dtype: str) -> None:
    assert_contrast(spec.draw(dtype=dtype))


@pytest.mark.parametrize("contrast", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("ratio", [2.5, 3.0, 4.0, 6.0, 10.0])
@pytest.mark.parametrize("phase", [0.0, 45.0, 90.0])
def test_p01_contrast_where_samples_miss_the_peaks(
    contrast: float, ratio: float, phase: float
) -> None:
    spec = Grating(frequency=PPD / ratio, contrast=contrast, phase=phase, **FIELD)
    contrast_measurement = assert_contrast(spec.draw())["contrast"]
    assert (
        contrast_measurement.tolerance is not None
        and contrast_measurement.tolerance < 1.1e-9
    )


@settings(max_examples=60)
@given(strategies.displays(), st.data(), DTYPES)
def test_p02_contrast_after_encoding_and_decoding(
    display: Display, data: st.DataObject, dtype: str
) -> None:
    spec = data.draw(strategies.gabors(display, direction="achromatic", sampling=FIELD))
    drive = display.encode(spec.draw(), dtype=dtype)
    assert_contrast(
        np.array(drive), spec, space="encoded", display=display, precision=dtype
    )


@pytest.mark.parametrize("contrast", [0.001, 0.01, 0.1, 0.9])
def test_p02_at_its_own_tolerance(contrast: float) -> None:
    display = Display(peak=400.0, black=0.4, ambient=250.0)
    spec = Gabor(frequency=4.0, contrast=contrast, radius=0.3, **FIELD)
    for dtype, rounding in (("float64", 0.0), ("float32", 1e-7 / contrast)):
        drive = np.array(display.encode(spec.draw(), dtype=dtype))
        contrast_measurement = assert_contrast(
            drive, spec, space="encoded", display=display
        )["contrast"]
        assert (
            abs(contrast_measurement.error or 0.0)
            <= tolerance("shown contrast", dtype) + rounding
        )


@given(waves, DTYPES)
def test_p03_background(spec: Any, dtype: str) -> None:
    certificate = assert_mean_luminance(spec.draw(dtype=dtype))
    assert "background" in certificate


@given(
    st.integers(1, 47),
    st.floats(-180, 180),
    st.sampled_from([0.0, 90.0]),
    st.floats(0.001, 1),
    DTYPES,
)
def test_p04_mean_of_whole_cycles_is_the_background(
    cycles: int, phase: float, orientation: float, contrast: float, dtype: str
) -> None:
    spec = Grating(
        frequency=cycles * PPD / SIZE,
        contrast=contrast,
        phase=phase,
        orientation=orientation,
        luminance=LEVEL,
        **FIELD,
    )
    assert_mean_luminance(spec.draw(dtype=dtype).pixels, LEVEL, space="luminance")


def small_gabors(**fixed: Any) -> st.SearchStrategy[Gabor]:
    """Gabors that fade out well inside the field, and whose square does not alias: the formulas
    know no pixels."""
    return st.builds(
        Gabor,
        frequency=st.floats(1.0, 15.0),
        contrast=st.floats(0.001, 1.0),
        orientation=st.floats(-180, 180),
        phase=st.floats(-180, 180),
        radius=st.floats(3.5 / PPD, SIGMA),
        **{name: st.just(value) for name, value in (FIELD | fixed).items()},
    )


@given(small_gabors(), DTYPES)
def test_p05_mean_of_a_gabor(spec: Gabor, dtype: str) -> None:
    area, omega = (SIZE / PPD) ** 2, 2 * np.pi * spec.frequency
    lift = np.exp(-((omega * spec.radius) ** 2) / 2) * np.cos(np.radians(spec.phase))
    expected = spec.contrast * 2 * np.pi * spec.radius**2 / area * lift
    deviation = pixels(spec, dtype).mean() / spec.luminance - 1
    assert deviation == pytest.approx(
        expected, abs=1e-8 + (0 if dtype == "float64" else 1e-7)
    )


@given(small_gabors(balanced=True, luminance=5.0), DTYPES)
def test_p06_mean_of_a_balanced_gabor(spec: Gabor, dtype: str) -> None:
    halved = dataclasses.replace(spec, contrast=spec.contrast / 2)
    assert_mean_luminance(halved.draw(dtype=dtype).pixels, 5.0, space="luminance")


@given(small_gabors(), DTYPES)
def test_p07_rms_of_a_gabor(spec: Gabor, dtype: str) -> None:
    area, omega = (SIZE / PPD) ** 2, 2 * np.pi * spec.frequency
    ripple = 1 + np.cos(2 * np.radians(spec.phase)) * np.exp(
        -((omega * spec.radius) ** 2)
    )
    expected = spec.contrast * np.sqrt(np.pi * spec.radius**2 * ripple / (2 * area))
    rms_contrast = np.sqrt(np.mean((pixels(spec, dtype) / spec.luminance - 1) ** 2))
    assert rms_contrast == pytest.approx(
        expected, rel=1e-8 if dtype == "float64" else 1e-5 + 1e-7 / spec.contrast
    )


@given(st.integers(1, 20), st.floats(0.01, 1.0), DTYPES)
def test_p08_contrast_conversions(cycles: int, contrast: float, dtype: str) -> None:
    spec = Grating(
        frequency=cycles * PPD / SIZE, contrast=contrast, orientation=90, **FIELD
    )
    image = pixels(spec, dtype)
    # Rounded luminance is off by half a unit in its last place, at each pixel of a short period alike.
    allowed = 1e-12 if dtype == "float64" else 1e-6 + 2**-23 / contrast
    assert float(estimate.rms_contrast(image)) == pytest.approx(
        contrast * np.sqrt(0.5), rel=allowed
    )


@given(waves, DTYPES)
def test_p09_frequency(spec: Any, dtype: str) -> None:
    assert_frequency(spec.draw(dtype=dtype))


@given(waves, DTYPES)
def test_p10_orientation(spec: Any, dtype: str) -> None:
    assert_orientation(spec.draw(dtype=dtype))


@given(waves, DTYPES)
def test_p11_phase_and_position(spec: Any, dtype: str) -> None:
    certificate = assert_calibrated(spec.draw(dtype=dtype))
    assert "phase" in certificate or spec.contrast == 0


@given(
    st.floats(-0.25, 0.25),
    st.floats(-0.25, 0.25),
    st.floats(5.0, 14.0),
    st.floats(-90, 90),
    st.sampled_from([0.0, 90.0, 180.0]),
    DTYPES,
)
def test_p11_centroid_lies_at_the_centre_asked_for(
    x: float, y: float, frequency: float, orientation: float, phase: float, dtype: str
) -> None:
    spec = Gabor(
        frequency=frequency,
        contrast=0.5,
        radius=0.07,
        x=x,
        y=y,
        orientation=orientation,
        phase=phase,
        **FIELD,
    )
    centre = centroid(pixels(spec, dtype), LEVEL, PPD)
    # The energy of a Gabor has sidelobes at twice its frequency, which fade out with the envelope.
    assert [float(v) * PPD for v in centre] == pytest.approx(
        [x * PPD, y * PPD], abs=1e-9 if dtype == "float64" else 1e-3
    )


@given(waves, DTYPES)
def test_p12_contrast_reversal(spec: Any, dtype: str) -> None:
    opposite = dataclasses.replace(spec, phase=spec.phase + 180)
    mean_pixels = (pixels(spec, dtype) + pixels(opposite, dtype)) / (2 * spec.luminance)
    assert np.abs(mean_pixels - 1).max() < (1e-13 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize(("dtype", "allowed"), [("float64", 1e-14), ("float32", 3e-7)])
def test_p13_linearity_in_contrast(dtype: str, allowed: float) -> None:
    reference = None
    for contrast in (0.1, 0.01, 0.001):
        spec = Gabor(
            frequency=4.3,
            contrast=contrast,
            orientation=20,
            phase=10,
            radius=0.3,
            **FIELD,
        )
        change = (pixels(spec, dtype) / LEVEL - 1) / contrast
        reference = change if reference is None else reference
        assert np.abs(change - reference).max() <= allowed / contrast


@pytest.mark.parametrize(
    ("dtype", "allowed", "exact"), [("float64", 1e-10, 1e-13), ("float32", 1e-6, 1e-6)]
)
def test_p14_rotation_invariance(dtype: str, allowed: float, exact: float) -> None:
    shared: dict[str, Any] = {
        "frequency": 5.0,
        "contrast": 0.5,
        "radius": SIGMA,
        "phase": 30,
    } | FIELD
    rms = [
        pixels(Gabor(orientation=angle, **shared), dtype).std()
        for angle in np.linspace(0, 345, 24)
    ]
    assert max(rms) / min(rms) - 1 < allowed
    upright, turned = (
        pixels(Gabor(**shared), dtype),
        pixels(Gabor(orientation=90, **shared), dtype),
    )
    # A quarter turn counter-clockwise, as one sees it.
    assert np.abs(np.rot90(upright) - turned).max() < exact * LEVEL


@pytest.mark.parametrize("factor", [0.5, 0.788, 2.0])
@pytest.mark.parametrize(("dtype", "allowed"), [("float64", 1e-12), ("float32", 1e-6)])
def test_p15_scale_invariance(factor: float, dtype: str, allowed: float) -> None:
    small = Gabor(
        frequency=4.0,
        contrast=0.5,
        radius=0.3,
        orientation=25,
        x=0.1,
        ppd=PPD,
        size=SIZE,
    )
    other = Gabor(
        frequency=4.0 * factor,
        contrast=0.5,
        radius=0.3 / factor,
        orientation=25,
        x=0.1 / factor,
        ppd=PPD * factor,
        size=SIZE,
    )
    assert np.abs(pixels(small, dtype) / pixels(other, dtype) - 1).max() < allowed


@pytest.mark.parametrize(("dtype", "allowed"), [("float64", 1e-12), ("float32", 1e-6)])
def test_p16_translation_by_whole_pixels(dtype: str, allowed: float) -> None:
    shared: dict[str, Any] = {
        "frequency": 7.0,
        "contrast": 0.5,
        "radius": 0.06,
        "orientation": 30,
        "phase": 15,
    } | FIELD
    centred = pixels(Gabor(**shared), dtype)
    displaced = pixels(Gabor(x=5 / PPD, y=3 / PPD, **shared), dtype)
    # Right is towards higher columns, up towards lower rows.
    assert (
        np.abs(np.roll(centred, (-3, 5), axis=(0, 1)) - displaced).max()
        < allowed * LEVEL
    )


@given(waves)
def test_p17_no_sample_exceeds_the_contrast(spec: Any) -> None:
    # Balancing changes the mean and not the contrast; it only moves the whole pattern.
    plain = (
        dataclasses.replace(spec, balanced=False) if isinstance(spec, Gabor) else spec
    )
    assert float(michelson_contrast(pixels(plain))) <= plain.contrast * (1 + 1e-12)


@pytest.mark.parametrize("frequency", [30.0, 30.1, 60.0, 1e6])
@pytest.mark.parametrize("kind", [Gabor, Grating])
def test_p17_nyquist_is_refused(kind: Any, frequency: float) -> None:
    with pytest.raises(InputError, match="Nyquist"):
        kind(frequency=frequency, contrast=0.5, **FIELD)


@pytest.mark.parametrize("frequency", [1.0, 4.0, 8.0, 15.0, 20.0, 24.0])
def test_p18_pixels_are_points_and_averages_of_them_follow_sinc(
    frequency: float,
) -> None:
    """Averaged over the pixel's area, a grating would lose contrast as sinc(f/ppd); sampled at
    points it keeps it."""
    times = 64
    grating = Grating(frequency=frequency, contrast=0.5, ppd=PPD, size=(1, 32))
    fine = pixels(
        Grating(
            frequency=frequency, contrast=0.5, ppd=PPD * times, size=(times, 32 * times)
        )
    )
    averaged = fine.reshape(1, times, 32, times).mean(axis=(1, 3))
    fit = Sine(shape=averaged.shape, ppd=PPD, frequency=frequency).fit(averaged)
    assert float(fit.amplitude) / (0.5 * LEVEL) == pytest.approx(
        np.sinc(frequency / PPD), rel=1e-3
    )
    assert_contrast(grating.draw())
