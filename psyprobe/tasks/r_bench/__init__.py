"""R-Bench: questions about a reference image and its corrupted twin, as multiple choice, short answer and caption."""

from __future__ import annotations

from psyprobe.tasks.r_bench.attributes import ATTRIBUTES, attribute_table, attributes, plot_attributes
from psyprobe.tasks.r_bench.comparison import (
    Components,
    across,
    components,
    correlations,
    paired_difference,
)
from psyprobe.tasks.r_bench.image_set import ImageSet, read_set
from psyprobe.tasks.r_bench.items import TASKS, ItemReport, check_items, read_items
from psyprobe.tasks.r_bench.metrics import rbench_metrics
from psyprobe.tasks.r_bench.prediction_files import read_answers
from psyprobe.tasks.r_bench.scores import MCQ_RULES, read_judgements, score_items
from psyprobe.tasks.r_bench.tables import beside_published, rbench_table

__all__ = [
    "ATTRIBUTES",
    "MCQ_RULES",
    "TASKS",
    "Components",
    "ImageSet",
    "ItemReport",
    "across",
    "attribute_table",
    "attributes",
    "beside_published",
    "check_items",
    "components",
    "correlations",
    "paired_difference",
    "plot_attributes",
    "rbench_metrics",
    "rbench_table",
    "read_answers",
    "read_items",
    "read_judgements",
    "read_set",
    "score_items",
]
