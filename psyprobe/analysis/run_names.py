"""Name runs of one experiment and one observer by what sets them apart."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.result_stimulus import page_of

if TYPE_CHECKING:
    import xarray as xr

#: Longest value that stands in a name, in characters.
_LONGEST_VALUE = 24
#: Most settings in a name.
_MOST_SETTINGS = 3


def rename_observer(result: xr.Dataset, name: str) -> xr.Dataset:
    """Replace the name of a result's observer, in its attributes and its coordinate."""
    renamed = result.assign_attrs(observer=name)
    if "observer" in renamed.coords:
        renamed["observer"] = ((), name, renamed["observer"].attrs)
    return renamed


def name_apart(results: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Add to observers' names what sets apart runs of one experiment and one observer.

    These are settings of the page, the layer of a decision stage, and options of the observer, as
    `psyprobe run` takes them. Names that are the only one of an experiment stay as they are, and so
    do those of runs that differ in nothing short enough for a name.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of any runs.

    Returns
    -------
    list of xarray.Dataset
        The same results in the same order.

    Examples
    --------
    >>> import xarray as xr
    >>> runs = [
    ...     xr.Dataset(attrs={"experiment": "noise", "observer": "pixels", "experiment_toml": page})
    ...     for page in ("noise.density = 1e-6", "noise.density = 3e-6")
    ... ]
    >>> [run.attrs["observer"] for run in name_apart(runs)]
    ['pixels, noise.density=1e-06', 'pixels, noise.density=3e-06']
    """
    indices: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, result in enumerate(results):
        key = (str(result.attrs["experiment"]), str(result.attrs["observer"]))
        indices[key].append(index)
    renamed = list(results)
    for (_, observer), members in indices.items():
        differences = _differences([_settings(results[index]) for index in members])
        for index, settings in zip(members, differences, strict=True):
            if settings:
                name = ", ".join([observer, *settings])
                renamed[index] = rename_observer(results[index], name)
    return renamed


def _differences(settings: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """List the settings of each run in which the runs differ, as NAME=VALUE."""
    names = list(dict.fromkeys(name for run in settings for name in run))
    differing = [name for name in names if len({run.get(name) for run in settings}) > 1]
    return [
        [f"{name}={run[name]}" for name in differing if name in run][:_MOST_SETTINGS]
        for run in settings
    ]


def _settings(result: xr.Dataset) -> dict[str, str]:
    """Collect what a run was set to: its page, its layer and its observer's options."""
    settings = dict(_leaves("", page_of(result)))
    try:
        card = json.loads(result.attrs.get("observer_card", "{}"))
    except json.JSONDecodeError:
        # Whoever needs more of the card than a name says what is wrong with it.
        return settings
    if not isinstance(card, dict):
        return settings
    features: Sequence[str] = card.get("features") or []
    if card.get("ability") == "answer" and len(features) == 1:
        settings["layer"] = features[0]
    return settings | dict(_leaves("", card.get("options") or {}))


def _leaves(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Iterate over the single values of nested tables, by their dotted names."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{prefix}{name}.", value)
        elif len(str(value)) <= _LONGEST_VALUE:
            yield prefix + name, str(value)
