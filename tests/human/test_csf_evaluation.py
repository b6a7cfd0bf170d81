"""The error of castleCSF on the shipped human data, as measured before, and what the score does
with bad tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import castle_csf, castle_csf_without, evaluate_csf, thresholds
from psyprobe.human.evaluation import COLUMNS
from psyprobe.human.leave_one_out import fitted_studies


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return thresholds()


def test_the_score_of_castle_csf(table: pd.DataFrame) -> None:
    score = evaluate_csf(table)
    assert score.n == 2295
    assert score.rmse_db == pytest.approx(4.291, abs=5e-4)
    assert score.adjusted_rmse_db == pytest.approx(3.548, abs=5e-4)


def test_the_score_of_each_dataset(table: pd.DataFrame, oracle_data: Path) -> None:
    score = evaluate_csf(table)
    with (oracle_data / "castlecsf" / "castlecsf_scores.csv").open(newline="") as file:
        expected = [
            row for row in csv.DictReader(file) if row["dataset"] in score.datasets
        ]
    assert len(expected) == len(score.datasets) == 18
    for row in expected:
        dataset_score = score.datasets[row["dataset"]]
        assert dataset_score.n == int(row["n"])
        assert dataset_score.rmse_db == pytest.approx(float(row["rmse_dB"]), abs=1e-5)
        assert dataset_score.gain == pytest.approx(
            float(row["geomean_measured_over_predicted"]), abs=1e-5
        )
        assert dataset_score.adjusted_rmse_db == pytest.approx(
            float(row["rmse_dB_after_gain"]), abs=1e-5
        )


def test_any_model_of_the_same_call_can_be_scored(table: pd.DataFrame) -> None:
    def twice_castle(*args: Any, **kwargs: Any) -> Any:
        return 2 * castle_csf(*args, **kwargs)

    plain, twice = evaluate_csf(table), evaluate_csf(table, twice_castle)
    assert twice.adjusted_rmse_db == pytest.approx(plain.adjusted_rmse_db, rel=1e-12)
    for name, score in twice.datasets.items():
        assert score.gain == pytest.approx(plain.datasets[name].gain / 2, rel=1e-12)


def test_part_of_the_table_can_be_scored(table: pd.DataFrame) -> None:
    rows = table["stimulus"] != "disk"
    assert evaluate_csf(table[rows]).n == 1983
    assert evaluate_csf(
        {name: table[name][rows].to_list() for name in COLUMNS}
    ) == evaluate_csf(table[rows])


def test_bad_tables_are_refused(table: pd.DataFrame) -> None:
    columns = {name: table[name].to_numpy()[:3] for name in COLUMNS}
    with pytest.raises(
        InputError,
        match=r"no column dL; give the columns of psyprobe\.human\.thresholds",
    ):
        evaluate_csf({name: value for name, value in columns.items() if name != "dL"})
    with pytest.raises(InputError, match="measured sensitivity of row 1 is 0"):
        evaluate_csf(columns | {"sensitivity": np.array([10.0, 0.0, 10.0])})
    with pytest.raises(InputError, match="predicted sensitivity of row 0 is 0"):
        evaluate_csf(columns, lambda *args, **kwargs: np.zeros(3))
    with pytest.raises(InputError, match="has no rows"):
        evaluate_csf({name: value[:0] for name, value in columns.items()})


#: RMS error in dB of all studies to which castleCSF was fitted, of some without the study, and of
#: all without each: the reference's (statistics, section 3a).
WITHOUT = {
    "modelfest": 2.95,
    "colorfest": 2.93,
    "hdr_csf": 4.49,
    "kim2013": 4.40,
    "hdrvdp_csf": 5.60,
}


def test_castle_csf_without_a_study_errs_there_as_the_reference_says(
    table: pd.DataFrame,
) -> None:
    assert set(fitted_studies()) == set(table["dataset"])
    refitted = evaluate_csf(table, castle_csf_without("all"))
    assert refitted.rmse_db == pytest.approx(3.99, abs=0.005)
    errors = {}
    for study in fitted_studies():
        rows = table[table["dataset"] == study]
        errors[study] = evaluate_csf(rows, castle_csf_without(study)).rmse_db
    assert {name: errors[name] for name in WITHOUT} == pytest.approx(WITHOUT, abs=0.005)
    counts = table["dataset"].value_counts()
    square = sum(counts[name] * error**2 for name, error in errors.items())
    assert np.sqrt(square / len(table)) == pytest.approx(6.36, abs=0.005)


def test_castle_csf_without_an_unknown_study_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="study of castleCSF 'modelfst'"):
        castle_csf_without("modelfst")
