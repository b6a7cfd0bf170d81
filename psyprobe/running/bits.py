"""Whole numbers, and the bits of numbers in floating point, in as few bytes as they take."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

#: Bytes of each number, and how `struct` calls such numbers and their bits as whole numbers.
Floats = tuple[int, str, str]


def near(floats: Floats, values: Sequence[bytes]) -> bytes:
    """Numbers by how far their bits lie above the two upper bytes of the least: one width in bits, and joined.

    What a model tells at once has, but for a few bits, one exponent, in whatever order it comes.
    """
    size, _, whole = floats
    bits: tuple[int, ...] = struct.unpack(f"<{len(values)}{whole}", b"".join(values))
    upper = min(bits) >> 8 * size - 16
    least = upper << 8 * size - 16
    width = (max(bits) - least).bit_length()
    joined = 0
    for each in reversed(bits):
        joined = joined << width | each - least
    return bytes([width]) + upper.to_bytes(2, "little") + joined.to_bytes(-(-width * len(bits) // 8), "little")


def read_near(floats: Floats, cell: bytes, start: int, many: int) -> tuple[tuple[float, ...], int]:
    """What `near` wrote, and where the next run begins."""
    size, number, whole = floats
    width = cell[start]
    end = start + 3 - (-width * many // 8)
    least = int.from_bytes(cell[start + 1 : start + 3], "little") << 8 * size - 16
    joined, alone = int.from_bytes(cell[start + 3 : end], "little"), (1 << width) - 1
    bits = [least + (joined >> width * i & alone) for i in range(many)]
    return struct.unpack(f"<{many}{number}", struct.pack(f"<{many}{whole}", *bits)), end


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the upper bit says that more follow."""
    held = []
    while number > 127:
        held.append(number & 127 | 128)
        number >>= 7
    return bytes([*held, number])


def read_varint(cell: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (cell[start] & 127) << shift
        shift, start = shift + 7, start + 1
        if cell[start - 1] < 128:
            return number, start


@lru_cache(maxsize=64)
def places_of(bits: bytes) -> list[int]:
    """Of the bits that are set, the lowest first."""
    return [i for i in range(8 * len(bits)) if bits[i >> 3] >> (i & 7) & 1]
