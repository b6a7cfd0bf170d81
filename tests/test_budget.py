"""A budget bounds what is sent by the dearest question so far."""

from __future__ import annotations

import pytest

from psyprobe.errors import UnfinishedError
from psyprobe.observers.chat.prices import Budget
from psyprobe.observers.chat.protocol import Answer


def test_the_next_question_may_cost_as_much_as_the_dearest_so_far() -> None:
    budget = Budget(0.65)
    for cost in (0.3, 0.1):
        budget.take()
        budget.settle(Answer("Yes", cost=cost))
    with pytest.raises(UnfinishedError, match="another question may cost"):
        budget.take()


def test_questions_under_way_count() -> None:
    budget = Budget(1.0)
    budget.take()
    budget.settle(Answer("Yes", cost=0.3))
    budget.take()
    budget.take()
    with pytest.raises(UnfinishedError, match="beside 2 under way"):
        budget.take()
