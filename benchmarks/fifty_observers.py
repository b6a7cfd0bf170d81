"""Time, memory and size of a report over 50 observers in all tests, and how its page behaves.

    OMP_NUM_THREADS=1 python benchmarks/fifty_observers.py [-o FOLDER]

Pixels are asked all nine tests, grids and all, and these runs are copied under 49 labels: 50
*simulated* observers, of which all have the same numbers. The page is opened in headless Chromium:
how long a reader waits until it is open, and for each thing that is clicked.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from million_questions import measure

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

import webdriver

from psyprobe.running.store import Store

COPIES = [f"simulated-{i:02}" for i in range(1, 50)]
SUITE = "cai2025"
#: Answers that are copied at a time.
CHUNK = 10_000


def write_copies(path: Path, copies: Path) -> None:
    """Copy a store, with each finished run again under each label."""
    shutil.copy(path, copies)
    with Store(path, create=False) as source, Store(copies) as target:
        for label in COPIES:
            answers = source.all_answers()
            while chunk := list(islice(answers, CHUNK)):
                target.add_timed(
                    (replace(each, question=replace(each.question, label=label)), when)
                    for each, when in chunk
                )
            for record in source.runs():
                target.adopt_run(record.with_label(label))


#: What is timed, by what it is: a script each, with the layout that it causes.
ACTIONS = {
    "sort the scoreboard": "document.querySelector('.board .sort').click()",
    "draw all figures": "dispatchEvent(new Event('beforeprint'))",
    "choose a measure": "(() => { const list = document.querySelector('.drawn select'); "
    "list.selectedIndex = 1; list.dispatchEvent(new Event('change')); })()",
}


def timed(window: webdriver.Browser, script: str) -> int:
    """Run a script in the page, and return its milliseconds with the layout that it causes."""
    return round(
        window.run(
            f"(() => {{ const begun = performance.now(); {script}; void "
            "document.body.getBoundingClientRect().height; return performance.now() - begun; })()"
        )
    )


def behaviour(page: Path) -> dict[str, Any]:
    """Open a page, and measure what a reader waits for, ms, and how much there is."""
    with webdriver.browser() as window:
        start = time.monotonic()
        window.open(page.as_uri())
        window.wait("document.documentElement.dataset.drawn", "yes")
        opened = round(1000 * (time.monotonic() - start))
        found = {"open": opened}
        found |= {name: timed(window, script) for name, script in ACTIONS.items()}
        found["elements"] = window.run("document.querySelectorAll('*').length")
        found["height, px"] = window.run("document.documentElement.scrollHeight")
        found["complaints"] = window.complaints()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, help="folder for store and page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        copies = folder / "fifty.sqlite"
        page = folder / "fifty.html"
        if not copies.exists():
            store = folder / "one.sqlite"
            run = ["run", SUITE, "--observer", "pixels", "--store", str(store)]
            print(json.dumps(measure([*run, "--output", str(folder)])), flush=True)
            write_copies(store, copies)
        print(json.dumps(measure(["report", str(copies), "-o", str(page)])), flush=True)
        print(f"{page.stat().st_size / 1e6:.1f} MB", flush=True)
        print(json.dumps(behaviour(page), indent=1))


if __name__ == "__main__":
    main()
