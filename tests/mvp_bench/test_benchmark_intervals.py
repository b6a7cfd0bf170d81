"""Intervals of benchmarks are never without width."""

from __future__ import annotations

import pandas as pd

from psyprobe.tasks.mvp_bench.metrics import compare_models, mvp_metrics
from psyprobe.tasks.r_bench.metrics import paired_difference, rbench_metrics


def answers(pairs: int, wrong: int = 0) -> pd.DataFrame:
    """Two yes/no questions a pair, of which the first few get a wrong answer."""
    rows = [
        {
            "question_id": f"{pair}{kind}",
            "pair": pair,
            "kind": kind,
            "task": "yes_no",
            "level": "low",
            "question": "q",
            "answer": answer,
            "run": "main",
            "mcq": -1,
            "rotation": 0,
            "response": "no" if 2 * pair + k < wrong else answer,
        }
        for pair in range(pairs)
        for k, (kind, answer) in enumerate((("N", "yes"), ("M", "no")))
    ]
    return pd.DataFrame(rows)


def test_twenty_right_answers_of_twenty_are_no_certainty() -> None:
    right = mvp_metrics(answers(20), resamples=100)
    assert (
        (right["value"] == 100).all()
        and (right["high"] == 100).all()
        and (right["low"] < 90).all()
    )
    comparison = compare_models(answers(20), answers(20), resamples=100)
    assert ((comparison["low"] < 0) & (comparison["high"] > 0)).all()
    items = pd.DataFrame(
        {
            "name": [f"{i}" for i in range(20)],
            "task": "MCQ",
            "dimension": 1,
            "strength": "low",
            "absolute": 1.0,
            "relative": 0.0,
        }
    )
    metrics = rbench_metrics(items)
    assert (metrics["high"] - metrics["low"] > 0.05).all()
    assert (metrics["low"] >= 0).all() and (metrics["high"] <= 1).all()
    assert not paired_difference(items, items)["clear"].any()
