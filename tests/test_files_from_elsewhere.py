"""Stimuli for other programs, and stimuli made by them: written, read back, measured, and told
apart."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.files.images import decode_png
from psyprobe.light.codes import pack, spread, to_codes, unpack
from psyprobe.light.display import Display
from psyprobe.stimulus import Drift, Gabor
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.stimulus.export import for_psychopy

REQUEST = [
    "--as",
    "gabor",
    "--set",
    "frequency=4",
    "contrast=0.5",
    "orientation=30",
    "radius=0.3",
    "ppd=60",
]
PEAK = 400.0


def gabor(
    contrast: float = 0.5, degrees: float = 30.0, size: int = 128
) -> np.ndarray[Any, Any]:
    """Light in cd/m², without psyprobe."""
    along = (np.arange(size) - (size - 1) / 2) / 60
    x, y = along[None, :], -along[:, None]
    wave = np.cos(
        2
        * np.pi
        * 4
        * (x * np.cos(np.radians(degrees)) + y * np.sin(np.radians(degrees)))
    )
    return 100 * (1 + contrast * np.exp(-(x**2 + y**2) / 0.18) * wave)


def srgb(light: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Drive of a display of 400 cd/m²."""
    relative = light / PEAK
    return np.where(
        relative <= 0.0031308, 12.92 * relative, 1.055 * relative ** (1 / 2.4) - 0.055
    )


def write(path: Path, light: np.ndarray[Any, Any]) -> list[str]:
    """A file of another program, and what has to be said of it."""
    drive = srgb(light)
    codes = np.rint(255 * drive).astype(np.uint8)
    kind = path.name.partition(".")[2]
    if kind in ("png", "jpg"):
        Image.fromarray(codes).save(
            path, quality=95
        ) if kind == "jpg" else Image.fromarray(codes).save(path)
    elif kind == "rgb.png":
        Image.fromarray(np.repeat(codes[..., None], 3, axis=-1)).save(path)
    elif kind == "16.png":
        Image.fromarray(np.rint(65535 * drive).astype(np.uint16)).save(path)
    elif kind == "tif":
        tifffile.imwrite(path, np.rint(65535 * drive).astype(np.uint16))
    elif kind == "10.tif":
        tifffile.imwrite(path, np.rint(1023 * drive).astype(np.uint16))
        return ["--bits", "10"]
    elif kind == "npy":
        np.save(path, light)
        return ["--space", "luminance"]
    elif kind == "mat":
        savemat(path, {"gabor": drive, "name": "a Gabor", "ppd": 60.0})
    elif kind == "several.mat":
        savemat(path, {"gabor": drive, "mask": drive})
        return ["--key", "gabor"]
    return []


KINDS = [
    "a.png",
    "a.jpg",
    "a.rgb.png",
    "a.16.png",
    "a.tif",
    "a.10.tif",
    "a.npy",
    "a.mat",
    "a.several.mat",
]


@pytest.mark.parametrize("name", KINDS)
def test_a_right_file_of_any_kind_passes_and_a_wrong_one_is_explained(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = write(tmp_path / name, gabor())
    assert main(["check", str(tmp_path / name), *REQUEST, *options, "--json"]) == 0
    out = capsys.readouterr()
    report = json.loads(out.out)
    assert report["passed"] and report["causes"] == []
    assert ("is a JPEG" in out.err) == (name == "a.jpg")
    write(tmp_path / name, gabor(degrees=-30))
    assert main(["check", str(tmp_path / name), *REQUEST, *options]) == 1
    assert "Likely cause: orientation mirrored" in capsys.readouterr().out


def test_what_a_file_holds_is_never_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: str) -> str:
        assert main(["check", *words]) == 2
        return capsys.readouterr().err

    np.save(tmp_path / "a.npy", gabor())
    assert "drive is 0 to 1; tell what they are: --space luminance" in refused(
        str(tmp_path / "a.npy"), *REQUEST
    )
    assert "say it with --as KIND" in refused(str(tmp_path / "a.npy"))
    write(tmp_path / "a.several.mat", gabor())
    assert "holds 2 images (gabor, mask); name one with --key" in refused(
        str(tmp_path / "a.several.mat"), *REQUEST
    )
    (tmp_path / "new.mat").write_bytes(
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(600)
    )
    assert "version 7.3, which is HDF5" in refused(str(tmp_path / "new.mat"), *REQUEST)
    (tmp_path / "bad.mat").write_bytes(b"nothing" * 100)
    assert "cannot be read" in refused(str(tmp_path / "bad.mat"), *REQUEST)
    np.save(tmp_path / "batch.npy", np.ones((2, 8, 8)))
    assert "give one image" in refused(str(tmp_path / "batch.npy"), *REQUEST)
    assert "give --as KIND too" in refused("gabor_achromatic", "--space", "linear")
    np.save(tmp_path / "a.npy", 2 * srgb(gabor()) - 1)
    assert main(["check", str(tmp_path / "a.npy"), *REQUEST]) == 1
    assert "values in [-1, 1] where [0, 1] is meant" in capsys.readouterr().out


