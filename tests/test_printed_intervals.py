"""No table prints an interval without its population, or a fraction of a person without its
interval: in the terminal, in the report and in the docs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from detection_results import simulated_result

import psyprobe as pp
from psyprobe.probes.results import scoreboard

ROOT = Path(__file__).resolve().parents[1]
#: "0.50 [0.33, 0.64]", and its population: "interval over people", "band: if ...".
INTERVAL = re.compile(r"\d\.\d+ ?%? \[[-+]?\d+\.\d+ ?%?, [-+]?(\d+\.\d+ ?%?|-)\]")
POPULATION = re.compile(
    r"intervals? (over|of|holds?|speaks?) |interval,? over |interval|band|credible",
    re.I,
)
NAMED = re.compile(
    r"over (the )?(runs|variants|levels|frequencies|people|persons|items|image pairs|photographs|"
    r"images|seeds|draws|prompts|trials|answers|models|families|tests|references|bands)|"
    r"if other|other (people|trials|phases)",
    re.I,
)
#: Where a method says by itself what would be drawn anew.
METHOD = re.compile(r"posterior|resampl|Wilson|Student|bootstrap|credible", re.I)
#: A fraction of a person alone: "(0.62)" behind a score, or a cell below its heading.
FRACTION = re.compile(r"(\]|\d\.\d\d) \(\d\.\d\d\)")
HEADING = re.compile(r"of a person(?! \[interval\])(  |\s*\|)")


def names_population(text: str) -> bool:
    """Whether one sentence says that there is an interval, and then what it is over."""
    lines = re.sub(r"\n  +", " ", text).splitlines()
    for sentence in (part for line in lines for part in re.split(r"(?<=\.) ", line)):
        interval = POPULATION.search(sentence)
        if interval and (
            METHOD.search(sentence) or NAMED.search(sentence, interval.start())
        ):
            return True
    return False


def faults(text: str) -> list[str]:
    """List what a printed table lacks, with the text beneath it."""
    messages = []
    if INTERVAL.search(text) and not names_population(text):
        messages.append("an interval without its population")
    if FRACTION.search(text) or HEADING.search(text):
        messages.append("a fraction without its interval")
    return messages


def texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """All texts of several lines in a golden: what the terminal prints."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from texts(entry, f"{place}/{name}")
    elif isinstance(value, list):
        for entry in value:
            yield from texts(entry, place)
    elif isinstance(value, str) and "\n" in value and not value.startswith("{"):
        yield place, value


def printed() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tests" / "goldens" / "data").glob("*.json")):
        yield from texts(json.loads(path.read_text(encoding="utf-8")), path.stem)


def documented() -> Iterator[tuple[str, str]]:
    """Each section of the docs that holds a table or a printed one."""
    for path in sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]):
        text = path.read_text(encoding="utf-8")
        for section in re.split(r"\n(?=## )", text):
            if "```text" in section or "\n|" in section:
                yield f"{path.name}: {section.splitlines()[0]}", section


@pytest.mark.parametrize(
    "text",
    [
        "observer  r_s [interval]\n------\npixels  0.50 [0.33, 0.64]",
        "r  0.50 [0.33, 0.64]\nr: over prompts, with intervals (95 %). (mean ± SD): over prompts.",
        "observer  Gabor ach\npixels  0.50 [0.33, 0.64] (0.62)\ninterval over people",
        "observer  in range  of a person  above flat\npixels  0.52  0.62  0.01",
    ],
)
def test_the_walk_finds_what_is_missing(text: str) -> None:
    assert faults(text)


def test_tables_of_the_terminal_name_the_population_of_intervals() -> None:
    walked = list(printed())
    assert sum(bool(INTERVAL.search(text)) for _, text in walked) > 5
    assert {
        place: messages for place, text in walked if (messages := faults(text))
    } == {}


def test_pages_of_the_docs_name_the_population_of_intervals() -> None:
    pages = [*documented()]
    assert sum(bool(INTERVAL.search(text)) for _, text in pages) > 5
    assert {
        place: messages for place, text in pages if (messages := faults(text))
    } == {}


@pytest.mark.parametrize("over", ["variants", "levels"])
def test_the_report_and_the_scoreboard_name_it_too(tmp_path: Path, over: str) -> None:
    result = simulated_result(lambda x, c: c * x)
    board = scoreboard([result], over=over)
    for text in (str(pp.score(result, over=over)), str(board), board.table("markdown")):
        assert not faults(text)
    published = replace_name(result)
    page = pp.report([published], tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'class="interval"' in page and "interval over levels" in page
    assert not faults(re.sub(r"<[^>]+>", " ", page))


def replace_name(result: Any) -> Any:
    """The same result under a name that keeps its interval over levels."""
    return result.assign_attrs(experiment="gabor_achromatic_published")
