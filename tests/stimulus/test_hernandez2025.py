"""The chat experiment's two greys: neutral code 128, and the laboratory's ATD grey, against its own
codes."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from psyprobe.light.display import Display
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.testing import assert_calibrated

#: The laboratory's variant of Jameson and Hurvich's opponent space: A = Y, T = X - Y, D = 0.4 (Y -
#: Z).
XYZ_TO_ATD = np.array([[0.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.4, -0.4]])


def test_atd_codes_are_those_of_the_oracle(oracle_data: Path) -> None:
    with (oracle_data / "chat_csf" / "atd_rgb_oracle.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = np.array(
            [[float(value) for value in row] for row in list(csv.reader(file))[1:]]
        )
    atd, xyz, linear, square_root, gamma = (rows[:, i : i + 3] for i in range(0, 15, 3))
    display = Display.preset("hernandez2025_atd")
    np.testing.assert_allclose(xyz @ XYZ_TO_ATD.T, atd, atol=1e-12)
    np.testing.assert_allclose(atd @ np.linalg.inv(XYZ_TO_ATD).T, xyz, atol=1e-9)
    image = xyz[:, None, :]
    np.testing.assert_allclose(
        display.light(image, "xyz")[:, 0] / display.peak, linear, atol=1e-8
    )
    codes = 255 * display.encode(image, space="xyz", dtype="float64")[:, 0]
    np.testing.assert_allclose(codes, square_root, atol=1e-4)
    # The laboratory's newer encoding has an exponent for each channel: 2.2, 2.2 and 2.1.
    for channel, exponent in enumerate((2.2, 2.2, 2.1)):
        other = Display(peak=display.peak, primaries=display.primaries, eotf=exponent)
        codes = 255 * other.encode(image, space="xyz", dtype="float64")[:, 0]
        np.testing.assert_allclose(codes[:, channel], gamma[:, channel], atol=1e-4)


def test_full_drive_of_the_laboratory_display() -> None:
    display = Display.preset("hernandez2025_atd")
    xyz = display.rgb_to_xyz @ np.full(3, display.peak)
    assert xyz[1] == pytest.approx(171.1976, rel=1e-12)
    assert [round(float(v), 4) for v in xyz[:2] / xyz.sum()] == [0.3201, 0.3257]


def test_catalogue_page_is_the_atd_grey() -> None:
    page, display = (
        load_stimulus("noise_hernandez2025_atd"),
        Display.preset("hernandez2025_atd"),
    )
    stimulus = page.spec().draw()
    assert_calibrated(stimulus, display=display)
    codes = 255 * display.encode(page.spec(contrast=0).draw(), dtype="float64")[0, 0]
    np.testing.assert_allclose(codes, [130.68357, 121.43231, 117.71113], atol=1e-4)


def test_neutral_page_stands_on_code_128() -> None:
    page, display = (
        load_stimulus("noise_hernandez2025"),
        Display.preset("hernandez2025"),
    )
    assert_calibrated(page.spec().draw(), display=display)
    drive = display.encode(page.spec(contrast=0).draw(), dtype="float64")
    np.testing.assert_allclose(255 * drive, 128, atol=1e-9)
    # Between two codes nothing is left of it by rounding alone: the levels differ by less than half
    # a step.
    faint = np.rint(255 * display.encode(page.spec(contrast=0.002).draw()))
    assert (faint == 128).all()
