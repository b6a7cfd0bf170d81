"""In which order contrasts are shown: constant stimuli, the P(yes) ladder, QUEST+ and qCSF."""

from __future__ import annotations

from psyprobe.analysis.psychometric.csf_posterior import CsfGrid
from psyprobe.analysis.psychometric.posterior import Grid, default_grid
from psyprobe.probes.designs.adaptive import QuestPlus, QuickCSF
from psyprobe.probes.designs.expected import (
    AssumedObserver,
    expected_interval_width,
    expected_queries,
)
from psyprobe.probes.designs.protocol import Design, DesignEstimate, Level
from psyprobe.probes.designs.rounds import Rounds, constant, ladder

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
