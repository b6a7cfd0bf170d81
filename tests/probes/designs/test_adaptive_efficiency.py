"""QUEST+ and qCSF find thresholds with as few queries as the reference says; a smaller run of the
benchmark."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = (
    Path(__file__).resolve().parents[3] / "benchmarks" / "adaptive_efficiency.py"
)


@pytest.fixture(scope="module")
def efficiency() -> ModuleType:
    spec = importlib.util.spec_from_file_location("adaptive_efficiency", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["adaptive_efficiency"] = module
    spec.loader.exec_module(module)
    return module


def holds(outcome, error: float) -> None:  # type: ignore[no-untyped-def]
    assert outcome.rmse - 2 * outcome.standard_error <= error
    # A few observers cannot show that intervals are too wide; the benchmark, with 200, can.
    assert outcome.covered.mean() >= 0.91


@pytest.mark.parametrize(
    ("width", "queries", "error"), [(0.8, 17, 0.1), (0.4, 20, 0.055)]
)
def test_quest_plus_over_six_frequencies(
    efficiency: ModuleType, width: float, queries: int, error: float
) -> None:
    n = 6 * queries
    observer = efficiency.thresholds_of_the_page(efficiency.FREQUENCIES, width, 0.02)
    outcomes = efficiency.simulate(
        efficiency.quest_plus(efficiency.FREQUENCIES), observer, (n,), 15, seed=11
    )
    holds(outcomes[n], error)


def test_quest_plus_with_observers_of_all_sorts(efficiency: ModuleType) -> None:
    observer = efficiency.population(efficiency.FREQUENCIES)
    outcomes = efficiency.simulate(
        efficiency.quest_plus(efficiency.FREQUENCIES),
        observer,
        (120,),
        15,
        seed=12,
        at_once=4,
    )
    holds(outcomes[120], 0.15)


@pytest.mark.parametrize("name", ["WATSON_MALO", "RISING"])
def test_quick_csf_of_a_parabola_and_of_none(efficiency: ModuleType, name: str) -> None:
    observer = efficiency.curve(getattr(efficiency, name), 0.8, 0.02)
    outcomes = efficiency.simulate(efficiency.quick_csf(), observer, (60,), 12, seed=13)
    holds(outcomes[60], 0.1)
