"""Check and build a registry of many real runs: `python benchmarks/many_runs.py 1000 --jobs 1 2`.

Ten tests of the catalogue are run and published once; each run is written again under other names of
its observer, every digest made to fit, so that all are sound. Times are processor and wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import psyprobe as pp
from psyprobe.experiment import load_experiment
from psyprobe.files.output import json_text
from psyprobe.observers.protocol import card_digest
from psyprobe.reporting.publishing.check import Repeats, check_registry
from psyprobe.reporting.publishing.identity import run_path
from psyprobe.reporting.publishing.publish import Terms, publish
from psyprobe.reporting.publishing.site import build_site
from psyprobe.running.protocol import DIGEST_DIGITS
from psyprobe.running.registry_run import pack, run_folders, unpack

TESTS = (
    "area",
    "gabor_achromatic",
    "gabor_red_green",
    "gabor_yellow_violet",
    "luminance",
    "mask_coherent",
    "mask_incoherent",
    "noise_achromatic",
    "surround",
    "gabor_masked_parallel",
)


def features(images: Any) -> Any:
    """Every seventh value, and the squares of every fifth."""
    rows = images.reshape(len(images), -1).astype(np.float64)
    return np.concatenate([rows[:, ::7], rows[:, ::5] ** 2], axis=1)


def write_again(run: Path, registry: Path, number: int) -> None:
    """Write a run under another name of its observer."""
    table = json.loads((run / "run.json").read_text(encoding="utf-8"))
    observer = table["observer"]
    card = {**observer["card"], "name": f"observer{number}"}
    digest = card_digest(card)
    unpacked = unpack((run / "answers.jsonl.gz").read_bytes()).decode()
    unpacked = unpacked.replace(
        observer["digest"][:DIGEST_DIGITS], digest[:DIGEST_DIGITS]
    ).replace(f'"name":"{observer["name"]}"', f'"name":"{card["name"]}"')
    table["observer"] |= {"name": card["name"], "card": card, "digest": digest}
    content = unpacked.encode()
    table["answers"] |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    _, observer["revision"], _, table["run"] = run_path(table)
    folder = registry.joinpath("results", *run_path(table))
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json_text(table), encoding="utf-8")
    (folder / "answers.jsonl.gz").write_bytes(pack(content))
    shutil.copy(run / "page.toml", folder)
    text = (run / "scores.json").read_text(encoding="utf-8")
    scores = json.loads(text.replace(f'"{run_name(run)}"', f'"{card["name"]}"'))
    scores |= {"run": table["run"], "answers_sha256": table["answers"]["sha256"]}
    (folder / "scores.json").write_text(json_text(scores), encoding="utf-8")


def run_name(run: Path) -> str:
    """The name of a run's observer."""
    table = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return str(table["observer"]["name"])


def plant(folder: Path, count: int) -> Path:
    """Write a registry of as many runs, a tenth of them a test."""
    store = folder / "runs.sqlite"
    observer = pp.observer(features, name="someone", version="1")
    for name in TESTS:
        page = load_experiment(name)
        page = page.with_variants({}) if page.variants else page
        pp.run(page, observer, store=store, score_only=True, progress=False)
    outcomes = publish(store, folder / "once", Terms("Example Laboratory"))
    assert not any(outcome.reason for outcome in outcomes), outcomes
    registry = folder / "registry"
    registry.mkdir()
    shutil.copy(folder / "once" / "registry.toml", registry)
    for run in run_folders(folder / "once"):
        for number in range(count // len(TESTS)):
            write_again(run, registry, number)
    return registry


def measure(action: Any) -> tuple[Any, float, float]:
    """The value of an action, its processor time with that of its processes, and wall time."""
    cpu, wall = sum(os.times()[:4]), time.monotonic()
    value = action()
    return value, sum(os.times()[:4]) - cpu, time.monotonic() - wall


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--jobs", type=int, nargs="*", default=[1])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        registry = plant(folder, arguments.count)
        files = [path for path in registry.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"{arguments.count} runs, {size / 1e6:.0f} MB", flush=True)
        site = folder / "site"
        _, cpu, wall = measure(lambda: build_site(registry, site))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pages = sorted((path.stat().st_size, path.name) for path in site.glob("*.html"))
        index = (site / "index.html").stat().st_size
        downloads = {*site.glob("results/**/*")}
        site_bytes = sum(
            path.stat().st_size
            for path in site.rglob("*")
            if path.is_file() and path not in downloads
        )
        print(
            f"build: {cpu:.1f} s ({wall:.1f} s), {peak:.0f} MB; index.html {index:,} bytes, "
            f"largest page {pages[-1]}, without runs' files {site_bytes / 1e6:.1f} MB",
            flush=True,
        )
        for jobs in arguments.jobs:
            runs, cpu, wall = measure(
                lambda jobs=jobs: list(check_registry(registry, None, Repeats(), jobs))
            )
            unsound = [run for run in runs if run.problems or run.notes]
            slowest = max(run.seconds for run in runs)
            print(
                f"check --jobs {jobs}: {cpu / len(runs):.2f} s a run, slowest {slowest:.2f}, "
                f"{wall:.0f} s in all; {len(unsound)} not sound {unsound[:1]}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
