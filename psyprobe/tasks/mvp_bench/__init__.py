"""MVP-Bench: yes/no and multiple-choice questions about natural images and their manipulated twins,
at two levels.

Names load when they are first used.
"""

from __future__ import annotations

from importlib.resources import files

from psyprobe.files.lazy import lazy_names
from psyprobe.probes import ProbeKind

_BIBTEX = (
    files("psyprobe.tasks.mvp_bench")
    .joinpath("reference.bib")
    .read_text(encoding="utf-8")
)

MVP_BENCH = ProbeKind(
    "psyprobe.tasks.mvp_bench.probe:MVP_BENCH",
    "MVP-Bench: natural and manipulated images, at two levels, for models and people",
    _BIBTEX.strip(),
)

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
