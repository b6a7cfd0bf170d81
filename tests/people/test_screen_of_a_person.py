"""Geometry and light of a person's screen, against tables that were computed apart from the
package."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psyprobe as pp
from psyprobe.errors import GamutError, InputError
from psyprobe.light.display import pixels_per_degree
from psyprobe.observers.human_screen import threshold_error
from psyprobe.observers.people.by_eye import (
    blind_spot_distance,
    gamma_of_match,
    pixel_pitch,
)


@pytest.fixture
def tables(oracle_data: Path) -> Path:
    return oracle_data / "people"


def test_a_card_and_a_tape_give_degrees(tables: Path) -> None:
    for row in pd.read_csv(tables / "geometry.csv").itertuples():
        pitch = pixel_pitch(row.card_css_px, row.device_pixel_ratio)
        assert pitch == pytest.approx(row.pitch_mm, abs=5e-7)
        assert pixels_per_degree(pitch, row.distance_mm) == pytest.approx(
            row.ppd_centre, abs=5e-5
        )


@pytest.mark.parametrize("card", [100, 800, math.nan])
def test_what_is_no_screen_is_refused(card: float) -> None:
    with pytest.raises(InputError):
        pixel_pitch(card)


def test_the_blind_spot_errs_by_its_angle(tables: Path) -> None:
    for row in pd.read_csv(tables / "blind_spot.csv").itertuples():
        estimated = blind_spot_distance(row.offset_mm, row.assumed_deg)
        true = blind_spot_distance(row.offset_mm, row.true_deg)
        assert [estimated, true] == pytest.approx(
            [row.distance_mm, row.true_distance_mm], abs=1e-3
        )
        assert estimated / true - 1 == pytest.approx(row.relative_error, abs=1e-5)


def test_gamma_is_read_off_stripes(tables: Path) -> None:
    for row in pd.read_csv(tables / "gamma_match.csv").itertuples():
        if round(row.duty_bright, 6) not in (0.25, 0.5, 0.75):
            continue  # other shares stand rounded
        assert gamma_of_match(row.duty_bright, row.match_drive) == pytest.approx(
            row.gamma_from_match, abs=2e-5
        )
        off = gamma_of_match(row.duty_bright, row.match_drive + 1 / 255)
        assert off == pytest.approx(row[7], abs=3e-5)


@given(st.floats(1.0, 4.0), st.floats(0.05, 0.95))
def test_a_power_law_is_found_whatever_the_share(gamma: float, share: float) -> None:
    assert gamma_of_match(share, share ** (1 / gamma)) == pytest.approx(gamma, rel=1e-9)


def test_what_a_wrong_screen_does_to_a_threshold(tables: Path) -> None:
    def display(
        curve: str | float, peak: float, black: float, reflected: float
    ) -> pp.Display:
        eotf = curve if curve == "srgb" else float(curve)
        return pp.Display(
            peak=peak,
            black=black,
            eotf=eotf,
            ambient=math.pi * reflected,
            reflectivity=1,
        )

    for row in pd.read_csv(tables / "display_errors.csv").itertuples():
        assumed = display(
            row.assumed_eotf, row.assumed_peak, row.assumed_black, row.assumed_reflected
        )
        true = display(row.true_eotf, row.true_peak, row.true_black, row.true_reflected)
        mean, error = threshold_error(assumed, true, row.mean_asked, row.contrast_asked)
        assert mean == pytest.approx(row.mean_true, abs=2e-6)
        assert float(error) == pytest.approx(row.log10_threshold_error, abs=1e-6)


def test_the_right_screen_is_no_error_and_a_dim_one_is_refused() -> None:
    screen = pp.Display(peak=200, black=0.3, eotf=2.3)
    _, error = threshold_error(screen, screen, 40, np.array([0.001, 0.01, 0.5]))
    np.testing.assert_allclose(error, 0, atol=1e-12)
    with pytest.raises(GamutError, match="60 cd/m² is above"):
        threshold_error(pp.Display(peak=50), screen, 40, 0.5)
