"""Cite what an experiment rests on: papers of its page, stimulus, human data and probe, as
BibTeX.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from psyprobe import __version__
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment, load_suite
from psyprobe.files.parsing import packaged_text
from psyprobe.human import list_human
from psyprobe.probes import probe_bibtex
from psyprobe.stimulus.catalogue import read_page

#: Characters between an author's name and the year, at most.
_REACH = 80


@dataclass(frozen=True)
class Cited:
    """One thing to cite, and why."""

    key: str
    #: The whole entry.
    bibtex: str
    #: What the experiment takes from it.
    reason: str


@dataclass(frozen=True)
class Reference:
    """An entry of ``references.bib``."""

    key: str
    bibtex: str
    #: First author's family name without accents, and year.
    author: str
    year: str


@cache
def references() -> dict[str, Reference]:
    """Read the papers that the catalogue names, by key.

    Examples
    --------
    >>> references()["foley1994"].author, references()["hernandez2025"].author
    ('Foley', 'Hernandez-Camara')
    """
    text = packaged_text("psyprobe.reporting", "references.bib")
    entries = {}
    for entry in re.split(r"\n\n(?=@)", text.strip()):
        author = re.search(r"author\s*= \{(.*?),", entry)
        year = re.search(r"year\s*= \{(\d{4})\}", entry)
        assert author and year, entry
        name = re.sub(r"[{}]|\\.", "", author[1])
        key = _key(entry)
        entries[key] = Reference(key, entry, name, year[1])
    return entries


def references_in(text: str) -> list[str]:
    """Find the papers that a text names by first author and year.

    Parameters
    ----------
    text : str
        Such as the source of a page.

    Examples
    --------
    >>> references_in("Cai, Yin, Hammou & Mantiuk (2025), CVPR; Foley (1994), JOSA A")
    ['cai2025', 'foley1994']
    """
    # A name behind a comma or an ampersand is not the first of its paper.
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
    )
    papers = {(paper.author, paper.year): paper.key for paper in references().values()}
    counts = Counter((paper.author, paper.year) for paper in references().values())
    return [
        key
        for (author, year), key in papers.items()
        if counts[author, year] == 1
        and re.search(
            rf"(?<![,&] )\b{re.escape(author)}\b[^;]{{0,{_REACH}}}?\b{year}\b", plain
        )
    ]


def cite(experiment: str | Path) -> list[Cited]:
    """List what to cite with an experiment, psyprobe first, each paper once.

    Parameters
    ----------
    experiment : str or Path
        A name of the catalogue, a suite, or the path of a page.

    Returns
    -------
    list of Cited
        A source that names no paper psyprobe knows stands as a note, word for word.

    Raises
    ------
    InputError
        If there is no such experiment.

    Examples
    --------
    >>> [entry.key for entry in cite("mask_coherent")]
    ['psyprobe', 'cai2025', 'foley1994']
    """
    cited = [Cited("psyprobe", software(), "the software")]
    for page in load_suite(experiment):
        for text, reason in _sources(page):
            keys = references_in(text)
            cited += [Cited(key, references()[key].bibtex, reason) for key in keys]
            if not keys:
                key = f"source_{page.name}"
                # Nothing in it may end the braces of the entry.
                note = re.sub(r"[{}\\]", "", text)
                entry = f"@misc{{{key},\n  note = {{{note}}}\n}}"
                cited.append(Cited(key, entry, reason))
        entry = probe_bibtex(page.probe)
        if entry:
            cited.append(Cited(_key(entry), entry, f"the benchmark {page.probe}"))
    first = {entry.key: entry for entry in reversed(cited)}
    return sorted(first.values(), key=cited.index)


def _key(entry: str) -> str:
    """Read the key of a BibTeX entry."""
    key = re.match(r"@\w+\{([^,\s]+),", entry)
    if key is None:
        raise InputError(
            f"{entry!r:.80} is no entry of BibTeX; write @article{{KEY, ...}}"
        )
    return key[1]


def software() -> str:
    """Write the BibTeX entry of this version of psyprobe."""
    return (
        "@software{psyprobe,\n  author  = {{psyprobe developers}},\n"
        f"  title   = {{psyprobe: psychophysics for machines}},\n  version = {{{__version__}}}\n}}"
    )


def _sources(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Iterate over what an experiment takes from others, with the source of each."""
    page = tomllib.loads(experiment.toml)
    human_sources = {row.name: row.source for row in list_human()}
    human = page.get("human", {})
    sources = [(experiment.source, f"the experiment {experiment.name}")]
    stimulus = page.get("stimulus")
    if isinstance(stimulus, str) and not stimulus.endswith(".toml"):
        stimulus_page = read_page("stimuli", stimulus)[1]
        sources.append((stimulus_page.get("source", ""), "the stimulus"))
    for key in ("model", "data"):
        name = human.get(key)
        sources.append((human_sources.get(name, ""), f"people: {name}"))
    return ((text, reason) for text, reason in sources if text and text != "psyprobe")
