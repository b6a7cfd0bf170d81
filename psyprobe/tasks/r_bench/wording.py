"""What is asked about an image: the wording of each task, as data."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Wording:
    """How the questions of a task are put.

    Attributes
    ----------
    text : str
        With {question} and {options} to be filled in.
    max_tokens : int
        Where an answer is cut off.
    """

    text: str
    max_tokens: int

    def filled(self, question: str, options: Sequence[str] = ()) -> str:
        """The prompt for one item; what stands in braces inside a question is left as it is.

        Examples
        --------
        >>> print(wordings()["MCQ"].filled("What is it?", ("a cat", "a dog")))
        What is it?
        A. a cat
        B. a dog
        Reply with the letter of the right option and nothing else.
        """
        parts = {"{question}": question, "{options}": lettered(options)}
        return re.sub(r"\{(?:question|options)\}", lambda found: parts[found.group()], self.text)


def lettered(options: Sequence[str]) -> str:
    """Options under their letters, one a line."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip("ABCDE", options, strict=False))


@functools.cache
def _page() -> Mapping[str, object]:
    return tomllib.loads(files("psyprobe.tasks.r_bench").joinpath("prompts.toml").read_text(encoding="utf-8"))


def wording_version() -> str:
    """The version of all wordings; another one asks anew."""
    return str(_page()["version"])


@functools.cache
def wordings() -> dict[str, Wording]:
    """The wording of each task.

    Returns
    -------
    dict of str to Wording
        By "MCQ", "VQA" and "CAP".
    """
    found = {}
    for task, row in _page().items():
        if isinstance(row, dict):
            found[task] = Wording(row["text"].strip(), row["max_tokens"])
    return found
