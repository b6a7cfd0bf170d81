"""The house stays one: imports run down its floors and in no circle, and no room is too full."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "psyprobe"


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter with the contract of setup.cfg, on the package in the folder."""
    code = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports('setup.cfg', no_cache=True))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=1200,
    )


def circle_of(graph: grimp.ImportGraph) -> list[str]:
    """Modules that import one another in a circle, imports inside functions included; none if there
    is no circle."""
    try:
        TopologicalSorter(
            {
                name: graph.find_modules_directly_imported_by(name)
                for name in graph.modules
            }
        ).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        "psyprobe", exclude_type_checking_imports=True, cache_dir=None
    )


def test_imports_run_down_the_floors() -> None:
    process = linted(ROOT)
    assert process.returncode == 0, process.stdout + process.stderr


def test_an_import_that_runs_up_is_found_inside_a_function_too(tmp_path: Path) -> None:
    shutil.copytree(
        PACKAGE,
        tmp_path / "psyprobe",
        ignore=shutil.ignore_patterns("__pycache__", "data"),
    )
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    with (tmp_path / "psyprobe" / "light" / "colour.py").open(
        "a", encoding="utf-8"
    ) as file:
        file.write(
            "\n\ndef planted() -> None:\n    from psyprobe.plotting import axes\n"
        )
    process = linted(tmp_path)
    assert process.returncode == 1
    assert "psyprobe.light.colour -> psyprobe.plotting.axes" in " ".join(
        process.stdout.split()
    )


def test_imports_have_no_circle(graph: grimp.ImportGraph) -> None:
    assert circle_of(graph) == []


def test_a_circle_is_found_inside_functions_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "planted_house"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "one.py").write_text("from planted_house import two\n", encoding="utf-8")
    (room / "two.py").write_text(
        "def later():\n    from planted_house.three import x\n", encoding="utf-8"
    )
    (room / "three.py").write_text("import planted_house.one\n", encoding="utf-8")
    (room / "typed.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import planted_house.used\n",
        encoding="utf-8",
    )
    (room / "used.py").write_text("import planted_house.typed\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    planted = grimp.build_graph(
        "planted_house", exclude_type_checking_imports=True, cache_dir=None
    )
    assert set(circle_of(planted)) == {
        f"planted_house.{name}" for name in ("one", "two", "three")
    }


def test_rooms_take_no_more_than_the_version_from_the_package_itself(
    graph: grimp.ImportGraph,
) -> None:
    """No room imports the public names on top of all floors to get around the floors."""
    imports = {
        f"{importer}: {detail['line_contents']}"
        for importer in graph.find_modules_that_directly_import("psyprobe")
        for detail in graph.get_import_details(importer=importer, imported="psyprobe")
    }
    assert {
        line
        for line in imports
        if not line.endswith(": from psyprobe import __version__")
    } == set()


def unbounded(source: str) -> list[str]:
    """Child processes that a test starts without an end to their life."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func) == "subprocess.Popen"
        or (
            ast.unparse(call.func) == "subprocess.run"
            and "timeout" not in {keyword.arg for keyword in call.keywords}
        )
    ]


def test_every_child_process_of_a_test_has_a_bounded_life() -> None:
    """Issue 12, point 15: a child that missed its Ctrl-C held a stranger's run for ever, at 89
    %."""
    planted = ["subprocess.Popen(['sleep'])", "subprocess.run(['sleep'])"]
    assert (
        unbounded("\n".join([*planted, "subprocess.run(['sleep'], timeout=1)"]))
        == planted
    )
    files = [
        path for path in (ROOT / "tests").rglob("*.py") if path.name != "children.py"
    ]
    assert {
        path.name: calls
        for path in files
        if (calls := unbounded(path.read_text(encoding="utf-8")))
    } == {}


def test_no_room_is_too_full() -> None:
    entries = [
        path.name
        for path in PACKAGE.iterdir()
        if path.name not in {"__pycache__", "py.typed"}
    ]
    assert len(entries) <= 20, sorted(entries)
    rooms = {path.parent for path in PACKAGE.rglob("*.py")}
    assert {
        str(room): n for room in rooms if (n := len(list(room.glob("*.py")))) > 20
    } == {}


#: Probes that lower floors could ask for by name; "detection", "matching" and "orientation" are
#: words of theirs, too.
PROBES = {
    "acuity",
    "corruption_profile",
    "discrimination",
    "identify",
    "mvp_bench",
    "orientation_4",
    "r_bench",
    "two_interval",
    "yes_no",
}


@pytest.mark.parametrize(
    "room", ["analysis", "plotting", "observers", "running", "reporting"]
)
def test_no_probe_is_asked_for_by_name(room: str) -> None:
    """Rooms read facts of a probe in the task of a result, so that plug-in probes are alike."""
    probes_named = {
        (path.name, node.value)
        for path in (PACKAGE / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in PROBES
    }
    assert probes_named == set()
