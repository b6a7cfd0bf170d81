"""Read images from files as they are, or refuse them: none is converted, rotated or cut silently.

pypng reads PNG files of 8 and 16 bits a channel as exact codes: Pillow has no 16-bit RGB, and would
silently read such a file as 8 bits. They are written here, since pypng always searches for
repetitions, which takes twenty times as long in noise and finds none.

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

from psyprobe._typing import ByteArray
from psyprobe.errors import InputError
from psyprobe.files.parsing import read_bytes

#: Endings of image files.
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".jp2")
#: Largest number of pixels of an image: a file of a few kB can claim billions.
MAX_PIXELS = 100_000_000
#: EXIF's tag of the camera's orientation; 1 is upright.
_ORIENTATION = 0x0112

#: EXIF's directory in which cameras mark Adobe RGB.
_INTEROPERABILITY = 0xA005
#: How many codes of 255 a colour profile of sRGB may be off, by its tables' rounding.
_PROFILE_CODES = 2

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY = 0
_RGB = 2
#: Pixels that a PNG file may claim; a larger claim is a damaged or hostile header.
_LARGEST_PNG = 16384 * 16384

Codes = npt.NDArray[np.unsignedinteger]


def read_image(path: str | Path) -> ByteArray:
    """Read an 8-bit image as it is in its file: sRGB values of shape (H, W, 3), grey repeated.

    Parameters
    ----------
    path : str or Path
        PNG, JPEG, WebP, BMP, TIFF or JPEG 2000: grey or RGB with 8 bits a channel.

    Raises
    ------
    InputError
        The file is missing, damaged or cut off, claims more than `MAX_PIXELS`, has a palette, an
        alpha channel or more than 8 bits, or an EXIF rotation: one sentence says which, and the
        remedy.
    """
    return decode_image(read_bytes(path), str(path))


def decode_image(raw: bytes, name: str) -> ByteArray:
    """Decode an image from the bytes of a file, as `read_image` does; messages call it by name."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns at half of its own limit; ours is an error.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(raw))
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise InputError(
                f"{name} claims {width} x {height} px; give images of at most {MAX_PIXELS:,} pixels"
            )
        _check_kind(image, name)
        image.load()
    except InputError:
        raise
    except UnidentifiedImageError:
        raise InputError(
            f"{name} is no image that can be read; give PNG, JPEG, WebP, BMP, TIFF or JPEG 2000"
        ) from None
    except Image.DecompressionBombError:
        raise InputError(
            f"{name} claims more than {MAX_PIXELS:,} pixels; give a smaller image"
        ) from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise InputError(
            f"{name} is damaged or cut off ({error}); get the file again"
        ) from None
    pixels = np.asarray(image, dtype=np.uint8)
    return np.repeat(pixels[..., None], 3, axis=-1) if pixels.ndim == 2 else pixels


def check_srgb(raw: bytes, name: str) -> None:
    """Refuse an image whose file says that its codes are of another colour space than sRGB.

    Parameters
    ----------
    raw : bytes
        A file that `decode_image` takes.
    name : str
        Its name in messages.

    Raises
    ------
    InputError
        A colour profile, a gamma or a camera's mark states another space.
    """
    from PIL import Image

    image = Image.open(io.BytesIO(raw))
    space = ""
    gamma = image.info.get("gamma")
    if profile := image.info.get("icc_profile"):
        space = _foreign_profile(profile, image.mode, name)
    elif gamma and "srgb" not in image.info and abs(gamma * 2.2 - 1) > 0.02:
        space = f"the gamma {gamma:g}"
    elif image.getexif().get_ifd(_INTEROPERABILITY).get(1) == "R03":
        space = "the camera's mark of Adobe RGB"
    if space:
        raise InputError(
            f"{name} has {space}, and only sRGB is decoded; convert it to sRGB and save it"
        )


def _foreign_profile(profile: bytes, mode: str, name: str) -> str:
    """Name an embedded colour profile that is not sRGB; "" where it is."""
    from PIL import Image, ImageCms

    steps = np.arange(0, 256, 51, dtype=np.uint8)
    codes = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(1, -1, 3)
    if mode == "L":
        codes = codes[..., 0]
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        description = ImageCms.getProfileDescription(source).strip()
        transform = ImageCms.buildTransform(
            source, ImageCms.createProfile("sRGB"), mode, "RGB"
        )
        shown = ImageCms.applyTransform(Image.fromarray(codes), transform)
    except (OSError, ValueError, ImageCms.PyCMSError) as error:
        raise InputError(
            f"{name} has a colour profile that cannot be used ({error}); save it as sRGB"
        ) from None
    expected = codes if mode == "RGB" else codes[..., None]
    difference = np.abs(np.asarray(shown, dtype=int) - expected).max()
    same = difference <= _PROFILE_CODES
    return "" if same else f"the colour profile {description!r}"


