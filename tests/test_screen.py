"""A measured screen against simulated ones whose curves are known."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.experiment.experiment import load_experiment
from psyprobe.light.display import Display, pixels_per_degree
from psyprobe.light.screen import read_screen
from tests.small_experiment import write_experiment

DRIVES = np.arange(0, 256, 15) / 255
HEADER = "drive,luminance_cd_m2"


def lit(
    drive: float, gamma: float = 2.2, black: float = 0.3, peak: float = 120.0
) -> float:
    return black + (peak - black) * float(drive) ** gamma


def write(folder: Path, rows: Iterable[str], header: str = HEADER) -> Path:
    path = folder / "lab.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def rows_of(light: Callable[[float], float] = lit) -> list[str]:
    return [f"{drive!r},{light(drive)!r}" for drive in DRIVES.tolist()]


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(gamma=st.floats(1.0, 2.8), black=st.floats(0.01, 1.0), peak=st.floats(50, 1000))
def test_the_curve_that_was_put_in_comes_back(
    tmp_path: Path, gamma: float, black: float, peak: float
) -> None:
    screen = read_screen(
        write(tmp_path, rows_of(lambda drive: lit(drive, gamma, black, peak)))
    )
    between = np.linspace(0, 1, 1001)
    truth = black + (peak - black) * between**gamma
    assert np.abs(screen.display.decode(between) - truth).max() <= 2e-3 * (peak - black)
    assert screen.residual < 5e-3
    assert screen.repeats == 0
    # The measured points themselves are exact.
    np.testing.assert_allclose(
        screen.display.decode(DRIVES),
        [lit(d, gamma, black, peak) for d in DRIVES],
        rtol=1e-12,
    )
    # Decoding undoes encoding.
    light = np.linspace(black, peak, 501).reshape(1, -1)
    drive = screen.display.encode(light, dtype="float64")[..., 0]
    np.testing.assert_allclose(screen.display.decode(drive), light, rtol=1e-11)
    assert (
        Display.from_dict(json.loads(json.dumps(screen.display.to_dict())))
        == screen.display
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=9, max_size=9),
    st.lists(st.integers(1, 40), min_size=9, max_size=9),
)
def test_a_table_is_scipys_pchip_and_rises(
    drives: list[int], lights: list[int]
) -> None:
    drive, light = (np.cumsum([0, *steps]) / sum(steps) for steps in (drives, lights))
    display = Display(
        peak=1.0, eotf=tuple(zip(drive.tolist(), light.tolist(), strict=True))
    )
    between = np.linspace(0, 1, 2001)
    light_between = display.decode(between)
    np.testing.assert_allclose(
        light_between, PchipInterpolator(drive, light)(between), rtol=0, atol=2e-4
    )
    assert (np.diff(light_between) >= 0).all()


def test_codes_are_drives(tmp_path: Path) -> None:
    for full in (255, 1023, 4095, 65535):
        codes = [f"{round(d * full)},{lit(round(d * full) / full)}" for d in DRIVES]
        display = read_screen(write(tmp_path, codes, "code,luminance_cd_m2")).display
        assert float(display.decode(round(DRIVES[5] * full) / full)) == pytest.approx(
            lit(DRIVES[5]), rel=1e-3
        )


def test_repeats_are_averaged_and_told_where_they_fail(tmp_path: Path) -> None:
    rows = [f"{d},{lit(d) * factor}" for d in DRIVES for factor in (0.99, 1.01)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        screen = read_screen(write(tmp_path, rows))
    assert screen.repeats == pytest.approx(0.01)
    assert screen.display.peak == pytest.approx(120)
    rows = [f"{d},{lit(d) * factor}" for d in DRIVES for factor in (0.95, 1.05)]
    with pytest.warns(
        ConditionWarning,
        match="repeats at drive .* 5 % off their mean; let the screen warm up",
    ):
        read_screen(write(tmp_path, rows))


def with_guns(blue: Callable[[float], float]) -> list[str]:
    """Guns of 20, 70 and 10 % of white's range on a black of 0.3 cd/m²."""
    rows = [f"white,{d},{lit(d)}" for d in DRIVES]
    rows += [f"red,{d},{0.3 + 0.2 * (lit(d) - 0.3)}" for d in DRIVES]
    rows += [f"green,{d},{0.3 + 0.7 * (lit(d) - 0.3)}" for d in DRIVES]
    return rows + [f"blue,{d},{blue(d)}" for d in DRIVES]


