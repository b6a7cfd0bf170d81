"""Screens whose guns, black and primaries were measured, against physics and colour-science."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.cli import main
from psyprobe.errors import ConditionWarning, GamutError, InputError
from psyprobe.experiment.experiment import load_experiment
from psyprobe.light.display import Display
from psyprobe.light.readings import spectra_to_xyz
from psyprobe.light.screen import read_screen
from psyprobe.stimulus import Gabor, gabor
from psyprobe.testing import assert_calibrated
from tests.small_experiment import write_experiment

GAMMAS = np.array([2.3, 2.1, 1.9])
#: (x, y) of a wide-gamut screen, and the luminances of its guns in cd/m².
XY = np.array([(0.66, 0.32), (0.27, 0.66), (0.15, 0.05)])
LIGHT = np.array([28.0, 80.0, 9.0])
BLACK = np.array([0.20, 0.18, 0.45])
LEVELS = np.arange(0, 256, 15)


def xyz_of(xy: np.ndarray, luminance: np.ndarray) -> np.ndarray:
    x, y = xy.T
    return np.stack([x / y * luminance, luminance, (1 - x - y) / y * luminance], axis=1)


GUNS = xyz_of(XY, LIGHT)


def tristimulus(drive: np.ndarray) -> np.ndarray:
    """XYZ of a screen: its black, and the light of each gun above it."""
    return BLACK + drive**GAMMAS @ GUNS


def rows_of(levels: np.ndarray = LEVELS) -> list[tuple[str, int, np.ndarray]]:
    """Guns and levels, and the XYZ that a meter reads."""
    guns = {"white": (1, 1, 1), "red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}
    return [
        (gun, int(level), tristimulus(level / 255 * np.array(on)))
        for gun, on in guns.items()
        for level in levels
    ]


def write(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@settings(max_examples=60, deadline=None)
@given(
    eotfs=st.tuples(*[st.one_of(st.just("srgb"), st.floats(1.0, 2.8))] * 3),
    blacks=st.tuples(*[st.floats(0.0, 2.0)] * 3),
    level=st.floats(0.1, 0.9),
)
def test_guns_of_their_own_are_inverted_exactly(
    eotfs: Any, blacks: Any, level: float
) -> None:
    display = Display(peak=150, black=blacks, eotf=eotfs, ambient=50)
    luminance = display.floor + level * (display.ceiling - display.floor)
    for direction in ("achromatic", "red_green"):
        contrast = 0.99 * min(1.0, display.max_contrast(luminance, direction))
        stimulus = gabor(
            frequency=3,
            contrast=contrast,
            luminance=luminance,
            radius=0.3,
            direction=direction,
            size=48,
        )
        drive = display.encode(stimulus, dtype="float64")
        light = np.asarray(display.light(stimulus))
        expected = light[..., None] if light.ndim == 2 else light
        np.testing.assert_allclose(
            display.decode(drive) - expected, 0, atol=1e-11 * luminance
        )
        assert display.gamut(stimulus).outside == 0
    assert Display.from_dict(json.loads(json.dumps(display.to_dict()))) == display
    # Physics: what black and guns add up to.
    black = float(display.rgb_to_xyz[1] @ np.array(blacks))
    assert display.luminance(np.zeros(3)) == pytest.approx(
        black + display.reflected, rel=1e-12
    )
    assert display.luminance(np.ones(3)) == pytest.approx(
        display.peak + display.reflected, rel=1e-12
    )


def test_what_a_gun_cannot_show_is_refused() -> None:
    display = Display(peak=100, black=(0.1, 0.1, 3.0))
    with pytest.raises(GamutError, match="below what this display shows"):
        display.encode([[2.0]])
    with pytest.raises(
        InputError, match=r"guns of this display differ; give red, green and blue"
    ):
        display.decode(np.ones((4, 4)))
    with pytest.raises(InputError, match="display black has 2 numbers"):
        Display(black=(0.1, 0.2))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["X,Y,Z", "x,y,Y"])
def test_a_screen_comes_back_from_its_tristimulus_values(
    tmp_path: Path, form: str
) -> None:
    lines = []
    for gun, level, xyz in rows_of():
        values = xyz if form == "X,Y,Z" else [*(xyz[:2] / xyz.sum()), xyz[1]]
        lines.append(
            f"{gun},{level}," + ",".join(repr(float(value)) for value in values)
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        screen = read_screen(write(tmp_path / "lab.csv", f"gun,code,{form}", lines))
    assert screen.additivity == pytest.approx(0, abs=1e-12)
    assert (
        screen.display.guns_differ
        and "each gun with its own curve and black" in str(screen)
    )
    drive = np.random.default_rng(1).uniform(0, 1, (200, 3))
    measured_light = screen.display.decode(drive) @ screen.display.rgb_to_xyz.T
    np.testing.assert_allclose(
        measured_light, tristimulus(drive), atol=1e-3 * tristimulus(np.ones(3)).max()
    )
    np.testing.assert_allclose(
        screen.display.decode(np.zeros(3)) @ screen.display.rgb_to_xyz.T,
        BLACK,
        rtol=1e-9,
    )
    # A stimulus that goes through the display is shown by the screen as it was asked.
    specification = Gabor(frequency=3, contrast=0.3, luminance=50, radius=0.3, size=64)
    drive = np.asarray(screen.display.encode(specification.draw(), dtype="float64"))
    light = tristimulus(drive)[..., 1]
    assert np.abs(light - specification.draw().luminance).max() < 0.1
    assert_calibrated(drive, specification, space="encoded", display=screen.display)


def test_guns_that_do_not_add_up_are_told(tmp_path: Path) -> None:
    rows = [
        f"{gun},{level},"
        + ",".join(repr(float(v)) for v in (xyz * (1.06 if gun == "white" else 1)))
        for gun, level, xyz in rows_of()
    ]
    with pytest.warns(
        ConditionWarning, match="add up to 5.* % of the range more or less than white"
    ):
        read_screen(write(tmp_path / "lab.csv", "gun,code,X,Y,Z", rows))


# -- spectra
# ------------------------------------------------------------------------------------------

NM = np.arange(380.0, 781.0, 4.0)


def bumps() -> np.ndarray:
    """Radiance of three guns, W/(sr m² nm)."""
    return np.stack(
        [0.002 * np.exp(-0.5 * ((NM - at) / 18) ** 2) for at in (620, 535, 455)]
    )


@pytest.mark.parametrize("cmfs", ["cie1931", "cie2006"])
def test_spectra_are_integrated_as_by_colour_science(cmfs: str) -> None:
    colour = pytest.importorskip("colour")
    name = {
        "cie1931": "CIE 1931 2 Degree Standard Observer",
        "cie2006": "CIE 2015 2 Degree Standard Observer",
    }[cmfs]
    for spectrum, tristimulus_values in zip(
        bumps(), spectra_to_xyz(NM, bumps(), cmfs), strict=True
    ):
        sd = colour.SpectralDistribution(
            dict(zip(NM, spectrum, strict=True))
        ).interpolate(colour.SpectralShape(380, 780, 1))
        ones = colour.sd_ones(sd.shape)
        expected = colour.sd_to_XYZ(
            sd,
            colour.MSDS_CMFS[name].copy().align(sd.shape),
            ones,
            k=683.002,
            method="Integration",
        )
        # colour-science takes spectra as percentages.
        np.testing.assert_allclose(
            tristimulus_values, 100 * expected, rtol=2e-4, atol=1e-3
        )


def test_a_black_body_has_the_chromaticity_of_its_temperature() -> None:
    pytest.importorskip("colour")
    metres = np.arange(360, 831) * 1e-9
    planck = 1.191042972e-16 / (metres**5 * np.expm1(0.01438776877 / (metres * 6500)))
    xyz = spectra_to_xyz(np.arange(360.0, 831.0), planck[None])[0]
    np.testing.assert_allclose(xyz[:2] / xyz.sum(), (0.3135, 0.3237), atol=2e-4)


def test_spectra_of_guns_side_by_side_and_row_by_row(tmp_path: Path) -> None:
    pytest.importorskip("colour")
    guns = bumps()
    columns = np.stack([NM, *guns, guns.sum(axis=0)], axis=1)
    lines = [",".join(map(repr, map(float, row))) for row in columns]
    side_by_side = write(
        tmp_path / "spectra.csv", "wavelength_nm,red,green,blue,white", lines
    )
    lines = [
        f"{gun},255," + ",".join(map(repr, map(float, row)))
        for gun, row in zip(("red", "green", "blue"), guns, strict=True)
    ]
    by_row = write(
        tmp_path / "meter.csv", "gun,code," + ",".join(f"{nm:g}" for nm in NM), lines
    )
    xyz = spectra_to_xyz(NM, guns)
    expected = Display(primaries=[*xyz, xyz.sum(axis=0)])
    for path in (side_by_side, by_row):
        display = read_screen(path, eotf=[2.2, 2.1, 2.0]).display
        np.testing.assert_allclose(display.rgb_to_xyz, expected.rgb_to_xyz, rtol=1e-12)
        assert display.peak == pytest.approx(xyz[:, 1].sum(), rel=1e-12)
        assert display.eotf == (2.2, 2.1, 2.0)
    # The luminances of a photometer, and the primaries of a spectroradiometer.
    lab = write(
        tmp_path / "lab.csv",
        "code,luminance_cd_m2",
        [f"{v},{0.3 + 99.7 * (v / 255) ** 2.2!r}" for v in LEVELS.tolist()],
    )
    display = read_screen(lab, spectra=side_by_side).display
    np.testing.assert_allclose(display.rgb_to_xyz, expected.rgb_to_xyz, rtol=1e-9)
    assert display.peak == pytest.approx(100)
    page = write_experiment(
        tmp_path,
        (
            "[display]\npeak = 400\n",
            '[display]\ntable = "lab.csv"\nspectra = "spectra.csv"\n',
        ),
    )
    for path in (lab, side_by_side):
        (page.parent / path.name).write_bytes(path.read_bytes())
    assert load_experiment(page).display == display
    assert (
        main(
            [
                "check",
                "gabor_achromatic",
                "--set",
                "luminance=40",
                "--display",
                f"table={lab}",
                f"spectra={side_by_side}",
            ]
        )
        == 0
    )


# -- PsychoPy
# ------------------------------------------------------------------------------------------


def array(values: Any) -> dict[str, Any]:
    """An array as json_tricks writes it."""
    values = np.asarray(values, float)
    return {
        "__ndarray__": values.tolist(),
        "dtype": "float64",
        "shape": list(values.shape),
        "Corder": True,
    }


def monitor(path: Path, **values: Any) -> Path:
    shared = {
        "sizePix": [1920, 1080],
        "width": 53.0,
        "distance": 57.0,
        "gamma": None,
        "calibDate": 1.7e9,
    }
    older = {"gammaGrid": array(np.ones((4, 3)))}
    path.write_text(
        json.dumps({"2020_01_01 10:00": older, "2024_05_02 09:30": shared | values}),
        encoding="utf-8",
    )
    return path


def test_luminances_of_a_psychopy_monitor(tmp_path: Path) -> None:
    levels = np.linspace(0, 255, 16).astype(int)
    lums = (
        0.4
        + np.array([117, 28, 80, 9.0])[:, None]
        * (levels / 255) ** np.array([2.15, *GAMMAS])[:, None]
    )
    lums[0] = 0.4 + (lums[1:] - 0.4).sum(axis=0)
    screen = read_screen(
        monitor(tmp_path / "lab.json", lumsPre=array(lums), levelsPre=array(levels))
    )
    assert screen.ppd == pytest.approx(1 / np.degrees(2 * np.arctan(53 / 1920 / 114)))
    drive = np.linspace(0, 1, 101)[:, None] * np.ones(3)
    np.testing.assert_allclose(
        screen.display.decode(drive), 0.4 + 117 * drive**GAMMAS, atol=0.002 * 117
    )
    assert screen.additivity == pytest.approx(0, abs=1e-12)


def test_fitted_gammas_of_a_psychopy_monitor(tmp_path: Path) -> None:
    low, high, gamma = (
        np.full(4, 0.5),
        np.array([117.5, 28.5, 80.5, 9.5]),
        np.array([2.2, *GAMMAS]),
    )
    drive = np.linspace(0, 1, 101)
    grid = np.stack([low, high, gamma, low, np.full(4, 0.3), np.ones(4)], axis=1)
    for method in (1, 2, 4):
        display = read_screen(
            monitor(
                tmp_path / "lab.json", gammaGrid=array(grid), linearizeMethod=method
            ),
            primaries="sRGB",
        ).display
        assert (display.black, display.peak) == (0.5, 117.5)
        for gun in range(3):
            top, g = high[gun + 1], gamma[gun + 1]
            # PsychoPy's gammaFun: a + (b x)^g; (a + b x)^g; a + (b + k x)^g of Pelli & Zhang
            # (1991).
            expected = {
                1: 0.5 + ((top - 0.5) ** (1 / g) * drive) ** g,
                2: (0.5 ** (1 / g) + (top ** (1 / g) - 0.5 ** (1 / g)) * drive) ** g,
                4: 0.5
                - 0.3**g
                + (0.3 + ((top - 0.5 + 0.3**g) ** (1 / g) - 0.3) * drive) ** g,
            }[method]
            relative = (display.decode(drive[:, None] * np.ones(3))[:, gun] - 0.5) / 117
            np.testing.assert_allclose(
                relative, (expected - 0.5) / (top - 0.5), atol=2e-4
            )


def test_spectra_of_a_psychopy_monitor(tmp_path: Path) -> None:
    pytest.importorskip("colour")
    grid = np.stack(
        [np.full(4, 0.5), [117.5, 28.5, 80.5, 9.5], np.full(4, 2.2)], axis=1
    )
    path = monitor(
        tmp_path / "lab.json",
        gammaGrid=array(grid),
        spectraNM=array(NM),
        spectraRGB=array(bumps()),
    )
    display = read_screen(path).display
    xyz = spectra_to_xyz(NM, bumps())
    np.testing.assert_allclose(
        display.rgb_to_xyz,
        Display(primaries=[*xyz, xyz.sum(axis=0)]).rgb_to_xyz,
        rtol=1e-9,
    )
    assert display.eotf == 2.2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "old.calib",
            b"\x80\x03}q\x00.",
            "pickled monitor, .* save it there, which writes JSON",
        ),
        ("old.json", b"\x80\x03}q\x00.", "pickled monitor"),
        ("empty.json", b"{}", "holds no calibration"),
        (
            "new.json",
            json.dumps({"a": {"gammaGrid": array(np.ones((4, 3)))}}).encode(),
            "neither luminances .* nor",
        ),
        (
            "grid.json",
            json.dumps(
                {"a": {"gammaGrid": [[0, 9, 2]] * 4, "linearizeMethod": 3}}
            ).encode(),
            "method 3",
        ),
        (
            "nan.json",
            json.dumps(
                {"a": {"lumsPre": [[1, float("nan")]], "levelsPre": [0, 255]}}
            ).encode(),
            "no numbers",
        ),
        # PsychoPy's fit is not taken in place of luminances that are damaged.
        *(
            (
                "damaged.json",
                json.dumps(
                    {
                        "a": {
                            "lumsPre": luminances,
                            "levelsPre": [0, 255],
                            "gammaGrid": [[0.2, 250, 2.2]] * 4,
                        }
                    }
                ).encode(),
                message,
            )
            for luminances, message in (
                ([["a", 250]] * 4, "damaged lumsPre; it must be a table"),
                ([[1, 250], [1]], "damaged lumsPre"),
                ([[1, 125, 250]] * 4, "has 4 x 3 luminances .* at 2 levels"),
            )
        ),
        (
            "nm.csv",
            b"wavelength_nm,red,green\n400,1,2\n",
            "has spectra of red, green; give red, green, blue",
        ),
        (
            "xy.csv",
            b"gun,code,x,y,Y\nwhite,255,0.3,0,100\n",
            "an .x, y. that no light has",
        ),
        (
            "dark.csv",
            b"gun,code,X,Y,Z\nblack,255,1,2,3\n",
            "black at drive 1; black is drive 0",
        ),
    ],
)
def test_what_is_no_screen_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        read_screen(tmp_path / name)
    assert len(str(refused.value)) < 360


def test_the_list_of_displays_tells_measured_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = write(
        tmp_path / "lab.csv",
        "code,luminance_cd_m2",
        [f"{v},{0.3 + 99.7 * (v / 255) ** 2.2!r}" for v in LEVELS.tolist()],
    )
    assert main(["list", "displays", str(lab)]) == 0
    output = capsys.readouterr().out
    assert "office_lcd" in output and "18 points from 0.3 to 100 cd/m²" in output
    assert main(["list", "displays", str(lab), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["display"]["peak"] == pytest.approx(
        100
    )
    assert main(["list", "probes", str(lab)]) == 2
