"""Pages of the catalogue that ask for answers, cut to few levels for observers that decide."""

from __future__ import annotations

from typing import Any

import psyprobe as pp
from psyprobe.experiment import Experiment, is_suite

#: Names that the stimulus axis of a page may have: two of its levels stay, and one of any other.
AXES = ("logmar", "spacing", "path_angle", "contrast", "frequency")


def answered_pages() -> list[str]:
    """Name the pages that ask an observer for answers; those without [asking] ask for features."""
    names = [row.name for row in pp.list_experiments() if not is_suite(row.name)]
    return [name for name in names if pp.load_experiment(name).asking is not None]


def smallest(name: str) -> Experiment:
    """Read a page and keep two levels of its stimulus axis and one of another, asked once."""
    page = pp.load_experiment(name)
    settings: dict[str, Any] = {
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": 1,
    }
    if page.asking is not None and page.asking.stop_below is not None:
        settings["asking.stop_below"] = 1
    varied = [level for level, values in page.levels.items() if len(values) > 1]
    axes = ("frequency",) if page.probe == "acuity" else AXES
    axis = next((level for level in axes if level in varied), "")
    for level, values in page.levels.items():
        count = 2 if level == axis and page.difference is None else 1
        middle = len(values) // 2
        settings[f"levels.{level}"] = {"values": list(values[middle : middle + count])}
    if page.difference is not None:
        middle = len(page.difference.levels) // 2
        values = page.difference.levels[middle : middle + 2]
        settings["difference.levels"] = {"values": list(values)}
    return page.with_settings(settings)
