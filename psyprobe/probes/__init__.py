"""How an observer is asked: probes by name.

A probe is a module, or any object, with what `psyprobe.running.protocol.Probe` lists. Packages add
their own under the entry point ``psyprobe.probes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from psyprobe.errors import InputError, own_failure, unknown_name

if TYPE_CHECKING:
    from psyprobe.running.protocol import Probe

__all__ = ["load_probe", "probe_names", "probe_summary"]

#: Name to where the probe is, "module" or "module:object", and to what it asks, in words.
_PROBES = {
    "detection": (
        "psyprobe.probes.detection",
        "how far a stimulus is from its background for an encoder or a metric",
    ),
    "discrimination": (
        "psyprobe.probes.discrimination",
        "how far two stimuli are apart that differ in one parameter",
    ),
    "acuity": (
        "psyprobe.probes.acuity",
        "which frequency is the highest that is told from uniform",
    ),
    "matching": (
        "psyprobe.probes.matching",
        "which contrast of one grating draws the response of a reference grating",
    ),
    "yes_no": (
        "psyprobe.probes.words.schedule:yes_no",
        "in words, whether a pattern is seen in an image",
    ),
    "two_interval": (
        "psyprobe.probes.words.schedule:two_interval",
        "in words, which of two images shows a pattern, in both orders",
    ),
    "orientation": (
        "psyprobe.probes.words.schedule:orientation",
        "in words, whether the stripes of a pattern are vertical or horizontal",
    ),
    "orientation_4": (
        "psyprobe.probes.words.schedule:orientation_4",
        "in words, in which of four directions the stripes of a pattern run",
    ),
    "mvp_bench": (
        "psyprobe.tasks.mvp_bench.probe",
        "MVP-Bench: natural and manipulated images, at two levels, for models and people",
    ),
    "r_bench": (
        "psyprobe.tasks.r_bench.probe",
        "R-Bench: reference images and their corrupted twins, for models and people",
    ),
    "corruption_profile": (
        "psyprobe.tasks.r_bench.corruption_profile",
        "how far photographs are from their corrupted versions for an encoder",
    ),
}


def probe_names() -> list[str]:
    """Names of all probes in alphabetical order, those of installed packages included.

    Examples
    --------
    >>> "detection" in probe_names()
    True
    """
    return sorted({*_PROBES, *_added()})


def probe_summary(name: str) -> str:
    """What a probe asks, half a line; of a probe of another package where it comes from, or why it
    cannot be used.

    Parameters
    ----------
    name : str
        One of `probe_names`.

    Examples
    --------
    >>> probe_summary("yes_no")
    'in words, whether a pattern is seen in an image'
    """
    if name in _PROBES:
        return _PROBES[name][1]
    try:
        load_probe(name)
    except InputError as error:
        return str(error)
    return f"from {_added()[name].value}"


def load_probe(name: str) -> Probe:
    """The probe of a name, one of `probe_names`.

    Raises
    ------
    UnknownNameError
        No probe has this name.
    InputError
        The package that adds it cannot be used.

    Examples
    --------
    >>> load_probe("detection").ABILITIES
    ('features', 'difference', 'answer')
    """
    if name in _PROBES:
        module, _, attribute = _PROBES[name][0].partition(":")
        found = import_module(module)
        return cast("Probe", getattr(found, attribute) if attribute else found)
    added = _added()
    if name not in added:
        raise unknown_name("probe", name, probe_names())
    try:
        return cast("Probe", added[name].load())
    except (Exception, SystemExit) as error:
        # Whatever another package raises on import is its own; here it is one line.
        raise InputError(
            f"probe {name!r} of {added[name].value} cannot be loaded: {own_failure(error)}"
        ) from error


def _added() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="psyprobe.probes")}
