"""Write and read NetCDF in which one long text does not make all others long.

NetCDF 3 and numpy pad the texts of a variable to the longest of them: a reply of 3 MB among 5,000
takes 15 GB. Arrays of Python strings take what each text takes.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import AnyArray
from psyprobe.files.json_types import JsonObject

if TYPE_CHECKING:
    import xarray as xr

#: Most bytes that the padded texts of a variable take in a file.
_MAX_PADDED = 2**25
#: Attribute of the lengths of texts: the name of the variable that holds the texts.
_BYTES_IN = "text_bytes_in"


def as_text(values: AnyArray) -> AnyArray:
    """Convert an array to Python strings, without padding them to the longest.

    Examples
    --------
    >>> as_text(np.array([b"yes", b"no"])).tolist(), as_text(np.array([1, "a"], object)).tolist()
    (['yes', 'no'], ['1', 'a'])
    """
    return np.asarray(np.frompyfunc(_to_text, 1, 1)(values), dtype=object)


def _to_text(cell: Any) -> str:
    """Decode a cell of bytes, or convert it to text."""
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a data set as a NetCDF 3 file, long texts joined to save room.

    Such a variable holds the length of each text in bytes, and a variable NAME_utf8 the bytes.
    """
    import xarray as xr

    variables: JsonObject = {}
    for name, variable in dataset.data_vars.items():
        if variable.dtype.kind != "O":
            continue
        texts = as_text(variable.values).ravel()
        lengths = np.array([len(text.encode()) for text in texts], dtype=np.int32)
        if lengths.size * int(lengths.max(initial=0)) <= _MAX_PADDED:
            continue
        bytes_name = f"{name}_utf8"
        attributes = {**variable.attrs, _BYTES_IN: bytes_name}
        variables[str(name)] = (
            variable.dims,
            lengths.reshape(variable.shape),
            attributes,
        )
        variables[bytes_name] = (
            f"{name}_byte",
            np.frombuffer("".join(texts).encode(), dtype=np.int8),
            {
                "units": "1",
                "long_name": f"UTF-8 of all texts of {name}, in their order",
            },
        )
    # `to_netcdf` loads Dask's scheduler, where there is one, to ask which locks it wants.
    with closing(xr.backends.ScipyDataStore(str(path), mode="w", lock=False)) as store:
        dataset.assign(variables).dump_to_store(store)


def read_netcdf(path: Path) -> xr.Dataset:
    """Read what `write_netcdf` wrote, or any other NetCDF 3 file."""
    import xarray as xr

    dataset = xr.load_dataset(path, engine="scipy")
    for name, lengths in dataset.data_vars.items():
        if _BYTES_IN not in lengths.attrs:
            continue
        attributes = dict(lengths.attrs)
        bytes_name = attributes.pop(_BYTES_IN)
        joined = dataset[bytes_name].values.tobytes()
        texts = np.empty(lengths.size, dtype=object)
        start = 0
        for i, length in enumerate(lengths.values.ravel().tolist()):
            texts[i] = joined[start : start + length].decode()
            start += length
        column = (lengths.dims, texts.reshape(lengths.shape), attributes)
        dataset = dataset.drop_vars(bytes_name).assign({name: column})
    return dataset
