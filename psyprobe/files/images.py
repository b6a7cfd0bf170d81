"""Images from files, as they are or not at all: nothing is converted, rotated or cut off on the
quiet.

PNG files of 8 and 16 bits a channel, exact codes out and in, are not read by Pillow, which has no
16-bit RGB: it would read such a file as 8 bits, without a word. pypng reads. They are written here,
because pypng always searches for repetitions, which in noise takes twenty times as long and finds
none.

References
----------
W3C (2025). Portable Network Graphics (PNG) Specification, third edition.
"""

from __future__ import annotations

import hashlib
import io
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError
from psyprobe.files.parsing import read_bytes

#: Endings of the files that a folder of images is searched for.
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".jp2")
#: Pixels of an image that nobody means to show to a model: a file of a few kB can claim billions.
MOST_PIXELS = 100_000_000
#: EXIF's tag of the camera's orientation; 1 is upright.
_ORIENTATION = 0x0112

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY = 0
_RGB = 2
#: Pixels that a file may claim to hold; a larger claim is a damaged or hostile header.
_LARGEST_PNG = 16384 * 16384

Codes = npt.NDArray[np.unsignedinteger]


def read_image(path: str | Path) -> npt.NDArray[np.uint8]:
    """An 8-bit image as it lies in its file: sRGB values of shape (H, W, 3); grey has three equal
    channels.

    Parameters
    ----------
    path : str or Path
        PNG, JPEG, WebP, BMP, TIFF or JPEG 2000: grey or RGB with 8 bits a channel.

    Raises
    ------
    InputError
        The file is missing, damaged or cut off, claims more than `MOST_PIXELS`, has a palette, an
        alpha channel or more than 8 bits, or asks by EXIF to be turned: one sentence that says
        which, and what to do.
    """
    return decode_image(read_bytes(path), str(path))


def decode_image(raw: bytes, name: str) -> npt.NDArray[np.uint8]:
    """As `read_image`, from the bytes of a whole file, which messages call by the name."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns at half of its own limit; ours is told in our own words.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(io.BytesIO(raw))
        width, height = opened.size
        if width * height > MOST_PIXELS:
            raise InputError(
                f"{name} claims {width} x {height} px; give images of at most {MOST_PIXELS:,} "
                "pixels"
            )
        _check_kind(opened, name)
        opened.load()
    except InputError:
        raise
    except UnidentifiedImageError:
        raise InputError(
            f"{name} is no image that can be read; give PNG, JPEG, WebP, BMP, TIFF or JPEG 2000"
        ) from None
    except Image.DecompressionBombError:
        raise InputError(
            f"{name} claims more than {MOST_PIXELS:,} pixels; give a smaller image"
        ) from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise InputError(f"{name} is damaged or cut off ({error}); get the file again") from None
    pixels = np.asarray(opened, dtype=np.uint8)
    return np.repeat(pixels[..., None], 3, axis=-1) if pixels.ndim == 2 else pixels


def _check_kind(opened: Any, name: str) -> None:
    """Refuse what could only be shown after a conversion that somebody should have chosen."""
    mode = opened.mode
    if mode == "P":
        raise InputError(f"{name} has a palette of colours; save it as RGB")
    if mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in opened.info:
        raise InputError(f"{name} has an alpha channel; put it on a background and save it as RGB")
    if mode.startswith(("I", "F")):
        raise InputError(f"{name} has more than 8 bits a channel; save it with 8")
    if mode not in ("L", "RGB"):
        raise InputError(
            f"{name} has the colour mode {mode}; save it as grey or RGB with 8 bits a channel"
        )
    orientation = opened.getexif().get(_ORIENTATION, 1)
    if orientation != 1:
        raise InputError(
            f"{name} is to be turned by its EXIF orientation ({orientation}); turn it and save it "
            "upright"
        )


def file_digest(path: str | Path) -> str:
    """SHA-256, hexadecimal, of a file's bytes; an `InputError` where it cannot be read."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def same_pixels(one: str | Path, other: str | Path) -> bool:
    """Whether two image files show the same, pixel for pixel; an `InputError` where one cannot be
    read.
    """
    return file_digest(one) == file_digest(other) or np.array_equal(
        read_image(one), read_image(other)
    )


