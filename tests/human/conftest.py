"""Fixtures that the tests of the human models share: oracle tables as columns."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psyprobe._typing import FloatArray

Columns = dict[str, FloatArray]


@pytest.fixture(scope="session")
def oracle(oracle_data: Path) -> Callable[[str], Columns]:
    """Reads the columns of an oracle table that hold numbers."""

    def load(name: str) -> Columns:
        with (oracle_data / name).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        columns = {}
        for key in rows[0]:
            try:
                columns[key] = np.array([float(row[key]) for row in rows])
            except ValueError:
                continue
        return columns

    return load
