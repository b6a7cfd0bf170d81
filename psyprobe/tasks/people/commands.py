"""``psyprobe observe``: a person at this screen, in an experiment file, into the same store as the
models.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import read_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import say, settings, show, stop_event
from psyprobe.light.screen import display_from
from psyprobe.observers.people.observer import checked_person
from psyprobe.probes.experiments import check_experiment
from psyprobe.tasks.people.patterns import PATTERN_PROBES, PatternVisit
from psyprobe.tasks.people.pictures import PICTURE_PROBES, PictureVisit
from psyprobe.tasks.people.sessions import PersonVisit


def observe_command(arguments: argparse.Namespace) -> int:
    """Serve the page to one person until the session is over, or Ctrl-C pauses it."""
    try:
        from psyprobe.observers.people.server import PersonServer
    except ImportError as error:
        raise PsyprobeError(
            "the page needs starlette and uvicorn: pip install 'psyprobe[server]'"
        ) from error
    visit = _visit(arguments)
    store = make_folder(visit.store.parent) / visit.store.name
    with stop_event() as told, PersonServer(visit, arguments.port) as server:
        say(f"Open {server.address} in a browser on this machine; Ctrl-C pauses.")
        while not told.wait(0.2) and not visit.over.is_set():
            pass
        # The page fetches the result before its server goes.
        visit.pause()
        told.wait(1.0)
    done = f"{visit.afterwards} {store} shows the result"
    text = done if visit.found else "paused; the same command continues the session"
    show(
        {"store": str(store), "finished": bool(visit.found), **visit.found},
        text,
        as_json=arguments.json,
    )
    return 0


def _visit(arguments: argparse.Namespace) -> PersonVisit:
    experiment = read_experiment(arguments.experiment)
    changed = settings(arguments.set, "--set")
    experiment = check_experiment(experiment.with_settings(changed) if changed else experiment)
    person = checked_person(arguments.person)
    store = Path(arguments.store)
    if experiment.probe in PICTURE_PROBES:
        if arguments.display:
            raise InputError(
                "--display is about patterns, and pictures are shown as they are; leave it out"
            )
        return PictureVisit(experiment, person, store)
    if experiment.probe not in PATTERN_PROBES:
        known = ", ".join((*PATTERN_PROBES, *PICTURE_PROBES))
        raise InputError(
            f"{experiment.name} has the probe {experiment.probe!r}, and people are asked by "
            f"{known}; "
            "take orientation_csf, or a copy of it"
        )
    return PatternVisit(
        experiment, person, store, display_from(arguments.display) if arguments.display else None
    )
