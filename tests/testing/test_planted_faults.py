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
    FORMS,
    PLANTED,
    Planted,
    Scene,
    any_scene,
    handed_over,
    right,
    with_room,
)


def test_there_are_twenty_seven() -> None:
    assert (
        len({fault.what for fault in PLANTED})
        == len({fault.cause for fault in PLANTED})
        == 27
    )


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.what)
def test_the_root_is_named_and_nothing_else(fault: Planted) -> None:
    scene = Scene(**(fault.scene or {}))
    image, asked, space = fault.make(scene)
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(image, asked, space=space, display=scene.display)
    assert [cause.name for cause in failure.value.causes] == [CAUSES[fault.cause].name]


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
        assert_calibrated(image, scene.asked, space="luminance")
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


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.what)
def test_the_root_is_named_in_any_scene(fault: Planted) -> None:
    scene = with_room(fault, any_scene(np.random.default_rng(4)))
    image, asked, space = fault.make(scene)
    _, causes = judge(image, asked, space=space, display=scene.display)
    # A fault that changes nothing, such as a black level of 0, is none.
    assert [cause.name for cause in causes] in ([], [CAUSES[fault.cause].name])


def test_drive_that_is_black_from_minus_one_on_is_told() -> None:
    scene = replace(Scene(), luminance=20.0, contrast=0.1)
    with pytest.raises(InputError, match=r"values in \[-1, 1\] become that by"):
        judge(
            2 * scene.drive(scene.gabor()) - 1,
            scene.asked,
            space="encoded",
            display=scene.display,
        )


@pytest.mark.parametrize("form", FORMS)
def test_right_stimuli_are_not_accused(form: str) -> None:
    """Ten thousand are in ``benchmarks/diagnosis.py``."""
    rng = np.random.default_rng(5)
    for kind in ("gabor", "grating", "disc") * 3:
        scene = any_scene(rng)
        light, asked = right(scene, kind)
        image, space = handed_over(light, form, scene)
        found, causes = judge(image, asked, space=space, display=scene.display)
        bits = form.partition(" bits")[0]
        assert found.passed or [cause.name for cause in causes] == [
            f"{bits}-bit rounding"
        ]


def test_a_fault_too_small_to_matter_is_not_named() -> None:
    asked = Gabor(frequency=4, contrast=0.5, radius=0.3, size=96)
    light = np.asarray(asked.draw().pixels)
    # A millionth of a pixel off, and a contrast that is a millionth too high: float32 would not
    # show it.
    near = (
        replace(asked, x=1e-6 / 60, contrast=0.5 * (1 + 1e-6))
        .draw(dtype="float32")
        .pixels
    )
    assert judge(near, asked, space="luminance")[0].passed
    # Beside a fault that matters it is not named either.
    _, causes = judge(
        replace(asked, x=1e-6 / 60, phase=180.0).draw().pixels, asked, space="luminance"
    )
    assert [cause.name for cause in causes] == [CAUSES["inverted"].name]
    # Right, and too bright for the screen: that is no fault of the drawing.
    assert judge(light, asked, space="luminance", display=Display(peak=120))[1] == ()


def test_what_no_fault_explains_is_given_no_cause() -> None:
    asked = Gabor(frequency=4, contrast=0.5, radius=0.3, size=64)
    picture = 100 + 40 * np.random.default_rng(1).standard_normal((64, 64)).cumsum(
        axis=0
    ).clip(-2, 2)
    found, causes = judge(picture, asked, space="luminance")
    assert not found.passed and causes == ()