# -- render
# ------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=30),
    st.sampled_from([8, 10, 14, 16]),
    st.integers(0, 99),
)
def test_codes_are_within_half_a_step_or_right_on_average(
    values: list[float], bits: int, seed: int
) -> None:
    drive, maximum = np.array(values), 2**bits - 1
    assert np.abs(to_codes(drive, bits) / maximum - drive).max() <= 0.5000001 / maximum
    dithered = (
        to_codes(np.repeat(drive[:3], 4000), bits, "rpdf", seed).reshape(3, -1)
        / maximum
    )
    # Noise of one step has a standard deviation of half a step at most.
    np.testing.assert_allclose(
        dithered.mean(axis=1), drive[:3], atol=5 * 0.5 / maximum / np.sqrt(4000) + 1e-12
    )
    if bits != 14:
        samples = spread(to_codes(drive, bits), bits)
        assert (
            np.abs(samples / np.iinfo(samples.dtype).max - drive).max()
            <= 0.51 / maximum
        )


@settings(max_examples=60, deadline=None)
@given(st.floats(0.5, 254.5), st.integers(0, 99))
def test_triangular_dither_has_the_same_noise_at_every_level(
    level: float, seed: int
) -> None:
    codes = to_codes(np.full(20_000, level / 255), 8, "tpdf", seed).astype(float)
    # Rounding and both dithers are uniform over one step, of variance 1/12 each (Lipshitz et al.
    # 1992). Five times the error of the mean and of the variance of 20,000 values.
    assert codes.mean() == pytest.approx(level, abs=5 * 0.5 / np.sqrt(20_000))
    assert codes.var() == pytest.approx(0.25, abs=5 * 0.45 / np.sqrt(20_000))
    assert codes.min() >= 0 and codes.max() <= 255


@pytest.mark.parametrize("drive", [0.0, 0.49 / 255, 254.51 / 255, 1.0])
def test_triangular_dither_needs_room_at_the_ends(drive: float) -> None:
    with pytest.raises(
        InputError,
        match=r"tpdf dither needs half a code of room, 0\.5 to 254\.5 of 255",
    ):
        to_codes(np.full(9, drive), 8, "tpdf")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_packed_images_have_fourteen_bits(seed: int) -> None:
    drive = np.random.default_rng(seed).random((4, 6, 3))
    grey = np.repeat(drive[..., :1], 3, axis=-1)
    mono, colour = pack(grey, "mono++"), pack(drive, "color++")
    assert (
        mono.shape == (4, 6, 3)
        and colour.shape == (4, 12, 3)
        and not mono[..., 2].any()
    )
    # The box takes red as the high bits and green as the low ones, left aligned: six of eight.
    assert not (mono[..., 1] & 3).any() and not (colour[:, 1::2] & 3).any()
    np.testing.assert_array_equal(
        mono[..., 0].astype(int) * 64 + mono[..., 1] // 4, np.rint(grey[..., 0] * 16383)
    )
    np.testing.assert_allclose(
        unpack(mono, "mono++"), grey[..., 0], atol=0.5001 / 16383
    )
    np.testing.assert_allclose(unpack(colour, "color++"), drive, atol=0.5001 / 16383)
    with pytest.raises(InputError, match="this drive has colour"):
        pack(drive, "mono++")


