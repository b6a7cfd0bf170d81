"""In which order contrasts are shown: constant stimuli, the P(yes) ladder, QUEST+ and qCSF."""

from psyprobe.probes.designs.constant_stimuli import ConstantStimuli, constant
from psyprobe.probes.designs.protocol import Design, DesignEstimate, Level
from psyprobe.probes.designs.psychometric_grid import Grid, default_grid
from psyprobe.probes.designs.quest_plus import QuestPlus
from psyprobe.probes.designs.yes_ladder import YesLadder, ladder

__all__ = [
    "ConstantStimuli",
    "Design",
    "DesignEstimate",
    "Grid",
    "Level",
    "QuestPlus",
    "YesLadder",
    "constant",
    "default_grid",
    "ladder",
]
