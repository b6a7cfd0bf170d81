"""Models beside each other, and figures of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.tasks.r_bench import (
    across,
    paired_difference,
    rbench_metrics,
)
from psyprobe.tasks.r_bench.figures import bars
from psyprobe.tasks.r_bench.metrics import rbench_table


def table(seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = 33 * 6
    return pd.DataFrame(
        {
            "name": [f"{i}.png" for i in range(n)],
            "task": [("MCQ", "VQA", "CAP")[i % 3] for i in range(n)],
            "dimension": [1 + i % 33 for i in range(n)],
            "strength": [("low", "mid", "high")[i % 3] for i in range(n)],
            "absolute": np.clip(rng.random(n) + shift, 0, 1),
            "relative": rng.random(n),
            "simulated": [int(1 + i % 33 in (2, 3, 4, 7, 8)) for i in range(n)],
        }
    )


def test_a_paired_interval_is_narrower_than_two() -> None:
    first, rng = table(1), np.random.default_rng(2)
    other = first.assign(
        absolute=np.clip(
            first["absolute"] - 0.05 + 0.02 * rng.standard_normal(len(first)), 0, 1
        )
    )
    differences = paired_difference(first, other.sample(frac=1, random_state=0))
    overall = differences[
        (differences["measure"] == "absolute") & (differences["breakdown"] == "overall")
    ].iloc[0]
    assert overall["difference"] == pytest.approx(
        first["absolute"].mean() - other["absolute"].mean()
    )
    assert overall["low"] < overall["difference"] < overall["high"]
    assert overall["clear"]
    assert overall["high"] - overall["low"] < 0.01
    self_differences = paired_difference(first, first)
    assert (self_differences["difference"] == 0).all()
    assert not self_differences["clear"].any()
    with pytest.raises(InputError, match="different items"):
        paired_difference(first, first.iloc[1:])


def test_items_without_a_score_are_left_out_of_both() -> None:
    first, other = table(1), table(2)
    other.loc[:9, "absolute"] = np.nan
    differences = paired_difference(first, other)
    assert differences[differences["breakdown"] == "overall"]["n"].tolist() == [
        188,
        198,
    ]
    assert np.isfinite(differences["difference"]).all()


def test_one_task_stands_beside_its_printed_cells_only() -> None:
    items = table(1)
    text = rbench_table(
        {"LLaVA1.5": rbench_metrics(items[items["task"] == "MCQ"])}, "markdown"
    )
    (printed, _) = [
        line.split("|")[2:-1] for line in text.splitlines() if "as printed" in line
    ]
    assert [cell.strip() == "-" for cell in printed] == [False] + [True] * 9


def test_a_table_across_models_has_every_part_and_refuses_gaps() -> None:
    metrics = {f"m{i}": rbench_metrics(table(i, 0.1 * i)) for i in range(3)}
    steps = across(metrics, "step")
    m1 = metrics["m1"]
    row = m1[(m1["measure"] == "absolute") & (m1["name"] == "EP")].iloc[0]
    assert steps.shape == (3, 7)
    assert steps.loc["m1", "EP"] == row["value"]
    assert across(metrics, "dimension").shape == (3, 33)
    metrics_of_five = rbench_metrics(table(3).iloc[:5])
    with pytest.raises(InputError, match="not all models have absolute scores"):
        across(metrics | {"few": metrics_of_five}, "dimension")
    with pytest.raises(UnknownNameError, match="did you mean 'step'"):
        across(metrics, "steps")


def test_figures_say_what_is_simulated(tmp_path: Path) -> None:
    metrics: dict[str, Any] = {f"$m_{i}": rbench_metrics(table(i)) for i in range(2)}
    for by, starred in (("step", {"EI *", "CI *"}), ("group", {"Wild *"})):
        ax = bars(metrics, by)
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert {label for label in labels if "*" in label} == starred
        ax.figure.savefig(tmp_path / "drawn.png")
        plt.close(ax.figure)
    figure = plt.figure()
    own_ax = figure.add_subplot(1, 2, 1)
    assert bars(metrics, ax=own_ax) is own_ax
    plt.close(ax.figure)
    with pytest.raises(UnknownNameError, match="breakdown"):
        bars(metrics, "stepp")
