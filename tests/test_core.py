"""The core stands alone: it names no optional room, and works where there is none."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from rooms import COMMANDS, ROOMS, ROOT, is_there

#: Names by which files could ask for an optional room, besides the paths of their modules.
NAMES = (
    "batch_files",
    "mvp_bench",
    "mvp_construction",
    "r_bench",
    "remote_study",
    "zoo:",
)


def core_files() -> list[Path]:
    """All files of the package that are text and in no optional room."""
    optional = [ROOT / "psyprobe" / room for room in ROOMS]
    return [
        path
        for path in (ROOT / "psyprobe").rglob("*")
        if path.suffix in {".py", ".toml", ".html", ".js", ".css", ".bib", ".frag"}
        and not any(path.is_relative_to(room) for room in optional)
    ]


def names_of_rooms(text: str) -> list[str]:
    """Names of optional rooms in a text: their modules, their paths, or names of their own."""
    paths = [room.replace("/", "[./]") for room in ROOMS]
    names = [
        rf"(?<![\w-]){re.escape(name)}"
        for name in (*NAMES, *(name for name in COMMANDS if "-" in name))
    ]
    return re.findall("|".join([*paths, *names]), text)


def test_no_file_of_the_core_names_an_optional_room() -> None:
    assert names_of_rooms('import_module("psyprobe.tasks.people")') == ["tasks.people"]
    assert names_of_rooms('if probe == "r_bench":') == ["r_bench"]
    files = core_files()
    assert len(files) > 150
    names_by_file = {
        str(path.relative_to(ROOT)): names
        for path in files
        if (names := names_of_rooms(path.read_text(encoding="utf-8")))
    }
    assert names_by_file == {}


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_registers_is_there_exactly_where_the_room_is(room: str) -> None:
    module = f"psyprobe.{room.replace('/', '.')}"
    groups = entry_points()
    points = [
        point
        for group in groups.groups
        if group.startswith("psyprobe.")
        for point in groups.select(group=group)
        if point.value.startswith(module)
    ]
    # The page for people and what serves it are used by the rooms that put questions on it.
    assert bool(points) == (is_there(room) and room != "observers/people")
    for point in points:
        assert point.load() is not None
