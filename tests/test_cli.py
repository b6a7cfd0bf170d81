"""The command line as a user meets it: results on standard output, one line an error, whole
files."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from children import child
from PIL import Image
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.cli.running import result_stem
from psyprobe.errors import PsyprobeError
from psyprobe.files.images import decode_png
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import printable
from psyprobe.stimulus.catalogue import load_stimulus

Output = pytest.CaptureFixture[str]


def succeed(capsys: Output, *arguments: str | Path) -> str:
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return printed.out


def fail(capsys: Output, *arguments: str | Path) -> str:
    """The one line that an error consists of."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert (
        printed.err.startswith("psyprobe")
        and printed.err.endswith("\n")
        and printed.err.count("\n") == 1
    )
    return printed.err


# -- list
# ------------------------------------------------------------------------------------------


def test_list_names_everything(capsys: Output) -> None:
    out = succeed(capsys, "list")
    for name in (
        "gabor_achromatic",
        "noise_achromatic_published",
        "packaged:efficientnet_lite2",
        "detection",
        "office_lcd",
    ):
        assert name in out


def test_list_experiments_says_what_differs(capsys: Output) -> None:
    out = succeed(capsys, "list", "experiments")
    assert "- raw values in [0, 1] go into the encoder" in out


@pytest.mark.parametrize(
    "kind", ["stimuli", "experiments", "observers", "probes", "displays", "human"]
)
def test_list_as_json(capsys: Output, kind: str) -> None:
    items = json.loads(succeed(capsys, "list", kind, "--json"))
    assert items and all(item["name"] and item["title"] for item in items)
    assert json.loads(succeed(capsys, "list", "--json"))[kind] == items


def test_list_loads_nothing_heavy() -> None:
    code = (
        "import sys; from psyprobe.cli import main; main(['list'])\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    assert not {
        "torch",
        "timm",
        "open_clip",
        "matplotlib",
        "colour",
        "xarray",
        "scipy",
    } & set(process.stderr.split())


def test_version_and_help(capsys: Output) -> None:
    for arguments, expected in (
        (["--version"], f"psyprobe {pp.__version__}\n"),
        (["run", "--help"], "--observer"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert expected in capsys.readouterr().out


# -- render and check
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "dtype"), [(8, np.uint8), (16, np.uint16)])
def test_render_png(capsys: Output, tmp_path: Path, bits: int, dtype: type) -> None:
    file = tmp_path / "gabor.png"
    settings = (
        "--set",
        "frequency=4",
        "contrast=0.5",
        "size=64",
        "--display",
        "peak=200",
    )
    succeed(
        capsys, "render", "gabor_achromatic", *settings, "-o", file, "--bits", str(bits)
    )
    spec = load_stimulus("gabor_achromatic").spec(frequency=4.0, contrast=0.5, size=64)
    drive = np.asarray(pp.Display(peak=200.0).encode(spec.draw()))[..., 0]
    codes = decode_png(file.read_bytes())
    assert codes.dtype == dtype and codes.shape == (64, 64)
    np.testing.assert_allclose(
        codes / (2**bits - 1), drive, atol=0.5000001 / (2**bits - 1)
    )
    record = json.loads((tmp_path / "gabor.png.json").read_text(encoding="utf-8"))
    assert f"{bits}-bit codes" in record["holds"]
    assert record["display"]["peak"] == 200 and record["stimulus"]["frequency"] == 4
    rows = {row["quantity"]: row for row in record["certificate"]["rows"]}
    # Measured from the codes: not exact, and better with more of them.
    assert 1e-9 < abs(rows["contrast"]["error"]) < (1e-2 if bits == 8 else 1e-4)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "gabor.png",
        "gabor.png.json",
    ]
    succeed(capsys, "check", file)


def test_render_colour_and_floats(capsys: Output, tmp_path: Path) -> None:
    spec = load_stimulus("gabor_red_green").spec(size=64, radius=0.3)
    drive = np.asarray(pp.Display().encode(spec.draw()))
    for name in ("a.png", "a.tiff", "a.npy", "a.npz"):
        succeed(
            capsys,
            "render",
            "gabor_red_green",
            "--set",
            "size=64",
            "radius=0.3",
            "-o",
            tmp_path / name,
        )
        assert main(["check", str(tmp_path / name)]) in (0, 1)
    with Image.open(tmp_path / "a.png") as image:
        assert np.asarray(image).shape == (64, 64, 3)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tiff"), drive)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), drive)
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_array_equal(file["drive"], drive)
        np.testing.assert_array_equal(file["pixels"], np.asarray(spec.draw().pixels))
        assert str(file["space"]) == "lms" and float(file["ppd"]) == 60
    capsys.readouterr()
    for name in ("a.tiff", "a.npy", "a.npz"):
        assert json.loads(succeed(capsys, "check", tmp_path / name, "--json"))["passed"]