def test_guns_that_add_up_pass_and_others_are_told(tmp_path: Path) -> None:
    header = "gun,drive,luminance_cd_m2"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        screen = read_screen(
            write(tmp_path, with_guns(lambda d: 0.3 + 0.1 * (lit(d) - 0.3)), header)
        )
    assert (screen.additivity, screen.gun_curves) == pytest.approx((0, 0), abs=1e-12)
    assert "guns add up to white within" in str(screen)
    with pytest.warns(
        ConditionWarning, match="add up to 5 % of the range more or less than white"
    ) as warned:
        screen = read_screen(
            write(tmp_path, with_guns(lambda d: 0.3 + 0.15 * (lit(d) - 0.3)), header)
        )
    assert screen.additivity == pytest.approx(0.05)
    assert len(warned) == 1
    # A gun with another curve has it, where it was measured often enough to tell.
    rows = with_guns(lambda d: 0.3 + 0.1 * (lit(d, gamma=1.8) - 0.3))
    display = read_screen(write(tmp_path, rows, header)).display
    drive = np.linspace(0, 1, 101)[:, None] * np.ones(3)
    expected = 0.3 + 119.7 * np.linspace(0, 1, 101)[:, None] ** [2.2, 2.2, 1.8]
    np.testing.assert_allclose(display.decode(drive), expected, atol=0.002 * 119.7)
    few_rows = [
        row
        for row in rows
        if "blue" not in row or float(row.split(",")[1]) in (DRIVES[5], DRIVES[9], 1.0)
    ]
    with pytest.warns(
        ConditionWarning,
        match="the curve of a gun is .* % of its range off that of white",
    ):
        read_screen(write(tmp_path, few_rows, header))


