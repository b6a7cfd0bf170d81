"""Scores of R-Bench: absolute and relative robustness, with every breakdown and interval."""

from __future__ import annotations

from psyprobe.analysis.r_bench.attributes import ATTRIBUTES, attribute_table, attributes, plot_attributes
from psyprobe.analysis.r_bench.comparison import (
    Components,
    across,
    components,
    correlations,
    paired_difference,
)
from psyprobe.analysis.r_bench.metrics import rbench_metrics
from psyprobe.analysis.r_bench.prediction_files import read_answers
from psyprobe.analysis.r_bench.scores import MCQ_RULES, read_judgements, score_items
from psyprobe.analysis.r_bench.tables import beside_published, rbench_table

__all__ = [
    "ATTRIBUTES",
    "MCQ_RULES",
    "Components",
    "across",
    "attribute_table",
    "attributes",
    "beside_published",
    "components",
    "correlations",
    "paired_difference",
    "plot_attributes",
    "rbench_metrics",
    "rbench_table",
    "read_answers",
    "read_judgements",
    "score_items",
]
