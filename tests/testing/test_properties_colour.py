"""Calibration properties 37 to 43: neutral greys, silent substitution, cone contrast and the gamut
of colours."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.light.colour import (
    CONE_OBSERVERS,
    Direction,
    cone_observer,
    direction_vector,
    dkl_matrix,
    white_xyz,
    xyz_to_lms,
)
from psyprobe.light.display import Display, display_presets
from psyprobe.stimulus import Gabor, Grating, Uniform
from psyprobe.testing import (
    CalibrationError,
    assert_calibrated,
    assert_cone_contrast,
    assert_in_gamut,
    assert_isoluminant,
    strategies,
    tolerance,
)

FIELD: dict[str, Any] = {"ppd": 60.0, "size": 48}
PRESETS = {name: Display.preset(name) for name in display_presets()}
ISOLUMINANT = ["red_green", "yellow_violet"]
DTYPES = ["float64", "float32"]

displays = strategies.displays(primaries=("sRGB",))


@given(
    st.floats(0.01, 1000.0),
    st.sampled_from(sorted(CONE_OBSERVERS)),
    st.sampled_from(sorted(PRESETS)),
)
def test_p37_greys_have_no_colour(level: float, observer: str, name: str) -> None:
    background = xyz_to_lms(PRESETS[name].rgb_to_xyz.sum(axis=1), observer)
    lms = xyz_to_lms(level * PRESETS[name].rgb_to_xyz.sum(axis=1), observer)
    chromatic = (dkl_matrix(background) @ (lms - background))[1:]
    assert np.abs(chromatic).max() / level < 1e-14 * max(1, 1 / level) * 10


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_p37_a_neutral_field_is_neutral_on_every_display(name: str) -> None:
    display = PRESETS[name]
    xyz = display.rgb_to_xyz.sum(axis=1)
    white = (float(xyz[0] / xyz.sum()), float(xyz[1] / xyz.sum()))
    field = Uniform(
        luminance=display.floor + 0.25 * display.peak,
        chromatic=True,
        white=white,
        **FIELD,
    )
    drive = np.asarray(display.encode(field.draw(), dtype="float64"))
    assert np.ptp(drive, axis=-1).max() < 1e-14 * 10
    assert_calibrated(drive, field, space="encoded", display=display)


@settings(max_examples=40)
@given(displays, st.sampled_from(ISOLUMINANT), st.sampled_from(DTYPES), st.data())
def test_p38_isoluminant_light_stays_so_through_the_display(
    display: Display, direction: str, dtype: str, data: st.DataObject
) -> None:
    spec = data.draw(strategies.gabors(display, direction=direction, sampling=FIELD))
    assert_isoluminant(spec.draw(dtype=dtype), observer=spec.observer)
    strain = 1.0
    if dtype == "float32" and isinstance(display.eotf, tuple):
        strain = 40.0  # a steep table rounds light that much more
    drive = np.asarray(display.encode(spec.draw(), dtype=dtype))
    luminance = xyz_to_lms(
        np.asarray(display.decode(drive.astype(np.float64))) @ display.rgb_to_xyz.T,
        spec.observer,
    )
    luminance = luminance[..., :2].sum(axis=-1)
    assert np.abs(
        luminance / spec.luminance / spec.background_lms[:2].sum() - 1
    ).max() < strain * tolerance("luminance modulation", dtype)


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize("direction", ISOLUMINANT)
@pytest.mark.parametrize("dtype", DTYPES)
def test_p38_on_every_display_of_the_catalogue(
    name: str, direction: str, dtype: str
) -> None:
    display = PRESETS[name]
    luminance = display.floor + 0.25 * (display.peak - display.black)
    contrast = 0.9 * display.max_contrast(luminance, direction)
    spec = Gabor(
        frequency=4.0,
        contrast=contrast,
        luminance=luminance,
        direction=direction,
        radius=0.2,
        **FIELD,
    )
    drive = display.encode(spec.draw(), dtype=dtype)
    assert_isoluminant(drive, observer=spec.observer, space="encoded", display=display)


@given(
    strategies.gabors(sampling=FIELD),
    st.sampled_from([*ISOLUMINANT, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]),
    st.sampled_from(DTYPES),
)
def test_p39_cones_that_should_be_silent_are(
    spec: Gabor, direction: Direction, dtype: str
) -> None:
    spec = dataclasses.replace(
        spec, direction=direction, contrast=min(spec.contrast, 0.5)
    )
    certificate = assert_cone_contrast(spec.draw(dtype=dtype))
    silent = direction_vector(direction, spec.background_lms) == 0
    for name in np.array(list("LMS"))[silent]:
        assert certificate[f"{name} cone contrast"].requested == 0


@pytest.mark.parametrize(
    ("direction", "leak"), [("red_green", -0.016), ("yellow_violet", -0.018)]
)
def test_p40_another_observer_sees_the_leak_that_theory_says(
    direction: str, leak: float
) -> None:
    """At the gamut limit of grey 0.25: CIE 1931 luminance changes by 1.6 and 1.8 %."""
    display = Display(peak=400.0)
    largest = display.max_contrast(100.0, direction)
    spec = Grating(
        frequency=15.0, contrast=largest, phase=45, direction=direction, **FIELD
    )
    stimulus = spec.draw()
    cones = spec.background_lms * direction_vector(direction, spec.background_lms)
    predicted = float(cone_observer(spec.observer).to_xyz[1] @ cones) * largest
    light = np.asarray(stimulus.luminance) / 100.0 - 1
    sign = np.sign(cones[0] if direction == "red_green" else cones[2])
    # At 45 degrees on a grid of quarter cycles the samples are 1, 0, -1, 0: they meet the peak.
    assert np.abs(light).max() == pytest.approx(abs(predicted), rel=1e-12)
    assert sign * predicted == pytest.approx(leak, abs=0.0015)
    with pytest.raises(CalibrationError, match="luminance modulation"):
        assert_isoluminant(stimulus, observer="cie1931")


@settings(max_examples=60)
@given(displays, strategies.directions(), st.data())
def test_p41_the_gamut_is_bounded_on_both_sides(
    display: Display, direction: Direction, data: st.DataObject
) -> None:
    luminance = data.draw(strategies.backgrounds(display))
    largest = display.max_contrast(luminance, direction)
    background = cone_observer("cie2006_led_lcd").from_xyz @ white_xyz("D65")
    step = (
        display.lms_to_rgb()
        @ (background * direction_vector(direction, background))
        * luminance
    )
    room = np.minimum(luminance - display.floor, display.ceiling - luminance)
    assert largest == pytest.approx(
        float((room / np.abs(step[np.abs(step) > 1e-9 * luminance])).min()), rel=1e-9
    )
    shared: dict[str, Any] = {
        "frequency": 15.0,
        "phase": 45,
        "luminance": luminance,
        "direction": direction,
    } | FIELD
    if 0 < largest * (1 + 1e-6) <= 0.5:
        assert_in_gamut(
            Grating(contrast=largest * (1 - 1e-9), **shared).draw(), display
        )
        with pytest.raises(CalibrationError, match="gamut"):
            assert_in_gamut(
                Grating(contrast=largest * (1 + 1e-6), **shared).draw(), display
            )


def test_p41_values_of_the_reference() -> None:
    display, background = Display(peak=400.0), xyz_to_lms(white_xyz("D65"))
    largest = display.max_contrast(100.0, "red_green") * direction_vector(
        "red_green", background
    )
    assert largest == pytest.approx([0.064, -0.148, 0.0], abs=6e-4)
    for direction, cone, limit in (
        ((1, 0, 0), 0, 0.189),
        ((0, 1, 0), 1, 0.223),
        ((0, 0, 1), 2, 0.872),
    ):
        for grey in (100.0, 200.0):
            reach = (
                display.max_contrast(grey, direction)
                * direction_vector(direction, background)[cone]
            )
            assert reach == pytest.approx(limit, abs=6e-4)


@settings(max_examples=60)
@given(strategies.gabors(sampling=FIELD), st.sampled_from(DTYPES))
def test_p42_cone_contrast_delivered(spec: Gabor, dtype: str) -> None:
    if spec.direction == "achromatic":
        spec = dataclasses.replace(
            spec, direction="red_green", contrast=0.2 * spec.contrast
        )
    assert_cone_contrast(spec.draw(dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("contrast", [0.001, 0.05])
@pytest.mark.parametrize(
    "direction", ["red_green", "yellow_violet", (1.0, 0.0, 0.0), (0.2, 0.1, -0.1)]
)
def test_p42_through_the_display(
    dtype: str, contrast: float, direction: Direction
) -> None:
    display = Display(peak=400.0, black=0.4, ambient=250.0)
    spec = Gabor(
        frequency=4.0, contrast=contrast, direction=direction, radius=0.2, **FIELD
    )
    drive = display.encode(spec.draw(), dtype=dtype)
    certificate = assert_cone_contrast(drive, spec, space="encoded", display=display)
    delivered = np.array(
        [certificate[f"{cone} cone contrast"].delivered for cone in "LMS"]
    )
    allowed = {"float64": 1e-12 / contrast, "float32": 1e-7 / contrast + 1e-4}[dtype]
    assert np.sqrt(np.mean(delivered**2)) == pytest.approx(contrast, rel=allowed)


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize("observer", sorted(CONE_OBSERVERS))
def test_p43_matrices_invert(name: str, observer: str) -> None:
    display, cones = PRESETS[name], cone_observer(observer)
    assert np.abs(display.rgb_to_xyz @ display.xyz_to_rgb - np.eye(3)).max() < 1e-14
    product = cones.from_xyz @ cones.to_xyz
    assert np.abs(product - np.eye(3)).max() < 1e-14
    through = display.lms_to_rgb(observer) @ (cones.from_xyz @ display.rgb_to_xyz)
    assert np.abs(through - np.eye(3)).max() < 1e-13
