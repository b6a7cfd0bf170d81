"""Corrupt images along R-Bench's 33 dimensions, from the scene to the viewer."""

from __future__ import annotations

from psyprobe.corruption.apply import (
    GROUPS,
    STEPS,
    STRENGTHS,
    Dimension,
    corrupt,
    dimension_numbered,
    dimensions,
)

__all__ = [
    "GROUPS",
    "STEPS",
    "STRENGTHS",
    "Dimension",
    "corrupt",
    "dimension_numbered",
    "dimensions",
]
