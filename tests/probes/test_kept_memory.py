"""Memory that a batch frees is there for the next one, and not handed out by the system anew."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: Frees blocks of 2 MB, 24 MB in all, as images do, or one of 40 MB, as a layer of a network does,
#: and does it again; says how many pages the system handed out the second time.
_BATCHES = """
import resource
from psyprobe.probes.feature_distances import keep_freed_memory

def batch():
    return [bytearray(b"x") * {size} for _ in range({blocks})]

{keep_call}
batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="other C libraries keep memory by rules of their own",
)
@pytest.mark.parametrize(("size", "blocks"), [(2 << 20, 12), (40 << 20, 1)])
def test_freed_memory_is_kept_for_the_next_batch(size: int, blocks: int) -> None:
    def pages(keep_call: str) -> int:
        code = _BATCHES.format(keep_call=keep_call, size=size, blocks=blocks)
        process = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=1200,
            check=True,
        )
        return int(process.stdout)

    assert pages("") > 1000
    assert pages("keep_freed_memory()") < 100
