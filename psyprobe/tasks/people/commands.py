"""``psyprobe observe``: run an experiment with a person at this screen, into a store of models."""

from __future__ import annotations

import argparse
from pathlib import Path

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import load_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import say, settings, show, stop_event
from psyprobe.light.screen import display_from
from psyprobe.observers.people.observer import checked_person
from psyprobe.probes.experiments import check_experiment
from psyprobe.tasks.people.patterns import PATTERN_PROBES, PatternSession
from psyprobe.tasks.people.pictures import PICTURE_PROBES, PictureSession
from psyprobe.tasks.people.sessions import ParticipantSession


def observe_command(arguments: argparse.Namespace) -> int:
    """Serve the page to one person until the session is over, or Ctrl-C pauses it."""
    try:
        from psyprobe.observers.people.server import PersonServer
    except ImportError as error:
        raise PsyprobeError(
            "the page needs starlette and uvicorn: pip install 'psyprobe[server]'"
        ) from error
    session = _make_session(arguments)
    store = make_folder(session.store.parent) / session.store.name
    with stop_event() as stop, PersonServer(session, arguments.port) as server:
        say(f"Open {server.address} in a browser on this machine; Ctrl-C pauses.")
        while not stop.wait(0.2) and not session.over.is_set():
            pass
        # The page fetches the result before its server goes.
        session.pause()
        stop.wait(1.0)
    text = "paused; the same command continues the session"
    if session.summary:
        text = f"{session.result_command} {store} shows the result"
    values = {"store": str(store), "finished": bool(session.summary), **session.summary}
    show(values, text, arguments)
    return 0


def _make_session(arguments: argparse.Namespace) -> ParticipantSession:
    """Set up the session of a person with an experiment, over patterns or pictures."""
    experiment = load_experiment(arguments.experiment)
    experiment = check_experiment(
        experiment.with_settings(settings(arguments.set, "--set"))
    )
    person = checked_person(arguments.person)
    store = Path(arguments.store)
    if experiment.probe in PICTURE_PROBES:
        if arguments.display:
            raise InputError(
                "--display is about patterns, and pictures are shown as they are; leave it out"
            )
        return PictureSession(experiment, person, store)
    if experiment.probe not in PATTERN_PROBES:
        probes = ", ".join((*PATTERN_PROBES, *PICTURE_PROBES))
        raise InputError(
            f"{experiment.name} has the probe {experiment.probe!r}, and people are asked by "
            f"{probes}; take orientation_csf, or a copy of it"
        )
    display = display_from(arguments.display) if arguments.display else None
    return PatternSession(experiment, person, store, display)
