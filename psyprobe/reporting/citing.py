"""What an experiment rests on, as BibTeX: papers of its page, its stimulus, the people in it and
its probe.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from psyprobe import __version__
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment, read_suite
from psyprobe.human import list_human
from psyprobe.probes import probe_bibtex
from psyprobe.stimulus.catalogue import read_page

#: Characters between an author's name and the year, at most.
_REACH = 80


@dataclass(frozen=True)
class Cited:
    """One thing to cite."""

    #: Of the entry.
    key: str
    #: The entry.
    bibtex: str
    #: What of it the experiment takes.
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
    """All papers that the catalogue names, by key.

    Examples
    --------
    >>> references()["foley1994"].author, references()["hernandez2025"].author
    ('Foley', 'Hernandez-Camara')
    """
    text = files("psyprobe.reporting").joinpath("references.bib").read_text(encoding="utf-8")
    found = {}
    for entry in re.split(r"\n\n(?=@)", text.strip()):
        author = re.search(r"author\s*= \{(.*?),", entry)
        year = re.search(r"year\s*= \{(\d{4})\}", entry)
        assert author and year, entry
        name = re.sub(r"[{}]|\\.", "", author[1])
        found[_key(entry)] = Reference(_key(entry), entry, name, year[1])
    return found


def references_in(text: str) -> list[str]:
    """Keys of the papers that a sentence names by first author and year.

    Parameters
    ----------
    text : str
        Such as the source of a page.

    Examples
    --------
    >>> references_in("Cai, Yin, Hammou & Mantiuk (2025), CVPR; thresholds of Foley (1994), JOSA A 11, 1710")
    ['cai2025', 'foley1994']
    """
    # A name behind a comma or an ampersand is not the first of its paper.
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    pairs = [(reference.author, reference.year) for reference in references().values()]
    return [
        reference.key
        for reference in references().values()
        if pairs.count((reference.author, reference.year)) == 1
        and re.search(
            rf"(?<![,&] )\b{re.escape(reference.author)}\b[^;]{{0,{_REACH}}}?\b{reference.year}\b",
            plain,
        )
    ]


def cite(experiment: str | Path) -> list[Cited]:
    """What to cite with an experiment, psyprobe first, each once.

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
    >>> [one.key for one in cite("mask_coherent")]
    ['psyprobe', 'cai2025', 'foley1994']
    """
    found = {"psyprobe": Cited("psyprobe", software(), "the software")}
    for one in read_suite(experiment):
        for text, reason in _sources(one):
            keys = references_in(text)
            for key in keys:
                found.setdefault(key, Cited(key, references()[key].bibtex, reason))
            if not keys:
                key = f"source_{one.name}"
                found.setdefault(
                    key, Cited(key, f"@misc{{{key},\n  note = {{{_braced(text)}}}\n}}", reason)
                )
        entry = probe_bibtex(one.probe)
        if entry:
            key = _key(entry)
            found.setdefault(key, Cited(key, entry, f"the benchmark {one.probe}"))
    return list(found.values())


def _key(entry: str) -> str:
    """The key of an entry of BibTeX."""
    key = re.match(r"@\w+\{([^,\s]+),", entry)
    if key is None:
        raise InputError(f"{entry!r:.80} is no entry of BibTeX; write @article{{KEY, ...}}")
    return key[1]


def software() -> str:
    """The entry of this version of psyprobe."""
    return (
        "@software{psyprobe,\n  author  = {{psyprobe developers}},\n"
        f"  title   = {{psyprobe: psychophysics for machines}},\n  version = {{{__version__}}}\n}}"
    )


def _sources(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """What an experiment takes from others: a sentence that names it, and what it is."""
    page = tomllib.loads(experiment.toml)
    rows = {row.name: row.source for row in list_human()}
    human = page.get("human", {})
    told = [(experiment.source, f"the experiment {experiment.name}")]
    if isinstance(page.get("stimulus"), str) and not page["stimulus"].endswith(".toml"):
        told.append(
            (str(read_page("stimuli", page["stimulus"])[1].get("source", "")), "the stimulus")
        )
    told += [
        (rows.get(str(human.get(key)), ""), f"people: {human.get(key)}")
        for key in ("model", "data")
    ]
    return ((text, reason) for text, reason in told if text and text != "psyprobe")


def _braced(text: str) -> str:
    """Text inside the braces of an entry."""
    return re.sub(r"[{}\\]", "", text)
