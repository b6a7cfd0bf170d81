"""Sensitivity over temporal frequency: castleCSF's and elaTCSF's against independent values, and
the measured table."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.human import castle_csf, ela_tcsf, flicker_thresholds, load_reference
from psyprobe.human.reference import human_inputs

Reader = Callable[..., dict[str, Any]]


def test_castle_csf_over_temporal_frequency(oracle_data: Path) -> None:
    text = (oracle_data / "new_probes" / "oracle_temporal_castlecsf.csv").read_text(
        encoding="utf-8"
    )
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["direction"] for row in rows} == {"achromatic", "red_green"} and len(
        rows
    ) > 20
    for row in rows:
        sensitivity = castle_csf(
            float(row["frequency_cpd"]),
            luminance=float(row["luminance_cd_m2"]),
            area=float(row["area_deg2"]),
            temporal_frequency=float(row["temporal_frequency_hz"]),
            direction=row["direction"],
        )
        assert sensitivity == pytest.approx(float(row["sensitivity"]), rel=1e-12)


def test_ela_tcsf_equals_the_oracle(oracle: Reader) -> None:
    columns = oracle("new_probes/oracle_flicker_elatcsf.csv")
    sensitivities = ela_tcsf(
        luminance=columns["luminance_cd_m2"],
        disc_radius=columns["radius_deg"],
        temporal_frequency=columns["temporal_frequency_hz"],
        eccentricity=columns["eccentricity_deg"],
    )
    np.testing.assert_allclose(sensitivities, columns["sensitivity"], rtol=1e-7)


def test_ela_tcsf_follows_what_people_saw() -> None:
    """Its own data to 0.12 log10 units; those of others, at sensitivities of their own, in
    shape."""
    table = flicker_thresholds()
    assert len(table) == 532 and table["dataset"].nunique() == 8
    for name, rows in table[np.isfinite(table["radius"])].groupby("dataset"):
        sensitivities = ela_tcsf(
            luminance=rows["luminance"].to_numpy(),
            disc_radius=rows["radius"].to_numpy(),
            temporal_frequency=rows["temporal_frequency"].to_numpy(),
            eccentricity=rows["eccentricity"].to_numpy(),
        )
        error = np.log10(sensitivities / rows["sensitivity"])
        assert error.std() < 0.3, name
        if name == "yancheng2024":
            assert np.sqrt(np.mean(error**2)) < 0.12


def test_a_disc_tells_its_radius_and_a_gabor_its_area() -> None:
    disc = human_inputs({"radius": 1.5, "luminance": 100.0, "temporal_frequency": 8.0})
    for name, model in (("ela_tcsf", ela_tcsf), ("castle_csf", castle_csf)):
        people = load_reference({"model": name}, Path())
        levels = {"temporal_frequency": np.array([2.0, 8.0])}
        expected = model(
            luminance=100.0, disc_radius=1.5, direction="achromatic", **levels
        )
        np.testing.assert_allclose(
            people.sensitivity(**{**disc, **levels}), expected, rtol=1e-12
        )
    gabor = human_inputs({"radius": 1.5, "luminance": 100.0, "frequency": 4.0})
    expected = castle_csf(
        4.0, luminance=100.0, area=np.pi * 1.5**2, direction="achromatic"
    )
    assert people.sensitivity(**gabor) == pytest.approx(expected, rel=1e-12)


def test_ela_tcsf_refuses_what_it_has_not() -> None:
    with pytest.raises(InputError, match="frequency=4 cannot be given to elaTCSF"):
        ela_tcsf(4, luminance=100, disc_radius=1)
    with pytest.raises(InputError, match="elaTCSF has none below"):
        ela_tcsf(luminance=0.0001, disc_radius=1)
    with pytest.raises(InputError, match="did you mean 'deLange1958'"):
        flicker_thresholds("delange1958")
