"""The wordings in which an observer is asked: sets that come with psyprobe, and a user's own.

A set is a table of TOML (``prompts.toml`` holds ours; a user's own file holds one set, at its top
level)::

    title = "My wordings"
    suffix = "Answer with yes or no."      # put behind every text; "" for none
    language = "en"
    yes = ["yes"]                          # words that count as either answer
    no = ["no"]
    polarity = 1                           # -1: "yes" means that nothing is seen
    prompts = [
        { id = "texture", group = "noun", text = "Is there a texture visible in the image?" },
        { id = "blank", group = "reversed", text = "Is the image blank?", polarity = -1 },
    ]

Everything but `title`, `source` and `prompts` may stand in a prompt too, where it holds for that
prompt alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.parsing import parse_toml, read_text

#: A name of a set is one plain word; whatever else stands in a list is a question.
_NAME = re.compile(r"[A-Za-z0-9_.\-]+", re.ASCII)


@dataclass(frozen=True)
class Prompt:
    """One wording of the question.

    Parameters
    ----------
    id : str
        By which results know it.
    text : str
        The question.
    suffix : str
        How to answer it; empty for none.
    group : str
        What it varies, such as "noun" or "order".
    polarity : {1, -1}
        -1 where "yes" means that nothing is seen.
    yes, no : tuple of str
        Words that count as either answer, whatever their case.
    language : str
        ISO 639-1 code.

    Raises
    ------
    InputError
        A prompt without words, or one whose two answers share a word.

    Examples
    --------
    >>> Prompt("base", "Is there a pattern?", suffix="Answer with yes or no.").full
    'Is there a pattern? Answer with yes or no.'
    """

    id: str
    text: str
    suffix: str = ""
    group: str = ""
    polarity: int = 1
    yes: tuple[str, ...] = ("yes",)
    no: tuple[str, ...] = ("no",)
    language: str = "en"

    def __post_init__(self) -> None:
        for name in ("id", "text", "suffix", "group", "language"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} of a prompt is {getattr(self, name)!r}; give text")
        for name in ("id", "text"):
            if not getattr(self, name).strip():
                raise InputError(f"a prompt has an empty {name}; give some text")
        if self.polarity not in (1, -1) or isinstance(self.polarity, bool):
            raise InputError(
                f"polarity of prompt {self.id!r} is {self.polarity!r}; give 1, or -1 where yes "
                "means nothing"
            )
        for name in ("yes", "no"):
            object.__setattr__(self, name, _words(self.id, name, getattr(self, name)))
        both = {word.casefold() for word in self.yes} & {word.casefold() for word in self.no}
        if both:
            raise InputError(
                f"prompt {self.id!r} counts {sorted(both)[0]!r} as both answers; give each word "
                "to one"
            )

    @property
    def full(self) -> str:
        """What the observer reads: text and suffix."""
        if not self.suffix:
            return self.text
        # Chinese and Japanese punctuation brings its own space.
        return self.text + ("" if ord(self.text[-1]) >= 0x2E80 else " ") + self.suffix

    @property
    def words(self) -> tuple[str, ...]:
        """All words whose first-token probabilities are wanted."""
        return self.yes + self.no

    def meant(self, order: int, alternatives: int = 2) -> tuple[Prompt, int]:
        """The wording with which an answer is read, and whether its "yes" means that the pattern
        was seen.

        Parameters
        ----------
        order : int
            Place of the pattern among the images, or of the right answer among the words.
        alternatives : int
            With two, "yes" stands for the first; with more, each word of the wording is an answer
            of its own.

        Returns
        -------
        (Prompt, {1, -1})
            A reversed wording asks whether nothing is there.

        Examples
        --------
        >>> four = Prompt("which", "Which?", yes=("vertical",), no=("horizontal", "rising", "falling"))
        >>> wording, polarity = four.meant(2, alternatives=4)
        >>> wording.yes, polarity
        (('rising',), 1)
        """
        if alternatives > 2:
            others = tuple(word for place, word in enumerate(self.words) if place != order)
            return replace(self, yes=(self.words[order],), no=others), self.polarity
        return self, self.polarity if order == 0 else -self.polarity

    def to_dict(self) -> dict[str, Any]:
        """The prompt as text, numbers and lists.

        Returns
        -------
        dict
            One entry a field.
        """
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Prompt:
        """The prompt that `to_dict` describes.

        Parameters
        ----------
        values : mapping
            Fields by name; `id` and `text` at least.

        Returns
        -------
        Prompt
        """
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown_name("field of a prompt", str(key), known)
        for key in ("id", "text"):
            if key not in values:
                raise InputError(f"a prompt lacks {key!r}; give {{ id = ..., text = ... }}")
        return cls(**values)


#: What `load_prompts` takes: a set's name, a file's path, or a list of these, of questions and of
#: prompts.
Source: TypeAlias = (
    str | Path | Prompt | Mapping[str, Any] | Sequence[str | Path | Prompt | Mapping[str, Any]]
)


def load_prompts(source: Source = "base", *, suffix: str | None = None) -> tuple[Prompt, ...]:
    """The prompts of a set, a file or a list.

    Parameters
    ----------
    source : str, Path, Prompt, mapping, or a sequence of these
        The name of a set (`prompt_sets` lists them), the path of a ``.toml`` file, a prompt or its
        fields. In a list, text that is not one plain word is a question, asked as it stands.
    suffix : str, optional
        Put behind every text in place of the set's own suffix; "" for none.

    Returns
    -------
    tuple of Prompt
        In order, of different ids.

    Raises
    ------
    UnknownNameError
        There is no such set, with the nearest name.
    InputError
        The file cannot be read, or a prompt is not one.

    Examples
    --------
    >>> len(load_prompts("hernandez2025"))
    25
    >>> [prompt.id for prompt in load_prompts(["base", "Do you see stripes?"])]
    ['base', 'do_you_see_stripes']
    """
    listed = [source] if isinstance(source, str | Path | Prompt | Mapping) else list(source)
    prompts = [
        prompt
        for item in listed
        for prompt in _prompts_of(item, alone=len(listed) == 1 and listed[0] is source)
    ]
    if not prompts:
        raise InputError("there is no prompt to ask with; give at least one")
    ids = [prompt.id for prompt in prompts]
    for name in ids:
        if ids.count(name) > 1:
            raise InputError(
                f"two prompts have the id {name!r}; results could not tell them apart: rename one"
            )
    return tuple(
        prompts if suffix is None else (replace(prompt, suffix=suffix) for prompt in prompts)
    )


def prompt_sets() -> dict[str, str]:
    """Names of the sets that come with psyprobe, with their titles.

    Examples
    --------
    >>> "reversed" in prompt_sets()
    True
    """
    return {name: str(table["title"]) for name, table in _catalogue().items()}


def _prompts_of(item: Any, *, alone: bool) -> list[Prompt]:
    if isinstance(item, Prompt):
        return [item]
    if isinstance(item, Mapping):
        return [Prompt.from_dict(item)]
    if isinstance(item, Path) or (isinstance(item, str) and item.endswith(".toml")):
        return _read(Path(item))
    if not isinstance(item, str):
        raise InputError(
            f"{item!r} is no prompt; give a set's name, a .toml file, a question or a Prompt"
        )
    if alone or _NAME.fullmatch(item):
        sets = _catalogue()
        if item not in sets:
            raise unknown_name("prompt set", item, sets)
        return _set_of(sets[item])
    return [Prompt(id=_slug(item), text=item)]


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    return tomllib.loads(
        (files("psyprobe.experiment") / "prompts.toml").read_text(encoding="utf-8")
    )


def _read(path: Path) -> list[Prompt]:
    page = parse_toml(read_text(path), str(path))
    try:
        return _set_of(page)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _set_of(table: Mapping[str, Any]) -> list[Prompt]:
    common = [field.name for field in fields(Prompt) if field.name not in ("id", "text")]
    known = ["title", "source", "prompts", *common]
    for key in table:
        if key not in known:
            raise unknown_name("key of a set of prompts", str(key), known)
    listed = table.get("prompts")
    if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
        raise InputError(
            "a set of prompts lacks 'prompts'; give prompts = [{ id = ..., text = ... }, ...]"
        )
    shared = {name: table[name] for name in common if name in table}
    return [Prompt.from_dict(shared | dict(entry)) for entry in listed]


def _words(prompt: str, name: str, words: Any) -> tuple[str, ...]:
    listed = (
        (words,)
        if isinstance(words, str)
        else tuple(words)
        if isinstance(words, list | tuple)
        else ()
    )
    if not listed or not all(isinstance(word, str) and word.strip() for word in listed):
        raise InputError(f"{name} of prompt {prompt!r} is {words!r}; give at least one word")
    return listed


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.casefold()).strip("_") or "prompt"
