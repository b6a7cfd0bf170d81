"""Present pictures: the pixels that models get, with the question in the same words."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import NamedTuple

from psyprobe.errors import InputError
from psyprobe.files.images import encode_png
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.terminal import printable
from psyprobe.observers.chat.protocol import Inquiry, eight_bit
from psyprobe.observers.people.calibration import check_number, read_number
from psyprobe.observers.people.observer import Attempt
from psyprobe.observers.people.patterns import read_reason, read_word

#: Reasons for which the page gives an attempt up.
VOID = ("hidden", "too early", "paused")
#: Characters of the longest free answer.
_MAX_CHARACTERS = 2000
#: Longest reaction time, ms: a week.
_MAX_REACTION_MS = 6.048e8


class PicturePresenter:
    """Presents the pictures of one question after the other, as long as the person likes."""

    def present(self, inquiry: Inquiry) -> JsonObject:
        """Return question and pictures for the page, as JSON values.

        Pictures are lossless and, as for models, without the colour profiles of their files.
        """
        text, labels = split_options(inquiry.prompt, inquiry.words)
        urls = [
            base64.b64encode(encode_png(eight_bit(image))).decode()
            for image in inquiry.images
        ]
        return {
            "text": printable("\n\n".join(filter(None, (inquiry.system, text)))),
            "words": list(inquiry.words),
            "labels": [printable(label) for label in labels],
            "images": [f"data:image/png;base64,{url}" for url in urls],
            "longest": _MAX_CHARACTERS,
        }

    def read_attempt(self, inquiry: Inquiry, values: JsonMapping) -> Attempt:
        """Check the page's report of an attempt at a question about pictures."""
        reaction_ms = read_number(values, "reaction_ms", 0, _MAX_REACTION_MS)
        record: JsonObject = {"reaction_ms": reaction_ms}
        if values.get("choice") is None:
            record["why"] = read_reason(values, VOID)
            return Attempt(None, record)
        scales = values.get("scales")
        if not isinstance(scales, list) or len(scales) != len(inquiry.images):
            raise InputError(
                f"the page does not say how large {len(inquiry.images)} pictures were; load it "
                "again"
            )
        record["scales"] = [
            check_number(scale, "scale of a picture", 0.001, 1) for scale in scales
        ]
        choice = read_word(values, inquiry) if inquiry.words else _read_text(values)
        return Attempt(choice, record)


class QuestionParts(NamedTuple):
    """A prompt without its options, and the options."""

    #: The whole prompt where it does not list each answer once.
    text: str
    #: What each answer stands for; "" where it stands for itself.
    labels: list[str]


def split_options(prompt: str, words: Sequence[str]) -> QuestionParts:
    r"""Split a prompt from its options, each of which is a line that begins with a letter.

    Parameters
    ----------
    prompt : str
        The prompt, as models get it.
    words : sequence of str
        The possible answers.

    Examples
    --------
    >>> prompt = "What is it?\nA. a dog\nB. a cat\nAnswer with the letter."
    >>> split_options(prompt, ("A", "B"))
    QuestionParts(text='What is it?\nAnswer with the letter.', labels=['a dog', 'a cat'])
    >>> split_options("Is it a dog?", ("yes", "no"))
    QuestionParts(text='Is it a dog?', labels=['', ''])
    """
    lines = prompt.split("\n")
    options = {line: re.match(r"([A-E])\. ?(.*)$", line) for line in lines}
    matches = [match for match in options.values() if match]
    if [match[1] for match in matches] != list(words):
        return QuestionParts(prompt, ["" for _ in words])
    text = "\n".join(line for line in lines if not options[line])
    return QuestionParts(text, [match[2] for match in matches])


def _read_text(values: JsonMapping) -> str:
    """Read a free answer, with white space collapsed."""
    choice = values.get("choice")
    text = " ".join(choice.split()) if isinstance(choice, str) else ""
    if not 1 <= len(text) <= _MAX_CHARACTERS:
        raise InputError(
            f"the answer has {len(text)} characters; write 1 to {_MAX_CHARACTERS:,}"
        )
    return text
