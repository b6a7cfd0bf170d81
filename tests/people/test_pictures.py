"""Pictures of benchmarks answered by a person: in a browser that is killed on the way, and over
HTTP."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdriver
from item_pages import write_page
from PIL import Image
from simulated_person import SimulatedPerson

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import load_experiment
from psyprobe.observers.chat.protocol import GIVEN_UP, Answer, Answering, Inquiry
from psyprobe.observers.people import server
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.server import PersonServer
from psyprobe.observers.protocol import Card
from psyprobe.running import lease
from psyprobe.running.store import open_store
from psyprobe.tasks.items import Judge
from psyprobe.tasks.mvp_bench import probe as mvp_bench
from psyprobe.tasks.people.pictures import PictureSession
from psyprobe.tasks.r_bench import probe as r_bench

HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>\u202e"
LIGHT = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}
TRIAL, STEP = "document.body.dataset.trial", "document.body.dataset.step"
#: What stands on the page: mean colour and width of each picture, the question, and the answers
#: with their keys.
READ_PAGE = """(() => {
  const means = [...document.querySelectorAll("#pictures img")].map((image) => {
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight), context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data, sum = [0, 0, 0];
    data.forEach((value, i) => { if (i % 4 < 3) sum[i % 4] += value; });
    return sum.map((each) => each / (canvas.width * canvas.height));
  });
  const buttons = [...document.querySelectorAll("#answers button")];
  const answers = buttons.map((each) => [each.dataset.word, each.textContent]);
  return { means, text: document.getElementById("question").textContent, answers };
})()"""


def answer_colour_blind(
    colours: list[str], text: str, answers: list[tuple[str, str]]
) -> str:
    """Answer from the colours of the pictures as a person who takes green for blue."""
    names = ["blue" if colour == "green" else colour for colour in colours]
    if not answers:
        return " and ".join(names)
    if answers[0][0] == "yes":
        return "yes" if names[0] in text else "no"
    return next((word for word, label in answers if names[-1] in label), answers[0][0])


def colour_of(mean: Any) -> str:
    return list(LIGHT)[int(np.argmax(mean))]


def model(images: list[Any], prompt: str) -> str:
    """The same as a model."""
    lines = [line for line in prompt.split("\n") if line[1:3] == ". "]
    answers = [(line[0], line[3:]) for line in lines] or [("yes", ""), ("no", "")] * (
        "yes or no" in prompt
    )
    return answer_colour_blind(
        [colour_of(image.mean(axis=(0, 1))) for image in images],
        prompt.split("\n")[0],
        answers,
    )


def painted(path: Path, colour: str, number: int) -> None:
    pixels = np.full((40, 60, 3), LIGHT[colour], dtype=np.uint8)
    pixels[0, 0] = number  # no two files are alike
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def mvp_page(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = []
    options = "\n".join(
        f"{a}. {b}" for a, b in zip("ABCD", (*LIGHT, HOSTILE), strict=True)
    )
    for pair, colours in enumerate((("red", "green"), ("blue", "red")), start=1):
        for kind, colour in zip("se", colours, strict=True):
            painted(
                tmp_path / "set" / "Single_Images" / f"{pair}_{kind}.png", colour, pair
            )
            row = {
                "image": f"Single_Images/{pair}_{kind}.png",
                "id": pair,
                "level": "low",
            }
            question = (
                f"Is it {colours[0]}? {HOSTILE * (pair == 2)}\nPlease answer yes or no."
            )
            right = "yes" if colour == colours[0] else "no"
            rows.append(
                {**row, "question": question, "answer": right, "type": f"y/n-{kind}"}
            )
        key = "ABC"[list(LIGHT).index(colours[1])]
        question = f"What is it in the second?\n{options}\nAnswer with the letter."
        cross = {
            "image": f"Cross_Images/{pair}_concat.png",
            "id": pair,
            "level": "high",
        }
        rows.append({**cross, "question": question, "answer": key, "type": "mcq-cross"})
    lines = [json.dumps({"question_id": i, **row}) + "\n" for i, row in enumerate(rows)]
    (tmp_path / "set" / "questions.json").write_text("".join(lines), encoding="utf-8")
    return write_page(
        tmp_path / "pictures.toml", "mvp_bench", tmp_path / "set", cross="two_images"
    )


@pytest.fixture
def r_bench_page(tmp_path: Path) -> Path:
    rows = [
        ["m1.png", "What colour is it?", "A.red; B.green; C.blue", "B", "MCQ"],
        ["m2.png", "What colour is it?", "A.red; B.green; C.blue", "C", "MCQ"],
        ["v1.png", "What does it show?", "N", "something red", "VQA"],
    ]
    lines = ["name,question,choice,answer,type,score,distortion,strength"]
    for number, (row, colours) in enumerate(
        zip(rows, ("green red", "blue blue", "red green"), strict=True)
    ):
        lines.append(",".join(f'"{cell}"' for cell in [*row, "4.0", "1", "1"]))
        for kind, colour in zip(("ref", "dis"), colours.split(), strict=True):
            painted(
                tmp_path / "rb" / kind / row[0], colour, number + 10 * (kind == "dis")
            )
    (tmp_path / "rb" / "items.csv").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )
    return write_page(
        tmp_path / "r_bench.toml", "r_bench", tmp_path / "rb", mcq_rule="letter"
    )


def visit(page: Path, person: str = "ANNA") -> PictureSession:
    return PictureSession(load_experiment(page), person, page.with_name("runs.sqlite"))


def replies(page: Path) -> list[dict[str, Any]]:
    """Return the stored reply of each answer of a person, by number and attempt."""
    with open_store(page.with_name("runs.sqlite"), create=False) as opened:
        session_replies = [
            dict(answered.answer["reply"])
            for answered, _ in opened.all_answers()
            if "session" in answered.answer["reply"]
        ]
    return sorted(
        session_replies,
        key=lambda reply: (reply["session"]["number"], reply["session"]["attempt"]),
    )


class Sitter:
    """Answers the page in a window from what it sees there."""

    def __init__(self, browser: webdriver.Browser) -> None:
        self.browser = browser

    def arrive(self, address: str) -> None:
        browser = self.browser
        browser.open(address)
        browser.wait(f"['consent', 'how'].includes({STEP})", True)
        if browser.run(STEP) == "consent":
            browser.run("document.getElementById('agree').click()")
            browser.run("document.getElementById('agreed').click()")
        browser.wait(STEP, "how")
        browser.run("document.getElementById('look').click()")

    def answer(self, number: int, attempt: int = 1) -> dict[str, Any]:
        browser = self.browser
        browser.wait(TRIAL, f"{number}.{attempt}")
        time.sleep(0.2)  # nobody answers sooner
        page_content: dict[str, Any] = browser.run(READ_PAGE)
        answer = answer_colour_blind(
            [colour_of(mean) for mean in page_content["means"]],
            page_content["text"].split("\n")[0],
            page_content["answers"],
        )
        browser.press(
            *(
                answer[0].lower()
                if page_content["answers"]
                else [*answer, webdriver.ENTER]
            )
        )
        return page_content


@pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)
def test_a_person_and_a_model_that_answer_alike_score_alike(
    mvp_page: Path, browser: webdriver.Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.forget()
    # A page that was killed leaves the door shut for ten seconds.
    monkeypatch.setattr(server, "_SILENCE_SECONDS", 0.5)
    with (
        PersonServer(served := visit(mvp_page)) as opened,
        webdriver.browser() as first,
    ):
        sitter = Sitter(first)
        sitter.arrive(opened.address)
        for number in (1, 2):
            sitter.answer(number)
        first.wait(TRIAL, "3.1")
        first.kill()
        served.pause()
    # Another browser, another process: it goes on behind the last answer that was acknowledged.
    with PersonServer(visit(mvp_page)) as opened:
        sitter = Sitter(browser)
        sitter.arrive(opened.address)
        contents = [sitter.answer(3)]
        browser.wait(TRIAL, "4.1")
        browser.press("p")
        browser.wait(STEP, "pause")
        browser.run("document.getElementById('on').click()")
        contents += [sitter.answer(4, 2), sitter.answer(5), sitter.answer(6)]
        browser.wait(STEP, "thanks")
        assert "6 questions are answered" in browser.text("answered")
        # Text that a model wrote is neither run, nor loaded, nor hidden.
        texts = [
            " ".join([content["text"], *(label for _, label in content["answers"])])
            for content in contents
        ]
        assert any(
            "<script>document.title='broken'</script>\\u202e" in text for text in texts
        )
        assert (
            browser.run("document.title") == "psyprobe: a person at this screen"
            and not browser.complaints()
        )
    stored = replies(mvp_page)
    assert [
        (reply["session"]["number"], reply["session"]["attempt"]) for reply in stored
    ] == [
        *[(number, 1) for number in (1, 2, 3, 4)],
        *[(4, 2), (5, 1), (6, 1)],
    ]
    assert [reply["session"].get("why") for reply in stored] == [
        *[None] * 3,
        "paused",
        *[None] * 3,
    ]
    assert stored[0]["session"]["beginning"]["consent"] is True
    for reply in stored:
        if reply["finish"] != GIVEN_UP:
            # At their own size, and as long as it took.
            assert (
                set(reply["session"]["scales"]) == {1.0}
                and 0.15 < reply["latency"] < 60
            )
    (person,) = pp.load_results(mvp_page.with_name("runs.sqlite"))
    other = pp.run(mvp_page, pp.observer(model, name="alike"), progress=False)
    assert (person["reply"].values == other["reply"].values).all()
    scores = [
        mvp_bench.MVP_BENCH.score(result)[0].metrics for result in (person, other)
    ]
    assert scores[0].equals(scores[1]) and 0 < scores[0]["value"].mean() < 100
    assert (
        person.attrs["observer"] == "person:ANNA"
        and (person["reaction_seconds"] > 0.15).all()
    )


@pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)
def test_corrupted_images_come_before_their_references(
    r_bench_page: Path, browser: webdriver.Browser
) -> None:
    with PersonServer(visit(r_bench_page)) as opened:
        sitter = Sitter(browser)
        sitter.arrive(opened.address)
        colours = [
            colour_of(sitter.answer(number)["means"][0]) for number in range(1, 7)
        ]
        browser.wait(STEP, "thanks")
    assert sorted(colours[:3]) == ["blue", "green", "red"] and sorted(colours[3:]) == [
        "blue",
        "green",
        "red",
    ]
    (person,) = pp.load_results(r_bench_page.with_name("runs.sqlite"))
    other = pp.run(r_bench_page, pp.observer(model, name="alike"), progress=False)
    runs = [r_bench.read_run(result) for result in (person, other)]
    assert runs[0].metrics.equals(runs[1].metrics)
    by_kind = {
        kind: dict(
            zip(person["item"].values, person[f"answer_{kind}"].values, strict=True)
        )
        for kind in ("ref", "dis")
    }
    assert by_kind == {
        "dis": {"m1.png": "A", "m2.png": "C", "v1.png": "blue"},
        "ref": {"m1.png": "C", "m2.png": "C", "v1.png": "red"},
    }


class Strict(Answering):
    """A judge that takes its time, and finds everything wrong; or is not there."""

    card = Card("strict", "answer")

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.may, self.is_gone = threading.Event(), False

    def _reply(self, inquiry: Inquiry) -> Answer:
        self.prompts.append(inquiry.prompt)
        assert self.may.wait(60)
        if self.is_gone:
            raise PsyprobeError("the judge cannot be reached at http://127.0.0.1:9")
        return Answer("0")


@pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)
def test_own_words_are_read_by_a_judge_while_the_page_says_so(
    r_bench_page: Path, browser: webdriver.Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Strict()
    monkeypatch.setattr(r_bench, "judge_of", lambda _: Judge(judge))
    monkeypatch.setattr(server, "_SILENCE_SECONDS", 0.5)
    judge.is_gone = True
    with PersonServer(visit(r_bench_page)) as opened:
        sitter = Sitter(browser)
        browser.open(opened.address)
        browser.wait(STEP, "consent")
        assert (
            "is put to strict, the judge that the experiment's page names"
            in browser.text("consent")
        )
        browser.photograph("20_consent_judge")
        sitter.arrive(opened.address)
        for number in range(1, 7):
            browser.wait(TRIAL, f"{number}.1")
            if browser.run("!document.getElementById('own').hidden"):
                browser.photograph("21_own_words")
            sitter.answer(number)
        browser.wait(STEP, "reading")
        assert (
            "Those that the rules of the benchmark cannot read are being read by strict"
            in browser.text("read")
        )
        browser.photograph("22_reading")
        judge.may.set()
        browser.wait(STEP, "stopped")
        assert "the judge cannot be reached" in browser.text("error")
        assert "loaded again" not in browser.text("kept")
        browser.photograph("23_no_judge")
    # All are answered: nothing is asked again but the judge.
    judge.may.clear()
    judge.is_gone = False
    with PersonServer(visit(r_bench_page)) as opened:
        browser.open(opened.address)
        browser.wait(STEP, "reading")
        judge.may.set()
        browser.wait(STEP, "thanks")
        browser.photograph("24_thanks")
    assert len(replies(r_bench_page)) == 6 and len(set(judge.prompts)) == 3
    browser.complaints()
    # Each photograph has a corrupted and a clean answer, and one against the other.
    (person,) = pp.load_results(r_bench_page.with_name("runs.sqlite"))
    assert r_bench.read_run(person).facts["verdicts"]["cases"] == 3


# -- over HTTP
# ------------------------------------------------------------------------------------------


def sat(
    page: Path, person: str, say: Callable[[dict[str, Any]], str], trials: int = 100
) -> dict[str, Any]:
    """A session without a browser."""
    with PersonServer(served := visit(page, person)) as opened:
        talker = SimulatedPerson(opened.address)
        talker.send("open")
        state = talker.send("begin", consent=True)
        for _ in range(trials):
            while state.get("phase") == "wait":
                state = talker.send("state")
            if state.get("phase") != "trial":
                break
            answer = {
                "reaction_ms": 900,
                "choice": say(state),
                "scales": [1] * len(state["images"]),
            }
            state = talker.send(
                "answer", number=state["number"], attempt=state["attempt"], **answer
            )
        served.pause()
    return state


@pytest.fixture
def begun(mvp_page: Path) -> Iterator[tuple[SimulatedPerson, dict[str, Any]]]:
    with PersonServer(served := visit(mvp_page)) as opened:
        talker = SimulatedPerson(opened.address)
        talker.send("open")
        yield talker, talker.send("begin", consent=True)
        served.pause()


def test_what_is_no_answer_is_refused_and_what_comes_twice_changes_nothing(
    begun: tuple[SimulatedPerson, dict[str, Any]], mvp_page: Path
) -> None:
    talker, state = begun
    pictures = len(state["images"])
    answer = {
        "number": 1,
        "attempt": 1,
        "reaction_ms": 500,
        "choice": state["words"][0],
        "scales": [1] * pictures,
    }
    for wrong, why in (
        ({"choice": "maybe"}, "the answer is 'maybe'; give"),
        ({"scales": []}, f"how large {pictures} pictures were"),
        ({"scales": [2] * pictures}, "give a number from 0.001 to 1"),
        ({"choice": None, "why": "bored"}, "because of 'bored'; give a reason"),
        ({"reaction_ms": -1}, "reaction ms is -1"),
    ):
        refused = talker.send("answer", **{**answer, **wrong})
        assert refused["status"] == 400 and why in refused["error"], refused
    assert (
        "shown as they are" in talker.send("calibrate", device_pixel_ratio=1)["error"]
    )
    assert talker.send("answer", **answer)["number"] == 2
    assert (
        talker.send("answer", **{**answer, "choice": state["words"][1]})["number"] == 2
    )
    assert [reply["text"] for reply in replies(mvp_page)] == [answer["choice"]]


def test_nobody_answers_for_another_nor_twice(mvp_page: Path) -> None:
    assert sat(mvp_page, "ANNA", lambda state: state["words"][0])["phase"] == "done"
    assert (
        sat(mvp_page, "BO", lambda state: state["words"][-1], trials=2)["number"] == 3
    )
    with pytest.raises(
        InputError, match="a second time would measure memory; give another person"
    ):
        visit(mvp_page)
    assert visit(mvp_page, "BO").facts()["resumed"] == {"number": 3}
    numbers = [
        (reply["session"]["session"], reply["session"]["number"])
        for reply in replies(mvp_page)
    ]
    assert len(set(numbers)) == len(numbers) == 6 + 2


def test_two_commands_of_one_person_share_a_session(
    mvp_page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were begun before anything was asked; one asks, and the other goes on after it."""
    # It says on the terminal for whom it waits, and a warning is an error here.
    monkeypatch.setattr(lease, "_PATIENCE", math.inf)
    first = visit(mvp_page)
    second = visit(mvp_page)
    with PersonServer(first) as first_server, PersonServer(second) as second_server:
        talker = SimulatedPerson(first_server.address)
        other = SimulatedPerson(second_server.address)
        for talking in (talker, other):
            talking.send("open")
        state = talker.send("begin", consent=True)
        while state["phase"] == "wait":
            state = talker.send("state")
        assert state["number"] == 1
        assert other.send("begin", consent=True)["phase"] == "wait"
        for number in (1, 2):
            answer = {
                "number": number,
                "attempt": 1,
                "reaction_ms": 900,
                "choice": state["words"][0],
                "scales": [1] * len(state["images"]),
            }
            state = talker.send("answer", **answer)
            while state["phase"] == "wait":
                state = talker.send("state")
        assert second.state(0.0)["phase"] == "wait"
        first.pause()
        state = {"phase": "wait"}
        while state["phase"] == "wait":
            state = other.send("state")
        assert (state["phase"], state["number"]) == ("trial", 3)
        second.pause()
    assert [reply["session"]["number"] for reply in replies(mvp_page)] == [1, 2]


