"""Load probes, which decide how an observer is asked, by name.

A probe is a module, or any object, with what `psyprobe.running.protocol.Probe` lists. Packages add
theirs under the entry point ``psyprobe.probes``, and so do the benchmarks that come with psyprobe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from psyprobe.errors import InputError, describe_failure, unknown_name
from psyprobe.files.programs import run_file
from psyprobe.running.protocol import labelled
from psyprobe.running.task import with_task

if TYPE_CHECKING:
    from xarray import Dataset

    from psyprobe.running.protocol import Probe, RunRecord
    from psyprobe.running.store import Store

Loaded = TypeVar("Loaded")

__all__ = [
    "ProbeKind",
    "build_result",
    "load_probe",
    "probe_bibtex",
    "probe_names",
    "probe_summary",
]


@dataclass(frozen=True)
class ProbeKind:
    """A probe that is named and listed before it is imported.

    Parameters
    ----------
    probe : str
        Its place: "module", or "module:object".
    summary : str
        Half a line on what it asks, for ``psyprobe list probes``.
    bibtex : str
        BibTeX entry of its paper; empty where there is none.

    Examples
    --------
    >>> ProbeKind("psyprobe.probes.detection", "how far a stimulus is from its background").load()
    <module 'psyprobe.probes.detection' from ...>
    """

    probe: str
    summary: str
    bibtex: str = ""

    def load(self) -> Probe:
        """Import the probe's module."""
        module_name, _, attribute = self.probe.partition(":")
        module = import_module(module_name)
        return cast("Probe", getattr(module, attribute) if attribute else module)


_BUILT_IN = {
    "detection": ProbeKind(
        "psyprobe.probes.detection",
        "how far a stimulus is from its background for an encoder or a metric",
    ),
    "discrimination": ProbeKind(
        "psyprobe.probes.discrimination",
        "how far two stimuli are apart that differ in one parameter",
    ),
    "acuity": ProbeKind(
        "psyprobe.probes.acuity",
        "which frequency is the highest that is told from uniform",
    ),
    "matching": ProbeKind(
        "psyprobe.probes.matching",
        "which contrast of one grating draws the response of a reference grating",
    ),
    "yes_no": ProbeKind(
        "psyprobe.probes.words.schedule:yes_no",
        "in words, whether a pattern is seen in an image",
    ),
    "two_interval": ProbeKind(
        "psyprobe.probes.words.schedule:two_interval",
        "in words, which of two images shows a pattern, in both orders",
    ),
    "orientation": ProbeKind(
        "psyprobe.probes.words.schedule:orientation",
        "in words, whether the stripes of a pattern are vertical or horizontal",
    ),
    "orientation_4": ProbeKind(
        "psyprobe.probes.words.schedule:orientation_4",
        "in words, in which of four directions the stripes of a pattern run",
    ),
    "identify": ProbeKind(
        "psyprobe.probes.words.schedule:identify",
        "in words, which of 2 to 26 labels is shown, such as a letter or a direction",
    ),
}
#: Probes of the user's Python files, by their full names.
_FROM_FILES: dict[str, Probe] = {}


def probe_names() -> list[str]:
    """List the names of all probes, those of installed packages included.

    Examples
    --------
    >>> "detection" in probe_names()
    True
    """
    return sorted({*_BUILT_IN, *_entry_points()})


def probe_summary(name: str) -> str:
    """Describe in half a line what a probe asks, or why it cannot be used.

    Parameters
    ----------
    name : str
        One of `probe_names`.

    Examples
    --------
    >>> probe_summary("yes_no")
    'in words, whether a pattern is seen in an image'
    """
    try:
        probe = _find(name)
    except InputError as error:
        return str(error)
    return (
        probe.summary
        if isinstance(probe, ProbeKind)
        else f"from {_entry_points()[name].value}"
    )


def probe_bibtex(name: str) -> str:
    """Return the BibTeX entry of the paper that a probe comes from; "" if it names none.

    Parameters
    ----------
    name : str
        One of `probe_names`.

    Examples
    --------
    >>> probe_bibtex("detection")
    ''
    """
    probe = _find(name)
    return probe.bibtex if isinstance(probe, ProbeKind) else ""


