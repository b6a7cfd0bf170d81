"""Convert results in words between two forms: over prompt, levels and repeats, and a table.

Results are kept in the first form; analysis reads the table, which has one row a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe._typing import AnyArray
from psyprobe.analysis.identification.replies import OTHERS
from psyprobe.analysis.responses import levels_of
from psyprobe.files.flags import encode_flags, flag_attributes, flag_words
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import as_text
from psyprobe.running.task import stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr

#: How a reply was read as text; "not_read" where none was asked for.
READINGS = ("not_read", "yes", "no", "ambiguous", "refusal", "invalid")
#: The reading of the answers that counts.
READOUTS = ("text", "p_yes")
#: Designs in which the levels of a prompt share their contrasts, so that contrast is a dimension.
_GRID_DESIGNS = ("constant", "ladder")
#: Columns that are the same in all questions of a prompt.
_PROMPT_COLUMNS = ("prompt_text", "polarity", "readout")
_FLAGS: Mapping[str, Sequence[str]] = {
    "reading": READINGS,
    "judge_reading": READINGS,
    "readout": READOUTS,
}
#: Columns whose words are the labels of the task, and what stands in place of one.
_LABELLED: Mapping[str, Sequence[str]] = {"shown": (), "answer": OTHERS}
_BOOLEANS = ("was_shown", "reply_requested", "logit_censored")
#: Dimensions that are numbered from 0.
_NUMBERED = ("repeat", "order", "session", "catch_trial")
_ORDER = "trial_number"
_DESCRIPTIONS = {
    "prompt": "Id of the prompt",
    "repeat": "Repeat of the condition, from 0",
    "order": "Place of the pattern among the images, or its orientation, from 0",
    "session": "Session, from 0",
    "catch_trial": "Catch trial of the prompt, from 0",
    _ORDER: "Place in the order of asking, from 0; -1 where nothing was asked",
}


def _flags_of(table: xr.Dataset, name: str) -> Sequence[str]:
    """Return the words that a column's integers stand for; none for other columns."""
    if name in _LABELLED and name in table:
        labels = (label.replace(" ", "_") for label in task_of(table).answers)
        return (READINGS[0], *labels, *_LABELLED[name])
    return _FLAGS.get(name, ())


#: Values of the questions, by column.
Columns = Mapping[str, AnyArray]


def is_in_words(result: xr.Dataset) -> bool:
    """Tell whether a result holds answers in words."""
    return "trial" in result.dims or _ORDER in result.variables


def trial_count(result: xr.Dataset) -> int:
    """Count the questions of a result in words, catch trials included."""
    if "trial" in result.sizes:
        return int(result.sizes["trial"])
    names = {_ORDER, f"catch_{_ORDER}"} & set(result.variables)
    return sum(int((result[name].values >= 0).sum()) for name in names)


