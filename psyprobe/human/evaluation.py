"""Evaluate a contrast sensitivity function on human data: its error in dB, as castleCSF's paper.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5.
doi:10.1167/jov.24.4.5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import AnyArray, FloatArray
from psyprobe.errors import InputError
from psyprobe.human.castle import castle_csf
from psyprobe.human.signature import ContrastSensitivity

if TYPE_CHECKING:
    import pandas as pd

#: Columns that `evaluate_csf` reads.
COLUMNS = (
    "dataset",
    "stimulus",
    "frequency",
    "sigma",
    "area",
    "temporal_frequency",
    "eccentricity",
    "visual_field",
    "sensitivity",
    "L",
    "M",
    "S",
    "dL",
    "dM",
    "dS",
)


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
    """Error of a model on the thresholds of several studies, as in `DatasetScore`."""

    #: Number of thresholds.
    n: int
    #: RMS error of all predictions, dB.
    rmse_db: float
    #: The error once predictions are multiplied by a gain for each study, dB.
    adjusted_rmse_db: float
    #: Error on each study, by its name.
    datasets: Mapping[str, DatasetScore]


def evaluate_csf(
    table: Mapping[str, ArrayLike] | pd.DataFrame,
    model: ContrastSensitivity = castle_csf,
) -> CsfEvaluation:
    """Compute the error of a contrast sensitivity function on measured thresholds.

    Parameters
    ----------
    table : pandas.DataFrame, or mapping of str to array_like
        A table of `thresholds`, or one with its `COLUMNS`.
    model : ContrastSensitivity
        Called with all conditions of a row: background, direction, area or disc_radius, and the
        rest.

    Raises
    ------
    InputError
        The table lacks a column, or holds a sensitivity that is not above 0.

    Notes
    -----
    The castleCSF paper reports 3.59 dB over 18 studies, with gains fitted jointly and some points
    left out. All 2295 rows, with the model given the LMS background, give 4.291 dB raw and 3.548 dB
    adjusted.

    Examples
    --------
    >>> from psyprobe.human import thresholds
    >>> score = evaluate_csf(thresholds("modelfest"))
    >>> round(score.rmse_db, 3), round(score.adjusted_rmse_db, 3)
    (2.162, 2.07)
    >>> round(score.datasets["modelfest"].gain, 3)
    1.075
    """
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(
            f"the table has no column {', '.join(missing)}; give the columns of "
            "psyprobe.human.thresholds()"
        )
    measured = _read_sensitivities("measured", np.asarray(table["sensitivity"]))
    predicted = _read_sensitivities("predicted", predicted_sensitivity(table, model))
    error = 20.0 * np.log10(predicted / measured)
    datasets = np.asarray(table["dataset"])
    scores = {
        str(name): _summarise_errors(error[datasets == name])
        for name in dict.fromkeys(datasets.tolist())
    }
    adjusted = (
        sum(score.n * score.adjusted_rmse_db**2 for score in scores.values())
        / error.size
    )
    return CsfEvaluation(error.size, _rms(error), float(np.sqrt(adjusted)), scores)


def predicted_sensitivity(
    table: Mapping[str, ArrayLike] | pd.DataFrame,
    model: ContrastSensitivity = castle_csf,
) -> FloatArray:
    """Predict the sensitivity of each row of a table; parameters as for `evaluate_csf`.

    Examples
    --------
    >>> from psyprobe.human import thresholds
    >>> predicted_sensitivity(thresholds("modelfest"))[:2].round(1)
    array([53.6, 43.9])
    """
    columns: dict[str, AnyArray] = {name: np.asarray(table[name]) for name in COLUMNS}
    is_disk = columns["stimulus"] == "disk"
    places = ("temporal_frequency", "eccentricity", "visual_field")
    conditions = {name: columns[name] for name in places}
    for name, cones in (("background", "L M S"), ("direction", "dL dM dS")):
        lms = [columns[cone] for cone in cones.split()]
        conditions[name] = np.stack(lms, axis=-1)
    disk = {"disc_radius": columns["sigma"]}
    grating = {"frequency": columns["frequency"], "area": columns["area"]}
    predicted = np.empty(is_disk.shape)
    for rows, size in ((is_disk, disk), (~is_disk, grating)):
        if rows.any():
            inputs = {
                name: values[rows] for name, values in (size | conditions).items()
            }
            predicted[rows] = model(**inputs)
    return predicted


def _summarise_errors(error: FloatArray) -> DatasetScore:
    """Summarise errors in dB: RMS, the gain that would remove the mean, and the RMS left then."""
    shift = float(error.mean())
    return DatasetScore(
        error.size, _rms(error), 10.0 ** (-shift / 20.0), _rms(error - shift)
    )


def _rms(error: FloatArray) -> float:
    """Compute the root mean square of errors."""
    return float(np.sqrt(np.mean(error * error)))


def _read_sensitivities(kind: str, sensitivity: AnyArray) -> FloatArray:
    """Convert sensitivities to float64, refusing an empty table and any not finite and above 0."""
    usable = np.isfinite(sensitivity) & (sensitivity > 0)
    if usable.size == 0:
        raise InputError(
            "the table has no rows, so there is no error to compute; give at least one threshold"
        )
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(
            f"the {kind} sensitivity of row {row} is {sensitivity[row]:g}, but an error in dB "
            "needs it above 0; leave such rows out"
        )
    return sensitivity.astype(np.float64)
