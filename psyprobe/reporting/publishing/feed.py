"""Write what happened in a registry as an Atom feed: runs, failures, retractions, revisions.

References
----------
RFC 4287: The Atom Syndication Format.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from psyprobe.analysis.score import OBSERVER, ends_text, number
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.terminal import printable_line

FEED_FILE = "feed.xml"
#: Entries of a feed, the newest ones.
_ENTRIES = 100
_ATOM = "http://www.w3.org/2005/Atom"


class Event(NamedTuple):
    """One thing that happened to a run."""

    #: When, in ISO 8601 with the zone of UTC.
    date: str
    #: "run", "failed", "revision" or "retracted".
    kind: str
    run: JsonMapping
    text: str


def feed(title: str, runs: Sequence[JsonMapping]) -> bytes:
    """Write the Atom feed of a registry, the same bytes from the same runs.

    Dates are those of runs and retractions, and names are made of them: no clock is read.

    Parameters
    ----------
    title : str
        Name of the registry.
    runs : sequence of mapping
        Runs of an index.

    Returns
    -------
    bytes
        XML in UTF-8, with at most 100 entries, the newest first.
    """
    events = sorted(
        _events(sorted(runs, key=lambda run: run["started"])),
        key=lambda event: (event.date, event.run["path"], event.kind),
        reverse=True,
    )
    root = ET.Element("feed", xmlns=_ATOM)
    _add(root, "id", uuid5(NAMESPACE_URL, f"psyprobe:{title}").urn)
    _add(root, "title", title)
    _add(root, "updated", events[0].date if events else _date("", ""))
    ET.SubElement(root, "link", rel="self", href=FEED_FILE)
    ET.SubElement(root, "link", rel="alternate", href="index.html")
    for event in events[:_ENTRIES]:
        run = event.run
        name = f"psyprobe:{run['path']}:{event.kind}"
        entry = ET.SubElement(root, "entry")
        _add(entry, "id", uuid5(NAMESPACE_URL, name).urn)
        _add(
            entry, "title", f"{run['experiment']} with {run['observer']}: {event.kind}"
        )
        _add(entry, "updated", event.date)
        _add(ET.SubElement(entry, "author"), "name", run["contributor"])
        ET.SubElement(entry, "link", rel="alternate", href=f"run-{run['run']}.html")
        ET.SubElement(entry, "category", term=event.kind)
        _add(entry, "summary", event.text)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _events(runs: Sequence[JsonMapping]) -> Iterator[Event]:
    """Iterate over what happened to runs, which come in the order in which they began."""
    revisions: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for run in runs:
        date = _date(run["started"], "")
        if run["status"] == "failed":
            yield Event(date, "failed", run, run["failure"])
        else:
            yield Event(date, "run", run, _numbers(run))
            # Two settings of one observer take turns: only a revision never seen is news.
            before = revisions[run["observer"], run["path"].split("/")[3]]
            if before and run["revision"] not in before:
                text = f"{run['revision']} after {before[-1]}"
                yield Event(date, "revision", run, text)
            before.append(run["revision"])
        if run["retracted"] is not None:
            retracted_on = _date(run.get("retracted_on", ""), date)
            yield Event(retracted_on, "retracted", run, run["retracted"])


def _date(text: str, default: str) -> str:
    """Read a date as one of UTC; the default, or the first of 1970, where it is none."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return default or datetime.fromtimestamp(0, UTC).isoformat()
    date = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    return date.isoformat(timespec="seconds")


def _numbers(run: JsonMapping) -> str:
    """Write the numbers of a run's observer with their intervals."""
    texts = [
        number(entry["value"], entry["digits"])
        + ends_text(entry["low"], entry["high"], entry["digits"])
        for entry in run["board"]
        if entry["responder"] == OBSERVER and entry["value"] is not None
    ]
    return ", ".join(texts) or "no number"


def _add(parent: ET.Element, name: str, text: str) -> None:
    """Add an element with a text, characters that XML has no place for escaped."""
    ET.SubElement(parent, name).text = printable_line(text)
