"""Cells of a store: JSON as bytes, by what differs from the first of its kind.

JSON of one kind and with the same keys is alike but for a few values. So the first of a kind is kept as its form, and
in cells stands what differs from it: values as bytes (numbers, digests), and around them, where it differs too,
deflated text.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress, count, groupby, islice
from math import isfinite
from operator import eq, lshift, ne
from typing import Any

#: Of deflate beside a form, and alone (records, which are full of digests): level, method, the logarithms of window and
#: memory, and strategy.
_BESIDE = (6, zlib.DEFLATED, -12, 4, zlib.Z_DEFAULT_STRATEGY)
_ALONE = (6, zlib.DEFLATED, -15, 8, zlib.Z_FILTERED)
#: With what a cell begins that holds values alone, the text around them and values, or float64 and nothing else:
#: deflate never begins so.
_VALUES, _BOTH, _DOUBLES = 7, 6, 15
#: So many float64 are few, as an encoder's distances are: written as they are, which takes little time.
_FEW = 16
#: A number, or a digest, that is a value of JSON.
_VALUE = re.compile(r'(?<=[\[,: ])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|"(?:[0-9a-f]{2}){16,64}")(?=[\],}])', re.ASCII)
#: As what a value is written: float64; float32 that was widened, or told by its own shortest digits; a whole number of
#: as many bytes as it takes, 7 bits each; a digest; or as it is told.
_DOUBLE, _WIDENED, _SINGLE, _WHOLE, _DIGEST, _TEXT = range(6)
#: A text as long or longer is no float32 by its own digits.
_NOT_SINGLE = 16
#: What is larger is no float32.
_LARGEST_SINGLE = 3e38
#: Values of one kind that follow each other are written together, so many at most.
_RUN = 32
#: In the text around values, where one stands; JSON escapes it.
_GAP = "\0"
#: No cell opens to more bytes.
_LARGEST = 1 << 28
#: Of numbers in floating point: bytes of each, and how `struct` calls them and their bits as whole numbers.
_FLOATS = {_DOUBLE: (8, "d", "Q"), _WIDENED: (4, "f", "I"), _SINGLE: (4, "f", "I")}
_FLOAT64, _FLOAT32 = struct.Struct("<d"), struct.Struct("<f")


def packed(text: str, form: str = "") -> bytes:
    """JSON as a store keeps it, by what it differs in from its form: values alone, text and values, or all deflated."""
    parts = _VALUE.split(text) if form else [text]
    if len(parts) == 1:
        return _deflated(text, form)
    around, known = _parts(form)
    values = _differing(parts[1::2], known)
    if parts[::2] == around:
        return bytes([_VALUES]) + values
    told = _deflated(_GAP.join(parts[::2]), _around(form))
    both = bytes([_BOTH]) + _varint(len(told)) + told + values
    return min(both, _deflated(text, form), key=len)


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
        if cell[0] == _VALUES:
            start = 1
            around, known = _parts(form)
        elif cell[0] == _BOTH:
            length, start = _read_varint(cell, 1)
            around = _inflated(cell[start : start + length], _around(form)).split(_GAP)
            start, known = start + length, _parts(form)[1]
        else:
            return _inflated(cell, form)
        parts = [*around, *around[1:]]
        parts[::2], parts[1::2] = around, _values(cell, start, len(around) - 1, known)
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


def packed_numbers(value: Any, form: str) -> bytes | None:
    """A value that differs from its form in a few float64 alone, without its JSON; None of any other.

    A bit for each number, lowest first, set where the form has another one at its place; then these, of which none
    takes fewer bytes.
    """
    numbers: list[float] = []
    shape, _, known = _shape(form)
    try:
        if _shape_of(value, numbers) != shape:
            return None
        held: bytes = struct.pack(f"<{len(known)}d", *numbers)
        # By their bits, which tell zeros of either sign apart.
        differ = [*map(ne, struct.unpack(f"<{len(known)}Q", held), known)]
        if not all(differ):
            numbers = [*compress(numbers, differ)]
            held = struct.pack(f"<{len(numbers)}d", *numbers)
        singles = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
    except (OverflowError, RecursionError):
        return None
    if len(numbers) > _FEW or any(map(eq, singles, numbers)) or not all(map(isfinite, numbers)):
        return None
    bits: int = sum(map(lshift, differ, count()))
    return bytes([_DOUBLES]) + bits.to_bytes(-(-len(known) // 8), "little") + held


def opened(cell: bytes, form: str = "") -> Any:
    """The value whose JSON, or whose numbers, were packed with a form.

    Raises
    ------
    ValueError
        These are no bytes that `packed` or `packed_numbers` gave.
    """
    if cell[:1] != bytes([_DOUBLES]):
        return json.loads(unpacked(cell, form))
    shape, known, _ = _shape(form)
    start = 1 - (-len(known) // 8)
    places = _places(cell[1:start])
    if len(cell) != start + 8 * len(places) or (places and places[-1] >= len(known)):
        raise ValueError("the cell is cut, or goes on")
    numbers = [*known]
    for place, number in zip(places, struct.unpack_from(f"<{len(places)}d", cell, start), strict=True):
        numbers[place] = number
    return _filled(shape, iter(numbers))


@lru_cache(maxsize=64)
def _places(bits: bytes) -> list[int]:
    """Of the bits that are set, the lowest first."""
    return [i for i in range(8 * len(bits)) if bits[i >> 3] >> (i & 7) & 1]


@lru_cache(maxsize=64)
def _shape(form: str) -> tuple[Any, list[float], tuple[int, ...]]:
    """Of a form, as `_shape_of`, its numbers, and their bits; one that is cut has no shape."""
    numbers: list[float] = []
    try:
        shape = _shape_of(json.loads(form), numbers)
    except (ValueError, RecursionError):
        return None, [], ()
    return shape, numbers, struct.unpack(f"<{len(numbers)}Q", struct.pack(f"<{len(numbers)}d", *numbers))


def _shape_of(value: Any, numbers: list[float]) -> Any:
    """What a value is besides its float64, which are added to others: a list of them is how many they are."""
    kind = type(value)
    if kind is float:
        numbers.append(value)
        return float
    if kind is list:
        if {*map(type, value)} == {float}:
            numbers += value
            return len(value)
        return [_shape_of(each, numbers) for each in value]
    if kind is dict:
        return dict, [*value], [_shape_of(each, numbers) for each in value.values()]
    return kind, value


def _filled(shape: Any, numbers: Iterator[float]) -> Any:
    """The value of a shape and numbers."""
    if type(shape) is int:
        return [*islice(numbers, shape)]
    if shape is float:
        return next(numbers)
    if type(shape) is list:
        return [_filled(each, numbers) for each in shape]
    if shape[0] is dict:
        return {name: _filled(each, numbers) for name, each in zip(*shape[1:], strict=True)}
    return shape[1]


def _differing(told: Sequence[str], known: Sequence[str]) -> bytes:
    """A bit for each value, lowest first, set where the form has another at its place; then these, in runs of a kind.

    A run is a byte, its kind in the upper three bits and its length less one in the lower five, and its values.
    """
    places = [i for i, value in enumerate(told) if i >= len(known) or value != known[i]]
    differ = sum(1 << i for i in places)
    return differ.to_bytes(-(-len(told) // 8), "little") + _runs([told[i] for i in places])


def _runs(told: Sequence[str]) -> bytes:
    cells = []
    for (kind, _), run in groupby(map(_coded, told), key=_kind_and_sign):
        values = [value for _, value in run]
        for first in range(0, len(values), _RUN):
            part = values[first : first + _RUN]
            cells += [bytes([kind << 5 | len(part) - 1]), _near(kind, part) if kind in _FLOATS else b"".join(part)]
    return b"".join(cells)


def _kind_and_sign(coded: tuple[int, bytes]) -> tuple[int, int]:
    kind, value = coded
    return kind, value[-1] >> 7 if kind in _FLOATS else 0


def _coded(value: str) -> tuple[int, bytes]:
    """The kind of a value, and its bytes, from which it is told again to the last digit."""
    if value[0] == '"':
        digest = bytes.fromhex(value[1:-1])
        return _DIGEST, bytes([len(digest)]) + digest
    if len(value) < 20 and value.lstrip("-").isdigit() and str(whole := int(value)) == value:
        return _WHOLE, _varint(2 * whole if whole >= 0 else -2 * whole - 1)
    number = float(value)
    if repr(number) != value or abs(number) > _LARGEST_SINGLE:
        return _TEXT, _varint(len(value)) + value.encode()
    single = _FLOAT32.pack(number)
    if _FLOAT32.unpack(single)[0] == number:
        return _WIDENED, single
    if len(value) < _NOT_SINGLE and _shortest(number) == value:
        return _SINGLE, single
    return _DOUBLE, _FLOAT64.pack(number)


def _near(kind: int, values: Sequence[bytes]) -> bytes:
    """Numbers by how far their bits lie above the two upper bytes of the least: one width in bits, and joined.

    What a model tells at once has, but for a few bits, one exponent, in whatever order it comes.
    """
    size, _, whole = _FLOATS[kind]
    bits: tuple[int, ...] = struct.unpack(f"<{len(values)}{whole}", b"".join(values))
    upper = min(bits) >> 8 * size - 16
    least = upper << 8 * size - 16
    width = (max(bits) - least).bit_length()
    joined = 0
    for each in reversed(bits):
        joined = joined << width | each - least
    return bytes([width]) + upper.to_bytes(2, "little") + joined.to_bytes(-(-width * len(bits) // 8), "little")


def _read_near(kind: int, cell: bytes, start: int, many: int) -> tuple[tuple[float, ...], int]:
    """What `_near` wrote, and where the next run begins."""
    size, number, whole = _FLOATS[kind]
    width = cell[start]
    end = start + 3 - (-width * many // 8)
    least = int.from_bytes(cell[start + 1 : start + 3], "little") << 8 * size - 16
    joined, alone = int.from_bytes(cell[start + 3 : end], "little"), (1 << width) - 1
    bits = [least + (joined >> width * i & alone) for i in range(many)]
    return struct.unpack(f"<{many}{number}", struct.pack(f"<{many}{whole}", *bits)), end


def _values(cell: bytes, start: int, many: int, known: Sequence[str]) -> list[str]:
    """The values that `_differing` wrote from a place on; the cell must end with them."""
    here = start + -(-many // 8)
    differ = int.from_bytes(cell[start:here], "little")
    anew = iter(_read_runs(cell, here, differ.bit_count()))
    return [next(anew) if differ >> place & 1 else known[place] for place in range(many)]


def _read_runs(cell: bytes, here: int, many: int) -> list[str]:
    told: list[str] = []
    while here < len(cell):
        kind, length = cell[here] >> 5, (cell[here] & 31) + 1
        if kind in _FLOATS:
            numbers, here = _read_near(kind, cell, here + 1, length)
            told += map(_shortest if kind == _SINGLE else repr, numbers)
        else:
            here += 1
            for _ in range(length):
                value, here = _told(kind, cell, here)
                told.append(value)
    if len(told) != many or here != len(cell):
        raise ValueError("the cell is cut, or goes on")
    return told


def _told(kind: int, cell: bytes, start: int) -> tuple[str, int]:
    """A value that is no float, and where the next one begins."""
    number, start = _read_varint(cell, start)
    if kind == _WHOLE:
        return str(-(number + 1) // 2 if number & 1 else number // 2), start
    held = cell[start : start + number]
    return (f'"{held.hex()}"' if kind == _DIGEST else held.decode()), start + number


def _shortest(single: float) -> str:
    """A float32 by the fewest digits, six or more, that tell it from all others."""
    bits = _FLOAT32.pack(single)
    told = (repr(float(f"{_FLOAT32.unpack(bits)[0]:.{digits}g}")) for digits in range(6, 10))
    return next(each for each in told if _FLOAT32.pack(float(each)) == bits)


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
def _parts(form: str) -> tuple[list[str], list[str]]:
    """Text around values, and values."""
    parts = _VALUE.split(form)
    return parts[::2], parts[1::2]


@lru_cache(maxsize=64)
def _around(form: str) -> str:
    return _GAP.join(_parts(form)[0])
