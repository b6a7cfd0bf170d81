"""Match contrasts: which contrast of a grating has the same response as a reference grating?

Responses are measured for a dense row of contrasts at each test frequency, and for reference
gratings of one frequency; every response is the distance from the same uniform field. Each distinct
image is shown once; which contrasts match is computed from the stored responses.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.matching import score_matching as score  # noqa: F401
from psyprobe.analysis.responses import Variable, labelled, with_status
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.human.measured import matching_data
from psyprobe.human.reference import DataReference
from psyprobe.observers import Card
from psyprobe.plotting.feature_parts import match_parts as report  # noqa: F401
from psyprobe.plotting.features import match_panels as plot  # noqa: F401

# A grating on a uniform field is asked about as it is in detection: both probes share the answers
# of a store.
from psyprobe.probes.detection import (
    VERSION,
    check_levels,
    choose_measures,
    explain_redrawing,
)
from psyprobe.probes.displayed_images import at_native_size
from psyprobe.probes.feature_distances import noise_floor
from psyprobe.probes.pair_batches import answer, responses  # noqa: F401
from psyprobe.probes.pairs import (  # noqa: F401
    ABILITIES,
    Conditions,
    Grid,
    PairSchedule,
    pair_up,
)
from psyprobe.probes.pairs import response_task as task  # noqa: F401
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.stimulus.specification import with_levels

if TYPE_CHECKING:
    from xarray import Dataset

SECTIONS = ("stimulus", "levels", "variants", "human", "score", "observer")
#: The one study of matches that ships.
_DATA = "georgeson_sullivan1975"

_FREQUENCY = {"name": "frequency", "unit": "cpd", "label": "Spatial frequency"}
_CONTRAST = {
    "name": "contrast",
    "unit": "1",
    "label": "Michelson contrast",
    "kind": "michelson",
}


def plan(
    experiment: Experiment, observer: Any, batch_size: int | None = None
) -> PairSchedule:
    """Plan a run of image pairs for contrast matching."""
    conditions = _conditions(experiment, observer.card)
    return PairSchedule(experiment, observer, conditions, VERSION, batch_size)


def _conditions(experiment: Experiment, card: Card) -> Conditions:
    """Plan test gratings (frequencies, contrasts) and reference gratings as pairs."""
    human = matching_data()
    levels = {
        parameter: np.array(values) for parameter, values in experiment.levels.items()
    }
    if not (isinstance(experiment.human, DataReference) and experiment.human.matches):
        raise InputError(
            f"a matching experiment compares with matches; give human.data = {_DATA!r}"
        )
    if set(levels) != {"frequency", "contrast"}:
        raise InputError(
            f"human.data = {_DATA!r} goes with levels of frequency and contrast, and [levels] "
            f"varies {', '.join(levels)}"
        )
    check_levels(levels)
    frequency = levels["frequency"]
    contrast = levels["contrast"]
    present = np.isclose(frequency[:, None], human.frequency, rtol=1e-9, atol=0)
    lacking = human.frequency[~present.any(axis=0)]
    if lacking.size:
        raise InputError(
            f"people matched at {', '.join(f'{f:g}' for f in lacking)} cpd too; add it to "
            "levels.frequency"
        )
    if experiment.score_only:
        frequency = human.frequency
    measures, measure = choose_measures(experiment, card)
    native = with_levels(
        experiment.spec(),
        frequency=human.reference_frequency,
        contrast=float(contrast[0]),
    )
    displayed = at_native_size(experiment.name, native, card)

    def grid_of(frequencies: FloatArray, contrasts: FloatArray) -> Grid:
        grids = np.meshgrid(frequencies, contrasts, indexing="ij")
        tests = with_levels(displayed, frequency=grids[0], contrast=grids[1])
        return Grid(tests, tests.reference())

    with explain_redrawing(experiment.name, native, displayed, card):
        references = grid_of(
            np.array([human.reference_frequency]), human.reference_contrast
        )
        pairs, indices = pair_up(
            {"grid": grid_of(frequency, contrast), "scored": references}
        )
    return Conditions(
        pairs=pairs,
        indices=indices,
        measures=measures,
        axes={
            "levels": [
                {
                    **_FREQUENCY,
                    "values": frequency.tolist(),
                    "scored": [human.reference_frequency],
                }
            ],
            "difference": {**_CONTRAST, "values": contrast.tolist()},
            "scored_difference": [human.reference_contrast.tolist()],
            "score_measure": measure,
            "match_method": experiment.score.method,
            "measured": human.frequency.tolist(),
            "human_match": human.matched_contrast.tolist(),
            "human": experiment.human.name,
        },
        strongest={
            row[-1]: f"frequency {f:.4g}, contrast {contrast[-1]:.4g}"
            for f, row in zip(frequency, indices["grid"], strict=True)
        },
    )


def result(record: RunRecord, store: Store) -> Dataset:
    """Build the result of a matching run: responses as labelled arrays.

    Returns
    -------
    xarray.Dataset
        ``response`` (layer, measure, frequency, contrast), ``reference_response`` (layer, measure,
        reference_contrast), the same of the pixels, and ``human_match`` (reference_contrast,
        measured_frequency).
    """
    layout = record.layout
    run_responses = responses(record, store)
    (level,) = layout["levels"]
    difference = layout["difference"]
    measures = layout["measures"]
    measured = f"measured_{level['name']}"
    repeats = run_responses.observer[layout["noise_floor"]]
    grids = {
        "response": (
            np.array(layout["grid"]),
            ("measure", level["name"], difference["name"]),
            "gratings",
        ),
        "reference_response": (
            np.array(layout["scored"][0]),
            ("measure", "reference_contrast"),
            "the reference gratings",
        ),
    }
    data: dict[str, Variable] = {}
    for name, (indices, dims, label) in grids.items():
        values, pixels = run_responses.at(indices)
        data[name] = (("layer", *dims), values, "1", f"Response to {label}")
        label = f"Response of the pixels to {label}"
        data[f"pixels_{name}"] = (dims, pixels, "1", label)
    data |= {
        "human_match": (
            ("reference_contrast", measured),
            layout["human_match"],
            "1",
            "Contrast that people match",
        ),
        "noise_floor": (
            ("layer", "measure"),
            noise_floor(repeats, measures),
            "1",
            "Largest response to identical images",
        ),
    }
    data = with_status(
        data,
        {name: indices for name, (indices, *_) in grids.items()},
        run_responses.status,
        run_responses.baseline_status,
    )
    level_unit = (level["unit"], level["label"])
    axes = {
        "layer": (list(run_responses.layers), "1", "Features"),
        "measure": (list(measures), "1", "Measure"),
        level["name"]: (level["values"], *level_unit),
        difference["name"]: (
            difference["values"],
            difference["unit"],
            difference["label"],
        ),
        "reference_contrast": (
            layout["scored_difference"][0],
            difference["unit"],
            f"{difference['label']} of the reference grating",
        ),
        measured: (layout["measured"], *level_unit),
    }
    coordinates: dict[str, Variable] = {
        name: ((name,), *axis) for name, axis in axes.items()
    }
    attributes = {
        "levels": json.dumps([level["name"]]),
        "contrast_kind": difference["kind"],
        "reference_frequency": level["scored"][0],
        "human_model": layout["human"],
        **{name: layout[name] for name in ("score_measure", "match_method", "ppd")},
        "size": json.dumps(layout["size"]),
    }
    return labelled(data, coordinates, {**run_responses.attributes, **attributes})
