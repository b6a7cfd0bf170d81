"""R-Bench: questions about a reference image and its corrupted twin, as multiple choice, short
answer and caption.
"""

from __future__ import annotations

from psyprobe.tasks.r_bench.items import check_items, read_items, read_set
from psyprobe.tasks.r_bench.metrics import (
    components,
    correlations,
    paired_difference,
    rbench_metrics,
    rbench_table,
)
from psyprobe.tasks.r_bench.scores import MCQ_RULES, read_answers, read_judgements, score_items

__all__ = [
    "MCQ_RULES",
    "check_items",
    "components",
    "correlations",
    "paired_difference",
    "rbench_metrics",
    "rbench_table",
    "read_answers",
    "read_items",
    "read_judgements",
    "read_set",
    "score_items",
]
