"""The packages of docs/plugins.md are built, installed and run; broken ones beside them are a line
each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build", reason="the test extra is not installed")
ROOT = Path(__file__).resolve().parents[1]
FILES = re.findall(
    r"^```\w+ \((\S+/\S+\.\w+)\)\n(.*?)^```",
    (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
PACKAGES = (
    "coarse_observers",
    "polarity_probe",
    "checks_stimulus",
    "dim_people",
    "checks_pages",
    "run_counts",
)
ROOMS = ("observers", "probes", "stimuli", "human", "experiments")
GROUPS = (*ROOMS, "commands", "harnesses")
PAGE = """
title    = "Polarity"
stimulus = { kind = "gabor", parameters = { frequency = 4, contrast = 0.5, size = 64 } }
probe    = "polarity"
levels   = { frequency.values = [1, 4], contrast.values = [0.1, 0.5] }
human    = { model = "dim_csf" }
score    = { multiplier.values = [0.5, 1, 2] }
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path of Python that holds the packages of the page, and broken ones of every
    kind."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in FILES:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    assert {path.name for path in source.iterdir()} == set(PACKAGES)
    for package in PACKAGES:
        build = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            source,
            source / package,
        ]
        subprocess.run(
            build,
            check=True,
            capture_output=True,
            timeout=1200,
        )
    for wheel in source.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(site)
    broken = site / "broken-0.1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n"
    )
    points = "".join(
        f"[psyprobe.{room}]\nbroken_{room} = no_such_module:THING\n" for room in GROUPS
    )
    (broken / "entry_points.txt").write_text(points)
    return site


def psyprobe(
    installed: Path, folder: Path, *arguments: str, fails: bool = False
) -> str:
    """Run a command, and return its standard output, or its standard error if it must fail."""
    process = subprocess.run(
        [sys.executable, "-m", "psyprobe", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(installed), str(ROOT)))},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert (process.returncode != 0) == fails, process.stderr
    return process.stderr if fails else process.stdout


def test_all_are_listed_and_each_broken_one_is_one_line(
    installed: Path, tmp_path: Path
) -> None:
    lines = psyprobe(installed, tmp_path, "list").splitlines()
    for listing in (
        "coarse:SIDE",
        "each block of SIDE x SIDE px",
        "polarity ",
        "from polarity_probe",
        "Sensitivity of my people: low-pass in dim light.",
        "Checkerboards over the size of their checks",
    ):
        assert sum(listing in line for line in lines) == 1, listing
    assert sum("no_such_module" in line for line in lines) == len(ROOMS)
    for ours in (
        "pixels",
        "detection",
        "gabor_achromatic",
        "castle_csf",
        "office_lcd",
        "hernandez2025",
    ):
        assert any(line.split()[:1] == [ours] for line in lines), ours


def test_an_observer_runs_and_a_broken_one_says_why(
    installed: Path, tmp_path: Path
) -> None:
    assert "coarse:8" in psyprobe(
        installed, tmp_path, "run", "area", "--score-only", "--observer", "coarse:8"
    )
    refused = psyprobe(
        installed,
        tmp_path,
        "run",
        "area",
        "--observer",
        "broken_observers:x",
        fails=True,
    )
    assert (
        refused.strip().count("\n") == 0
        and "No module named 'no_such_module'" in refused
    )


def test_a_probe_runs_against_people_of_another_package(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "polarity.toml").write_text(PAGE, encoding="utf-8")
    output = psyprobe(
        installed, tmp_path, "run", "polarity.toml", "--observer", "pixels"
    )
    assert "polarity (angular)" in output
    assert {
        path.suffix for path in (tmp_path / "psyprobe-results").glob("polarity-*")
    } == {
        ".nc",
        ".json",
        ".png",
    }
    (tmp_path / "polarity.toml").write_text(
        PAGE.replace('"polarity"', '"broken_probes"'), encoding="utf-8"
    )
    refused = psyprobe(
        installed, tmp_path, "run", "polarity.toml", "--observer", "pixels", fails=True
    )
    assert (
        refused.strip().count("\n") == 0
        and "No module named 'no_such_module'" in refused
    )


def test_an_experiment_runs_with_a_kind_of_another_package(
    installed: Path, tmp_path: Path
) -> None:
    psyprobe(installed, tmp_path, "run", "checks_over_size", "--observer", "pixels")
    assert (tmp_path / "psyprobe-results" / "checks_over_size-pixels.nc").exists()
    refused = psyprobe(
        installed,
        tmp_path,
        "run",
        "checks_over_sise",
        "--observer",
        "pixels",
        fails=True,
    )
    assert "did you mean 'checks_over_size'" in refused


def test_a_command_runs_and_a_broken_one_is_told_beside_the_others(
    installed: Path, tmp_path: Path
) -> None:
    output = psyprobe(installed, tmp_path, "--help")
    assert "count-runs" in output and "count the runs in a store" in output
    assert "commands of broken_commands cannot be used: no_such_module:THING" in output
    options = ("--variants", "none", "--score-only")
    psyprobe(installed, tmp_path, "run", "area", *options, "--observer", "pixels")
    store = tmp_path / "psyprobe-results" / "runs.sqlite"
    assert int(psyprobe(installed, tmp_path, "count-runs", str(store))) == 1


def test_a_broken_harness_is_one_line(installed: Path, tmp_path: Path) -> None:
    arguments = (
        "store",
        "import",
        "x",
        "--as",
        "broken_harnesses",
        "-o",
        "runs.sqlite",
    )
    refused = psyprobe(installed, tmp_path, *arguments, fails=True)
    assert (
        refused.strip().count("\n") == 0
        and "No module named 'no_such_module'" in refused
    )


USE = """
from pathlib import Path
from psyprobe.human import csf, list_human, load_reference
(row,) = [row for row in list_human() if row.name == "dim_csf"]
print(row.summary, row.source, row.obstacle, sep="|")
people = load_reference({"model": "dim_csf"}, Path())
print(csf("dim_csf")(0, luminance=25), people.sensitivity(frequency=0, luminance=100))
"""


def test_people_answer_in_python(installed: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])
    }
    run = subprocess.run(
        [sys.executable, "-c", USE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    assert run.stdout.splitlines() == [
        "Sensitivity of my people: low-pass in dim light.|dim-people 1.0|",
        "150.0 300.0",
    ]


def test_two_packages_with_one_page_are_told_apart(
    installed: Path, tmp_path: Path
) -> None:
    """The second of two is a line, and the first works on; a page that is no TOML is a line too."""
    twin = tmp_path / "twin_pages"
    twin.mkdir()
    (twin / "checks_over_size.toml").write_text('title = "Twin"', encoding="utf-8")
    (twin / "area.toml").write_text('title = "Another area"', encoding="utf-8")
    lone = tmp_path / "lone_pages"
    lone.mkdir()
    (lone / "slip.toml").write_text("title = ", encoding="utf-8")
    for name in ("twin", "lone"):
        dist_info = tmp_path / f"{name}-0.1.dist-info"
        dist_info.mkdir()
        (dist_info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n"
        )
        (dist_info / "entry_points.txt").write_text(
            f"[psyprobe.experiments]\n{name} = {name}_pages\n"
        )
    search_path = f"{installed}{os.pathsep}{tmp_path}"
    output = psyprobe(Path(search_path), tmp_path, "list", "experiments")
    assert (
        "twin_pages has a page 'area', and so has another; give it another name"
        in output
    )
    assert (
        "Checkerboards over the size of their checks" in output
        and "slip.toml is not valid TOML" in output
    )
