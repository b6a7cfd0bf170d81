"""Name what is published by its content: observer, revision, experiment and run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from psyprobe.files.json_types import JsonMapping
from psyprobe.files.output import digest

_LARGEST_NAME = 80
#: Names that Windows keeps for devices.
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
#: Folders of a disk before the name of a file.
_FOLDERS = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:)?(?:[/\\][\w.+@-]+)*[/\\](?=[\w.+@-])")
#: What must stand in no file: home folders, keys, mail addresses, addresses of machines.
_PRIVATE = re.compile(
    r"/home/|/Users/|\\Users\\|\bsk-[\w-]{16,}|\b[Bb]earer [\w.-]{8,}"
    # Bounded, as a long word without an @ would be read again from each of its letters.
    r"|[\w.+-]{1,64}@[\w-]{1,64}\.[a-z]{2,}"
    r"|\b(?!127\.)\d{1,3}(?:\.\d{1,3}){3}\b"
)


def slug(name: str) -> str:
    """Make a name the name of a folder; another name never has the same.

    Parameters
    ----------
    name : str
        Name of an observer or experiment.

    Examples
    --------
    >>> slug("pixels"), slug("openai:a/b"), slug("openai:a-b")
    ('pixels', 'openai-a-b-038887', 'openai-a-b-76c3c3')
    """
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:_LARGEST_NAME]
    if text == name and not _RESERVED.fullmatch(name):
        return text
    return f"{text}-{sha256(name.encode()).hexdigest()[:6]}"


def revision(
    card: JsonMapping, card_digest: str, origins: Sequence[JsonMapping]
) -> str:
    """Name what changes if an observer's numbers change: weights or served model, and card.

    Parameters
    ----------
    card : mapping
        The card of the observer.
    card_digest : str
        Digest of the card.
    origins : sequence of mapping
        What gave the answers.
    """
    served = [origin["served"] for origin in origins if origin["served"]]
    if card.get("weights_digest"):
        head = f"w-{card['weights_digest'][:12]}"
    elif card["name"].startswith("replay:"):
        head = f"r-{card_digest[:12]}"
    elif served:
        names = [
            sorted({entry[key] for entry in served if entry.get(key)})
            for key in ("listed", "model")
        ]
        head = f"s-{digest(names)[:12]}"
    else:
        head = "n"
    return f"{head}-{card_digest[:8]}"


def observer_kind(card: JsonMapping) -> str:
    """Tell by its card what an observer is: model, metric, baseline, simulated or a person."""
    name = card["name"].removeprefix("decided:")
    prefix = name.partition(":")[0]
    if prefix == "person":
        screen = card.get("options", {}).get("screen", {})
        return "person_remote" if screen.get("light") == "remote" else "person"
    if prefix == "simulated":
        return "simulated"
    if prefix == "replay":
        return "replayed"
    if name == "pixels":
        return "baseline"
    return "metric" if card["ability"] == "difference" else "model"


def run_path(run: JsonMapping) -> tuple[str, str, str, str]:
    """Name the folders of a run in a registry by what ``run.json`` holds."""
    observer = run["observer"]
    experiment = run["experiment"]
    started = re.sub(r"[-:]", "", run["when"]["started"].removesuffix("+00:00"))
    return (
        slug(observer["name"]),
        revision(observer["card"], observer["digest"], run["origins"]),
        f"{slug(experiment['name'])}-{experiment['digest'][:8]}",
        f"{started}Z-{run['answers']['sha256'][:8]}",
    )


def without_folders(value: Any) -> Any:
    """Leave of each absolute path in nested JSON the name of its file.

    Examples
    --------
    >>> without_folders({"root": "root /home/ada/models/m3.gguf", "unit": "cd/m²"})
    {'root': 'root m3.gguf', 'unit': 'cd/m²'}
    """
    if isinstance(value, str):
        return value if "://" in value else _FOLDERS.sub("", value)
    if isinstance(value, dict):
        return {name: without_folders(entry) for name, entry in value.items()}
    return [*map(without_folders, value)] if isinstance(value, list) else value


def find_private(text: str) -> str:
    """Return the first private thing in a text, such as a key or a path; "" if none.

    Examples
    --------
    >>> find_private("weights: /home/ada/m3.pt"), find_private("numpy 2.4.6")
    ('/home/', '')
    """
    match = _PRIVATE.search(text)
    return match[0] if match else ""
