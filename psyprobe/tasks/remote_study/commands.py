"""``psyprobe export-jspsych`` and ``psyprobe import-people``: a study on screens elsewhere, and its
answers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from psyprobe.analysis.words.trial_table import trial_count
from psyprobe.experiment import read_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import settings, show
from psyprobe.tasks.remote_study.study import export_study, import_people


def export_command(arguments: argparse.Namespace) -> int:
    """Write the folder."""
    experiment = read_experiment(arguments.experiment)
    changed = settings(arguments.set, "--set")
    count = export_study(
        experiment.with_settings(changed) if changed else experiment, arguments.output
    )
    text = (
        f"{arguments.output}: {count} trials; put the folder on a web server, and open "
        "index.html?person=CODE"
    )
    show({"folder": arguments.output, "trials": count}, text, as_json=arguments.json)
    return 0


def import_command(arguments: argparse.Namespace) -> int:
    """Take files into the store."""
    store = Path(arguments.store)
    make_folder(store.parent)
    told = []
    lines = []
    for path in arguments.files:
        result = import_people(path, store)
        told.append(
            {"file": path, "observer": result.attrs["observer"], "answers": trial_count(result)}
        )
        lines.append(f"{path}: {trial_count(result)} answers of {result.attrs['observer']}")
    show(
        {"store": str(store), "files": told},
        "\n".join([*lines, str(store)]),
        as_json=arguments.json,
    )
    return 0
