"""Prompts in which an observer is asked: sets that come with psyprobe, and a user's sets.

A set is a table of TOML (``prompts.toml`` holds ours; a user's file holds one set, at its top
level)::

    title = "My prompts"
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from psyprobe.errors import InputError, check_known
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import plain
from psyprobe.files.parsing import packaged_toml, parse_toml, read_text

#: A name of a set is one plain word; whatever else stands in a list is a question.
_NAME = re.compile(r"[A-Za-z0-9_.\-]+", re.ASCII)


@dataclass(frozen=True)
class Prompt:
    """One question to an observer, with the words that count as answers.

    Parameters
    ----------
    id : str
        Name of the prompt in results.
    text : str
        The question.
    suffix : str
        How to answer it; empty for none.
    group : str
        What the prompt varies, such as "noun" or "order".
    polarity : {1, -1}
        -1 where "yes" means that nothing is seen.
    yes, no : tuple of str
        Words that count as either answer, whatever their case.
    language : str
        ISO 639-1 code.
    labels : tuple of tuple of str
        Where one of several labels is asked for: each label with its further words. The page has
        them.

    Raises
    ------
    InputError
        If a prompt has no words, or its two answers share a word.

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
    labels: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("id", "text", "suffix", "group", "language"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise InputError(f"{name} of a prompt is {value!r}; give text")
            if name in ("id", "text") and not value.strip():
                raise InputError(f"a prompt has an empty {name}; give some text")
        if self.polarity not in (1, -1) or isinstance(self.polarity, bool):
            raise InputError(
                f"polarity of prompt {self.id!r} is {self.polarity!r}; give 1, or -1 where yes "
                "means nothing"
            )
        for name in ("yes", "no"):
            object.__setattr__(self, name, _words(self.id, name, getattr(self, name)))
        shared = sorted({*map(str.casefold, self.yes)} & {*map(str.casefold, self.no)})
        if shared:
            raise InputError(
                f"prompt {self.id!r} counts {shared[0]!r} as both answers; give each word to one"
            )

    @property
    def full(self) -> str:
        """The prompt's text with its suffix, as the observer reads it."""
        if not self.suffix:
            return self.text
        # Chinese and Japanese punctuation brings its own space.
        space = "" if ord(self.text[-1]) >= 0x2E80 else " "
        return self.text + space + self.suffix

    @property
    def words(self) -> tuple[str, ...]:
        """All words that count as an answer to the prompt."""
        labelled = tuple(word for words in self.labels for word in words)
        return labelled or self.yes + self.no

    def interpret(self, order: int, alternatives: int = 2) -> Interpretation:
        """Return the words for yes and no and the polarity, in one order of the alternatives.

        Parameters
        ----------
        order : int
            Index of the pattern among the images, or of the right answer among words or labels.
        alternatives : int
            With two, "yes" stands for the first; with more, each word of the prompt is an answer
            by itself.

        Examples
        --------
        >>> words = ("horizontal", "rising", "falling")
        >>> four = Prompt("which", "Which?", yes=("vertical",), no=words)
        >>> prompt, polarity = four.interpret(2, alternatives=4)
        >>> prompt.yes, polarity
        (('rising',), 1)
        """
        if self.labels:
            right = self.labels[order]
            wrong = tuple(word for word in self.words if word not in right)
            return Interpretation(replace(self, yes=right, no=wrong), 1)
        if alternatives <= 2:
            return Interpretation(self, self.polarity if order == 0 else -self.polarity)
        others = tuple(word for index, word in enumerate(self.words) if index != order)
        prompt = replace(self, yes=(self.words[order],), no=others)
        return Interpretation(prompt, self.polarity)

    def to_dict(self) -> JsonObject:
        """Return the prompt's fields as text, numbers and lists; labels where there are any."""
        values = dict(plain(asdict(self)))
        if not self.labels:
            del values["labels"]
        return values

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Prompt:
        """Build the prompt that `to_dict` describes; `id` and `text` are required."""
        names = [field.name for field in fields(cls)]
        check_known("field of a prompt", values, names)
        for key in ("id", "text"):
            if key not in values:
                raise InputError(
                    f"a prompt lacks {key!r}; give {{ id = ..., text = ... }}"
                )
        labels = tuple(map(tuple, values.get("labels", ())))
        return cls(**{**values, "labels": labels})


class Interpretation(NamedTuple):
    """How an answer is read."""

    #: The prompt whose words are looked for.
    prompt: Prompt
    #: {1, -1}: -1 where "yes" means that the pattern was not seen.
    polarity: int


#: A set's name, a file's path, a question, a prompt or its fields.
Entry: TypeAlias = str | Path | Prompt | JsonMapping
#: What `load_prompts` takes.
Source: TypeAlias = Entry | Sequence[Entry]


def load_prompts(
    source: Source = "base", *, suffix: str | None = None
) -> tuple[Prompt, ...]:
    """Load the prompts of a set, a file or a list.

    Parameters
    ----------
    source : str, Path, Prompt, mapping, or a sequence of these
        The name of a set (`prompt_sets` lists them), the path of a ``.toml`` file, a prompt or its
        fields. In a list, text that is not one plain word is a question, asked as it stands.
    suffix : str, optional
        Text behind every question, in place of the set's suffix; "" for none.

    Returns
    -------
    tuple of Prompt
        In order, with distinct ids.

    Raises
    ------
    UnknownNameError
        If there is no such set, with the nearest name.
    InputError
        If the file cannot be read, or an entry is no prompt.

    Examples
    --------
    >>> len(load_prompts("hernandez2025"))
    25
    >>> [prompt.id for prompt in load_prompts(["base", "Do you see stripes?"])]
    ['base', 'do_you_see_stripes']
    """
    prompts: list[Prompt] = []
    if isinstance(source, str | Path | Prompt | Mapping):
        prompts = _prompts_of(source, single=True)
    else:
        for entry in source:
            prompts += _prompts_of(entry, single=False)
    if not prompts:
        raise InputError("there is no prompt to ask with; give at least one")
    ids = [prompt.id for prompt in prompts]
    for name in ids:
        if ids.count(name) > 1:
            raise InputError(
                f"two prompts have the id {name!r}; results could not tell them apart: rename one"
            )
    if suffix is not None:
        prompts = [replace(prompt, suffix=suffix) for prompt in prompts]
    return tuple(prompts)


def prompt_sets() -> dict[str, str]:
    """List the sets of prompts that come with psyprobe, with their titles.

    Examples
    --------
    >>> "reversed" in prompt_sets()
    True
    """
    return {name: str(table["title"]) for name, table in _read_catalogue().items()}


def _prompts_of(entry: Any, *, single: bool) -> list[Prompt]:
    """Load the prompts that an entry names or is: a set, a file, a table or a text."""
    if isinstance(entry, Prompt):
        return [entry]
    if isinstance(entry, Mapping):
        return [Prompt.from_dict(entry)]
    if isinstance(entry, Path) or (isinstance(entry, str) and entry.endswith(".toml")):
        with in_file(str(entry)):
            return _read_set(parse_toml(read_text(entry), str(entry)))
    if not isinstance(entry, str):
        raise InputError(
            f"{entry!r} is no prompt; give a set's name, a .toml file, a question or a Prompt"
        )
    if single or _NAME.fullmatch(entry):
        check_known("prompt set", [entry], _read_catalogue())
        return _read_set(_read_catalogue()[entry])
    return [Prompt(id=_make_identifier(entry), text=entry)]


@cache
def _read_catalogue() -> dict[str, JsonObject]:
    """Read the packaged sets of prompts, by name."""
    return packaged_toml("psyprobe.experiment", "prompts.toml")


def _read_set(table: JsonMapping) -> list[Prompt]:
    """Read the prompts of one table of a TOML file, each with the values that all share."""
    own_fields = ("id", "text", "labels")
    common = [field.name for field in fields(Prompt) if field.name not in own_fields]
    keys = ["title", "source", "prompts", *common]
    check_known("key of a set of prompts", table, keys)
    entries = table.get("prompts")
    if not isinstance(entries, list) or not all(
        isinstance(entry, Mapping) for entry in entries
    ):
        raise InputError(
            "a set of prompts lacks 'prompts'; give prompts = [{ id = ..., text = ... }, ...]"
        )
    shared = {name: table[name] for name in common if name in table}
    return [Prompt.from_dict(shared | dict(entry)) for entry in entries]


def _words(prompt: str, name: str, value: Any) -> tuple[str, ...]:
    """Read the words of an answer, a list or one text."""
    words: tuple[Any, ...] = ()
    if isinstance(value, str):
        words = (value,)
    elif isinstance(value, list | tuple):
        words = tuple(value)
    if not words or not all(isinstance(word, str) and word.strip() for word in words):
        raise InputError(
            f"{name} of prompt {prompt!r} is {value!r}; give at least one word"
        )
    return words


def _make_identifier(text: str) -> str:
    """Turn a text into an identifier: lower case, words joined by "_"."""
    return re.sub(r"\W+", "_", text.casefold()).strip("_") or "prompt"
