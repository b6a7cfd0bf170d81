"""From responses to numbers: alignment with human sensitivity, its parts, and tables of them.

Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public name to the module that defines it.
_PUBLIC = {
    "Agreement": "words.score",
    "Alignment": "alignment",
    "ChatCounts": "words.fit",
    "ChatScore": "words.score",
    "CsfScores": "words.comparison",
    "DetectionScore": "detection",
    "IsoResponse": "iso_response",
    "MatchedCurves": "matching_score",
    "Matches": "matching",
    "MatchingError": "matching",
    "MatchingResponder": "matching_score",
    "MatchingScore": "matching_score",
    "PromptEffects": "words.prompt_effects",
    "PublishedScore": "published",
    "ResponderScore": "detection",
    "Score": "score",
    "Scoreboard": "board",
    "Slices": "slices",
    "align": "alignment",
    "alignment_score": "alignment",
    "angular_distance": "distance",
    "answer_agreement": "words.score",
    "attainable_alignment": "alignment",
    "bridge": "words.comparison",
    "chat_csf": "words.csf",
    "compare_with_human": "words.comparison",
    "count_answers": "words.fit",
    "csf_statistics": "words.comparison",
    "fit_iso_response": "iso_response",
    "human_names": "words.comparison",
    "iso_contrast": "iso_response",
    "match_contrast": "matching",
    "match_result": "matching_score",
    "matching_error": "matching",
    "normalise_responses": "matching",
    "prompt_effects": "words.prompt_effects",
    "published_scores": "published",
    "replay": "stored",
    "score_chat": "words.score",
    "score_detection": "detection",
    "score_matching": "matching_score",
    "score_slices": "slices",
    "score_table": "table",
    "scoreboard": "board",
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(f"psyprobe.analysis.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'psyprobe.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
