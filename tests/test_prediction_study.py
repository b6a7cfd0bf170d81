"""benchmarks/prediction_study.py finds a planted predictor, and none where there is none."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
ENCODERS = 7


@pytest.fixture(scope="module")
def study() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        import prediction_study
    return prediction_study


def planted_counts(study: ModuleType, correct: list[int]) -> pd.DataFrame:
    """Right names of the encoders, of 100; those of bands and of low contrast lie elsewhere."""
    generator = np.random.default_rng(1)
    rows = [
        {
            "observer": name,
            "layer": study.EMBEDDING,
            "kind": kind,
            "correct": n if kind == study.CORRUPTION else generator.integers(100),
            "total": 100,
        }
        for name, n in zip(study.FAMILIES, correct, strict=True)
        for kind in (study.CLEAN, *study.OUTCOMES)
    ]
    return pd.DataFrame(rows)


def test_a_planted_predictor_is_found(study: ModuleType) -> None:
    correct = [31, 88, 42, 67, 55, 12, 79]
    predictors = pd.DataFrame(
        {"planted": np.log(correct), "other": [3, 1, 2, 7, 5, 6, 4]},
        index=list(study.FAMILIES),
    )
    rows = study.study_rows(planted_counts(study, correct), predictors)
    planted = rows.set_index(["predictor", "outcome"]).loc["planted", "corruption"]
    assert planted["r"] == pytest.approx(1)
    assert planted["p"] == pytest.approx(2 / math.factorial(ENCODERS))
    # Of six pairs.
    assert planted["p_holm"] == pytest.approx(6 * planted["p"])
    assert (rows["p_holm"] < 0.05).sum() == 1


@pytest.mark.parametrize(("count", "critical"), [(5, 1.0), (6, 0.886), (7, 0.786)])
def test_the_least_correlation_is_that_of_published_tables(
    study: ModuleType, count: int, critical: float
) -> None:
    """Two-sided 5 %: Ramsey 1989, Journal of Educational Statistics 14, 245."""
    assert study.smallest_significant(count) == pytest.approx(critical, abs=0.001)


def test_no_correlation_of_four_families_is_significant(study: ModuleType) -> None:
    assert math.isnan(study.smallest_significant(4))


def test_unrelated_quantities_correlate_at_the_stated_rate(study: ModuleType) -> None:
    generator = np.random.default_rng(1)
    p = [study.exact_p(*generator.standard_normal((2, 6))) for _ in range(300)]
    # Six have 24 orders of 720 at 0.886 and beyond: 3.3 %; three standard errors.
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(1 / 30, abs=0.031)
