"""Equation 1 against its definition, pixel by pixel, and the moving of subjects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_construction.manipulation import (
    SCALES,
    Box,
    choose_mask,
    draw_placement,
    overlap,
    place,
)
from psyprobe.tasks.mvp_construction.tools import (
    RecolourEditor,
    RegionSegmenter,
    SmoothInpainter,
)

fractions = st.lists(st.integers(0, 16), min_size=2, max_size=2, unique=True).map(
    lambda pair: sorted(pair)
)
boxes = st.tuples(fractions, fractions).map(
    lambda sides: Box(
        sides[0][0] / 16, sides[1][0] / 16, sides[0][1] / 16, sides[1][1] / 16
    )
)
masks = arrays(
    np.bool_, st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 9))
)


def counted(mask: np.ndarray, box: Box) -> int:
    """True pixels of a mask whose centres lie in a box, one by one."""
    height, width = mask.shape
    return sum(
        bool(mask[row, column])
        for row in range(height)
        for column in range(width)
        if box.left <= (column + 0.5) / width < box.right
        and box.top <= (row + 0.5) / height < box.bottom
    )


@given(masks, boxes)
def test_the_mask_of_greatest_overlap_is_taken_then_the_smaller_then_the_first(
    masks_of_image: np.ndarray, box: Box
) -> None:
    shared = [counted(mask, box) for mask in masks_of_image]
    assert overlap(masks_of_image, box).tolist() == shared
    if not max(shared):
        with pytest.raises(InputError, match="touches the box"):
            choose_mask(masks_of_image, box)
        return
    best = min(
        range(len(masks_of_image)),
        key=lambda i: (-shared[i], int(masks_of_image[i].sum()), i),
    )
    assert choose_mask(masks_of_image, box) == best


def test_a_tie_goes_to_the_smaller_mask_and_overlap_goes_before_size() -> None:
    box = Box(0, 0, 0.5, 0.5)
    inside = box.mask(8, 8)
    nearly, everything, elsewhere = inside.copy(), np.ones((8, 8), dtype=bool), ~inside
    nearly[0, 0] = False
    assert choose_mask(np.stack([everything, inside, nearly, elsewhere]), box) == 1
    # Plain intersection and not over union: a sloppy mask that covers one pixel more of the box
    # wins.
    assert choose_mask(np.stack([nearly, everything]), box) == 1


def test_no_mask_and_no_box_are_one_sentence() -> None:
    with pytest.raises(InputError, match="there is no mask to choose from"):
        choose_mask(np.zeros((0, 4, 4), dtype=bool), Box(0, 0, 1, 1))
    for values in (
        (0.5, 0, 0.5, 1),
        (0, -0.1, 1, 1),
        (0, 0, 1, 1.01),
        (float("nan"), 0, 1, 1),
    ):
        with pytest.raises(InputError, match="is empty or leaves the image"):
            Box(*values)


@given(st.integers(0, 2**32 - 1))
def test_a_moved_subject_is_whole_and_inside(seed: int) -> None:
    mask = np.zeros((50, 80), dtype=bool)
    mask[10:40, 20:44] = True
    image = np.full((50, 80, 3), 10, dtype=np.uint8)
    image[mask] = (200, 100, 50)
    placement = draw_placement(mask, seed)
    moved, moved_mask = place(image, mask, placement)
    assert SCALES[0] <= placement.scale <= SCALES[1]
    assert moved_mask.sum() == round(30 * placement.scale) * round(24 * placement.scale)
    # No fringe of the old background comes along.
    assert set(map(tuple, moved[moved_mask].tolist())) == {(200, 100, 50)}
    assert not moved[~moved_mask].any()


def test_a_subject_at_scale_1_and_its_old_place_is_unchanged() -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    mask = np.random.default_rng(1).random((20, 30)) > 0.7
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    placement = draw_placement(mask, 0)
    same_place = type(placement)(1.0, int(columns[0]), int(rows[0]))
    moved, moved_mask = place(image, mask, same_place)
    np.testing.assert_array_equal(moved_mask, mask)
    np.testing.assert_array_equal(moved[mask], image[mask])
    with pytest.raises(InputError, match="mask is empty"):
        draw_placement(np.zeros((4, 4), dtype=bool), 0)


def test_classical_tools_do_what_their_cards_say() -> None:
    image = np.zeros((40, 60, 3), dtype=np.uint8)
    image[:, 30:] = 220
    for method in ("felzenszwalb", "slic"):
        regions = RegionSegmenter(method).masks(image)
        np.testing.assert_array_equal(regions.sum(axis=0), 1)
    masks = RegionSegmenter("felzenszwalb", min_size=50).masks(image)
    np.testing.assert_array_equal(
        masks[choose_mask(masks, Box(0.5, 0, 1, 1))], image[..., 0] > 0
    )
    hole = Box(0.7, 0.2, 0.9, 0.8).mask(40, 60)
    even = np.full_like(image, 220)
    filled = SmoothInpainter().inpaint(
        np.where(hole[..., None], 0, even).astype(np.uint8), hole, "anything", 0
    )
    np.testing.assert_array_equal(filled, even)
    ramp = np.broadcast_to(
        np.arange(60, dtype=np.uint8)[:, None] * np.uint8(4), (40, 60, 3)
    )
    filled = SmoothInpainter().inpaint(
        np.where(hole[..., None], 0, ramp).astype(np.uint8), hole, "anything", 0
    )
    np.testing.assert_array_equal(filled[~hole], ramp[~hole])
    assert np.abs(filled.astype(int) - ramp).max() < 30
    np.testing.assert_array_equal(
        SmoothInpainter().inpaint(image, np.ones((40, 60), dtype=bool), "", 0), 128
    )
    grey = np.full((4, 4, 3), 90, dtype=np.uint8)
    np.testing.assert_array_equal(RecolourEditor().edit(grey, "anything", 3), grey)
    with pytest.raises(
        InputError, match="felzenszwalb has no setting 'scales'; it has scale"
    ):
        RegionSegmenter("felzenszwalb", scales=3)
