"""Fixtures that all tests share: the oracle data, and a fixed profile for hypothesis."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Where as many processes test as there are cores, threads of their own wait for each other most of
# the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import rooms
import webdriver
from hypothesis import HealthCheck, settings

settings.register_profile(
    "psyprobe",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("psyprobe")

# A shell that starts the tests in its background lets them, and so every child, ignore Ctrl-C; a
# terminal does not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).resolve().parent

#: Files that take longest. They start first, so that no process works on one of them alone at the
#: end.
LONGEST = (
    "test_site.py",
    "test_docs.py",
    "test_notebooks.py",
    "test_benchmarks.py",
    "test_goldens.py",
    "test_twins.py",
    "test_hostile.py",
    "test_catalogue.py",
    "test_cluster.py",
)

# Where doctests are looked for, each conftest would be imported once more, under a name that all of
# them have.
collect_ignore_glob = ["*conftest.py"]
collect_ignore = rooms.tests_without_room()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(room): skipped where that optional room is not there"
    )
    config.addinivalue_line(
        "markers", "draws: shows pages of the catalogue in eight draws, as users do"
    )
    # pytest-xdist starts with the files that have most tests, whatever these take.
    config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Choose one process more than cores, as some wait for browsers and servers."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)
    for item in items:
        for mark in item.iter_markers("needs"):
            absent = [room for room in mark.args if not rooms.is_there(room)]
            if absent:
                item.add_marker(
                    pytest.mark.skip(reason=f"there is no {', '.join(absent)} here")
                )


@pytest.fixture(autouse=True)
def one_showing(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of the catalogue are shown once in the tests, and not in eight draws, which would take
    eight times as long; tests marked "draws" show them as users do."""
    if request.node.get_closest_marker("draws"):
        return
    from psyprobe.experiment import experiment

    make_experiment = experiment._make_experiment

    # All pages come through here: those that are read, changed by settings, or stored in a result.
    def make_once(values: dict[str, Any], *rest: Any) -> experiment.Experiment:
        if values.get("variants") == {"draw": 8}:
            values = {key: values[key] for key in values if key != "variants"}
        return make_experiment(values, *rest)

    monkeypatch.setattr(experiment, "_make_experiment", make_once)


@pytest.fixture(scope="session")
def oracle_data() -> Path:
    """The values that tests compare with; the README there says what each is and where it comes
    from."""
    return TESTS / "data"


@pytest.fixture(scope="session")
def beside_checkout() -> Callable[[str], Path]:
    """Finds a folder that cannot travel with the tests; those that need it skip where it is
    absent."""

    def find(folder: str) -> Path:
        path = TESTS.parents[1] / "shared" / "data" / folder
        if not path.is_dir():
            pytest.skip(
                f"../shared/data/{folder} is not beside this checkout (tests/data/README.md "
                "says why)"
            )
        return path

    return find


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Browser]:
    """A headless browser; tests that need one skip where there is none."""
    if absent := webdriver.missing():
        pytest.skip(absent)
    # It waits between tests for as long as a whole run takes.
    with webdriver.browser(seconds=5400) as opened:
        yield opened


@pytest.fixture
def r_bench_set(tmp_path: Path) -> Path:
    from PIL import Image

    columns = [
        "name",
        "question",
        "choice",
        "answer",
        "type",
        "score",
        "distortion",
        "strength",
    ]
    rows = [
        ["m1.png", "What is it?", "A.a ramp; B.a cat", "A", "MCQ"],
        ["m2.png", "How many?", "A.one; B.two; C.three", "B", "MCQ"],
        ["v1.png", "What is on the left?", "N", "the dark side", "VQA"],
        ["v2.png", "What is on the right?", "N", "light", "VQA"],
        [
            "c1.png",
            "Describe the image.",
            "N",
            "['A ramp of grey.', 'Dark to light.']",
            "CAP",
        ],
        ["c2.png", "Describe the image.", "N", "['Grey.', 'A ramp.']", "CAP"],
    ]
    folder = tmp_path / "rbench"
    for kind in ("ref", "dis"):
        (folder / kind).mkdir(parents=True)
    ramp = np.broadcast_to(
        np.arange(96, dtype=np.uint8)[None, :, None] * np.uint8(2), (64, 96, 3)
    ).copy()
    lines = [",".join(columns)]
    for place, row in enumerate(rows):
        lines.append(",".join(f'"{cell}"' for cell in [*row, "4.0", "1", "1"]))
        for kind, step in (("ref", 0), ("dis", 20)):
            Image.fromarray(ramp + np.uint8(step + place)).save(folder / kind / row[0])
    (folder / "items.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
