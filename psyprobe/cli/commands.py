"""Find the commands of psyprobe, and those that installed packages add.

Each page of commands is a ``commands.toml`` in a package. A package of the entry point
``psyprobe.commands`` is looked into and not imported, so that ``psyprobe --help`` waits for none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.lazy import import_for_good

#: Tables that a page of commands may have, and keys that the table of a command may have.
_TABLES = ("shared", "commands", "extensions")
_KEYS = {
    "commands": {
        "summary",
        "example",
        "function",
        "adds",
        "shares",
        "options",
        "resumes",
    },
    "extensions": {"options", "before", "wraps"},
}


@dataclass
class Commands:
    """All commands that can be given here, and what adds to them."""

    description: str
    examples: str
    #: Tables of options that several commands take, by name.
    shared: dict[str, JsonMapping] = field(default_factory=dict)
    #: The table of each command by its name.
    commands: dict[str, JsonMapping] = field(default_factory=dict)
    #: What packages add to a command of psyprobe, by the name of the command.
    extensions: dict[str, list[JsonMapping]] = field(default_factory=dict)
    #: Why the commands of a package cannot be used, by the name of its entry point.
    broken: dict[str, str] = field(default_factory=dict)


@cache
def all_commands() -> Commands:
    """Read the TOML pages of commands of psyprobe and of every installed package.

    Examples
    --------
    >>> all_commands().commands["list"]["function"]
    'psyprobe.cli.listing:list_command'
    """
    page = _read(Path(__file__).with_name("commands.toml"))
    commands = Commands(
        page["description"], page["examples"], page["shared"], page["commands"]
    )
    for point in sorted(
        entry_points(group="psyprobe.commands"), key=lambda point: point.name
    ):
        try:
            _add(commands, _page_of(point))
        except Exception as error:  # one broken package must not take the others along
            commands.broken[point.name] = f"{point.value}: {error}"
    return commands


def load_function(place: str) -> Any:
    """Import a function from "module:name".

    Examples
    --------
    >>> load_function("psyprobe.cli.listing:list_command").__name__
    'list_command'
    """
    module, _, name = place.partition(":")
    return getattr(import_for_good(module), name)


def extensions_of(command: str, hook: str) -> Iterator[Any]:
    """Load the functions that installed packages add to a command at a named hook.

    Parameters
    ----------
    command : str
        A command of psyprobe: "run".
    hook : {"before", "wraps"}
        Which of their functions.
    """
    for extension in all_commands().extensions.get(command, ()):
        if hook in extension:
            yield load_function(extension[hook])


def _read(path: Path) -> JsonObject:
    """Read a TOML file that declares commands."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _page_of(point: EntryPoint) -> JsonObject:
    """Read the TOML page of commands of an installed package, without importing it."""
    package = find_spec(point.module)
    folders = () if package is None else package.submodule_search_locations or ()
    paths = [
        path for folder in folders if (path := Path(folder) / "commands.toml").is_file()
    ]
    if not paths:
        raise InputError("is no package that holds commands.toml")
    return _read(paths[0])


def _add(commands: Commands, page: JsonMapping) -> None:
    """Add a package's commands and options, or none of them if one cannot be used."""
    for table in page:
        if table not in _TABLES:
            raise InputError(
                f"commands.toml has a table {table!r}, not of {', '.join(_TABLES)}"
            )
    for table, keys in _KEYS.items():
        for name, command in page.get(table, {}).items():
            if unknown := sorted(command.keys() - keys):
                raise InputError(
                    f"{table}.{name} has a key {unknown[0]!r} that nothing reads"
                )
    for name in page.get("commands", {}):
        if name in commands.commands:
            raise InputError(
                f"there is a command {name!r} already; give it another name"
            )
    for name in page.get("extensions", {}):
        if name not in commands.commands:
            raise InputError(f"it extends {name!r}, and there is no such command")
    commands.shared |= page.get("shared", {})
    commands.commands |= page.get("commands", {})
    for name, extension in page.get("extensions", {}).items():
        commands.extensions.setdefault(name, []).append(extension)
