"""Errors that other toolkits deliver: each is flagged and its cause named; what they draw rightly
passes.

Short re-creations of what `calibration.md` (section 2) measured in peers, and the peer itself where
it is installed.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from psyprobe.light.display import Display
from psyprobe.stimulus import Gabor, Grating, Noise, Specification
from psyprobe.testing import (
    CalibrationError,
    assert_calibrated,
    assert_contrast,
    diagnosis,
)

SIZE, PPD, LEVEL, SIGMA = 128, 60.0, 100.0, 0.3
DISPLAY = Display(peak=400.0)
ENDLESS = dataclasses.replace(DISPLAY, extended=True)

Grid = tuple[np.ndarray, np.ndarray]


def mesh(x: np.ndarray) -> Grid:
    """x to the right and y up, of an image with these positions on both sides."""
    return x[None, :] + 0 * x[:, None], -x[:, None] + 0 * x[None, :]


CENTRES = mesh((np.arange(SIZE) - (SIZE - 1) / 2) / PPD)


def gabor(
    frequency: float = 4.0,
    contrast: float = 0.5,
    *,
    degrees: float = 0.0,
    sigma: float = SIGMA,
    level: float = LEVEL,
    where: Grid = CENTRES,
) -> np.ndarray:
    x, y = where
    angle = np.radians(degrees)
    carrier = np.cos(2 * np.pi * frequency * (x * np.cos(angle) + y * np.sin(angle)))
    return level * (1 + contrast * np.exp(-(x**2 + y**2) / (2 * sigma**2)) * carrier)


def requested(frequency: float = 4.0, contrast: float = 0.5, **values: Any) -> Gabor:
    shared = {"radius": SIGMA, "ppd": PPD, "size": SIZE, "luminance": LEVEL}
    return Gabor(frequency=frequency, contrast=contrast, **(shared | values))


def encode(light: np.ndarray) -> np.ndarray:
    return np.asarray(ENDLESS.encode(light, dtype="float64"))[..., 0]


def causes_of(image: Any, spec: Specification, space: str = "luminance") -> list[str]:
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(
            image, spec, space=space, display=None if space == "luminance" else DISPLAY
        )
    for cause in failure.value.causes:
        assert str(cause) in str(failure.value)
    return [cause.name for cause in failure.value.causes]


def test_what_is_drawn_rightly_passes() -> None:
    assert_calibrated(gabor(), requested(), space="luminance")
    assert_calibrated(gabor().astype(np.float32), requested(), space="luminance")
    assert_calibrated(encode(gabor()), requested(), space="encoded", display=DISPLAY)
    assert_calibrated(gabor() / 400, requested(), space="linear", display=DISPLAY)
    assert_calibrated(
        np.round(encode(gabor()) * 255).astype(np.uint8),
        requested(),
        space="encoded",
        display=DISPLAY,
    )


# -- where the wave lies
# ------------------------------------------------------------------------------------------


def test_half_a_pixel_off_centre() -> None:
    edges = mesh((np.arange(SIZE) - SIZE / 2) / PPD)
    assert causes_of(gabor(where=edges), requested()) == [
        diagnosis.CAUSES["half_pixel"].name
    ]


def test_half_a_pixel_off_centre_in_a_grating() -> None:
    x = CENTRES[0] - 0.5 / PPD
    image = LEVEL * (1 + 0.5 * np.cos(2 * np.pi * 5 * x))
    assert causes_of(
        image, Grating(frequency=5.0, contrast=0.5, ppd=PPD, size=SIZE)
    ) == [diagnosis.CAUSES["half_pixel"].name]


def test_linspace_with_both_ends() -> None:
    ends = mesh(np.linspace(-SIZE / 2, SIZE / 2, SIZE) / PPD)
    assert causes_of(gabor(where=ends), requested()) == [
        diagnosis.CAUSES["both_ends"].name
    ]


def test_rows_counted_downwards() -> None:
    x, y = CENTRES
    assert causes_of(gabor(degrees=30.0, where=(x, -y)), requested(orientation=30)) == [
        diagnosis.CAUSES["mirrored"].name
    ]


def test_full_width_for_standard_deviation() -> None:
    assert causes_of(gabor(sigma=SIGMA / 2.3548), requested()) == [
        diagnosis.CAUSES["full_width"].name
    ]


def test_sine_phase() -> None:
    x, y = CENTRES
    image = LEVEL * (
        1 + 0.5 * np.exp(-(x**2 + y**2) / (2 * SIGMA**2)) * np.sin(2 * np.pi * 4 * x)
    )
    assert causes_of(image, requested()) == [diagnosis.CAUSES["sine_phase"].name]


@pytest.mark.parametrize("frequency", [4, 12, 20])
@pytest.mark.parametrize(
    "codes", [True, False], ids=["uint8 bilinear", "float bicubic"]
)
def test_resize_and_crop(frequency: float, codes: bool) -> None:
    image_module = pytest.importorskip("PIL.Image")
    spec = Grating(frequency=frequency, contrast=0.2, ppd=PPD, size=224)
    drive = encode(np.asarray(spec.draw().pixels))
    pixels = (
        np.round(drive * 255).astype(np.uint8) if codes else drive.astype(np.float32)
    )
    how = image_module.BILINEAR if codes else image_module.BICUBIC
    resized = (
        image_module.fromarray(pixels).resize((256, 256), how).crop((16, 16, 240, 240))
    )
    assert causes_of(np.asarray(resized), spec, "encoded") == [
        diagnosis.CAUSES["resized"].name
    ]


# -- contrast
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frequency", [10.0, 15.0, 20.0, 24.0])
@pytest.mark.parametrize("phase", [0.0, 45.0, 90.0])
def test_min_max_normalised_sine(frequency: float, phase: float) -> None:
    spec = Grating(frequency=frequency, contrast=0.5, phase=phase, ppd=PPD, size=SIZE)
    wave = np.cos(2 * np.pi * frequency * CENTRES[0] + np.radians(phase))
    stretched = (wave - wave.min()) / np.ptp(wave)
    image = 50 + 100 * stretched
    if np.allclose(image, np.asarray(spec.draw().pixels), rtol=1e-9):
        assert_calibrated(
            image, spec, space="luminance"
        )  # here the samples do meet the peaks
    else:
        assert causes_of(image, spec) == [diagnosis.CAUSES["stretched_sine"].name]


@pytest.mark.parametrize("contrast", [0.05, 0.1, 0.2, 0.9])
def test_contrast_applied_twice(contrast: float) -> None:
    assert causes_of(gabor(contrast=contrast**2), requested(contrast=contrast)) == [
        diagnosis.CAUSES["twice"].name
    ]


def test_the_square_of_a_half_is_also_its_half() -> None:
    assert causes_of(gabor(contrast=0.25), requested()) == [
        diagnosis.CAUSES["twice"].name,
        diagnosis.CAUSES["halved"].name,
    ]


def test_noise_contrast_applied_twice() -> None:
    spec = Noise(frequency=5.0, contrast=0.2, size=SIZE)
    image = LEVEL + 0.2 * (np.asarray(spec.draw().pixels) - LEVEL)
    assert causes_of(image, spec) == [diagnosis.CAUSES["twice"].name]


@pytest.mark.parametrize("contrast", [0.05, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("grey", [0.5, 0.5371])
def test_contrast_in_code_values(contrast: float, grey: float) -> None:
    pattern = gabor(contrast=1.0) / LEVEL - 1
    drive = np.clip(grey * (1 + contrast * pattern), 0, 1)
    assert causes_of(drive, requested(contrast=contrast), "encoded") == [
        diagnosis.CAUSES["codes"].name
    ]


def test_noise_contrast_in_code_values() -> None:
    noise = (
        np.asarray(Noise(frequency=5.0, contrast=0.2, seed=4, size=SIZE).draw().pixels)
        / LEVEL
    )
    grey = float(encode(np.full((1, 1), LEVEL))[0, 0])
    spec = Noise(frequency=5.0, contrast=0.2, size=SIZE)
    assert causes_of(np.clip(grey * noise, 0, 1), spec, "encoded") == [
        diagnosis.CAUSES["codes"].name
    ]


def test_min_max_stretched_noise() -> None:
    noise = np.asarray(
        Noise(frequency=5.0, contrast=0.2, seed=4, size=SIZE).draw().pixels
    )
    image = 50 + 100 * (noise - noise.min()) / np.ptp(noise)
    assert causes_of(image, Noise(frequency=5.0, contrast=0.2, size=SIZE)) == [
        diagnosis.CAUSES["stretched_noise"].name
    ]


# -- encoding
# ------------------------------------------------------------------------------------------


def test_gamma_not_applied() -> None:
    assert causes_of(gabor() / 400, requested(), "encoded") == [
        diagnosis.CAUSES["not_encoded"].name
    ]


def test_gamma_applied_twice() -> None:
    assert causes_of(encode(400 * encode(gabor())), requested(), "encoded") == [
        diagnosis.CAUSES["encoded_twice"].name
    ]


def test_gamma_in_the_wrong_direction() -> None:
    drive = np.asarray(DISPLAY.decode(gabor() / 400)) / 400
    assert causes_of(drive, requested(), "encoded") == [
        diagnosis.CAUSES["decoded"].name
    ]


@pytest.mark.parametrize("contrast", [0.001, 0.002, 0.005, 0.01, 0.02])
def test_eight_bits_lose_low_contrasts(contrast: float) -> None:
    codes = encode(gabor(contrast=contrast)) * 255
    assert causes_of(
        np.round(codes).astype(np.uint8), requested(contrast=contrast), "encoded"
    ) == [diagnosis.CAUSES["rounded"].name]
    assert causes_of(
        codes.astype(np.uint8), requested(contrast=contrast), "encoded"
    ) == [diagnosis.CAUSES["truncated"].name]


def test_truncation_lowers_the_mean_at_any_contrast() -> None:
    assert causes_of(
        (encode(gabor()) * 255).astype(np.uint8), requested(), "encoded"
    ) == [diagnosis.CAUSES["truncated"].name]


def test_values_that_wrapped() -> None:
    codes = encode(gabor(contrast=0.9, level=300.0)) * 255
    assert codes.max() > 256
    image = np.mod(np.floor(codes), 256).astype(np.uint8)
    assert causes_of(image, requested(contrast=0.9, luminance=300.0), "encoded") == [
        diagnosis.CAUSES["wrapped"].name
    ]


def test_light_that_was_cut_off() -> None:
    drive = np.clip(encode(gabor(contrast=0.9, level=300.0)), 0, 1)
    assert causes_of(drive, requested(contrast=0.9, luminance=300.0), "encoded") == [
        diagnosis.CAUSES["clipped"].name
    ]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_fine_after_normalisation_and_not_before(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    spec, drive = (
        requested(contrast=0.001),
        torch.from_numpy(encode(gabor(contrast=0.001)).copy()),
    )
    short = getattr(torch, dtype)
    mean, scale = 0.537, 0.25
    handed = ((drive - mean) / scale).to(short).double() * scale + mean
    assert_contrast(handed, spec, space="encoded", display=DISPLAY, precision=dtype)
    with pytest.raises(CalibrationError, match="contrast"):
        assert_contrast(drive.to(short), spec, space="encoded", display=DISPLAY)


# -- colour
# ------------------------------------------------------------------------------------------

CHROMATIC = [("red_green", 0.05), ("yellow_violet", 0.3)]


@pytest.mark.parametrize(("direction", "contrast"), CHROMATIC)
def test_channels_in_any_place_but_in_order(direction: str, contrast: float) -> None:
    spec = requested(3.0, contrast, direction=direction)
    drive = np.asarray(DISPLAY.encode(spec.draw(), dtype="float64"))
    assert_calibrated(drive, spec, space="encoded", display=DISPLAY)
    assert_calibrated(np.moveaxis(drive, -1, 0), spec, space="encoded", display=DISPLAY)
    assert causes_of(drive[..., ::-1], spec, "encoded") == [
        diagnosis.CAUSES["swapped"].name
    ]


@pytest.mark.parametrize(("direction", "contrast"), CHROMATIC)
def test_isoluminant_for_another_observer(direction: str, contrast: float) -> None:
    spec = requested(3.0, contrast, direction=direction)
    other = dataclasses.replace(spec, observer="smith_pokorny")
    drive = np.asarray(DISPLAY.encode(other.draw(), dtype="float64"))
    with pytest.raises(
        CalibrationError,
        match=r"isoluminant for CIE 1931 luminance, not for L \+ M of cie2006_led",
    ):
        assert_calibrated(drive, spec, space="encoded", display=DISPLAY)


@pytest.mark.parametrize(
    ("direction", "axis"),
    [("red_green", (1, -1, 0)), ("yellow_violet", (-0.3, -0.3, 1))],
)
def test_colour_set_in_code_values(
    direction: str, axis: tuple[float, float, float]
) -> None:
    pattern = gabor(3.0, 1.0) / LEVEL - 1
    drive = 0.537 + 0.1 * pattern[..., None] * np.array(axis)
    assert causes_of(drive, requested(3.0, 0.05, direction=direction), "encoded") == [
        diagnosis.CAUSES["leak"].name
    ]


def test_matrix_of_another_display() -> None:
    """PsychoPy's default DKL matrix on an sRGB display: 6.5 % luminance along L - M."""
    pattern = gabor(3.0, 1.0) / LEVEL - 1
    modulation = 0.05 * pattern[..., None] * np.array([1.0, -0.3804, 0.0209])
    spec = requested(3.0, 0.05, direction="red_green")
    assert causes_of(LEVEL / 400 * (1 + modulation), spec, "linear") == [
        diagnosis.CAUSES["leak"].name
    ]


