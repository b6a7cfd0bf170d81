"""What doctests and tests share: arrays print alike, and no figure outlives its test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _print_options() -> Iterator[None]:
    # colour-science sets numpy's when it is imported.
    with np.printoptions():
        yield


@pytest.fixture(autouse=True)
def _no_figure_outlives_its_test() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
