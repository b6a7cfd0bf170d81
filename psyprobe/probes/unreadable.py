"""Stop asking an observer of whose first replies none can be read: the others cost as much."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal, TypeAlias

from psyprobe.errors import PsyprobeError
from psyprobe.files.terminal import printable_line
from psyprobe.observers.chat.protocol import REFUSED, Answer
from psyprobe.observers.protocol import Observer, SeatedObserver, SubmittingObserver

#: Replies after which an observer is given up. If one of ten can be read, 4 % of observers have so
#: many in a row that cannot; if one of five can, 0.1 %.
_ENOUGH = 30
_TOOL_CALLS = ("tool_calls", "function_call")
#: Words of which an English sentence has one, and few sentences of other languages.
_ENGLISH = re.compile(
    r"\b(?:the|this|that|and|of|there|it|with|you|not|is|are|can|see|appears)\b",
    re.IGNORECASE,
)
#: Words for yes and no that are replies by themselves.
_FOREIGN = re.compile(
    r"\W*(?:ja|nein|nee|nej|oui|non|s[ií]|sim|n[aã]o|tak|nie|evet|hay[ıi]r)\b",
    re.IGNORECASE,
)

Cause: TypeAlias = Literal[
    "cut off", "tool call", "empty", "language", "words", "refused"
]
#: What is said of the replies of each cause, and what to do.
_SENTENCES: dict[Cause, tuple[str, str]] = {
    "cut off": (
        "cut off",
        "set max_tokens to more, or let the server give more; a model that thinks takes the "
        "observer option thinking=TOKENS",
    ),
    "tool call": ("tool calls", "let the server offer the model no tools"),
    "empty": ("empty", "see what psyprobe ask gets of this server"),
    "language": (
        "in another language than English",
        "ask for English, or give the prompt its words as yes and no",
    ),
    "words": ("without any answer", "see that the prompts suit the probe"),
    "refused": ("refused by the server", "see what its filter or its limits forbid"),
}


class ReplyWatch:
    """The first replies of an observer, until one can be read.

    Parameters
    ----------
    observer : observer
        A person is never given up, and neither is what was asked in files and is paid for already.

    Attributes
    ----------
    is_over : bool
        Whether no further reply counts.

    Examples
    --------
    >>> from psyprobe.observers import load_observer
    >>> watch = ReplyWatch(load_observer("simulated:flat"))
    >>> for _ in range(30):
    ...     watch.add(Answer("The image", finish="length"), is_readable=False)
    Traceback (most recent call last):
    psyprobe.errors.PsyprobeError: simulated:flat: none of its first 30 replies can be read, and 30
    of them are cut off (finish reason 'length', such as 'The image'); set max_tokens to more, ...
    """

    def __init__(self, observer: Observer) -> None:
        self._name = observer.card.name
        self._replies: list[Answer] = []
        self.is_over = isinstance(observer, SeatedObserver | SubmittingObserver)

    def add(self, reply: Answer, is_readable: bool) -> None:
        """Count a reply, and raise an error once too many of the first are unreadable.

        Raises
        ------
        PsyprobeError
            There are enough replies, and none can be read.
        """
        self.is_over |= is_readable and reply.finish != REFUSED
        if self.is_over:
            return
        self._replies.append(reply)
        if len(self._replies) < _ENOUGH:
            return
        causes = Counter(map(_cause, self._replies))
        ((cause, count),) = causes.most_common(1)
        example = next(reply for reply in self._replies if _cause(reply) == cause)
        text, remedy = _SENTENCES[cause]
        quotation = ""
        words = (example.text or example.refusal).strip()
        if words:
            quotation = f", such as {printable_line(words[:40])!r}"
        raise PsyprobeError(
            f"{self._name}: none of its first {_ENOUGH} replies can be read, and {count} of "
            f"them are {text} (finish reason {example.finish[:40]!r}{quotation}); {remedy}"
        )


def _cause(reply: Answer) -> Cause:
    """Describe why a reply cannot be read."""
    if reply.finish == REFUSED:
        return "refused"
    if reply.finish in _TOOL_CALLS:
        return "tool call"
    if reply.finish == "length":
        return "cut off"
    text = reply.text.strip()
    if not text:
        return "empty"
    is_sentence = len(text.split()) > 2 or not text.isascii()
    is_foreign = is_sentence and not _ENGLISH.search(text)
    return "language" if is_foreign or _FOREIGN.match(text) else "words"
