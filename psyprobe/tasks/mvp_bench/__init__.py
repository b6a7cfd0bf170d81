"""MVP-Bench: yes/no and multiple-choice questions about natural images and their manipulated twins,
at two levels.

Names load when they are first used.
"""

from __future__ import annotations

from psyprobe.files.lazy import lazy_names
from psyprobe.files.parsing import packaged_text
from psyprobe.probes import ProbeKind

_BIBTEX = packaged_text("psyprobe.tasks.mvp_bench", "reference.bib").strip()

MVP_BENCH = ProbeKind(
    "psyprobe.tasks.mvp_bench.probe:MVP_BENCH",
    "MVP-Bench: natural and manipulated images, at two levels, for models and people",
    _BIBTEX,
)

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
