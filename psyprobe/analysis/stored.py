"""Replay stored responses of other people's models as results, to be scored and drawn like one's own.

Two files hold what a model responded, in the layout in which the responses of Cai et al. (2025) are kept:

* at multiples of the human threshold, a table (``.csv`` or ``.csv.gz``) with a line for each score point and the
  columns ``model``, ``test``, ``x`` (the level: cpd, cd/m², deg² or mask contrast), ``multiplier`` (of the human
  sensitivity or, on masks, of the human threshold), ``stimulus_contrast`` and ``s_ac``;
* on the level grid, a folder with a ``TEST.npz`` for each test: ``s_ac`` (models, X, C), ``x`` (X,), ``contrast``
  (C,), ``models``.

The model ``no_encoder`` holds the responses of the images themselves, the baseline of all others.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psyprobe import __version__
from psyprobe._typing import FloatArray
from psyprobe.analysis.labelled import detection_result
from psyprobe.analysis.published import EXPERIMENT_OF_TEST
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    import xarray as xr

#: The model whose responses are those of the images themselves.
BASELINE = "no_encoder"

#: Models whose responses are no angles between features but a metric's own scale.
_METRICS = ("cvvdp_hdr",)

_COLUMNS = ("model", "test", "x", "multiplier", "stimulus_contrast", "s_ac")

_FREQUENCY = ("frequency", "cpd", "Spatial frequency")
_MASK = ("mask_contrast", "1")

#: Test to name, unit and label of the level, kind and label of contrast, and the human reference.
_TESTS: Mapping[str, tuple[tuple[str, str, str], str, str, str]] = {
    "sf_gabor_ach": (_FREQUENCY, "michelson", "Michelson contrast", "castle_csf"),
    "sf_noise_ach": (_FREQUENCY, "rms", "RMS contrast", "castle_csf"),
    "sf_gabor_rg": (_FREQUENCY, "dkl_over_luminance", "DKL amplitude / luminance", "castle_csf"),
    "sf_gabor_yv": (_FREQUENCY, "dkl_over_luminance", "DKL amplitude / luminance", "castle_csf"),
    "luminance": (("luminance", "cd/m²", "Background luminance"), "michelson", "Michelson contrast", "castle_csf"),
    "area": (("area", "deg²", "Area"), "michelson", "Michelson contrast", "castle_csf"),
    "mask_coherent": ((*_MASK, "Mask contrast (Michelson)"), "michelson", "Michelson contrast", "foley1994"),
    "mask_incoherent": ((*_MASK, "Mask contrast (RMS)"), "michelson", "Michelson contrast", "gegenfurtner_kiper1992"),
}


@dataclass(frozen=True)
class StoredResponses:
    """Responses of one model in one test, as their files hold them."""

    #: Of the level (frequency, luminance, ...) on the grid, shape (X,).
    values: FloatArray
    #: Of the grid, shape (C,).
    contrast: FloatArray
    #: Responses on it, shape (X, C).
    grid: FloatArray
    #: Values of the level that are scored, shape (K,).
    scored: FloatArray
    #: Of the human value, shape (M,).
    multiplier: FloatArray
    #: Shape (K, M).
    scored_contrast: FloatArray
    #: To these contrasts, shape (K, M).
    response: FloatArray


def replay(
    table: str | Path,
    grids: str | Path,
    *,
    models: Iterable[str] | None = None,
    tests: Iterable[str] | None = None,
) -> list[xr.Dataset]:
    """Stored responses of models as results, which `score`, `scoreboard` and `plot` take like those of a run.

    Parameters
    ----------
    table : str or Path
        Responses at multiples of the human threshold.
    grids : str or Path
        Folder of responses on the level grid.
    models : iterable of str, optional
        Which models; without it all of the table but "no_encoder".
    tests : iterable of str, optional
        Which tests, by their names in the table; without it all that `models` did.

    Returns
    -------
    list of xarray.Dataset
        One for each model and test, model by model, as "replay:MODEL" in the experiment of that name with
        "_published". Attribute `replayed` is 1. The only measure is "angular_float32", their angle by a float32
        arccosine, or for ColorVideoVDP ("cvvdp_hdr") "difference". The noise floor was not measured, and is 0. The
        human curve is known at the score points only.

    Raises
    ------
    InputError
        If a file cannot be read, lacks a column or the baseline, or holds what lies on no human curve.
    UnknownNameError
        If a model or test is not in the files.

    See Also
    --------
    psyprobe.analysis.published_scores : scores of the models whose responses are not stored.
    """
    rows = _read_table(Path(table))
    known = list(dict.fromkeys(model for model, _ in rows))
    chosen = [model for model in known if model != BASELINE] if models is None else list(models)
    for model in chosen:
        if model not in known:
            raise unknown_name("stored model", model, known)
    listed = None if tests is None else list(tests)
    for test in listed or []:
        if test not in _TESTS:
            raise unknown_name("test", test, _TESTS)
    results = []
    for model in chosen:
        for test in listed or [test for name, test in rows if name == model and test in _TESTS]:
            own, baseline = (_stored(rows, Path(grids), name, test) for name in (model, BASELINE))
            results.append(replayed_result(own, baseline, model=model, test=test, source=Path(table).name))
    return results


def replayed_result(
    stored: StoredResponses, baseline: StoredResponses, *, model: str, test: str, source: str
) -> xr.Dataset:
    """One result from stored responses.

    Parameters
    ----------
    stored, baseline : StoredResponses
        Of the model and of the images themselves, on the same axes.
    model, test, source : str
        Names of the model, of the test, and of where the responses come from.

    Returns
    -------
    xarray.Dataset
        As `replay` says.

    Raises
    ------
    InputError
        If contrasts are not the multiples of one human threshold at each level.
    UnknownNameError
        If the test is none of the eight.
    """
    if test not in _TESTS:
        raise unknown_name("test", test, _TESTS)
    (name, unit, label), kind, contrast_label, human = _TESTS[test]
    masked = name == "mask_contrast"
    sensitivity = _human_sensitivity(stored, masked, f"{source}, {model}, {test}")
    measure = "difference" if model in _METRICS else "angular_float32"
    level = {"name": name, "unit": unit, "label": label, "values": stored.values, "scored": stored.scored}
    layout = {
        "levels": [level],
        "difference": {
            "name": "contrast", "unit": "1", "label": contrast_label, "kind": kind, "values": stored.contrast,
        },
        "multiplier": stored.multiplier,
        "multiplier_of": "threshold" if masked else "sensitivity",
        "scored_difference": stored.scored_contrast,
        "measures": [measure],
        "score_measure": measure,
        "human": human,
        "human_sensitivity": sensitivity,
        "curve": {"level": name, "values": stored.scored, "sensitivity": sensitivity},
    }  # fmt: skip
    about = {
        "experiment": f"{EXPERIMENT_OF_TEST[test]}_published",
        "observer": f"replay:{model}",
        "observer_card": json.dumps({"name": f"replay:{model}", "source": source}),
        "probe": "detection",
        "replayed": 1,
        "psyprobe_version": __version__,
        "random_weights": 0,
    }
    own = (stored.grid[None, None], stored.response[None, None])
    pixels = (baseline.grid[None], baseline.response[None])
    return detection_result(layout, own, pixels, np.zeros((1, 1)), ["stored"], about)


def _human_sensitivity(stored: StoredResponses, masked: bool, where: str) -> FloatArray:
    thresholds = stored.scored_contrast * (1 / stored.multiplier if masked else stored.multiplier)
    if not np.allclose(thresholds, thresholds[:, :1], rtol=1e-5, atol=0):
        raise InputError(
            f"{where}: contrasts are not the multiples of one human threshold at each level; stimulus_contrast must be "
            f"{'multiplier * threshold' if masked else '1 / (multiplier * sensitivity)'}"
        )
    sensitivity: FloatArray = 1 / np.median(thresholds, axis=1)
    return sensitivity


Table = dict[tuple[str, str], FloatArray]


def _read_table(path: Path) -> Table:
    """Rows (x, multiplier, contrast, response) of each model and test."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{path} has no column {', '.join(missing)}; it needs {', '.join(_COLUMNS)}")
            rows: dict[tuple[str, str], list[list[float]]] = {}
            for number, row in enumerate(reader, 2):
                try:
                    values = [float(row[name]) for name in _COLUMNS[2:]]
                except (TypeError, ValueError):
                    raise InputError(f"{path}, line {number}: {row} holds something that is no number") from None
                rows.setdefault((row["model"], row["test"]), []).append(values)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return {key: np.array(values) for key, values in rows.items()}


