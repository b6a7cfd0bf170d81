"""Two intervals: two images, one of them uniform, and which of them shows a pattern; always asked in both orders.

An observer that prefers one position does so in both orders, so that the mean over them is free of its preference.
"""

from __future__ import annotations

from psyprobe.analysis.words.score import score_chat as score
from psyprobe.plotting.csf import csf_panels as plot

__all__ = ["ABILITIES", "INTERVALS", "ORDERS", "TASK", "VERSION", "plot", "score"]

ABILITIES = ("answer",)
#: Showing or asking differently makes another question of the same trial.
VERSION = "two_interval 1"
TASK = "two_interval"
#: Images in a question.
INTERVALS = 2
#: In which order images are shown; every trial is asked in each: pattern first, pattern second.
ORDERS = (0, 1)
