"""Matching: which contrast of one grating draws the response that a reference grating drew?

For each test frequency the response to a dense row of contrasts is measured, and the response to reference gratings of
one frequency: every response is the distance from the same uniform field. Each distinct image is shown once; which
contrasts match is computed from the stored responses.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of the
human visual system? CVPR.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.labelled import SCALE, Variable, labelled
from psyprobe.analysis.matching_score import score_matching as score
from psyprobe.errors import InputError
from psyprobe.plotting.matches import match_panels as plot
from psyprobe.probes import detection
from psyprobe.probes.asking import features, noise_floor, respond
from psyprobe.probes.detection import ABILITIES, VERSION, Conditions, native_size, pair_up

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment_file import Experiment
    from psyprobe.observers import Card

# A grating on a uniform field is asked about as it is in detection: both probes share the answers of a store.
__all__ = ["ABILITIES", "VERSION", "conditions", "features", "plot", "respond", "result", "score"]


def conditions(experiment: Experiment, card: Card) -> Conditions:
    """Plan the images of a matching experiment for one observer.

    Parameters
    ----------
    experiment : Experiment
        What to show: test frequencies at which people matched, others for the figure, and contrasts.
    card : Card
        Of the observer; its native input size decides the size of the images, over the same degrees of visual angle.

    Returns
    -------
    Conditions
        ``grid``: test gratings, shape (frequencies, contrasts). ``scored``: reference gratings, shape (1, references).

    Raises
    ------
    InputError
        The levels lack a frequency at which people matched, or one cannot be drawn at this size.
    """
    from psyprobe.human import matching_data

    human = matching_data()
    x, contrast = np.array(experiment.x.values), np.array(experiment.contrast.values)
    lacking = [f for f in human.frequency if not np.isclose(x, f, rtol=1e-9, atol=0).any()]
    if lacking:
        raise InputError(
            f"{experiment.name}: people matched at {', '.join(f'{f:g}' for f in lacking)} cpd too; add it to "
            "levels.frequency"
        )
    if experiment.score_only:
        x = human.frequency
    measures, measure = detection.measures_of(experiment, card)
    native = experiment.stimulus.spec(frequency=human.reference_frequency, contrast=float(contrast[0]))
    size, ppd = native_size(experiment.name, native, card)
    with detection.redrawn(experiment, native, size, ppd, card):
        drawn = replace(native, size=size, ppd=ppd)
        tests = [[replace(drawn, **_levels(f, c)) for c in contrast] for f in x]
        references = [[replace(drawn, **_levels(human.reference_frequency, c)) for c in human.reference_contrast]]
    pairs, grid, scored, repeated = pair_up(tests, references)
    return Conditions(
        pairs=pairs,
        grid=grid,
        scored=scored,
        noise_floor=repeated,
        size=size,
        ppd=ppd,
        measures=measures,
        axes={
            "levels": [
                {
                    "name": experiment.x.name,
                    "unit": experiment.x.unit,
                    "label": experiment.x.label,
                    "values": x.tolist(),
                    "scored": [human.reference_frequency],
                }
            ],
            "difference": {
                "name": "contrast",
                "unit": "1",
                "label": "Michelson contrast",
                "kind": "michelson",
                "values": contrast.tolist(),
            },
            "scored_difference": [human.reference_contrast.tolist()],
            "score_measure": measure,
            "match_method": experiment.score.method,
            "measured": human.frequency.tolist(),
            "human_match": human.matched_contrast.tolist(),
            "human": experiment.human.data,
        },
    )


def _levels(frequency: float, contrast: float) -> dict[str, Any]:
    return {"frequency": float(frequency), "contrast": float(contrast)}


def result(
    layout: Mapping[str, Any],
    responses: FloatArray,
    layers: Sequence[str],
    baseline: FloatArray,
    attributes: Mapping[str, Any],
) -> xarray.Dataset:
    """The responses of a run as labelled arrays.

    Parameters
    ----------
    layout : mapping
        "levels" and "difference" as `detection_result` has them: one level, the frequency of test gratings, whose one
        scored value is that of the reference. "scored_difference" (1, references): contrasts of the reference.
        "measured" (frequencies): where people matched, and "human_match" (references, frequencies): what they did.
        "match_method", "score_measure", "human", "measures", "ppd", "size". "grid" (frequencies, contrasts), "scored"
        (1, references) and "noise_floor": indices of pairs.
    responses, layers, baseline, attributes
        As for `psyprobe.probes.detection.result`.

    Returns
    -------
    xarray.Dataset
        ``response`` (layer, measure, frequency, contrast), ``reference_response`` (layer, measure, reference_contrast),
        the same of the pixels, and ``human_match`` (reference_contrast, measured_frequency).
    """
    (level,), difference, measures = layout["levels"], layout["difference"], layout["measures"]
    grid, reference = np.array(layout["grid"]), np.array(layout["scored"])[0]
    floor = noise_floor(responses[np.array(layout["noise_floor"])], measures)
    curves, targets = ("measure", level["name"], difference["name"]), ("measure", "reference_contrast")
    measured, of_reference = f"measured_{level['name']}", np.moveaxis(responses[reference], 0, -1)
    data: dict[str, Variable] = {
        "response": (("layer", *curves), np.moveaxis(responses[grid], (2, 3), (0, 1)), SCALE, "Response to gratings"),
        "reference_response": (("layer", *targets), of_reference, SCALE, "Response to the reference gratings"),
        "pixels_response": (curves, np.moveaxis(baseline[grid], 2, 0), SCALE, "Response of the pixels to gratings"),
        "pixels_reference_response": (
            targets, baseline[reference].T, SCALE, "Response of the pixels to the reference gratings",
        ),
        "human_match": (("reference_contrast", measured), layout["human_match"], "1", "Contrast that people match"),
        "noise_floor": (("layer", "measure"), floor, SCALE, "Largest response to identical images"),
    }  # fmt: skip
    label = f"{difference['label']} of the reference grating"
    coordinates: dict[str, Variable] = {
        "layer": (("layer",), list(layers), "1", "Features"),
        "measure": (("measure",), list(measures), "1", "Measure"),
        **{one["name"]: ((one["name"],), one["values"], one["unit"], one["label"]) for one in (level, difference)},
        "reference_contrast": (("reference_contrast",), layout["scored_difference"][0], difference["unit"], label),
        measured: ((measured,), layout["measured"], level["unit"], level["label"]),
    }
    named = {
        "levels": json.dumps([level["name"]]),
        "difference": difference["name"],
        "difference_label": difference["label"],
        "contrast_kind": difference["kind"],
        "reference_frequency": level["scored"][0],
        "human_model": layout["human"],
        **{name: layout[name] for name in ("score_measure", "match_method", "ppd")},
        "size": json.dumps(layout["size"]),
        "probe": "matching",
    }
    return labelled(data, coordinates, {**attributes, **named})
