"""Many workers, one result: worker processes of this machine, one of which is killed (issue 13)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import noting
import numpy as np
import pytest
from noting import same_bytes
from small_experiment import Counting, write_experiment
from small_questions import write_questions
from whole_suite import DETECTION, chat_is_the_same, small

import psyprobe as pp
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import load_experiment
from psyprobe.probes import load_probe, pair_batches
from psyprobe.running.jobs import JobRunner, pack_job
from psyprobe.running.store import Store
from psyprobe.running.workers import WorkerPool

#: 20 x 20 levels, and what is scored: some 90 batches of 5.
LARGER = (("to = 4, n = 3", "to = 4, n = 20"), ("to = 1, n = 3", "to = 1, n = 20"))


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as worker_pool:
        yield worker_pool


@pytest.fixture
def note_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which workers started from now on note the images they receive."""
    monkeypatch.setenv(noting.VARIABLE, str(tmp_path / "shown.txt"))
    return tmp_path / "shown.txt"


def test_pixels_and_metrics_give_the_same_bytes(
    tmp_path: Path, pool: WorkerPool
) -> None:
    page = write_experiment(tmp_path)
    for name in ("pixels", "castlecsf"):
        alone = pp.run(page, name, batch_size=2)
        assert same_bytes(
            alone, pp.run(page, name, batch_size=2, executor=pool), tmp_path
        )


@pytest.mark.parametrize("design", ["constant", "quest_plus"])
def test_a_simulated_observer_gives_the_same_bytes(
    tmp_path: Path, pool: WorkerPool, design: str
) -> None:
    adaptive = (
        ("repeats = { text = 4, p_yes = 2 }", 'design = "quest_plus"'),
        ("catch = 0.1", "catch = 0.0"),
    )
    page = write_questions(tmp_path, *(adaptive if design == "quest_plus" else ()))
    observer = pp.load_observer("simulated:watson-malo")
    assert same_bytes(
        pp.run(page, observer), pp.run(page, observer, executor=pool), tmp_path
    )


def test_a_worker_that_was_late_for_one_run_answers_the_next(tmp_path: Path) -> None:
    page = write_experiment(tmp_path, *LARGER)
    alone = pp.run(page, "pixels", batch_size=5)
    with WorkerPool(2) as pool:
        pp.run(page, "pixels", batch_size=5, executor=pool)
        late_pid = pool.pids[1]
        os.kill(late_pid, signal.SIGSTOP)
        pp.run(page, "castlecsf", batch_size=50, executor=pool)
        os.kill(late_pid, signal.SIGCONT)
        result = pp.run(page, "pixels", batch_size=5, executor=pool)
    assert same_bytes(alone, result, tmp_path)


