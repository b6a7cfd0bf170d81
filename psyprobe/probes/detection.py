"""Detection: how far a stimulus is from its background for an observer, or how different it looks.

The conditions are a grid of levels (for the contour plot) and points along the human contrast sensitivity curve (for
the score).

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of the
human visual system? CVPR.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.detection import score_detection as score
from psyprobe.analysis.responses import detection_result
from psyprobe.plotting.features import contour_panels as plot
from psyprobe.probes.asking import noise_floor
from psyprobe.probes.grid import grid_conditions
from psyprobe.probes.pairs import ABILITIES, PairSession, Responses, answer, responses

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment import Experiment
    from psyprobe.running.protocol import RunRecord
    from psyprobe.running.store import Store

__all__ = ["ABILITIES", "SECTIONS", "VERSION", "answer", "plan", "plot", "result", "score"]

SECTIONS = ("stimulus", "levels", "variants", "human", "score", "observer")
#: Drawing, showing or measuring differently makes another question of the same condition.
VERSION = "detection 1"


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> PairSession:
    """As in `Probe`."""
    return PairSession(experiment, observer, grid_conditions(experiment, observer.card), VERSION, batch_size)


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """The responses of a run as labelled arrays; see `detection_result`."""
    return grid_result(record.layout, responses(record, store))


def grid_result(layout: Mapping[str, Any], found: Responses) -> xarray.Dataset:
    """Responses at their places on the grid of levels, and at multiples of human thresholds."""
    grid = np.array(layout["grid"]) if np.size(layout["grid"]) else None
    scored = np.array(layout["scored"]) if layout["human"] else None

    def of_observer(at: Any) -> FloatArray | None:
        return None if at is None else np.moveaxis(found.observer[at], (-2, -1), (0, 1))

    def of_pixels(at: Any) -> FloatArray | None:
        return None if at is None else np.moveaxis(found.baseline[at], -1, 0)

    floor = noise_floor(found.observer[np.array(layout["noise_floor"])], layout["measures"])
    about = {**found.attributes, "ppd": layout["ppd"], "size": json.dumps(layout["size"])}
    observer, pixels = (of_observer(grid), of_observer(scored)), (of_pixels(grid), of_pixels(scored))
    return detection_result(layout, observer, pixels, floor, found.layers, about)
