"""People by parameters at no page: who is asked answers at once, so that a session takes a second
or two."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from simulated_person import true_sensitivity

import psyprobe as pp
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.patterns import target_of


def screen(light: str = "measured", distance: float = 1000.0) -> Screen:
    display = Display(peak=200, black=0.2)
    return Screen(
        pitch=0.265, distance=distance, display=display, light=light, size=(1920, 1080)
    )


def seated(
    store: Path | None,
    person: str,
    seed: int,
    *,
    at: Screen | None = None,
    session: str = "first",
    shift: float = 0.0,
    experiment: Any = "orientation_csf",
) -> xarray.Dataset:
    """The result of a session of somebody whose eyes are those of the seed, more sensitive by
    `shift` log10."""
    truth, rng = true_sensitivity(seed), np.random.default_rng([seed, 2, len(session)])

    def answer_inquiry(inquiry: Inquiry) -> Answer:
        assert inquiry.drawing is not None
        (stimulus,) = inquiry.drawing["stimuli"]
        values = target_of(stimulus)
        strength = math.log10(values["contrast"]) + truth(values["frequency"]) + shift
        probability = 0.98 / (1 + math.exp(-2 * math.log(19) * strength / 0.5))
        right = int(values.get("orientation", 0) == 90)
        response = inquiry.words[
            right if rng.random() < probability else int(rng.integers(2))
        ]
        return Answer(response, model="a person", session={"session": session})

    observer = PersonObserver(person, session, at or screen(), answer_inquiry)
    return pp.run(experiment, observer, store=store, progress=False)
