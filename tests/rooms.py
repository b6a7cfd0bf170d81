"""The rooms that are optional: they come in by entry points, and the core is all the rest."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: The folder of each optional room in the package, and the folders of tests that need it.
ROOMS = {
    "tasks/bridges": ("bridges",),
    "tasks/mvp_bench": ("mvp_bench",),
    "tasks/mvp_construction": ("mvp_construction",),
    "tasks/people": ("people",),
    "tasks/r_bench": ("r_bench", "corruption_profile"),
    "tasks/remote_study": ("people",),
    "tasks/review": ("review",),
    "observers/batch_files": ("batch_files",),
    "observers/people": ("people",),
    "observers/zoo": ("zoo",),
}

#: Their commands.
COMMANDS = (
    "export-jspsych",
    "import-people",
    "mvp-bench",
    "mvp-build",
    "observe",
    "questions",
    "r-bench",
    "review",
)
#: Tests of the whole distribution: its pages, which tell of every room, and goldens of every probe.
OF_THE_WHOLE = (
    "goldens",
    "test_api_reference.py",
    "test_benchmarks.py",
    "test_docs.py",
    "test_notebooks.py",
    "test_site.py",
)


def is_there(room: str) -> bool:
    """Tell whether a room, by its folder in the package, is in this checkout."""
    return (ROOT / "psyprobe" / room).is_dir()


def tests_without_room() -> list[str]:
    """Tests, by folder or file, that cannot run here, since a room that they need is not there."""
    absent = [names for room, names in ROOMS.items() if not is_there(room)]
    if not absent:
        return []
    return sorted({*OF_THE_WHOLE, *(name for names in absent for name in names)})
