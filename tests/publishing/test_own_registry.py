"""Our own registry: small, and every number of it comes again without the models."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from psyprobe.cli import main
from psyprobe.running.registry_run import run_folders

REGISTRY = Path(__file__).resolve().parents[2] / "docs" / "registry"


def test_a_stranger_gets_every_published_score_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One command, in a copy, without models or network: here of one run, as all take half a
    minute; of all with PSYPROBE_WHOLE_REGISTRY=1.
    """
    clone = shutil.copytree(REGISTRY, tmp_path / "registry")
    runs = run_folders(clone)
    if "PSYPROBE_WHOLE_REGISTRY" not in os.environ:
        runs = [run for run in runs if run.parts[-4] == "pixels"]
        runs = [run for run in runs if run.parts[-2].startswith("area-")]
    monkeypatch.setattr(socket.socket, "connect", None)
    command = ["registry", "check", str(clone), *map(str, runs)]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{len(runs)} runs, 0 not sound, 0 with notes\n"


def test_it_is_small() -> None:
    sizes = [path.stat().st_size for path in REGISTRY.rglob("*") if path.is_file()]
    assert max(sizes) < 2**20 and sum(sizes) <= 5 * 2**20
    assert {run.parts[-4] for run in run_folders(REGISTRY)} == {
        "castlecsf",
        "packaged-efficientnet_lite0-5eed06",
        "pixels",
    }
