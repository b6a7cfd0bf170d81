"""How well a contrast sensitivity function fits human data: the error in dB that the castleCSF paper reports.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5. doi:10.1167/jov.24.4.5
Data tables: folder `data` of the repository gfxdisp/castleCSF (MIT licence).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.castle import castle_csf
from psyprobe.human.signature import ContrastSensitivity

if TYPE_CHECKING:
    import pandas as pd

#: Columns that `evaluate_csf` reads; `background` and `direction` are (rows, 3), in LMS.
COLUMNS = (
    "dataset", "stimulus", "s_frequency", "ge_sigma", "area", "t_frequency", "eccentricity", "vis_field",
    "sensitivity", "background", "direction",
)  # fmt: skip
#: Inputs of a model by the column that holds them, besides size and frequency.
_INPUTS = {
    "background": "background",
    "direction": "direction",
    "temporal_frequency": "t_frequency",
    "eccentricity": "eccentricity",
    "visual_field": "vis_field",
}


@dataclass(frozen=True)
class DatasetScore:
    """Error of a model on the thresholds of one study."""

    #: Number of thresholds.
    n: int
    #: Root mean square of 20 * log10(predicted / measured sensitivity), dB.
    rmse_db: float
    #: Geometric mean of measured / predicted sensitivity.
    gain: float
    #: The error once predictions are multiplied by the gain, dB.
    adjusted_rmse_db: float


@dataclass(frozen=True)
class CsfEvaluation:
    """Error of a model on the thresholds of several studies, as in `DatasetScore`, each study with its own gain."""

    n: int
    rmse_db: float
    adjusted_rmse_db: float
    datasets: Mapping[str, DatasetScore]


def read_csf_data(folder: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The castleCSF data tables of a folder, joined into one, as `evaluate_csf` takes it.

    Backgrounds are joined on `bkg_id`; colour directions on (`dataset`, `col_dir_id`), because the ids alone are
    not unique.

    Parameters
    ----------
    folder : str or Path
        Holds data_aggregated.csv, backgrounds.csv and color_directions.csv.

    Examples
    --------
    >>> read_csf_data("nowhere")
    Traceback (most recent call last):
    psyprobe.errors.InputError: nowhere has no data_aggregated.csv; ...
    """
    folder = Path(folder)
    rows = _read(folder / "data_aggregated.csv")
    table = {name: _column(rows[name]) for name in rows}
    table["background"] = _join(rows, folder / "backgrounds.csv", ["bkg_id"], ["L", "M", "S"])
    directions = folder / "color_directions.csv"
    table["direction"] = _join(rows, directions, ["dataset", "col_dir_id"], ["L_delta", "M_delta", "S_delta"])
    return table


def evaluate_csf(table: Mapping[str, npt.ArrayLike], model: ContrastSensitivity = castle_csf) -> CsfEvaluation:
    """Error of a contrast sensitivity function on measured thresholds.

    Parameters
    ----------
    table : mapping of str to array_like
        Columns of equal length, as `read_csf_data` returns them: `dataset` and `stimulus` ("gabor", "grating" or
        "disk") are text; `s_frequency` (cpd), `area` (deg²; Gabors and gratings), `ge_sigma` (deg; radius of a
        disk), `t_frequency` (Hz), `eccentricity` and `vis_field` (deg), `sensitivity` (1 / cone contrast) are
        numbers; `background` and `direction` are LMS, (rows, 3).
    model : ContrastSensitivity
        Called with everything that a row says: background, direction, area or disc_radius, and the rest.

    Notes
    -----
    The castleCSF paper reports 3.59 dB over 18 studies, with gains fitted jointly and some points left out. All
    2295 rows, with the model given the LMS background, give 4.291 dB raw and 3.548 dB adjusted.

    Examples
    --------
    >>> table = {
    ...     "dataset": ["mine", "mine"], "stimulus": ["gabor", "disk"], "s_frequency": [4, 0], "area": [1, 1],
    ...     "ge_sigma": [0.56, 0.5], "t_frequency": [0, 0], "eccentricity": [0, 0], "vis_field": [180, 180],
    ...     "background": [[69.91, 30.09, 1.98]] * 2, "direction": [[0.6855, 0.2951, 0.0194]] * 2,
    ...     "sensitivity": [120.0, 130.0],
    ... }
    >>> score = evaluate_csf(table)
    >>> round(score.rmse_db, 2), round(score.adjusted_rmse_db, 2), round(score.datasets["mine"].gain, 3)
    (1.13, 0.14, 0.879)
    """
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(
            f"the table has no column {', '.join(missing)}; join the three castleCSF tables with read_csf_data"
        )
    columns = {name: np.asarray(table[name]) for name in COLUMNS}
    measured = _positive("measured", columns["sensitivity"])
    predicted = _positive("predicted", _predict(columns, model))
    error = 20.0 * np.log10(predicted / measured)
    datasets = columns["dataset"]
    scores = {str(name): _score(error[datasets == name]) for name in dict.fromkeys(datasets.tolist())}
    adjusted = sum(score.n * score.adjusted_rmse_db**2 for score in scores.values()) / error.size
    return CsfEvaluation(error.size, _rms(error), float(np.sqrt(adjusted)), scores)


def _predict(columns: Mapping[str, npt.NDArray[Any]], model: ContrastSensitivity) -> FloatArray:
    disks = columns["stimulus"] == "disk"
    predicted = np.empty(disks.shape)
    for rows, shape in ((disks, {"disc_radius": "ge_sigma"}), (~disks, {"frequency": "s_frequency", "area": "area"})):
        if rows.any():
            predicted[rows] = model(**{name: columns[column][rows] for name, column in (shape | _INPUTS).items()})
    return predicted


def _score(error: FloatArray) -> DatasetScore:
    shift = float(error.mean())
    return DatasetScore(error.size, _rms(error), 10.0 ** (-shift / 20.0), _rms(error - shift))


def _rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error * error)))


def _positive(kind: str, sensitivity: npt.NDArray[Any]) -> FloatArray:
    usable = np.isfinite(sensitivity) & (sensitivity > 0)
    if usable.size == 0:
        raise InputError("the table has no rows, so there is no error to compute; give at least one threshold")
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(
            f"the {kind} sensitivity of row {row} is {sensitivity[row]:g}, but an error in dB needs it above 0; "
            "leave such rows out"
        )
    return sensitivity.astype(np.float64)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    if not path.is_file():
        raise InputError(f"{path.parent} has no {path.name}; give the data folder of the castleCSF repository")
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    if rows.empty:
        raise InputError(f"{path} has no rows; give the data folder of the castleCSF repository")
    return rows


def _column(texts: pd.Series[str]) -> npt.NDArray[Any]:
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        return np.array(texts, dtype=np.str_)


def _join(rows: pd.DataFrame, path: Path, keys: list[str], values: list[str]) -> FloatArray:
    """Values of another table for each row, found by the keys that both have."""
    table, wanted = _read(path).set_index(keys), rows.set_index(keys).index
    twice, absent = table.index[table.index.duplicated()], wanted[~wanted.isin(table.index)]
    if len(twice):
        raise InputError(f"{path} has two rows for {_told(twice[0])}; {' and '.join(keys)} must be unique")
    if len(absent):
        raise InputError(f"{path.name} has no row for {_told(absent[0])}, which data_aggregated.csv refers to")
    found: FloatArray = table.loc[wanted, values].to_numpy(dtype=np.float64)
    return found


def _told(key: Any) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
