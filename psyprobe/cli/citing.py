"""``psyprobe cite``: BibTeX of what an experiment rests on."""

from __future__ import annotations

import argparse

from psyprobe.files.terminal import show
from psyprobe.reporting.citing import cite


def cite_command(arguments: argparse.Namespace) -> int:
    """Print the BibTeX entry of each paper under a line that says what it is cited for."""
    entries = {
        entry.key: entry for name in arguments.experiment for entry in cite(name)
    }.values()
    text = "\n\n".join(f"% {entry.reason}\n{entry.bibtex}" for entry in entries)
    show([vars(entry) for entry in entries], text, arguments)
    return 0
