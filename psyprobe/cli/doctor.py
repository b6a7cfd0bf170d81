"""``psyprobe doctor``: print what a report of a fault should hold.

It holds no key, no answer, and no path but those of stores.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version

from psyprobe.errors import PsyprobeError, describe_failure
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import software_versions
from psyprobe.files.terminal import show
from psyprobe.observers import list_observers
from psyprobe.running.maintenance import summary
from psyprobe.running.store import Store

#: Packages that numbers of networks and servers depend on, besides those of every result.
_NETWORK_PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "open_clip_torch",
    "transformers",
    "aiohttp",
    "opencv-python-headless",
)
#: Environment variables that bound the threads of numpy and torch.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def doctor_command(arguments: argparse.Namespace) -> int:
    """Print system, versions, observers and stores; the exit code is 1 if a store is unusable."""
    stores = {name: _store(name) for name in arguments.store}
    rows = list_observers()
    facts = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": {
            **software_versions(),
            **{
                name: _find_version(name)
                for name in _NETWORK_PACKAGES
                if _find_version(name)
            },
        },
        "extras": _extras(),
        "observers": {row.name: row.obstacle for row in rows if row.obstacle},
        "can_run": [row.name for row in rows if not row.obstacle],
        "device": _describe_device(),
        "threads": _count_threads(),
        "stores": stores,
    }
    show(facts, _format_facts(facts), arguments)
    return int(any("problem" in store for store in stores.values()))


def _format_facts(facts: JsonMapping) -> str:
    """Write the facts of this installation as lines of text."""
    lines = [
        f"system: {facts['system']}",
        f"versions: {_join_pairs(facts['versions'])}",
    ]
    lines += [
        f"extra {name}: {f'lacks {_join(missing)}' if missing else 'there'}"
        for name, missing in facts["extras"].items()
    ]
    lines += [
        f"device: {facts['device']}",
        f"threads: {_join_pairs(facts['threads'])}",
        f"can run here: {_join(facts['can_run'])}",
    ]
    names_by_obstacle: dict[str, list[str]] = {}
    for name, obstacle in facts["observers"].items():
        names_by_obstacle.setdefault(obstacle.partition(";")[0], []).append(name)
    for obstacle, names in names_by_obstacle.items():
        lines.append(f"cannot run here: {_join(names)}: {obstacle}")
    lines += [
        f"store {name}: {_join_pairs(store)}" for name, store in facts["stores"].items()
    ]
    return "\n".join(lines)


def _join_pairs(values: JsonMapping) -> str:
    """Join names and values to "name value, name value"."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in values.items()
    )


def _join(names: Iterable[str]) -> str:
    """Join names by commas, or say "none"."""
    return ", ".join(names) or "none"


def _find_version(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extras() -> dict[str, list[str]]:
    """List for each extra of psyprobe ("server" ...) the packages that are not installed."""
    packages: dict[str, list[str]] = {}
    for line in requires("psyprobe") or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]
        extra = re.search(r"extra *== *['\"]([^'\"]+)", marker)
        if extra and name != "psyprobe":
            packages.setdefault(extra[1], []).append(name)
    return {
        extra: [name for name in names if _find_version(name) is None]
        for extra, names in packages.items()
    }


def _describe_device() -> str:
    """Describe what torch can compute on here: CPU, or the names of CUDA devices."""
    if _find_version("torch") is None:
        return "no torch, and so no network"
    try:
        import torch

        if not torch.cuda.is_available():
            return "cpu; torch sees no CUDA device"
        names = map(torch.cuda.get_device_name, range(torch.cuda.device_count()))
        return f"CUDA {torch.version.cuda}: {_join(names)}"
    except (
        Exception
    ) as problem:  # whatever a broken installation raises is what a report needs
        return f"torch cannot be used: {describe_failure(problem)}"


def _count_threads() -> JsonObject:
    """Count the processor cores, and collect the environment variables that limit threads."""
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    return {"cores": cores} | {
        name: os.environ[name] for name in _THREADS if name in os.environ
    }


def _store(name: str) -> JsonObject:
    """Count the bytes, answers and runs of a store, or describe why it cannot be read."""
    try:
        with Store(name, create=False) as store:
            contents = summary(store)
            endings = [run["finished"] for run in contents["runs"]]
            return {name: contents[name] for name in ("bytes", "answers")} | {
                "runs": len(endings),
                "finished": len(endings) - endings.count(None),
            }
    except PsyprobeError as error:
        return {"problem": str(error)}