# -- the peer itself
# ------------------------------------------------------------------------------------------


@pytest.fixture
def stimupy() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # its own warnings of rounding are not what is tested here
        yield pytest.importorskip("stimupy")


def stimupy_gabor(
    frequency: float, degrees: float, phase: float, origin: str = "center"
) -> np.ndarray:
    from stimupy.stimuli.gabors import gabor as peer

    stimulus = peer(
        visual_size=2,
        ppd=64,
        frequency=frequency,
        rotation=degrees,
        phase_shift=phase,
        sigma=SIGMA,
        intensities=(50, 150),
        origin=origin,
    )
    return np.asarray(stimulus["img"])


def from_stimupy(frequency: float, degrees: float, phase: float) -> Gabor:
    """What stimupy draws, in our words: sine phase, about the upper left corner of the pixel right
    below the centre."""
    return Gabor(
        frequency=frequency,
        contrast=0.5,
        orientation=degrees,
        phase=phase - 90,
        radius=SIGMA,
        x=0.5 / 64,
        y=-0.5 / 64,
        ppd=64,
        size=128,
    )


@pytest.mark.parametrize("degrees", [17.0, 30.0, 63.0, 121.0])
@pytest.mark.parametrize("frequency", [2.0, 4.0, 7.3])
def test_oblique_stimupy_gabors_pass(
    stimupy: Any, frequency: float, degrees: float
) -> None:
    """To five digits: stimupy rounds its coordinates to 1e-5 degrees."""
    image = stimupy_gabor(frequency, degrees, 20.0)
    assert_calibrated(
        image,
        from_stimupy(frequency, degrees, 20.0),
        space="luminance",
        precision="float16",
    )


