"""Each of the twenty-seven planted faults is named, the root first; right stimuli are not accused."""

from __future__ import annotations

import pytest

from psyprobe.testing import CalibrationError, assert_calibrated
from psyprobe.testing.diagnosis import CAUSES
from tests.testing.planted import PLANTED, Planted, Scene


def test_there_are_twenty_seven() -> None:
    assert len({fault.what for fault in PLANTED}) == len({fault.cause for fault in PLANTED}) == 27


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.what)
def test_the_root_is_named_and_nothing_else(fault: Planted) -> None:
    scene = Scene(**(fault.scene or {}))
    image, asked, space = fault.make(scene)
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(image, asked, space=space, display=scene.display)
    assert [cause.name for cause in failure.value.causes] == [CAUSES[fault.cause].name]
