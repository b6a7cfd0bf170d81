"""Values, images and tables that nobody means: one line each, exit code 2, and nothing left
behind."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from children import child
from small_experiment import write_experiment

from psyprobe.analysis.score import csv_text
from psyprobe.cli import main
from psyprobe.errors import InputError, PsyprobeError, clipped
from psyprobe.files.images import encode_png
from psyprobe.files.output import _machine, make_folder, write_text
from psyprobe.files.parsing import parse_json
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.tasks.tables import csv_table, read_answer_table

Output = pytest.CaptureFixture[str]
MANY = "9" * 400
TOO_MANY = "9" * 5000
DEEP = "[" * 100_000 + "]" * 100_000
NESTED = "[" * 900 + "]" * 900


def refused(capsys: Output, *arguments: str | Path) -> str:
    """The one line, under 400 characters, that a command ends with."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert (
        printed.err.endswith("\n")
        and printed.err.count("\n") == 1
        and len(printed.err) < 400
    )
    return printed.err


# -- values
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        MANY,
        TOO_MANY,
        DEEP,
        NESTED,
        "a\0b",
        "{}",
        "[]",
        "null",
        "true",
        "[[1,2],[3]]",
        "NaN",
    ],
)
@pytest.mark.parametrize(
    "name", ["frequency", "size", "direction", "white", "observer"]
)
def test_a_parameter_of_the_wrong_kind(capsys: Output, name: str, value: str) -> None:
    refused(capsys, "check", "gabor_achromatic", "--set", f"{name}={value}")


@pytest.mark.parametrize(
    "value",
    [MANY, TOO_MANY, DEEP, NESTED, "a\0b", "{}", "[]", "null", "[[1,2],[3,4]]", "NaN"],
)
@pytest.mark.parametrize("name", ["peak", "eotf"])
def test_a_display_of_the_wrong_kind(capsys: Output, name: str, value: str) -> None:
    refused(capsys, "check", "gabor_achromatic", "--display", f"{name}={value}")


@pytest.mark.parametrize("value", ["5", "{}", "[]", "null", "[[1,2],[3,4]]"])
def test_primaries_without_a_name(capsys: Output, value: str) -> None:
    refused(capsys, "check", "gabor_achromatic", "--display", f"primaries={value}")


def test_more_pixels_than_anybody_draws(capsys: Output) -> None:
    assert "pixels in all" in refused(
        capsys, "check", "gabor_achromatic", "--set", f"frequency=[1{',1' * 100_000}]"
    )


@pytest.mark.parametrize("name", ["x" * 5000, "\0", ""])
def test_a_name_that_is_none(capsys: Output, name: str) -> None:
    refused(capsys, "check", name)
    refused(capsys, "render", "gabor_achromatic", "--set", f"{name}=1", "-o", "x.png")
    refused(capsys, "run", "gabor_achromatic", "--plan", "--observer", name)


@pytest.mark.parametrize("output", ["\0.png", "x" * 300 + ".png", "/proc/none/x.png"])
def test_a_file_that_cannot_be(capsys: Output, output: str) -> None:
    refused(capsys, "render", "gabor_achromatic", "--set", "size=16", "-o", output)


