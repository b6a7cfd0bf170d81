"""Pages of experiments about items, and running them with a judge that is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import xarray

from psyprobe.experiment import load_experiment
from psyprobe.probes import build_result, load_probe
from psyprobe.running.loop import ask
from psyprobe.running.store import open_store


def write_page(
    path: Path,
    probe: str,
    items: Path,
    judge: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """An experiment's page about a folder of items."""
    lines = [
        'title = "Items"',
        f'probe = "{probe}"',
        f"items = {json.dumps(str(items))}",
    ]
    for name, table in (("judge", judge or {}), ("options", options)):
        lines += (
            [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
            if table
            else []
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run_page(
    page: Path, observer: Any, store: Any = None, **options: Any
) -> xarray.Dataset:
    """Run a page like `psyprobe.run`, with options of the probe's `plan`, such as a judge."""
    experiment = load_experiment(page)
    probe: Any = load_probe(experiment.probe)
    schedule = probe.plan(experiment, observer, **options)
    with open_store(store) as opened:
        record = ask(opened, probe, schedule, description="items", progress=False)
        return build_result(record, opened)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items())
            + "}"
        )
    return json.dumps(value)
