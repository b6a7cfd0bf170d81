"""Export an experiment as a static folder for jsPsych 8, and import the answers that come back.

The page draws each pattern from its specification by the same shader as the page of `psyprobe
observe`. Constant stimuli only: which level comes next must be known beforehand. The light of an
unknown screen is taken for that of an office; its first page says so, and results have it as
"remote".

References
----------
de Leeuw (2015). jsPsych: a JavaScript library for creating behavioral experiments in a Web browser.
Behavior Research Methods 47(1). The library lies in the folder, with its MIT licence.
"""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray

from psyprobe.errors import InputError
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import make_folder, write_text
from psyprobe.files.parsing import (
    packaged_text,
    packaged_toml,
    parse_json,
    read_text,
)
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.human_screen import LEAST_PIXELS, Screen
from psyprobe.observers.people.calibration import OFFICE, read_number, read_screen
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.patterns import read_timing
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import check_experiment, run_experiment

#: Format of the files that come back.
FORMAT = "psyprobe people 1"
#: A usual monitor at one metre, on which the experiment is checked.
_USUAL_SCREEN = Screen(pitch=0.265, distance=1000.0, display=OFFICE, light="remote")
#: Frequency, cpd, and contrast of the practice, and the orientations of its trials, deg.
_PRACTICE = {"frequency": 2.0, "contrast": 0.5}
_PRACTICE_ORIENTATIONS = (0.0, 90.0, 90.0, 0.0)
_STUDY_FILES = "psyprobe.tasks.remote_study"
_PAGE_FILES = "psyprobe.observers.people"


def export_study(experiment: str | Path | Experiment, folder: str | Path) -> int:
    """Write an experiment as a static folder for jsPsych, and return its number of trials.

    The folder can be put on any web server.

    Parameters
    ----------
    experiment : str, Path or Experiment
        Its probe is "orientation", with constant stimuli: ``asking.design = "constant"``.
    folder : str or Path
        Made if it does not exist; files of an earlier study in it are replaced.

    Raises
    ------
    InputError
        Its probe or design is another, or it cannot be shown on a usual screen at one metre.
    """
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment)
    experiment = check_experiment(experiment)
    design = experiment.asking.design if experiment.asking else "none"
    if experiment.probe != "orientation" or design != "constant":
        raise InputError(
            f"{experiment.name} has the probe {experiment.probe!r} and the design {design!r}; a "
            "page by itself takes the probe 'orientation' with --set asking.design=constant "
            "asking.options={} and asking.repeats"
        )
    if experiment.noise is not None:
        raise InputError(
            f"{experiment.name} has [noise], which a page by itself does not draw; take psyprobe "
            "observe, or leave it out"
        )
    # People answer in words.
    experiment = experiment.with_settings({"asking.readout": "text"})
    probe: Any = load_probe(experiment.probe)
    observer = PersonObserver("study", "", _USUAL_SCREEN)
    schedule = probe.plan(experiment, observer)
    patterns: list[JsonObject] = []
    while batches := schedule.next():
        for batch in batches:
            (spec,) = batch.work.scene.plan_trial(*batch.work.trial).specs
            patterns.append(_pattern(len(patterns) + 1, spec, probe))
        schedule.tell({})
    base = schedule.scene.spec
    practice = [
        _pattern(0, base.changed(**_PRACTICE, orientation=orientation), probe)
        for orientation in _PRACTICE_ORIENTATIONS
    ]
    study = {
        "format": FORMAT,
        "title": experiment.title,
        "experiment": {"name": experiment.name, "toml": experiment.toml},
        "text": packaged_toml(_STUDY_FILES, "text.toml"),
        "words": list(probe.words),
        "light": _USUAL_SCREEN.uniforms(),
        "field": max(base.field),
        "finest": max(pattern["frequency"] for pattern in patterns),
        "least_pixels": LEAST_PIXELS,
        "shader": packaged_text(_PAGE_FILES, "gabor.frag"),
        "practice": practice,
        "trials": patterns,
    }
    destination = make_folder(Path(folder))
    for name in ("study.js", "jspsych.js", "jspsych_LICENSE"):
        write_text(destination / name, packaged_text(_STUDY_FILES, name))
    write_text(destination / "index.html", packaged_text(_STUDY_FILES, "study.html"))
    write_text(destination / "draw.js", packaged_text(_PAGE_FILES, "draw.js"))
    code = f"const STUDY = {json.dumps(study, ensure_ascii=False)};\n"
    write_text(destination / "experiment.js", code)
    return len(patterns)


