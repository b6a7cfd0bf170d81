"""Read arrays from files that may be damaged or hostile, or refuse them with one line."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from psyprobe._typing import AnyArray
from psyprobe.errors import InputError
from psyprobe.files.images import MAX_PIXELS

#: Bytes that a file may unpack to: the largest image in float64 and colour.
_MAX_BYTES = 24 * MAX_PIXELS


def read_npy(path: str | Path) -> AnyArray:
    """Read the array of a ``.npy`` file.

    Raises
    ------
    InputError
        It cannot be read, is damaged, or holds other things than numbers and text.
    """
    with _explained(path):
        # Mapped first: a header that claims more than the file holds must not be believed.
        array = np.lib.format.open_memmap(path, mode="r")
        _check_bytes(array.nbytes, _MAX_BYTES)
        return np.array(array)


def read_npz(path: str | Path) -> dict[str, AnyArray]:
    """Read the arrays of a ``.npz`` file by name; errors as in `read_npy`."""
    with _explained(path):
        check_unpacked(path, _MAX_BYTES)
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)


def read_mat(path: str | Path) -> dict[str, AnyArray]:
    """Read the numeric arrays of a MATLAB file by name; errors as in `read_npy`.

    Files of version 7.3, which are HDF5, are refused with a remedy.
    """
    from scipy.io import loadmat

    with _explained(path):
        with Path(path).open("rb") as file:
            if b"MATLAB 7.3" in file.read(32):
                raise InputError(
                    "it is of version 7.3, which is HDF5; save it in MATLAB with '-v7'"
                )
        variables = loadmat(str(path), squeeze_me=True)
        return {
            name: value
            for name, value in variables.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in "uif"
        }


def check_unpacked(path: str | Path, max_bytes: int) -> None:
    """Refuse a zip file that claims to unpack to more than `max_bytes` in all."""
    with zipfile.ZipFile(path) as file:
        _check_bytes(sum(entry.file_size for entry in file.infolist()), max_bytes)


def check_members(path: str | Path, max_bytes: int) -> None:
    """Refuse a zip file that holds a file of more than `max_bytes`."""
    with zipfile.ZipFile(path) as file:
        for entry in file.infolist():
            _check_bytes(entry.file_size, max_bytes)


def _check_bytes(size: int, max_bytes: int) -> None:
    """Refuse an array whose header claims more than `max_bytes`."""
    if size > max_bytes:
        raise InputError(f"it claims {size:,} bytes, and {max_bytes:,} are allowed")


def read_tiff(path: str | Path) -> AnyArray:
    """Read the array of a TIFF file; errors as in `read_npy`."""
    import tifffile

    with _explained(path), tifffile.TiffFile(path) as file:
        size = file.series[0].size
        if size > 3 * MAX_PIXELS:
            raise InputError(
                f"it claims {size:,} values, and {3 * MAX_PIXELS:,} are allowed"
            )
        return np.asarray(file.asarray())


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Turn any error of a file reader within the block into one line that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except Exception as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path} cannot be read, it may be damaged: {reason!s:.120}"
        ) from None
