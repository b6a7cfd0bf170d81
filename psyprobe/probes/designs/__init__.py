"""In which order contrasts are shown: constant stimuli, the P(yes) ladder, QUEST+ and qCSF."""

from psyprobe.probes.designs.csf_posterior import CsfGrid
from psyprobe.probes.designs.expected import AssumedObserver, expected_interval_width, expected_queries
from psyprobe.probes.designs.log_parabola import log_parabola
from psyprobe.probes.designs.protocol import Design, DesignEstimate, Level
from psyprobe.probes.designs.psychometric_grid import Grid, default_grid
from psyprobe.probes.designs.quest_plus import QuestPlus
from psyprobe.probes.designs.quick_csf import QuickCSF
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
    "log_parabola",
]
