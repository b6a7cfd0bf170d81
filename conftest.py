"""What doctests and tests share: arrays print alike, no figure outlives its test, and nobody's home
keeps anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from psyprobe.files import cache

#: Modules that only inspect-ai loads, and that cannot be imported without it.
collect_ignore = [] if find_spec("inspect_ai") else ["psyprobe/tasks/bridges/inspect_tasks.py"]


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
