"""What all tests share: the oracle data beside the checkout, and a fixed profile for hypothesis."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("psyprobe", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("psyprobe")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of oracle values; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("oracle data (../shared/data) is not beside this checkout")
    return SHARED
