"""Building a set like MVP-Bench: an idea, an image, questions and a review, each step with tools of one's choice."""

from __future__ import annotations

from psyprobe.tasks.mvp_construction.build import BuildReport, build_set
from psyprobe.tasks.mvp_construction.items import STEPS, Item, gather_items, read_set_items
from psyprobe.tasks.mvp_construction.loading import load_editor, load_inpainter, load_segmenter
from psyprobe.tasks.mvp_construction.manipulation import Manipulated, Plan, Tools, manipulate
from psyprobe.tasks.mvp_construction.masks import Box, choose_mask, overlap
from psyprobe.tasks.mvp_construction.tools import Editor, Inpainter, Segmenter, ToolCard

__all__ = [
    "STEPS",
    "Box",
    "BuildReport",
    "Editor",
    "Inpainter",
    "Item",
    "Manipulated",
    "Plan",
    "Segmenter",
    "ToolCard",
    "Tools",
    "build_set",
    "choose_mask",
    "gather_items",
    "load_editor",
    "load_inpainter",
    "load_segmenter",
    "manipulate",
    "overlap",
    "read_set_items",
]
