"""From responses to numbers: alignment with human sensitivity, its parts, and tables of them."""

from __future__ import annotations

from psyprobe.analysis.alignment import Alignment, align, alignment_score, attainable_alignment
from psyprobe.analysis.detection import DetectionScore, ResponderScore
from psyprobe.analysis.iso_response import IsoResponse, fit_iso_response, iso_contrast
from psyprobe.analysis.matching import Matches, MatchingError, match_contrast, matching_error, normalise_responses
from psyprobe.analysis.matching_score import (
    MatchedCurves,
    MatchingResponder,
    MatchingScore,
    match_result,
    score_matching,
)
from psyprobe.analysis.published import PublishedScore, published_scores
from psyprobe.analysis.replay import replay
from psyprobe.analysis.scoreboard import Scoreboard, scoreboard
from psyprobe.analysis.scoring import score, score_layers
from psyprobe.analysis.slices import Slices, score_slices
from psyprobe.analysis.table import score_table

__all__ = [
    "Alignment",
    "DetectionScore",
    "IsoResponse",
    "MatchedCurves",
    "Matches",
    "MatchingError",
    "MatchingResponder",
    "MatchingScore",
    "PublishedScore",
    "ResponderScore",
    "Scoreboard",
    "Slices",
    "align",
    "alignment_score",
    "attainable_alignment",
    "fit_iso_response",
    "iso_contrast",
    "match_contrast",
    "match_result",
    "matching_error",
    "normalise_responses",
    "published_scores",
    "replay",
    "score",
    "score_layers",
    "score_matching",
    "score_slices",
    "score_table",
    "scoreboard",
]
