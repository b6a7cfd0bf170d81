"""Draw ten thousand generated stimuli, show them, and look for false alarms and health-check
failures.

    python benchmarks/ten_thousand_cases.py [--cases 10000] [--seed 0]

Every case is a stimulus that a display can show, of any kind, drawn in float64 or float32 by numpy
or torch, measured against its specification, in the display's gamut, and again after encoding. A
failure prints the simplest case.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from psyprobe.light.display import Display
from psyprobe.stimulus import Specification
from psyprobe.testing import assert_calibrated, strategies

KINDS = ("uniforms", "gabors", "gratings", "noises", "discs", "sums")


@st.composite
def cases(draw: st.DrawFn, kind: str) -> tuple[Specification, Display, str, str | None]:
    display = draw(strategies.displays())
    specification = draw(getattr(strategies, kind)(display))
    return (
        specification,
        display,
        draw(st.sampled_from(["float64", "float32"])),
        draw(st.sampled_from([None, "cpu"])),
    )


def _check(kind: str, count: int, start: int, counts: Counter[str]) -> None:
    @seed(start)
    @settings(max_examples=count, deadline=None, database=None)
    @given(cases(kind))
    def check(case: tuple[Any, ...]) -> None:
        specification, display, dtype, device = case
        assert_calibrated(
            specification.draw(dtype=dtype, device=device), display=display
        )
        counts[kind] += 1

    check()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    cases_per_kind = -(-arguments.cases // len(KINDS))
    begun = time.perf_counter()
    counts = Counter[str]()
    for kind in KINDS:
        _check(kind, cases_per_kind, arguments.seed, counts)
        print(f"{kind}: {counts[kind]} cases", flush=True)
    print(
        f"{sum(counts.values())} cases without a false alarm, in "
        f"{time.perf_counter() - begun:.0f} s"
    )


if __name__ == "__main__":
    main()
