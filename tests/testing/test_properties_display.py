"""Calibration properties 28 to 36 and 47: batches, the transfer function, limits and geometry of a
display."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.errors import GamutError, InputError
from psyprobe.light.display import Display, display_presets, pixels_per_degree
from psyprobe.stimulus import Gabor, Grating, Noise, Specification
from psyprobe.testing import (
    CalibrationError,
    assert_batch_equals_loop,
    assert_calibrated,
    assert_in_gamut,
    assert_round_trip,
    strategies,
    tolerance,
)

FIELD: dict[str, Any] = {"ppd": 60.0, "size": 48}
PRESETS = [Display.preset(name) for name in display_presets()]


@dataclasses.dataclass(frozen=True)
class InDoubles:
    """A display whose drive values are float64."""

    display: Display

    def encode(self, image: Any) -> Any:
        return self.display.encode(image, dtype="float64")

    def decode(self, drive: Any) -> Any:
        return self.display.decode(drive)


#: How the second image of a batch differs from the first: every parameter in its own way, and still
#: valid.
SECOND = {
    "luminance": lambda value: 0.7 * value,
    "contrast": lambda value: 0.5 * value,
    "frequency": lambda value: 1.0005 * value,
    "orientation": lambda value: value + 10,
    "phase": lambda value: value - 20,
    "x": lambda value: 0.5 * value,
    "y": lambda value: value - 0.01,
    "radius": lambda value: 0.8 * value,
    "edge": lambda value: 0.7 * value,
    "aspect": lambda value: 1.1 * value,
    "bandwidth": lambda value: 0.95 * value,
    "exponent": lambda value: 0.9 * value,
    "seed": lambda value: value + 1,
    "letter": lambda value: (value + 1) % 5,
    "flankers": lambda value: 4 - value,
    "letter_size": lambda value: value,
    "picture": lambda value: value,
    "file_ppd": lambda value: value,
    "density": lambda value: value,
    "distance": lambda value: 0.95 * value,
    "spacing": lambda value: value,
    "jitter": lambda value: 0.9 * value,
    "tilt": lambda value: value + 10,
    "path_angle": lambda value: value + 5,
    "path_elements": lambda value: value,
    "coherence": lambda value: 0.5 * value,
    "flow": lambda value: value - 20,
    "separation": lambda value: 0.9 * value,
}


@given(strategies.stimuli(sampling=FIELD))
def test_p28_a_batch_is_the_loop(spec: Any) -> None:
    batches = []
    for part in getattr(spec, "parts", (spec,)):
        values = {name: getattr(part, name) for name in part.numeric}
        batches.append(
            dataclasses.replace(
                part,
                **{name: np.array([v, SECOND[name](v)]) for name, v in values.items()},
            )
        )
    assert_batch_equals_loop(
        type(spec)(parts=tuple(batches)) if len(batches) > 1 else batches[0]
    )


@given(strategies.stimuli(sampling=FIELD), st.sampled_from(["float64", "float32"]))
def test_p28_torch_draws_what_numpy_draws(spec: Specification, dtype: str) -> None:
    pytest.importorskip("torch")
    ours, theirs = (
        np.asarray(spec.draw(dtype=dtype).pixels),
        spec.draw(dtype=dtype, device="cpu").pixels,
    )
    change = np.abs(theirs.numpy() - ours).max() / np.abs(ours).max()
    assert change <= tolerance("batch", dtype)
    assert_calibrated(theirs, spec, space="luminance" if ours.ndim == 2 else "lms")


@given(
    strategies.displays(), st.floats(0.0, 1.0), st.sampled_from(["float64", "float32"])
)
def test_p29_decoding_undoes_encoding(
    display: Display, relative: float, dtype: str
) -> None:
    light = np.full((1, 1), display.floor + relative * (display.peak - display.black))
    light = np.clip(light, display.floor, display.ceiling)
    decoded = np.asarray(
        display.decode(display.encode(light, dtype=dtype).astype(np.float64))
    )
    steepest = _steepest(display)
    assert np.abs(decoded - light).max() / display.ceiling <= steepest * tolerance(
        "drive round trip", dtype
    )


def _steepest(display: Display) -> float:
    """Largest slope of the transfer function: rounding of drive becomes so many times more in
    light."""
    if not isinstance(display.eotf, tuple):
        return 3.0
    steps = np.diff(np.array(display.eotf), axis=0)
    return float(max(1.0, (steps[:, 1] / steps[:, 0]).max()))


@pytest.mark.parametrize("display", PRESETS, ids=list(display_presets()))
def test_p30_light_round_trip_of_the_presets(display: Display) -> None:
    light = np.geomspace(
        max(display.floor, 1e-3 * display.peak), display.ceiling, 4001
    ).reshape(1, -1)
    assert_round_trip(light, InDoubles(display))
    assert_round_trip(light.astype(np.float32).clip(display.floor), display)


@given(strategies.displays(), st.floats(0.001, 1.0))
def test_p30_light_round_trip_of_any_display(display: Display, relative: float) -> None:
    light = np.full(
        (1, 1),
        min(display.floor + relative * (display.peak - display.black), display.ceiling),
    )
    assert_round_trip(light, InDoubles(display))


@pytest.mark.parametrize("display", PRESETS, ids=list(display_presets()))
def test_p31_light_rises_with_every_step_of_drive(display: Display) -> None:
    assert np.all(np.diff(np.asarray(display.decode(np.linspace(0, 1, 2**20 + 1)))) > 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_p32_drive_never_falls_with_light(dtype: str) -> None:
    around = np.concatenate(
        [np.linspace(0, 1, 100_001), np.linspace(0.0031300, 0.0031320, 20_001)]
    )
    drive = np.asarray(
        Display(peak=1.0).encode(np.sort(around).reshape(1, -1), dtype=dtype)
    )[0, :, 0]
    # IEC's rounded constants step back by 2.9e-8 at 0.0031308; ours join.
    assert np.diff(drive).min() >= 0


@given(strategies.displays())
def test_p33_limits(display: Display) -> None:
    reflected = display.ambient * display.reflectivity / math.pi
    assert float(display.decode(0.0)) == pytest.approx(
        display.black + reflected, rel=1e-13, abs=1e-13
    )
    assert float(display.decode(1.0)) == pytest.approx(
        display.peak + reflected, rel=1e-13
    )
    assert (display.floor, display.ceiling) == pytest.approx(
        (display.black + reflected, display.peak + reflected)
    )


@settings(max_examples=50)
@given(strategies.displays(primaries=("sRGB",)), st.data())
def test_p34_the_largest_contrast_fits_and_more_does_not(
    display: Display, data: st.DataObject
) -> None:
    luminance = data.draw(strategies.backgrounds(display))
    largest = display.max_contrast(luminance)
    expected = min(1 - display.floor / luminance, display.ceiling / luminance - 1)
    assert largest == pytest.approx(expected, rel=1e-9)
    # One sample per quarter cycle: the samples meet trough and peak.
    shared: dict[str, Any] = {
        "frequency": 15.0,
        "phase": 45,
        "luminance": luminance,
    } | FIELD
    assert_in_gamut(
        Grating(contrast=min(largest, 1.0) * (1 - 1e-9), **shared).draw(), display
    )
    if largest * 1.001 <= 1:
        beyond = Grating(contrast=largest * 1.001, **shared).draw()
        with pytest.raises(CalibrationError, match="values outside gamut"):
            assert_in_gamut(beyond, display)
        with pytest.raises(GamutError, match="lower the contrast to at most"):
            display.encode(beyond)


def test_p34_of_the_display_in_the_reference() -> None:
    assert Display(peak=400.0, black=4.4).max_contrast(100.0) == pytest.approx(
        0.956, abs=1e-12
    )


@settings(max_examples=60)
@given(strategies.shown_stimuli(sampling=FIELD))
def test_p35_nothing_is_clipped_unasked(
    stimulus_and_display: tuple[Specification, Display],
) -> None:
    spec, display = stimulus_and_display
    stimulus = spec.draw()
    assert_in_gamut(stimulus, display)
    drive = np.asarray(display.encode(stimulus))
    assert drive.min() >= 0 and drive.max() <= 1


def test_p35_a_refusal_counts_and_says_what_would_fit() -> None:
    stimulus = Gabor(
        frequency=4.0, contrast=1.0, luminance=300.0, radius=0.2, **FIELD
    ).draw()
    display = Display(peak=400.0)
    outside = int(np.count_nonzero(np.asarray(stimulus.pixels) > 400))
    with pytest.raises(
        GamutError, match=r"59\d\.\d+ cd/m² is above .* at most 0\.34\d* of what it is"
    ):
        display.encode(stimulus)
    assert display.gamut(stimulus).outside == outside > 0
    assert np.asarray(display.encode(stimulus, clip=True)).max() == 1


@pytest.mark.parametrize("contrast", [0.15, 0.2])
def test_p36_noise_leaves_the_range_as_often_as_a_normal_variable(
    contrast: float,
) -> None:
    floor, level, size, seeds = 30.0, 100.0, 224, 8
    display = Display(peak=400.0, black=floor)
    expected = (
        math.erfc((1 - floor / level) / contrast / math.sqrt(2)) / 2 * size**2 * seeds
    )
    noise = Noise(
        frequency=10.0,
        bandwidth=2.0,
        contrast=contrast,
        seed=np.arange(seeds),
        ppd=60,
        size=size,
    ).draw()
    below = display.gamut(noise).below
    # Pixels of band noise are correlated, so counts scatter more than independent ones.
    assert abs(below - expected) < 6 * math.sqrt(expected) + 3
    with pytest.raises(GamutError, match="below what this display shows"):
        display.encode(
            Noise(frequency=10.0, contrast=0.2, seed=1, ppd=60, size=size).draw()
        )


def test_p36_noise_below_no_light_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="negative light"):
        Noise(frequency=10.0, contrast=0.35, ppd=60, size=224).draw()


@given(st.floats(1e-5, 1e-2), st.floats(0.05, 20))
def test_p47_resolution_is_the_angle_of_a_pixel(pitch: float, distance: float) -> None:
    expected = 1 / math.degrees(2 * math.atan2(pitch / 2, distance))
    if not 1 <= expected <= 1000:
        with pytest.raises(InputError, match=r"screens have 1 to 1000"):
            pixels_per_degree(pitch, distance)
        return
    angle = math.radians(1 / pixels_per_degree(pitch, distance))
    assert 2 * distance * math.tan(angle / 2) == pytest.approx(pitch, rel=1e-13)
    # Units cancel.
    assert pixels_per_degree(1000 * pitch, 1000 * distance) == pytest.approx(
        pixels_per_degree(pitch, distance), rel=1e-13
    )


def test_p47_published_geometry() -> None:
    # encoder_protocol.md, D13: 3840 px on 30 inches (16:9) at 0.7472 m are 75.4 pixels per degree.
    width = 30 * 0.0254 * 16 / math.hypot(16, 9)
    assert pixels_per_degree(width / 3840, 0.7472) == pytest.approx(75.4, abs=0.05)
    with pytest.raises(InputError, match="viewing distance is 0"):
        pixels_per_degree(0.3, 0)
