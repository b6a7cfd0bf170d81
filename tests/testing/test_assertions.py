"""The assertions take what they say they take, and refuse to guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import Disc, Gabor, Grating, Noise, Sum, Uniform
from psyprobe.testing import (
    CalibrationError,
    assert_band,
    assert_batch_equals_loop,
    assert_calibrated,
    assert_cone_contrast,
    assert_contrast,
    assert_frequency,
    assert_in_gamut,
    assert_isoluminant,
    assert_mean_luminance,
    assert_orientation,
    assert_reproducible,
    assert_round_trip,
)

DISPLAY = Display(peak=400.0, black=0.4, ambient=250.0)
GABOR = Gabor(frequency=4.0, contrast=0.5, radius=0.2, ppd=60, size=64)
COLOUR = Gabor(
    frequency=4.0, contrast=0.08, radius=0.2, direction="red_green", ppd=60, size=64
)


def variants(spec: Gabor) -> dict[str, tuple[Any, str]]:
    """One stimulus in every form that an array can have."""
    stimulus = spec.draw()
    drive = np.array(DISPLAY.encode(stimulus, dtype="float64"))
    light = np.asarray(DISPLAY.light(stimulus))
    forms: dict[str, tuple[Any, str]] = {
        "encoded": (drive, "encoded"),
        "encoded, channels first": (np.moveaxis(drive, -1, 0), "encoded"),
        "encoded float32": (drive.astype(np.float32), "encoded"),
        "8-bit codes": (np.rint(drive * 255).astype(np.uint8), "encoded"),
        "16-bit codes": (np.rint(drive * 65535).astype(np.uint16), "encoded"),
        "linear": ((light - DISPLAY.floor) / (DISPLAY.peak - DISPLAY.black), "linear"),
    }
    if spec.direction == "achromatic":
        forms |= {
            "luminance": (light, "luminance"),
            "list": (light.tolist(), "luminance"),
        }
        forms |= {"one encoded plane": (drive[..., 0], "encoded")}
    else:
        forms |= {"rgb": (light, "rgb"), "lms": (np.asarray(stimulus.pixels), "lms")}
        forms |= {"xyz": (light @ DISPLAY.rgb_to_xyz.T, "xyz")}
    return forms


@pytest.mark.parametrize("spec", [GABOR, COLOUR], ids=["grey", "colour"])
def test_arrays_of_every_form(spec: Gabor) -> None:
    torch = pytest.importorskip("torch")
    for name, (image, space) in variants(spec).items():
        assert assert_calibrated(image, spec, space=space, display=DISPLAY).passed, name
        if name != "list":
            tensor = torch.tensor(
                np.ascontiguousarray(image).astype(np.asarray(image).dtype)
            )
            assert assert_calibrated(
                tensor, spec, space=space, display=DISPLAY
            ).passed, name


def test_batches_with_channels_anywhere() -> None:
    spec = Gabor(frequency=4.0, contrast=[0.1, 0.2, 0.3], radius=0.2, size=64)
    drive = np.array(DISPLAY.encode(spec.draw(), dtype="float64"))
    for image in (drive[..., 0], drive, np.moveaxis(drive, -1, 1)):
        assert_calibrated(image, spec, space="encoded", display=DISPLAY)
    wrong = drive[..., 0].copy()
    wrong[1] = drive[2, ..., 0]
    with pytest.raises(
        CalibrationError,
        match=r"contrast: requested 0\.2, delivered 0\.3 \(\+50 %\) in image 1",
    ):
        assert_calibrated(wrong, spec, space="encoded", display=DISPLAY)


def test_each_assertion_looks_at_its_own_quantity() -> None:
    stimulus, noise = GABOR.draw(), Noise(frequency=8.0, contrast=0.1, size=64).draw()
    for check in (
        assert_contrast,
        assert_mean_luminance,
        assert_frequency,
        assert_orientation,
    ):
        assert check(stimulus).passed
    assert_band(noise)
    assert_cone_contrast(COLOUR.draw())
    pixels = np.asarray(stimulus.pixels)
    assert_frequency(100 + 2 * (pixels - 100), GABOR, space="luminance")
    with pytest.raises(CalibrationError, match="contrast"):
        assert_contrast(100 + 2 * (pixels - 100), GABOR, space="luminance")
    with pytest.raises(CalibrationError, match="frequency"):
        assert_frequency(
            Gabor(frequency=4.001, contrast=0.5, radius=0.2, size=64).draw().pixels,
            GABOR,
            space="luminance",
        )
    with pytest.raises(CalibrationError, match="orientation"):
        assert_orientation(
            Gabor(frequency=4.0, contrast=0.5, radius=0.2, orientation=0.1, size=64)
            .draw()
            .pixels,
            GABOR,
            space="luminance",
        )
    with pytest.raises(CalibrationError, match="energy outside band"):
        assert_band(
            np.asarray(noise.pixels),
            Noise(frequency=4.0, contrast=0.1, size=64),
            space="luminance",
        )


def test_mean_luminance_of_any_picture() -> None:
    picture = np.random.default_rng(1).random((20, 20, 3))
    level = float((DISPLAY.decode(picture) @ DISPLAY.rgb_to_xyz[1]).mean())
    assert_mean_luminance(picture, level, space="encoded", display=DISPLAY)
    with pytest.raises(CalibrationError, match="mean luminance"):
        assert_mean_luminance(picture, 1.001 * level, space="encoded", display=DISPLAY)


def test_isoluminance_of_any_picture() -> None:
    stimulus = COLOUR.draw()
    assert_isoluminant(stimulus, observer="cie2006_led_lcd")
    drive = DISPLAY.encode(stimulus, dtype="float64")
    assert_isoluminant(
        drive, observer="cie2006_led_lcd", space="encoded", display=DISPLAY
    )
    with pytest.raises(CalibrationError, match="isoluminance for cie1931"):
        assert_isoluminant(drive, observer="cie1931", space="encoded", display=DISPLAY)
    with pytest.raises(InputError, match="unknown cone observer"):
        assert_isoluminant(drive, observer="cie1932", space="encoded", display=DISPLAY)


def test_gamut_of_light_and_of_drive() -> None:
    assert_in_gamut(GABOR.draw(), DISPLAY)
    assert_in_gamut(np.array([[0.0, 1.0]]), DISPLAY, space="encoded")
    for image, space in (
        (np.array([[0.1, 500.0]]), "luminance"),
        (np.array([[-0.1, 1.1]]), "encoded"),
    ):
        with pytest.raises(
            CalibrationError, match="values outside gamut: requested 0, delivered 2"
        ):
            assert_in_gamut(image, DISPLAY, space=space)
    with pytest.raises(CalibrationError, match="values outside gamut"):
        assert_calibrated(GABOR.draw(), display=Display(peak=120.0))


class LossyDisplay:
    """Decodes with another exponent than it encodes with."""

    def encode(self, light: Any) -> Any:
        return (np.asarray(light) / 400) ** (1 / 2.2)

    def decode(self, drive: Any) -> Any:
        return 400 * np.asarray(drive) ** 2.4


def test_round_trips_of_any_display() -> None:
    assert_round_trip(GABOR.draw(dtype="float32"), DISPLAY)
    with pytest.raises(CalibrationError, match="light round trip"):
        assert_round_trip(np.full((4, 4), 100.0), LossyDisplay())


def test_random_draws_and_their_place_in_a_batch() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(CalibrationError, match="without its own seed"):
        assert_reproducible(lambda: rng.normal(size=(4, 4)))

    def ordinal(contrast: Any) -> np.ndarray:
        values = np.atleast_1d(contrast)
        images = values[:, None, None] * np.random.default_rng(1).normal(
            size=(len(values), 4, 4)
        )
        return images if np.ndim(contrast) else images[0]

    assert_batch_equals_loop(GABOR)
    with pytest.raises(CalibrationError, match="image 1 of the batch"):
        assert_batch_equals_loop(ordinal, {"contrast": [0.1, 0.2]})
    with pytest.raises(InputError, match="needs parameters"):
        assert_batch_equals_loop(ordinal)


@pytest.mark.parametrize("wrong", ["target", "mask"])
def test_sums_are_judged_part_by_part(wrong: str) -> None:
    target, mask = (
        Gabor(frequency=3.0, contrast=0.1, radius=0.3, size=64),
        Noise(frequency=9.0, contrast=0.1, size=64),
    )
    spec = Sum(parts=(target, mask))
    assert_calibrated(spec.draw())
    other = (
        Sum(parts=(Gabor(frequency=3.0, contrast=0.101, radius=0.3, size=64), mask))
        if wrong == "target"
        else Sum(parts=(target, Noise(frequency=9.0, contrast=0.101, size=64)))
    )
    with pytest.raises(
        CalibrationError,
        match="part 1 contrast" if wrong == "target" else "part 2 rms contrast",
    ):
        assert_contrast(other.draw().pixels, spec, space="luminance")


def test_nothing_is_guessed() -> None:
    image = np.full((64, 64), 100.0)
    with pytest.raises(InputError, match="does not say what its numbers are"):
        assert_calibrated(image, GABOR)
    with pytest.raises(InputError, match="does not know what was asked"):
        assert_calibrated(image, space="luminance")
    with pytest.raises(InputError, match="depends on the display"):
        assert_calibrated(image, GABOR, space="encoded")
    with pytest.raises(InputError, match="did you mean 'encoded'"):
        assert_calibrated(image, GABOR, space="encode")
    with pytest.raises(InputError, match="knows its own space"):
        assert_calibrated(GABOR.draw(), space="luminance")
    with pytest.raises(InputError, match="asked for were"):
        assert_calibrated(np.ones((3, 3)), GABOR, space="luminance")
    with pytest.raises(InputError, match="three channels"):
        assert_calibrated(image, COLOUR, space="lms")
    with pytest.raises(InputError, match="one channel"):
        assert_calibrated(np.ones((64, 64, 3)), GABOR, space="luminance")
    with pytest.raises(InputError, match="no agreed largest value"):
        assert_calibrated(
            np.ones((64, 64), np.int32), GABOR, space="encoded", display=DISPLAY
        )
    with pytest.raises(InputError, match="cannot be measured"):
        assert_band(GABOR.draw())
    with pytest.raises(InputError, match="unknown precision"):
        assert_calibrated(image, GABOR, space="luminance", precision="float23")


def test_a_uniform_field_is_no_noise_and_no_gabor() -> None:
    for spec in (Noise(frequency=8.0, contrast=0.1, size=64), GABOR):
        with pytest.raises(CalibrationError, match="contrast: requested"):
            assert_calibrated(np.full((64, 64), 100.0), spec, space="luminance")


def test_extremes_are_no_false_alarm() -> None:
    for spec in (
        Grating(frequency=29.9, contrast=0.001, ppd=60, size=64),
        Grating(
            frequency=0.5, contrast=1.0, window="disc", radius=0.3, ppd=60, size=64
        ),
        Gabor(
            frequency=1.0,
            contrast=1.0,
            radius=0.05,
            phase=90,
            balanced=False,
            ppd=60,
            size=65,
        ),
        Disc(contrast=10.0, radius=0.25, size=(40, 64)),
        Disc(contrast=0.0, radius=0.25, size=64),
        Noise(frequency=8.0, contrast=0.0, size=64),
        Uniform(luminance=1e-3, size=8),
    ):
        assert_calibrated(spec.draw())
