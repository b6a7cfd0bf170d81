"""What is asked, and what came back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Question:
    """Everything that makes a question, each part by the digest of its content.

    Two experiments that ask the same question share its answer; a change of any part asks anew.

    Examples
    --------
    >>> asked = Question(shown="a", asked="b", observer="c", version="detection 1")
    >>> asked.key == Question("a", "b", "c", "detection 1").key
    True
    """

    #: What is seen: specifications and display, or files, and how they are delivered.
    shown: str
    #: What is asked: measures, or prompt, system text and decoding.
    asked: str
    #: The card of who is asked.
    observer: str
    #: Of the way of asking, in words.
    version: str

    @cached_property
    def key(self) -> str:
        """The name of the question in a store: 64 hexadecimal digits."""
        return hashlib.sha256("\n".join((self.shown, self.asked, self.observer, self.version)).encode()).hexdigest()


@dataclass(frozen=True)
class Answered:
    """What came back to one question."""

    question: Question
    #: What JSON can hold: {"values": ...} of an encoder, {"text": ...} in words, {"refused": why} where nothing could
    #: be shown.
    answer: Mapping[str, Any]
    #: What digests stand for that only the asking could tell: (digest, kind, what JSON can hold).
    contents: tuple[tuple[str, str, Any], ...] = ()


@dataclass(frozen=True)
class Batch:
    """Questions that are put together, as plain data that another process could take: no pixels, no features.

    `work` holds what a probe needs to put them, made of values that pickle: specifications, display, prompts, paths.
    """

    questions: tuple[Question, ...]
    work: Any
    #: Put all of them or none: an encoder's rounding depends on which images share a batch.
    whole: bool = False
