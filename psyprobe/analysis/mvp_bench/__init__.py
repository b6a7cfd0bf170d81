"""Scores of MVP-Bench: what a reply says, and how often it is right, by five metrics."""

from __future__ import annotations

from psyprobe.analysis.mvp_bench.metrics import constant_replies, mvp_metrics
from psyprobe.analysis.mvp_bench.paired import compare_models
from psyprobe.analysis.mvp_bench.replies import PARSERS, parse_reply, read_predictions, said
from psyprobe.analysis.mvp_bench.tables import beside_published, mvp_tables, with_categories

__all__ = [
    "PARSERS",
    "beside_published",
    "compare_models",
    "constant_replies",
    "mvp_metrics",
    "mvp_tables",
    "parse_reply",
    "read_predictions",
    "said",
    "with_categories",
]
