"""Refit castleCSF without each of its studies, and measure what that changes.

    python benchmarks/leave_one_study_out.py            # what the packaged table gives
    python benchmarks/leave_one_study_out.py --write    # compute the table anew first

A refit is one Gauss-Newton step from the published constants on 2,295 thresholds. The first table
printed is the error of each study, the second the ceilings of people by the published and the
refitted curve, the third how far studies and other models move scores (of contrast alone, half the
interval over studies; of an observer that follows castleCSF, r_s with the worst refit and the other
models), the last how often the interval over studies holds a planted curve.
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
from psyprobe.analysis.alignment import alignment_score
from psyprobe.analysis.comparison.references import (
    OTHER_MODELS,
    ScoredSlices,
    moved_response,
    score_references,
    threshold_shifts,
)
from psyprobe.analysis.human_observer import MULTIPLIERS, people
from psyprobe.analysis.intervals import student_quantile
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
from psyprobe.human.points import LEVELS

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
    "area": {"frequency": 8.0, "luminance": 100.0},
}
#: Tests whose scores the reference moves, with its levels.
SCORED = {
    "gabor_achromatic": ("frequency", np.geomspace(0.5, 32, 20)),
    "gabor_red_green": ("frequency", np.geomspace(0.5, 32, 20)),
    "gabor_yellow_violet": ("frequency", np.geomspace(0.5, 16, 16)),
    "luminance": ("luminance", np.geomspace(0.1, 200, 20)),
    "area": ("area", np.geomspace(0.02, 8, 20)),
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


def coverage(
    table: pd.DataFrame, gain: float, *, runs: int = 300, seed: int = 0
) -> dict[str, float]:
    """Count how often the jackknife's 95 % interval over studies holds a planted curve.

    The planted thresholds are those of the published curve, a gain of each study and noise of 0.1
    log10, in the linear world of the refits. The curve has 20 frequencies of a Gabor; its height is
    their mean, its shape what is left at each.
    """
    names, slopes = jacobian(table)
    study = table["dataset"].to_numpy()
    rng = np.random.default_rng(seed)
    gains = rng.normal(0, gain, (len(fitted_studies()), runs))
    places = [fitted_studies().index(name) for name in study]
    measured = gains[places] + rng.normal(0, 0.1, (len(table), runs))
    percent = {}
    for direction in ("achromatic", "red_green"):
        curves = curve_slopes(names, direction) @ np.stack(
            [
                step(slopes[study != name], measured[study != name])
                for name in (*fitted_studies(), ALL_STUDIES)
            ]
        )
        heights = curves.mean(axis=1, keepdims=True)
        for part, values in (("height", heights), ("shape", curves - heights)):
            without = values[:-1]
            n = len(without)
            spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
            error = np.sqrt((n - 1) / n * spread)
            inside = np.abs(values[-1]) <= student_quantile(n, 0.95) * error
            percent[f"{direction} {part}"] = 100 * float(inside.mean())
    return percent


def curve_slopes(names: Sequence[str], direction: str) -> FloatArray:
    """Differentiate log10 sensitivity to a Gabor over frequency by the logarithm of constants."""

    def curve(logs: Mapping[str, float]) -> FloatArray:
        factors = {name: math.exp(value) for name, value in logs.items()}
        sensitivity = mechanisms_csf(
            mechanisms(factors),
            np.geomspace(0.5, 32, 20),
            direction=direction,
            **_GABOR,
        )
        return np.log10(sensitivity)

    columns = [
        (curve({name: STEP}) - curve({name: -STEP})) / (2 * STEP) for name in names
    ]
    return np.stack(columns, axis=1)


def table_of_coverage(table: pd.DataFrame) -> str:
    """Tabulate the coverage of the jackknife for two SDs of the studies' gains."""
    by_gain = {gain: coverage(table, gain) for gain in (0.05, 0.1)}
    rows = [
        [part, *(f"{found[part]:.1f}" for found in by_gain.values())]
        for part in by_gain[0.05]
    ]
    heading = ["held by the interval, %", *(f"SD of gains {gain}" for gain in by_gain)]
    return lay_out("markdown", [heading, *rows])


def table_of_scores() -> str:
    """Tabulate how far studies and models move scores of two observers of known truth."""
    rows = []
    for test, (name, levels) in SCORED.items():
        conditions = Conditions(name, (levels[0], levels[-1]), **CONDITIONS[test])
        values = {key: getattr(conditions, key) for key in LEVELS} | {name: levels}
        human = castle_csf(direction=conditions.direction, **values)[:, None]
        contrast = MULTIPLIERS / human
        observers = {"contrast": contrast, "human": np.round(contrast * human, 12)}
        found = {
            key: score_references(
                conditions,
                levels,
                ScoredSlices(MULTIPLIERS, contrast, response),
                None,
                None,
                0.95,
            )
            for key, response in observers.items()
        }
        follower = ScoredSlices(MULTIPLIERS, contrast, observers["human"])
        shifts = threshold_shifts(conditions, tuple(levels.tolist()))
        others = [
            f"{alignment_score(MULTIPLIERS, moved_response(follower, shifts[model])):.3f}"
            if model in shifts
            else "-"
            for model in OTHER_MODELS
        ]
        rows.append(
            [
                f"{test}, {levels[0]:.3g} to {levels[-1]:.3g}",
                f"±{found['contrast'].error:.3f}",
                f"{min(found['human'].without_study.values()):.3f}",
                *others,
            ]
        )
    heading = ["test", "contrast alone", "castleCSF, lowest", *OTHER_MODELS]
    return lay_out("markdown", [heading, *rows])


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
    tables = (
        table_of_errors(table),
        table_of_ceilings(),
        table_of_scores(),
        table_of_coverage(table),
    )
    print(*tables, sep="\n\n")


if __name__ == "__main__":
    main()
