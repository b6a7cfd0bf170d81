"""A page on this machine where people review, answer and label, with the keyboard and from where they left off."""

from __future__ import annotations

from psyprobe.review.agreement import Agreement, accepted_by_both, agreement
from psyprobe.review.journal import Decision, Journal, decisions, people
from psyprobe.review.server import ReviewServer
from psyprobe.review.sitting import Sitting
from psyprobe.review.tasks import Choice, Task

__all__ = [
    "Agreement",
    "Choice",
    "Decision",
    "Journal",
    "ReviewServer",
    "Sitting",
    "Task",
    "accepted_by_both",
    "agreement",
    "decisions",
    "people",
]
