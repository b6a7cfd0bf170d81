"""Acuity of people: letters named by their keys, sizes that a screen holds, and the truth that comes
back, by numbers and by what a browser draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdriver
from known_truth import letter_eyes, reads_letters
from person_at_page import PersonAtPage
from seated import screen
from simulated_person import SCREEN, SimulatedPerson

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import load_experiment
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.keys import label_keys
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.server import PersonServer
from psyprobe.probes.experiments import merge_results
from psyprobe.running.store import open_store
from psyprobe.tasks.people.patterns import PatternSession


def visit(store: Path, name: str = "letter_acuity", **settings: Any) -> PatternSession:
    page = load_experiment(name).with_settings(settings)
    return PatternSession(page, "ANNA", store)


def logmar_of(result: Any) -> float:
    score: Any = pp.score(result)
    (point,) = score.pooled.curve
    return float(np.log10(12 / point.sensitivity))


@pytest.mark.parametrize(
    ("name", "seeds"), [("letter_acuity", 3), ("tumbling_e", 1), ("landolt_4", 1)]
)
def test_the_acuity_of_a_person_comes_back(name: str, seeds: int) -> None:
    acuities = []
    for seed in range(seeds):
        observer = PersonObserver(
            "ANNA", "first", screen(distance=4000.0), reads_letters(-0.1, seed)
        )
        result = pp.run(name, observer, store=None, progress=False)
        acuities.append(logmar_of(result))
    assert np.sqrt(np.mean((np.array(acuities) + 0.1) ** 2)) < (
        0.06 if seeds > 1 else 0.1
    )
    score: Any = pp.score(result)
    (first, *_) = score.rows()
    assert any("logMAR" in note for note in first.notes)
    assert any("error of the distance" in note for note in first.notes)


def test_sessions_at_two_distances_are_one_result() -> None:
    results = [
        pp.run(
            "letter_acuity",
            PersonObserver(
                "ANNA", session, screen(distance=distance), reads_letters(-0.1, 1)
            ),
            store=None,
            progress=False,
        )
        for session, distance in (("first", 4000.0), ("second", 5000.0))
    ]
    (merged,) = merge_results(results)
    assert abs(logmar_of(merged) + 0.1) < 0.06
    assert "ppd" not in merged.attrs


def reads_down_to(
    contrast: float, patience: int, asked: list[float]
) -> Callable[[Inquiry], Answer]:
    """Somebody who names all that is as strong, nothing fainter, and leaves after so many."""

    def answer_inquiry(inquiry: Inquiry) -> Answer:
        if len(asked) == patience:
            raise PsyprobeError("gone for lunch")
        assert inquiry.drawing is not None
        (stimulus,) = inquiry.drawing["stimuli"]
        asked.append(-stimulus["contrast"])
        place = int(stimulus["letter"]) + (asked[-1] < contrast)
        return Answer(
            inquiry.words[place % 10], model="a person", session={"session": "first"}
        )

    return answer_inquiry


def test_a_chart_ends_for_people_where_they_miss_a_triplet(tmp_path: Path) -> None:
    asked: list[float] = []

    def run(patience: int) -> Any:
        answer = reads_down_to(0.05, patience, asked)
        observer = PersonObserver("ANNA", "first", screen(), answer)
        store = tmp_path / "runs.sqlite"
        return pp.run("pelli_robson", observer, store=store, progress=False)

    with pytest.raises(PsyprobeError, match="lunch"):
        run(7)
    result = run(-1)
    # Nine triplets are right, the tenth is not, and no question is asked twice.
    assert len(asked) == 30 and sorted(asked, reverse=True) == asked
    # Ink is as dark as the screen allows.
    assert asked[0] == pytest.approx(0.998, abs=1e-4) and asked[-1] == pytest.approx(
        0.0447
    )
    assert trials(result).sizes["trial"] == 30
    score: Any = pp.score(result)
    assert -score.chart == pytest.approx(0.05 * (27 - 3), abs=2e-3)
    (point,) = score.pooled.curve
    assert 0.0447 < 1 / point.sensitivity < 0.0631
    observer = PersonObserver("BERT", "first", screen())
    assert "up to 48 questions" in str(pp.plan("pelli_robson", observer))


def test_letters_fade_at_the_page_of_a_person(tmp_path: Path) -> None:
    served = visit(tmp_path / "runs.sqlite", "pelli_robson")
    with PersonServer(served) as server:
        person = SimulatedPerson(server.address)
        assert person.send("open")["task"] == "faint_letters"
        state = person.begin()
        assert state["total"] == 48
        while state["phase"] != "done":
            if state["phase"] == "trial":
                # One letter is right at most once of three.
                answer = {**person.account_of_frames(state), "choice": "C"}
                state = person.send("answer", **answer)
            else:
                state = person.send("state")
    assert state["count"] % 3 == 0 and state["count"] < 48
    assert state["chart"] is None and state["offset"] > 0


def test_a_stop_needs_levels_that_are_asked_often_enough() -> None:
    page = load_experiment("pelli_robson")
    with pytest.raises(InputError, match="stop_below is 4 with the design 'constant'"):
        page.with_settings({"asking.stop_below": 4})
    with pytest.raises(InputError, match="design 'quest_plus'"):
        page.with_settings({"asking.design": "quest_plus"})


def test_what_a_screen_cannot_show_is_refused() -> None:
    page = load_experiment("letter_acuity")
    smallest, largest = page.spec(logmar=-0.3), page.spec(logmar=0.7)
    with pytest.raises(
        InputError,
        match=r"logMAR -0.3 needs 2 pixels a stroke.*0\.55; sit 3640 mm away",
    ):
        screen(distance=1000.0).drawn(smallest, largest)
    bright = Screen(pitch=0.265, distance=4000, display=Display(peak=200, black=20))
    with pytest.raises(InputError, match=r"a contrast of -0\.80 on 100 cd/m²"):
        bright.drawn(smallest, largest)
    # Ink is as dark as the screen allows.
    letter = screen(distance=4000.0).drawn(smallest, largest)
    assert letter.value("contrast") == pytest.approx(-0.998, abs=1e-4)
    assert letter.ppd == pytest.approx(screen(distance=4000.0).ppd)
    with pytest.raises(InputError, match="varies letter_size and contrast"):
        PatternSession(load_experiment("letter_contrast"), "ANNA", Path("none.sqlite"))


def test_labels_have_keys() -> None:
    numbers = label_keys(("cat", "dog"), "letter", (0, 1))
    assert numbers == [("1",), ("2",)]
    eight = label_keys(list("abcdefgh"), "orientation", range(0, 360, 45))
    assert eight[0] == ("a",)
    names = ("right", "upper right", "up", "upper left")
    assert [keys[0] for keys in label_keys(names, "orientation", (0, 45, 90, 135))] == [
        *"6987"
    ]
    keys = label_keys([f"label {number}" for number in range(26)], "x", range(26))
    assert len({*keys}) == 26 and ("p",) not in keys


def test_a_session_of_letters_goes_on_where_it_was(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    for first, last in ((1, 4), (4, 31)):
        served = visit(store)
        with PersonServer(served) as server:
            person = SimulatedPerson(server.address)
            facts = person.send("open")
            assert facts["keys"][0] == ["c"] and "K, N" in facts["question"]
            state = person.begin(distance=4000)
            assert state["number"] == first
            # The page is loaded again at a trial.
            assert person.begin()["number"] == first
            for _ in range(first, last):
                assert len(state["draws"]) == 1
                answer = {
                    **person.account_of_frames(state),
                    "choice": state["words"][state["number"] % 10],
                }
                state = person.send("answer", **answer)
                while state["phase"] == "wait":
                    state = person.send("state")
            served.pause()
    assert state["phase"] == "done" and state["count"] == 30
    assert state["smallest"] == -0.3 and "acuity" in state
    with open_store(store, create=False) as opened:
        replies = [
            dict(answered.answer)["reply"] for answered, _ in opened.all_answers()
        ]
    assert sorted(reply["session"]["number"] for reply in replies) == [*range(1, 31)]


def test_too_small_letters_are_told_before_the_first_trial(tmp_path: Path) -> None:
    with PersonServer(visit(tmp_path / "runs.sqlite")) as server:
        person = SimulatedPerson(server.address)
        near = {name: SCREEN[name] for name in ("cards", "device_pixel_ratio")}
        near |= {"width": 1920, "height": 1080, "distance_method": "tape"}
        reply = person.send("calibrate", **near, distance=1000)
        assert "sit 3640 mm away" in reply["error"], reply


def test_letters_are_read_from_the_pixels_of_the_page(
    tmp_path: Path, browser: webdriver.Browser
) -> None:
    """Four minutes of a simulated person by its own clock."""
    served = visit(tmp_path / "runs.sqlite", **{"stimulus.parameters.size": 64})
    with PersonServer(served) as opened:
        person = PersonAtPage(
            browser, seed=1, distance=4000, **letter_eyes(-0.1), answer_ms=1500
        )
        browser.forget()
        log = person.sit(opened.address)
        browser.photograph("30_acuity")
        assert "30 trials" in browser.text("told")
        assert browser.complaints() == []
    trials = [row for row in log if row[0] != "practice"]
    assert len(trials) == 30
    # By numbers, thirty trials had an error of 0.05 log10 (24 seeds): this is three times that.
    value, low, high = served.summary["acuity"]
    assert low < value < high
    assert abs(value + 0.1) < 0.15
    assert (trials[-1][3] - trials[0][3]) / 29 < 4
    (result,) = pp.load_results(tmp_path / "runs.sqlite")
    confusions = pp.score(result).confusions  # type: ignore[union-attr]
    assert np.sum(confusions) == 30
