"""Figures of results: contour plots with the human curve, contrast matches, sensitivity by asking, many scores.

Every function draws on the axes or figure it is given and returns it; without one it makes a pyplot figure, which a
notebook then shows. Nothing is shown or saved by itself: see `save_figure`.
"""

from __future__ import annotations

from psyprobe.plotting.contour import contour, contours
from psyprobe.plotting.csf import plot_bridge, plot_csf
from psyprobe.plotting.file import save_figure
from psyprobe.plotting.matches import matched_contrast
from psyprobe.plotting.prompts import plot_prompts, plot_yes_map
from psyprobe.plotting.psychometric import plot_psychometric
from psyprobe.plotting.scored import scored_responses
from psyprobe.plotting.scores import bar_panels, depth_curve, heat_map, score_bars
from psyprobe.plotting.strip import stimulus_strip

__all__ = [
    "bar_panels",
    "contour",
    "contours",
    "depth_curve",
    "heat_map",
    "matched_contrast",
    "plot_bridge",
    "plot_csf",
    "plot_prompts",
    "plot_psychometric",
    "plot_yes_map",
    "save_figure",
    "score_bars",
    "scored_responses",
    "stimulus_strip",
]