def _stored(table: Table, grids: Path, model: str, test: str) -> StoredResponses:
    if (model, test) not in table:
        raise InputError(
            f"there are no responses of {model} at multiples of the human threshold in {test}"
            + ("; they are the baseline of all others" if model == BASELINE else "")
        )
    rows = table[model, test]
    scored, multiplier = np.unique(rows[:, 0]), np.unique(rows[:, 1])
    if len(rows) != len(scored) * len(multiplier) or not np.isfinite(rows).all():
        raise InputError(
            f"{model}, {test}: {len(rows)} score points are not each of {len(scored)} x with each of "
            f"{len(multiplier)} multipliers, once and finite"
        )
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))].reshape(len(scored), len(multiplier), 4)
    path = grids / f"{test}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in ("s_ac", "x", "contrast", "models")}
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is no level grid: {error}; it needs s_ac, x, contrast and models") from None
    models = [str(name) for name in held["models"]]
    if model not in models:
        raise unknown_name(f"model in {path.name}", model, models)
    shape = (len(models), *held["x"].shape, *held["contrast"].shape)
    if held["s_ac"].shape != shape:
        raise InputError(f"{path}: s_ac has shape {held['s_ac'].shape}, and (models, x, contrast) is {shape}")
    return StoredResponses(
        values=held["x"].astype(np.float64),
        contrast=held["contrast"].astype(np.float64),
        grid=held["s_ac"][models.index(model)].astype(np.float64),
        scored=scored,
        multiplier=multiplier,
        scored_contrast=rows[..., 2],
        response=rows[..., 3],
    )
