"""One enormous reply costs what it holds, and not that for each of the others."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from small_questions import write_questions

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis.words.trial_table import arrange_trials, trials
from psyprobe.files.netcdf import as_text, read_netcdf, write_netcdf
from psyprobe.probes.export import export
from psyprobe.running.protocol import Answered, Question
from psyprobe.running.store import Store

#: Characters of the long reply: 48 times as much is more than a file pads texts to.
LONG = 1_000_000


def long_winded(images: list[FloatArray], prompt: str) -> str:
    """See strong patterns, and once say so at length."""
    contrast = float(np.std(images[0]) / np.mean(images[0]))
    sees = (contrast > 0.05) != ("uniform" in prompt)
    reply = "Yes." if sees else "No."
    if not long_winded.__dict__.get("spoke"):
        long_winded.__dict__["spoke"] = True
        reply += " " * (LONG - len(reply) - 1) + "ü"
    return reply


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """Fail where the block takes more memory than that."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert peak < megabytes, f"{peak:.0f} MB"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in words with one long reply among 52."""
    folder = tmp_path_factory.mktemp("long")
    observer = pp.observer(long_winded, bits=8)
    pp.run(write_questions(folder), observer, store=folder / "runs.sqlite")
    return folder / "runs.sqlite"


def test_one_long_reply_leaves_a_run_that_is_scored_and_reported(
    store: Path, tmp_path: Path
) -> None:
    (result,) = pp.load_results(store)
    pp.score(result)  # what is loaded at first use does not count
    with at_most(25):
        assert arrange_trials(trials(result))["text"].equals(result["text"])
        pp.score(result)
        pp.report(store, tmp_path / "report.html")


def test_long_text_goes_through_netcdf_without_padding(
    store: Path, tmp_path: Path
) -> None:
    (result,) = pp.load_results(store)
    path = tmp_path / "result.nc"
    with at_most(25):
        write_netcdf(result, path)
        reloaded = read_netcdf(path)
    assert path.stat().st_size < 2 * LONG
    assert set(reloaded.variables) == set(result.variables)
    assert reloaded["text"].values.tolist() == result["text"].values.tolist()
    assert reloaded["text"].attrs == result["text"].attrs
    assert pp.load_results(path)[0].sizes == result.sizes


def test_short_text_stands_in_netcdf_as_any_reader_expects(tmp_path: Path) -> None:
    texts = np.array(["yes", "nö", ""], dtype=object)
    dataset = xr.Dataset({"text": ("trial", texts, {"units": "1"})})
    write_netcdf(dataset, tmp_path / "short.nc")
    with xr.open_dataset(tmp_path / "short.nc", engine="scipy") as file:
        assert file["text"].values.tolist() == texts.tolist()
    assert as_text(np.array(["a", 1, b"b"], object)).tolist() == ["a", "1", "b"]


def test_netcdf_is_written_without_loading_a_scheduler(tmp_path: Path) -> None:
    code = (
        "import sys, xarray; from pathlib import Path\n"
        "from psyprobe.files.netcdf import write_netcdf\n"
        "write_netcdf(xarray.Dataset({'a': 1.0}), Path(sys.argv[1]))\n"
        "print('distributed' in sys.modules)"
    )
    path = tmp_path / "a.nc"
    loaded = subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert loaded.stdout.strip() == "False"
    assert read_netcdf(path)["a"] == 1


def test_export_to_csv_holds_few_answers_in_memory_at_once(tmp_path: Path) -> None:
    count = 4000
    answers = []
    for i in range(count):
        stimulus = f"{i:032x}"
        content = {"kind": "gabor", "note": "x" * 2000, "number": i}
        if i == count - 1:
            content["late"] = "=1+1"
        question = Question(stimulus, "0" * 32, "1" * 32, "1")
        answer = {"text": f"line 1\nline {i}"}
        contents = ((stimulus, "stimulus", content),)
        answers.append(Answered(question, answer, contents=contents))
    with Store(tmp_path / "runs.sqlite") as store:
        store.add(answers)
        del answers
        with at_most(8):
            assert export(store, tmp_path / "answers.csv") == count
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "answers.csv",
        "runs.sqlite",
    ]
    table = pd.read_csv(tmp_path / "answers.csv")
    assert table["stimulus.number"].tolist() == list(range(count))
    assert table["answer.text"].iloc[7] == "line 1\nline 7"
    late = table["stimulus.late"]
    assert late.isna().sum() == count - 1 and late.iloc[-1] == "'=1+1"
