"""Matching results without an observer: from a formula of (frequency, contrast)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from psyprobe.analysis.measures import split_measures
from psyprobe.human import matching_data
from psyprobe.running.task import StimulusAxis, Task

HUMAN = matching_data()
FREQUENCY = np.unique(
    np.round(np.concatenate([HUMAN.frequency, np.geomspace(0.25, 25, 20)]), 3)
)
CONTRAST = np.geomspace(0.001, 1, 60)

Response = Callable[[np.ndarray, np.ndarray], np.ndarray]


def simulated_matching(
    *formulas: Response,
    observer: str = "simulated",
    noise_floor: float = 0.0,
    **attributes: object,
) -> xr.Dataset:
    """A run of an observer whose angular distance is a formula, one for each layer; pixels respond
    by contrast."""

    def measures(angular: np.ndarray) -> np.ndarray:
        return np.stack([angular, np.cos(np.pi * angular)])

    def responses(formula: Response) -> tuple[np.ndarray, np.ndarray]:
        curves = formula(*np.broadcast_arrays(FREQUENCY[:, None], CONTRAST))
        return measures(curves), measures(
            formula(np.array(HUMAN.reference_frequency), HUMAN.reference_contrast)
        )

    curves_and_targets = [responses(formula) for formula in formulas]
    pixels = responses(lambda f, c: 0.3 * c + 0 * f)
    variables: dict[str, tuple[Sequence[str], np.ndarray]] = {
        "response": (
            ("layer", "measure", "frequency", "contrast"),
            np.stack([curves for curves, _ in curves_and_targets]),
        ),
        "reference_response": (
            ("layer", "measure", "reference_contrast"),
            np.stack([target for _, target in curves_and_targets]),
        ),
        "pixels_response": (("measure", "frequency", "contrast"), pixels[0]),
        "pixels_reference_response": (("measure", "reference_contrast"), pixels[1]),
        "human_match": (
            ("reference_contrast", "measured_frequency"),
            HUMAN.matched_contrast,
        ),
        "noise_floor": (
            ("layer", "measure"),
            np.tile(measures(np.array(noise_floor)), (len(curves_and_targets), 1)),
        ),
    }
    result = xr.Dataset(
        variables,
        coords={
            "layer": [f"layer{i}" for i in range(len(curves_and_targets))],
            "measure": ["angular", "cosine"],
            "frequency": (
                "frequency",
                FREQUENCY,
                {"units": "cycles/degree", "long_name": "Spatial frequency"},
            ),
            "contrast": CONTRAST,
            "reference_contrast": HUMAN.reference_contrast,
            "measured_frequency": HUMAN.frequency,
        },
        attrs={
            "probe": "matching",
            "task": json.dumps(
                Task(axis=StimulusAxis("contrast", "1", "Michelson contrast")).to_dict()
            ),
            "experiment": "contrast_matching",
            "observer": observer,
            "reference_frequency": HUMAN.reference_frequency,
            "levels": '["frequency"]',
            "random_weights": 0,
            **attributes,
        },
    )
    return split_measures(result)


def image_responses(frequency: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """Angular distance of the sRGB image of a grating from that of its background
    (encoder_protocol.md, 2.5)."""
    x = (-112 + np.arange(224) * 224 / 223) / 60
    light = (
        10
        * (1 + contrast[..., None] * np.sin(2 * np.pi * frequency[..., None] * x))
        / 400
    )
    drive = np.where(
        light <= 0.04045 / 12.92, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055
    )
    unit = drive / np.linalg.norm(drive, axis=-1, keepdims=True)
    flat = np.full(224, 1 / np.sqrt(224))
    return (
        2
        / np.pi
        * np.arctan2(
            np.linalg.norm(unit - flat, axis=-1), np.linalg.norm(unit + flat, axis=-1)
        )
    )
