"""Yes or no: one image, and whether an observer that answers in words sees a pattern in it."""

from __future__ import annotations

from psyprobe.analysis.words.score import score_chat as score
from psyprobe.plotting.csf import csf_panels as plot

__all__ = ["ABILITIES", "INTERVALS", "ORDERS", "TASK", "VERSION", "plot", "score"]

ABILITIES = ("answer",)
#: Showing or asking differently makes another question of the same trial.
VERSION = "yes_no 1"
TASK = "yes_no"
#: Images in a question.
INTERVALS = 1
#: In which order images are shown; every trial is asked in each.
ORDERS = (0,)
