"""What a network's short number format costs: the angles of some pairs, beside those of the same network in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.registry import loaded_as
from psyprobe.probes.asking import features, respond
from psyprobe.probes.showing import show
from psyprobe.stimulus import Specification

#: Pairs that are shown to both.
MOST_PAIRS = 8


def effect_of_format(
    observer: Any, pairs: Sequence[tuple[Specification, Specification]], first: int, display: Display
) -> dict[str, Any] | None:
    """How far the number format of an encoder moves S_ac.

    Parameters
    ----------
    observer : FeatureObserver
        Who was asked.
    pairs : sequence of (Specification, Specification)
        Test and reference; so many as `MOST_PAIRS` of them are shown, evenly spread.
    first : int
        Index of the first that may be shown.
    display : Display
        What shows them.

    Returns
    -------
    dict or None
        "dtype", "pairs", and of the change of S_ac as a share of that in float32 the "median" and the "largest", over
        pairs and layers; these are None where S_ac is 0 in float32 throughout. None where the format is float32, or the
        network was not loaded by name, so that it is not there in float32.
    """
    loaded = loaded_as(observer)
    if loaded is None or loaded[1].get("dtype", "float32") == "float32":
        return None
    name, options = loaded
    exact = load_observer(name, **{**options, "dtype": "float32"})
    places = np.unique(np.linspace(first, len(pairs) - 1, MOST_PAIRS).round().astype(int))
    chosen = [pairs[place] for place in places.tolist()]
    short, whole = (_angles(who, chosen, display) for who in (observer, exact))
    known = (whole > 0) & np.isfinite(short)
    moved = np.abs(short[known] / whole[known] - 1)
    told = {"median": float(np.median(moved)), "largest": float(moved.max())} if moved.size else {}
    return {"dtype": observer.card.dtype, "pairs": len(chosen), "median": None, "largest": None, **told}


def _angles(observer: Any, pairs: Sequence[tuple[Specification, Specification]], display: Display) -> FloatArray:
    tests, references = (show(specs, display).drive for specs in zip(*pairs, strict=True))
    known = features(observer, references)
    return respond(observer, tests, known, range(len(pairs)), ("angular",), ppd=pairs[0][0].ppd)[..., 0]
