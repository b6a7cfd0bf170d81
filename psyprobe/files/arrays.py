"""Read arrays from files that may be damaged or hostile, or refuse them with one line."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError
from psyprobe.files.images import MAX_PIXELS

#: Bytes that a file may unpack to: the largest image in float64 and colour.
_MAX_BYTES = 24 * MAX_PIXELS


def read_npy(path: str | Path) -> npt.NDArray[Any]:
    """Read the array of a ``.npy`` file.

    Raises
    ------
    InputError
        It cannot be read, is damaged, or holds other things than numbers and text.
    """
    try:
        # Mapped first: a header that claims more than the file holds must not be believed.
        return np.array(np.lib.format.open_memmap(path, mode="r"))
    except (
        Exception
    ) as error:  # numpy's own errors of a damaged header are of many kinds
        raise _read_error(path, error) from None


def read_npz(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a ``.npz`` file by name; errors as in `read_npy`."""
    try:
        check_unpacked(path, _MAX_BYTES)
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:
        raise _read_error(path, error) from None


def read_mat(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Read the numeric arrays of a MATLAB file by name; errors as in `read_npy`.

    Files of version 7.3, which are HDF5, are refused with a remedy.
    """
    from scipy.io import loadmat

    try:
        with Path(path).open("rb") as file:
            if b"MATLAB 7.3" in file.read(32):
                raise InputError(
                    "it is of version 7.3, which is HDF5; save it in MATLAB with '-v7'"
                )
        variables = loadmat(str(path), squeeze_me=True)
    except Exception as error:  # scipy's errors of a damaged file are of many kinds
        raise _read_error(path, error) from None
    return {
        name: value
        for name, value in variables.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "uif"
    }


def check_unpacked(path: str | Path, max_bytes: int) -> None:
    """Refuse a zip file that claims to unpack to more bytes."""
    with zipfile.ZipFile(path) as file:
        size = sum(entry.file_size for entry in file.infolist())
    if size > max_bytes:
        raise InputError(f"it claims {size:,} bytes, and {max_bytes:,} are allowed")


def read_tiff(path: str | Path) -> npt.NDArray[Any]:
    """Read the array of a TIFF file; errors as in `read_npy`."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            size = file.series[0].size
            if size > 3 * MAX_PIXELS:
                raise InputError(
                    f"it claims {size:,} values, and {3 * MAX_PIXELS:,} are allowed"
                )
            return np.asarray(file.asarray())
    except Exception as error:
        raise _read_error(path, error) from None


def _read_error(path: str | Path, error: Exception) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"there is no file {str(path)!r}")
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{path} cannot be read, it may be damaged: {reason!s:.120}")