def test_people_agree_as_far_as_their_answers_do(
    mvp_page: Path, r_bench_page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer_word(place: int) -> Callable[[Inquiry], Answer]:
        return lambda inquiry: Answer(
            inquiry.words[place] if inquiry.words else "a cat", session={"number": 1}
        )

    for page in (mvp_page, r_bench_page):
        # A mean wants three.
        for person, place in (("ANNA", 0), ("BO", -1), ("CY", 0))[
            : 3 if page == mvp_page else 2
        ]:
            observer = PersonObserver(person, "first", None, answer_word(place))
            pp.run(page, observer, store=page.with_name("runs.sqlite"), progress=False)
    assert main(["score", str(mvp_page.with_name("runs.sqlite")), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    means = [row["observer"] for row in scores if "left_out" in row]
    assert means == ["mean of 1 of 3 people"]
    pair_rows = [row for row in scores if "pairs" in row]
    assert [(row["experiment"], row["persons"]) for row in pair_rows] == [
        ("pictures", ["ANNA", "BO", "CY"]),
        ("r_bench", ["ANNA", "BO"]),
    ]
    # ANNA and CY always took the first answer; BO, the last, never.
    for row, agreement in zip(pair_rows, (6, 4), strict=True):
        alike = {"ANNA and BO": 0, "ANNA and CY": agreement, "BO and CY": 0}
        for pair in row["pairs"]:
            assert (pair["equal"], pair["both"]) == (
                alike[f"{pair['first']} and {pair['second']}"],
                agreement,
            )


def test_an_answer_in_own_words_is_kept_in_one_line(r_bench_page: Path) -> None:
    end = sat(
        r_bench_page,
        "ANNA",
        lambda state: state["words"][0] if state["words"] else "  a\n cat ",
    )
    assert end["phase"] == "done"
    assert "a cat" in [reply["text"] for reply in replies(r_bench_page)]


def test_the_command_takes_no_display_for_pictures(
    mvp_page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "observe",
        str(mvp_page),
        "--person",
        "ANNA",
        "--store",
        str(mvp_page.with_name("runs.sqlite")),
    ]
    assert main([*arguments, "--display", "peak=180"]) == 2
    assert (
        "--display is about patterns, and pictures are shown as they are; leave it out"
        in capsys.readouterr().err
    )