def arrange_trials(table: xr.Dataset) -> xr.Dataset:
    """Arrange a table of questions on a grid of prompt, level, contrast and repeat.

    Parameters
    ----------
    table : xarray.Dataset
        As `trials` gives it: one dimension, "trial".

    Returns
    -------
    xarray.Dataset
        Dimensions `prompt`, the level (`frequency`), the contrast or difference where the design
        shares its values between levels, `repeat`, and `order` and `session` where one trial was
        asked in several. Catch trials stand in variables of their own, ``catch_response(prompt,
        catch_trial)``. Where nothing was asked, `trial_number` is -1, numbers are NaN, text is
        empty.
    """
    import xarray as xr

    (level,) = levels_of(table)
    axis = stimulus_axis_of(table).name
    columns = {
        str(name): table[name].values for name in table.variables if table[name].dims
    }
    columns[_ORDER] = np.arange(table.sizes["trial"])
    catch = columns.pop("catch").astype(bool)
    facts = {name: columns.pop(name) for name in _PROMPT_COLUMNS if name in columns}
    common = [
        name
        for name in ("session", "order")
        if _is_dimension(columns, name, level, axis)
    ]
    shared = [axis] if table.attrs.get("design") in _GRID_DESIGNS else []
    index = {name: np.unique(columns[name]) for name in common}
    prompts, first_rows = np.unique(as_text(columns["prompt"]), return_index=True)
    index["prompt"] = prompts[np.argsort(first_rows)]
    first_rows.sort()

    tests = {name: values[~catch] for name, values in columns.items()}
    dims = ("prompt", level, *shared, "repeat", *common)
    index |= {name: np.unique(tests[name]) for name in (level, *shared, "repeat")}
    data = _grid(table, tests, index, {name: name for name in dims})
    if catch.any():  # NetCDF has no dimension of length 0.
        catch_trials = {
            name: values[catch] for name, values in columns.items() if name != axis
        }
        index["catch_trial"] = np.unique(catch_trials["repeat"])
        dims_of_catch = {"prompt": "prompt", "repeat": "catch_trial"}
        dims_of_catch |= {name: name for name in common}
        grid = _grid(table, catch_trials, index, dims_of_catch)
        data |= {f"catch_{name}": variable for name, variable in grid.items()}
    for name, values in facts.items():
        flags = _encode_column(table, name, values[first_rows])
        data[name] = (["prompt"], flags, _attributes(table, name))
    coordinates = {
        name: (
            name,
            # NetCDF has whole numbers of 32 bits.
            values.astype(np.int32) if name in _NUMBERED else values,
            _index_attributes(table, name),
        )
        for name, values in index.items()
    }
    return xr.Dataset(data, coordinates, table.attrs).assign_coords(_scalars(table))


def _grid(
    table: xr.Dataset,
    columns: Columns,
    index: Mapping[str, AnyArray],
    dims: Mapping[str, str],
) -> JsonObject:
    """Place the columns of a table on a grid, as variables by name.

    `dims` has the dimension by the column that tells the place along it.
    """
    import xarray as xr

    shape = tuple(len(index[dimension]) for dimension in dims.values())
    cells = tuple(
        pd.Index(index[dimension]).get_indexer(columns[column])
        for column, dimension in dims.items()
    )
    variables: JsonObject = {}
    for name in (name for name in columns if name not in dims):
        values = _encode_column(table, name, columns[name])
        grid = np.full(shape, _fill_value(name, values), dtype=values.dtype)
        grid[cells] = values
        # On its fast path xarray takes the strings as they are, and copies none.
        variables[name] = xr.Variable(
            list(dims.values()), grid, _attributes(table, name), fastpath=True
        )
    return variables


def trials(result: xr.Dataset) -> xr.Dataset:
    """Flatten a result in words into a table of its questions.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run in words, or such a table, which stays as it is; so does any other result.

    Returns
    -------
    xarray.Dataset
        One dimension, "trial", in the order of asking; `catch` tells the catch trials, words stand
        in place of flags. ``.to_dataframe()`` makes a table of pandas.
    """
    import xarray as xr

    if "trial" in result.dims or _ORDER not in result.variables:
        return result
    axis = stimulus_axis_of(result).name
    frames = [_flatten_part(result, "").assign(catch=False)]
    if f"catch_{_ORDER}" in result:
        blanks = _flatten_part(result, "catch_")
        frames.append(blanks.assign(**{axis: 0.0, "catch": True}))
    rows = pd.concat(frames).sort_values(_ORDER, kind="stable").drop(columns=_ORDER)
    columns = {
        str(name): xr.Variable("trial", values.to_numpy(), fastpath=True)
        for name, values in rows.items()
    }
    table = xr.Dataset(columns, attrs=result.attrs)
    for name in set(columns) & set(result.variables):
        attributes = result[name].attrs.items()
        table[name].attrs = {
            key: value for key, value in attributes if not key.startswith("flag_")
        }
    table["catch"].attrs = {"units": "1", "long_name": "Whether nothing was shown"}
    return table.assign_coords(_scalars(result))


