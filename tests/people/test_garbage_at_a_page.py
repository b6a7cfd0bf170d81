"""Garbage between the answers of a person: refused, and no answer lost or doubled."""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from pathlib import Path

from person_at_page import sessions, visit
from simulated_person import SimulatedPerson

from psyprobe.observers.people.server import PersonServer
from psyprobe.running.maintenance import verify
from psyprobe.running.store import Store

#: Values that a page never sends, besides bodies of bytes.
VALUES = (None, [], {}, -1, 10**300, "x" * 10_000, True, [[1]], {"a": 1}, "\ud800")


def garbage(draw: random.Random, account: dict[str, object]) -> bytes:
    """An answer with a field that is another, or a body that is none."""
    if draw.random() < 0.3:
        return draw.choice(
            (b"", b"{", b"[" * 5000, b"null", b"\xff\xfe", b"9" * 5000, b"[1]")
        )
    name = draw.choice(sorted(account))
    return json.dumps({**account, name: draw.choice(VALUES)}).encode()


def test_garbage_between_the_answers_of_a_person_is_refused_and_changes_nothing(
    tmp_path: Path,
) -> None:
    draw = random.Random(31)
    sessions_by_noise = {}
    for noisy in (False, True):
        folder = tmp_path / str(noisy)
        folder.mkdir()
        for _ in range(2):
            served = visit(folder)
            with PersonServer(served) as server:
                person = SimulatedPerson(server.address, seed=5)
                state = person.begin()
                for _ in range(6):
                    account = person.account(state)
                    body = {"page": person.page, **account}
                    for _ in range(8 if noisy else 0):
                        path = draw.choice(("answer", "calibrate", "begin", "state"))
                        status = send(server.address + path, garbage(draw, body))
                        assert status < 500, status
                    current_state = person.send("state")
                    if current_state.get("number") == state["number"]:
                        state = person.send("answer", **account)
                    else:
                        state = current_state
                served.pause()
        sessions_by_noise[noisy] = sessions(folder)
    numbers = [
        session["number"] for session in sessions_by_noise[True] if "why" not in session
    ]
    assert len(numbers) == len(set(numbers)) and len(numbers) >= 1
    with Store(tmp_path / "True" / "runs.sqlite", create=False) as store:
        verify(store)
    assert [session["number"] for session in sessions_by_noise[False]] == list(
        range(1, 13)
    )


def send(url: str, body: bytes) -> int:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