@pytest.mark.parametrize(
    "option",
    [
        {"concurrency": "a"},
        {"concurrency": 1.5},
        {"concurrency": [1]},
        {"concurrency": int(MANY)},
        {"retries": "a"},
        {"retries": float("nan")},
        {"timeout": "a"},
        {"timeout": int(MANY)},
        {"rate": []},
        {"base_url": 5},
        {"base_url": []},
        {"base_url": ""},
        {"base_url": "http://[::1"},
        {"base_url": "http://a:99999999/v1"},
        {"base_url": "http://" + "a" * 100_000},
        {"name": 5},
    ],
    ids=lambda option: str(option)[:40],
)
def test_an_option_of_a_chat_model(option: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        load_observer("openai:local", **option)
    assert len(str(caught.value)) < 400


def test_the_observer_s_own_names_are_no_options(capsys: Output) -> None:
    for name in ("name", "observer", "experiment"):
        message = refused(
            capsys,
            "run",
            "gabor_achromatic",
            "--plan",
            "--observer",
            "pixels",
            "--observer-option",
            f"{name}=5",
        )
        assert "takes no option" in message


def test_a_hundred_million_conditions(capsys: Output, tmp_path: Path) -> None:
    page = tmp_path / "many.toml"
    levels = "{ from = 0.01, to = 0.5, n = 10000 }"
    page.write_text(
        'title = "many"\nprobe = "detection"\nstimulus = "gabor_achromatic"\n'
        f"[levels]\nfrequency = {levels}\ncontrast = {levels}\n"
    )
    assert "100,000,000 conditions" in refused(
        capsys, "run", page, "--plan", "--observer", "pixels"
    )


@pytest.mark.parametrize("value", [MANY, TOO_MANY, DEEP, NESTED])
def test_a_page_that_nobody_means(capsys: Output, tmp_path: Path, value: str) -> None:
    for table in ("levels", "variants", "display", "score", "options"):
        page = tmp_path / "page.toml"
        page.write_text(
            f'title = "a"\nprobe = "detection"\nstimulus = "gabor_achromatic"\n[{table}]\npeak '
            f"= {value}\n"
        )
        refused(capsys, "run", page, "--plan", "--observer", "pixels")
    page.write_text(f'title = "a"\nkind = "gabor"\n[parameters]\nfrequency = {value}\n')
    refused(capsys, "check", page)


def test_long_messages_keep_their_remedy() -> None:
    message = str(InputError(f"size is {TOO_MANY}; give a whole number"))
    assert (
        len(message) < 400
        and message.endswith("give a whole number")
        and message.startswith("size is 9")
    )
    assert clipped("short") == "short" and clipped(message) == message


def test_what_is_allowed_is_still_read() -> None:
    assert parse_json('{"a": [[1, 2.5], "b"]}', "it") == {"a": [[1, 2.5], "b"]}
    assert Display(eotf=2.2, peak=100).peak == 100
    assert load_stimulus("gabor_achromatic").spec(white=[0.3, 0.3]).white == (0.3, 0.3)


# -- images
# ------------------------------------------------------------------------------------------


@pytest.fixture
def rendered(tmp_path: Path, capsys: Output) -> Path:
    for ending in ("png", "npy", "npz", "tiff"):
        main(
            [
                "render",
                "gabor_achromatic",
                "--set",
                "size=64",
                "contrast=0.5",
                "-o",
                str(tmp_path / f"a.{ending}"),
            ]
        )
    capsys.readouterr()
    return tmp_path


def test_an_all_black_picture(capsys: Output, rendered: Path) -> None:
    (rendered / "a.png").write_bytes(encode_png(np.zeros((64, 64), np.uint8)))
    assert "black" in refused(capsys, "check", rendered / "a.png")
    np.save(rendered / "a.npy", np.zeros((64, 64, 3), np.float32))
    assert "black" in refused(capsys, "check", rendered / "a.npy")


@pytest.mark.parametrize("ending", ["png", "npy", "npz", "tiff"])
def test_a_cut_or_made_up_image(capsys: Output, rendered: Path, ending: str) -> None:
    file = rendered / f"a.{ending}"
    content = file.read_bytes()
    # One byte more measures well, and is not the file that was rendered.
    for raw in (
        content + b"\0",
        content[:-1],
        content[: len(content) // 2],
        content[:40],
        b"",
        b"PK\x03\x04" + b"\0" * 40,
        b"\0" * 400,
    ):
        file.write_bytes(raw)
        refused(capsys, "check", file)


def test_an_array_that_claims_seven_terabytes(capsys: Output, rendered: Path) -> None:
    header = io.BytesIO()
    shape = (10**6, 10**6, 1)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    (rendered / "a.npy").write_bytes(header.getvalue())
    refused(capsys, "check", rendered / "a.npy")
    with zipfile.ZipFile(rendered / "a.npz", "w") as file:
        file.writestr("pixels.npy", header.getvalue())
    refused(capsys, "check", rendered / "a.npz")


@pytest.mark.parametrize(
    "values",
    [np.full((64, 64, 3), np.nan), np.full((64, 64, 3), "a"), np.zeros(()), np.ones(5)],
)
def test_an_array_that_holds_no_light(
    capsys: Output, rendered: Path, values: np.ndarray
) -> None:
    np.save(rendered / "a.npy", values)
    refused(capsys, "check", rendered / "a.npy")


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        TOO_MANY,
        "[]",
        "{}",
        "5",
        '{"stimulus": 5}',
        '{"stimulus": {"kind": []}}',
        "\0",
    ],
)
def test_a_certificate_that_is_none(capsys: Output, rendered: Path, text: str) -> None:
    (rendered / "a.png.json").write_text(text)
    refused(capsys, "check", rendered / "a.png")


# -- tables
# ------------------------------------------------------------------------------------------


