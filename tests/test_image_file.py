"""Images from files: as they lie there, or one clear sentence."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from psyprobe.errors import InputError
from psyprobe.files.images import images_in, read_image

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)


def save(path: Path, picture: Any, **options: Any) -> Path:
    picture.save(path, **options)
    return path


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif"])
def test_pixels_come_as_they_lie_in_the_file(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a{suffix}", Image.fromarray(PIXELS))
    np.testing.assert_array_equal(read_image(path), PIXELS)


def test_grey_has_three_equal_channels(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", Image.fromarray(PIXELS[..., 0]))
    np.testing.assert_array_equal(
        read_image(path), np.repeat(PIXELS[..., :1], 3, axis=-1)
    )


def bomb() -> bytes:
    """A PNG of 70 bytes that claims 40,000 x 40,000 px."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def turned() -> bytes:
    stream, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PIXELS).save(stream, "JPEG", exif=exif)
    return stream.getvalue()


def in_mode(mode: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(stream, "PNG")
    return stream.getvalue()


def deep() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 257).save(stream, "PNG")
    return stream.getvalue()


def cut_off() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, "PNG")
    return stream.getvalue()[:-60]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (cut_off(), "is damaged or cut off"),
        (bomb(), "claims 40000 x 40000 px|claims more than"),
        (deep(), "has more than 8 bits a channel"),
        (in_mode("P"), "has a palette"),
        (in_mode("RGBA"), "has an alpha channel"),
        (in_mode("1"), "colour mode 1"),
        (turned(), "is to be turned by its EXIF orientation"),
        (b"no image at all", "is no image that can be read"),
        (b"", "is no image that can be read"),
    ],
)
def test_what_cannot_be_shown_as_it_is_is_one_sentence(
    tmp_path: Path, raw: bytes, message: str
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message) as caught:
        read_image(path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_image(tmp_path / "absent.png")
    with pytest.raises(InputError, match="there is no folder"):
        images_in(tmp_path / "absent")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match="has no images"):
        images_in(tmp_path)
    (tmp_path / "B.PNG").touch()
    (tmp_path / "a.jpg").touch()
    assert [path.name for path in images_in(tmp_path)] == ["B.PNG", "a.jpg"]
