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

#: What a page never sends, besides bodies of bytes.
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
    kept = {}
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
                        sent = send(server.address + path, garbage(draw, body))
                        assert sent < 500, sent
                    now = person.send("state")
                    if now.get("number") == state["number"]:
                        state = person.send("answer", **account)
                    else:
                        state = now
                served.pause()
        kept[noisy] = sessions(folder)
    numbers = [each["number"] for each in kept[True] if "why" not in each]
    assert len(numbers) == len(set(numbers)) and len(numbers) >= 1
    with Store(tmp_path / "True" / "runs.sqlite", create=False) as store:
        verify(store)
    assert [each["number"] for each in kept[False]] == list(range(1, 13))


def send(url: str, body: bytes) -> int:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
