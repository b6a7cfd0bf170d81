"""Our own registry: small, and every number of it comes again without the models."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections import defaultdict
from pathlib import Path

import pytest

from psyprobe.cli import main
from psyprobe.experiment import load_suite
from psyprobe.running.registry_run import run_folders

REGISTRY = Path(__file__).resolve().parents[2] / "docs" / "registry"


def test_a_stranger_gets_every_published_score_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One command, in a copy, without models or network: here of one run, as all take a minute;
    of all with PSYPROBE_WHOLE_REGISTRY=1.
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


def test_it_is_small_and_has_the_nine_tests_of_all_observers() -> None:
    sizes = [path.stat().st_size for path in REGISTRY.rglob("*") if path.is_file()]
    assert max(sizes) < 1e6 and sum(sizes) < 5e6
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for run in run_folders(REGISTRY):
        tests[run.parts[-4]].append(run.parts[-2].rpartition("-")[0])
    assert {name.removeprefix("packaged-").partition("-")[0] for name in tests} == {
        *("pixels", "castlecsf", "cvvdp", "resnet50_augnet", "mobilenetv2", "hed"),
        *(f"efficientnet_lite{number}" for number in range(3)),
        "vit_small_dinov2_saliency",
    }
    nine = sorted(experiment.name for experiment in load_suite("cai2025"))
    assert all(sorted(names) == nine for names in tests.values())


def test_the_page_of_results_says_what_the_registry_holds() -> None:
    """Of the observers that it shows with one variant."""
    page = REGISTRY.with_name("results.md").read_text(encoding="utf-8")
    table = page.partition("<!-- table: nine tests -->")[2]
    for observer in ("hed", "vit_small_dinov2_saliency"):
        row = table.partition(f"| packaged:{observer} | ")[2].partition("\n")[0]
        cells = iter(row.split(" | "))
        for experiment in load_suite("cai2025"):
            pattern = (
                f"results/packaged-{observer}-*/*/{experiment.name}-*/*/scores.json"
            )
            (path,) = REGISTRY.glob(pattern)
            scores = json.loads(path.read_text(encoding="utf-8"))
            for number in scores["main"]:
                digits = 2 if number["metric"] == "alignment" else 3
                assert next(cells).split()[0] == f"{number['value']:.{digits}f}"
