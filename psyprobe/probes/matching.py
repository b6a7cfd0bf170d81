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
from psyprobe.errors import InputError
from psyprobe.probes import detection
from psyprobe.probes.asking import features, noise_floor, respond
from psyprobe.probes.detection import ABILITIES, VERSION, Conditions, native_size, pair_up

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment_file import Experiment
    from psyprobe.observers import Card

# A grating on a uniform field is asked about as it is in detection: both probes share the answers of a store.
__all__ = ["ABILITIES", "VERSION", "conditions", "features", "respond", "result"]


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
        ``grid``: test gratings, shape (frequencies, contrasts). ``along``: reference gratings, shape (1, references).

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
    measures, scored = detection.measures_of(experiment, card)
    native = experiment.stimulus.spec(frequency=human.reference_frequency, contrast=float(contrast[0]))
    size, ppd = native_size(experiment.name, native, card)
    with detection.redrawn(experiment, native, size, ppd, card):
        drawn = replace(native, size=size, ppd=ppd)
        tests = [[replace(drawn, **_levels(f, c)) for c in contrast] for f in x]
        references = [[replace(drawn, **_levels(human.reference_frequency, c)) for c in human.reference_contrast]]
    pairs, grid, along, repeated = pair_up(tests, references)
    return Conditions(
        pairs=pairs,
        grid=grid,
        along=along,
        noise_floor=repeated,
        size=size,
        ppd=ppd,
        measures=measures,
        axes={
            "x_name": experiment.x.name,
            "x_unit": experiment.x.unit,
            "x_label": experiment.x.label,
            "x": x.tolist(),
            "contrast": contrast.tolist(),
            "score_x": [human.reference_frequency],
            "along_contrast": [human.reference_contrast.tolist()],
            "score_measure": scored,
            "match_method": experiment.score.method,
            "reference_frequency": human.reference_frequency,
            "x_measured": human.frequency.tolist(),
            "human_match": human.matched_contrast.tolist(),
            "human_model": experiment.human.data,
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
        As `Conditions.layout` gives it.
    responses : array, shape (pairs, layers, measures), float64
        Of the observer.
    layers : sequence of str
        Names of its features.
    baseline : array, shape (pairs, measures), float64
        Of the pixels themselves.
    attributes : mapping of str to (str or number)
        Where the result comes from.

    Returns
    -------
    xarray.Dataset
        Dimensions layer, measure, x, contrast, reference_contrast, x_measured; units in the attributes.
    """
    import xarray

    grid, reference = np.array(layout["grid"]), np.array(layout["along"])[0]
    measures, unit, label = layout["measures"], layout["x_unit"], layout["x_label"]
    scale = "angular: angle / pi; cosine: cosine similarity; l1, l2: feature units"
    curves, targets = ("measure", "x", "contrast"), ("measure", "reference_contrast")
    data = {
        "response": (("layer", *curves), np.moveaxis(responses[grid], (2, 3), (0, 1)), scale, "Response to gratings"),
        "reference_response": (
            ("layer", *targets),
            np.moveaxis(responses[reference], 0, -1),
            scale,
            "Response to the reference gratings",
        ),
        "pixels_response": (curves, np.moveaxis(baseline[grid], 2, 0), scale, "Response of the pixels to gratings"),
        "pixels_reference_response": (
            targets,
            baseline[reference].T,
            scale,
            "Response of the pixels to the reference gratings",
        ),
        "human_match": (("reference_contrast", "x_measured"), layout["human_match"], "1", "Contrast that people match"),
        "noise_floor": (
            ("layer", "measure"),
            noise_floor(responses[np.array(layout["noise_floor"])], measures),
            scale,
            "Largest response to identical images",
        ),
    }
    coordinates = {
        "layer": (list(layers), "1", "Features"),
        "measure": (list(measures), "1", "Measure"),
        "x": (layout["x"], unit, label),
        "contrast": (layout["contrast"], "1", "Michelson contrast"),
        "reference_contrast": (layout["along_contrast"][0], "1", "Michelson contrast of the reference grating"),
        "x_measured": (layout["x_measured"], unit, label),
    }
    names = (
        "x_name",
        "x_unit",
        "x_label",
        "score_measure",
        "match_method",
        "reference_frequency",
        "human_model",
        "ppd",
    )
    return xarray.Dataset(
        {
            name: (dims, np.asarray(values, dtype=np.float64), {"units": units, "long_name": long_name})
            for name, (dims, values, units, long_name) in data.items()
        },
        coords={
            name: ((name,), values, {"units": units, "long_name": long_name})
            for name, (values, units, long_name) in coordinates.items()
        },
        attrs={
            **attributes,
            **{name: layout[name] for name in names},
            "size": json.dumps(layout["size"]),
            "probe": "matching",
        },
    )
