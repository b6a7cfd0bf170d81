"""Draw results: contour plots with the human curve, contrast matches, sensitivity, many scores.

Every function draws on the axes or figure that it gets and returns it; without one it makes a
pyplot figure, which a notebook then shows. Nothing is shown or saved by itself: see `save_figure`.
Names load when they are first used.
"""

from psyprobe.files.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
