"""Write figures as compact JSON: numbers as exact as the eye, responses as 16 bits of their log."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import printable
from psyprobe.plotting.figure_data import Axis, Figure, Grid, Line

#: Codes of values without a logarithm, and the first and last code of those with one.
_ABSENT = 0
_ZERO = 1
_FIRST = 2
_LAST = 65535


def compact(figure: Figure) -> JsonObject:
    """Convert a figure to the JSON that the report's script draws."""
    # Grids share their axes, so each pair of axes is written once.
    axes: dict[tuple[bytes, bytes], list[list[float | None]]] = {}

    def view(content: Grid | Sequence[Line]) -> Any:
        if not isinstance(content, Grid):
            return [_line_to_json(line) for line in content]
        key = (np.asarray(content.x).tobytes(), np.asarray(content.y).tobytes())
        axes.setdefault(key, [rounded(content.x), rounded(content.y)])
        return {
            "at": list(axes).index(key),
            "floor": float(f"{content.floor:.3g}"),
            **packed(content.values),
        }

    panels = [
        {
            "title": printable(panel.title),
            "views": {
                option: {
                    printable(layer): view(content) for layer, content in layers.items()
                }
                for option, layers in panel.views.items()
            },
        }
        for panel in figure.panels
    ]
    return {
        "title": printable(figure.title),
        "x": _axis_to_json(figure.x),
        "y": _axis_to_json(figure.y),
        "choice": figure.choice,
        "options": [
            [key, printable(key), printable(label)]
            for key, label in figure.options.items()
        ],
        "panels": panels,
        "over": [_line_to_json(line) for line in figure.over],
        "behind": [compact(other) for other in figure.behind],
        "grids": list(axes.values()),
    }


def packed(values: ArrayLike) -> JsonObject:
    """Encode positive numbers as base64 of 16-bit steps of their log10.

    Examples
    --------
    >>> packed([np.nan, 0.0, 0.01, 1.0])
    {'low': -2.0, 'high': 0.0, 'codes': 'AAABAAIA//8='}
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    positive = numbers[np.isfinite(numbers) & (numbers > 0)]
    low = float(np.log10(positive.min())) if positive.size else 0.0
    high = float(np.log10(positive.max())) if positive.size else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = (np.log10(numbers) - low) / ((high - low) or 1.0)
    steps = _FIRST + np.rint(
        np.nan_to_num(fraction, neginf=0.0).clip(0, 1) * (_LAST - _FIRST)
    )
    codes = np.where(numbers > 0, steps, _ZERO)
    codes = np.where(np.isnan(numbers), _ABSENT, codes).astype("<u2")
    return {
        "low": low,
        "high": high,
        "codes": base64.b64encode(codes.tobytes()).decode(),
    }


def rounded(values: ArrayLike, digits: int = 4) -> list[float | None]:
    """Round numbers to so many significant digits, None for what is not finite.

    Examples
    --------
    >>> rounded([0.123456, np.nan])
    [0.1235, None]
    """
    return [
        float(f"{value:.{digits}g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64)
    ]


def _axis_to_json(axis: Axis) -> JsonObject:
    """Convert an axis of a figure to JSON."""
    zero = {} if axis.zero is None else {"zero": float(f"{axis.zero:.4g}")}
    return {
        "label": printable(axis.label),
        "log": axis.log,
        "inverse": printable(axis.inverse),
        **zero,
        "span": axis.span and rounded(axis.span),
        "names": [printable(name) for name in axis.names],
    }


def _line_to_json(line: Line) -> JsonObject:
    """Convert a line of a figure to JSON, without what is empty."""
    points: JsonObject = {
        "name": printable(line.name),
        "x": rounded(line.x),
        "y": rounded(line.y),
    }
    if line.low is not None and line.high is not None:
        points |= {"low": rounded(line.low), "high": rounded(line.high)}
    options = {
        "style": line.style,
        "colour": line.colour,
        "shade": line.shade,
        "notes": [printable(note) for note in line.notes],
        "behind": list(line.behind),
    }
    return points | {
        name: value
        for name, value in options.items()
        if value or name == "style" or value == 0.0
    }
