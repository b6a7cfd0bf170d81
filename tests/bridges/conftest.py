"""One small run in words, which other harnesses are handed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_runs import ran, small_page

from psyprobe.experiment import Experiment
from psyprobe.running.store import Store


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return small_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def store(page: Experiment) -> Iterator[Store]:
    """A store with one run of it."""
    with Store(None) as opened:
        ran(opened, page)
        yield opened
