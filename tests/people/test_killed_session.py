"""A server or a browser that is killed at some trial: no answer lost, none twice, and the next one
goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import webdriver
from children import child
from person_at_page import EYES, STEP, PersonAtPage, sessions, visit
from simulated_person import SimulatedPerson

from psyprobe.observers.people import server
from psyprobe.observers.people.server import PersonServer
from psyprobe.running.store import open_store


def test_sigkill_at_a_trial_loses_and_doubles_nothing(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    # A server that is killed while it makes its store leaves this.
    store.touch()
    command = [
        sys.executable,
        "-um",
        "psyprobe",
        "observe",
        "orientation_csf",
        "--person",
        "ANNA",
    ]
    for first, last in ((1, 5), (5, 8)):
        with child(
            [*command, "--store", str(store)],
            seconds=300,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None
            person = SimulatedPerson(address[0])
            state = person.begin()
            assert state["number"] == first
            assert person.sit(state, last - first)["number"] == last
            process.send_signal(signal.SIGKILL)
            process.wait(60)
    with open_store(store, create=False) as opened:
        numbers = [
            answered.answer["reply"]["session"]["number"]
            for answered, _ in opened.all_answers()
        ]
    # Whatever was acknowledged is there, once.
    assert sorted(numbers) == list(range(1, 8))


@pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)
def test_sigkill_of_the_browser_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A page that was killed leaves the door shut for ten seconds.
    monkeypatch.setattr(server, "_SILENCE_SECONDS", 0.5)
    served = visit(tmp_path)
    with PersonServer(served) as opened:
        first = SimulatedPerson(opened.address)
        state = first.sit(first.begin(), 1)
        # Killed while a pattern stands; between an answer and the next pattern; and after several
        # answers.
        for moment in ("'looking'", "'answered'", "'ready'"):
            time.sleep(0.6)
            with webdriver.browser() as browser:
                person = PersonAtPage(browser, distance=1000, answer_ms=300)
                browser.open(opened.address)
                browser.run(f"({EYES})({json.dumps(person.eyes)})")
                browser.wait(STEP, "ready")
                browser.run("window.sitter.answering = false")
                person.click("start")
                browser.wait(
                    "document.body.dataset.trial",
                    f"{state['number']}.{state['attempt']}",
                )
                browser.run(
                    f"(window.sitter.until = {moment}, window.sitter.answering = true)"
                )
                browser.wait("window.sitter.reached", True)
                browser.kill()
            time.sleep(0.6)
            # Whatever reached the server is there, and the next visit sees the trial after it.
            after = SimulatedPerson(opened.address)
            resumed_state = after.begin()
            assert state["number"] <= resumed_state["number"] <= state["number"] + 1
            state = after.sit(resumed_state, 1)
        last = state["number"]
        served.pause()
    numbers = [
        session["number"] for session in sessions(tmp_path) if "why" not in session
    ]
    assert numbers == list(range(1, last))