def load_probe(name: str, *, allow_files: bool = False) -> Probe:
    """Load a probe by name, or one's own from FILE.py:NAME.

    Parameters
    ----------
    name : str
        Which probe.
    allow_files : bool
        Whether a file that `name` names may be run: for a page of the user's, not for a name that
        a store or a file from elsewhere holds. A probe whose file was run is found from then on.

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
    if ".py:" in name:
        return _load_probe_in_file(name, allow_files)
    probe = _find(name)
    if not isinstance(probe, ProbeKind):
        return probe
    return probe.load() if name in _BUILT_IN else _import(name, probe.load)


def _find(name: str) -> ProbeKind | Probe:
    """Find a probe's description by name, or the probe itself if registered without one."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    points = _entry_points()
    if name not in points:
        raise unknown_name("probe", name, probe_names())
    return cast("ProbeKind | Probe", _import(name, points[name].load))


def _import(name: str, load: Callable[[], Loaded]) -> Loaded:
    """Import what a package adds, turning any error into one line."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"probe {name!r} of {_entry_points()[name].value} cannot be loaded: "
            f"{describe_failure(error)}"
        ) from error


def _load_probe_in_file(name: str, allow_files: bool) -> Probe:
    """Load the probe FILE.py:NAME, once; refuse one not loaded yet unless `allow_files`."""
    if not allow_files:
        if name in _FROM_FILES:
            return _FROM_FILES[name]
        raise InputError(
            f"the probe {name} stands in a Python file, which is run for a page of yours alone: "
            "run "
            "the experiment again (what is answered is not asked again)"
        )
    file, _, attribute = name.rpartition(":")
    path = Path(file).resolve()
    try:
        module = run_file(path, f"psyprobe_probe_{path.stem}")
    except OSError as error:
        raise InputError(f"the probe {name} cannot be read: {error.strerror}") from None
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the probe {name} cannot be loaded: {describe_failure(error, str(path))}"
        ) from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name(f"probe in {path}", attribute, names)
    _FROM_FILES[name] = getattr(module, attribute)
    return _FROM_FILES[name]


def build_result(record: RunRecord, store: Store) -> Dataset:
    """Build the result of a finished run, with the task of its probe.

    Parameters
    ----------
    record : RunRecord
        The run, as its store lists it.
    store : Store
        The store that holds its answers.

    Examples
    --------
    >>> import tempfile
    >>> import psyprobe as pp
    >>> from psyprobe.running.store import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/runs.sqlite"
    ...     result = pp.run("area", "pixels", store=path, score_only=True, variants={})
    ...     with open_store(path) as store:
    ...         build_result(store.runs()[0], store).equals(result)
    True
    """
    # Most probes are loaded to ask, and need no results.
    from psyprobe.analysis.measures import split_measures

    result = build_joined(record, store)
    return split_measures(result) if "measures" in result.attrs else result


def build_joined(record: RunRecord, store: Store) -> Dataset:
    """Build a result as `build_result` does, but with measures along a dimension."""
    probe = load_probe(record.probe)
    labelled_store = store.with_label(record.label)
    result = with_task(probe.result(record, labelled_store), probe.task(record))
    return name_run(result, record.label, record.started)


def name_run(result: Dataset, label: str, started: str | None) -> Dataset:
    """Add the label of a run and its date to a result, and the label to its observer's name.

    A result without a label stays as it is.

    Parameters
    ----------
    result : xarray.Dataset
        The result.
    label : str
        The label; "" for none.
    started : str or None
        When the run began, ISO 8601.
    """
    if not label:
        return result
    # Most probes are loaded to ask, and need no results.
    from psyprobe.analysis.run_names import rename_observer

    named = rename_observer(result, labelled(result.attrs["observer"], label))
    return named.assign_attrs(label=label, started=started or "")


def _entry_points() -> Mapping[str, EntryPoint]:
    """Find the probes that installed packages register, by name."""
    return {point.name: point for point in entry_points(group="psyprobe.probes")}
