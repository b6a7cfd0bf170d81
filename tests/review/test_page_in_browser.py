"""The page as people use it: keys in a headless browser, reload, a second annotator, agreement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import webdriver

from psyprobe.cli import main
from psyprobe.tasks.review.server import ReviewServer
from psyprobe.tasks.review.worklist import worklist

TASK = "document.body.dataset.task"
IMAGES_LOADED = (
    "[...document.images].every(each => each.complete && each.naturalWidth > 0) && "
    "document.images.length"
)


def test_two_annotators_accept_and_reject_with_keys(
    candidates: Path, browser: webdriver.Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    browser.forget()
    first = worklist(candidates, "review", "ann")
    names = [task.name for task in first.tasks]
    assert len(names) == 10
    with ReviewServer(first) as server:
        browser.open(server.address)
        browser.wait(TASK, names[0])
        browser.wait(IMAGES_LOADED, 2)
        assert "Right for natural" in browser.text("facts")
        # Text that a model wrote is neither run, nor loaded, nor hidden.
        assert (
            "<script>document.title='broken'</script>\\u202e\\x1b[31m"
            in browser.text("text")
        )
        assert browser.run("document.querySelectorAll('#text *').length") == 0
        assert browser.run("document.title") == "Review of questions"
        for place, key in enumerate("arara"):
            browser.press(key)
            browser.wait(TASK, names[place + 1])
        browser.open(server.address)  # a reload goes on where one was
        browser.wait(TASK, names[5])
        assert "5 done" in browser.text("place")
        browser.press(webdriver.LEFT)
        browser.wait(TASK, names[4])
        assert browser.run("document.querySelector('.said').dataset.value") == "accept"
        browser.press("r")  # the last word counts
        browser.wait(TASK, names[5])
    with ReviewServer(
        worklist(candidates, "review", "ann")
    ) as server:  # the server was stopped: nothing is lost
        browser.open(server.address)
        browser.wait(TASK, names[5])
        for place, key in enumerate("aaaaa"):
            browser.press(key)
            if place < 4:
                browser.wait(TASK, names[place + 6])
        # Done is told as what it is, and not as an error.
        browser.wait(
            "document.getElementById('done').textContent.slice(0, 14)", "All is decided"
        )
        assert browser.text("error") == ""
        colours = "['done', 'error'].map(each => getComputedStyle(document.getElementById(each)).color)"
        assert len(set(browser.run(colours))) == 2
    with ReviewServer(worklist(candidates, "review", "bob")) as server:
        browser.open(server.address)
        browser.wait(TASK, names[0])
        browser.run(
            "document.querySelector('[data-value=accept]').click()"
        )  # the mouse does it too
        browser.wait(TASK, names[1])
        assert (
            "ann and bob: 1 of 1 alike (100.0 %), Cohen's kappa undefined"
            in browser.text("note")
        )
        for place in range(1, 9):
            browser.press("a")
            browser.wait(TASK, names[place + 1])
        browser.press("r")
        browser.wait(
            "document.getElementById('note').textContent.includes('of 10')", True
        )
        # ann: a r a r r a a a a a; bob: nine times a, then r.
        assert (
            "ann and bob: 6 of 10 alike (60.0 %), Cohen's kappa -0.18"
            in browser.text("note")
        )
    assert browser.complaints() == []
    assert main(["review", str(candidates)]) == 0
    assert "ann and bob: 6 of 10 alike" in capsys.readouterr().out
    kept_ids = {
        json.loads(line)["question_id"]
        for line in (candidates / "kept.json").read_text().splitlines()
    }
    accepted = [names[place] for place in (0, 2, 5, 6, 7, 8)]
    assert kept_ids == {int(name) for task in accepted for name in task.split()}


def test_a_key_is_unlocked_and_edited_within_ten_words(
    r_bench_set: Path, browser: webdriver.Browser
) -> None:
    browser.forget()
    labelling = worklist(r_bench_set, "label", "ann")
    place = next(i for i, task in enumerate(labelling.tasks) if task.most_words == 10)
    for task in labelling.tasks[:place]:
        labelling.journal.decide(task, "agree")
    name = labelling.tasks[place].name
    with ReviewServer(labelling) as server:
        browser.open(server.address)
        browser.wait(TASK, name)
        browser.press("s")
        browser.wait(
            "document.getElementById('error').textContent",
            "Unlock the text first: press u.",
        )
        browser.press("u")
        browser.wait("document.getElementById('draft').readOnly", False)
        browser.press(*" and much more than ten words can ever be good for it")
        browser.press(webdriver.CONTROL + webdriver.ENTER)
        browser.wait(
            "document.getElementById('error').textContent.slice(0, 12)", "the text has"
        )
        browser.run(
            "(document.getElementById('draft').value = 'two cats', "
            "document.getElementById('draft').focus())"
        )
        browser.press(webdriver.CONTROL + webdriver.ENTER)
        browser.wait(f"{TASK} === {json.dumps(name)}", False)
    decision = labelling.journal.decision(labelling.tasks[place])
    assert decision is not None
    assert (decision.value, decision.text) == ("edit", "two cats")
    assert browser.complaints() == [] or all(
        "400" in complaint for complaint in browser.complaints()
    )


def test_rejects_have_reasons_images_zoom_and_keys_are_told(
    candidates: Path, browser: webdriver.Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    browser.forget()
    pair = sorted(candidates.glob("**/1001_*.png"))
    natural = next(path for path in pair if path.stem.endswith("_s"))
    next(path for path in pair if path.stem.endswith("_e")).write_bytes(
        natural.read_bytes()
    )
    first = worklist(candidates, "review", "ann")
    names = [task.name for task in first.tasks]
    with ReviewServer(first) as server:
        browser.open(server.address)
        browser.wait(TASK, names[0])
        assert (
            browser.text("warning") == "The two images are identical, pixel for pixel."
        )
        shortcuts = (
            "[...document.querySelectorAll('#choices button')].map(each => "
            "each.getAttribute('aria-keyshortcuts'))"
        )
        assert browser.run(shortcuts) == list("aqwibr")
        assert "w reject: answer" in browser.text(
            "told"
        ) and "z enlarges the image" in browser.text("told")
        browser.press("z")
        browser.wait("document.getElementById('zoom').open", True)
        browser.press("+")
        wide = "document.getElementById('large').getBoundingClientRect().width * devicePixelRatio"
        browser.wait(wide, 192)  # twice the 96 pixels, each shown as a square
        assert (
            browser.run(
                "getComputedStyle(document.getElementById('large')).imageRendering"
            )
            == "pixelated"
        )
        browser.press("a")  # decides nothing while an image is looked at
        browser.run("document.getElementById('zoom').close()")
        assert browser.run(TASK) == names[0]
        browser.press("w")
        browser.wait(TASK, names[1])
        browser.press("r")
        browser.wait(TASK, names[2])
        browser.press(webdriver.LEFT)
        browser.wait(TASK, names[1])
        assert browser.run("document.querySelector('.said').title") == "another reason"
    assert main(["review", str(candidates), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reasons"]["ann"] == {
        "the answer is not right": 1,
        "another reason": 1,
    }
    assert browser.complaints() == []
