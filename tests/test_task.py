"""The chance level of a task is one over its alternatives, for tasks of ours and of others."""

from __future__ import annotations

import pytest

from psyprobe.running.task import CONTRAST_AXIS, Task


@pytest.mark.parametrize("alternatives", [2, 3, 4, 5, 8, 26])
def test_who_guesses_among_m_is_right_one_time_in_m(alternatives: int) -> None:
    task = Task(tuple(f"answer {number}" for number in range(alternatives)), "correct")
    assert task.chance is not None
    assert task.chance * alternatives == pytest.approx(1.0, abs=1e-15)


def test_a_yes_has_no_chance_level() -> None:
    assert Task(("yes", "no"), "yes").chance is None


def test_a_task_of_labels_is_stored_and_one_of_orientations_is_still_read() -> None:
    labels = Task(("C", "O"), "correct", CONTRAST_AXIS, (0.0, 5.0), "letter")
    assert Task.from_dict(labels.to_dict()) == labels and labels.chance == 0.5
    stored = Task(("vertical", "horizontal"), "correct", CONTRAST_AXIS).to_dict()
    task = Task.from_dict({**stored, "orientations": [0.0, 90.0]})
    assert task.values == (0.0, 90.0) and task.parameter == "orientation"
