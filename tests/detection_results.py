"""Detection results without an observer: from a formula, and from the published responses of Cai et
al. (2025)."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import xarray as xr

from psyprobe.analysis.measures import split_measures
from psyprobe.running.task import StimulusAxis, Task

AXES = {
    "frequency": ("cpd", "Spatial frequency"),
    "luminance": ("cd/m²", "Background luminance"),
    "area": ("deg²", "Area"),
}
#: Name of the level and kind of contrast of the published detection tests.
PUBLISHED = {
    "sf_gabor_ach": ("frequency", "michelson"),
    "sf_noise_ach": ("frequency", "rms"),
    "sf_gabor_rg": ("frequency", "cone"),
    "sf_gabor_yv": ("frequency", "cone"),
    "luminance": ("luminance", "michelson"),
    "area": ("area", "michelson"),
}
LABELS = {
    "michelson": "Michelson contrast",
    "rms": "RMS contrast",
    "cone": "RMS cone contrast",
}
MULTIPLIER = np.geomspace(0.5, 2, 10)

Response = Callable[[np.ndarray, np.ndarray], np.ndarray]


def dataset(
    values: np.ndarray,
    contrast: np.ndarray,
    scored: np.ndarray,
    multiplier: np.ndarray,
    scored_contrast: np.ndarray,
    human: tuple[np.ndarray, np.ndarray],
    grid: Sequence[np.ndarray],
    responses: Sequence[np.ndarray],
    pixels: tuple[np.ndarray, np.ndarray],
    *,
    noise_floor: float = 0.0,
    level: str = "frequency",
    contrast_kind: str = "michelson",
    multiplier_of: str = "threshold",
    observer: str = "simulated",
    experiment: str = "gabor_achromatic",
    layers: Sequence[str] = ("out",),
) -> xr.Dataset:
    """The dataset that psyprobe.run() returns, from arrays of angular distances (one grid and one
    scored a layer)."""
    unit, label = AXES[level]

    def measures(angular: np.ndarray) -> np.ndarray:
        cosine = np.cos(np.pi * angular)
        return np.stack([angular, cosine, 10 * angular, 3 * angular])

    curve_values, curve = human
    place, curve_place = f"scored_{level}", f"curve_{level}"
    variables = {
        "response": (
            ("layer", "measure", level, "contrast"),
            np.stack([measures(g) for g in grid]),
        ),
        "scored_response": (
            ("layer", "measure", place, "multiplier"),
            np.stack([measures(r) for r in responses]),
        ),
        "scored_contrast": ((place, "multiplier"), scored_contrast),
        "human_sensitivity": ((place,), np.interp(scored, curve_values, curve)),
        "human_curve": ((curve_place,), curve),
        "pixels_response": (("measure", level, "contrast"), measures(pixels[0])),
        "pixels_scored_response": (
            ("measure", place, "multiplier"),
            measures(pixels[1]),
        ),
        "noise_floor": (
            ("layer", "measure"),
            np.stack([measures(np.array(noise_floor)) for _ in grid]),
        ),
    }
    axis = StimulusAxis("contrast", "1", LABELS[contrast_kind])
    attributes = {"units": unit, "long_name": label}
    result = xr.Dataset(
        {
            name: (dims, values.astype(np.float64))
            for name, (dims, values) in variables.items()
        },
        coords={
            "layer": list(layers),
            "measure": ["angular", "cosine", "l1", "l2"],
            level: (level, values, attributes),
            "contrast": (
                "contrast",
                contrast,
                {"units": "1", "long_name": LABELS[contrast_kind]},
            ),
            place: (place, scored, attributes),
            "multiplier": multiplier,
            curve_place: (curve_place, curve_values, attributes),
        },
        attrs={
            "probe": "detection",
            "task": json.dumps(Task(axis=axis).to_dict()),
            "experiment": experiment,
            "observer": observer,
            "levels": json.dumps([level]),
            "contrast_kind": contrast_kind,
            "multiplier_of": multiplier_of,
            "human_model": "castle_csf",
            "random_weights": 0,
        },
    )
    return split_measures(result)


def simulated_result(
    response: Response | Sequence[Response],
    *,
    human: Callable[[np.ndarray], np.ndarray] = lambda x: human_csf(x),
    multiplier_of: str = "threshold",
    noise_floor: float = 0.0,
    observer: str = "simulated",
) -> xr.Dataset:
    """A run of an observer whose angular distance is a formula of (frequency, contrast), one for
    each layer."""
    formulas = [response] if callable(response) else list(response)
    x, contrast, curve_x = (
        np.geomspace(0.5, 28, 20),
        np.geomspace(0.001, 1, 20),
        np.geomspace(0.5, 28, 200),
    )
    factor = MULTIPLIER if multiplier_of == "threshold" else 1 / MULTIPLIER
    scored_contrast = factor / human(x)[:, None]
    grid = np.broadcast_arrays(x[:, None], contrast)
    line = np.broadcast_arrays(x[:, None], scored_contrast)
    return dataset(
        x,
        contrast,
        x,
        MULTIPLIER,
        scored_contrast,
        (curve_x, human(curve_x)),
        [f(*grid) for f in formulas],
        [f(*line) for f in formulas],
        (0.3 * grid[1], 0.3 * line[1]),
        noise_floor=noise_floor,
        multiplier_of=multiplier_of,
        observer=observer,
        layers=[f"layer{i}" for i in range(len(formulas))],
    )


def human_csf(x: np.ndarray) -> np.ndarray:
    """A sensitivity that peaks with 200 at 4 cpd."""
    return 10 ** (2.3 - 1.2 * np.log10(np.asarray(x) / 4) ** 2)


@lru_cache(maxsize=1)
def published_along(folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """Rows (x, multiplier, contrast, s_ac) of each published (model, test)."""
    rows: dict[tuple[str, str], list[list[float]]] = {}
    with gzip.open(
        folder / "published_sac_along_curve.csv.gz", "rt", encoding="utf-8"
    ) as file:
        for row in csv.DictReader(file):
            numbers = [
                float(row[name])
                for name in ("x", "multiplier", "stimulus_contrast", "s_ac")
            ]
            rows.setdefault((row["model"], row["test"]), []).append(numbers)
    return {key: np.array(value) for key, value in rows.items()}


@lru_cache(maxsize=1)
def published_scores(folder: Path) -> dict[tuple[str, str], float]:
    """The printed alignment score of each published (model, test)."""
    with (folder / "published_alignment_scores.csv").open(encoding="utf-8") as file:
        return {
            (row["model"], row["test"]): float(row["score"])
            for row in csv.DictReader(file)
            if row["version"] == "final" and row["metric"] == "spearman_rs"
        }


def published_result(folder: Path, test: str, model: str) -> xr.Dataset:
    """The stored responses of a published model in one of the six detection tests, as a result of
    ours."""
    level, kind = PUBLISHED[test]
    with (folder / "castlecsf_curves.csv").open(encoding="utf-8") as file:
        curve = np.array(
            [
                [float(r["x"]), float(r["sensitivity"])]
                for r in csv.DictReader(file)
                if r["test"] == test
            ]
        )
    grids = np.load(folder / "published_sac_grids" / f"{test}.npz")
    models = list(grids["models"])
    scored = np.unique(published_along(folder)[model, test][:, 0])
    shape = (len(scored), 10)
    along = published_along(folder)[model, test]
    pixels = published_along(folder)["no_encoder", test]
    return dataset(
        grids["x"],
        grids["contrast"],
        scored,
        along[:10, 1],
        along[:, 2].reshape(shape),
        (curve[:, 0], curve[:, 1]),
        [grids["s_ac"][models.index(model)]],
        [along[:, 3].reshape(shape)],
        (grids["s_ac"][models.index("no_encoder")], pixels[:, 3].reshape(shape)),
        level=level,
        contrast_kind=kind,
        multiplier_of="sensitivity",
        observer=model,
        experiment=test,
    )
