"""Refit castleCSF without each of its studies, and measure what that changes.

    python benchmarks/leave_one_study_out.py            # what the packaged table gives
    python benchmarks/leave_one_study_out.py --write    # compute the table anew first

A refit is one Gauss-Newton step from the published constants on 2,295 thresholds. The first table
printed is the error of each study, the second the ceilings of people by the published and the
refitted curve.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.human_observer import people
from psyprobe.experiment import load_experiment
from psyprobe.files.parsing import packaged_toml
from psyprobe.files.terminal import lay_out
from psyprobe.human import Conditions, castle_csf, evaluate_csf, thresholds
from psyprobe.human.castle import mechanisms, mechanisms_csf
from psyprobe.human.evaluation import predicted_sensitivity
from psyprobe.human.leave_one_out import (
    ALL_STUDIES,
    TABLE,
    castle_csf_without,
    fitted_studies,
)

ROOT = Path(__file__).parents[1]
#: SD of log10 thresholds about the curve, and of the logarithm of each constant.
RESIDUAL = 0.2
RIDGE = 0.3
STEP = 1e-4
#: Tests whose ceilings the reference states, with its levels where the page has others.
CEILINGS = {
    "gabor_achromatic": None,
    "gabor_red_green": None,
    "gabor_yellow_violet": np.geomspace(0.5, 16, 16),
    "luminance": None,
}
_GABOR = {"luminance": 100.0, "area": math.pi}
CONDITIONS = {
    "gabor_achromatic": _GABOR,
    "gabor_red_green": {**_GABOR, "direction": "red_green"},
    "gabor_yellow_violet": {**_GABOR, "direction": "yellow_violet"},
    "luminance": {"frequency": 2.0, "area": math.pi},
}
HEADER = """\
# castleCSF (Ashraf, Mantiuk, Chapiro, Wuerger 2024) as refitted without one study: the natural logarithm of each
# constant over its published value. Computed by benchmarks/leave_one_study_out.py from thresholds.csv beside it and the
# constants of castleCSF v0.2.4, both MIT (LICENSE); constants that no threshold depends on are left out.
"""


def constants() -> dict[str, float]:
    """Collect castleCSF's constants other than 0, by their place in mechanisms.toml."""
    values: dict[str, float] = {}

    def collect(constant: object, name: str) -> None:
        if isinstance(constant, Mapping):
            for key, value in constant.items():
                collect(value, f"{name}.{key}")
        elif isinstance(constant, Sequence):
            for place, value in enumerate(constant):
                collect(value, f"{name}.{place}")
        else:
            values[name] = float(constant)  # type: ignore[arg-type]

    for name, table in packaged_toml("psyprobe.human", "mechanisms.toml").items():
        if name.startswith("castle"):
            collect(table, name)
    return values


def log_sensitivity(table: pd.DataFrame, logs: Mapping[str, float]) -> FloatArray:
    """Compute log10 sensitivity of all rows, with each constant times exp of its logarithm."""
    factors = {name: math.exp(value) for name, value in logs.items()}
    model = partial(mechanisms_csf, mechanisms(factors))
    return np.log10(predicted_sensitivity(table, model))


def jacobian(table: pd.DataFrame) -> tuple[list[str], FloatArray]:
    """Differentiate log10 sensitivity by the logarithm of each constant that matters."""
    columns = {}
    for name in constants():
        above = log_sensitivity(table, {name: STEP})
        below = log_sensitivity(table, {name: -STEP})
        column = (above - below) / (2 * STEP)
        if np.abs(column).max() > 1e-6:
            columns[name] = column
    return list(columns), np.stack(list(columns.values()), axis=1)


def step(slopes: FloatArray, residual: FloatArray) -> FloatArray:
    """Solve for the logarithms of the constants that fit residuals best, near 0."""
    curvature = slopes.T @ slopes / RESIDUAL**2 + np.eye(slopes.shape[1]) / RIDGE**2
    return np.linalg.solve(curvature, slopes.T @ residual / RESIDUAL**2)


def write_table(table: pd.DataFrame) -> None:
    """Compute the logarithms without each study and of all, and write the packaged table."""
    names, slopes = jacobian(table)
    residual = -table["log10_threshold"].to_numpy() - log_sensitivity(table, {})
    study = table["dataset"].to_numpy()
    rows = {}
    for name in [*dict.fromkeys(study), ALL_STUDIES]:
        rows[name] = step(slopes[study != name], residual[study != name])
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=names)
    path = ROOT.joinpath(TABLE[0].replace(".", "/"), *TABLE[1:])
    text = frame.to_csv(index_label="study", float_format="%.7g", lineterminator="\n")
    path.write_text(HEADER + text, encoding="utf-8")


def table_of_errors(table: pd.DataFrame) -> str:
    """Tabulate the RMS error of each study: of castleCSF, refitted to all, and without the study."""
    models = {
        "published": lambda study: castle_csf,
        "refitted to all": lambda study: castle_csf_without(ALL_STUDIES),
        "without the study": castle_csf_without,
    }
    squares = dict.fromkeys(models, 0.0)
    rows = []
    for study in fitted_studies():
        thresholds_of_study = table[table["dataset"] == study]
        n = len(thresholds_of_study)
        cells = []
        for name, choose in models.items():
            error = evaluate_csf(thresholds_of_study, choose(study)).rmse_db
            squares[name] += n * error**2
            cells.append(f"{error:.2f}")
        rows.append([study, str(n), *cells])
    total = [f"{math.sqrt(square / len(table)):.2f}" for square in squares.values()]
    rows.append(["all", str(len(table)), *total])
    return lay_out("markdown", [["error, dB", "thresholds", *models], *rows])


def table_of_ceilings() -> str:
    """Tabulate the mean r_s of one person with castleCSF as published and without the study."""
    rows = []
    for test, levels in CEILINGS.items():
        page = load_experiment(test)
        ((name, default),) = (
            (name, values) for name, values in page.levels.items() if name != "contrast"
        )
        values = np.array(default if levels is None else levels)
        span = {"frequency": (0.5 / 1.1, 28 * 1.1), "luminance": (0.1, 200.0)}[name]
        conditions = Conditions(name, span, **CONDITIONS[test])
        for dataset in people(conditions, values):
            members = f"{dataset.dataset} ({dataset.ceiling.persons})"
            ends = f"[{dataset.ceiling.low:.3f}, {dataset.ceiling.high:.3f}]"
            value = f"{dataset.ceiling.value:.3f} {ends}"
            rows.append([test, members, f"{dataset.published.value:.3f}", value])
    return lay_out(
        "markdown", [["one person", "people of", "published", "without them"], *rows]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="compute the table anew")
    arguments = parser.parse_args()
    table = thresholds()
    if arguments.write:
        write_table(table)
    print(table_of_errors(table), table_of_ceilings(), sep="\n\n")


if __name__ == "__main__":
    main()
