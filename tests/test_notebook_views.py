"""Values as a notebook shows them: HTML that is whole, tells what the text tells, and is inert
whatever its text."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from report_results import HOSTILE, contours

import psyprobe as pp
from psyprobe.files import html
from psyprobe.files.images import decode_png
from psyprobe.observers import Card

VOID = {"image", "rect", "polyline"}


class Reader(HTMLParser):
    """Tags in order, and text between them; tags must close one another."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attributes if name.startswith("on")]
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        assert tag in VOID
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def rendered(value: Any) -> Reader:
    reader = Reader(value._repr_html_())
    assert not {"script", "iframe", "img", "b", "link"} & set(reader.tags)
    return reader


def test_a_stimulus_is_its_pixels_with_axes_in_degrees_and_a_folded_certificate() -> (
    None
):
    stimulus = pp.gabor(frequency=4, contrast=0.5, ppd=32, size=(48, 64))
    view = rendered(stimulus)
    codes = decode_png(
        base64.b64decode(re.search(r"base64,([^\"]+)", stimulus._repr_html_())[1])
    )  # type: ignore[index]
    assert np.array_equal(
        codes, np.rint(255 * pp.Display(peak=400).encode(stimulus)).astype(np.uint8)
    )
    ends = [word for word in view.words if re.fullmatch(r"-?[\d.]+", word)]
    assert ends[:6] == [
        "-1",
        "-0.75",
        "0",
        "0",
        "1",
        "0.75",
    ]  # 64 px are 2 deg wide, 48 px 1.5 deg high
    assert (
        "details" in view.tags and "requested against delivered: passed" in view.words
    )
    assert repr(stimulus) in view.text


@pytest.mark.parametrize("direction", ["achromatic", "red_green"])
def test_a_batch_shows_its_first_images(direction: str) -> None:
    batch = pp.gabor(
        frequency=[1, 2, 4, 8, 10],
        contrast=0.05,
        direction=direction,
        radius=0.2,
        size=32,
    )
    view = rendered(batch)
    assert view.tags.count("svg") == 4 and "The first 4 of 5 images" in view.text


def test_light_beyond_the_usual_display_is_shown_on_a_brighter_one() -> None:
    assert (
        "as a display of 10000 cd/m²"
        in rendered(pp.uniform(luminance=5000, size=8)).text
    )


def test_asarray_gives_the_pixels() -> None:
    stimulus = pp.gabor(frequency=4, contrast=0.5, radius=0.2, size=32)
    assert np.array_equal(np.asarray(stimulus), stimulus.pixels)
    assert (
        np.asarray(stimulus) is not None
        and np.asarray(stimulus, dtype="float32").dtype == np.float32
    )
    changed = np.array(stimulus)
    changed[:] = 0
    assert np.asarray(stimulus).max() > 100
    assert np.array_equal(
        np.asarray(
            pp.gabor(frequency=4, contrast=0.5, radius=0.2, size=32, device="cpu")
        ),
        stimulus.pixels,
    )


def test_a_display_shows_its_curve() -> None:
    display = pp.Display(peak=200, black=0.5, eotf=2.2)
    view = rendered(display)
    points = re.search(r'points="([^"]+)"', display._repr_html_())[1].split(" ")  # type: ignore[index]
    heights = [float(point.split(",")[1]) for point in points]
    assert len(points) == 65 and heights == sorted(heights, reverse=True)
    light = (heights[0] - np.array(heights)) / (heights[0] - heights[-1])
    assert np.allclose(light, np.linspace(0, 1, 65) ** 2.2, atol=0.002)
    assert "200.0" in view.words and "luminance (cd/m²)" in view.words


def test_scores_scoreboards_and_plans_tell_what_they_print() -> None:
    result = contours(HOSTILE, seed=2)
    score = pp.score(result)
    board = pp.probes.results.scoreboard([result], published=True)
    plan = pp.plan("area", "pixels")
    for value, word in (
        (score, "monotone"),
        (board, "f32 floor"),
        (plan, "distinct images"),
    ):
        view = rendered(value)
        assert word in view.text
    assert (
        "<script>" not in score._repr_html_()
        and "&lt;script&gt;" in score._repr_html_()
    )
    frame = board.to_frame()
    assert len(frame) == sum(len(row.entries) for row in board.rows) and {
        "name",
        "value",
        "low",
    } <= set(frame)
    assert score.to_frame()["observer"].iloc[0] == HOSTILE


def test_a_card_and_a_plan_in_words_are_inert() -> None:
    card = Card("<script>alert(1)</script>", "answer", paper="a\x1b[31m")
    view = rendered(card)
    assert "<script>alert(1)</script>" in view.words and "a\\x1b[31m" in view.words
    assert "pre" in rendered(pp.plan("hernandez2025", "simulated:watson-malo")).tags


def test_a_fit_is_a_row_a_curve() -> None:
    contrast = 10 ** np.linspace(-3, -1, 9)
    fit = pp.fit_psychometric(contrast, [[0, 0, 2, 7, 20, 33, 38, 40, 40], [0] * 9], 40)
    view = rendered(fit)
    assert (
        view.tags.count("tr") == 3
        and "ok" in view.words
        and "censored_above" in view.words
    )


def test_text_is_inert_everywhere() -> None:
    hostile = "<img src=x onerror=alert(1)>'\"\x1b"
    for fragment in (
        html.table([[hostile], [hostile]], hostile),
        html.fields({hostile: hostile}),
        html.paragraphs(hostile),
        html.preformatted(hostile),
        html.folded(hostile, html.paragraphs(hostile)),
        html.curve([0, 1], [0, 1], (hostile, hostile), hostile),
        html.picture(np.zeros((2, 2, 3), np.uint8), (1, 1), hostile),
    ):
        assert "img" not in Reader(fragment).tags and "\x1b" not in fragment


def test_names_complete() -> None:
    for room in (pp, pp.analysis, pp.observers, pp.plotting, pp.testing):
        assert set(room.__all__) <= set(dir(room))
