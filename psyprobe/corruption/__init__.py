"""R-Bench's 33 ways in which an image goes wrong between a scene and who looks at it."""

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
