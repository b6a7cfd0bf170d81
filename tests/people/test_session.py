"""A whole session over HTTP with a simulated person: what comes back, what is kept, and who is
turned away."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_person import FREQUENCIES, SimulatedPerson

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.observers.chat.protocol import GIVEN_UP
from psyprobe.observers.people.server import PersonServer
from psyprobe.running.store import open_store
from psyprobe.tasks.people.patterns import PatternSession


def visit(store: Path, person: str = "ANNA") -> PatternSession:
    return PatternSession(load_experiment("orientation_csf"), person, store)


def stored_answers(store: Path) -> list[dict[str, Any]]:
    with open_store(store, create=False) as opened:
        return [dict(answered.answer) for answered, _ in opened.all_answers()]


def test_a_whole_session_gives_the_curve_of_who_sat(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    with PersonServer(visit(store)) as server:
        person = SimulatedPerson(server.address, seed=3, drops=0.05)
        end = person.sit(person.begin())
    assert end["phase"] == "done" and end["count"] == 90, end
    curve = np.array([row["mean"] for row in end["curve"]])
    true = np.array([person.truth(frequency) for frequency in FREQUENCIES])
    assert np.sqrt(np.mean((curve - true) ** 2)) < 0.2
    answers = stored_answers(store)
    sessions_of_answers = [answer["reply"]["session"] for answer in answers]
    given_up = [
        answer["reply"]["session"]
        for answer in answers
        if answer["reply"]["finish"] == GIVEN_UP
    ]
    sessions = [session for session in sessions_of_answers if session not in given_up]
    assert sorted(session["number"] for session in sessions) == list(range(1, 91))
    assert (
        "beginning" in sessions_of_answers[0]
        and given_up
        and {session["why"] for session in given_up} == {"frames"}
    )
    # Each attempt is a question of its own, with a dither of its own.
    assert sorted(
        (session["number"], session["attempt"]) for session in sessions_of_answers
    ) == sorted(
        (session["number"], attempt)
        for session in sessions
        for attempt in range(1, session["attempt"] + 1)
    )
    assert len({session["dither_seed"] for session in sessions_of_answers}) == len(
        sessions_of_answers
    )
    (result,) = pp.load_results(store)
    assert set(np.unique(trials(result).order)) == {0.0, 1.0}
    # Answers of another session are its own, though the seeds of the experiment are the same.
    with PersonServer(visit(store)) as server:
        second_visit = SimulatedPerson(server.address, seed=3)
        assert second_visit.begin()["number"] == 1


def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    for first, last in ((1, 4), (4, 9)):
        served = visit(store)
        with PersonServer(served) as server:
            person = SimulatedPerson(server.address)
            state = person.begin()
            assert state["number"] == first
            late = person.account(state)
            assert person.sit(state, last - first)["number"] == last
            # The same answer again, as after a lost reply, changes nothing.
            assert person.send("answer", **late)["number"] == last
            served.pause()
    assert sorted(
        answer["reply"]["session"]["number"] for answer in stored_answers(store)
    ) == list(range(1, 9))


def test_strangers_and_second_tabs_are_turned_away(tmp_path: Path) -> None:
    with PersonServer(visit(tmp_path / "runs.sqlite")) as server:
        person, second = (
            SimulatedPerson(server.address),
            SimulatedPerson(server.address),
        )
        person.begin()
        assert second.send("open")["taken"] is True
        stranger = SimulatedPerson(server.address.rsplit("/", 2)[0] + "/guess/")
        assert stranger.send("open")["status"] == 404
        # Pages of other origins, names of other machines that lead here, and forms, which need ask
        # nobody.
        for header, status in (
            ({"Origin": "http://example.org"}, 404),
            ({"Host": "example.org"}, 400),
            ({"Content-Type": "text/plain"}, 404),
        ):
            headers = {"Content-Type": "application/json", **header}
            request = urllib.request.Request(
                server.address + "open", b'{"page": "12345678"}', headers
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=60)
            assert refused.value.code == status, header
        # The visitor who was inside still is.
        assert person.send("state")["number"] == 1
        person.send("left")
        assert not {"status", "taken"} & second.send("open").keys()


def test_a_person_is_asked_in_one_wording(tmp_path: Path) -> None:
    experiment = load_experiment("orientation_csf").with_settings(
        {"probe": "yes_no", "asking.prompts": "hernandez2025"}
    )
    with pytest.raises(InputError, match="asks in 25 wordings, and a person in one"):
        PatternSession(experiment, "ANNA", tmp_path / "runs.sqlite")


def test_what_the_screen_cannot_show_is_refused_before(tmp_path: Path) -> None:
    with PersonServer(visit(tmp_path / "runs.sqlite")) as server:
        person = SimulatedPerson(server.address)
        person.send("open")
        near = {
            "cards": [323, 323],
            "distance": 500,
            "distance_method": "tape",
            "device_pixel_ratio": 1,
        }
        near |= {"width": 1920, "height": 1080}
        reply = person.send("calibrate", **near, light="guess", period=16.7)
        assert "sit 730 mm away" in reply["error"], reply
        dim = person.send(
            "calibrate",
            **near | {"distance": 1000},
            light="value",
            peak=60,
            period=16.7,
        )
        assert "78" in dim["error"], dim
        unlike = person.send(
            "calibrate", **near | {"cards": [323, 330]}, light="guess", period=16.7
        )
        assert "fit it again" in unlike["error"]
        assert person.send("begin", consent=True)["status"] == 400


def test_designs_know_how_much_is_left(tmp_path: Path) -> None:
    levels = {"levels.frequency.values": [2, 8], "levels.contrast.n": 3}
    designs = {
        "quest_plus": {"asking.options": {"stop": 0, "n_max": 3}},
        "constant": {"asking.options": {}, "asking.repeats": {"text": 2, "p_yes": 1}},
        "quick_csf": {"asking.options": {"stop": 0, "n_max": 5, "prior": "people"}},
    }
    for design, options in designs.items():
        for probe in ("orientation", "orientation_4", "yes_no"):
            store = tmp_path / design / probe
            store.mkdir(parents=True)
            settings = {
                "probe": probe,
                "asking.prompts": "base" if probe == "yes_no" else probe,
                "asking.catch": 0.1,
            }
            experiment = load_experiment("orientation_csf").with_settings(
                {**levels, **settings, "asking.design": design, **options}
            )
            with PersonServer(
                PatternSession(experiment, "ANNA", store / "runs.sqlite")
            ) as server:
                person = SimulatedPerson(server.address)
                state = person.begin()
                end = person.sit(state)
            assert end["phase"] == "done", end
            assert end["count"] == state["total"], (design, probe)
            assert (end["said_yes"] is None) == (probe != "yes_no")


def test_two_clear_patterns_missed_make_the_page_ask(tmp_path: Path) -> None:
    experiment = load_experiment("orientation_csf").with_settings(
        {"asking.options.top": 0.5}
    )
    with PersonServer(
        PatternSession(experiment, "ANNA", tmp_path / "runs.sqlite")
    ) as server:
        person = SimulatedPerson(server.address, lapse=0.0)
        state, doubts, missed = person.begin(), [], 0
        while missed < 2:
            answer = person.account(state)
            if state["draws"][0]["contrast"] > 0.9:
                # The other one of the two words.
                missed += 1
                answer["choice"] = state["words"][
                    1 - state["words"].index(answer["choice"])
                ]
            state = person.send("answer", **answer)
            doubts.append(state["doubt"])
    assert doubts == [False] * (len(doubts) - 1) + [True]
    clear = [
        session["clear_right"]
        for session in (
            a["reply"]["session"] for a in stored_answers(tmp_path / "runs.sqlite")
        )
        if "clear_right" in session
    ]
    assert clear == [False, False]
