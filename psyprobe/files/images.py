"""Photographs from files, as they are or not at all: nothing is converted, rotated or cut off on the quiet."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError

#: Endings of the files that a folder of images is searched for.
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".jp2")
#: Pixels of an image that nobody means to show to a model: a file of a few kB can claim billions.
MOST_PIXELS = 100_000_000
#: EXIF's tag of the camera's orientation; 1 is upright.
_ORIENTATION = 0x0112


def read_image(path: str | Path) -> npt.NDArray[np.uint8]:
    """An 8-bit image as it lies in its file: sRGB values of shape (H, W, 3); grey has three equal channels.

    Parameters
    ----------
    path : str or Path
        PNG, JPEG, WebP, BMP, TIFF or JPEG 2000: grey or RGB with 8 bits a channel.

    Raises
    ------
    InputError
        The file is missing, damaged or cut off, claims more than `MOST_PIXELS`, has a palette, an alpha channel or more
        than 8 bits, or asks by EXIF to be turned: one sentence that says which, and what to do.
    """
    return decode_image(_bytes(path), str(path))


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
            raise InputError(f"{name} claims {width} x {height} px; give images of at most {MOST_PIXELS:,} pixels")
        _check_kind(opened, name)
        opened.load()
    except InputError:
        raise
    except UnidentifiedImageError:
        raise InputError(f"{name} is no image that can be read; give PNG, JPEG, WebP, BMP, TIFF or JPEG 2000") from None
    except Image.DecompressionBombError:
        raise InputError(f"{name} claims more than {MOST_PIXELS:,} pixels; give a smaller image") from None
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
        raise InputError(f"{name} has the colour mode {mode}; save it as grey or RGB with 8 bits a channel")
    orientation = opened.getexif().get(_ORIENTATION, 1)
    if orientation != 1:
        raise InputError(f"{name} is to be turned by its EXIF orientation ({orientation}); turn it and save it upright")


def file_digest(path: str | Path) -> str:
    """SHA-256, hexadecimal, of a file's bytes; an `InputError` where it cannot be read."""
    return hashlib.sha256(_bytes(path)).hexdigest()


def images_in(folder: str | Path) -> list[Path]:
    """The image files of a folder, by name, and not those of folders in it; an `InputError` where there are none."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    found = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(f"folder {folder} has no images ({', '.join(SUFFIXES)})")
    return found


def _bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
