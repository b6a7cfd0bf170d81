"""psyprobe asks machines the questions that psychophysics asks people.

>>> import psyprobe as pp
>>> display = pp.Display(peak=400.0)
>>> stimulus = pp.gabor(frequency=4, contrast=0.1, luminance=100, radius=1.0, ppd=60, size=224)
>>> display.encode(stimulus).shape
(224, 224, 3)

Names load when they are first used: importing psyprobe imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Public name to the module that defines it.
_PUBLIC = {
    "Display": "light.display",
    **dict.fromkeys(("gabor", "grating", "noise", "disc", "uniform"), "stimulus"),
    **dict.fromkeys(("list_stimuli", "load_stimulus"), "stimulus.catalogue"),
    **dict.fromkeys(("list_experiments", "load_experiment"), "experiment"),
    "castle_csf": "human",
    **dict.fromkeys(("list_observers", "load_observer", "observer"), "observers"),
    **dict.fromkeys(("run", "plan", "load_results"), "probes.experiments"),
    **dict.fromkeys(("score", "plot"), "probes.results"),
    "report": "reporting.report",
    "angular_distance": "analysis.distance",
    "fit_psychometric": "analysis.psychometric",
    "read_reply": "analysis.words.reply",
    "corrupt": "corruption",
}
_ROOMS = (
    "analysis",
    "corruption",
    "errors",
    "experiment",
    "human",
    "light",
    "observers",
    "plotting",
    "probes",
    "stimulus",
    "tasks",
    "testing",
)

__all__ = ["__version__", *_PUBLIC, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(f"psyprobe.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"psyprobe.{name}")
    raise AttributeError(f"module 'psyprobe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from psyprobe import (
        analysis,
        corruption,
        errors,
        experiment,
        human,
        light,
        observers,
        plotting,
        probes,
        stimulus,
        tasks,
        testing,
    )
    from psyprobe.analysis.distance import angular_distance
    from psyprobe.analysis.psychometric import fit_psychometric
    from psyprobe.analysis.words.reply import read_reply
    from psyprobe.corruption import corrupt
    from psyprobe.experiment import list_experiments, load_experiment
    from psyprobe.human import castle_csf
    from psyprobe.light.display import Display
    from psyprobe.observers import list_observers, load_observer, observer
    from psyprobe.probes.experiments import load_results, plan, run
    from psyprobe.probes.results import plot, score
    from psyprobe.reporting.report import report
    from psyprobe.stimulus import disc, gabor, grating, noise, uniform
    from psyprobe.stimulus.catalogue import list_stimuli, load_stimulus
