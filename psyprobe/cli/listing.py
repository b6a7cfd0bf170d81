"""``psyprobe list``: print what can be named, without loading any of it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from psyprobe.errors import InputError
from psyprobe.experiment import list_experiments
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import say, say_json
from psyprobe.human import list_human
from psyprobe.light.display import display_presets
from psyprobe.light.screen import read_screen
from psyprobe.observers import DEFAULT_OBSERVER, list_observers
from psyprobe.probes import probe_names, probe_summary
from psyprobe.stimulus.catalogue import list_stimuli

_KINDS = ("stimuli", "experiments", "observers", "probes", "displays", "human")


def list_command(arguments: argparse.Namespace) -> int:
    """Print what stimuli, experiments, observers or probes there are, one a line or as JSON."""
    kinds = _KINDS if arguments.kind is None else (arguments.kind,)
    items = {kind: _list_records(kind) for kind in kinds}
    if arguments.files:
        if arguments.kind != "displays":
            raise InputError(
                f"{arguments.files[0]} is listed among displays only: psyprobe list displays FILE"
            )
        items["displays"] += [_measured(name) for name in arguments.files]
    if arguments.json:
        say_json(items if arguments.kind is None else items[arguments.kind])
        return 0
    for kind, entries in items.items():
        if arguments.kind is None:
            say(f"{kind}:")
        width = max((len(entry["name"]) for entry in entries), default=0)
        for entry in entries:
            say(f"  {entry['name']:<{width}}  {entry['title']}".rstrip())
            if entry.get("obstacle"):
                say(f"  {'':<{width}}  cannot run here: {entry['obstacle']}")
            if arguments.kind is not None:
                for difference in entry.get("differences", ()):
                    say(f"  {'':<{width}}    - {difference}")
    return 0


def _measured(path: str) -> JsonObject:
    """Read a measured screen from a file, as an entry of the list of displays."""
    screen = read_screen(path)
    values = vars(screen) | {"display": screen.display.to_dict()}
    return {"name": path, "title": str(screen), **values}


def _list_records(kind: str) -> list[JsonObject]:
    """List what there is of a kind ("stimuli", "observers", ...), a record each."""
    if kind == "probes":
        return [{"name": name, "title": probe_summary(name)} for name in probe_names()]
    if kind == "displays":
        return [
            {"name": name, "title": preset["source"], **preset}
            for name, preset in display_presets().items()
        ]
    if kind in ("observers", "human"):
        rows = list_observers() if kind == "observers" else list_human()
        items = [asdict(row) for row in rows]
        for item in items:
            item["title"] = item.pop("summary")
            if item["name"] == DEFAULT_OBSERVER:
                item["title"] += " (the default)"
        return items
    pages = list_stimuli() if kind == "stimuli" else list_experiments()
    # An empty field says nothing.
    return [
        {"name": page.name, "title": page.title}
        | {key: value for key, value in asdict(page).items() if value}
        for page in pages
    ]