def _flatten_part(result: xr.Dataset, prefix: str) -> pd.DataFrame:
    """Flatten the questions with a pattern, or by prefix catch trials, into a table."""
    number = result[f"{prefix}{_ORDER}"]
    dims = [str(dim) for dim in number.dims]
    cells = np.nonzero(number.values >= 0)
    columns: dict[str, AnyArray] = {}
    for dim, places in zip(dims, cells, strict=True):
        column = "repeat" if dim == "catch_trial" else dim
        columns[column] = np.asarray(result[dim].values)[places]
    for name in map(str, result.data_vars):
        variable = result[name]
        if list(variable.dims) == dims and name.startswith("catch_") == bool(prefix):
            columns[name.removeprefix(prefix)] = _decode_variable(variable)[cells]
        elif variable.dims == ("prompt",) and name in _PROMPT_COLUMNS:
            columns[name] = _decode_variable(variable)[cells[dims.index("prompt")]]
    columns["prompt"] = as_text(columns["prompt"])
    # Without its dtype, pandas would copy all text into columns of its own.
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype=column.dtype)
            for name, column in columns.items()
        }
    )


def _scalars(result: xr.Dataset) -> dict[str, xr.DataArray]:
    """Select the variables of a result that have no dimension."""
    return {
        str(name): result[name] for name in result.variables if not result[name].dims
    }


def _is_dimension(columns: Columns, name: str, level: str, axis: str) -> bool:
    """Tell whether a column varies within one trial: the order of images, or the session."""
    if name not in columns:
        return False
    if name == "session":
        return True
    keys = {"prompt", level, axis, "repeat", "session"} & set(columns)
    places = pd.DataFrame({key: columns[key] for key in keys})
    return bool(places.duplicated().any())


def _encode_column(table: xr.Dataset, name: str, values: AnyArray) -> AnyArray:
    """Encode a column for a result: as flags, booleans, numbers or text."""
    meanings = _flags_of(table, name)
    if meanings:
        words = as_text(values)
        words[words == ""] = READINGS[0]
        spelt = [word.replace(" ", "_") for word in words.tolist()]
        return encode_flags(spelt, meanings)
    if name in _BOOLEANS:
        return values.astype(bool)
    if name == _ORDER:
        return values.astype(np.int32)
    return values.astype(object if values.dtype.kind in "OU" else np.float64)


def _decode_variable(variable: xr.DataArray) -> AnyArray:
    """Decode a result's variable into a column of the table of questions."""
    if "flag_meanings" in variable.attrs:
        words = flag_words(variable)
        if str(variable.name).removeprefix("catch_") in _LABELLED:
            words = np.char.replace(words, "_", " ")
        return np.where(words == READINGS[0], "", words).astype(object)
    values = np.asarray(variable.values)
    return as_text(values) if values.dtype.kind in "OUS" else values


def _fill_value(name: str, values: AnyArray) -> Any:
    """Return the value that marks cells where nothing was asked."""
    if name == _ORDER:
        return -1
    fillers: JsonObject = {"O": "", "f": np.nan, "b": False, "i": 0}
    return fillers[values.dtype.kind]


def _attributes(table: xr.Dataset, name: str) -> JsonObject:
    """Collect the CF attributes of a column: units, name, flag values and meanings."""
    if name == _ORDER:
        return _index_attributes(table, name)
    attributes = table[name].attrs
    meanings = _flags_of(table, name)
    if meanings:
        return flag_attributes(meanings, str(attributes.get("long_name", name)))
    return dict(attributes)


def _index_attributes(table: xr.Dataset, dimension: str) -> JsonObject:
    """Build the unit and description of an index."""
    if dimension in _DESCRIPTIONS:
        return {"units": "1", "long_name": _DESCRIPTIONS[dimension]}
    return dict(table[dimension].attrs)
