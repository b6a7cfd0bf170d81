"""Cells of a store: JSON as bytes, by what differs from the first of its kind.

JSON of one kind and with the same keys is alike but for a few values. So the first of a kind is kept as its form, and
in cells stands what differs from it: values as bytes (numbers, digests), and around them, where it differs too,
deflated text.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

#: Of deflate beside a form, and alone (records, which are full of digests): level, method, the logarithms of window and
#: memory, and strategy.
_BESIDE = (6, zlib.DEFLATED, -12, 4, zlib.Z_DEFAULT_STRATEGY)
_ALONE = (6, zlib.DEFLATED, -15, 8, zlib.Z_FILTERED)
#: With what a cell begins that holds values alone, or the text around them and values: deflate never begins so. And
#: what is added where all values are float64, so that none tells its kind.
_VALUES, _BOTH, _ALL_DOUBLE = 7, 6, 8
#: A number, or a digest, that is a value of JSON.
_VALUE = re.compile(r'(?<=[\[,: ])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|"(?:[0-9a-f]{2}){16,64}")(?=[\],}])', re.ASCII)
#: As what a value is written: float64; float32 that was widened, or told by its own shortest digits; a whole number of
#: as many bytes as it takes, 7 bits each; a digest; or as it is told.
_DOUBLE, _WIDENED, _SINGLE, _WHOLE, _DIGEST, _TEXT = range(6)
#: In the text around values, where one stands; JSON escapes it.
_GAP = "\0"
#: No cell opens to more bytes.
_LARGEST = 1 << 28
_FLOAT64, _FLOAT32 = struct.Struct("<d"), struct.Struct("<f")


def packed(text: str, form: str = "") -> bytes:
    """JSON as a store keeps it, by what it differs in from its form: values alone, text and values, or all deflated."""
    parts = _VALUE.split(text)
    if len(parts) > 1 and form:
        known = _parts(form)
        doubles, values = _differing(parts[1::2], known[1::2])
        if parts[::2] == list(known[::2]):
            return bytes([_VALUES | doubles]) + values
        around = _deflated(_GAP.join(parts[::2]), _around(form))
        both = bytes([_BOTH | doubles]) + _varint(len(around)) + around + values
        return min(both, _deflated(text, form), key=len)
    return _deflated(text, form)


def unpacked(cell: bytes, form: str = "") -> str:
    """The JSON that was packed with a form.

    Raises
    ------
    ValueError
        These are no bytes that `packed` gave.

    Examples
    --------
    >>> unpacked(packed("[0.25, 1]", "[0.5, 1]"), "[0.5, 1]")
    '[0.25, 1]'
    """
    try:
        if cell[0] & ~_ALL_DOUBLE == _VALUES:
            around, start = list(_parts(form)[::2]), 1
        elif cell[0] & ~_ALL_DOUBLE == _BOTH:
            length, start = _read_varint(cell, 1)
            around = _inflated(cell[start : start + length], _around(form)).split(_GAP)
            start += length
        else:
            return _inflated(cell, form)
        parts = [*around, *around[1:]]
        parts[::2], parts[1::2] = around, _values(cell, start, len(around) - 1, _parts(form)[1::2])
    except (zlib.error, TypeError, struct.error, IndexError) as error:
        raise ValueError(str(error)) from None
    return "".join(parts)


def _deflated(text: str, form: str) -> bytes:
    deflate = zlib.compressobj(*_BESIDE, form.encode()) if form else zlib.compressobj(*_ALONE)
    return deflate.compress(text.encode()) + deflate.flush()


def _inflated(cell: bytes, form: str) -> str:
    inflate = zlib.decompressobj(-15, form.encode())
    text = inflate.decompress(cell, _LARGEST)
    if not inflate.eof or inflate.unused_data:
        raise ValueError("the cell is cut, or goes on")
    return text.decode()


def _differing(told: Sequence[str], known: Sequence[str]) -> tuple[int, bytes]:
    """A bit for each value, lowest first, set where the form has another at its place; then these, in runs of a kind.

    A run is a byte, its kind in the upper three bits and its length less one in the lower five, and its values. Where
    all are float64 they follow at once, and `_ALL_DOUBLE` tells it.
    """
    differ, coded = 0, []
    for place, value in enumerate(told):
        if place >= len(known) or value != known[place]:
            differ |= 1 << place
            coded.append(_coded(value))
    cells = [differ.to_bytes(-(-len(told) // 8), "little")]
    if all(kind == _DOUBLE for kind, _ in coded):
        return _ALL_DOUBLE, b"".join([*cells, *(value for _, value in coded)])
    for kind, run in groupby(coded, key=lambda each: each[0]):
        values = [value for _, value in run]
        for first in range(0, len(values), 32):
            part = values[first : first + 32]
            cells += [bytes([kind << 5 | len(part) - 1]), *part]
    return 0, b"".join(cells)


def _coded(value: str) -> tuple[int, bytes]:
    """The kind of a value, and its bytes, from which it is told again to the last digit."""
    if value[0] == '"':
        digest = bytes.fromhex(value[1:-1])
        return _DIGEST, bytes([len(digest)]) + digest
    if len(value) < 20 and value.lstrip("-").isdigit() and str(whole := int(value)) == value:
        return _WHOLE, _varint(2 * whole if whole >= 0 else -2 * whole - 1)
    number = float(value)
    if repr(number) != value or abs(number) > 3e38:
        return _TEXT, _varint(len(value)) + value.encode()
    single = _FLOAT32.pack(number)
    if _FLOAT32.unpack(single)[0] == number:
        return _WIDENED, single
    if len(value) < 16 and _shortest(single) == value:
        return _SINGLE, single
    return _DOUBLE, _FLOAT64.pack(number)


def _values(cell: bytes, start: int, count: int, known: Sequence[str]) -> Iterator[str]:
    """The values that `_differing` wrote from a place on; the cell must end with them."""
    here = start + -(-count // 8)
    differ = int.from_bytes(cell[start:here], "little")
    kind, left = _DOUBLE, differ.bit_count() if cell[0] & _ALL_DOUBLE else 0
    for place in range(count):
        if not differ >> place & 1:
            yield known[place]
            continue
        if not left:
            kind, left = cell[here] >> 5, (cell[here] & 31) + 1
            here += 1
        left -= 1
        value, here = _told(kind, cell, here)
        yield value
    if left or here != len(cell):
        raise ValueError("the cell is cut, or goes on")


def _told(kind: int, cell: bytes, start: int) -> tuple[str, int]:
    """A value, and where the next one begins."""
    if kind == _DOUBLE:
        return repr(_FLOAT64.unpack_from(cell, start)[0]), start + 8
    if kind == _WIDENED:
        return repr(_FLOAT32.unpack_from(cell, start)[0]), start + 4
    if kind == _SINGLE:
        return _shortest(cell[start : start + 4]), start + 4
    number, start = _read_varint(cell, start)
    if kind == _WHOLE:
        return str(-(number + 1) // 2 if number & 1 else number // 2), start
    held = cell[start : start + number]
    return (f'"{held.hex()}"' if kind == _DIGEST else held.decode()), start + number


def _shortest(single: bytes) -> str:
    """A float32 by the fewest digits, six or more, that tell it from all others."""
    (value,) = _FLOAT32.unpack(single)
    told = (repr(float(f"{value:.{digits}g}")) for digits in range(6, 10))
    return next(each for each in told if _FLOAT32.pack(float(each)) == single)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the upper bit says that more follow."""
    held = []
    while number > 127:
        held.append(number & 127 | 128)
        number >>= 7
    return bytes([*held, number])


def _read_varint(cell: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (cell[start] & 127) << shift
        shift, start = shift + 7, start + 1
        if cell[start - 1] < 128:
            return number, start


@lru_cache(maxsize=64)
def _parts(form: str) -> tuple[str, ...]:
    """Text and values in turn."""
    return tuple(_VALUE.split(form))


@lru_cache(maxsize=64)
def _around(form: str) -> str:
    return _GAP.join(_parts(form)[::2])
