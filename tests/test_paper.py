"""The paper in JOSS's form: what it cites stands in its bibliography."""

from __future__ import annotations

import re
from pathlib import Path

PAPER = Path(__file__).parents[1] / "paper"
TEXT = (PAPER / "paper.md").read_text(encoding="utf-8")


def test_citations_and_bibliography_are_the_same_set() -> None:
    entries = re.findall(
        r"(?m)^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(encoding="utf-8")
    )
    assert len(entries) == len(set(entries))
    assert set(entries) == set(re.findall(r"@(\w+)", TEXT))


def test_front_matter_has_what_the_journal_asks_for() -> None:
    front, _, body = TEXT.removeprefix("---\n").partition("\n---\n")
    fields = re.findall(r"(?m)^(\w+):", front)
    assert fields == [
        "title",
        "tags",
        "authors",
        "affiliations",
        "date",
        "bibliography",
    ]
    for heading in ("# Summary", "# Statement of need", "# State of the field"):
        assert f"\n{heading}\n" in body
