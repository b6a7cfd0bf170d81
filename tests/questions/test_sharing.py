"""Shares of a run in stores of their own, and processes that share one store (issue 13)."""

from __future__ import annotations

import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import noting
import pytest
from children import child
from noting import same_bytes
from small_experiment import write_experiment
from small_questions import Seeing, digests, without_repeats, write_questions
from whole_suite import DETECTION, chat_is_the_same, small

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, InputError, StoreError
from psyprobe.files.output import digest
from psyprobe.probes.experiments import run_shard
from psyprobe.running import lease
from psyprobe.running.agenda import Agenda
from psyprobe.running.database import Process
from psyprobe.running.lease import Lease
from psyprobe.running.loop import Writer
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import Store

TESTS = Path(__file__).resolve().parents[1]

#: 12 x 12 levels, and what is scored: some 34 batches of 5.
LARGER = (("to = 4, n = 3", "to = 4, n = 12"), ("to = 1, n = 3", "to = 1, n = 12"))
ADAPTIVE = (
    ("repeats = { text = 4, p_yes = 2 }", 'design = "quest_plus"'),
    ("catch = 0.1", "catch = 0.0"),
)

#: Runs an experiment in a store; tells that it is ready, and waits until it is told to begin.
RUN = """
import sys
sys.path[:0] = {paths!r}
import noting, psyprobe as pp
print("ready", flush=True)
sys.stdin.readline()
pp.run({page!r}, noting.observer(noting.{observer}), store={store!r}, batch_size=5)
"""


@pytest.fixture
def note_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(noting.VARIABLE, str(tmp_path / "shown.txt"))
    return tmp_path / "shown.txt"


def started(
    stack: ExitStack, page: Path, store: Path, observer: str, before: str = ""
) -> Any:
    paths = [str(TESTS.parent), str(TESTS / "questions")]
    code = before + RUN.format(
        paths=paths, page=str(page), store=str(store), observer=observer
    )
    return stack.enter_context(
        child([sys.executable, "-c", code], 200, stdin=-1, stdout=-1, text=True)
    )


def test_two_processes_on_one_store_share_the_work(
    tmp_path: Path, note_file: Path
) -> None:
    page, store, observer = (
        write_experiment(tmp_path, *LARGER),
        tmp_path / "runs.sqlite",
        noting.observer(noting.in_company),
    )
    with ExitStack() as stack:
        two = [started(stack, page, store, "in_company") for _ in range(2)]
        for process in two:
            process.stdout.readline()
        for process in two:
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.wait(timeout=1200) for process in two] == [0, 0]
    assert noting.repeated_batches(note_file) == []
    assert {pid for pid, _ in noting.notes(note_file)} == {
        process.pid for process in two
    }
    result = pp.run(page, observer, store=store, batch_size=5)
    assert same_bytes(pp.run(page, observer, batch_size=5), result, tmp_path)


BATCHES = [
    Batch((Question(digest(i), digest("asked"), digest("who"), "1"),), work=i)
    for i in range(200)
]


@pytest.mark.parametrize(
    ("seconds", "lease_size", "times"), [(10.0, 1, 200), (0.3, 3, 68), (0.01, 100, 5)]
)
def test_what_is_taken_lasts_a_second(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    lease_size: int,
    times: int,
) -> None:
    seconds_now, taken_counts = 0.0, []
    monkeypatch.setattr(lease, "monotonic", lambda: seconds_now)
    with Store(tmp_path / "runs.sqlite") as store, Writer(store) as writer:
        take = writer.lease.take
        monkeypatch.setattr(
            writer.lease,
            "take",
            lambda names: (
                names_taken := take(names),
                taken_counts.append(len(names_taken)),
            )[0],
        )
        for _ in Agenda(store, BATCHES, writer):
            seconds_now += seconds
    assert (
        sum(taken_counts) == len(BATCHES)
        and taken_counts[0] == 1
        and max(taken_counts) == lease_size
        and len(taken_counts) <= times
    )


@pytest.mark.parametrize("pace", [1, 3])
def test_two_that_share_end_together(tmp_path: Path, pace: int) -> None:
    with (
        Store(tmp_path / "runs.sqlite") as first_store,
        Store(tmp_path / "runs.sqlite") as two,
    ):
        with Writer(first_store) as first, Writer(two) as second:
            writers = [first, second]
            agendas = [
                Agenda(store, BATCHES, writer)
                for store, writer in zip((first_store, two), writers, strict=True)
            ]
            batches_done: list[list[int]] = [[], []]
            # One is faster than the other, which it finds at work.
            for turn in [0] * pace + [0, *[1] * pace] * len(BATCHES):
                if batch := agendas[turn].take():
                    batches_done[turn].append(batch.work)
                    writers[turn].add(Answered(batch.questions[0], {"text": "yes"}))
        assert first_store.missing(batch.questions[0].key for batch in BATCHES) == set()
    assert sorted(batches_done[0] + batches_done[1]) == [*range(200)]
    assert len(batches_done[1]) == pytest.approx(200 * pace / (pace + 1), abs=12)


