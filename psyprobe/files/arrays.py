"""Arrays from files that anybody may have cut, changed or made up: read, or refused with one
line.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError
from psyprobe.files.images import MOST_PIXELS

#: Bytes that a file may unpack to: the largest image in float64 and colour.
_MOST_BYTES = 24 * MOST_PIXELS


def read_npy(path: str | Path) -> npt.NDArray[Any]:
    """The array of a ``.npy`` file.

    Raises
    ------
    InputError
        It cannot be read, is damaged, or holds something else than numbers and text.
    """
    try:
        # Mapped first: a header that claims more than the file holds must not be believed.
        return np.array(np.lib.format.open_memmap(path, mode="r"))
    except Exception as error:  # numpy's own errors of a damaged header are of many kinds
        raise _unread(path, error) from None


def read_npz(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a ``.npz`` file by name; as `read_npy`."""
    try:
        check_unpacked(path, _MOST_BYTES)
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:
        raise _unread(path, error) from None


def read_mat(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The numeric arrays of a MATLAB file by name; as `read_npy`.

    Files of version 7.3 are HDF5, and are refused with what to do.
    """
    from scipy.io import loadmat

    try:
        with Path(path).open("rb") as file:
            if b"MATLAB 7.3" in file.read(32):
                raise InputError(
                    "it is of version 7.3, which is HDF5; save it in MATLAB with '-v7'"
                )
        held = loadmat(str(path), squeeze_me=True)
    except Exception as error:  # scipy's errors of a damaged file are of many kinds
        raise _unread(path, error) from None
    return {
        name: each
        for name, each in held.items()
        if isinstance(each, np.ndarray) and each.dtype.kind in "uif"
    }


def check_unpacked(path: str | Path, most: int) -> None:
    """Refuse a zip file that claims to unpack to more bytes than that."""
    with zipfile.ZipFile(path) as file:
        claimed = sum(entry.file_size for entry in file.infolist())
    if claimed > most:
        raise InputError(f"it claims {claimed:,} bytes, and {most:,} are allowed")


def read_tiff(path: str | Path) -> npt.NDArray[Any]:
    """The array of a TIFF file; as `read_npy`."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            claimed = file.series[0].size
            if claimed > 3 * MOST_PIXELS:
                raise InputError(
                    f"it claims {claimed:,} values, and {3 * MOST_PIXELS:,} are allowed"
                )
            return np.asarray(file.asarray())
    except Exception as error:
        raise _unread(path, error) from None


def _unread(path: str | Path, error: Exception) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"there is no file {str(path)!r}")
    return InputError(
        f"{path} cannot be read, it may be damaged: "
        f"{getattr(error, 'strerror', None) or error!s:.120}"
    )
