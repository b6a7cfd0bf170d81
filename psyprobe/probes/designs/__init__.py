"""In which order contrasts are shown: constant stimuli, the P(yes) ladder, QUEST+ and qCSF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

#: Name to the module that defines it: a run loads the design that it asks by, and no other.
_MODULES = {
    "AssumedObserver": "expected",
    "CsfGrid": "csf_posterior",
    "Design": "protocol",
    "DesignEstimate": "protocol",
    "Grid": "psychometric_grid",
    "Level": "protocol",
    "QuestPlus": "quest_plus",
    "QuickCSF": "quick_csf",
    "Rounds": "rounds",
    "constant": "rounds",
    "default_grid": "psychometric_grid",
    "expected_interval_width": "expected",
    "expected_queries": "expected",
    "ladder": "rounds",
}

__all__ = [
    "AssumedObserver",
    "CsfGrid",
    "Design",
    "DesignEstimate",
    "Grid",
    "Level",
    "QuestPlus",
    "QuickCSF",
    "Rounds",
    "constant",
    "default_grid",
    "expected_interval_width",
    "expected_queries",
    "ladder",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from psyprobe.probes.designs.csf_posterior import CsfGrid
    from psyprobe.probes.designs.expected import AssumedObserver, expected_interval_width, expected_queries
    from psyprobe.probes.designs.protocol import Design, DesignEstimate, Level
    from psyprobe.probes.designs.psychometric_grid import Grid, default_grid
    from psyprobe.probes.designs.quest_plus import QuestPlus
    from psyprobe.probes.designs.quick_csf import QuickCSF
    from psyprobe.probes.designs.rounds import Rounds, constant, ladder
