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
from psyprobe.analysis.words.answer_agreement import Agreement, answer_agreement
from psyprobe.analysis.words.bridge import bridge
from psyprobe.analysis.words.chat_counts import ChatCounts, count_answers
from psyprobe.analysis.words.chat_csf import chat_csf
from psyprobe.analysis.words.chat_score import ChatScore, score_chat
from psyprobe.analysis.words.csf_human import human_names
from psyprobe.analysis.words.csf_scores import CsfScores, compare_with_human, csf_statistics
from psyprobe.analysis.words.prompt_effects import PromptEffects, prompt_effects

__all__ = [
    "Agreement",
    "Alignment",
    "ChatCounts",
    "ChatScore",
    "CsfScores",
    "DetectionScore",
    "IsoResponse",
    "MatchedCurves",
    "Matches",
    "MatchingError",
    "MatchingResponder",
    "MatchingScore",
    "PromptEffects",
    "PublishedScore",
    "ResponderScore",
    "Scoreboard",
    "Slices",
    "align",
    "alignment_score",
    "answer_agreement",
    "attainable_alignment",
    "bridge",
    "chat_csf",
    "compare_with_human",
    "count_answers",
    "csf_statistics",
    "fit_iso_response",
    "human_names",
    "iso_contrast",
    "match_contrast",
    "match_result",
    "matching_error",
    "normalise_responses",
    "prompt_effects",
    "published_scores",
    "replay",
    "score",
    "score_chat",
    "score_layers",
    "score_matching",
    "score_slices",
    "score_table",
    "scoreboard",
]
