"""Turn drive values into whole codes of a framebuffer: rounded, dithered, or packed for 14 bits.

References
----------
Cambridge Research Systems, Bits++ manual: Mono++ has the eight high bits of 14 in red and the six
low ones, left aligned, in green; Color++ has the high bits of each channel in one pixel and the low
ones in the pixel right of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psyprobe._typing import AnyArray, ByteArray, FloatArray
from psyprobe.errors import InputError, unknown_name

#: Depths of a PNG file; codes of 10 bits are spread over those of 16.
BITS = (8, 10, 16)
DITHERS = ("none", "rpdf", "tpdf")
PACKINGS = ("mono++", "color++")

#: Bits of a packed channel.
_PACKED_BITS = 14

Codes = npt.NDArray[np.uint8 | np.uint16]


def to_codes(
    drive: FloatArray, bits: int = 8, dither: str = "none", seed: int = 0
) -> npt.NDArray[np.uint16]:
    """Turn drive values into whole codes from 0 to ``2**bits - 1``.

    Parameters
    ----------
    drive : array
        Values from 0 to 1, of any shape.
    bits : int
        Bits of a code.
    dither : {"none", "rpdf", "tpdf"}
        "none" rounds to the nearest code. "rpdf" takes ``floor(code + U)`` with U uniform in
        [0, 1), drawn anew for each value, so that the mean over many is exact; its noise is none
        for a value on a code and half a code between two. "tpdf" takes ``floor(code + U + V -
        1/2)`` with two such draws: its noise is half a code at every level.
    seed : int
        Seed of the dither.

    Raises
    ------
    InputError
        Drive lies outside [0, 1]; or within half a code of its ends, where the noise of "tpdf" has
        no room.

    References
    ----------
    Lipshitz, Wannamaker, Vanderkooy (1992). Quantization and dither: a theoretical survey.

    Examples
    --------
    >>> to_codes(np.array([0.0, 0.5, 1.0]), bits=10).tolist()
    [0, 512, 1023]
    >>> float(to_codes(np.full(10000, 0.3), bits=2, dither="rpdf").mean().round(2))
    0.9
    """
    if dither not in DITHERS:
        raise unknown_name("dither", dither, DITHERS)
    values = np.asarray(drive, dtype=np.float64)
    if not (values.min(initial=0.0) >= 0 and values.max(initial=0.0) <= 1):
        raise InputError(
            f"drive goes from {values.min():g} to {values.max():g}; codes hold 0 to 1"
        )
    steps = values * (2**bits - 1)
    rng = np.random.default_rng(seed)
    if dither == "none":
        rounded = np.rint(steps)
    elif dither == "rpdf":
        # A value on a code stays there: a rounding error is no fraction to be dithered.
        nearest = np.rint(steps)
        is_code = np.abs(steps - nearest) < 1e-6
        rounded = np.where(is_code, nearest, np.floor(steps + rng.random(steps.shape)))
    else:
        check_room(steps, bits)
        noise = rng.random(steps.shape)
        rounded = np.floor(steps + noise + rng.random(steps.shape) - 0.5)
    codes: npt.NDArray[np.uint16] = rounded.astype(np.uint16)
    return codes


def check_room(steps: FloatArray, bits: int) -> None:
    """Refuse codes that triangular ("tpdf") dither would take beyond black or peak white.

    >>> check_room(np.array([0.4, 200.0]), 8)
    Traceback (most recent call last):
        ...
    psyprobe.errors.InputError: tpdf dither needs half a code of room, 0.5 to 254.5 of 255, and ...
    """
    largest = 2**bits - 1
    if not (steps.min(initial=0.5) >= 0.5 and steps.max(initial=0.5) <= largest - 0.5):
        raise InputError(
            f"tpdf dither needs half a code of room, 0.5 to {largest - 0.5:g} of {largest}, and "
            f"the image goes from code {steps.min():g} to {steps.max():g}; lower the contrast, or "
            "take a display with more range or rpdf dither"
        )


def spread(codes: AnyArray, bits: int) -> Codes:
    """Scale codes to the 8 or 16 bits of a file, so that full drive is its largest code.

    >>> spread(np.array([0, 1, 1023]), 10).tolist()
    [0, 64, 65535]
    """
    if bits == 8:
        return codes.astype(np.uint8)
    wide: Codes = np.rint(codes * (65535 / (2**bits - 1))).astype(np.uint16)
    return wide


def pack(
    drive: FloatArray, packing: str, dither: str = "none", seed: int = 0
) -> ByteArray:
    """Pack drive values into an 8-bit RGB image that a Bits++ box shows with 14 bits.

    Parameters
    ----------
    drive : array, shape (H, W, 3)
        Values from 0 to 1; equal channels for "mono++".
    packing : {"mono++", "color++"}
        The mode of the box.
    dither, seed
        As in `to_codes`.

    Returns
    -------
    array of uint8, shape (H, W, 3), or (H, 2 W, 3) for "color++"

    Examples
    --------
    >>> pack(np.full((1, 1, 3), 0.5), "mono++").tolist()
    [[[128, 0, 0]]]
    """
    values = np.asarray(drive)
    if packing not in PACKINGS:
        raise unknown_name("packing", packing, PACKINGS)
    if values.ndim != 3 or values.shape[-1] != 3:
        raise InputError(
            f"drive of shape {values.shape} cannot be packed; give one image, (H, W, 3)"
        )
    if packing == "mono++":
        if not (values == values[..., :1]).all():
            raise InputError(
                "Mono++ shows grey, and this drive has colour; pack it as color++"
            )
        codes = to_codes(values[..., 0], _PACKED_BITS, dither, seed) << 2
        return np.stack(
            [codes >> 8, codes & 255, np.zeros_like(codes)], axis=-1
        ).astype(np.uint8)
    codes = to_codes(values, _PACKED_BITS, dither, seed) << 2
    height, width, _ = codes.shape
    pairs = np.stack([codes >> 8, codes & 255], axis=2)
    return pairs.reshape(height, 2 * width, 3).astype(np.uint8)


def unpack(image: AnyArray, packing: str) -> FloatArray:
    """Recover drive values (0 to 1) from an image packed for a Bits++ box by `pack`.

    >>> drive = np.random.default_rng(0).random((2, 3, 3))
    >>> bool(np.abs(unpack(pack(drive, "color++"), "color++") - drive).max() < 0.5 / 16383 + 1e-9)
    True
    """
    if packing not in PACKINGS:
        raise unknown_name("packing", packing, PACKINGS)
    is_rgb = image.ndim == 3 and image.shape[-1] == 3 and image.dtype == np.uint8
    if not is_rgb or (packing == "color++" and image.shape[1] % 2):
        raise InputError(
            f"an image of {image.dtype} of shape {image.shape} is not packed as {packing}: 8-bit "
            "RGB is"
        )
    codes = image.astype(np.uint16)
    if packing == "mono++":
        high = codes[..., 0]
        low = codes[..., 1]
    else:
        high = codes[:, ::2]
        low = codes[:, 1::2]
    return np.asarray((high << 8 | low) / (4.0 * (2**_PACKED_BITS - 1)))
