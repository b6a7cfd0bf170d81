"""The error of castleCSF on its human data, as measured before, and what the score does with bad tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.human import castle_csf, evaluate_csf, read_csf_data
from psyprobe.human.evaluation import COLUMNS


@pytest.fixture(scope="module")
def table(oracle_data: Path) -> dict[str, Any]:
    return read_csf_data(oracle_data / "castlecsf" / "human_data")


def test_the_score_of_castle_csf(table: dict[str, Any]) -> None:
    score = evaluate_csf(table)
    assert score.n == 2295
    assert score.rmse_db == pytest.approx(4.291, abs=5e-4)
    assert score.adjusted_rmse_db == pytest.approx(3.548, abs=5e-4)


def test_the_score_of_each_dataset(table: dict[str, Any], oracle_data: Path) -> None:
    score = evaluate_csf(table)
    with (oracle_data / "castlecsf" / "castlecsf_scores.csv").open(newline="") as file:
        expected = [row for row in csv.DictReader(file) if row["dataset"] in score.datasets]
    assert len(expected) == len(score.datasets) == 18
    for row in expected:
        found = score.datasets[row["dataset"]]
        assert found.n == int(row["n"])
        assert found.rmse_db == pytest.approx(float(row["rmse_dB"]), abs=1e-5)
        assert found.gain == pytest.approx(float(row["geomean_measured_over_predicted"]), abs=1e-5)
        assert found.adjusted_rmse_db == pytest.approx(float(row["rmse_dB_after_gain"]), abs=1e-5)


def test_sensitivity_is_one_over_the_contrast_of_the_table(table: dict[str, Any]) -> None:
    np.testing.assert_allclose(table["sensitivity"], 10 ** -table["log_cone_contrast"], rtol=1e-9)


def test_any_model_of_the_same_call_can_be_scored(table: dict[str, Any]) -> None:
    def twice_castle(*args: Any, **kwargs: Any) -> Any:
        return 2 * castle_csf(*args, **kwargs)

    once, twice = evaluate_csf(table), evaluate_csf(table, twice_castle)
    assert twice.adjusted_rmse_db == pytest.approx(once.adjusted_rmse_db, rel=1e-12)
    for name, score in twice.datasets.items():
        assert score.gain == pytest.approx(once.datasets[name].gain / 2, rel=1e-12)


def test_part_of_the_table_can_be_scored(table: dict[str, Any]) -> None:
    rows = table["stimulus"] != "disk"
    assert evaluate_csf({name: table[name][rows] for name in COLUMNS}).n == 1983


def test_bad_tables_are_refused(table: dict[str, Any]) -> None:
    few = {name: table[name][:3] for name in COLUMNS}
    with pytest.raises(InputError, match="no column direction; join"):
        evaluate_csf({name: value for name, value in few.items() if name != "direction"})
    with pytest.raises(InputError, match="measured sensitivity of row 1 is 0"):
        evaluate_csf(few | {"sensitivity": np.array([10.0, 0.0, 10.0])})
    with pytest.raises(InputError, match="predicted sensitivity of row 0 is 0"):
        evaluate_csf(few, lambda *args, **kwargs: np.zeros(3))
    with pytest.raises(InputError, match="has no rows"):
        evaluate_csf({name: value[:0] for name, value in few.items()})


def write(path: Path, *lines: str) -> None:
    path.write_text("\n".join(lines) + "\n")


def test_tables_that_do_not_join_are_refused(tmp_path: Path) -> None:
    data, directions = tmp_path / "data_aggregated.csv", tmp_path / "color_directions.csv"
    with pytest.raises(InputError, match=r"has no data_aggregated\.csv"):
        read_csf_data(tmp_path)
    write(data, "dataset,bkg_id,col_dir_id", "mine,1,1")
    write(tmp_path / "backgrounds.csv", "bkg_id,L,M,S", "1,70,30,2")
    write(directions, "dataset,col_dir_id,L_delta,M_delta,S_delta", "other,1,1,0,0")
    with pytest.raises(InputError, match=r"color_directions\.csv has no row for mine 1"):
        read_csf_data(tmp_path)
    write(directions, "dataset,col_dir_id,L_delta,M_delta,S_delta", "mine,1,1,0,0", "mine,1,0,1,0")
    with pytest.raises(InputError, match="two rows for mine 1"):
        read_csf_data(tmp_path)
    write(directions, "dataset,col_dir_id,L_delta,M_delta,S_delta")
    with pytest.raises(InputError, match="has no rows"):
        read_csf_data(tmp_path)
