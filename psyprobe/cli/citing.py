"""``psyprobe cite``: BibTeX of what an experiment rests on."""

from __future__ import annotations

import argparse

from psyprobe.files.terminal import show
from psyprobe.reporting.citing import cite


def cite_command(arguments: argparse.Namespace) -> int:
    """Print an entry a paper, each under a line that says what it is cited for."""
    cited = {one.key: one for name in arguments.experiment for one in cite(name)}.values()
    text = "\n\n".join(f"% {one.reason}\n{one.bibtex}" for one in cited)
    show([vars(one) for one in cited], text, as_json=arguments.json)
    return 0