def test_what_a_killed_process_had_taken_is_asked_by_the_other(
    tmp_path: Path, note_file: Path
) -> None:
    page, store, observer = (
        write_experiment(tmp_path, *LARGER),
        tmp_path / "runs.sqlite",
        noting.observer(),
    )
    with ExitStack() as stack:
        process = started(stack, page, store, "rows")
        process.stdin.write("\n")
        process.stdin.flush()
        while len(noting.notes(note_file)) < 8 and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.wait()
    start = time.monotonic()
    result = pp.run(page, observer, store=store, batch_size=5)
    assert time.monotonic() - start < 25, "it waited for a lease of a dead process"
    note_file.unlink()
    assert same_bytes(pp.run(page, observer, batch_size=5), result, tmp_path)


#: Runs it likewise, on another machine whose clock is some ten years ahead.
AHEAD = """
import socket, time
now = time.time
time.time = lambda: now() + 3e8
socket.gethostname = lambda: "elsewhere"
"""


def test_a_machine_whose_clock_was_ahead_holds_nobody_up(
    tmp_path: Path, note_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_experiment(tmp_path, *LARGER)
    store = tmp_path / "runs.sqlite"
    observer = noting.observer()
    with ExitStack() as stack:
        process = started(stack, page, store, "rows", AHEAD)
        process.stdin.write("\n")
        process.stdin.flush()
        while len(noting.notes(note_file)) < 8 and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.wait()
    monkeypatch.setattr(lease, "_SILENCE", 2.0)
    monkeypatch.setattr(lease, "_PATIENCE", 0.3)
    waiting = f"waiting for process {process.pid} on elsewhere, .*small with rows"
    with pytest.warns(ConditionWarning, match=waiting):
        result = pp.run(page, observer, store=store, batch_size=5)
    note_file.unlink()
    assert same_bytes(pp.run(page, observer, batch_size=5), result, tmp_path)


def test_work_is_taken_once_and_back_from_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_now = 0.0
    monkeypatch.setattr(lease, "monotonic", lambda: seconds_now)
    with child([sys.executable, "-c", ""]) as process:
        process.wait()
    dead = Process("dead", socket.gethostname(), process.pid, "", 1)
    distant = Process("distant", "elsewhere", 1, "", 1)
    with Store(tmp_path / "runs.sqlite") as store:
        database = store.database
        first, second = Lease(database), Lease(database)
        with store.transaction():
            database.beat(dead)
            database.add_leases("dead", ["a"])
            database.beat(distant)
            database.add_leases("distant", ["b"])
        assert first.take(["a", "b", "c"]) == {"a"}
        assert second.take(["a", "b", "c"]) == {"c"}
        for _ in range(3):
            seconds_now += 20
            with store.transaction():
                database.beat(distant)
            # It is alive, whatever its clock says.
            assert first.take(["b"]) == set()
        second.give_back()
        seconds_now += 31
        assert first.take(["b"]) == {"b"}
        assert database.leases() == dict.fromkeys(["a", "b"], first._process.id)
    with Store(None) as store:
        assert (
            Lease(store.database).take(["x"])
            == {"x"}
            == Lease(store.database).take(["x"])
        )


def test_a_lease_that_a_full_disk_kept_is_taken_back_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(process: str) -> None:
        raise StoreError("database or disk is full")

    with Store(tmp_path / "runs.sqlite") as store:
        first = Lease(store.database)
        assert first.take(["a"]) == {"a"}
        assert Lease(store.database).take(["a"]) == set()
        with monkeypatch.context() as full:
            full.setattr(store.database, "remove_process", fail)
            with pytest.raises(StoreError):
                first.give_back()
        assert Lease(store.database).take(["a"]) == {"a"}


def test_shares_of_pairs_ask_each_batch_once(tmp_path: Path, note_file: Path) -> None:
    page, store, observer = (
        write_experiment(tmp_path, *LARGER),
        tmp_path / "runs.sqlite",
        noting.observer(),
    )
    alone = pp.run(page, observer, batch_size=5)
    batches = sorted(noting.notes(note_file))
    note_file.unlink()
    for share in ("1/3", "2/3", "3/3"):
        before = len(noting.notes(note_file))
        run_shard(page, observer, shard=share, store=store, batch_size=5)
        assert (
            len(batches) // 6
            < len(noting.notes(note_file)) - before
            < len(batches) // 2
        )
    assert sorted(without_repeats(noting.notes(note_file))) == batches
    with Store(store) as opened:
        assert [record.finished for record in opened.runs()] == [None]
    assert same_bytes(
        alone, pp.run(page, observer, batch_size=5, store=store), tmp_path
    )
    assert sorted(without_repeats(noting.notes(note_file))) == batches


@pytest.mark.parametrize("changes", [(), ADAPTIVE])
def test_shares_of_a_chat_take_whole_prompts(tmp_path: Path, changes: Any) -> None:
    page, alone, observer = write_questions(tmp_path, *changes), Seeing(), Seeing()
    expected = pp.run(page, alone)
    for share in ("1/2", "2/2"):
        run_shard(page, observer, shard=share, store=tmp_path / "runs.sqlite")
    questions = sorted(map(str, digests(alone.inquiries)))
    assert sorted(without_repeats(map(str, digests(observer.inquiries)))) == questions
    assert same_bytes(
        expected, pp.run(page, observer, store=tmp_path / "runs.sqlite"), tmp_path
    )
    assert sorted(without_repeats(map(str, digests(observer.inquiries)))) == questions


def test_a_store_that_began_in_other_batches_is_refused(tmp_path: Path) -> None:
    page, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    run_shard(page, "pixels", shard="1/2", store=store, batch_size=2)
    with pytest.raises(
        StoreError,
        match="give each shard a store of its own, and all the same --batch-size",
    ):
        run_shard(page, "pixels", shard="2/2", store=store, batch_size=3)


@pytest.mark.parametrize("share", ["0/3", "4/3", "1/0", "", "1", "a/b", "1/2/3", "²/3"])
def test_what_is_no_share_is_refused(tmp_path: Path, share: str) -> None:
    with pytest.raises(InputError, match="shard is "):
        run_shard(
            write_experiment(tmp_path),
            "pixels",
            shard=share,
            store=tmp_path / "runs.sqlite",
        )


def test_the_command_asks_a_share_and_says_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, folder = write_experiment(tmp_path), tmp_path / "results"
    assert (
        main(
            [
                "run",
                str(page),
                "--observer",
                "pixels",
                "--shard",
                "1/2",
                "--output",
                str(folder),
            ]
        )
        == 0
    )
    assert (
        "merge the stores of all shares with psyprobe store merge"
        in capsys.readouterr().out
    )
    assert [path.name for path in folder.iterdir()] == ["runs.sqlite"]
    options = ["--workers", "2", "--scheduler", "tcp://127.0.0.1:9"]
    assert (
        main(
            [
                "run",
                str(page),
                "--observer",
                "pixels",
                *options,
                "--output",
                str(folder),
            ]
        )
        == 2
    )
    assert "--workers are of this machine" in capsys.readouterr().err


def test_merged_shares_are_the_run(tmp_path: Path, note_file: Path) -> None:
    page, observer = write_experiment(tmp_path, *LARGER), noting.observer()
    alone = pp.run(page, observer, batch_size=5)
    batches = sorted(digest for _, digest in noting.notes(note_file))
    note_file.unlink()
    stores = [tmp_path / f"part{i}.sqlite" for i in (1, 2, 3)]
    for i, store in enumerate(stores):
        run_shard(page, observer, shard=f"{i + 1}/3", store=store, batch_size=5)
    assert (
        main(["store", "merge", *map(str, stores), "-o", str(tmp_path / "all.sqlite")])
        == 0
    )
    assert same_bytes(
        alone,
        pp.run(page, observer, batch_size=5, store=tmp_path / "all.sqlite"),
        tmp_path,
    )
    assert (
        sorted(without_repeats(digest for _, digest in noting.notes(note_file)))
        == batches
    )


@pytest.mark.slow
def test_six_experiments_and_a_chat_in_three_shares_are_the_runs(
    tmp_path: Path, note_file: Path
) -> None:
    observer, pages = noting.observer(), [small(name) for name in DETECTION]
    alone = [pp.run(page, observer, batch_size=5) for page in pages]
    batches = sorted(digest for _, digest in noting.notes(note_file))
    note_file.unlink()

    def in_shares(page: Any, observer: Any, batch_size: int | None) -> Any:
        stores = [tmp_path / f"{i}.sqlite" for i in (1, 2, 3)]
        for i, store in enumerate(stores):
            run_shard(
                page, observer, shard=f"{i + 1}/3", store=store, batch_size=batch_size
            )
        assert (
            main(
                [
                    "store",
                    "merge",
                    *map(str, stores),
                    "-o",
                    str(tmp_path / "all.sqlite"),
                ]
            )
            == 0
        )
        result = pp.run(
            page, observer, batch_size=batch_size, store=tmp_path / "all.sqlite"
        )
        for store in tmp_path.glob("*.sqlite"):
            store.unlink()
        return result

    for page, expected in zip(pages, alone, strict=True):
        assert same_bytes(expected, in_shares(page, observer, 5), tmp_path), page.name
    assert (
        sorted(without_repeats(digest for _, digest in noting.notes(note_file)))
        == batches
    )
    chat_is_the_same(tmp_path, lambda page, chat: in_shares(page, chat, None))