def test_noise_is_pooled(tmp_path: Path) -> None:
    # The two lowest codes of a dark screen, the second read a little darker.
    rows = ["0,0.301", "0.01,0.3", *rows_of()[1:]]
    display = read_screen(write(tmp_path, rows)).display
    assert display.black == pytest.approx(0.3005)
    assert (np.diff(display.decode(np.linspace(0, 1, 4001))) > 0).all()


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (
            "drive,luminance",
            rows_of(),
            "has the columns drive, luminance; .*luminance_cd_m2",
        ),
        (
            "level,luminance_cd_m2",
            rows_of(),
            "has the columns level, luminance_cd_m2; give drive",
        ),
        (HEADER, rows_of()[:5], "has white at 5 drives; give at least 8"),
        (HEADER, rows_of()[1:], "measure at 0 .black. and at full drive"),
        (
            HEADER,
            ["0,0", *rows_of()[1:]],
            "luminance of 0 cd/m² at drive 0; .* above 0",
        ),
        (HEADER, [*rows_of(), "0.2,-3"], "luminance of -3 cd/m² at drive 0.2"),
        (HEADER, [*rows_of(), "1.2,130"], "has a drive of 1.2; give 0 to 1"),
        (
            HEADER,
            [*rows_of(), "0.5,100 cd/m²"],
            "'100 cd/m²' as luminance_cd_m2; give a finite number",
        ),
        (HEADER, [*rows_of(), "0.5,nan"], "'nan' as luminance_cd_m2"),
        (HEADER, [*rows_of(), "0.5"], "row 20 has 1 values for 2 columns"),
        (HEADER, [*rows_of(), "0.98,60"], "luminance falls as drive rises about drive"),
        (HEADER, [f"{d},100" for d in DRIVES], "1 drives whose luminances differ"),
        (HEADER, [], "has white at 0 drives"),
        (
            "code,luminance_cd_m2",
            [f"{k},{k + 1}" for k in range(0, 251, 10)],
            "codes from 0 to 250; .* 255, 1023",
        ),
        (
            "code,luminance_cd_m2",
            [f"{k},{k + 1}" for k in np.linspace(0, 255, 9)],
            "whole numbers",
        ),
        (
            "gun,drive,luminance_cd_m2",
            ["grey,0,1"],
            "has the gun 'grey'; give white, red",
        ),
    ],
)
def test_what_cannot_be_a_screen_is_refused(
    tmp_path: Path, header: str, rows: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_screen(write(tmp_path, rows, header))
    assert len(str(refused.value)) < 360


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.csv").write_text("")
    with pytest.raises(InputError, match="columns of an empty file; give drive"):
        read_screen(tmp_path / "lab.csv")


def test_a_page_takes_a_table_from_its_folder(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        ("[display]\npeak = 400\n", '[display]\ntable = "lab.csv"\nambient = 50\n'),
    )
    table = write(path.parent, rows_of(lambda drive: lit(drive, peak=400)))
    assert load_experiment(path).display == read_screen(table, ambient=50).display
    path = write_experiment(
        tmp_path,
        ("[display]\npeak = 400\n", '[display]\ntable = "lab.csv"\npeak = 400\n'),
    )
    with pytest.raises(
        InputError, match=r"display\.peak is given, and so is display\.table"
    ):
        load_experiment(path)


def test_the_command_line_takes_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path, rows_of(lambda drive: lit(drive, peak=400)))
    assert (
        main(
            [
                "check",
                "gabor_achromatic",
                "--set",
                "frequency=4",
                "--display",
                f"table={table}",
            ]
        )
        == 0
    )
    assert "contrast" in capsys.readouterr().out


MEASURED = ((0.65, 0.33), (0.29, 0.62), (0.15, 0.06), (0.31, 0.32))


def test_measured_primaries_are_those_of_colour_science(tmp_path: Path) -> None:
    colour = pytest.importorskip("colour")
    display = read_screen(
        write(tmp_path, rows_of()), primaries=[list(xy) for xy in MEASURED]
    ).display
    expected = colour.normalised_primary_matrix(
        np.array(MEASURED[:3]), np.array(MEASURED[3])
    )
    np.testing.assert_allclose(display.rgb_to_xyz, expected, atol=1e-12)
    assert Display.from_dict(json.loads(json.dumps(display.to_dict()))) == display
    xyz = np.array([[[40.0, 42.0, 45.0]]])
    drive = display.encode(xyz, space="xyz", dtype="float64")
    np.testing.assert_allclose(display.decode(drive) @ expected.T, xyz, rtol=1e-11)
    # White at full drive has the measured chromaticity and the peak of the table.
    white = display.decode(np.ones(3)) @ expected.T
    np.testing.assert_allclose(
        [white[0] / white.sum(), white[1] / white.sum(), white[1]],
        [0.31, 0.32, 120],
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("primaries", "message"),
    [
        (MEASURED[:3], "or .x, y. of red, green, blue and white"),
        (7, "primaries are 7; give a name"),
        ((*MEASURED[:3], (0.7, 0.28)), "do not mix to their white"),
        (
            (MEASURED[0], MEASURED[0], MEASURED[2], MEASURED[3]),
            "do not mix to their white",
        ),
        (((0.65, 0), *MEASURED[1:]), "is not that of a light"),
        ((("a", 0.3), *MEASURED[1:]), "primaries"),
    ],
)
def test_primaries_that_cannot_be_are_refused(primaries: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Display.from_dict({"primaries": primaries})


def test_the_wrong_order_of_pitch_and_distance_is_noticed() -> None:
    with pytest.raises(
        InputError,
        match=r"pixel pitch 570 is longer than the viewing distance 0\.27; the order is",
    ):
        pixels_per_degree(570, 0.27)
