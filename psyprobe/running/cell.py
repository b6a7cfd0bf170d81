"""JSON as a store keeps it: deflated, and without what it shares with others of its kind."""

from __future__ import annotations

import zlib

#: Of deflate: level, and the logarithms of its window and of the memory that it takes.
_LEVEL, _WINDOW, _MEMORY = 6, -12, 4
#: Of a form so many characters count, which the window holds; no cell opens to more bytes.
_LONGEST_FORM, _LARGEST = 4000, 1 << 28


def form_of(text: str) -> str:
    """What others of the kind of some JSON are likely to share with it."""
    return text[:_LONGEST_FORM]


def packed(text: str, form: str = "") -> bytes:
    """JSON as bytes, with a form as the dictionary."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, form.encode())
    return deflate.compress(text.encode()) + deflate.flush()


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
    inflate = zlib.decompressobj(_WINDOW, form.encode())
    try:
        text = inflate.decompress(cell, _LARGEST)
    except (zlib.error, TypeError) as error:
        raise ValueError(str(error)) from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("the cell is cut, or goes on")
    return text.decode()
