"""One store and its registry for all tests of what is published."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds_of_results import write_kinds

from psyprobe.reporting.publishing.publish import Published, Terms, publish


@pytest.fixture(scope="session")
def published_kinds(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Path, list[Published]]:
    """A store of a run of each kind, the registry it was published in, and what became of each."""
    folder = tmp_path_factory.mktemp("kinds")
    store, registry = folder / "runs.sqlite", folder / "registry"
    write_kinds(store)
    return store, registry, publish(store, registry, Terms("Example Laboratory"))
