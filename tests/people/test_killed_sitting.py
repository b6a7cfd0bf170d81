"""A server that is killed at some trial: no answer lost, none twice, and the next one goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from children import child
from simulated_person import SimulatedPerson

from psyprobe.running.store import open_store


def test_sigkill_at_a_trial_loses_and_doubles_nothing(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    command = [sys.executable, "-um", "psyprobe", "observe", "orientation_csf", "--person", "ANNA"]
    for first, last in ((1, 5), (5, 8)):
        with child([*command, "--store", str(store)], seconds=300, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            person = SimulatedPerson(found[0])
            state = person.begin()
            assert state["number"] == first
            assert person.sit(state, last - first)["number"] == last
            process.send_signal(signal.SIGKILL)
            process.wait(60)
    with open_store(store, create=False) as opened:
        numbers = [answered.answer["reply"]["sitting"]["number"] for answered, _ in opened.kept_answers()]
    # Whatever was acknowledged is there, once.
    assert sorted(numbers) == list(range(1, 8))
