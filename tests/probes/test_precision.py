"""A network in a short number format: what that costs is measured on the experiment's own pairs,
and said."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from small_experiment import Counting, write_experiment

import psyprobe as pp
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes import pair_batches
from psyprobe.running.protocol import Batch

pytest.importorskip("timm")

NETWORK = {"random_weights": True, "input_size": 64, "device": "cpu"}
LARGER = (("size = 16", "size = 64"), ("ppd = 16", "ppd = 64"))


def test_a_result_says_what_its_short_format_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, store = write_experiment(tmp_path, stimulus=LARGER), tmp_path / "runs.sqlite"
    exact, short = (
        pp.load_observer("timm:test_efficientnet", dtype=dtype, **NETWORK)
        for dtype in ("float32", "bfloat16")
    )
    assert short.card.digest != exact.card.digest
    exact_result, result = (
        pp.run(page, observer, store=store, batch_size=4) for observer in (exact, short)
    )
    assert "precision" not in exact_result.attrs
    precision = json.loads(result.attrs["precision"])
    assert (
        precision["dtype"] == "bfloat16"
        and precision["pairs"] == pair_batches.MOST_PAIRS
    )
    moved = np.abs(
        result["response_angular"].values / exact_result["response_angular"].values - 1
    )
    assert 0 < precision["median"] <= precision["largest"]
    assert moved.min() / 2 < precision["median"] < 2 * moved.max()
    # It is measured once, and stays with the run.
    monkeypatch.setattr(pair_batches, "load_observer", None)
    assert pp.run(page, short, store=store, batch_size=4).identical(result)


def test_beside_an_accelerator_the_next_batch_is_drawn_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, drawn_by = write_experiment(tmp_path), []
    draw = pair_batches.draw_tests

    def noted(batch: Batch) -> ImagePlanes | None:
        drawn_by.append(threading.current_thread().name)
        return draw(batch)

    monkeypatch.setattr(pair_batches, "draw_tests", noted)
    on_cpu = Counting()
    alone = pp.run(page, on_cpu, batch_size=2)
    assert set(drawn_by) == {threading.current_thread().name} and len(drawn_by) > 2
    drawn_by.clear()
    elsewhere = Counting()
    elsewhere.card = dataclasses.replace(on_cpu.card, device="cuda:0")
    result = pp.run(page, elsewhere, batch_size=2)
    assert (
        all(name.startswith("ThreadPoolExecutor") for name in drawn_by)
        and len(drawn_by) > 2
    )
    assert len(on_cpu.images) == len(elsewhere.images)
    assert all(map(np.array_equal, on_cpu.images, elsewhere.images))
    for name in alone.data_vars:
        np.testing.assert_array_equal(result[name], alone[name])
