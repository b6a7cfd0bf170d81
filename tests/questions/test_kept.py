"""The cache keeps what was computed for the next process, and no result rests on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_questions import Seeing, write_questions

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.files import cache

SCORE = """
from psyprobe.analysis import psychometric
from psyprobe.cli import main
def fit(*given, **options):
    raise AssertionError("it was fitted again")
psychometric.fit_psychometric = fit
raise SystemExit(main(["score", "--debug", {store!r}]))
"""


class Counted:
    """A computation that counts how often it is done."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, Any]:
        self.times += 1
        return {"value": np.array([0.1, np.nan]), "status": np.array(["ok", "empty"])}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def in_another_process(
    work: Counted, key: str = "a0", code: Path = Path(cache.__file__).parent
) -> dict[str, Any]:
    cache._IN_MEMORY.clear()
    cache.code_digest.cache_clear()
    return cache.cached(key, code, work)


def test_a_second_process_scores_without_a_fit(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "runs.sqlite"
    pp.run(write_questions(tmp_path), Seeing(logprobs=False), store=store)
    assert main(["score", str(store)]) == 0
    first = capsys.readouterr().out
    program = SCORE.format(store=str(store))
    second = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=1200
    )
    assert second.returncode == 0, second.stderr
    assert second.stdout == first
    # The fit once, and what each of two command lines printed.
    assert len(list(folder.iterdir())) == 3


def test_the_same_arrays_come_back_and_may_be_written_to(folder: Path) -> None:
    work = Counted()
    for _ in range(2):
        arrays = in_another_process(work)
        for name, values in work().items():
            np.testing.assert_array_equal(arrays[name], values)
            assert arrays[name].dtype == values.dtype
        arrays["value"][:] = 7
    assert work.times == 3  # two of them here
    assert cache.cached("a0", Path(cache.__file__).parent, work)["value"][0] == 0.1


def test_another_input_or_other_code_is_computed(folder: Path, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "fit.py").write_text("one", encoding="utf-8")
    work = Counted()
    for key in ("a0", "a0", "b1"):
        in_another_process(work, key, code)
    assert work.times == 2
    (code / "fit.py").write_text("two", encoding="utf-8")
    in_another_process(work, "a0", code)
    assert work.times == 3


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-40], lambda data: b"x" + data[1:]]
)
def test_a_damaged_file_is_computed_and_written_again(
    folder: Path, damage: Any
) -> None:
    work = Counted()
    in_another_process(work)
    (path,) = folder.iterdir()
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert in_another_process(work)["value"][0] == 0.1
    assert work.times == 2
    in_another_process(work)
    assert work.times == 2


def test_where_nothing_can_be_kept_it_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for cache_folder in (
        "",
        str(tmp_path / "file" / "cache"),
        str(tmp_path / ("n" * 300)),
    ):
        monkeypatch.setenv(cache.VARIABLE, cache_folder)
        work = Counted()
        in_another_process(work)
        in_another_process(work)
        assert work.times == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_oldest_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_FILES", 3)
    for key in "abcdef":
        in_another_process(Counted(), key)
    assert len(list(folder.iterdir())) == 3
