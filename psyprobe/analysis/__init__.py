"""From responses to numbers: alignment with human sensitivity, its parts, and tables of them.

Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public names, by the module that defines them.
_PUBLIC = {
    "alignment": (
        "Alignment",
        "Slices",
        "align",
        "alignment_score",
        "attainable_alignment",
        "score_slices",
    ),
    "scoreboards": ("Scoreboard", "scoreboard"),
    "noise_ceiling": ("noise_ceilings",),
    "detection": ("DetectionScore", "ResponderScore", "score_detection"),
    "distance": ("angular_distance",),
    "iso_response": ("IsoResponse", "fit_iso_response", "iso_contrast"),
    "matching": (
        "MatchedCurves",
        "Matches",
        "MatchingError",
        "MatchingResponder",
        "MatchingScore",
        "match_contrast",
        "match_result",
        "matching_error",
        "normalise_responses",
        "score_matching",
    ),
    "published": ("PublishedScore", "published_scores", "replay"),
    "score": ("Score", "score_table"),
    "result_stimulus": ("thresholds_for",),
    "words.comparison": (
        "CsfScores",
        "bridge",
        "compare_with_human",
        "csf_statistics",
        "human_names",
    ),
    "words.csf": ("chat_csf",),
    "words.fit": ("ChatCounts", "count_answers"),
    "words.prompt_effects": ("PromptEffects", "prompt_effects"),
    "words.trial_table": ("arrange_trials", "flag_words", "trials"),
    "words.score": ("Agreement", "ChatScore", "answer_agreement", "score_chat"),
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"psyprobe.analysis.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'psyprobe.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
