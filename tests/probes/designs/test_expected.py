"""Planned interval widths are those that the reference's simulations measured."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from psyprobe.errors import InputError
from psyprobe.probes.designs import (
    AssumedObserver,
    expected_interval_width,
    expected_queries,
)


def rows(oracle_data: Path, name: str) -> list[dict[str, str]]:
    with (oracle_data / "chat_csf" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_interval_widths_of_constant_stimuli_are_as_simulated(
    oracle_data: Path,
) -> None:
    checked = 0
    for row in rows(oracle_data, "adaptive_simulation.csv"):
        queries = int(row["queries"])
        if not row["procedure"].startswith("constant") or queries < 20:
            continue
        levels = int(row["procedure"].split()[2])
        observer = AssumedObserver(
            float(row["true_width"]), float(row["true_gamma"]), float(row["true_lapse"])
        )
        interval_width = expected_interval_width(
            "constant", queries, values=1, levels=levels, observer=observer, catch=0.0
        )
        assert interval_width == pytest.approx(
            float(row["mean_ci95_width_log10"]), rel=0.35
        )
        checked += 1
    assert checked == 15


def test_interval_widths_of_quest_plus_are_as_simulated(oracle_data: Path) -> None:
    for row in rows(oracle_data, "adaptive_simulation.csv"):
        queries = int(row["queries"])
        if not row["procedure"].startswith("QUEST+") or queries < 15:
            continue
        observer = AssumedObserver(
            float(row["true_width"]), float(row["true_gamma"]), float(row["true_lapse"])
        )
        interval_width = expected_interval_width(
            "quest_plus", queries, values=1, observer=observer
        )
        assert interval_width == pytest.approx(
            float(row["mean_ci95_width_log10"]), rel=0.5
        )


def test_errors_with_probabilities_of_yes_are_as_simulated(oracle_data: Path) -> None:
    for row in rows(oracle_data, "readout_efficiency.csv"):
        if row["readout"] != "P(yes) logistic fit":
            continue
        observer = AssumedObserver(
            0.8, 1e-3, 1e-3, logit_sd=float(row["logit_sd_between_images"])
        )
        width = expected_interval_width(
            "constant", int(row["queries"]), values=1, observer=observer, catch=0.0
        )
        assert width / 3.92 == pytest.approx(
            float(row["rmse_log10_threshold"]), rel=0.3
        )


@pytest.mark.parametrize("design", ["constant", "ladder", "quest_plus", "quick_csf"])
def test_queries_are_the_fewest_that_do(design: str) -> None:
    n = expected_queries(design, 0.3)  # type: ignore[arg-type]
    assert (
        expected_interval_width(design, n)
        <= 0.3
        < expected_interval_width(design, n - 1)
    )  # type: ignore[arg-type]


def test_the_order_of_designs_and_tasks() -> None:
    cost = {
        name: expected_queries(name, 0.3)
        for name in ("constant", "quest_plus", "quick_csf")
    }  # type: ignore[arg-type]
    assert cost["constant"] > 2.5 * cost["quest_plus"] > 1.5 * cost["quick_csf"]
    assert expected_queries("quest_plus", 0.3, chance=0.5) > 1.8 * cost["quest_plus"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="unknown design 'quest'"):
        expected_interval_width("quest", 10)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="queries is 0"):
        expected_interval_width("constant", 0)
    with pytest.raises(InputError, match="width is 0"):
        expected_queries("constant", 0.0)
    with pytest.raises(InputError, match="ten million"):
        expected_queries("constant", 1e-9)
    with pytest.raises(InputError, match="logit_sd"):
        AssumedObserver(logit_sd=0.0)
