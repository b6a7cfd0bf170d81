"""``psyprobe export-jspsych`` and ``psyprobe import-people``: studies on screens elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from psyprobe.analysis.words.trial_table import trial_count
from psyprobe.experiment import load_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import settings, show
from psyprobe.tasks.remote_study.study import export_study, import_people


def export_command(arguments: argparse.Namespace) -> int:
    """Write an experiment as a folder of static pages for jsPsych."""
    changes = settings(arguments.set, "--set")
    experiment = load_experiment(arguments.experiment).with_settings(changes)
    count = export_study(experiment, arguments.output)
    text = (
        f"{arguments.output}: {count} trials; put the folder on a web server, and open "
        "index.html?person=CODE"
    )
    show({"folder": arguments.output, "trials": count}, text, arguments)
    return 0


def import_command(arguments: argparse.Namespace) -> int:
    """Import the session files of a remote study into the store."""
    store = Path(arguments.store)
    make_folder(store.parent)
    files = []
    lines = []
    for path in arguments.files:
        result = import_people(path, store)
        observer = result.attrs["observer"]
        count = trial_count(result)
        files.append({"file": path, "observer": observer, "answers": count})
        lines.append(f"{path}: {count} answers of {observer}")
    text = "\n".join([*lines, str(store)])
    show({"store": str(store), "files": files}, text, arguments)
    return 0