def _pattern(number: int, spec: Any, probe: Any) -> JsonObject:
    """Describe a pattern for the page, in degrees of visual angle."""

    def value(name: str) -> float:
        return float(spec.value(name))

    orientation = value("orientation")
    return {
        "number": number,
        "mean": value("luminance"),
        "contrast": value("contrast"),
        "frequency": value("frequency"),
        "sigma": value("radius"),
        "orientation": math.radians(orientation),
        "phase": math.radians(value("phase")),
        "correct": probe.words[probe.orientations.index(orientation)],
    }


def import_people(path: str | Path, store: str | Path) -> xarray.Dataset:
    """Import the answers of a study into a store, as a session of the person who gave them.

    The same file again changes nothing.

    Parameters
    ----------
    path : str or Path
        The file that the page saved.
    store : str or Path
        The store that takes the answers.

    Returns
    -------
    xarray.Dataset
        The person's result; the light of their screen is "remote".

    Raises
    ------
    InputError
        The file is none of a study, was changed, or breaks off.
    """
    session_file = parse_json(read_text(Path(path)), str(path))
    with in_file(str(path)):
        if (
            not isinstance(session_file, Mapping)
            or session_file.get("format") != FORMAT
        ):
            raise InputError(
                "this is no file of a study; give one that its page saved, of the format "
                f"{FORMAT!r}"
            )
        experiment = _load_session_experiment(session_file)
        trials = session_file.get("trials")
        if not isinstance(trials, list) or not all(
            isinstance(trial, Mapping) for trial in trials
        ):
            raise InputError("it has no trials; ask for the file anew")
        session = str(session_file.get("session", ""))
        if not (session.isascii() and session.isalnum() and len(session) <= 40):
            raise InputError(
                f"the session is called {session!r:.60}; it has up to 40 letters and digits"
            )
        if session_file.get("consent") is not True:
            raise InputError(
                "nobody agreed on its first page; its answers are not taken"
            )
        person = str(session_file.get("person"))
        screen = _read_screen(session_file)
        observer = PersonObserver(person, session, screen, _replay(session, trials))
        return run_experiment(experiment, observer, store=store, progress=False)


def _load_session_experiment(session_file: JsonMapping) -> Experiment:
    """Load the experiment that a returned session file holds, refusing one that names code."""
    page = session_file.get("experiment")
    if not isinstance(page, Mapping) or not isinstance(page.get("toml"), str):
        raise InputError(
            "it does not say of which experiment it is; ask for the file anew"
        )
    if ".py" in page["toml"]:
        raise InputError(
            "its experiment names code of a file, which a file from elsewhere may not"
        )
    letters = [
        letter
        for letter in str(page.get("name", ""))
        if letter.isalnum() or letter in "_-"
    ]
    name = "".join(letters)[:80] or "study"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"{name}.toml"
        copy.write_text(page["toml"], encoding="utf-8")
        return load_experiment(copy)


def _read_screen(session_file: JsonMapping) -> Screen:
    """Read the calibrated screen from a returned session file."""
    values = session_file.get("screen")
    if not isinstance(values, Mapping):
        raise InputError(
            "it does not say how large the screen was; ask for the file anew"
        )
    screen = read_screen({**values, "cards": [values.get("card")] * 2}, OFFICE)
    return replace(screen, light="remote")


def _replay(session: str, trials: Sequence[JsonMapping]) -> Callable[[Inquiry], Answer]:
    """Return a function that answers questions in the order of a session's file."""
    trials_by_number = {trial.get("number"): trial for trial in trials}
    numbers = itertools.count(1)

    def answer(inquiry: Inquiry) -> Answer:
        number = next(numbers)
        trial = trials_by_number.get(number)
        if trial is None:
            raise InputError(
                f"it breaks off before trial {number}; only whole sessions are taken"
            )
        choice = trial.get("choice")
        if choice not in inquiry.words:
            raise InputError(
                f"trial {number} is answered by {choice!r:.40}, not {inquiry.words}"
            )
        record: JsonObject = {
            "session": session,
            "number": number,
            **read_timing(trial),
            "attempt": read_number(trial, "attempt", 0, 1e5),
        }
        if number == 1:
            record["beginning"] = {"consent": True}
        seconds = record["reaction_ms"] / 1000
        return Answer(str(choice), latency=seconds, model="a person", session=record)

    return answer
