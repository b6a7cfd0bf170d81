"""Ideal observers and equivalent noise against tables of their own kind (tests/data/decisions)."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis.efficiency.equivalent_noise import fit_equivalent_noise
from psyprobe.analysis.efficiency.ideal_observer import (
    d_prime_at,
    ideal_contrast,
    ideal_d_prime,
    ideal_identification,
    proportion_correct,
    signal_energy,
    uncertain_proportion_correct,
    yes_no_phase_unknown,
)
from psyprobe.errors import InputError

FOLDER = Path(__file__).parents[1] / "data" / "decisions"


def rows(name: str) -> list[dict[str, Any]]:
    """Rows of a table, numbers as floats."""

    def value(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text

    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: value(text) for key, text in row.items()}
            for row in csv.DictReader(file)
        ]


def signals(row: dict[str, Any], **parameters: Any) -> Any:
    """Gabors of a row at contrast 1, as contrast."""
    stimulus = pp.gabor(
        frequency=row["frequency_cpd"],
        radius=row["radius_deg"],
        contrast=1,
        luminance=100,
        ppd=row.get("ppd", 60),
        size=int(row.get("size_px", 224)),
        **parameters,
    )
    return stimulus.luminance / 100 - 1


def test_proportions_of_forced_choices() -> None:
    for row in rows("mafc"):
        m = int(row["m"])
        assert proportion_correct(row["d"], m) == pytest.approx(
            row["pc_known"], rel=1e-9
        )
        unknown = row["pc_phase_unknown"]
        if unknown != "":
            assert proportion_correct(row["d"], m, phase_known=False) == pytest.approx(
                unknown, rel=1e-9
            )
    for row in rows("mafc_inverse"):
        assert d_prime_at(row["pc"], int(row["m"])) == pytest.approx(row["d"], rel=1e-9)


def test_uncertainty() -> None:
    for row in rows("uncertain"):
        m = int(row["m"])
        d = row["d"]
        expected = row["pc_2afc_largest"]
        assert uncertain_proportion_correct(d, m) == pytest.approx(expected, rel=1e-8)
        expected = row["pc_2afc_largest_energy"]
        assert uncertain_proportion_correct(d, m, phase_known=False) == pytest.approx(
            expected, rel=1e-8
        )
        if row["pc_yes_no_phase_unknown"] != "":
            assert yes_no_phase_unknown(d) == pytest.approx(
                row["pc_yes_no_phase_unknown"], rel=1e-8
            )


@pytest.mark.parametrize("row", rows("ideal_thresholds"), ids=str)
def test_thresholds_of_gabors(row: dict[str, Any]) -> None:
    ppd = row["ppd"]
    density = row["psd_deg2"]
    signal = signals(row)
    energy = signal_energy(signal, ppd)
    assert energy == pytest.approx(row["energy_at_contrast_1_deg2"], rel=1e-9)
    unit = ideal_d_prime(signal, density, ppd)
    assert 1 / unit == pytest.approx(row["contrast_dprime_1"], rel=1e-9)
    for proportion, m, name in (
        (0.75, 2, "contrast_2afc_75"),
        (0.625, 4, "contrast_4afc_625"),
    ):
        assert d_prime_at(proportion, m) / unit == pytest.approx(row[name], rel=1e-9)
    if abs(row["sine_over_cosine_energy"] - 1) < 0.01:
        unknown = d_prime_at(0.75, phase_known=False) / unit
        assert unknown == pytest.approx(
            row["contrast_2afc_75_phase_unknown_approx"], rel=1e-6
        )
    for orientations, proportion, name, bound in (
        ([0, 90], 0.75, "contrast_orientation_75", 1e-9),
        ([0, 45, 90, 135], 0.625, "contrast_orientation_4_625", 1e-3),
    ):
        turned = signals(row, orientation=orientations)
        threshold = ideal_contrast(
            lambda contrast, turned=turned: ideal_identification(
                contrast * turned, density, ppd
            ),
            proportion,
            low=row[name] / 3,
            high=row[name] * 3,
        )
        assert threshold == pytest.approx(row[name], rel=bound)


def test_coloured_noise() -> None:
    lowest = 60 / 224
    for row in rows("coloured"):
        scale = float(row["psd"].split("=")[1].split("/")[0].split("for")[0].split()[0])

        def density(frequency: Any, scale: float = scale, row: Any = row) -> Any:
            if row["noise"] == "pink":
                return scale / np.maximum(frequency, lowest) ** 2
            if row["noise"] == "band":
                return np.where((frequency >= 2) & (frequency <= 8), 1e-5, 1e-6)
            return np.full_like(frequency, scale)

        d_prime = ideal_d_prime(0.01 * signals(row), density, 60)
        assert d_prime == pytest.approx(row["dprime_at_contrast_0.01"], rel=1e-9)


def test_white_noise_as_a_function_is_white_noise_as_a_number() -> None:
    signal = 0.01 * signals({"frequency_cpd": 4, "radius_deg": 0.5})
    number = ideal_d_prime(signal, 2e-6, 60)
    function = ideal_d_prime(signal, lambda f: np.full_like(f, 2e-6), 60)
    assert number == pytest.approx(function, rel=1e-12)


def test_noise_that_is_silent_somewhere_is_refused() -> None:
    with pytest.raises(InputError, match="the ideal observer never errs"):
        ideal_d_prime(np.ones((8, 8)), lambda f: (f > 1).astype(float), 60)


@pytest.mark.parametrize("row", rows("equivalent_noise_fits"), ids=str)
def test_equivalent_noise(row: dict[str, Any]) -> None:
    points = [
        point
        for point in rows("equivalent_noise_points")
        if point["dataset"] == row["dataset"]
    ]
    fit = fit_equivalent_noise(
        [point["psd_deg2"] for point in points],
        [point["contrast_dprime_1"] for point in points],
        energy=row["energy_at_contrast_1_deg2"],
        sd=row["assumed_sd_log10"],
    )
    bound = 1e-4 if row["noise_log10_contrast"] else 1e-6
    assert math.log10(fit.efficiency) == pytest.approx(
        row["log10_efficiency"], abs=bound
    )
    expected = (row["low"], row["high"])
    assert np.log10(fit.efficiency_interval) == pytest.approx(expected, abs=1e-4)
    low, high = fit.density_interval
    assert math.log10(high) == pytest.approx(row["high_psd"], abs=1e-4)
    assert fit.rms_residual == pytest.approx(row["rms_residual"], abs=bound)
    if row["log10_psd_equivalent"] == "":
        assert fit.density is None
        assert low == 0
        assert "below" in str(fit)
    else:
        assert fit.density is not None
        assert math.log10(fit.density) == pytest.approx(
            row["log10_psd_equivalent"], abs=bound
        )
        assert math.log10(low) == pytest.approx(row["low_psd"], abs=1e-4)


def test_too_little_noise_is_refused() -> None:
    with pytest.raises(InputError, match="at least 3"):
        fit_equivalent_noise([0, 1e-7], [0.01, 0.01], energy=0.4)