def test_a_killed_worker_is_replaced_and_nothing_else_is_shown_twice(
    tmp_path: Path, note_file: Path
) -> None:
    page, observer = write_experiment(tmp_path, *LARGER), noting.observer()
    alone = pp.run(page, observer, batch_size=5)
    batches = len(noting.notes(note_file))
    note_file.unlink()
    killed: list[int] = []
    with WorkerPool(4) as pool:
        thread = noting.kill_one(note_file, batches // 4, [], killed)
        result = pp.run(
            page, observer, batch_size=5, executor=pool, store=tmp_path / "runs.sqlite"
        )
        thread.join(timeout=10)
        assert killed and killed[0] not in pool.pids
    assert same_bytes(alone, result, tmp_path)
    # Nothing is shown twice but what the dead one was at.
    assert all(killed[0] in pids for pids in noting.repeated_batches(note_file))
    assert len({digest for _, digest in noting.notes(note_file)}) == batches


@pytest.mark.slow
def test_six_experiments_and_a_chat_give_the_same_bytes_though_a_worker_dies(
    tmp_path: Path, note_file: Path
) -> None:
    observer, pages = noting.observer(), [small(name) for name in DETECTION]
    alone = [pp.run(page, observer, store=tmp_path / "alone.sqlite") for page in pages]
    digests = [digest for _, digest in noting.notes(note_file)]
    note_file.unlink()
    killed: list[int] = []
    with WorkerPool(4) as pool:
        thread = noting.kill_one(note_file, len(digests) // 3, [], killed)
        for page, expected in zip(pages, alone, strict=True):
            result = pp.run(
                page, observer, executor=pool, store=tmp_path / "runs.sqlite"
            )
            assert same_bytes(expected, result, tmp_path), page.name
        thread.join(timeout=1000)
        assert killed and killed[0] not in pool.pids
        chat_is_the_same(tmp_path, lambda page, chat: pp.run(page, chat, executor=pool))
    # Nothing is shown twice but what the dead one was at.
    assert all(killed[0] in pids for pids in noting.repeated_batches(note_file))
    assert {digest for _, digest in noting.notes(note_file)} == set(digests)


def test_a_unit_that_kills_its_worker_twice_is_one_clear_error(
    tmp_path: Path, note_file: Path, pool: WorkerPool
) -> None:
    page, observer, store = (
        write_experiment(tmp_path),
        noting.observer(noting.deadly),
        tmp_path / "runs.sqlite",
    )
    with (
        WorkerPool(2) as two_workers,
        pytest.raises(PsyprobeError, match=r"a worker died 2 times \(exit code -9\)"),
    ):
        pp.run(page, observer, batch_size=1, executor=two_workers, store=store)
    # Answers to other questions are stored.
    with pytest.raises(
        PsyprobeError,
        match=r"a worker failed at noting\.py, line .*: ValueError: too bright for me",
    ):
        pp.run(
            page,
            noting.observer(noting.failing),
            batch_size=1,
            executor=pool,
            store=store,
        )
    assert same_bytes(
        pp.run(page, "pixels"), pp.run(page, "pixels", executor=pool), tmp_path
    )


def test_an_observer_that_cannot_be_sent_is_one_sentence(
    tmp_path: Path, pool: WorkerPool
) -> None:
    observer = pp.observer(lambda images: images.mean(axis=(1, 2)), name="mine")
    with pytest.raises(
        InputError,
        match=r"mine cannot be sent to workers .*; load it by name, such as torch:",
    ):
        pp.run(write_experiment(tmp_path), observer, executor=pool)


def test_a_card_that_differs_in_a_worker_names_the_difference() -> None:
    observer = pp.load_observer("simulated:watson-malo", guess=0.25)
    packed = pack_job(print, {observer.card.digest: observer})
    assert JobRunner(packed)
    other = packed.replace(b"\x8c\x05guess", b"\x8c\x05lapse", 1)
    with pytest.raises(
        InputError, match="a worker's simulated:watson-malo is another one: its options"
    ):
        JobRunner(other)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_references_are_shown_once_however_batches_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    drawn_questions: list[Any] = []
    draw = pair_batches.draw_tests
    monkeypatch.setattr(
        pair_batches,
        "draw_tests",
        lambda batch: (drawn_questions.append(batch.questions), draw(batch))[1],
    )
    page, observer = load_experiment(write_experiment(tmp_path)), Counting()
    observer.card = replace(observer.card, device=device)
    schedule = load_probe(page.probe).plan(page, observer, batch_size=1)
    with Store(None) as store:
        schedule.begin(schedule.record(store))
    batches = schedule.next()
    runner = JobRunner(pack_job(pair_batches.answer, schedule.observers))
    alone = {
        answered.question.key: answered.answer
        for answered in pair_batches.answer(schedule.observers, batches)
    }
    drawn_questions.clear()
    units = [batches[:1], batches[1:4], batches[4:10], batches[10:]]
    answers = {
        answered.question.key: answered.answer
        for unit in units
        for answered in runner.put(unit)
    }
    assert answers == alone
    assert drawn_questions == [batch.questions for batch in batches]
    np.testing.assert_array_equal(
        runner._observers[observer.card.digest].images, observer.images
    )


@pytest.mark.parametrize("executor", [0, -1, True, 1.5, object()])
def test_what_is_no_executor_is_refused(tmp_path: Path, executor: Any) -> None:
    with pytest.raises(InputError, match=r"workers are|executor is"):
        pp.run(write_experiment(tmp_path), "pixels", executor=executor)


@pytest.mark.slow
def test_a_network_gives_the_same_bytes(tmp_path: Path, pool: WorkerPool) -> None:
    pytest.importorskip("timm")
    page = write_experiment(
        tmp_path, stimulus=(("size = 16", "size = 64"), ("ppd = 16", "ppd = 64"))
    )
    observer = pp.load_observer(
        "timm:test_efficientnet", random_weights=True, input_size=64
    )
    alone = pp.run(page, observer, batch_size=3)
    assert np.isfinite(alone["response_angular"]).all()
    assert same_bytes(
        alone, pp.run(page, observer, batch_size=3, executor=pool), tmp_path
    )
