"""From responses to numbers: alignment with human sensitivity, its parts, and tables of them."""

from __future__ import annotations

from psyprobe.analysis.alignment import Alignment, align, alignment_score, attainable_alignment
from psyprobe.analysis.detection import DetectionScore, ResponderScore, score, score_layers
from psyprobe.analysis.iso_response import IsoResponse, fit_iso_response, iso_contrast
from psyprobe.analysis.slices import Slices, score_slices
from psyprobe.analysis.table import score_table

__all__ = [
    "Alignment",
    "DetectionScore",
    "IsoResponse",
    "ResponderScore",
    "Slices",
    "align",
    "alignment_score",
    "attainable_alignment",
    "fit_iso_response",
    "iso_contrast",
    "score",
    "score_layers",
    "score_slices",
    "score_table",
]
