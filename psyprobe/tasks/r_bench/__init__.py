"""R-Bench: questions about a reference image and its corrupted twin, as multiple choice, short
answer and caption.

Names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

from psyprobe.probes import ProbeKind

#: Public names, by the module that defines them.
_PUBLIC = {
    "items": ("check_items", "read_items", "read_set"),
    "metrics": (
        "components",
        "correlations",
        "paired_difference",
        "rbench_metrics",
        "rbench_table",
    ),
    "scores": ("MCQ_RULES", "read_answers", "read_judgements", "score_items"),
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}
_BIBTEX = (
    files("psyprobe.tasks.r_bench")
    .joinpath("reference.bib")
    .read_text(encoding="utf-8")
)

R_BENCH = ProbeKind(
    "psyprobe.tasks.r_bench.probe",
    "R-Bench: reference images and their corrupted twins, for models and people",
    _BIBTEX.strip(),
)
CORRUPTION_PROFILE = ProbeKind(
    "psyprobe.tasks.r_bench.corruption_profile",
    "how far photographs are from their corrupted versions for an encoder",
    _BIBTEX.strip(),
)

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"psyprobe.tasks.r_bench.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'psyprobe.tasks.r_bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
