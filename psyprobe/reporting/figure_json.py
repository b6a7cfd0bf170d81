"""Figures as compact JSON: numbers rounded to what is seen, responses as 16 bits of their
logarithm.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.files.terminal import printable
from psyprobe.plotting.figure_data import Axis, Figure, Grid, Line

#: Codes of what has no logarithm, and the first and last of what has one.
_ABSENT = 0
_ZERO = 1
_FIRST = 2
_LAST = 65535


def compact(figure: Figure) -> dict[str, Any]:
    """A figure as JSON that ``report.js`` draws; names are escaped as in the page."""
    places: dict[tuple[bytes, bytes], list[list[float | None]]] = {}

    def view(one: Grid | Sequence[Line]) -> Any:
        if not isinstance(one, Grid):
            return [_line(each) for each in one]
        key = (np.asarray(one.x).tobytes(), np.asarray(one.y).tobytes())
        places.setdefault(key, [rounded(one.x), rounded(one.y)])
        return {
            "at": list(places).index(key),
            "floor": float(f"{one.floor:.3g}"),
            **packed(one.values),
        }

    panels = [
        {
            "title": printable(panel.title),
            "views": {
                option: {printable(layer): view(one) for layer, one in layers.items()}
                for option, layers in panel.views.items()
            },
        }
        for panel in figure.panels
    ]
    return {
        "title": printable(figure.title),
        "x": _axis(figure.x),
        "y": _axis(figure.y),
        "choice": figure.choice,
        "options": [
            [key, printable(key), printable(label)] for key, label in figure.options.items()
        ],
        "panels": panels,
        "over": [_line(each) for each in figure.over],
        "behind": [compact(each) for each in figure.behind],
        "grids": list(places.values()),
    }


def packed(values: npt.ArrayLike) -> dict[str, Any]:
    """Numbers as base64 of little-endian 16-bit steps of log10, between the ends that are told.

    Examples
    --------
    >>> packed([np.nan, 0.0, 0.01, 1.0])
    {'low': -2.0, 'high': 0.0, 'codes': 'AAABAAIA//8='}
    """
    given = np.asarray(values, dtype=np.float64).ravel()
    positive = given[np.isfinite(given) & (given > 0)]
    low, high = (
        (float(np.log10(each)) for each in (positive.min(), positive.max()))
        if positive.size
        else (0.0, 0.0)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        place = (np.log10(given) - low) / ((high - low) or 1.0)
    steps = _FIRST + np.rint(np.nan_to_num(place, neginf=0.0).clip(0, 1) * (_LAST - _FIRST))
    codes = np.where(np.isnan(given), _ABSENT, np.where(given > 0, steps, _ZERO)).astype("<u2")
    return {"low": low, "high": high, "codes": base64.b64encode(codes.tobytes()).decode()}


def rounded(values: npt.ArrayLike, digits: int = 4) -> list[float | None]:
    """Numbers with so many digits; None for what is not finite.

    Examples
    --------
    >>> rounded([0.123456, np.nan])
    [0.1235, None]
    """
    return [
        float(f"{each:.{digits}g}") if np.isfinite(each) else None
        for each in np.asarray(values, dtype=np.float64)
    ]


def _axis(axis: Axis) -> dict[str, Any]:
    told: dict[str, Any] = {
        "label": printable(axis.label),
        "log": axis.log,
        "inverse": printable(axis.inverse),
    }
    told |= {} if axis.zero is None else {"zero": float(f"{axis.zero:.4g}")}
    return told | {
        "span": axis.span and rounded(axis.span),
        "names": [printable(name) for name in axis.names],
    }


def _line(line: Line) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": printable(line.name),
        "x": rounded(line.x),
        "y": rounded(line.y),
    }
    if line.low is not None and line.high is not None:
        told |= {"low": rounded(line.low), "high": rounded(line.high)}
    more = {
        "style": line.style,
        "colour": line.colour,
        "shade": line.shade,
        "notes": [printable(note) for note in line.notes],
        "behind": list(line.behind),
    }
    return told | {
        name: value for name, value in more.items() if value or name == "style" or value == 0.0
    }
