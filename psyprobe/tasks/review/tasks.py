"""What a person is shown and asked on the page: one thing to decide at a time, with a key for each decision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.images import file_digest
from psyprobe.files.output import digest
from psyprobe.files.terminal import printable


@dataclass(frozen=True)
class Choice:
    """A decision."""

    #: The key of the keyboard that makes it.
    key: str
    #: As it is written down.
    value: str
    #: On its button.
    label: str
    #: Whether the text of the field belongs to it.
    with_text: bool = False


@dataclass(frozen=True)
class Task:
    """One thing to decide."""

    #: Unique among those of a worklist.
    name: str
    #: What kind of thing it is.
    heading: str
    #: Captions and files, in the order in which they are shown.
    images: tuple[tuple[str, Path], ...]
    #: The question; may have several lines.
    text: str
    #: The decisions.
    choices: tuple[Choice, ...]
    #: What to know for the decision, such as the right answer: names and texts.
    facts: tuple[tuple[str, str], ...] = ()
    #: What the text field holds at first; None for no field.
    draft: str | None = None
    #: Whether the field must be unlocked before it can be changed.
    locked: bool = False
    #: That the field may hold.
    most_words: int = 0

    @cached_property
    def content(self) -> str:
        """Digest of all that is shown: a decision about something else is no decision about this."""
        return digest([self.to_dict(), [file_digest(path) for _, path in self.images]])

    def to_dict(self) -> dict[str, Any]:
        """What the page needs, as plain values; control characters are made visible."""
        return {
            "name": self.name,
            "heading": printable(self.heading),
            "images": [printable(caption) for caption, _ in self.images],
            "text": printable(self.text),
            "facts": [[printable(name), printable(text)] for name, text in self.facts],
            "choices": [vars(choice) for choice in self.choices],
            "draft": self.draft,
            "locked": self.locked,
            "most_words": self.most_words,
        }

    def checked(self, value: str, text: str) -> str:
        """The text that belongs to a decision, if the decision can be made.

        Empty where the choice takes none.
        """
        choice = next((each for each in self.choices if each.value == value), None)
        if choice is None:
            raise InputError(f"{value!r} is none of {', '.join(each.value for each in self.choices)}")
        if not choice.with_text:
            return ""
        words = len(text.split())
        if not 1 <= words <= self.most_words:
            raise InputError(f"the text has {words} words; write 1 to {self.most_words}")
        return " ".join(text.split())


def check_tasks(tasks: list[Task]) -> list[Task]:
    """Tasks for one worklist, each of which can be told from the others."""
    if not tasks:
        raise InputError("there is nothing to decide; build the set first, or give another one")
    names = [task.name for task in tasks]
    if len(set(names)) < len(names):
        raise InputError(f"two tasks are called {next(n for n in names if names.count(n) > 1)!r}; give each a name")
    return tasks