def _check_kind(image: Any, name: str) -> None:
    """Refuse an image file that must be converted (of 16 bits, transparent ...) to be read."""
    mode = image.mode
    if mode == "P":
        raise InputError(f"{name} has a palette of colours; save it as RGB")
    if mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        raise InputError(
            f"{name} has an alpha channel; put it on a background and save it as RGB"
        )
    if mode.startswith(("I", "F")):
        raise InputError(f"{name} has more than 8 bits a channel; save it with 8")
    if mode not in ("L", "RGB"):
        raise InputError(
            f"{name} has the colour mode {mode}; save it as grey or RGB with 8 bits a channel"
        )
    orientation = image.getexif().get(_ORIENTATION, 1)
    if orientation != 1:
        raise InputError(
            f"{name} is to be turned by its EXIF orientation ({orientation}); turn it and save it "
            "upright"
        )


def file_digest(path: str | Path) -> str:
    """Compute the SHA-256, hexadecimal, of a file's bytes."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def same_pixels(path: str | Path, other_path: str | Path) -> bool:
    """Return whether two image files have equal pixels."""
    if file_digest(path) == file_digest(other_path):
        return True
    return np.array_equal(read_image(path), read_image(other_path))


def images_in(folder: str | Path) -> list[Path]:
    """List the image files directly in a folder by name; an `InputError` if there are none."""
    if not Path(folder).is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    paths = sorted(
        path for path in Path(folder).iterdir() if path.suffix.lower() in SUFFIXES
    )
    if not paths:
        raise InputError(f"folder {folder} has no images ({', '.join(SUFFIXES)})")
    return paths


def encode_png(codes: Codes, *, noise: bool = False) -> bytes:
    """Encode codes as the bytes of a PNG file, without gamma or colour profile.

    Parameters
    ----------
    codes : array of uint8 or uint16, shape (H, W) or (H, W, 3)
        Grey or RGB.
    noise : bool
        Whether the image is noise, as dither makes it: then repetitions are not searched for.

    Examples
    --------
    >>> import numpy as np
    >>> decode_png(encode_png(np.array([[0, 65535]], np.uint16)))
    array([[    0, 65535]], dtype=uint16)
    """
    has_shape = codes.ndim == 2 or (codes.ndim == 3 and codes.shape[2] == 3)
    if codes.dtype not in (np.uint8, np.uint16) or not has_shape:
        raise InputError(
            "codes of a PNG are uint8 or uint16 of shape (H, W) or (H, W, 3), not "
            f"{codes.dtype} of {codes.shape}"
        )
    height, width = codes.shape[:2]
    colour = _RGB if codes.ndim == 3 else _GREY
    big_endian = np.ascontiguousarray(codes, codes.dtype.newbyteorder(">"))
    rows = big_endian.reshape(height, -1).view(np.uint8)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    header = struct.pack(
        ">IIBBBBB", width, height, 8 * codes.dtype.itemsize, colour, 0, 0, 0
    )
    strategy = zlib.Z_RLE if noise else zlib.Z_DEFAULT_STRATEGY
    squeeze = zlib.compressobj(
        6, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy
    )
    body = squeeze.compress(unfiltered.tobytes()) + squeeze.flush()
    return (
        _PNG_SIGNATURE
        + _build_chunk(b"IHDR", header)
        + _build_chunk(b"IDAT", body)
        + _build_chunk(b"IEND", b"")
    )


def _build_chunk(name: bytes, body: bytes) -> bytes:
    """Build a PNG chunk: length, name, body and checksum."""
    return (
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
    )


def decode_png(data: bytes) -> Codes:
    """Decode the codes of a PNG file as stored, neither scaled nor converted.

    Parameters
    ----------
    data : bytes
        A whole file: grey or RGB, 8 or 16 bits, not interlaced.

    Returns
    -------
    array of uint8 or uint16, shape (H, W) or (H, W, 3)

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
        is_plain = file.bitdepth in (8, 16) and file.color_type in (_GREY, _RGB)
        if not is_plain or file.trns or file.interlace:
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
        # No more than the header says: a file of a few kB can hold gigabytes.
        lines = np.frombuffer(zlib.decompressobj().decompress(squeezed, size), np.uint8)
        if len(lines) != size:
            raise InputError(f"the PNG file is cut short: {len(lines)} of {size} bytes")
        rows = []
        row = None
        for line in lines.reshape(height, -1):
            row = file.undo_filter(line[0], bytearray(line[1:]), row)
            rows.append(row)
    except (png.Error, zlib.error) as error:
        raise InputError(f"the PNG file is damaged: {error}") from None
    codes: Codes = np.frombuffer(
        b"".join(rows), ">u2" if file.bitdepth == 16 else np.uint8
    )
    codes = codes.astype(codes.dtype.newbyteorder("="))
    return codes.reshape((height, width) if file.greyscale else (height, width, 3))
