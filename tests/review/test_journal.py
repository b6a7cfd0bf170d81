"""The journal of an annotator: nothing decided is lost, and what is no decision is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from full_disk import full_beyond

from psyprobe.errors import StoreError
from psyprobe.tasks.review.worklist import Choice, Journal, Task

TOO_MANY = "9" * 5000
DEEP = "[" * 100_000 + "]" * 100_000


def test_a_decision_that_finds_the_disk_full_is_refused_and_those_before_it_stay(
    tmp_path: Path,
) -> None:
    tasks = [
        Task(f"{i}", "Short answer", (), f"What is {i}?", (Choice("1", "yes", "Yes"),))
        for i in range(3)
    ]
    journal = Journal(tmp_path, "answer", "ann")
    journal.decide(tasks[0], "yes")
    with (
        full_beyond(journal.path.stat().st_size + 20),
        pytest.raises(StoreError, match="cannot be written: File too"),
    ):
        journal.decide(tasks[1], "yes")
    for current in (journal, Journal(tmp_path, "answer", "ann")):
        assert [current.decision(task) is not None for task in tasks] == [
            True,
            False,
            False,
        ]
    journal.decide(tasks[2], "yes")
    for current in (journal, Journal(tmp_path, "answer", "ann")):
        assert [current.decision(task) is not None for task in tasks] == [
            True,
            False,
            True,
        ]


def test_a_journal_with_lines_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "people").mkdir()
    good = json.dumps({"content": "c", "value": "yes", "text": ""})
    odd = [
        DEEP,
        TOO_MANY,
        "[]",
        '{"content": [], "value": "a", "text": ""}',
        '{"content": "c", "value": [], "text": 5}',
    ]
    (tmp_path / "people/review-ann.jsonl").write_text("\n".join([good, *odd, ""]))
    assert {
        key: decision.value
        for key, decision in Journal(tmp_path, "review", "ann")._decisions.items()
    } == {"c": "yes"}
