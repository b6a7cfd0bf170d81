"""The report as people read it: every control, with pointer and keyboard, in a headless browser
without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import webdriver
import xarray as xr
from chat_results import chat_result
from report_results import HOSTILE, contours, matches, with_run_attributes, words
from webdriver import RIGHT, Browser

import psyprobe as pp

pytestmark = pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)

FIRST = "document.querySelector('.drawn[data-figure=\"0\"]')"
READ = f"[...{FIRST}.querySelectorAll('output')].map(each => each.textContent.trim())"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    several = pp.run("gabor_achromatic", "pixels", score_only=True)
    results = [
        contours("lab:one", seed=1),
        contours(HOSTILE, seed=2),
        matches("lab:one"),
        words("simulated:a"),
    ]
    early, late = (
        contours("lab:deep", "layered", seed).assign_coords(layer=[f"block{seed}"])
        for seed in (3, 4)
    )
    deep = xr.concat(
        [early, late], "layer", data_vars="minimal", combine_attrs="override"
    )
    many = [contours(f"lab:{i}", "many", seed=i) for i in range(15)]
    crowd = [
        with_run_attributes(
            chat_result(frequencies=(1.0, 4.0), catch=10, seed=i), "crowd", f"lab:{i}"
        )
        for i in range(11)
    ]
    return pp.report(
        [*results, several, deep, *many, *crowd],
        tmp_path_factory.mktemp("report") / "report.html",
        title=HOSTILE,
    )


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    browser.command(
        "Emulation.setDeviceMetricsOverride",
        width=1200,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    with browser.without_network():
        browser.forget()
        browser.open(page.as_uri())
        browser.wait("document.documentElement.dataset.drawn", "yes")
        yield browser
        assert browser.complaints() == []
        assert browser.run("performance.getEntriesByType('resource').length") == 0
        assert browser.run("document.title").startswith("</script>")
    browser.command("Emulation.clearDeviceMetricsOverride")
    browser.command("Emulation.setEmulatedMedia", media="", features=[])


def wait_until_drawn(opened: Browser, figure: str = FIRST, panels: int = 2) -> None:
    """Scroll a figure into view, and wait until its panels are drawn."""
    opened.run(f"{figure}.scrollIntoView()")
    opened.wait(f"{figure}.querySelectorAll('.panel svg .frame').length", panels)


def choose(opened: Browser, name: str, value: str, figure: str = FIRST) -> None:
    box = f"{figure}.querySelector('select[aria-label=\"{name}\"]')"
    opened.run(f"({box}.value = '{value}', {box}.dispatchEvent(new Event('change')))")


def test_contours_are_read_with_pointer_and_keyboard(opened: Browser) -> None:
    wait_until_drawn(opened)
    panel = f"{FIRST}.querySelector('.panel svg')"
    opened.run(
        f"((box) => {panel}.dispatchEvent(new PointerEvent('pointermove', {{clientX: box.left + "
        "box.width / 2, "
        f"clientY: box.top + box.height / 2, bubbles: true}})))({panel}.getBoundingClientRect())"
    )
    first_reading, other = opened.run(READ)
    assert (
        "Spatial frequency (cpd)" in first_reading
        and "Michelson contrast" in first_reading
        and "human threshold" in first_reading
    )
    assert (
        first_reading.split(": S_ac")[0] == other.split(": S_ac")[0]
    )  # observers are linked
    opened.run(f"{panel}.focus()")
    opened.press(webdriver.RIGHT, webdriver.UP)
    moved, _ = opened.run(READ)
    assert moved != first_reading and "S_ac" in moved
    opened.run(f"{FIRST}.querySelectorAll('input[type=checkbox]')[1].click()")
    opened.run(f"{panel}.focus()")
    opened.press(webdriver.RIGHT)
    assert opened.run(READ)[1] == ""  # no longer linked


def test_every_choice_of_contours_draws(opened: Browser) -> None:
    wait_until_drawn(opened)
    bands = "[...each.querySelectorAll('.band')].map(band => band.getAttribute('d')).join('')"
    path = f"[...{FIRST}.querySelectorAll('.panel')].map(each => {bands})"
    paths_drawn: list[Any] = [opened.run(path)]
    assert all(len(drawn_path) > 1000 for drawn_path in paths_drawn[0])
    for name, value in (
        ("measure", "l2"),
        ("measure", "angular"),
        ("levels", "linear"),
    ):
        choose(opened, name, value)
        paths_drawn.append(opened.run(path))
    opened.run(f"{FIRST}.querySelectorAll('input[type=checkbox]')[0].click()")
    paths_drawn.append(opened.run(path))
    assert (
        paths_drawn[0] == paths_drawn[2]
        and paths_drawn[3] != paths_drawn[0]
        and paths_drawn[4] != paths_drawn[3]
    )
    opened.run(f"{FIRST}.querySelector('details.tables summary').click()")
    opened.wait(f"{FIRST}.querySelectorAll('details.tables table').length", 2)
    assert (
        opened.run(f"{FIRST}.querySelectorAll('details.tables table')[0].rows.length")
        == 21
    )


def test_layers_are_chosen(opened: Browser) -> None:
    figure = "document.querySelector('.drawn select[aria-label=\"layer\"]').closest('.drawn')"
    wait_until_drawn(opened, figure, 1)
    path = f"[...{figure}.querySelectorAll('.band')].map(band => band.getAttribute('d')).join('')"
    early = opened.run(path)
    choose(opened, "layer", "block4", figure)
    late = opened.run(path)
    choose(opened, "layer", "block3", figure)
    assert opened.run(path) == early != late


def test_a_point_opens_its_psychometric_functions(opened: Browser) -> None:
    figure = "document.querySelector('.drawn[data-figure=\"2\"]')"
    wait_until_drawn(opened, figure, 1)
    opened.run(f"{figure}.querySelector('.panel svg').focus()")
    # The first lines are those of people, which have nothing behind them.
    for _ in range(
        int(opened.run(f"{figure}.querySelectorAll('.people, .people-points').length"))
    ):
        opened.press(webdriver.RIGHT, webdriver.DOWN)
    opened.press(webdriver.ENTER)
    opened.wait(f"{figure}.querySelectorAll('.behind h4').length", 1)
    assert opened.run(f"{figure}.querySelector('.behind h4').textContent").startswith(
        "simulated:a, "
    )
    opened.wait(
        f"{figure}.querySelectorAll('.behind .panel svg circle.point').length > 5", True
    )
    opened.run(f"{figure}.querySelector('.behind button').click()")
    opened.wait(f"{figure}.querySelector('.behind').childNodes.length", 0)


def test_observers_of_a_large_figure_are_filtered(opened: Browser) -> None:
    figure = "[...document.querySelectorAll('.drawn[data-figure]')].at(-2)"
    panels = f"[...{figure}.querySelectorAll('.panel')].filter(each => each.offsetParent).length"
    assert opened.run(panels) == 15
    box = f"{figure}.querySelector('.bar input[type=search]')"
    opened.run(f"({box}.value = 'LAB:1', {box}.dispatchEvent(new Event('input')))")
    assert opened.run(panels) == 6
    opened.run(f"({box}.value = '', {box}.dispatchEvent(new Event('input')))")
    assert opened.run(panels) == 15


def test_one_of_more_lines_than_colours_is_seen_alone(opened: Browser) -> None:
    figure = "[...document.querySelectorAll('.drawn[data-figure]')].at(-1)"
    wait_until_drawn(opened, figure, 1)
    seen = f"[...{figure}.querySelectorAll('g.line')].map(each => getComputedStyle(each).opacity)"
    assert opened.run(seen) == ["1"] * 11
    item = f"[...{figure}.querySelectorAll('.legend li')].at(-1)"
    opened.run(f"{item}.dispatchEvent(new Event('pointerenter'))")
    assert opened.run(seen) == ["0.12"] * 10 + ["1"]
    opened.run(f"{item}.dispatchEvent(new Event('pointerleave'))")
    opened.run(f"{figure}.querySelector('svg[tabindex]').focus()")
    opened.press(RIGHT)
    shown = f"[...{figure}.querySelectorAll('.faint')].length"
    assert opened.run(shown) > 9
    opened.run(f"{figure}.querySelector('svg[tabindex]').blur()")
    assert opened.run(seen) == ["1"] * 11


def test_tables_are_sorted(opened: Browser) -> None:
    names = "[...document.querySelectorAll('.board tbody th')].map(each => each.textContent)"
    before = opened.run(names)
    for _ in range(2):
        opened.run("document.querySelector('.board thead button').click()")
    assert (
        opened.run(
            "document.querySelector('.board thead th').getAttribute('aria-sort')"
        )
        == "descending"
    )
    assert opened.run(names) != before and sorted(opened.run(names)) == sorted(before)


def test_light_dark_print_and_a_narrow_screen(opened: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    for scheme, colour in (
        ("light", "rgb(255, 255, 255)"),
        ("dark", "rgb(20, 22, 26)"),
    ):
        opened.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        assert opened.run(paper) == colour
    opened.run("document.querySelector('#page-bar button').click()")
    assert opened.run(paper) == "rgb(255, 255, 255)"
    opened.run("delete document.documentElement.dataset.scheme")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    opened.command("Emulation.setEmulatedMedia", media="print", features=dark)
    opened.run("dispatchEvent(new Event('beforeprint'))")
    assert opened.run(paper) == "rgb(255, 255, 255)"
    assert opened.run(
        "[...document.querySelectorAll('.panel > svg')].every(each => each.querySelector('.frame'))"
    )
    assert (
        opened.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    )
    opened.command("Emulation.setEmulatedMedia", media="", features=[])
    opened.command(
        "Emulation.setDeviceMetricsOverride",
        width=375,
        height=800,
        deviceScaleFactor=2,
        mobile=True,
    )
    assert opened.run("document.documentElement.scrollWidth") <= 375


def test_what_hostile_text_became_and_when_it_is_painted(opened: Browser) -> None:
    assert opened.run("document.querySelectorAll('script').length") == 2
    assert (
        opened.run("document.querySelectorAll('img[onerror], img[src=x]').length") == 0
    )
    wait_until_drawn(opened)
    assert opened.run(
        f"{FIRST}.querySelectorAll('figcaption')[1].textContent"
    ).startswith("</script><script>")
    paint = opened.run(
        "performance.getEntriesByName('first-contentful-paint').map(each => each.startTime)"
    )
    print(f"first paint after {paint} ms")
