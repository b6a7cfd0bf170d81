"""Property-based testing of stimulus calibration, for psyprobe's stimuli and anyone's.

Assertions take a `Stimulus`, or any numpy array or torch tensor together with what was requested (a
specification) and what its numbers are; a failure says what was requested, what is delivered, and
the likely cause. Strategies for hypothesis (`psyprobe.testing.strategies`) make displays and
stimuli that are valid by construction. A pytest plugin adds the fixture `calibration_report`.

Names load when they are first used: the plugin is part of every pytest run where psyprobe is
installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

#: Public names by the module that defines them.
_MODULES = {
    "stimulus.certificate": ("Certificate",),
    "stimulus.tolerances": ("PRECISIONS", "TOLERANCES", "Tolerance", "tolerance"),
    "testing.diagnosis": ("Cause",),
    "testing.assertions": (
        "CalibrationError",
        "assert_band",
        "assert_batch_equals_loop",
        "assert_calibrated",
        "assert_cone_contrast",
        "assert_contrast",
        "assert_frequency",
        "assert_in_gamut",
        "assert_isoluminant",
        "assert_mean_luminance",
        "assert_orientation",
        "assert_reproducible",
        "assert_round_trip",
        "judge",
    ),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_PUBLIC, "strategies"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"psyprobe.{_PUBLIC[name]}"), name)
    if name == "strategies":
        return import_module("psyprobe.testing.strategies")
    raise AttributeError(f"module 'psyprobe.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from psyprobe.stimulus.certificate import Certificate
    from psyprobe.stimulus.tolerances import (
        PRECISIONS,
        TOLERANCES,
        Tolerance,
        tolerance,
    )
    from psyprobe.testing import strategies
    from psyprobe.testing.assertions import *  # noqa: F403
    from psyprobe.testing.diagnosis import Cause
