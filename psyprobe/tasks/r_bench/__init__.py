"""R-Bench: questions about a reference image and its corrupted twin, as multiple choice, short
answer and caption.

Names load when they are first used.
"""

from __future__ import annotations

from psyprobe.files.lazy import lazy_names
from psyprobe.files.parsing import packaged_text
from psyprobe.probes import ProbeKind

_BIBTEX = packaged_text("psyprobe.tasks.r_bench", "reference.bib").strip()

R_BENCH = ProbeKind(
    "psyprobe.tasks.r_bench.probe:R_BENCH",
    "R-Bench: reference images and their corrupted twins, for models and people",
    _BIBTEX,
)
CORRUPTION_PROFILE = ProbeKind(
    "psyprobe.tasks.r_bench.corruption_profile",
    "how far photographs are from their corrupted versions for an encoder",
    _BIBTEX,
)

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
