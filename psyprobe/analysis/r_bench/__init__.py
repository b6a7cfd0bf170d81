"""Scores of R-Bench: absolute and relative robustness, with every breakdown and interval."""

from __future__ import annotations

from psyprobe.analysis.r_bench.metrics import rbench_metrics
from psyprobe.analysis.r_bench.prediction_files import read_answers
from psyprobe.analysis.r_bench.scores import MCQ_RULES, read_judgements, score_items
from psyprobe.analysis.r_bench.tables import beside_published, rbench_table

__all__ = [
    "MCQ_RULES",
    "beside_published",
    "rbench_metrics",
    "rbench_table",
    "read_answers",
    "read_judgements",
    "score_items",
]
