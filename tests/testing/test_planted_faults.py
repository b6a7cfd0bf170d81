"""Each of the twenty-seven planted faults is named, the root first; right stimuli are not
accused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import Gabor
from psyprobe.testing import CalibrationError, assert_calibrated, judge
from psyprobe.testing.diagnosis import CAUSES
from tests.testing.planted import (
    ENCODED,
    ENCODED_BY_GUN,
    FORMS,
    PLANTED,
    SCREENS,
    Planted,
    Scene,
    any_scene,
    encoding,
    handed_over,
    right,
    with_room,
)


def test_there_are_twenty_seven() -> None:
    assert (
        len({fault.description for fault in PLANTED})
        == len({fault.cause for fault in PLANTED})
        == 27
    )


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.description)
def test_the_root_is_named_and_nothing_else(fault: Planted) -> None:
    scene = Scene(**(fault.scene or {}))
    image, specification, space = fault.make(scene)
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(image, specification, space=space, display=scene.display)
    assert [cause.name for cause in failure.value.causes] == [CAUSES[fault.cause].name]


def causes_of(fault: Planted, scene: Scene, bits: bool = False) -> list[str]:
    """Names of the causes of a fault, in floats or rounded to 8 bits."""
    image, specification, space = fault.make(scene)
    if bits:
        image = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    _, causes = judge(image, specification, space=space, display=scene.display)
    return [cause.name for cause in causes]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("fault", ENCODED, ids=lambda fault: fault.description)
def test_wrong_encoding_is_named_on_measured_screens_as_on_others(
    fault: Planted, screen: str
) -> None:
    for contrast in (0.5, 0.05):
        scene = Scene(contrast=contrast, screen=screen, size=96)
        assert causes_of(fault, scene) == [CAUSES[fault.cause].name]
    # Rounding comes besides, and is not taken for the cause.
    scene = Scene(screen=screen, size=96)
    assert causes_of(fault, scene, bits=True) == [CAUSES[fault.cause].name]


@pytest.mark.parametrize("fault", ENCODED_BY_GUN, ids=lambda fault: fault.description)
def test_a_curve_of_another_gun_is_named(fault: Planted) -> None:
    scene = Scene(screen="three guns measured, simulated", size=96)
    assert causes_of(fault, scene) == [CAUSES[fault.cause].name]


@pytest.mark.parametrize("screen", SCREENS)
def test_an_encoding_that_nobody_knows_is_given_no_cause(screen: str) -> None:
    """In codes that was 8-bit rounding, at low contrast light added to every pixel."""
    fault = Planted("gamma 1.4", "", encoding(lambda s, v: s.relative(v) ** (1 / 1.4)))
    for contrast in (0.5, 0.05):
        scene = Scene(contrast=contrast, screen=screen, size=96)
        assert causes_of(fault, scene) == causes_of(fault, scene, bits=True) == []


def test_rounding_is_named_on_three_guns() -> None:
    scene = Scene(contrast=0.02, screen="three guns measured, simulated")
    fault = Planted("", "rounded", encoding(lambda s, v: s.by_curves(s.relative(v))))
    assert causes_of(fault, scene, bits=True) == [CAUSES["rounded"].name]


def test_the_root_comes_before_what_follows_from_it() -> None:
    scene = Scene()
    image = replace(
        scene,
        frequency=scene.frequency * 1.25,
        radius=scene.radius * 0.8,
        x=0.08,
        y=-0.12,
    ).gabor()
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(image, scene.gabor_specification, space="luminance")
    lines = str(failure.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:5]] == [
        "frequency",
        "radius",
        "position x",
        "position y",
    ]
    assert lines[5].startswith(
        "Likely cause: wrong pixels per degree: it is the image for 48 pixels per degree"
    )
    assert lines[6].startswith("What follows from it: ") and "contrast -" in lines[6]


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.description)
def test_the_root_is_named_in_any_scene(fault: Planted) -> None:
    scene = with_room(fault, any_scene(np.random.default_rng(4)))
    image, specification, space = fault.make(scene)
    _, causes = judge(image, specification, space=space, display=scene.display)
    # A fault that changes nothing, such as a black level of 0, is none.
    assert [cause.name for cause in causes] in ([], [CAUSES[fault.cause].name])


def test_drive_that_is_black_from_minus_one_on_is_told() -> None:
    scene = replace(Scene(), luminance=20.0, contrast=0.1)
    with pytest.raises(InputError, match=r"values in \[-1, 1\] become that by"):
        judge(
            2 * scene.drive(scene.gabor()) - 1,
            scene.gabor_specification,
            space="encoded",
            display=scene.display,
        )


@pytest.mark.parametrize("form", FORMS)
def test_right_stimuli_are_not_accused(form: str) -> None:
    """Ten thousand are in ``benchmarks/diagnosis.py``."""
    rng = np.random.default_rng(5)
    for kind in ("gabor", "grating", "disc") * 3:
        scene = any_scene(rng)
        light, specification = right(scene, kind)
        image, space = handed_over(light, form, scene)
        certificate, causes = judge(
            image, specification, space=space, display=scene.display
        )
        bits = form.partition(" bits")[0]
        assert certificate.passed or [cause.name for cause in causes] == [
            f"{bits}-bit rounding"
        ]


def test_a_fault_too_small_to_matter_is_not_named() -> None:
    specification = Gabor(frequency=4, contrast=0.5, radius=0.3, size=96)
    light = np.asarray(specification.draw().pixels)
    # A millionth of a pixel off, and a contrast that is a millionth too high: float32 would not
    # show it.
    near = (
        replace(specification, x=1e-6 / 60, contrast=0.5 * (1 + 1e-6))
        .draw(dtype="float32")
        .pixels
    )
    assert judge(near, specification, space="luminance")[0].passed
    # Beside a fault that matters it is not named either.
    _, causes = judge(
        replace(specification, x=1e-6 / 60, phase=180.0).draw().pixels,
        specification,
        space="luminance",
    )
    assert [cause.name for cause in causes] == [CAUSES["inverted"].name]
    # Right, and too bright for the screen: that is no fault of the drawing.
    assert (
        judge(light, specification, space="luminance", display=Display(peak=120))[1]
        == ()
    )


def test_what_no_fault_explains_is_given_no_cause() -> None:
    specification = Gabor(frequency=4, contrast=0.5, radius=0.3, size=64)
    picture = 100 + 40 * np.random.default_rng(1).standard_normal((64, 64)).cumsum(
        axis=0
    ).clip(-2, 2)
    certificate, causes = judge(picture, specification, space="luminance")
    assert not certificate.passed and causes == ()