def test_bits_dither_and_packing_of_rendered_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faint = [
        "render",
        "gabor_achromatic",
        "--set",
        "contrast=0.004",
        "size=128",
        "radius=0.5",
    ]
    errors = {}
    for name, options in {
        "8": [],
        "rpdf": ["--dither", "rpdf", "--seed", "3"],
        "tpdf": ["--dither", "tpdf", "--seed", "3"],
        "10": ["--bits", "10"],
        "16": ["--bits", "16"],
        "mono": ["--pack", "mono++"],
        "colour": ["--pack", "color++"],
    }.items():
        path = tmp_path / f"{name}.png"
        assert main([*faint, "-o", str(path), *options, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        rows = {row["quantity"]: row for row in record["certificate"]["rows"]}
        errors[name] = abs(rows["contrast"]["error"])
        code = main(["check", str(path)])
        assert code == (0 if record["certificate"]["passed"] else 1)
        if name in ("8", "rpdf", "tpdf"):
            cause = "8-bit rounding" if name == "8" else "dithered to 8 bits"
            assert f"Likely cause: {cause}" in capsys.readouterr().out
        capsys.readouterr()
    assert errors["8"] > 0.2 > max(errors["rpdf"], errors["tpdf"])
    assert (
        errors["10"] < 0.2
        and errors["mono"] < 0.005
        and errors["colour"] < 0.005
        and errors["16"] < 2e-3
    )
    codes = decode_png((tmp_path / "10.png").read_bytes())
    assert (
        codes.dtype == np.uint16 and len({*np.rint(codes / 65535 * 1023).ravel()}) < 12
    )
    assert np.abs(codes / 65535 * 1023 - np.rint(codes / 65535 * 1023)).max() < 0.01
    for words, message in (
        (["-o", str(tmp_path / "x.npy"), "--bits", "16"], "holds floats"),
        (
            ["-o", str(tmp_path / "x.png"), "--bits", "16", "--pack", "mono++"],
            "packed drive has 14 bits",
        ),
        (["-o", str(tmp_path / "x.png"), "--sheet"], "give --grid"),
    ):
        assert main([*faint, *words]) == 2
        assert message in capsys.readouterr().err


def test_a_grid_of_numbered_files_with_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "render",
        "gabor_achromatic",
        "--set",
        "size=64",
        "radius=0.2",
        "-o",
        str(tmp_path / "g.png"),
        "--sheet",
    ]
    assert main([*words, "--grid", "frequency=4,8", "contrast=0.1,0.2,0.4"]) == 0
    assert "6 files beside" in capsys.readouterr().out
    with (tmp_path / "g.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"g-{k:03}.png" for k in range(1, 7)]
    assert [(row["frequency"], row["contrast"]) for row in rows] == [
        (f, c) for f in "48" for c in ("0.1", "0.2", "0.4")
    ]
    for row in rows:
        assert float(row["delivered contrast"]) == pytest.approx(
            float(row["contrast"]), rel=0.02
        )
        assert main(["check", str(tmp_path / row["file"])]) in (0, 1)
        drive = decode_png((tmp_path / row["file"]).read_bytes()) / 255
        specification = Gabor(
            frequency=float(row["frequency"]),
            contrast=float(row["contrast"]),
            radius=0.2,
            size=64,
        )
        np.testing.assert_allclose(
            drive, srgb(np.asarray(specification.draw().pixels)), atol=0.51 / 255
        )
    with Image.open(tmp_path / "g-sheet.png") as sheet:
        assert sheet.size == (6 * 148, 148)
    assert main([*words, "--grid", "frequency"]) == 2
    assert (
        main(
            [
                *words,
                "--grid",
                "seed=" + ",".join("1" * 200),
                "contrast=" + ",".join("1" * 200),
            ]
        )
        == 2
    )
    assert "up to 10,000" in capsys.readouterr().err


# -- other programs
# ------------------------------------------------------------------------------------------

LINEAR = Display(peak=200, eotf="linear")


def test_an_array_for_psychopy_is_upside_down_and_from_minus_one_to_one() -> None:
    specification = Gabor(
        frequency=4,
        contrast=0.5,
        orientation=30,
        y=0.2,
        size=(90, 120),
        ppd=60,
        luminance=80,
    )
    ready = for_psychopy(specification.draw(), LINEAR)
    light = (ready.image[::-1] + 1) / 2 * 200
    np.testing.assert_allclose(light, specification.draw().luminance, rtol=1e-12)
    assert ready.size == (2.0, 1.5) and ready.pixels == (120, 90)
    colour = for_psychopy(
        Gabor(frequency=4, contrast=0.05, direction="red_green", size=64).draw(),
        Display(),
    )
    assert colour.image.shape == (64, 64, 3)
    with pytest.raises(InputError, match="holds one image"):
        for_psychopy(Gabor(frequency=[2, 4], contrast=0.5).draw(), LINEAR)


def test_a_clip_for_psychopy_is_refused_and_its_frames_are_taken() -> None:
    clip = Drift(
        frequency=4,
        contrast=0.5,
        temporal_frequency=8,
        y=0.1,
        size=64,
        fps=30,
        frames=6,
    )
    with pytest.raises(InputError, match="holds one image, and this clip has 6"):
        for_psychopy(clip.draw(), LINEAR)
    frames = next(iter(clip.chunks()))
    image = for_psychopy(frames[2], LINEAR).image
    np.testing.assert_allclose((image[::-1] + 1) / 2 * 200, frames.luminance[2])


def window(
    distance: float = 57.0, gamma: bool = True, width: float | None = 53.0
) -> Any:
    """Return a stand-in with the calls of a PsychoPy window."""
    monitor = SimpleNamespace(
        name="lab",
        getSizePix=lambda: [1920, 1080],
        getWidth=lambda: width,
        getDistance=lambda: distance,
        gammaIsDefault=lambda: not gamma,
    )
    return SimpleNamespace(monitor=monitor)


def test_units_and_gamma_of_a_psychopy_window_are_checked() -> None:
    ppd = float(1 / np.degrees(2 * np.arctan(53 / 1920 / 114)))
    ready = for_psychopy(
        Gabor(frequency=4, contrast=0.5, ppd=ppd, size=64).draw(), LINEAR
    )
    ready.check(window())
    for wrong, message in (
        (
            window(distance=80),
            "has 50.58 pixels per degree, and the stimulus was drawn for 36.0",
        ),
        (
            window(gamma=False),
            "does not linearise the screen, .* give the measured curve",
        ),
        (window(width=None), "has no size in pixels, width and distance"),
    ):
        with pytest.raises(InputError, match=message):
            ready.check(wrong)


def test_psychopy_shows_the_pixels() -> None:
    visual = pytest.importorskip("psychopy.visual")
    monitors = pytest.importorskip("psychopy.monitors")
    monitor = monitors.Monitor("psyprobe-test", width=53.0, distance=57.0)
    monitor.setSizePix([1920, 1080])
    window = visual.Window([200, 200], monitor=monitor, units="pix", allowGUI=False)
    ppd = float(1 / np.degrees(2 * np.arctan(53 / 1920 / 114)))
    display = Display(peak=200, eotf=2.2)
    ready = for_psychopy(
        Gabor(frequency=4, contrast=0.5, orientation=30, ppd=ppd, size=64).draw(),
        display,
    )
    ready.stim(window).draw()
    frame = np.asarray(window._getFrame(buffer="back").convert("L"), float)[
        68:132, 68:132
    ]
    window.close()
    np.testing.assert_allclose(frame, (ready.image[::-1] + 1) / 2 * 255, atol=1.01)


# -- the page
# ------------------------------------------------------------------------------------------


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "stimuli.md").read_text(
        encoding="utf-8"
    )
    section = page[
        page.index("## Files for other programs") : page.index("## A kind of your own")
    ]
    commands = [
        shlex.split(line)[1:]
        for line in section.splitlines()
        if line.startswith("psyprobe ")
    ]
    assert len(commands) == 6
    monkeypatch.chdir(tmp_path)
    drive = Display(peak=200).encode(
        Gabor(frequency=4, contrast=0.5, radius=0.3, ppd=60).draw()
    )[..., 0]
    Image.fromarray(np.rint(255 * np.asarray(drive)).astype(np.uint8)).save("mine.png")
    light = load_stimulus("gabor_achromatic").spec().draw().pixels
    savemat("mine.mat", {"image": np.asarray(light), "other": np.ones((3, 3))})
    assert [main(command) for command in commands] == [0] * 6
    assert sorted(path.name for path in tmp_path.glob("set*.png")) == [
        *(f"set-{k:03}.png" for k in range(1, 7)),
        "set-sheet.png",
    ]
