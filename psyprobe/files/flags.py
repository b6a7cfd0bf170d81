"""Words of a closed list as small integers, by CF's conventions on flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from psyprobe._typing import StrArray
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import as_text

if TYPE_CHECKING:
    import xarray as xr


def encode_flags(words: npt.ArrayLike, meanings: Sequence[str]) -> npt.NDArray[np.int8]:
    """Replace words by their places in the list of meanings, as an integer array.

    Raises
    ------
    ValueError
        A word is not in the list.

    Examples
    --------
    >>> encode_flags(["no", "yes", "no"], ["yes", "no"]).tolist()
    [1, 0, 1]
    """
    places = {word: place for place, word in enumerate(meanings)}
    array = as_text(np.asarray(words))
    unknown_words = set(array.ravel().tolist()) - set(places)
    if unknown_words:
        raise ValueError(f"{sorted(unknown_words)} are not among {list(meanings)}")
    flags = [places[word] for word in array.ravel().tolist()]
    return np.array(flags, dtype=np.int8).reshape(array.shape)


def flag_attributes(meanings: Sequence[str], long_name: str) -> JsonObject:
    """Build CF attributes of a variable of flags: `flag_values`, `flag_meanings`, units, name."""
    return {
        "units": "1",
        "long_name": long_name,
        "flag_values": np.arange(len(meanings), dtype=np.int8),
        "flag_meanings": " ".join(meanings),
    }


def flag_words(variable: xr.DataArray | xr.Variable) -> StrArray:
    """Decode a variable of CF flags to the words its integers stand for; text stays as it is.

    Parameters
    ----------
    variable : xarray.DataArray
        With `flag_values` and `flag_meanings`, such as a result's `status`.

    Examples
    --------
    >>> import xarray as xr
    >>> meanings = ["ok", "flat"]
    >>> codes = encode_flags(["flat", "ok"], meanings)
    >>> variable = xr.Variable("curve", codes, flag_attributes(meanings, "Status"))
    >>> flag_words(variable).tolist()
    ['flat', 'ok']
    """
    if "flag_meanings" not in variable.attrs:
        return np.asarray(variable.values).astype(str)
    meanings = str(variable.attrs["flag_meanings"]).split()
    values = np.atleast_1d(variable.attrs["flag_values"]).tolist()
    words = dict(zip(values, meanings, strict=True))
    flags = np.asarray(variable.values)
    return np.array(
        [words[flag] for flag in flags.ravel().tolist()], dtype=str
    ).reshape(flags.shape)
