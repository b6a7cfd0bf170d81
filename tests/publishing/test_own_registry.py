"""Our own registry: small, and every number of it comes again without the models."""

from __future__ import annotations

from pathlib import Path

from psyprobe.reporting.publishing.check import Repeats, check_registry
from psyprobe.running.registry_run import run_folders

REGISTRY = Path(__file__).resolve().parents[2] / "docs" / "registry"


def test_a_stranger_gets_every_published_score_again() -> None:
    """Of one run here; ``psyprobe registry check docs/registry`` does so of all."""
    folders = [run for run in run_folders(REGISTRY) if run.parts[-4] == "pixels"]
    area = [run for run in folders if run.parts[-2].startswith("area-")]
    (checked,) = check_registry(REGISTRY, area, Repeats(redraw=0.0))
    assert checked.problems == () and checked.notes == ()


def test_it_is_small() -> None:
    sizes = [path.stat().st_size for path in REGISTRY.rglob("*") if path.is_file()]
    assert max(sizes) < 2**20 and sum(sizes) <= 5 * 2**20
    assert {run.parts[-4] for run in run_folders(REGISTRY)} == {
        "castlecsf",
        "packaged-efficientnet_lite0-5eed06",
        "pixels",
    }
