"""The row of people: the same people in every cell, and sums that stay whole numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psyprobe.analysis.words.people import mean_of_people, with_people
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.tasks.mvp_bench import mvp_metrics
from psyprobe.tasks.r_bench import rbench_metrics


def mvp(right: int) -> pd.DataFrame:
    rows = [
        {
            "question_id": f"{pair}{kind}",
            "pair": pair,
            "kind": kind,
            "task": "yes_no",
            "level": "low",
            "question": "Is it?",
            "answer": key,
            "run": "main",
            "mcq": -1,
            "rotation": 0,
            "response": key if pair < right else "",
        }
        for pair in range(10)
        for kind, key in (("N", "no"), ("M", "yes"))
    ]
    return mvp_metrics(pd.DataFrame(rows), resamples=100)


def rbench(level: float) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "name": [f"{i}" for i in range(12)],
            "task": ["MCQ", "VQA", "CAP"] * 4,
            "dimension": range(1, 13),
            "strength": ["low", "mid", "high", "low"] * 3,
            "absolute": np.linspace(0, level, 12),
            "relative": np.nan,
        }
    )
    return rbench_metrics(table)


def test_the_best_and_the_worst_are_left_out_of_mvp_bench() -> None:
    people = {"ann": mvp(9), "bob": mvp(2), "cyd": mvp(7), "dan": mvp(6), "eve": mvp(5)}
    means = mean_of_people(people).set_index(["level", "metric"])
    accuracy = means.loc[("multi", "aAcc")]
    assert (accuracy["value"], accuracy["numerator"], accuracy["denominator"]) == (
        pytest.approx(60),
        36,
        60,
    )
    assert (accuracy["low"], accuracy["high"]) == (50, 70)
    assert mean_of_people(people).attrs["left_out"] == ("ann", "bob")


def test_the_same_for_r_bench_and_in_any_order() -> None:
    people = {"ann": rbench(0.2), "bob": rbench(0.8), "cyd": rbench(0.5)}
    means = mean_of_people(people)
    assert means.loc[means["name"] == "overall", "value"].tolist() == [
        pytest.approx(0.25)
    ]
    pd.testing.assert_frame_equal(means, mean_of_people(dict(reversed(people.items()))))


def test_people_stand_as_one_row_after_the_models() -> None:
    tables = {"model": mvp(4), "ann": mvp(9), "bob": mvp(2), "cyd": mvp(7)}
    assert list(with_people(tables, ["ann", "bob", "cyd"])) == [
        "model",
        "(people, mean of 1)",
    ]
    assert list(with_people(tables, [])) == list(tables)
    with pytest.raises(UnknownNameError, match="did you mean 'bob'"):
        with_people(tables, ["ann", "bo", "cyd"])


def test_too_few_or_unlike_people_are_one_sentence() -> None:
    with pytest.raises(InputError, match="there are 2 people"):
        mean_of_people({"ann": mvp(1), "bob": mvp(2)})
    with pytest.raises(InputError, match="cyd was not asked the same"):
        mean_of_people({"ann": mvp(1), "bob": mvp(2), "cyd": mvp(3).iloc[1:]})
    with pytest.raises(InputError, match="these are no metrics"):
        mean_of_people(dict.fromkeys("abc", pd.DataFrame({"value": [1.0]})))
