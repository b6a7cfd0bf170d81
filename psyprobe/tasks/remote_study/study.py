"""An experiment as a static folder for jsPsych 8, for screens elsewhere, and the answers that come
back.

The page draws each pattern from its specification by the same shader as the page of `psyprobe
observe`. Constant stimuli only: which level comes next must be known beforehand. What nobody can
promise of an unknown screen is said on its first page, and goes with the result: its light is taken
for that of an office screen, "remote".

References
----------
de Leeuw (2015). jsPsych: a JavaScript library for creating behavioral experiments in a Web browser.
Behavior Research Methods 47(1). The library lies in the folder, with its MIT licence.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import xarray

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment, read_experiment
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.output import make_folder, write_text
from psyprobe.files.parsing import parse_json, parse_toml, read_text
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.human_screen import LEAST_PIXELS, Screen
from psyprobe.observers.people.by_eye import pixel_pitch
from psyprobe.observers.people.calibration import number_of
from psyprobe.observers.people.observer import PersonObserver, checked_person
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import check_experiment, run_experiment

#: Of the files that come back.
FORMAT = "psyprobe people 1"
#: What is assumed of any screen: an office's.
_OFFICE = Display(peak=200.0, black=0.2, ambient=50.0)
#: A usual monitor at one metre, on which the experiment is checked.
_USUAL = Screen(pitch=0.265, distance=1000.0, display=_OFFICE, light="remote")
#: Clear patterns at the beginning: their frequency, cpd, contrast, and whether they lie.
_PRACTICE = [(2.0, 0.5, lies) for lies in (False, True, True, False)]
_OWN = files("psyprobe.tasks.remote_study")
_PAGE = files("psyprobe.observers.people")


def export_study(experiment: str | Path | Experiment, folder: str | Path) -> int:
    """Write an experiment as a static folder for jsPsych, to be put on any web server.

    Parameters
    ----------
    experiment : str, Path or Experiment
        Of the probe "orientation", with constant stimuli: ``asking.design = "constant"``.
    folder : str or Path
        Made where it is not there; files of an earlier study in it are replaced.

    Returns
    -------
    int
        Trials.

    Raises
    ------
    InputError
        Its probe or design is another, or it cannot be shown on a usual screen at one metre.
    """
    read = check_experiment(
        read_experiment(experiment) if not isinstance(experiment, Experiment) else experiment
    )
    if read.probe != "orientation" or read.asking is None or read.asking.design != "constant":
        design = read.asking.design if read.asking else "none"
        raise InputError(
            f"{read.name} has the probe {read.probe!r} and the design {design!r}; a page by "
            "itself takes the probe "
            "'orientation' with --set asking.design=constant asking.options={} and asking.repeats"
        )
    # People say words.
    read = read.with_settings({"asking.readout": "text"})
    probe: Any = load_probe(read.probe)
    schedule = probe.plan(read, PersonObserver("study", "", _USUAL, _nobody))
    patterns: list[dict[str, Any]] = []
    while batches := schedule.next():
        for batch in batches:
            (spec,) = batch.work.scene.shown(*batch.work.trial).specs
            patterns.append(_pattern(len(patterns) + 1, spec, probe))
        schedule.tell({})
    practice = [
        _pattern(
            0,
            schedule.scene.spec.changed(frequency=f, contrast=c, orientation=90.0 if lies else 0.0),
            probe,
        )
        for f, c, lies in _PRACTICE
    ]
    study = {
        "format": FORMAT,
        "title": read.title,
        "experiment": {"name": read.name, "toml": read.toml},
        "text": parse_toml(_OWN.joinpath("text.toml").read_text(encoding="utf-8"), "text.toml"),
        "words": list(probe.words),
        "light": {name: value for name, value in _USUAL.uniforms().items() if name != "curve"},
        "field": max(schedule.scene.spec.field),
        "finest": max(pattern["frequency"] for pattern in patterns),
        "least_pixels": LEAST_PIXELS,
        "shader": _PAGE.joinpath("gabor.frag").read_text(encoding="utf-8"),
        "practice": practice,
        "trials": patterns,
    }
    place = make_folder(Path(folder))
    for name in ("study.js", "jspsych.js", "jspsych_LICENSE"):
        write_text(place / name, _OWN.joinpath(name).read_text(encoding="utf-8"))
    write_text(place / "index.html", _OWN.joinpath("study.html").read_text(encoding="utf-8"))
    write_text(place / "draw.js", _PAGE.joinpath("draw.js").read_text(encoding="utf-8"))
    write_text(place / "experiment.js", f"const STUDY = {json.dumps(study, ensure_ascii=False)};\n")
    return len(patterns)


def _nobody(_: Any) -> Any:
    raise PsyprobeError("nobody is asked while a study is written")


def _pattern(number: int, spec: Any, probe: Any) -> dict[str, Any]:
    """A pattern over degrees, as the page takes it."""
    orientation = float(spec.value("orientation"))
    return {
        "number": number,
        "mean": float(spec.value("luminance")),
        "contrast": float(spec.value("contrast")),
        "frequency": float(spec.value("frequency")),
        "sigma": float(spec.value("radius")),
        "orientation": math.radians(orientation),
        "phase": math.radians(float(spec.value("phase"))),
        "correct": probe.words[probe.orientations.index(orientation)],
    }


def import_people(path: str | Path, store: str | Path) -> xarray.Dataset:
    """Take the answers of a study into a store, as a session of the person who gave them.

    The same file again changes nothing: its answers are there.

    Parameters
    ----------
    path : str or Path
        As the page saved it.
    store : str or Path
        Where the answers go.

    Returns
    -------
    xarray.Dataset
        As of any person; the light of their screen is "remote".

    Raises
    ------
    InputError
        The file is none of a study, was changed, or breaks off.
    """
    told = parse_json(read_text(Path(path)), str(path))
    with in_file(str(path)):
        if not isinstance(told, Mapping) or told.get("format") != FORMAT:
            raise InputError(
                "this is no file of a study; give one that its page saved, of the format "
                f"{FORMAT!r}"
            )
        experiment = _experiment_of(told)
        trials = told.get("trials")
        if not isinstance(trials, list) or not all(isinstance(trial, Mapping) for trial in trials):
            raise InputError("it has no trials; ask for the file anew")
        session = str(told.get("session", ""))
        if not (session.isascii() and session.isalnum() and len(session) <= 40):
            raise InputError(
                f"the session is called {session!r:.60}; it has up to 40 letters and digits"
            )
        if told.get("consent") is not True:
            raise InputError("nobody agreed on its first page; its answers are not taken")
        given = _Given(session, trials)
        observer = PersonObserver(
            checked_person(str(told.get("person"))), session, _screen_of(told), given.put
        )
        return run_experiment(experiment, observer, store=store, progress=False)


def _experiment_of(told: Mapping[str, Any]) -> Experiment:
    page = told.get("experiment")
    if not isinstance(page, Mapping) or not isinstance(page.get("toml"), str):
        raise InputError("it does not say of which experiment it is; ask for the file anew")
    if ".py" in page["toml"]:
        raise InputError("its experiment names code of a file, which a file from elsewhere may not")
    name = (
        "".join(each for each in str(page.get("name", "")) if each.isalnum() or each in "_-")[:80]
        or "study"
    )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"{name}.toml"
        copy.write_text(page["toml"], encoding="utf-8")
        return read_experiment(copy)


def _screen_of(told: Mapping[str, Any]) -> Screen:
    values = told.get("screen")
    if not isinstance(values, Mapping):
        raise InputError("it does not say how large the screen was; ask for the file anew")
    ratio = number_of(values, "device_pixel_ratio", 0.5, 8)
    return Screen(
        pitch=pixel_pitch(number_of(values, "card", 1, 5000), ratio),
        distance=number_of(values, "distance", 200, 5000),
        display=_OFFICE,
        light="remote",
        device_pixel_ratio=ratio,
        size=(
            int(number_of(values, "width", 100, 20000)),
            int(number_of(values, "height", 100, 20000)),
        ),
        period=number_of(values, "period", 1, 34),
    )


class _Given:
    """Answers of a file, one after the other."""

    def __init__(self, session: str, trials: Sequence[Mapping[str, Any]]) -> None:
        self._session, self._trials, self._number = (
            session,
            {trial.get("number"): trial for trial in trials},
            0,
        )

    def put(self, inquiry: Inquiry) -> Answer:
        """The answer that was given to the pattern whose turn it is."""
        self._number += 1
        told = self._trials.get(self._number)
        if told is None:
            raise InputError(
                f"it breaks off before trial {self._number}; only whole sessions are taken"
            )
        if told.get("choice") not in inquiry.words:
            raise InputError(
                f"trial {self._number} is answered by {told.get('choice')!r:.40}, not "
                f"{inquiry.words}"
            )
        limits = {
            "reaction_ms": 6e5,
            "frames_shown": 1e5,
            "frames_dropped": 1e5,
            "period_ms": 1e3,
            "attempt": 1e5,
        }
        kept = {name: number_of(told, name, 0, most) for name, most in limits.items()}
        session = {"session": self._session, "number": self._number, **kept}
        session |= {"beginning": {"consent": True}} if self._number == 1 else {}
        seconds = kept["reaction_ms"] / 1000
        return Answer(str(told["choice"]), latency=seconds, model="a person", session=session)
