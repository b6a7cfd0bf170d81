"""The chance level of a task is one over its alternatives, for tasks of ours and of others."""

from __future__ import annotations

import pytest

from psyprobe.running.task import Task


@pytest.mark.parametrize("alternatives", [2, 3, 4, 5, 8, 26])
def test_who_guesses_among_m_is_right_one_time_in_m(alternatives: int) -> None:
    task = Task(tuple(f"answer {number}" for number in range(alternatives)), "correct")
    assert task.chance is not None
    assert task.chance * alternatives == pytest.approx(1.0, abs=1e-15)


def test_a_yes_has_no_chance_level() -> None:
    assert Task(("yes", "no"), "yes").chance is None
