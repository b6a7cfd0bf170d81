"""The package in docs/observers.md is built, installed and run; a broken one beside it is one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build", reason="the test extra is not installed")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "observers.md"


def _block(name: str) -> str:
    """The code block that follows the name of a file."""
    found = re.search(rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found.group(1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the path of Python that holds the package of the page, and one whose module is missing."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    (source / "pyproject.toml").write_text(_block("pyproject.toml"))
    (source / "coarse_observers.py").write_text(_block("coarse_observers.py"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(source), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = source.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    broken = site / "broken-0.1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (broken / "entry_points.txt").write_text("[psyprobe.observers]\nbroken = no_such_module:KIND\n")
    return site


def _psyprobe(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH", str(PAGE.parents[1])))))
    return subprocess.run(
        [sys.executable, "-m", "psyprobe", *arguments],
        env={**os.environ, "PYTHONPATH": paths}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_is_listed_and_a_broken_one_is_one_line(installed: Path, tmp_path: Path) -> None:
    told = _psyprobe(installed, tmp_path, "list", "observers")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert sum("coarse:SIDE" in line and "each block of SIDE x SIDE px" in line for line in lines) == 1
    assert sum("no_such_module" in line for line in lines) == 1
    assert any(line.split()[:1] == ["pixels"] for line in lines)


def test_it_runs_and_the_broken_one_says_why(installed: Path, tmp_path: Path) -> None:
    ran = _psyprobe(installed, tmp_path, "run", "gabor_achromatic", "--observer", "coarse:8")
    assert ran.returncode == 0, ran.stderr
    assert "coarse:8" in ran.stdout
    refused = _psyprobe(installed, tmp_path, "run", "gabor_achromatic", "--observer", "broken:x")
    assert refused.returncode != 0
    assert refused.stderr.strip().count("\n") == 0 and "No module named 'no_such_module'" in refused.stderr
