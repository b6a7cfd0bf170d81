"""MVP-Bench: yes/no and multiple-choice questions about natural images and their manipulated twins,
at two levels.

Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

from psyprobe.probes import ProbeKind

#: Public names, by the module that defines them.
_PUBLIC = {
    "metrics": (
        "compare_models",
        "constant_replies",
        "mvp_metrics",
        "mvp_tables",
        "with_categories",
    ),
    "questions": (
        "check_questions",
        "read_questions",
        "rotated",
        "split_choices",
        "with_rotations",
    ),
    "replies": (
        "PARSERS",
        "parse_replies",
        "read_predictions",
        "vlmevalkit_index",
        "write_vlmevalkit",
    ),
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}
_BIBTEX = (
    files("psyprobe.tasks.mvp_bench")
    .joinpath("reference.bib")
    .read_text(encoding="utf-8")
)

MVP_BENCH = ProbeKind(
    "psyprobe.tasks.mvp_bench.probe",
    "MVP-Bench: natural and manipulated images, at two levels, for models and people",
    _BIBTEX.strip(),
)

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(
            import_module(f"psyprobe.tasks.mvp_bench.{_MODULES[name]}"), name
        )
    raise AttributeError(f"module 'psyprobe.tasks.mvp_bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
