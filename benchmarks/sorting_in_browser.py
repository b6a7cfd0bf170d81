"""Time how a site's rankings are sorted in headless Chromium: `python benchmarks/sorting_in_browser.py`.

1,000 runs stand in ten tables of 100 observers, and in one table. A click is timed to the end of the
layout that it causes, nine times for each of three columns.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "publishing")]

import webdriver
from test_registry_site import build, run_facts

RUNS = 1000
#: Shortest and median times of a column's clicks in ms: of the script, and with the layout.
TIMES = """(() => {
  const table = document.querySelector(".ranking");
  return JSON.stringify([...table.querySelectorAll(".sort")].slice(0, 3).map((button) => {
    const times = Array.from({ length: 9 }, () => {
      const begun = performance.now();
      button.click();
      const sorted = performance.now();
      void table.getBoundingClientRect().height;
      return [sorted - begun, performance.now() - begun];
    }).sort(([, a], [, b]) => a - b);
    return [button.textContent, times[0][0], times[0][1], times[4][1]];
  }));
})()"""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as temporary,
        pytest.MonkeyPatch.context() as patch,
        webdriver.browser() as browser,
    ):
        for tables in (10, 1):
            folder = Path(temporary) / str(tables)
            folder.mkdir()
            observers = range(RUNS // tables)
            runs = [run_facts(i, j) for i in observers for j in range(tables)]
            site = build(folder, runs, patch)
            browser.open((site / "index.html").as_uri())
            browser.wait("document.documentElement.dataset.drawn", "yes")
            print(f"{tables} tables of {len(observers)} observers")
            for name, script, shortest, median in json.loads(browser.run(TIMES)):
                print(
                    f"  {name}: shortest {shortest:.0f} ms, of them script {script:.0f}; "
                    f"median {median:.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
