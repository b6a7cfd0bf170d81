"""The dither of the page: its integers against a table, and contrasts too small for 8 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shader_twin import _hash, _pcg, dithered, fractions

import psyprobe as pp
from psyprobe.observers.human_screen import Dither

DISPLAY, MEAN, PPD, SIDE = pp.Display(peak=200), 40.0, 48, 128


def gabor(contrast: float, frequency: float, sigma: float = 0.5) -> np.ndarray:
    """Relative modulation of 1 at the peak, times contrast: light of `MEAN` and its drive."""
    places = (np.arange(SIDE) - (SIDE - 1) / 2) / PPD
    x, y = np.meshgrid(places, places)
    return (
        contrast
        * np.exp(-(x**2 + y**2) / (2 * sigma**2))
        * np.cos(2 * np.pi * frequency * x)
    )


def drive_of(wave: np.ndarray) -> np.ndarray:
    return np.asarray(DISPLAY.encode(MEAN * (1 + wave), dtype="float64"))[..., 0]


def delivered(wave: np.ndarray, frames: list[np.ndarray]) -> float:
    """Slope of the mean light of frames over the wave of contrast 1."""
    light = np.mean([DISPLAY.decode(frame / 255) for frame in frames], axis=0)
    centred = wave - wave.mean()
    return float((centred * light / MEAN).sum() / (centred**2).sum())


def test_the_hash_has_the_published_values() -> None:
    assert [int(_pcg(np.uint32([number]))[0]) for number in (0, 1)] == [
        129708002,
        2831084092,
    ]
    assert int(_hash(np.uint32([1]), 2, 3)[0]) == 3847790828


def test_pixels_of_the_table(oracle_data: Path) -> None:
    for row in pd.read_csv(
        oracle_data / "people/golden_dither_oracle.csv"
    ).itertuples():
        u = float(fractions(row.x, row.y, row.frame, row.seed))
        assert u == pytest.approx(row.u, abs=6e-9)
        angle, phase = np.radians(row.orientation_deg), np.radians(row.phase_deg)
        x, y = row.x - (row.size_px - 1) / 2, row.y - (row.size_px - 1) / 2
        turn = (
            2
            * np.pi
            * row.frequency_cpd
            / row.ppd
            * (x * np.cos(angle) + y * np.sin(angle))
            + phase
        )
        wave = np.exp(-(x**2 + y**2) / (2 * row.sigma_px**2)) * np.cos(turn)
        light = row.mean_cd_m2 * (1 + row.contrast * wave)
        assert light == pytest.approx(row.luminance_cd_m2, abs=1e-9)
        drive = float(
            pp.Display(peak=row.peak_cd_m2).encode(
                np.array([[light]]), dtype="float64"
            )[0, 0, 0]
        )
        assert 255 * drive == pytest.approx(row.drive_times_255, abs=1e-7)
        image = np.zeros((row.y + 1, row.x + 1))
        image[row.y, row.x] = drive
        assert dithered(image, row.frame, row.seed)[row.y, row.x] == row.code


@pytest.mark.parametrize(
    ("method", "bound"), [("golden", 0.02), ("noisy_bit", 0.25), ("wide", 0.5)]
)
def test_contrasts_below_one_code_arrive(method: Dither, bound: float) -> None:
    wave = gabor(1.0, 4)
    frames = [dithered(drive_of(0.001 * wave), frame, 7, method) for frame in range(30)]
    assert abs(delivered(wave, frames) / 0.001 - 1) < bound
    rounded = [np.rint(255 * drive_of(0.001 * wave))]
    assert delivered(wave, rounded) == pytest.approx(0, abs=1e-9), (
        "without dither nothing is shown"
    )


def test_the_mean_is_kept_and_trials_differ() -> None:
    flat = drive_of(gabor(0.0, 4))
    frames = [dithered(flat, frame, 5) for frame in range(60)]
    assert np.mean(frames) == pytest.approx(255 * flat.mean(), abs=2e-3)
    assert not np.array_equal(frames[0], dithered(flat, 0, 6))
    assert np.array_equal(frames[3], dithered(flat, 3, 5))


def test_the_ends_of_the_range_do_not_wrap() -> None:
    for method in ("golden", "wide"):
        frames = [
            dithered(np.array([[0.0, 1.0]]), frame, 1, method) for frame in range(50)
        ]  # type: ignore[arg-type]
        assert (
            np.array(frames)[:, 0, 0].max() <= 8
            and np.array(frames)[:, 0, 1].min() >= 247
        )
