"""Codes go into a PNG and come out of it as they are; Pillow is the second opinion."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from psyprobe.errors import InputError
from psyprobe.files.images import decode_png, encode_png

shapes = st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.tuples(
    st.integers(1, 9), st.integers(1, 9), st.just(3)
)


@given(
    st.sampled_from([np.uint8, np.uint16]).flatmap(lambda dtype: arrays(dtype, shapes))
)
@settings(max_examples=60)
def test_codes_come_back(codes: np.ndarray) -> None:
    decoded = decode_png(encode_png(codes))
    assert decoded.dtype == codes.dtype
    np.testing.assert_array_equal(decoded, codes)


@given(arrays(np.uint8, shapes))
@settings(max_examples=60)
def test_pillow_reads_what_is_written(codes: np.ndarray) -> None:
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(encode_png(codes)))), codes
    )


@given(arrays(np.uint16, st.tuples(st.integers(1, 9), st.integers(1, 9))))
@settings(max_examples=20)
def test_pillow_reads_16_bit_grey(codes: np.ndarray) -> None:
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(encode_png(codes)))), codes
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("channels", [(), (3,)])
def test_row_filters_of_other_writers(seed: int, channels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    # Smooth ramps with some noise: Pillow then chooses among all five filters.
    ramp = np.add.outer(np.arange(40) * (seed + 1), np.arange(50) * 2)
    codes = (
        (
            ramp[(..., *(None,) * len(channels))]
            + rng.integers(0, 9, (40, 50, *channels))
        )
        % 256
    ).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(codes).save(stream, "PNG", optimize=True)
    np.testing.assert_array_equal(decode_png(stream.getvalue()), codes)


def test_every_row_filter_is_undone() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 256, (5, 12)).astype(np.uint8)
    lines = np.empty((5, 13), np.uint8)
    for kind in range(5):
        lines[kind, 0] = kind
        for at in range(12):
            left = int(rows[kind, at - 3]) if at >= 3 else 0
            up = int(rows[kind - 1, at]) if kind else 0
            corner = int(rows[kind - 1, at - 3]) if kind and at >= 3 else 0
            # Paeth's: whichever of the three is nearest to the plane through them.
            near = min(
                (left, up, corner), key=lambda value: abs(left + up - corner - value)
            )
            prediction = (0, left, up, (left + up) // 2, near)[kind]
            lines[kind, at + 1] = (int(rows[kind, at]) - prediction) % 256
    plain = encode_png(np.zeros((5, 4, 3), np.uint8))
    body = zlib.compress(lines.tobytes())
    middle = (
        struct.pack(">I", len(body))
        + b"IDAT"
        + body
        + struct.pack(">I", zlib.crc32(b"IDAT" + body))
    )
    data = plain[:33] + middle + plain[-12:]
    np.testing.assert_array_equal(decode_png(data), rows.reshape(5, 4, 3))
    broken = lines.copy()
    broken[2, 0] = 9
    body = zlib.compress(broken.tobytes())
    middle = (
        struct.pack(">I", len(body))
        + b"IDAT"
        + body
        + struct.pack(">I", zlib.crc32(b"IDAT" + body))
    )
    with pytest.raises(InputError, match="damaged"):
        decode_png(plain[:33] + middle + plain[-12:])


def test_other_kinds_and_damage_are_refused() -> None:
    good = encode_png(np.zeros((4, 4), np.uint8))
    stream = io.BytesIO()
    Image.new("P", (4, 4)).save(stream, "PNG")
    for data, message in (
        (b"GIF89a", "no PNG file"),
        (good[:8], "no header"),
        (good[:-30], "cut short|damaged"),
        (good[:30] + b"x" + good[31:], "[Cc]hecksum"),
        (stream.getvalue(), "palette"),
    ):
        with pytest.raises(InputError, match=message):
            decode_png(data)


def test_other_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="uint8 or uint16"):
        encode_png(np.zeros((4, 4)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="shape"):
        encode_png(np.zeros((4, 4, 4), np.uint8))
