"""Doctests and tests print arrays alike, whatever a library sets when it is imported (colour-science sets numpy's)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _print_options() -> Iterator[None]:
    with np.printoptions():
        yield
