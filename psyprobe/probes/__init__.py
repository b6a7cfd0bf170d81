"""How an observer is asked: probes by name.

A probe is a module, or any object, with what `Probe` or `AnswerProbe` lists. Packages add their own under the entry
point ``psyprobe.probes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast

from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment_file import Experiment
    from psyprobe.observers import Card, DifferenceObserver, FeatureObserver
    from psyprobe.probes.detection import Conditions

__all__ = ["AnswerProbe", "Probe", "load_probe", "probe_names"]

#: Name to module and to what it asks, in words.
_PROBES = {
    "detection": ("psyprobe.probes.detection", "how far a stimulus is from its background for an encoder or a metric"),
    "matching": ("psyprobe.probes.matching", "which contrast of one grating draws the response of a reference grating"),
    "yes_no": ("psyprobe.probes.yes_no", "in words, whether a pattern is seen in an image"),
    "two_interval": ("psyprobe.probes.two_interval", "in words, which of two images shows a pattern, in both orders"),
}


class Probe(Protocol):
    """What a probe offers to whoever runs an experiment.

    Attributes
    ----------
    ABILITIES : tuple of str
        The abilities of observers that it can ask: "features", "difference" or "answer".
    VERSION : str
        Changes whenever the same question would get another answer.
    """

    ABILITIES: tuple[str, ...]
    VERSION: str

    def conditions(self, experiment: Experiment, card: Card) -> Conditions:
        """Plan what is shown to an observer with this card."""

    def features(self, observer: FeatureObserver | DifferenceObserver, images: FloatArray) -> Mapping[str, FloatArray]:
        """What is kept of the references while tests are compared with them."""

    def respond(
        self,
        observer: FeatureObserver | DifferenceObserver,
        images: FloatArray,
        references: Mapping[str, FloatArray],
        rows: Sequence[int],
        measures: Sequence[str],
        *,
        ppd: float,
    ) -> FloatArray:
        """Ask an observer about shown tests: array of shape (images, layers, measures)."""

    def result(
        self,
        layout: Mapping[str, Any],
        responses: FloatArray,
        layers: Sequence[str],
        baseline: FloatArray,
        attributes: Mapping[str, Any],
    ) -> xarray.Dataset:
        """Put the responses where they belong."""


class AnswerProbe(Protocol):
    """What a probe offers that asks in words: its experiments are read by `psyprobe.question_file`.

    Attributes
    ----------
    ABILITIES : tuple of str
        ("answer",).
    VERSION : str
        Changes whenever the same question would get another answer.
    TASK : {"yes_no", "two_interval"}
        What chance is: a guess rate, or one half.
    INTERVALS : int
        Images in a question: 1, or 2 of which one is uniform.
    ORDERS : tuple of int
        Places of the pattern among the images; every trial is asked in each.
    """

    ABILITIES: tuple[str, ...]
    VERSION: str
    TASK: str
    INTERVALS: int
    ORDERS: tuple[int, ...]


def probe_names() -> list[str]:
    """Names of all probes, those of installed packages included.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> "detection" in probe_names()
    True
    """
    return sorted({*_PROBES, *_added()})


def probe_summary(name: str) -> str:
    """What a probe asks, in words.

    Parameters
    ----------
    name : str
        One of `probe_names`.

    Returns
    -------
    str
        Half a line; for a probe of another package, where it comes from.
    """
    return _PROBES[name][1] if name in _PROBES else f"from {_added()[name].value}"


def load_probe(name: str) -> Probe:
    """The probe of a name.

    Parameters
    ----------
    name : str
        One of `probe_names`.

    Returns
    -------
    Probe
        The module or object.

    Raises
    ------
    UnknownNameError
        No probe has this name.

    Examples
    --------
    >>> load_probe("detection").ABILITIES
    ('features', 'difference')
    """
    if name in _PROBES:
        return cast(Probe, import_module(_PROBES[name][0]))
    added = _added()
    if name not in added:
        raise unknown_name("probe", name, probe_names())
    return cast(Probe, added[name].load())


def _added() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="psyprobe.probes")}
