"""``psyprobe reproduce``: a result run again, and what differs."""

from __future__ import annotations

import argparse

from psyprobe.files.terminal import settings, show
from psyprobe.probes.reproduce import reproduce


def reproduce_command(arguments: argparse.Namespace) -> int:
    """Run a stored result again and print what differs; exit with code 1 if anything does."""
    options = settings(arguments.observer_option, "--observer-option")
    reproduction = reproduce(
        arguments.result,
        experiment=arguments.experiment,
        observer=arguments.observer,
        **options,
    )
    show(reproduction.to_dict(), str(reproduction), arguments)
    return 0 if reproduction.same else 1
