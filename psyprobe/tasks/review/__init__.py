"""A page on this machine where people review, answer and label, with the keyboard and from where they left off."""

from __future__ import annotations

from psyprobe.tasks.review.agreement import Agreement, accepted_by_both, agreement
from psyprobe.tasks.review.journal import Decision, Journal, decisions, people
from psyprobe.tasks.review.server import ReviewServer
from psyprobe.tasks.review.sitting import Sitting
from psyprobe.tasks.review.tasks import Choice, Task

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
