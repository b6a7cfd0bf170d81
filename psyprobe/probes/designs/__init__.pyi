from psyprobe.analysis.psychometric.csf_posterior import CsfGrid as CsfGrid
from psyprobe.analysis.psychometric.posterior import Grid as Grid
from psyprobe.analysis.psychometric.posterior import default_grid as default_grid
from psyprobe.probes.designs.adaptive import QuestPlus as QuestPlus
from psyprobe.probes.designs.adaptive import QuickCSF as QuickCSF
from psyprobe.probes.designs.expected import AssumedObserver as AssumedObserver
from psyprobe.probes.designs.expected import (
    expected_interval_width as expected_interval_width,
)
from psyprobe.probes.designs.expected import expected_queries as expected_queries
from psyprobe.probes.designs.protocol import Design as Design
from psyprobe.probes.designs.protocol import DesignEstimate as DesignEstimate
from psyprobe.probes.designs.protocol import Level as Level
from psyprobe.probes.designs.rounds import Rounds as Rounds
from psyprobe.probes.designs.rounds import constant as constant
from psyprobe.probes.designs.rounds import ladder as ladder
