"""A small experiment in words, asked of an observer of known truth; both as every bridge is tried
on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psyprobe as pp
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store

_STIMULUS = """
title = "Small noise"
kind = "annulus_noise"
[parameters]
frequency = 2.0
contrast = 0.1
luminance = 40.0
seed = 1
ppd = 16
size = 64
"""
_PAGE = """
title = "Seen, or blank?"
stimulus = "small_noise.toml"
probe = "yes_no"
[levels]
frequency = { values = [2, 4] }
contrast = { from = 0.001, to = 0.25, n = 5, scale = "log" }
[asking]
prompts = [
    { id = "seen", text = "Is there a pattern visible in the image?", suffix = "Answer with yes or no." },
    { id = "blank", text = "Is the image blank?", suffix = "Answer with yes or no.", polarity = -1 },
]
repeats = { text = 2, p_yes = 2 }
readout = "text"
seed = 1
[human]
model = "watson_malo_csf"
[display]
peak = 186.8805
[fit]
function = "logistic"
axis = "log"
guess = [0, 0.5]
lapse = [0, 0.1]
"""
#: Two wordings of two frequencies, five contrasts and two repeats, and catch trials.
QUESTIONS, IMAGES = 46, 23


def small_page(folder: Path, **settings: Any) -> Experiment:
    """The page, written into a folder, with other values of some keys."""
    (folder / "small_noise.toml").write_text(_STIMULUS, encoding="utf-8")
    (folder / "small.toml").write_text(_PAGE, encoding="utf-8")
    return load_experiment(folder / "small.toml").with_settings(settings)


def ran(store: Store, page: Experiment, observer: Any = None) -> RunRecord:
    """A run of it in a store."""
    pp.run(
        page,
        observer or pp.load_observer("simulated:watson-malo"),
        store=store,
        progress=False,
    )
    return store.runs()[-1]
