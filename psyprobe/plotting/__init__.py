"""Figures of results: contour plots with the human curve, contrast matches, sensitivity by asking, many scores.

Every function draws on the axes or figure it is given and returns it; without one it makes a pyplot figure, which a
notebook then shows. Nothing is shown or saved by itself: see `save_figure`. Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public name to the module that defines it.
_PUBLIC = {
    "bar_panels": "scores",
    "contour": "contour_plot",
    "contours": "contour_plot",
    "depth_curve": "scores",
    "heat_map": "scores",
    "matched_contrast": "matches",
    "plot_bridge": "csf",
    "plot_csf": "csf",
    "plot_prompts": "prompts",
    "plot_psychometric": "psychometric",
    "plot_yes_map": "prompts",
    "save_figure": "axes",
    "score_bars": "scores",
    "scored_responses": "scored",
    "stimulus_strip": "strip",
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"psyprobe.plotting.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'psyprobe.plotting' has no attribute {name!r}")
