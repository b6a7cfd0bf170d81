"""How planning, running, the store and memory grow with the number of questions of one page.

    python benchmarks/growth.py [--most 100000] [--plans 1000000] [-o FOLDER]

Images are 16 x 16 px, so that the time is that of psyprobe itself. Each measurement is a process of
its own: processor time and largest memory of the whole of it, its start included. Pixels are asked
about every pair, and a simulated observer about every image in one wording: a question for each
condition.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = """
title = "Many questions"
stimulus = {{ kind = "gabor", parameters = {{ ppd = 16, size = 16, frequency = 2, contrast = 0.1, radius = 0.2 }} }}
probe = "{probe}"
[levels]
frequency = {{ from = 1, to = 6, n = {frequencies} }}
contrast = {{ from = 0.01, to = 0.5, n = {contrasts} }}
[display]
peak = 400
{asking}"""
ASKING = """
[asking]
prompts = [{ id = "one", text = "Is there a pattern?" }]
repeats = 1
catch = 0.0
readout = "text"
[delivery]
refuse = false
"""
OBSERVERS = {"pixels": "pixels", "words": "simulated:watson-malo"}
#: What is measured: of whom, and whether it is planned or run; a second time, everything is
#: answered.
WORK = (
    "plan pixels",
    "run pixels",
    "run pixels again",
    "plan pixels again",
    "plan words",
    "run words",
)


def page_of(kind: str, conditions: int, folder: Path) -> Path:
    """A page with about so many conditions."""
    contrasts = 10 if conditions < 10_000 else 100
    words = kind == "words"
    text = PAGE.format(
        probe="yes_no" if words else "detection",
        frequencies=conditions // contrasts,
        contrasts=contrasts,
        asking=ASKING if words else "",
    )
    path = folder / f"{kind}_{conditions}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def measured(work: str, conditions: int, folder: Path) -> dict[str, Any]:
    """One measurement in a process of its own: processor seconds, largest memory, bytes of the
    store."""
    action, kind, *_ = work.split()
    page = page_of(kind, conditions, folder)
    store = folder / f"{kind}_{conditions}.sqlite"
    code = (
        "import sys, psyprobe as pp\n"
        "what, page, observer, store = sys.argv[1:]\n"
        "pp.plan(page, observer, store=store) if what == 'plan' else "
        "pp.run(page, observer, store=store, progress=False)\n"
        # Its own largest memory: what wait4 tells of a child begins with the memory of the parent
        # it was forked from.
        "print(next(line.split()[1] for line in open('/proc/self/status') if "
        "line.startswith('VmHWM')))\n"
    )
    arguments = [
        sys.executable,
        "-c",
        code,
        action,
        str(page),
        OBSERVERS[kind],
        str(store),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        output = child.stdout.read() if child.stdout else ""
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
    if status:
        raise RuntimeError(f"{work} with {conditions} conditions failed")
    return {
        "work": work,
        "conditions": conditions,
        "seconds": round(used.ru_utime + used.ru_stime, 2),
        "megabytes": int(output.split()[-1]) // 1024,
        "store_bytes": store.stat().st_size if store.exists() else 0,
    }


def grown(run_limit: int, plans: int) -> list[dict[str, Any]]:
    """Return all measurements; `run_limit` conditions are run, and `plans` planned."""
    measurements = []
    with tempfile.TemporaryDirectory() as folder:
        for conditions in (1000, 10_000, 100_000, 1_000_000):
            for work in WORK:
                is_run = work.startswith("run") or work.endswith("again")
                if conditions <= (run_limit if is_run else plans):
                    measurements.append(measured(work, conditions, Path(folder)))
                    print(json.dumps(measurements[-1]), flush=True)
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--most", type=int, default=100_000, help="conditions that are run"
    )
    parser.add_argument(
        "--plans", type=int, default=1_000_000, help="conditions that are planned"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path())
    options = parser.parse_args()
    measurements = grown(options.most, options.plans)
    (options.output / "growth.json").write_text(json.dumps(measurements, indent=1))
    print(
        "largest memory of this process: "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB"
    )


if __name__ == "__main__":
    main()
