"""The page in a headless browser: every step by keys, trials answered from the pixels that it drew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import webdriver

from psyprobe.cli.people import PersonVisit
from psyprobe.experiment import read_experiment
from psyprobe.observers.people.observer import GIVEN_UP
from psyprobe.observers.people.server import PersonServer
from psyprobe.running.store import open_store

pytestmark = pytest.mark.skipif(bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there")

#: Frames come by a clock of their own, 16 ms apart, since a machine full of work would drop them; after each one the
#: simulated person looks at the pixels, and presses the key of the way in which they vary.
CLOCK = """(() => { let t = performance.now(); window.answering = true;
function look() {
  const c = document.getElementById('canvas'), g = c.getContext('webgl2'), n = c.width, px = new Uint8Array(4 * n * n);
  g.readPixels(0, 0, n, n, g.RGBA, g.UNSIGNED_BYTE, px);
  const rows = new Float64Array(n), columns = new Float64Array(n);
  for (let i = 0; i < n * n; i++) { rows[Math.floor(i / n)] += px[4 * i]; columns[i % n] += px[4 * i]; }
  const spread = (a) => { const m = a.reduce((s, v) => s + v) / n; return a.reduce((s, v) => s + (v - m) ** 2, 0); };
  return [spread(columns), spread(rows)];
}
window.requestAnimationFrame = (f) => setTimeout(() => {
  t += 16; f(t);
  if (document.body.dataset.step !== 'stage' || !window.answering) return;
  const [upright, lying] = look();
  if (Math.max(upright, lying) < 6 * Math.min(upright, lying)) return;
  const event = new KeyboardEvent('keydown', { key: upright > lying ? 'f' : 'j' });
  Object.defineProperty(event, 'timeStamp', { value: t + 200 });
  dispatchEvent(event);
}, 0); return 1; })()"""
STEP = "document.body.dataset.step"


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Browser]:
    with webdriver.browser() as opened:
        yield opened


def photograph(browser: webdriver.Browser, name: str) -> None:
    """Into the folder of the environment variable PSYPROBE_SCREENSHOTS, where somebody wants to look."""
    if folder := os.environ.get("PSYPROBE_SCREENSHOTS"):
        browser.screenshot(Path(folder) / f"{name}.png")


def click(browser: webdriver.Browser, name: str) -> None:
    browser.run(f"document.getElementById('{name}').click()")


def test_from_consent_to_a_trial_and_a_pause(tmp_path: Path, browser: webdriver.Browser) -> None:
    store = tmp_path / "runs.sqlite"
    visit = PersonVisit(read_experiment("orientation_csf"), "ANNA", store)
    with PersonServer(visit) as server:
        browser.open(server.address)
        browser.run(CLOCK)
        browser.wait(STEP, "consent")
        assert browser.run("crossOriginIsolated") is True
        photograph(browser, "1_consent")
        click(browser, "agreed")
        assert "Tick the box" in browser.text("error")
        click(browser, "agree")
        click(browser, "agreed")
        for number in (1, 2):
            browser.wait("document.getElementById('turn').textContent", f"Fit {number} of 2.")
            browser.run(
                "(() => { const w = document.getElementById('width'); w.value = 323; w.oninput(); return 1; })()"
            )
            photograph(browser, f"2_card_{number}")
            click(browser, "fitted")
        browser.wait(STEP, "distance")
        photograph(browser, "3_distance")
        click(browser, "measured")
        browser.wait(STEP, "luminance")
        photograph(browser, "4_luminance")
        click(browser, "off")
        click(browser, "lit")
        browser.wait(STEP, "practice")
        photograph(browser, "5_practice")
        click(browser, "try")
        browser.wait(STEP, "stage")
        photograph(browser, "6_practice")
        browser.wait(STEP, "ready")
        photograph(browser, "7_ready")
        browser.run("window.answering = false")
        click(browser, "start")
        browser.wait("document.body.dataset.trial", "1.1")
        photograph(browser, "8_trial")
        browser.press("p")
        browser.wait(STEP, "pause")
        photograph(browser, "9_pause")
        browser.run("window.answering = true")
        click(browser, "on")
        browser.wait("document.body.dataset.trial[0]", "2")
        visit.pause()
    with open_store(store, create=False) as opened:
        first, *_, last = (answered.answer["reply"] for answered, _ in opened.kept_answers())
    assert first["finish"] == GIVEN_UP and first["sitting"]["why"] == "paused"
    assert last["finish"] == "stop" and last["sitting"]["number"] == 1 and last["sitting"]["attempt"] > 1
    assert browser.complaints() == []
