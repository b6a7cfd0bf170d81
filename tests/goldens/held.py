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
    """What the last bits of a result depend on."""
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
    others = {key: value for key, value in golden.items() if key not in arrays}
    DATA.mkdir(exist_ok=True)
    np.savez_compressed(DATA / f"{name}.npz", **arrays)
    (DATA / f"{name}.json").write_text(
        json.dumps(others, indent=0, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def read(name: str) -> Golden:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        arrays: Golden = {key: file[key] for key in file.files}
    others: Golden = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return arrays | others


def differing(found: Golden, held: Golden, exact: bool) -> list[str]:
    """Names of values that are not the same, one of both missing included."""
    return [
        key
        for key in found | held
        if key not in found or key not in held or not same(key, found, held, exact)
    ]


def same(key: str, found: Golden, held: Golden, exact: bool) -> bool:
    """Bit for bit; or, on another machine, within rounding, digests not compared."""
    one, other = (
        float(value) if type(value) is int else value
        for value in (found[key], held[key])
    )
    rtol, atol = 1e-9, 1e-12
    if "/score/" in key:
        # Scores of answers in words rest on fits, which end where the log likelihood gains less
        # than 1e-8.
        rtol = atol = 1e-5
    elif "/float32/" in key:
        rtol = 4 * float(np.finfo(np.float32).eps)
    if type(one) is not type(other):
        return False
    if exact:
        return identical(one, other)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype.kind != other.dtype.kind or one.shape != other.shape:
            return False
        if one.dtype.kind == "U":
            return close_text(
                "\n".join(one.ravel()), "\n".join(other.ravel()), rtol, atol
            )
        return close(one, other, rtol, atol)
    if isinstance(one, float) and isinstance(other, float):
        return close(np.array(one), np.array(other), rtol, atol)
    if isinstance(one, str) and isinstance(other, str):
        return key.endswith("sha256") or close_text(one, other, rtol, atol)
    return one == other


def identical(one: Value, other: Value) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        numbers = one.dtype.kind in "fc"
        return one.dtype == other.dtype and bool(
            np.array_equal(one, other, equal_nan=numbers)
        )
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    return one == other


def close_text(one: str, other: str, rtol: float, atol: float) -> bool:
    """Text with numbers between: every second part is a number, and columns are as wide as these
    are long."""
    ours, theirs = (_NUMBER.split(re.sub(" +", " ", text)) for text in (one, other))
    return ours[::2] == theirs[::2] and close(
        np.array(ours[1::2], float), np.array(theirs[1::2], float), rtol, atol
    )


def close(one: np.ndarray, other: np.ndarray, rtol: float, atol: float) -> bool:
    return one.shape == other.shape and bool(
        np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
    )
