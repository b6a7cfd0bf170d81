"""Steps of the page that a session need not take: brightness by eye, the blind spot, other tasks,
keys alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import webdriver
from person_at_page import CARD, STEP, PersonAtPage, visit

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.observers.people.patterns import VOID
from psyprobe.observers.people.server import PersonServer
from psyprobe.running.store import open_store

pytestmark = pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)

ROOM = files("psyprobe.observers.people")


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Browser]:
    with webdriver.browser() as opened:
        yield opened


def test_brightness_is_matched_by_eye_and_distance_by_the_blind_spot(
    tmp_path: Path, browser: webdriver.Browser
) -> None:
    served = visit(tmp_path)
    with PersonServer(served) as server:
        # A person whose blind spot lies at 14.2 deg.
        blind = 900 * math.tan(math.radians(14.2)) * CARD / 85.6
        person = PersonAtPage(
            browser, 1, pp.Display(peak=200, eotf=2.5), distance=900, blind_px=blind
        )
        person.arrive(server.address)
        person.fit_cards()
        for tape in (1200, 900):
            person.reach("distance")
            person.enter("millimetres", tape)
            browser.run("(document.getElementById('check').checked = true)")
            person.click("measured")
            for number in range(1, 6):
                browser.wait(
                    "document.getElementById('sweep').textContent",
                    f"Look {number} of 5.",
                )
                person.click("move")
                browser.wait("document.getElementById('spot').hidden", True)
            if tape == 1200:
                browser.wait(
                    "document.getElementById('error').textContent.includes('blind spot 9')",
                    True,
                )
        browser.wait(STEP, "luminance")
        browser.run("(document.getElementById('byEye').checked = true)")
        person.click("off")
        person.click("lit")
        person.match_brightness()
        browser.wait(STEP, "practice")
        text = browser.text("curve")
    exponent = float(re.findall(r"\d\.\d+", text)[0])
    assert "It is used" in text and exponent == pytest.approx(2.5, abs=0.02)
    screen = served._screen
    assert screen is not None and screen.display.eotf == pytest.approx(exponent)
    assert screen.distance == 900 and screen.offset < 0.03


def test_without_a_tape_the_blind_spot_is_the_distance(
    tmp_path: Path, browser: webdriver.Browser
) -> None:
    served = visit(tmp_path)
    with PersonServer(served) as server:
        person = PersonAtPage(
            browser, blind_px=900 * math.tan(math.radians(13.5)) * CARD / 85.6
        )
        person.arrive(server.address)
        person.fit_cards()
        person.reach("distance")
        person.click("bySpot")
        person.click("measured")
        for number in range(1, 6):
            browser.wait(
                "document.getElementById('sweep').textContent", f"Look {number} of 5."
            )
            person.click("move")
            browser.wait("document.getElementById('spot').hidden", True)
        person.reach("luminance")
        person.click("off")
        person.click("lit")
        browser.wait(STEP, "practice")
    screen = served._screen
    assert (
        screen is not None
        and screen.distance_method == "blind_spot"
        and screen.frequency_sd == 0.04
    )
    # The dot moves by 1 mm a frame.
    assert screen.distance == pytest.approx(900, rel=0.01)


@pytest.mark.parametrize(
    ("probe", "eyes"),
    [
        (
            "orientation_4",
            {
                "orientations": [0, 90, 135, 45],
                "keys": ["1", "2", "3", "4"],
                "touches": True,
            },
        ),
        ("yes_no", {"orientations": [0], "keys": ["f", "j"], "criterion": 0.0}),
    ],
)
def test_other_tasks(
    tmp_path: Path, browser: webdriver.Browser, probe: str, eyes: dict[str, object]
) -> None:
    # Patterns that somebody sees surely, and for yes_no screens without one.
    contrasts = {"from": 0.3, "to": 0.9, "n": 2, "scale": "log"}
    settings = {
        "asking.design": "constant",
        "asking.repeats": 1,
        "asking.options": {},
        "levels.contrast": contrasts,
    }
    catch = 0.2 if probe == "yes_no" else 0
    served = visit(
        tmp_path,
        probe,
        **settings,
        **{"levels.frequency.values": [2, 4], "asking.catch": catch},
    )
    with PersonServer(served) as server:
        person = PersonAtPage(browser, 1, distance=740, lapse=0.0, **eyes)
        person.sit(server.address)
        text = browser.text("told")
    assert ("yes to 0 % of the screens" in text) == (probe == "yes_no")
    result = trials(pp.load_results(tmp_path / "runs.sqlite")[0])
    assert result.sizes["trial"] == 4 + (probe == "yes_no")
    assert (result.response.values == ~result["catch"].values.astype(bool)).all()
    if probe == "orientation_4":
        words = ["vertical", "horizontal", "rising", "falling"]
        assert [
            words[int(order)] for order in result.order
        ] == result.text.values.tolist()
        with open_store(tmp_path / "runs.sqlite", create=False) as opened:
            replies = [answered.answer["reply"] for answered, _ in opened.all_answers()]
        assert {reply["session"]["key"] for reply in replies} == {"touch"}


def test_no_mouse_is_needed(tmp_path: Path, browser: webdriver.Browser) -> None:
    served = visit(tmp_path)
    with PersonServer(served) as server:
        person = PersonAtPage(browser)
        browser.forget()
        browser.open(server.address)
        browser.wait(STEP, "consent")
        browser.press(webdriver.SPACE, webdriver.TAB, webdriver.ENTER)
        browser.wait(STEP, "measure")
        browser.press(*[webdriver.RIGHT] * 4)
        assert browser.run("document.getElementById('width').value") == "231"
        for _ in range(2):
            person.enter("width", CARD)
            browser.press(webdriver.TAB, webdriver.ENTER)
        browser.wait(STEP, "distance")
        browser.press(*[webdriver.TAB] * 3, webdriver.ENTER)
        browser.wait(STEP, "luminance")
        browser.press(
            *[webdriver.TAB] * 3, webdriver.SPACE, webdriver.TAB, webdriver.ENTER
        )
        browser.wait(STEP, "practice")
        browser.press(webdriver.ENTER)
        browser.wait(STEP, "stage")
        assert browser.complaints() == []


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    digits = colour.lstrip("#")
    full = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(full[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(first: str, other: str) -> float:
    low, high = sorted((luminance(first), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_stands_out_as_wcag_asks() -> None:
    page = ROOM.joinpath("page.html").read_text(encoding="utf-8")
    report = (
        files("psyprobe.reporting").joinpath("page.css").read_text(encoding="utf-8")
    )
    schemes = [
        dict(re.findall(r"--([a-z]+): (#\w+)", block))
        for block in re.findall(r":root \{(.*?)\}", page)
    ]
    assert len(schemes) == 2
    for colours in schemes:
        for ink, paper in (
            ("ink", "paper"),
            ("soft", "paper"),
            ("ink", "raised"),
            ("soft", "raised"),
            ("paper", "link"),
        ):
            assert ratio(colours[ink], colours[paper]) >= 4.5, (ink, paper)
        # The marks of focus, and the edges of fields.
        assert (
            ratio(colours["link"], colours["paper"]) >= 3
            and ratio(colours["soft"], colours["raised"]) >= 3
        )
        # The report's own colours.
        assert all(f"--{name}: {colour}" in report for name, colour in colours.items())
    # On the grey of a trial words are black or white, whichever stands out more.
    assert (
        min(
            max(ratio(f"#{3 * f'{code:02x}'}", ink) for ink in ("#000", "#fff"))
            for code in range(256)
        )
        >= 4.5
    )


def test_english_stands_in_one_file() -> None:
    for name in ("page.js", "setup.js", "trials.js", "pictures.js", "draw.js"):
        script = ROOM.joinpath(name).read_text(encoding="utf-8")
        lines = [
            line for line in script.splitlines() if not line.lstrip().startswith("//")
        ]
        quoted = re.findall(r"[\"'`]([^\"'`]*)[\"'`]", "\n".join(lines))
        assert {
            text for text in quoted if re.fullmatch(r"[A-Za-z]+( [a-z]+)+.*", text)
        } <= {
            "use strict",
            *VOID,
        }, name
