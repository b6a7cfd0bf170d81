"""``psyprobe reproduce``: a result run again, and what differs."""

from __future__ import annotations

import argparse

from psyprobe.files.terminal import settings, show
from psyprobe.probes.reproduce import reproduce


def reproduce_command(arguments: argparse.Namespace) -> int:
    """Run a result again, and say what differs; 1 where a number or a text does."""
    options = settings(arguments.observer_option, "--observer-option")
    found = reproduce(
        arguments.result, experiment=arguments.experiment, observer=arguments.observer, **options
    )
    show(found.to_dict(), str(found), as_json=arguments.json)
    return 0 if found.same else 1
