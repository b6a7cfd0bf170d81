"""What doctests and tests share: arrays print alike, no figure outlives its test, and nobody's home
keeps anything.
"""

from __future__ import annotations

import atexit
import configparser
import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.files import cache

#: Modules that only inspect-ai loads, and that cannot be imported without it.
collect_ignore = (
    [] if find_spec("inspect_ai") else ["psyprobe/tasks/bridges/inspect_tasks.py"]
)


ROOT = Path(__file__).resolve().parent


def pytest_configure(config: pytest.Config) -> None:
    """Write the entry points of this checkout where those that are installed are older."""
    if hasattr(config, "workerinput") or _installed() == _stated():
        return
    command = [
        sys.executable,
        "-c",
        "from setuptools import setup; setup()",
        "-q",
        "egg_info",
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    # Processes that tests start find them too.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect no garbage while tests are collected, and none of what is there for all of them.

    A quarter of the time of the first, and ever more of each later search, went to modules.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # Libraries that count it at the end complain of what is left. Not before: pytest searches
        # twice when it ends, and took five seconds.
        atexit.register(gc.unfreeze)


def _installed() -> set[tuple[str, str, str]]:
    try:
        points = distribution("psyprobe").entry_points
    except PackageNotFoundError:
        return set()
    return {(point.group, point.name, point.value) for point in points}


def _stated() -> set[tuple[str, str, str]]:
    """The entry points that setup.cfg states: group, name and value of each."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    points = configparser.ConfigParser(delimiters="=")
    points.optionxform = str  # type: ignore[method-assign, assignment]
    text = "".join(
        f"[{group}]\n{lines.strip()}\n"
        for group, lines in setup["options.entry_points"].items()
    )
    points.read_string(text)
    return {
        (group, *point)
        for group in points.sections()
        for point in points[group].items()
    }


@pytest.fixture(autouse=True, scope="session")
def _kept_for_the_session(tmp_path_factory: pytest.TempPathFactory) -> None:
    # Processes that tests start take it over.
    os.environ[cache.VARIABLE] = str(tmp_path_factory.mktemp("kept"))


@pytest.fixture(autouse=True)
def _print_options() -> Iterator[None]:
    # colour-science sets numpy's when it is imported.
    with np.printoptions():
        yield


@pytest.fixture(autouse=True)
def _no_figure_outlives_its_test() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
