"""Human data in the package: equal to the digitised tables, with their sources."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from psyprobe.errors import UnknownNameError
from psyprobe.human import masking_data, matching_data


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_masking_data_are_the_digitised_points_of_the_protocol(
    oracle_data: Path,
) -> None:
    folder = oracle_data / "encoder_protocol"
    foley = [
        r for r in rows(folder / "foley1994_masking.csv") if r["in_gt_json"] == "1"
    ]
    noise = rows(folder / "gegenfurtner_kiper1992_noise_masking.csv")
    for name, table, column in (
        ("foley1994", foley, "mask_contrast"),
        ("gegenfurtner_kiper1992", noise, "mask_rms_contrast"),
    ):
        data = masking_data(name)
        np.testing.assert_array_equal(
            data.mask_contrast, [float(r[column]) for r in table]
        )
        np.testing.assert_array_equal(
            data.threshold, [float(r["threshold_contrast"]) for r in table]
        )
        np.testing.assert_array_equal(
            data.scored, [r["used_in_alignment_score"] == "1" for r in table]
        )


def test_scored_masks_lie_between_the_papers_limits() -> None:
    for name, scored in (("foley1994", 8), ("gegenfurtner_kiper1992", 6)):
        data = masking_data(name)
        np.testing.assert_array_equal(
            data.scored, (data.mask_contrast > 0.005) & (data.mask_contrast < 0.25)
        )
        assert data.scored.sum() == scored


def test_matching_data_are_the_digitised_points(oracle_data: Path) -> None:
    data = matching_data()
    table = rows(
        oracle_data / "encoder_protocol" / "georgeson_sullivan1975_matching.csv"
    )
    for row in table:
        k = list(data.reference_contrast).index(float(row["reference_contrast"]))
        f = list(data.frequency).index(float(row["test_frequency_cpd"]))
        assert data.matched_contrast[k, f] == float(row["matched_contrast"])
    assert len(table) == data.matched_contrast.size == 72


@pytest.mark.parametrize(
    "data",
    [
        masking_data("foley1994"),
        masking_data("gegenfurtner_kiper1992"),
        matching_data(),
    ],
)
def test_human_data_name_the_study_and_who_digitised_it(data: object) -> None:
    assert any(
        name in data.citation
        for name in ("Foley, J. M. (1994)", "Gegenfurtner", "Georgeson")
    )
    assert "Digitised by Cai" in data.citation


def test_an_unknown_study_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="foley1994"):
        masking_data("foley")
