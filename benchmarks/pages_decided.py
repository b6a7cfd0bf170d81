"""Put every page that asks for answers to an encoder that decides, as a Markdown table.

python benchmarks/pages_decided.py [OBSERVER]    # packaged:efficientnet_lite2

Pages are cut to two levels, asked once; stages are trained on 16 pairs at the highest contrast. A
page that does not run says why.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import psyprobe as pp
from psyprobe.errors import PsyprobeError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from decided_pages import answered_pages, smallest


def main(observer: str = "packaged:efficientnet_lite2") -> None:
    decided = pp.decide(observer, train="high", pairs=16)
    print("| page | answers | seconds |\n|---|---|---|")
    for name in answered_pages():
        start = time.process_time()
        try:
            result = pp.run(smallest(name), decided, progress=False)
            outcome = str(int(result["response"].count()))
        except PsyprobeError as problem:
            outcome = str(problem)
        print(f"| {name} | {outcome} | {time.process_time() - start:.1f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
