"""Everything that the package computed before it was rebuilt, computed again: the same numbers, bit
for bit.

The last bits of a sum depend on the processor and on the versions of libraries. On another machine
than the one that `data/machine.json` tells of, numbers are therefore compared to 1e-9 (absolutely
1e-12; float32 to four steps of it; scores of answers in words to 1e-5), numbers inside texts too,
and digests of pixels and files are not.
"""

from __future__ import annotations

import json

import pytest

from tests.goldens import held
from tests.goldens.cases import CASES, Bench

pytest.importorskip("cv2", reason="the corruption extra is not installed")
pytest.importorskip("skimage", reason="the corruption extra is not installed")

pytestmark = pytest.mark.slow

SAME_MACHINE = held.machine() == json.loads(held.MACHINE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("goldens"))


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_as_it_was(bench: Bench, name: str) -> None:
    found, golden = CASES[name](bench), held.read(name)
    differing = held.differing(found, golden, exact=SAME_MACHINE)
    told = [
        f"{key}: {found.get(key, 'missing')!r}, was {golden.get(key, 'missing')!r}"
        for key in differing[:5]
    ]
    assert not differing, "\n".join(
        [f"{len(differing)} of {len(golden)} values differ:", *told]
    )


def test_numbers_are_compared_bit_for_bit_here() -> None:
    if not SAME_MACHINE:
        pytest.skip(
            "another processor or other libraries than the goldens': numbers were compared to 1e-9"
        )
