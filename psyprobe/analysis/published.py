"""Load the printed scores of Cai et al. for 45 models, and replay their stored responses.

Two files hold what a model responded, in the layout in which the responses of Cai et al. (2025) are
kept:

* at multiples of the human threshold, a table (``.csv`` or ``.csv.gz``) with a line for each score
  point and the columns ``model``, ``test``, ``x`` (the level: cpd, cd/m², deg² or mask contrast),
  ``multiplier`` (of the human sensitivity or, on masks, of the human threshold),
  ``stimulus_contrast`` and ``s_ac``;
* on the level grid, a folder with a ``TEST.npz`` for each test: ``s_ac`` (models, X, C), ``x``
  (X,), ``contrast`` (C,), ``models``.

The model ``no_encoder`` holds the responses of the images themselves, the baseline of all others.
Other models whose responses lie in such files are replayed alike.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR, arXiv 2502.20256. Figure 6.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psyprobe import __version__
from psyprobe._typing import FloatArray
from psyprobe.analysis.measures import split_measures
from psyprobe.analysis.responses import detection_result
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.arrays import read_npz
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import packaged_rows
from psyprobe.running.task import StimulusAxis, Task, with_task

if TYPE_CHECKING:
    import xarray as xr

_NUMBERS = ("score", "submission", "float32_floor")

#: The model whose responses are those of the images themselves.
BASELINE = "no_encoder"

#: Models whose responses are no angles between features but a metric's own scale.
_METRICS = ("cvvdp_hdr",)

_COLUMNS = ("model", "test", "x", "multiplier", "stimulus_contrast", "s_ac")


_DATA = ("psyprobe.analysis", "data")
_TESTS = {row["test"]: row for row in packaged_rows(*_DATA, "published_tests.csv")}
_REPLAYED = [test for test, details in _TESTS.items() if details["level"]]

#: Short name of each experiment.
SHORT_NAMES = {details["experiment"]: details["short"] for details in _TESTS.values()}


@dataclass(frozen=True)
class PublishedScore:
    """One published score."""

    #: The authors' key.
    model: str
    family: str
    #: The name in their figure.
    label: str
    #: Our name, without "_published".
    experiment: str
    #: The authors' name of the test.
    test: str
    #: Spearman's r_s ("alignment"), or the error of contrast matches ("error_mean", "error_pooled";
    #: log10 units).
    metric: str
    #: Score in the final table, which the authors' results pages show.
    score: float
    #: Score before they rescaled the chromatic stimuli; None where the table has no such number.
    submission: float | None
    #: Share (0 to 1) of the responses behind the score at 0 or at the smallest value of their
    #: float32 arccosine; None where those are not stored.
    float32_floor: float | None

    @property
    def is_metric(self) -> bool:
        """Tell whether the model is an image metric and no encoder."""
        return self.model in _METRICS


@lru_cache(maxsize=1)
def published_scores() -> tuple[PublishedScore, ...]:
    """Load all published scores: 45 models, nine tests, contrast matching by two definitions.

    Returns
    -------
    tuple of PublishedScore
        In the authors' order of models.

    Examples
    --------
    >>> scores = published_scores()
    >>> len(scores), scores[0].label, scores[0].score
    (450, 'No Encoder', 0.4688)
    """
    rows: list[JsonObject] = [*packaged_rows(*_DATA, "published_scores.csv")]
    for row in rows:
        row |= {name: float(row[name]) if row[name] else None for name in _NUMBERS}
    return tuple(PublishedScore(**row) for row in rows)


#: Rows (x, multiplier, contrast, response) of each model and test.
Table = dict[tuple[str, str], FloatArray]


def replay(
    table: str | Path,
    grids: str | Path,
    *,
    models: Iterable[str] | None = None,
    tests: Iterable[str] | None = None,
) -> list[xr.Dataset]:
    """Load the stored responses of published models as results that can be scored.

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
        One for each model and test, model by model, as "replay:MODEL" in the experiment of that
        name with "_published". Attribute `replayed` is 1. The only measure is "angular_float32",
        their angle by a float32 arccosine, or for ColorVideoVDP ("cvvdp_hdr") "difference". The
        noise floor was not measured, and is 0. The human curve is known at the score points only.

    Raises
    ------
    InputError
        If a file cannot be read, lacks a column or the baseline, or holds what lies on no human
        curve.
    UnknownNameError
        If a model or test is not in the files.

    See Also
    --------
    psyprobe.analysis.published_scores : scores of the models whose responses are not stored.
    """
    rows = _read_table(Path(table))
    stored_models = list(dict.fromkeys(model for model, _ in rows))
    if models is None:
        models = [model for model in stored_models if model != BASELINE]
    test_names = [] if tests is None else list(tests)
    for test in test_names:
        if test not in _REPLAYED:
            raise unknown_name("test", test, _REPLAYED)
    results = []
    for model in models:
        if model not in stored_models:
            raise unknown_name("stored model", model, stored_models)
        stored_tests = [test for name, test in rows if name == model]
        results += [
            _rebuild_result(rows, Path(grids), model, test, Path(table).name)
            for test in test_names or stored_tests
            if test in _REPLAYED
        ]
    return results


def _rebuild_result(
    table: Table, grids: Path, model: str, test: str, source: str
) -> xr.Dataset:
    """Rebuild the result of a published model and test from its stored responses."""
    values, contrasts, grid, points = _stored(table, grids, model, test)
    _, _, pixels_grid, pixels_points = _stored(table, grids, BASELINE, test)
    details = _TESTS[test]
    scored = points[:, 0, 0]
    multiplier = points[0, :, 1]
    contrast = points[..., 2]
    masked = details["level"] == "mask_contrast"
    thresholds = contrast * (1 / multiplier if masked else multiplier)
    if not np.allclose(thresholds, thresholds[:, :1], rtol=1e-5, atol=0):
        raise InputError(
            f"{source}, {model}, {test}: contrasts are not the multiples of one human threshold at "
            "each level; stimulus_contrast must be "
            f"{'multiplier * threshold' if masked else '1 / (multiplier * sensitivity)'}"
        )
    sensitivity = 1 / np.median(thresholds, axis=1)
    measure = "difference" if model in _METRICS else "angular_float32"
    layout = {
        "levels": [
            {
                "name": details["level"],
                "unit": details["unit"],
                "label": details["label"],
                "values": values,
                "scored": scored,
            }
        ],
        "difference": {
            "name": "contrast",
            "unit": "1",
            "label": details["contrast"],
            "kind": details["kind"],
            "values": contrasts,
        },
        "multiplier": multiplier,
        "multiplier_of": "threshold" if masked else "sensitivity",
        "scored_difference": contrast,
        "measures": [measure],
        "score_measure": measure,
        "human": details["human"],
        "human_sensitivity": sensitivity,
        "curve": {
            "level": details["level"],
            "values": scored,
            "sensitivity": sensitivity,
        },
    }
    attributes = {
        "experiment": f"{details['experiment']}_published",
        "observer": f"replay:{model}",
        "observer_card": json.dumps({"name": f"replay:{model}", "source": source}),
        "probe": "detection",
        "replayed": 1,
        "psyprobe_version": __version__,
        "random_weights": 0,
    }
    responses = (grid[None, None], points[None, None, ..., 3])
    pixels = (pixels_grid[None], pixels_points[None, ..., 3])
    result = detection_result(
        layout, responses, pixels, np.zeros((1, 1)), ["stored"], attributes
    )
    return with_task(
        split_measures(result),
        Task(axis=StimulusAxis("contrast", "1", details["contrast"])),
    )


def _read_table(path: Path) -> Table:
    """Read the rows (x, multiplier, contrast, response) of each model and test."""
    import pandas as pd

    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    missing = [name for name in _COLUMNS if name not in rows]
    if missing:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it needs {', '.join(_COLUMNS)}"
        )
    numbers = rows[[*_COLUMNS[2:]]]
    wrong = numbers.apply(pd.to_numeric, errors="coerce").isna().any(axis=1)
    if wrong.any():
        row = rows[wrong].iloc[0]
        raise InputError(
            f"{path}, line {row.name + 2}: {row.to_dict()} holds something that is no number"
        )
    groups = numbers.astype(float).groupby([rows["model"], rows["test"]], sort=False)
    return {key: group.to_numpy() for key, group in groups}


def _stored(
    table: Table, grids: Path, model: str, test: str
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Select a published model's levels, contrasts, response grid and scored points in one test."""
    if (model, test) not in table:
        raise InputError(
            f"there are no responses of {model} at multiples of the human threshold in {test}"
            + ("; they are the baseline of all others" if model == BASELINE else "")
        )
    rows = table[model, test]
    scored, multiplier = map(np.unique, rows.T[:2])
    if len(rows) != len(scored) * len(multiplier) or not np.isfinite(rows).all():
        raise InputError(
            f"{model}, {test}: {len(rows)} score points are not each of {len(scored)} x with each "
            f"of {len(multiplier)} multipliers, once and finite"
        )
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))].reshape(
        len(scored), len(multiplier), 4
    )
    path = grids / f"{test}.npz"
    try:
        archive = read_npz(path)
        s_ac, x, contrast, models = (
            archive[name] for name in ("s_ac", "x", "contrast", "models")
        )
    except (InputError, KeyError) as error:
        raise InputError(
            f"{path} is no level grid: {error}; it needs s_ac, x, contrast and models"
        ) from None
    names = [str(name) for name in models]
    if model not in names:
        raise unknown_name(f"model in {path.name}", model, names)
    shape = (len(names), *x.shape, *contrast.shape)
    if s_ac.shape != shape:
        raise InputError(
            f"{path}: s_ac has shape {s_ac.shape}, and (models, x, contrast) is {shape}"
        )
    grid = s_ac[names.index(model)]
    return x.astype(float), contrast.astype(float), grid.astype(float), rows
