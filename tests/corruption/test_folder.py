"""Folders of images: the same bytes whatever the order and the number of workers, and one sentence
for a bad file."""

from __future__ import annotations

import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from psyprobe.cli import main
from psyprobe.corruption import corrupt
from psyprobe.corruption.apply import corrupt_files
from psyprobe.errors import InputError
from psyprobe.files.images import images_in, read_image

pytest.importorskip("cv2", reason="the corruption extra is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "photographs"
    place.mkdir()
    for i, name in enumerate(("cat", "dog", "cow")):
        pixels = np.random.default_rng(i).integers(0, 256, (40, 48, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{name}.png")
    return place


def test_files_and_manifest_are_what_corrupt_gives(
    folder: Path, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as executor:
        report = corrupt_files(
            images_in(folder),
            tmp_path / "out",
            names=["jpeg", "white_noise"],
            seed=4,
            executor=executor,
            progress=False,
        )
    assert len(report.files) == 3 * 2 * 3
    with report.manifest.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [path.name for path in report.files]
    for row in rows:
        original = read_image(folder / row["original"])
        image_id = Path(row["original"]).stem
        expected = corrupt(
            original, row["name"], row["strength"], int(row["seed"]), image_id=image_id
        )
        np.testing.assert_array_equal(
            read_image(tmp_path / "out" / row["file"]), expected
        )


def test_order_and_workers_do_not_matter(folder: Path, tmp_path: Path) -> None:
    paths = images_in(folder)
    for name, order, workers in (("one", paths, 1), ("two", paths[::-1], 3)):
        with ThreadPoolExecutor(workers) as executor:
            corrupt_files(
                order,
                tmp_path / name,
                names=["impulse_noise"],
                executor=executor,
                progress=False,
            )
    for path in (tmp_path / "one").glob("*.png"):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_processes_of_their_own_and_the_command(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "corrupt",
        str(folder),
        "--name",
        "jpeg",
        "--strength",
        "low",
        "--output",
        str(tmp_path / "out"),
    ]
    assert main(command) == 0
    assert "3 images of 3 originals" in capsys.readouterr().out


def test_a_bad_file_ends_it_or_is_counted(folder: Path, tmp_path: Path) -> None:
    (folder / "bad.png").write_bytes(b"no image")
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(InputError, match=r"bad\.png is no image that can be read"):
            corrupt_files(
                images_in(folder),
                tmp_path / "a",
                names=["jpeg"],
                executor=executor,
                progress=False,
            )
        report = corrupt_files(
            images_in(folder),
            tmp_path / "b",
            names=["jpeg"],
            skip=True,
            executor=executor,
            progress=False,
        )
    assert len(report.skipped) == 1
    assert len(report.files) == 9


def test_two_images_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    Image.open(folder / "cat.png").save(folder / "cat.bmp")
    with pytest.raises(InputError, match="two images are called 'cat'"):
        corrupt_files(images_in(folder), tmp_path / "out")


def test_the_dimensions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corrupt"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 33
    assert sum("simulated" in line for line in lines) == 5
