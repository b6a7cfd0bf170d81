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
    "display_presets": "light.display",
    "pixels_per_degree": "light.display",
    "Stimulus": "stimulus",
    "annulus_noise": "stimulus",
    "disc": "stimulus",
    "gabor": "stimulus",
    "grating": "stimulus",
    "noise": "stimulus",
    "uniform": "stimulus",
    "load_stimulus": "stimulus.catalogue",
    "castle_csf": "human",
    "noise_matched_csf": "human",
    "fit_psychometric": "analysis.psychometric",
    "read_reply": "analysis.words.reply",
    "load_prompts": "experiment.prompts",
    "corrupt": "corruption",
    "angular_distance": "analysis.distance",
    "CallableObserver": "observers",
    "list_observers": "observers",
    "load_observer": "observers",
    "load_results": "probes.conduct",
    "plan": "probes.conduct",
    "run": "probes.conduct",
    "score": "analysis",
    "plot": "plotting",
    "save_figure": "plotting",
}
_ROOMS = ("analysis", "corruption", "errors", "human", "light", "observers", "probes", "stimulus", "tasks", "testing")

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
    from psyprobe import analysis, corruption, errors, human, light, observers, probes, stimulus, tasks, testing
    from psyprobe.analysis import score
    from psyprobe.analysis.distance import angular_distance
    from psyprobe.analysis.psychometric import fit_psychometric
    from psyprobe.analysis.words.reply import read_reply
    from psyprobe.corruption import corrupt
    from psyprobe.probes.conduct import load_results, plan, run
    from psyprobe.human import castle_csf, noise_matched_csf
    from psyprobe.light.display import Display, display_presets, pixels_per_degree
    from psyprobe.observers import CallableObserver, list_observers, load_observer
    from psyprobe.plotting import plot, save_figure
    from psyprobe.experiment.prompts import load_prompts
    from psyprobe.stimulus import Stimulus, annulus_noise, disc, gabor, grating, noise, uniform
    from psyprobe.stimulus.catalogue import load_stimulus
