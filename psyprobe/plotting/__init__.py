"""Figures of results: contour plots with the human curve, responses along it, stimulus previews.

Every function draws on the axes or figure it is given and returns it; without one it makes a pyplot figure, which a
notebook then shows. Nothing is shown or saved by itself: see `save_figure`.
"""

from __future__ import annotations

from psyprobe.plotting.along import along_curve
from psyprobe.plotting.contour import contour, contours, plot
from psyprobe.plotting.file import save_figure
from psyprobe.plotting.strip import stimulus_strip

__all__ = ["along_curve", "contour", "contours", "plot", "save_figure", "stimulus_strip"]
