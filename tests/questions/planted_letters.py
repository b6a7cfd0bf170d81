"""An observer that knows every letter of a page by its pixels, and names it as often as planted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import psyprobe as pp
from psyprobe.experiment import Experiment
from psyprobe.probes.words.identification import read_alternatives
from psyprobe.probes.words.prompt_variant import (
    adaptive,
    axis_levels,
    fine_contrasts,
    require_asking,
)

#: A page whose images are the same in every trial, so that they can be known.
STILL = {"delivery.bits": "float", "options.jitter": {}}


def knowing(
    experiment: Experiment,
    share_right: Callable[[float], float],
    *,
    confusions: Mapping[str, str] | None = None,
    spoken: Callable[[str], str] = str,
) -> Any:
    """Name what is shown with probability ``share_right(level)``, else guess among the options.

    `confusions` are said in place of what would be right; `spoken` puts a label into a reply.
    """
    levels = axis_levels(experiment)
    alternatives = read_alternatives(experiment)
    contrasts = levels.values
    if levels.parameter == "contrast" and adaptive(require_asking(experiment).design):
        contrasts = fine_contrasts(contrasts)
    images: dict[bytes, tuple[str, float]] = {}
    for name, value in zip(alternatives.names, alternatives.values, strict=True):
        for level in contrasts:
            spec = experiment.spec(
                **{
                    levels.level: levels.level_values[0],
                    levels.parameter: levels.sign * level,
                    alternatives.parameter: value,
                }
            )
            drive = np.asarray(experiment.display.encode(spec.draw()), np.float32)
            images[drive.tobytes()] = (name, level)

    def reply(stimuli: list[Any], prompt: str) -> str:
        (image,) = stimuli
        name, level = images[np.asarray(image, np.float32).tobytes()]
        match = re.search(r": ([^?]*)\?", prompt)
        assert match is not None
        options = match[1].split(", ")
        # What it sees depends on the question alone; labels come in another order in each.
        digest = hashlib.sha256(f"{name} {level} {prompt}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        if random.random() < share_right(level):
            return spoken((confusions or {}).get(name, name))
        return spoken(options[int(random.integers(len(options)))])

    return pp.observer(reply, name="knowing", bits=None)
