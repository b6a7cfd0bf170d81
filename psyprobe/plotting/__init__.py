"""Draw results: contour plots with the human curve, contrast matches, sensitivity, many scores.

Every function draws on the axes or figure that it gets and returns it; without one it makes a
pyplot figure, which a notebook then shows. Nothing is shown or saved by itself: see `save_figure`.
Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public names, by the module that defines them.
_PUBLIC = {
    "axes": ("save_figure",),
    "features": ("contour", "contours", "matched_contrast", "scored_responses"),
    "prompts": ("plot_prompts", "plot_yes_map"),
    "psychometric_curves": ("plot_psychometric",),
    "scores": ("bar_panels", "depth_curve", "heat_map", "score_bars"),
    "strip": ("stimulus_strip",),
    "trials": ("plot_trials",),
    "words": ("plot_bridge", "plot_csf"),
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"psyprobe.plotting.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'psyprobe.plotting' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
