"""How well a contrast sensitivity function fits human data: the error in dB that the castleCSF paper reports.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5. doi:10.1167/jov.24.4.5
Data tables: folder `data` of the repository gfxdisp/castleCSF (MIT licence).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.castle import castle_csf
from psyprobe.human.signature import ContrastSensitivity

#: Columns that `evaluate_csf` reads; `background` and `direction` are (rows, 3), in LMS.
COLUMNS = (
    "dataset", "stimulus", "s_frequency", "ge_sigma", "area", "t_frequency", "eccentricity", "vis_field",
    "sensitivity", "background", "direction",
)  # fmt: skip


@dataclass(frozen=True)
class DatasetScore:
    """Error of a model on the thresholds of one study."""

    n: int
    """Number of thresholds."""
    rmse_db: float
    """Root mean square of 20 * log10(predicted / measured sensitivity), dB."""
    gain: float
    """Geometric mean of measured / predicted sensitivity."""
    adjusted_rmse_db: float
    """The error once predictions are multiplied by the gain, dB."""


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

    Raises
    ------
    InputError
        If a table is missing, or a row has no unique background or direction.

    Examples
    --------
    >>> read_csf_data("nowhere")
    Traceback (most recent call last):
    psyprobe.errors.InputError: nowhere has no data_aggregated.csv; ...
    """
    folder = Path(folder)
    rows = _read_rows(folder / "data_aggregated.csv")
    backgrounds = _lookup(folder / "backgrounds.csv", ("bkg_id",), ("L", "M", "S"))
    directions = _lookup(folder / "color_directions.csv", ("dataset", "col_dir_id"), ("L_delta", "M_delta", "S_delta"))
    table = {name: _column([row[name] for row in rows]) for name in rows[0]}
    table["background"] = _join(rows, ("bkg_id",), backgrounds, "backgrounds.csv")
    table["direction"] = _join(rows, ("dataset", "col_dir_id"), directions, "color_directions.csv")
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

    Raises
    ------
    InputError
        If a column is missing, a sensitivity is not above 0, or the model cannot take a row.

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
    for rows, is_disk in ((disks, True), (~disks, False)):
        if not rows.any():
            continue
        shape: dict[str, Any] = (
            {"disc_radius": columns["ge_sigma"][rows]}
            if is_disk
            else {"frequency": columns["s_frequency"][rows], "area": columns["area"][rows]}
        )
        predicted[rows] = model(
            **shape,
            background=columns["background"][rows],
            direction=columns["direction"][rows],
            temporal_frequency=columns["t_frequency"][rows],
            eccentricity=columns["eccentricity"][rows],
            visual_field=columns["vis_field"][rows],
        )
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


def _read_rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise InputError(f"{path.parent} has no {path.name}; give the data folder of the castleCSF repository")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise InputError(f"{path} has no rows; give the data folder of the castleCSF repository")
    return rows


def _column(texts: list[str]) -> npt.NDArray[Any]:
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        return np.array(texts)


def _lookup(path: Path, keys: tuple[str, ...], values: tuple[str, ...]) -> dict[tuple[str, ...], tuple[float, ...]]:
    found: dict[tuple[str, ...], tuple[float, ...]] = {}
    for row in _read_rows(path):
        key = tuple(row[name] for name in keys)
        if key in found:
            raise InputError(f"{path} has two rows for {' '.join(key)}; {' and '.join(keys)} must be unique")
        found[key] = tuple(float(row[name]) for name in values)
    return found


def _join(
    rows: list[dict[str, str]],
    keys: tuple[str, ...],
    lookup: dict[tuple[str, ...], tuple[float, ...]],
    source: str,
) -> FloatArray:
    wanted = [tuple(row[name] for name in keys) for row in rows]
    absent = next((key for key in wanted if key not in lookup), None)
    if absent is not None:
        raise InputError(f"{source} has no row for {' '.join(absent)}, which data_aggregated.csv refers to")
    return np.array([lookup[key] for key in wanted])
