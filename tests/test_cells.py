"""Cells of a store: every text comes back to the last digit, in as few bytes as its values hold."""

from __future__ import annotations

import json
import math
import struct
from operator import ne
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from psyprobe.running.database import opened, packed, packed_numbers, unpacked

#: Numbers as servers tell them: float64, float32 that was widened, float32 by its own digits, and
#: few digits.
NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(width=32, allow_nan=False, allow_infinity=False)
    | st.floats(-30, 0).map(lambda number: float(f"{number:.8g}"))
    | st.floats(0, 100).map(lambda number: round(number, 3))
    | st.integers()
)
TEXTS = (
    st.text()
    | st.binary(min_size=8, max_size=70).map(bytes.hex)
    | st.sampled_from(["at [1e5, 007, -0]", ", 9,"])
)
VALUES = st.recursive(
    NUMBERS | TEXTS | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=5), inner, max_size=5)
    ),
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


@pytest.mark.parametrize(
    ("shape", "size", "top"), [("single", 4, 9), ("widened", 4, 9), ("double", 8, 12)]
)
def test_a_log_probability_takes_its_digits_and_few_bits_of_its_exponent(
    shape: str, size: int, top: int
) -> None:
    served = [-1 / (3 + 2 * k) for k in range(20)]
    if shape != "double":
        served = [struct.unpack("<f", struct.pack("<f", number))[0] for number in served]
    if shape == "single":
        numpy = pytest.importorskip("numpy")
        served = [float(str(numpy.float32(number))) for number in served]
    text, form = json.dumps({"first": served}), json.dumps({"first": [-0.5] * 20})
    cell = packed(text, form)
    assert unpacked(cell, form) == text
    # What kind of cell, which numbers differ, of what kind they are, and the least. They lie in
    # five octaves, which three bits tell; sign and exponent are nine bits of a float32 and twelve
    # of a float64.
    assert len(cell) <= 1 + 3 + 1 + 3 + -(-20 * (8 * size - top + 3) // 8)


@settings(max_examples=60)
@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9),
    known=st.lists(st.floats(-1, 1), min_size=9, max_size=9),
)
@example(numbers=[-0.0, 5e-324, 1e308], known=[0.1] * 9)
@example(numbers=[0.1, 0.5, 0.3], known=[0.5] * 9)
@example(numbers=[0.1, 0.2], known=[-0.0] * 9)
def test_numbers_come_back_without_their_text(numbers: list[float], known: list[float]) -> None:
    value, other = (
        {"values": [each[:-1]], "x": each[-1], "y": [], "z": None} for each in (numbers, known)
    )
    form = json.dumps({**other, "values": [known[: len(numbers) - 1]]})
    cell = packed_numbers(value, form)
    if cell is None:
        cell = packed(json.dumps(value), form)
    else:
        changed = sum(
            map(ne, map(repr, numbers), map(repr, [*known[: len(numbers) - 1], known[-1]]))
        )
        assert len(cell) == 1 + -(-len(numbers) // 8) + 8 * changed
        for damaged in (cell[:-1], cell + b"x"):
            with pytest.raises(ValueError):
                opened(damaged, form)
    assert json.dumps(opened(cell, form)) == json.dumps(value)


def test_only_numbers_of_eight_bytes_are_written_without_their_text() -> None:
    form = json.dumps({"values": [[0.1, 0.2]], "z": 1, "a": 2})
    known = {"values": [[0.3, 0.4]], "z": 1, "a": 2}
    assert len(packed_numbers(known, form) or b"") == 1 + 1 + 16
    assert len(packed_numbers({**known, "values": [[0.3, 0.2]]}, form) or b"") == 1 + 1 + 8
    odd = (
        [0.3],
        [0.0, 0.2],
        [-0.0, 0.2],
        [0.3, 0.25],
        [0.3, 1],
        [0.3, math.nan],
        [math.inf, 0.2],
        [0.3, 1e39],
    )
    for values in odd:
        assert packed_numbers({**known, "values": [values]}, form) is None
    for other in (
        {**known, "z": True},
        {**known, "z": "1"},
        {"values": [[0.3, 0.4]], "a": 2, "z": 1},
    ):
        assert packed_numbers(other, form) is None
    assert packed_numbers(known, form[:-1]) is None


def test_a_digest_takes_half_of_its_digits() -> None:
    text, form = (json.dumps([f"{number:064x}"]) for number in (3**160, 5**100))
    assert len(packed(text, form)) == 1 + 1 + 1 + 1 + 32
