"""Goldens in files: arrays in one compressed file a case, all else in JSON, and on what they were
computed."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tests.goldens.names import Golden, Value

DATA = Path(__file__).parent / "data"
MACHINE = DATA / "machine.json"
_NUMBER = re.compile(r"([-+]?\d+\.?\d*(?:e[-+]?\d+)?)")


def machine() -> dict[str, Any]:
    """Return the facts on which the last bits of a result depend."""
    libraries = (
        "numpy",
        "scipy",
        "pandas",
        "pillow",
        "opencv-python-headless",
        "scikit-image",
    )
    config = np.show_config(mode="dicts")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {name: version(name) for name in libraries},
        "blas": config["Build Dependencies"]["blas"].get("version", ""),
        "simd": config["SIMD Extensions"],
        "threads": int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1),
    }


def write(name: str, golden: Golden) -> None:
    arrays = {
        key: value for key, value in golden.items() if isinstance(value, np.ndarray)
    }
    scalars = {key: value for key, value in golden.items() if key not in arrays}
    DATA.mkdir(exist_ok=True)
    np.savez_compressed(DATA / f"{name}.npz", **arrays)
    (DATA / f"{name}.json").write_text(
        json.dumps(scalars, indent=0, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read(name: str) -> Golden:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        arrays: Golden = {key: file[key] for key in file.files}
    scalars: Golden = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return arrays | scalars


def differing(current: Golden, stored: Golden, exact: bool) -> list[str]:
    """Names of values that are not the same, one of both missing included."""
    return [
        key
        for key in current | stored
        if key not in current
        or key not in stored
        or not is_same(key, current, stored, exact)
    ]


def is_same(key: str, current: Golden, stored: Golden, exact: bool) -> bool:
    """Bit for bit; or, on another machine, within rounding, digests not compared."""
    first, other = (
        float(value) if type(value) is int else value
        for value in (current[key], stored[key])
    )
    rtol, atol = 1e-9, 1e-12
    if "/score/" in key:
        # Scores of answers in words rest on fits, which end where the log likelihood gains less
        # than 1e-8.
        rtol = atol = 1e-5
    elif "/float32/" in key:
        rtol = 4 * float(np.finfo(np.float32).eps)
    if type(first) is not type(other):
        return False
    if exact:
        return identical(first, other)
    if isinstance(first, np.ndarray) and isinstance(other, np.ndarray):
        if first.dtype.kind != other.dtype.kind or first.shape != other.shape:
            return False
        if first.dtype.kind == "U":
            return close_text(
                "\n".join(first.ravel()), "\n".join(other.ravel()), rtol, atol
            )
        return close(first, other, rtol, atol)
    if isinstance(first, float) and isinstance(other, float):
        return close(np.array(first), np.array(other), rtol, atol)
    if isinstance(first, str) and isinstance(other, str):
        return key.endswith("sha256") or close_text(first, other, rtol, atol)
    return first == other


def identical(first: Value, other: Value) -> bool:
    if isinstance(first, np.ndarray) and isinstance(other, np.ndarray):
        numbers = first.dtype.kind in "fc"
        return first.dtype == other.dtype and bool(
            np.array_equal(first, other, equal_nan=numbers)
        )
    if isinstance(first, float) and isinstance(other, float):
        return first == other or (first != first and other != other)
    return first == other


def close_text(first: str, other: str, rtol: float, atol: float) -> bool:
    """Text with numbers between: every second part is a number, and columns are as wide as these
    are long."""
    ours, theirs = (_NUMBER.split(re.sub(" +", " ", text)) for text in (first, other))
    return ours[::2] == theirs[::2] and close(
        np.array(ours[1::2], float), np.array(theirs[1::2], float), rtol, atol
    )


def close(first: np.ndarray, other: np.ndarray, rtol: float, atol: float) -> bool:
    return first.shape == other.shape and bool(
        np.allclose(first, other, rtol=rtol, atol=atol, equal_nan=True)
    )
