"""MVP-Bench: yes/no and multiple-choice questions about natural images and their manipulated twins,
at two levels.
"""

from __future__ import annotations

from psyprobe.tasks.mvp_bench.metrics import (
    compare_models,
    constant_replies,
    mvp_metrics,
    mvp_tables,
    with_categories,
)
from psyprobe.tasks.mvp_bench.questions import (
    check_questions,
    read_questions,
    rotated,
    split_choices,
    with_rotations,
)
from psyprobe.tasks.mvp_bench.replies import (
    PARSERS,
    read_predictions,
    said,
    vlmevalkit_index,
    write_vlmevalkit,
)

__all__ = [
    "PARSERS",
    "check_questions",
    "compare_models",
    "constant_replies",
    "mvp_metrics",
    "mvp_tables",
    "read_predictions",
    "read_questions",
    "rotated",
    "said",
    "split_choices",
    "vlmevalkit_index",
    "with_categories",
    "with_rotations",
    "write_vlmevalkit",
]
