"""Cells of a store: every text comes back to the last digit, in as few bytes as its values hold."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from psyprobe.running.cells import packed, unpacked

#: Numbers as servers tell them: float64, float32 that was widened, float32 by its own digits, and few digits.
NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(width=32, allow_nan=False, allow_infinity=False)
    | st.floats(-30, 0).map(lambda number: float(f"{number:.8g}"))
    | st.floats(0, 100).map(lambda number: round(number, 3))
    | st.integers()
)
TEXTS = st.text() | st.binary(min_size=8, max_size=70).map(bytes.hex) | st.sampled_from(["at [1e5, 007, -0]", ", 9,"])
VALUES = st.recursive(
    NUMBERS | TEXTS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=15,
)


@settings(max_examples=60)
@given(value=VALUES, form=VALUES, alike=st.booleans(), cut=st.integers(0, 60))
@example(value=["5" * 5000, 10**30, -0.0, 1e300], form=[], alike=True, cut=0)
def test_every_text_comes_back(value: Any, form: Any, alike: bool, cut: int) -> None:
    text = json.dumps(value, separators=(",", ":"))
    known = text.replace("1", "2") if alike else json.dumps(form)
    known = known[: len(known) - cut]
    cell = packed(text, known)
    assert unpacked(cell, known) == text
    for damaged in (cell[:-1], cell + b"x"):
        with pytest.raises(ValueError):
            assert unpacked(damaged, known) == text


@pytest.mark.parametrize(("shape", "size"), [("single", 4), ("widened", 4), ("double", 8)])
def test_a_log_probability_takes_the_bytes_that_it_was_served_with(shape: str, size: int) -> None:
    served = [-1 / (3 + 2 * k) for k in range(20)]
    if shape != "double":
        served = [struct.unpack("<f", struct.pack("<f", number))[0] for number in served]
    if shape == "single":
        numpy = pytest.importorskip("numpy")
        served = [float(str(numpy.float32(number))) for number in served]
    text, form = json.dumps({"first": served}), json.dumps({"first": [-0.5] * 20})
    cell = packed(text, form)
    assert unpacked(cell, form) == text
    # What kind of cell, which numbers differ, and of what kind they are.
    assert len(cell) <= 1 + 3 + 1 + 20 * size


def test_a_digest_takes_half_of_its_digits() -> None:
    text, form = (json.dumps([f"{number:064x}"]) for number in (3**160, 5**100))
    assert len(packed(text, form)) == 1 + 1 + 1 + 1 + 32