@pytest.mark.parametrize(
    ("frequency", "phase"), [(16.0, 45.0), (10.7, 0.0), (21.0, 30.0)]
)
def test_upright_stimupy_gabors_are_stretched(
    stimupy: Any, frequency: float, phase: float
) -> None:
    image = stimupy_gabor(frequency, 0.0, phase)
    causes = causes_of(
        image,
        Gabor(
            frequency=frequency,
            contrast=0.5,
            phase=phase,
            radius=SIGMA,
            ppd=64,
            size=128,
        ),
    )
    assert {
        diagnosis.CAUSES["half_pixel"].name,
        diagnosis.CAUSES["sine_phase"].name,
        diagnosis.CAUSES["stretched_sine"].name,
    } == set(causes)
    assert (
        causes_of(image, from_stimupy(frequency, 0.0, phase))[-1]
        == diagnosis.CAUSES["stretched_sine"].name
    )


@pytest.mark.parametrize("degrees", [0.0, 30.0])
def test_stimupy_with_its_origin_at_the_mean_is_off_in_frequency(
    stimupy: Any, degrees: float
) -> None:
    image = stimupy_gabor(6.0, degrees, 90.0, origin="mean")
    causes = causes_of(
        image,
        Gabor(
            frequency=6.0,
            contrast=0.5,
            orientation=degrees,
            radius=SIGMA,
            ppd=64,
            size=128,
        ),
    )
    assert causes[0] == diagnosis.CAUSES["both_ends"].name


def test_stimupy_noise_is_stretched(stimupy: Any) -> None:
    from stimupy.noises.narrowbands import narrowband

    np.random.seed(1)  # noqa: NPY002 - stimupy takes no generator here
    stimulus = narrowband(
        visual_size=2,
        ppd=64,
        center_frequency=4,
        bandwidth=1,
        intensity_range=(50, 150),
    )
    causes = causes_of(
        np.asarray(stimulus["img"]),
        Noise(frequency=4.0, contrast=0.132, ppd=64, size=128),
    )
    assert causes == [diagnosis.CAUSES["stretched_noise"].name]


def test_stimupy_grating_of_less_than_a_cycle_is_stretched(stimupy: Any) -> None:
    from stimupy.components.waves import sine

    stimulus = sine(
        visual_size=2,
        ppd=64,
        frequency=0.3,
        phase_shift=90,
        intensities=(50, 150),
        origin="mean",
        distance_metric="horizontal",
    )
    spec = Grating(frequency=0.3, contrast=0.5, ppd=64, size=128)
    with pytest.raises(CalibrationError, match=r"contrast: requested 0\.5, delivered"):
        assert_calibrated(
            np.asarray(stimulus["img"]), spec, space="luminance", precision="uint8"
        )
