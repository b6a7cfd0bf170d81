"""R-Bench reads answers: verdicts of its judge, and letters."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.tasks.items import Case, judge_prompts
from psyprobe.tasks.r_bench import score_items
from psyprobe.tasks.r_bench.scores import open_cases

SCALES = {
    "rbench_choice": {"1": 1.0, "0": 0.0},
    "rbench_short": {"2": 1.0, "1": 0.5, "0": 0.0},
    "rbench_caption": {"2": 1.0, "1": 0.5, "0": 0.0},
}


@pytest.mark.parametrize("name", SCALES)
def test_a_judge_grades_by_the_digits_of_its_scale(name: str) -> None:
    prompt = judge_prompts()[name]
    verdicts = {digit: prompt.read(f"Score: {digit}.") for digit in "0123"}
    assert verdicts == {digit: SCALES[name].get(digit) for digit in "0123"}
    case = Case("item", name, "What is it?", "a dog", "a hound")
    assert "a dog" in prompt.fill(case) and "a hound" in prompt.fill(case)


@given(
    st.sampled_from(sorted(SCALES)),
    st.decimals(0, 2, places=2),
    st.sampled_from(["{}", "Score: {}", "{}.", "<think>2</think>{}"]),
)
def test_a_fraction_is_never_rounded_to_a_verdict(
    name: str, score: object, frame: str
) -> None:
    assert judge_prompts()[name].read(frame.format(score)) is None


def test_an_article_is_no_option_and_goes_to_the_judge() -> None:
    items = pd.DataFrame(
        {
            "name": ["a", "b"],
            "question": "What is shown?",
            "options": [("a horse", "a cat")] * 2,
            "key": ["B", "B"],
            "task": "MCQ",
        }
    )
    answers = {"dis": pd.Series(["A cat.", "**B**"], index=["a", "b"])}
    cases = open_cases(items, answers, against=["dis"])
    assert [(case.name, case.answer) for case in cases] == [("dis\n-1\na", "A cat.")]
    judged = {"dis": pd.Series([1.0, float("nan")], index=["a", "b"])}
    assert score_items(items, answers=answers, judged=judged)["absolute"].tolist() == [
        1.0,
        1.0,
    ]