def unread(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_answer_table(path)
    assert len(str(caught.value)) < 400


def test_a_damaged_workbook(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    pd.DataFrame({"index": range(20), "prediction": ["a word"] * 20}).to_excel(
        path, index=False
    )
    content = path.read_bytes()
    assert len(read_answer_table(path)) == 20
    random = np.random.default_rng(0)
    for cut in random.integers(0, len(content) - 22, 6):
        path.write_bytes(content[:cut])
        unread(path)
    for at in random.integers(0, len(content), 40):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            read_answer_table(path)
        except InputError as error:
            assert len(str(error)) < 400


@pytest.mark.parametrize(
    "text",
    [DEEP, f"[{TOO_MANY}]", f'[{{"a": {TOO_MANY}}}]', NESTED, '[{"a": [[[', "\0"],
)
def test_json_that_nobody_means(tmp_path: Path, text: str) -> None:
    for ending in ("json", "jsonl"):
        (tmp_path / f"a.{ending}").write_text(text)
        unread(tmp_path / f"a.{ending}")


def test_a_million_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(1_000_000)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join("1" * len(names)))
    (tmp_path / "a.json").write_text(json.dumps([dict.fromkeys(names[:10_001], 1)]))
    unread(tmp_path / "a.csv")
    unread(tmp_path / "a.json")


def test_a_test_s_name_stays_in_its_folder(capsys: Output, tmp_path: Path) -> None:
    table, grids = tmp_path / "table.csv", tmp_path / "grids"
    grids.mkdir()
    table.write_text(
        "model,test,x,multiplier,stimulus_contrast,s_ac\nm,../outside,1,1,0.1,0.2\n"
    )
    np.savez(
        tmp_path / "outside.npz",
        s_ac=np.zeros((1, 1, 1)),
        x=[1.0],
        contrast=[0.1],
        models=["m"],
    )
    message = refused(
        capsys,
        "replay",
        table,
        "--grids",
        grids,
        "--test",
        "../outside",
        "--output",
        tmp_path / "out",
    )
    assert "unknown test" in message
    assert not (tmp_path / "out").exists()


# -- what people open in a spreadsheet
# ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", " =1+1", "\t=1", "\r=1"]
)
def test_no_cell_of_ours_is_a_formula(text: str) -> None:
    records = [{"observer": text, "score": -0.5, "n": 3}]
    for written in (csv_text(records), csv_table(pd.DataFrame(records))):
        (row,) = csv.DictReader(io.StringIO(written))
        assert row["observer"].startswith(("'", "\\")) and (row["score"], row["n"]) == (
            "-0.5",
            "3",
        )


def test_no_cell_of_ours_steers_a_terminal() -> None:
    written = csv_table(
        pd.DataFrame({"reply": ["red \x1b[31m", "two\nlines"], "x": [0.1, None]})
    )
    assert "\x1b" not in written and "two\nlines" in written and "0.1" in written


# -- what a kill leaves
# ------------------------------------------------------------------------------------------


def dead_process() -> int:
    with child([sys.executable, "-c", "pass"]) as process:
        return process.pid


@pytest.mark.parametrize(
    "sweep", [lambda folder: write_text(folder / "b.txt", "b"), make_folder]
)
def test_what_a_dead_process_left_is_removed(tmp_path: Path, sweep: object) -> None:
    dead, machine = dead_process(), _machine()
    orphan = tmp_path / f".1_e.{dead}-{machine}.part.png"
    files_of_others = [
        tmp_path / f".1_e.{os.getppid()}-{machine}.part.png",
        tmp_path / f".1_e.{dead}-00000000.part.png",
        tmp_path / ".hidden.png",
    ]
    for file in (orphan, *files_of_others):
        file.write_bytes(b"half")
    assert callable(sweep)
    sweep(tmp_path)
    assert not orphan.exists() and all(file.exists() for file in files_of_others)


def test_a_manifest_is_whole_or_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(encode_png(np.full((32, 32, 3), 90, np.uint8)))
    command = [
        "corrupt",
        str(image),
        "--output",
        str(tmp_path / "out"),
        "--name",
        "jpeg",
        "--strength",
        "low",
    ]
    assert main(command) == 0
    before = (tmp_path / "out/manifest.csv").read_bytes()

    def full(_: Path, target: Path) -> None:
        if target.name == "manifest.csv":
            raise OSError(28, "No space left on device")
        shutil.move(_, target)

    monkeypatch.setattr(Path, "replace", full)
    assert main([*command, "--seed", "5"]) == 2
    assert (tmp_path / "out/manifest.csv").read_bytes() == before
    assert not [
        path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")
    ]
    capsys.readouterr()


def test_errors_of_ours_take_one_message() -> None:
    assert str(PsyprobeError("a")) == "a"


def test_a_small_experiment_is_still_read(tmp_path: Path, capsys: Output) -> None:
    page = write_experiment(tmp_path)
    assert main(["run", str(page), "--plan", "--observer", "pixels"]) == 0
    capsys.readouterr()