def images_in(folder: str | Path) -> list[Path]:
    """The image files of a folder, by name, and not those of folders in it; an `InputError` where
    there are none.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    found = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(f"folder {folder} has no images ({', '.join(SUFFIXES)})")
    return found


def encode_png(codes: Codes, *, noise: bool = False) -> bytes:
    """The bytes of a PNG file, without any interpretation of the codes: no gamma, no colour
    profile.

    Parameters
    ----------
    codes : array of uint8 or uint16, shape (H, W) or (H, W, 3)
        Grey or RGB.
    noise : bool
        Whether the image is noise, as dither makes it: then repetitions are not looked for.

    Examples
    --------
    >>> import numpy as np
    >>> decode_png(encode_png(np.array([[0, 65535]], np.uint16)))
    array([[    0, 65535]], dtype=uint16)
    """
    if codes.dtype not in (np.uint8, np.uint16) or not (
        codes.ndim == 2 or (codes.ndim == 3 and codes.shape[2] == 3)
    ):
        raise InputError(
            f"codes of a PNG are uint8 or uint16 of shape (H, W) or (H, W, 3), not {codes.dtype} "
            f"of {codes.shape}"
        )
    height, width = codes.shape[:2]
    colour = _RGB if codes.ndim == 3 else _GREY
    rows = (
        np.ascontiguousarray(codes, codes.dtype.newbyteorder(">"))
        .reshape(height, -1)
        .view(np.uint8)
    )
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8 * codes.dtype.itemsize, colour, 0, 0, 0)
    strategy = zlib.Z_RLE if noise else zlib.Z_DEFAULT_STRATEGY
    squeeze = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
    body = squeeze.compress(unfiltered.tobytes()) + squeeze.flush()
    return _PNG_SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def decode_png(data: bytes) -> Codes:
    """The codes of a PNG file as stored, neither scaled nor converted: uint8 or uint16, shape (H,
    W) or (H, W, 3).

    Parameters
    ----------
    data : bytes
        A whole file: grey or RGB, 8 or 16 bits, not interlaced.

    Raises
    ------
    InputError
        The file is damaged, or of another kind (palette, transparency, interlaced).
    """
    import png

    if not data.startswith(_PNG_SIGNATURE):
        raise InputError("this is no PNG file")
    if data[12:16] != b"IHDR":
        raise InputError("the PNG file has no header")
    try:
        file = png.Reader(bytes=data)
        file.preamble()
        width = file.width
        height = file.height
        if (
            file.bitdepth not in (8, 16)
            or file.color_type not in (_GREY, _RGB)
            or file.trns
            or file.interlace
        ):
            raise InputError(
                "the PNG file has a palette, transparency, interlacing or fewer than 8 bits; save "
                "it as plain RGB"
            )
        if not 0 < width * height <= _LARGEST_PNG:
            raise InputError(
                f"the PNG file claims {width} x {height} px; psyprobe reads up to 16384 x 16384"
            )
        size = height * (1 + file.row_bytes)
        squeezed = b"".join(body for name, body in file.chunks() if name == b"IDAT")
        # No more than the header promised: a file of a few kB can hold gigabytes.
        lines = np.frombuffer(zlib.decompressobj().decompress(squeezed, size), np.uint8)
        if len(lines) != size:
            raise InputError(f"the PNG file is cut short: {len(lines)} of {size} bytes")
        rows = []
        above = None
        for line in lines.reshape(height, -1):
            above = file.undo_filter(line[0], bytearray(line[1:]), above)
            rows.append(above)
    except (png.Error, zlib.error) as error:
        raise InputError(f"the PNG file is damaged: {error}") from None
    codes: Codes = np.frombuffer(b"".join(rows), ">u2" if file.bitdepth == 16 else np.uint8)
    codes = codes.astype(codes.dtype.newbyteorder("="))
    return codes.reshape((height, width) if file.greyscale else (height, width, 3))
