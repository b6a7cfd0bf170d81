"""MVP-Bench: yes/no and multiple-choice questions about natural images and their manipulated twins, at two levels."""

from __future__ import annotations

from psyprobe.probes.mvp_bench.questions import (
    QuestionReport,
    check_questions,
    read_questions,
    rotated,
    split_choices,
    with_rotations,
)
from psyprobe.probes.mvp_bench.vlmevalkit import vlmevalkit_index, write_vlmevalkit

__all__ = [
    "QuestionReport",
    "check_questions",
    "read_questions",
    "rotated",
    "split_choices",
    "vlmevalkit_index",
    "with_rotations",
    "write_vlmevalkit",
]
