"""The page in a headless browser: every step, trials answered from the pixels that it drew, and who
is kept out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import webdriver
from person_at_page import STEP, PersonAtPage, sessions, visit

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.observers.people.server import PersonServer

pytestmark = pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Browser]:
    with webdriver.browser() as opened:
        yield opened


def test_from_consent_to_a_result_by_what_the_page_draws(
    tmp_path: Path, browser: webdriver.Browser
) -> None:
    served = visit(tmp_path, **{"asking.options.n_max": 4})
    with PersonServer(served) as opened:
        person = PersonAtPage(browser, seed=1, distance=740)
        browser.open(opened.address)
        browser.wait(STEP, "consent")
        assert browser.run("crossOriginIsolated") is True
        browser.photograph("01_consent")
        person.click("agreed")
        assert "Tick the box" in browser.text("error")
        browser.photograph("02_consent_missing")
        person.arrive(opened.address)
        browser.wait(STEP, "measure")
        browser.photograph("03_card")
        person.fit_cards()
        browser.wait(STEP, "distance")
        browser.photograph("04_distance")
        person.enter("millimetres", 600)
        person.click("measured")
        browser.wait(
            "document.getElementById('error').textContent.includes('sit 730 mm away')",
            True,
        )
        browser.photograph("05_distance_too_near")
        person.reach("distance")
        person.enter("millimetres", person.distance)
        person.click("measured")
        person.reach("luminance")
        browser.photograph("06_luminance")
        person.click("off")
        person.click("lit")
        browser.wait(STEP, "practice")
        browser.photograph("07_practice")
        person.reach("practice")
        person.click("try")
        browser.wait(STEP, "stage")
        browser.photograph("08_practising")
        person.until("ready")
        browser.photograph("09_ready")
        browser.run("window.sitter.answering = false")
        person.reach("ready")
        person.click("start")
        browser.wait("document.body.dataset.trial", "1.1")
        browser.photograph("10_trial")
        browser.press("p")
        browser.wait(STEP, "pause")
        browser.photograph("11_pause")
        browser.run("window.sitter.answering = true")
        person.click("on")
        person.until("result")
        browser.photograph("12_result")
        browser.command(
            "Emulation.setDeviceMetricsOverride",
            width=360,
            height=740,
            deviceScaleFactor=2,
            mobile=True,
        )
        assert browser.run("document.documentElement.scrollWidth <= innerWidth") is True
        browser.photograph("13_result_telephone")
        browser.command("Emulation.clearDeviceMetricsOverride")
        log = browser.run("window.sitter.log")
        # Once its server is gone, the page complains of that.
        complaints = browser.complaints()
    first, *_ = all_sessions = sessions(tmp_path)
    assert first["why"] == "paused" and first["attempt"] == 1
    answered = [session for session in all_sessions if "why" not in session]
    assert [session["number"] for session in answered] == [1, 2, 3, 4] and answered[0][
        "attempt"
    ] > 1
    # The distance that was too near.
    assert [
        line for line in complaints if "/calibrate - Failed to load" not in line
    ] == []
    # The page drew the requested trials: contrast from pixels, and direction.
    result = trials(pp.load_results(tmp_path / "runs.sqlite")[0])
    drawn_by_trial = {row[0]: row[1:] for row in log}
    table = trials(result)
    for place, requested in enumerate(table.contrast.values):
        contrast, direction, _ = drawn_by_trial[
            f"{place + 1}.{answered[place]['attempt']}"
        ]
        assert contrast == pytest.approx(requested, rel=0.02)
        assert direction == 90 * table.order.values[place]
    # A whole session takes this long by the person's clock, with three breaks.
    ends = [row[3] for row in log if row[0] != "practice"]
    trial_seconds = float(np.median(np.diff(ends)))
    assert 1.9 < trial_seconds < 2.5
    assert person.minutes() + (90 * trial_seconds + 3 * 15) / 60 < 10


def test_a_second_tab_waits_until_the_first_is_closed(
    tmp_path: Path, browser: webdriver.Browser
) -> None:
    with PersonServer(visit(tmp_path)) as opened:
        browser.open(opened.address)
        browser.wait(STEP, "consent")
        browser.tab()
        first, second = browser.tabs()
        browser.open(opened.address)
        browser.wait(STEP, "taken")
        assert "open in another tab" in browser.text("error")
        browser.photograph("14_second_tab")
        # A copy of the first tab has what its session stores, and is another tab all the same.
        browser.switch(first)
        browser.run("(window.open(location.href), 1)")
        (third,) = {*browser.tabs()} - {first, second}
        browser.switch(third)
        browser.wait(STEP, "taken")
        browser.close_tab()
        # Loaded again, a page is let in at once; closed, it lets the next one in.
        browser.switch(first)
        browser.open(opened.address)
        browser.wait(
            "document.body.dataset.step === 'consent' || document.body.dataset.step === 'taken'",
            True,
        )
        browser.close_tab()
        browser.switch(second)
        browser.wait(STEP, "consent")
        browser.complaints()