def test_rendering_is_reproducible(capsys: Output, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("n.png", "n.tiff", "n.npy", "n.npz"):
            succeed(
                capsys,
                "render",
                "noise_achromatic",
                "--set",
                "size=64",
                "-o",
                tmp_path / folder / name,
            )
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_several_images_in_one_file(capsys: Output, tmp_path: Path) -> None:
    settings = ("--set", "contrast=[0.1, 0.2]", "size=64")
    succeed(capsys, "render", "gabor_achromatic", *settings, "-o", tmp_path / "two.npy")
    assert np.load(tmp_path / "two.npy").shape == (2, 64, 64, 3)
    assert "a PNG holds one image" in fail(
        capsys, "render", "gabor_achromatic", *settings, "-o", tmp_path / "two.png"
    )


def test_check_of_a_stimulus(capsys: Output) -> None:
    out = succeed(capsys, "check", "gabor_achromatic", "--set", "frequency=8")
    assert "passed" in out and "8 cpd" in out and "gamut margin" in out


def test_check_finds_a_changed_file(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "gabor.npy"
    succeed(capsys, "render", "gabor_achromatic", "--set", "size=64", "-o", file)
    np.save(file, np.load(file) * np.float32(0.9))
    assert main(["check", str(file)]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out and "not the file that was rendered" in out


def test_low_contrast_in_8_bits_is_noted(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "faint.png"
    assert (
        main(["render", "gabor_achromatic", "--set", "contrast=0.005", "-o", str(file)])
        == 0
    )
    assert "more bits or a float format" in capsys.readouterr().err
    assert main(["check", str(file)]) == 1


def test_clipping_is_counted(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "bright.png"
    arguments = [
        "render",
        "gabor_achromatic",
        "--set",
        "luminance=390",
        "--clip",
        "-o",
        str(file),
        "--json",
    ]
    record = json.loads(succeed(capsys, *arguments))
    assert record["clipped_values"] > 0


# -- run, score and plot
# ------------------------------------------------------------------------------------------


def test_run_score_plot(capsys: Output, tmp_path: Path) -> None:
    path, folder = write_experiment(tmp_path), tmp_path / "results"
    planned = json.loads(
        succeed(
            capsys,
            "run",
            path,
            "--observer",
            "pixels",
            "--output",
            folder,
            "--plan",
            "--json",
        )
    )
    assert planned[0]["images"] == 16 and planned[0]["answered"] == 0
    assert not folder.exists()
    out = succeed(capsys, "run", path, "--observer", "pixels", "--output", folder)
    assert "small (angular)" in out and "contrast alone" in out
    names = {"runs.sqlite", "small-pixels.nc", "small-pixels.json", "small-pixels.png"}
    assert {file.name for file in folder.iterdir()} == names
    with Image.open(folder / "small-pixels.png") as figure:
        assert figure.size[0] > 300
    (score,) = json.loads((folder / "small-pixels.json").read_text(encoding="utf-8"))
    assert score["observer"] == "pixels"
    assert "16 of 16 questions" in succeed(
        capsys, "run", path, "--observer", "pixels", "--output", folder, "--plan"
    )
    from_store = json.loads(succeed(capsys, "score", folder / "runs.sqlite", "--json"))
    from_file = json.loads(
        succeed(capsys, "score", folder / "small-pixels.nc", "--json")
    )
    assert from_store == from_file == [score]
    assert succeed(
        capsys, "score", folder / "runs.sqlite", "--format", "csv"
    ).startswith("experiment,")
    for ending in ("png", "svg", "pdf"):
        succeed(
            capsys,
            "plot",
            folder / "small-pixels.nc",
            "-o",
            tmp_path / f"c.{ending}",
            "--levels",
            "log",
        )
        assert (tmp_path / f"c.{ending}").stat().st_size > 1000


def test_several_experiments_and_observers(capsys: Output, tmp_path: Path) -> None:
    first, two = (
        write_experiment(tmp_path),
        write_experiment(tmp_path, ("to = 4", "to = 3"), name="other"),
    )
    reports = json.loads(
        succeed(
            capsys,
            "run",
            first,
            two,
            "--observer",
            "pixels",
            "--output",
            tmp_path / "r",
            "--store",
            tmp_path / "s.sqlite",
            "--json",
        )
    )
    assert [(report["experiment"], report["observer"]) for report in reports] == [
        ("small", "pixels"),
        ("other", "pixels"),
    ]
    for report in reports:
        assert all(Path(file).is_file() for file in report["files"].values())
    assert (
        len(json.loads(succeed(capsys, "score", tmp_path / "s.sqlite", "--json"))) == 2
    )


def test_distinct_settings_have_distinct_files() -> None:
    card = pp.load_observer("pixels").card
    experiment = pp.load_experiment("area")
    settings = [f"size={size}" for size in range(60)]
    choices = [
        ["x=1"],
        ["x=-1"],
        ["x=+1"],
        ["x=[1]"],
        ["x=.1"],
        ["x=1", "y=2"],
        ["x=1-y=2"],
        ["x=1 y=2"],
        ["x=1,y=2"],
        ["x=1/y=2"],
        settings,
        [*settings, "x=1"],
    ]
    options = {"random_weights": False, "layers": None, "input": None, "observer": []}
    stems = [
        result_stem(
            Namespace(
                **options,
                observer_option=[],
                score_only=False,
                label="",
                variants=["phase=0,90"],
                set=settings,
            ),
            experiment,
            card,
        )
        for settings in choices
    ]
    assert stems[:2] == ["area-pixels-phase=0,90-x=1", "area-pixels-phase=0,90-x=-1"]
    assert len(set(stems)) == len(choices)
    assert max(map(len, stems)) <= 200
    assert not any(set(stem) & set("/[ ") for stem in stems)


def test_names_from_files_cannot_steer_the_terminal(
    capsys: Output, tmp_path: Path
) -> None:
    path = write_experiment(tmp_path, name="small\x1b[31m")
    assert "\x1b" not in succeed(
        capsys, "run", path, "--observer", "pixels", "--output", tmp_path, "--plan"
    )
    assert "\x1b" not in fail(capsys, "run", "\x1b]0;title\x07", "--plan")
    assert printable("a\x1b\u202e\x07\n") == "a\\x1b\\u202e\\x07\n"


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    path = write_experiment(
        tmp_path,
        ("to = 4, n = 3", "to = 4, n = 60"),
        ("to = 1, n = 3", "to = 1, n = 60"),
    )
    arguments = [
        sys.executable,
        "-m",
        "psyprobe",
        "run",
        str(path),
        "--observer",
        "pixels",
        "--batch-size",
        "1",
    ]
    arguments += ["--output", str(tmp_path)]
    store = tmp_path / "runs.sqlite"
    with child(
        arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        while not (store.exists() and store.stat().st_size > 500_000):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert out == "" and err.count("\n") == 1
    assert (
        "stopped; what was answered is kept, go on with: psyprobe run" in err
        and str(path) in err
    )


def test_output_that_nobody_reads_is_no_error() -> None:
    command = [sys.executable, "-m", "psyprobe", "list"]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        listing.stdout.close()
        assert listing.stderr.read() == b""
        assert listing.wait() == 0


# -- what can go wrong (issue 2, point 9)
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "stimulus"], "invalid choice: 'stimulus'"),
        (["rnu"], "invalid choice: 'rnu'"),
        ([], "COMMAND"),
        (["run"], "EXPERIMENT"),
        (["run", "gabor_acromatic"], "did you mean 'gabor_achromatic'?"),
        (["run", "gabor_achromatic", "--observer", "pixles"], "did you mean 'pixels'?"),
        (
            ["run", "gabor_achromatic", "--observer", "timm:no_such_network"],
            "no_such_network",
        ),
        (
            [
                "run",
                "gabor_achromatic",
                "--observer",
                "pixels",
                "--batch-size",
                "0",
                "--plan",
            ],
            "at least 1 image",
        ),
        (
            ["run", "gabor_achromatic", "--observer", "pixels", "--batch-size", "x"],
            "invalid int value: 'x'",
        ),
        (
            ["run", "gabor_achromatic", "--observer", "pixels", "--layers", "deep"],
            "no option 'layers'",
        ),
        (["run", "nothing.toml"], "nothing.toml cannot be read: No such file"),
        (
            ["render", "gabor_acromatic", "-o", "x.png"],
            "did you mean 'gabor_achromatic'?",
        ),
        (["render", "gabor_achromatic", "-o", "x.jpg"], "unknown image format '.jpg'"),
        (
            ["render", "gabor_achromatic", "--set", "frequency=40", "-o", "x.png"],
            "below 30 cpd",
        ),
        (
            ["render", "gabor_achromatic", "--set", "frequency=4cpd", "-o", "x.png"],
            "without the unit",
        ),
        (
            ["render", "gabor_achromatic", "--set", "frequency=NaN", "-o", "x.png"],
            "finite",
        ),
        (
            ["render", "gabor_achromatic", "--set", "frequncy=4", "-o", "x.png"],
            "did you mean 'frequency'?",
        ),
        (
            ["render", "gabor_achromatic", "--set", "frequency", "-o", "x.png"],
            "NAME=VALUE",
        ),
        (
            ["render", "gabor_achromatic", "--set", "contrast=2", "-o", "x.png"],
            "contrast is 2",
        ),
        (
            ["render", "gabor_achromatic", "--set", "contrast=50", "-o", "x.png"],
            "not a percentage",
        ),
        (
            ["render", "gabor_achromatic", "--set", "luminance=500", "-o", "x.png"],
            "above what this display shows",
        ),
        (
            ["render", "gabor_red_green", "--set", "contrast=0.5", "-o", "x.png"],
            "negative light|this display",
        ),
        (
            ["render", "gabor_achromatic", "--display", "ofice_lcd", "-o", "x.png"],
            "did you mean 'office_lcd'?",
        ),
        (
            ["render", "gabor_achromatic", "--display", "peek=3", "-o", "x.png"],
            "did you mean 'peak'?",
        ),
        (
            ["render", "gabor_achromatic", "--display", "peak=bright", "-o", "x.png"],
            "give a number",
        ),
        (
            ["render", "gabor_achromatic", "-o", "no/such/folder/x.png"],
            "cannot be written: No such file",
        ),
        (
            ["render", "gabor_achromatic", "-o", "x.png", "--bits", "12"],
            "invalid choice: 12",
        ),
        (["check", "x.png"], "no certificate"),
        (["check", "gabor_acromatic"], "did you mean"),
        (["score", "nothing.sqlite"], "does not exist"),
        (["score", "nothing.nc"], "there is no result file"),
        (["score", "."], "is a folder"),
        (["plot", "nothing.nc"], "there is no result file"),
    ],
)
def test_bad_input_is_one_line(
    capsys: Output,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    error = fail(capsys, *arguments)
    assert any(part in error for part in message.split("|")), error
    assert not list(tmp_path.rglob("x.*"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[score]", "[score", "small.toml"),
        ("to = 4", "to = 40", "cpd"),
        ("to = 4", 'to = "4 cpd"', "without units"),
        ("peak = 400", "peak = 150", "above what this display shows"),
        ("peak = 400", "peak = 90", "above what this display shows"),
        ("multiplier =", "multiplyer =", "did you mean 'multiplier'?"),
    ],
)
def test_bad_experiments_are_one_line(
    capsys: Output, tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = write_experiment(tmp_path, (old, new))
    for plan in ([], ["--plan"]):
        assert message in fail(
            capsys,
            "run",
            path,
            "--observer",
            "pixels",
            "--output",
            tmp_path / "r",
            *plan,
        )


def test_stores_and_folders_that_cannot_be_used(capsys: Output, tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    (tmp_path / "text").write_text("no store at all " * 100)
    run = ["run", path, "--observer", "pixels", "--output", tmp_path / "r"]
    assert "is not a store" in fail(capsys, *run, "--store", tmp_path / "text")
    assert "there is no folder" in fail(
        capsys, *run, "--store", tmp_path / "no" / "such.sqlite"
    )
    assert "is a folder" in fail(capsys, *run, "--store", tmp_path)
    assert "cannot be made" in fail(
        capsys, "run", path, "--observer", "pixels", "--output", tmp_path / "text" / "r"
    )
    assert "is not a store" in fail(capsys, "score", tmp_path / "text")


def test_missing_weights_are_one_line(capsys: Output) -> None:
    pytest.importorskip("timm")
    error = fail(
        capsys,
        "run",
        "gabor_achromatic",
        "--observer",
        "timm:resnet18.a1_in1k",
        "--plan",
    )
    assert "resnet18" in error


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def half(partial: Path) -> None:
        partial.write_text("ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(
        PsyprobeError, match=r"file\.txt cannot be written: No space left"
    ):
        write_whole(path, half)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_the_command_is_installed_with_the_package() -> None:
    command = shutil.which("psyprobe", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("psyprobe is not installed in this environment")
    process = subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=True, timeout=1200
    )
    assert process.stdout == f"psyprobe {pp.__version__}\n"
