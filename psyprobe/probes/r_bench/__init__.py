"""R-Bench: questions about a reference image and its corrupted twin, as multiple choice, short answer and caption."""

from __future__ import annotations

from psyprobe.probes.r_bench.image_set import ImageSet, read_set
from psyprobe.probes.r_bench.items import TASKS, ItemReport, check_items, read_items

__all__ = ["TASKS", "ImageSet", "ItemReport", "check_items", "read_items", "read_set"]
