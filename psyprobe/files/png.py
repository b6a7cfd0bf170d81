"""PNG files of 8 and 16 bits a channel, grey and RGB: exact codes out and in.

Written out here because Pillow has no 16-bit RGB: it would read such a file as 8 bits, without a word.

References
----------
W3C (2025). Portable Network Graphics (PNG) Specification, third edition.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
_CHANNELS = {_GREY: 1, _RGB: 3}
#: Pixels that a file may claim to hold; a larger claim is a damaged or hostile header.
_MOST_PIXELS = 16384 * 16384

Codes = npt.NDArray[np.unsignedinteger]


def encode_png(codes: Codes, *, noise: bool = False) -> bytes:
    """The bytes of a PNG file.

    Parameters
    ----------
    codes : array of uint8 or uint16, shape (H, W) or (H, W, 3)
        Grey or RGB.
    noise : bool
        Whether the image is noise, as dither makes it: looking for repetitions in it takes twenty times as long and
        makes the file no smaller.

    Returns
    -------
    bytes
        Without any interpretation of the codes (no gamma, no colour profile).

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


def decode_png(data: bytes) -> Codes:
    """The codes of a PNG file.

    Parameters
    ----------
    data : bytes
        A whole file: grey or RGB, 8 or 16 bits, not interlaced.

    Returns
    -------
    array of uint8 or uint16, shape (H, W) or (H, W, 3)
        As stored: neither scaled nor converted.

    Raises
    ------
    InputError
        The file is damaged, or of another kind (palette, transparency, interlaced).
    """
    if not data.startswith(_SIGNATURE):
        raise InputError("this is no PNG file")
    chunks = list(_chunks(data))
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != 13:
        raise InputError("the PNG file has no header")
    width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", chunks[0][1])
    if bits not in (8, 16) or colour not in _CHANNELS or interlace:
        raise InputError(
            "the PNG file has a palette, transparency, interlacing or fewer than 8 bits; save it as plain RGB"
        )
    if not 0 < width * height <= _MOST_PIXELS:
        raise InputError(f"the PNG file claims {width} x {height} px; psyprobe reads up to 16384 x 16384")
    step = _CHANNELS[colour] * bits // 8
    size = height * (1 + width * step)
    try:
        raw = zlib.decompressobj().decompress(b"".join(body for name, body in chunks if name == b"IDAT"), size)
    except zlib.error as error:
        raise InputError(f"the PNG file is damaged: {error}") from None
    if len(raw) != size:
        raise InputError(f"the PNG file is cut short: {len(raw)} of {size} bytes")
    lines = np.frombuffer(raw, np.uint8).reshape(height, -1)
    rows = _unfilter(lines[:, 0], lines[:, 1:], step)
    codes: Codes = rows.view(">u2").astype(np.uint16) if bits == 16 else rows
    return codes.reshape((height, width, 3) if colour == _RGB else (height, width))


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if data[at + 8 + length : at + 12 + length] != struct.pack(">I", zlib.crc32(name + body)):
            raise InputError("the PNG file is damaged: a checksum is wrong")
        yield name, body
        at += 12 + length


def _unfilter(kinds: npt.NDArray[np.uint8], lines: npt.NDArray[np.uint8], step: int) -> npt.NDArray[np.uint8]:
    """Undo the prediction of each byte from the byte `step` to the left, the one above, or both."""
    rows = np.empty_like(lines)
    above = np.zeros(lines.shape[1], np.uint8)
    for i, (kind, line) in enumerate(zip(kinds.tolist(), lines, strict=True)):
        if kind == 0:
            rows[i] = line
        elif kind == 1:
            rows[i] = np.add.accumulate(line.reshape(-1, step), axis=0, dtype=np.uint8).ravel()
        elif kind == 2:
            rows[i] = line + above
        elif kind in (3, 4):
            rows[i] = _predicted(kind, line.tolist(), above.tolist(), step)
        else:
            raise InputError(f"the PNG file is damaged: row filter {kind} does not exist")
        above = rows[i]
    return rows


def _predicted(kind: int, line: list[int], above: list[int], step: int) -> list[int]:
    row = [0] * step
    corner = [0] * step + above
    for at, (byte, up) in enumerate(zip(line, above, strict=True)):
        left = row[at]
        row.append((byte + ((left + up) // 2 if kind == 3 else _paeth(left, up, corner[at]))) & 255)
    return row[step:]


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    distance = (abs(estimate - left), abs(estimate - up), abs(estimate - corner))
    return (left, up, corner)[distance.index(min(distance))]
