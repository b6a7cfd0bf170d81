"""What all tests share: the oracle data, and a fixed profile for hypothesis."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("psyprobe", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("psyprobe")

# A shell that starts the tests in its background lets them, and so every child, ignore Ctrl-C; a terminal does not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def oracle_data() -> Path:
    """The values that tests compare with; the README there says what each is and where it comes from."""
    return TESTS / "data"


@pytest.fixture(scope="session")
def beside_checkout() -> Callable[[str], Path]:
    """Finds a folder that cannot travel with the tests; those that need it skip where it is absent."""

    def find(folder: str) -> Path:
        path = TESTS.parents[1] / "shared" / "data" / folder
        if not path.is_dir():
            pytest.skip(f"../shared/data/{folder} is not beside this checkout (tests/data/README.md says why)")
        return path

    return find
