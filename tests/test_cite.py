"""The sources of an experiment are named, in BibTeX that a bibliography takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from psyprobe import cli
from psyprobe.human import list_human
from psyprobe.reporting.citing import cite, references, references_in
from psyprobe.stimulus.catalogue import catalogue_names, read_page

ROOT = Path(__file__).resolve().parents[1]


#: Pages whose source is a picture or a font, which no paper published.
NOT_PAPERS = {
    "experiments": ["alphabet_26"],
    "stimuli": ["film_pan", "glyph_capitals", "photograph"],
}


@pytest.mark.parametrize("catalogue", ["experiments", "stimuli"])
def test_every_source_of_the_catalogue_is_known(catalogue: str) -> None:
    sources = {
        name: str(read_page(catalogue, name)[1].get("source", "psyprobe"))
        for name in catalogue_names(catalogue)
    }
    assert [
        name
        for name, text in sources.items()
        if text != "psyprobe" and not references_in(text)
    ] == NOT_PAPERS[catalogue]


@pytest.mark.parametrize("catalogue", ["experiments", "stimuli"])
def test_every_paper_named_with_a_year_is_known(catalogue: str) -> None:
    """Counted apart: each "Name (year)" of the sources, and not only one of them."""
    for name in catalogue_names(catalogue):
        text = str(read_page(catalogue, name)[1].get("source", ""))
        assert len(references_in(text)) == len(re.findall(r"\(\d{4}\)", text)), name


def test_people_are_cited_by_their_first_author_alone() -> None:
    sources = {row.name: references_in(row.source) for row in list_human()}
    assert {name: set(keys) for name, keys in sources.items() if len(keys) != 1} == {
        "dipper": {"legge1980", "bird2002"},
        "orientation_jnd_constructed": {"heeley1990", "westheimer1999"},
        "frequency_jnd_constructed": {"burbeck1983", "greenlee1992"},
        "robson1966": {"robson1966", "ashraf2024"},
    }
    assert sources["castle_csf"] == ["ashraf2024"] and sources["stela_csf"] == [
        "mantiuk2022"
    ]


def test_entries_are_bibtex() -> None:
    for reference in references().values():
        assert reference.bibtex.count("{") == reference.bibtex.count("}")
        fields = re.findall(r"^  (\w+)\s*= \{", reference.bibtex, re.MULTILINE)
        assert {"author", "title", "year"} <= set(fields) and len(fields) == len(
            set(fields)
        ), reference.key


def test_a_suite_cites_what_its_experiments_rest_on() -> None:
    assert [reference.key for reference in cite("cai2025")] == [
        "psyprobe",
        "cai2025",
        "ashraf2024",
        "foley1994",
        "gegenfurtner1992",
        "georgeson1975",
    ]


def test_a_source_that_is_not_known_is_told_word_for_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mine.toml"
    text = (ROOT / "experiments" / "area.toml").read_text(encoding="utf-8")
    page.write_text(
        text.replace(tomllib.loads(text)["source"], "My \\\\{thesis}"), encoding="utf-8"
    )
    assert cli.main(["cite", str(page)]) == 0
    printed = capsys.readouterr().out
    assert (
        "@misc{source_mine,\n  note = {My thesis}\n}" in printed
        and "@software{psyprobe," in printed
    )
    assert "% people: castle_csf\n@article{ashraf2024," in printed


def test_the_citation_file_is_of_this_version() -> None:
    import yaml

    import psyprobe

    file = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert file["cff-version"] == "1.2.0" and file["version"] == psyprobe.__version__
    assert (
        file["authors"] == [{"name": "psyprobe developers"}]
        and file["license"] == "MIT"
    )
    assert {"title", "message", "abstract", "type"} <= set(file)
