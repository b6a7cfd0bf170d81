"""``psyprobe doctor``: what a report of a fault should hold; no path but of stores, no key and no
answer is in it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from psyprobe.errors import PsyprobeError, describe_failure
from psyprobe.files.output import software_versions
from psyprobe.files.terminal import show
from psyprobe.observers import list_observers
from psyprobe.running.maintenance import summary
from psyprobe.running.store import Store

#: What numbers depend on where they are computed by a network or a server, besides what every
#: result needs.
_ALSO = (
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
    """Print it all; the exit code is 1 where a store cannot be used."""
    stores = {name: _store(name) for name in arguments.store}
    rows = list_observers()
    found = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": software_versions()
        | {name: known for name in _ALSO if (known := _version(name))},
        "extras": _extras(),
        "observers": {row.name: row.obstacle for row in rows if row.obstacle},
        "can_run": [row.name for row in rows if not row.obstacle],
        "device": _device(),
        "threads": _threads(),
        "stores": stores,
    }
    show(found, _text(found), as_json=arguments.json)
    return int(any("problem" in store for store in stores.values()))


def _text(found: Mapping[str, Any]) -> str:
    lines = [f"system: {found['system']}", f"versions: {_listed(found['versions'])}"]
    lines += [
        f"extra {name}: {f'lacks {_few(lacks)}' if lacks else 'there'}"
        for name, lacks in found["extras"].items()
    ]
    lines += [f"device: {found['device']}", f"threads: {_listed(found['threads'])}"]
    lines += [f"can run here: {_few(found['can_run'])}"]
    alike: dict[str, list[str]] = {}
    for name, why in found["observers"].items():
        alike.setdefault(why.partition(";")[0], []).append(name)
    lines += [f"cannot run here: {_few(names)}: {why}" for why, names in alike.items()]
    lines += [f"store {name}: {_listed(store)}" for name, store in found["stores"].items()]
    return "\n".join(lines)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())


def _few(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extras() -> dict[str, list[str]]:
    """The extras of psyprobe by name, each with the packages that it lacks here."""
    needed: dict[str, list[str]] = {}
    for line in requires("psyprobe") or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]
        extra = re.search(r"extra *== *['\"]([^'\"]+)", marker)
        if extra and name != "psyprobe":
            needed.setdefault(extra[1], []).append(name)
    return {
        extra: [name for name in names if _version(name) is None] for extra, names in needed.items()
    }


def _device() -> str:
    if _version("torch") is None:
        return "no torch, and so no network"
    try:
        import torch

        if not torch.cuda.is_available():
            return "cpu; torch sees no CUDA device"
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        return f"CUDA {torch.version.cuda}: {_few(names)}"
    except Exception as problem:  # whatever a broken installation raises is what a report needs
        return f"torch cannot be used: {describe_failure(problem)}"


def _threads() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": cores} | {name: os.environ[name] for name in _THREADS if name in os.environ}


def _store(name: str) -> dict[str, Any]:
    """How large a store is and what it holds, or the problem with it."""
    try:
        with Store(name, create=False) as store:
            found = summary(store)
            finished = sum(run["finished"] is not None for run in found["runs"])
            return {
                "bytes": found["bytes"],
                "answers": found["answers"],
                "runs": len(found["runs"]),
                "finished": finished,
            }
    except PsyprobeError as error:
        return {"problem": str(error)}
