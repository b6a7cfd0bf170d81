"""Building a set like MVP-Bench: an idea, an image, questions and a review, each step with tools of
one's choice.
"""

from __future__ import annotations

from psyprobe.tasks.mvp_construction.build import build_set
from psyprobe.tasks.mvp_construction.manipulation import Tools
from psyprobe.tasks.mvp_construction.tools import load_tool

__all__ = ["Tools", "build_set", "load_tool"]
