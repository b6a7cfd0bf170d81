"""Answers are written by the clock, together with what else there is to write, and none is lost on
the way."""

from __future__ import annotations

from pathlib import Path

import pytest

import psyprobe as pp
from psyprobe.errors import StoreError
from psyprobe.files.output import digest
from psyprobe.running import lease, loop
from psyprobe.running.loop import Writer
from psyprobe.running.protocol import Answered, Question
from psyprobe.running.store import Store


def question(name: str) -> Question:
    return Question(digest(name), digest("asked"), digest("observer"), "1")


def test_a_run_commits_a_few_times_and_not_once_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A commit waits for the disk: 26 ms where that is busy. However long the run takes, none is due
    # by the clock.
    monkeypatch.setattr(loop, "_INTERVAL", 3600.0)
    monkeypatch.setattr(lease, "_SECONDS_AT_ONCE", 3600.0)
    with Store(tmp_path / "runs.sqlite") as store:
        statements: list[str] = []
        store.database._connection.set_trace_callback(statements.append)
        result = pp.run("gabor_achromatic", "pixels", store=store, progress=False)
        assert result.attrs["batch_size"] == "8"
        # Its beginning, three times what is taken on lease (1, 16 and 256 of 76 batches), and its
        # end.
        assert statements.count("COMMIT") == 5
        assert store.database.leases() == {}


def test_what_fails_beside_them_loses_no_answer(tmp_path: Path) -> None:
    def fail() -> None:
        raise StoreError("the disk is full")

    first, second = question("first"), question("second")
    with Store(tmp_path / "runs.sqlite") as store:
        with pytest.raises(StoreError, match="full"), Writer(store) as writer:
            writer.write_with(lambda: writer.lease.take(["work"]))
            writer.add(Answered(first, {"text": "yes"}))
            with pytest.raises(StoreError, match="full"):
                writer.write_with(fail)
            assert store.missing([first.key]) == {first.key}
            writer.write()
            assert store.missing([first.key]) == set()
            writer.add(Answered(second, {"text": "no"}))
            writer.end(fail)
        assert store.require_answers([first.key, second.key])[second.key] == {
            "text": "no"
        }


def test_what_is_taken_is_given_back_with_the_last_answers(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "runs.sqlite") as store,
        Store(tmp_path / "runs.sqlite") as other,
    ):
        with Writer(store) as writer:
            writer.lease.take(["work"])
            writer.add(Answered(question("first"), {"text": "yes"}))
            assert list(other.database.leases()) == ["work"]
            missing = writer.end(lambda: store.missing([question("first").key]))
        assert missing == set()
        assert (
            other.database.leases() == {}
            and other.missing([question("first").key]) == set()
        )
