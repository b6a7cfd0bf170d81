"""The observer without an encoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import angular_distance
from psyprobe.errors import InputError
from psyprobe.observers import FeatureObserver, load_observer

PIXELS = load_observer("pixels")
PLANES = npst.arrays(np.float32, (2, 6, 5, 1), elements=st.floats(0.0625, 1, width=32))


def test_is_a_feature_observer() -> None:
    assert isinstance(PIXELS, FeatureObserver)
    assert PIXELS.card.input_size is None and not PIXELS.card.random_weights


@given(npst.arrays(np.float32, (3, 4, 5, 3), elements=st.floats(0, 1, width=32)))
def test_is_the_image_itself(images: FloatArray) -> None:
    rows = PIXELS.features(images)["pixels"]
    np.testing.assert_array_equal(rows.reshape(3, 3, 4, 5), np.moveaxis(images, -1, 1))


@given(PLANES)
def test_one_plane_holds_the_angles_of_three(planes: FloatArray) -> None:
    """Repeating every number three times multiplies lengths and inner products alike, so S_ac
    stays."""
    three = PIXELS.features(np.broadcast_to(planes, (2, 6, 5, 3)))["pixels"]
    single = PIXELS.features(planes)["pixels"]
    assert three.shape[1] == 3 * single.shape[1]
    assert angular_distance(three[0], three[1]) == pytest.approx(
        angular_distance(single[0], single[1]), abs=1e-15, rel=1e-12
    )


def test_copies_nothing_it_need_not(grey_drive: FloatArray) -> None:
    assert np.shares_memory(PIXELS.features(grey_drive[..., :1])["pixels"], grey_drive)


@pytest.mark.parametrize("choice", ["raw", "normalised"])
def test_has_no_normalisation_to_leave_out(choice: str) -> None:
    assert load_observer("pixels", input=choice).card.input == "raw"


def test_refuses_what_is_no_drive() -> None:
    with pytest.raises(InputError, match="int64"):
        PIXELS.features(np.ones((1, 4, 4, 3), np.int64))
    with pytest.raises(InputError, match="NaN"):
        PIXELS.features(np.full((1, 4, 4, 3), np.nan))
