"""PNG files of 8 and 16 bits a channel, grey and RGB: exact codes out and in.

Not by Pillow, which has no 16-bit RGB: it would read such a file as 8 bits, without a word. pypng reads. Files are
written here, because pypng always searches for repetitions, which in noise takes twenty times as long and finds none.

References
----------
W3C (2025). Portable Network Graphics (PNG) Specification, third edition.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
#: Pixels that a file may claim to hold; a larger claim is a damaged or hostile header.
_MOST_PIXELS = 16384 * 16384

Codes = npt.NDArray[np.unsignedinteger]


def encode_png(codes: Codes, *, noise: bool = False) -> bytes:
    """The bytes of a PNG file, without any interpretation of the codes: no gamma, no colour profile.

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
    if codes.dtype not in (np.uint8, np.uint16) or not (codes.ndim == 2 or (codes.ndim == 3 and codes.shape[2] == 3)):
        raise InputError(
            f"codes of a PNG are uint8 or uint16 of shape (H, W) or (H, W, 3), not {codes.dtype} of {codes.shape}"
        )
    height, width = codes.shape[:2]
    colour = _RGB if codes.ndim == 3 else _GREY
    rows = np.ascontiguousarray(codes, codes.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8 * codes.dtype.itemsize, colour, 0, 0, 0)
    strategy = zlib.Z_RLE if noise else zlib.Z_DEFAULT_STRATEGY
    squeeze = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
    body = squeeze.compress(unfiltered.tobytes()) + squeeze.flush()
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def decode_png(data: bytes) -> Codes:
    """The codes of a PNG file as stored, neither scaled nor converted: uint8 or uint16, shape (H, W) or (H, W, 3).

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

    if not data.startswith(_SIGNATURE):
        raise InputError("this is no PNG file")
    if data[12:16] != b"IHDR":
        raise InputError("the PNG file has no header")
    try:
        file = png.Reader(bytes=data)
        file.preamble()
        width, height = file.width, file.height
        if file.bitdepth not in (8, 16) or file.color_type not in (_GREY, _RGB) or file.trns or file.interlace:
            raise InputError(
                "the PNG file has a palette, transparency, interlacing or fewer than 8 bits; save it as plain RGB"
            )
        if not 0 < width * height <= _MOST_PIXELS:
            raise InputError(f"the PNG file claims {width} x {height} px; psyprobe reads up to 16384 x 16384")
        size = height * (1 + file.row_bytes)
        squeezed = b"".join(body for name, body in file.chunks() if name == b"IDAT")
        # No more than the header promised: a file of a few kB can hold gigabytes.
        lines = np.frombuffer(zlib.decompressobj().decompress(squeezed, size), np.uint8)
        if len(lines) != size:
            raise InputError(f"the PNG file is cut short: {len(lines)} of {size} bytes")
        rows, above = [], None
        for line in lines.reshape(height, -1):
            above = file.undo_filter(line[0], bytearray(line[1:]), above)
            rows.append(above)
    except (png.Error, zlib.error) as error:
        raise InputError(f"the PNG file is damaged: {error}") from None
    codes: Codes = np.frombuffer(b"".join(rows), ">u2" if file.bitdepth == 16 else np.uint8)
    codes = codes.astype(codes.dtype.newbyteorder("="))
    return codes.reshape((height, width) if file.greyscale else (height, width, 3))
