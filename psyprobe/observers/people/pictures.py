"""Pictures as a session shows them: the pixels that models get, with the question in the same
words.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.images import encode_png
from psyprobe.files.terminal import printable
from psyprobe.observers.chat.protocol import Inquiry, eight_bit
from psyprobe.observers.people.calibration import number_of
from psyprobe.observers.people.observer import Attempt
from psyprobe.observers.people.patterns import reason_of, word_of

#: Why the page gives an attempt up.
VOID = ("hidden", "too early", "paused")
#: An answer in one's own words, and ms that somebody may look at a picture: a week.
_LONGEST = 2000
_MOST_MS = 6.048e8


class Pictures:
    """Shows the pictures of one question after the other, each as long as the person likes."""

    def shown(self, inquiry: Inquiry) -> dict[str, Any]:
        """As in `Showing`: the pictures without loss, and of their files no colour profile, as
        models get them.
        """
        text, labels = in_parts(inquiry.prompt, inquiry.words)
        urls = [base64.b64encode(encode_png(eight_bit(image))).decode() for image in inquiry.images]
        return {
            "text": printable("\n\n".join(filter(None, (inquiry.system, text)))),
            "words": list(inquiry.words),
            "labels": [printable(label) for label in labels],
            "images": [f"data:image/png;base64,{url}" for url in urls],
            "longest": _LONGEST,
        }

    def taken(self, inquiry: Inquiry, values: Mapping[str, Any]) -> Attempt:
        """As in `Showing`."""
        told: dict[str, Any] = {"reaction_ms": number_of(values, "reaction_ms", 0, _MOST_MS)}
        if values.get("choice") is None:
            return Attempt(None, {**told, "why": reason_of(values, VOID)})
        scales = values.get("scales")
        if not isinstance(scales, list) or len(scales) != len(inquiry.images):
            raise InputError(
                f"the page does not say how large {len(inquiry.images)} pictures were; load it "
                "again"
            )
        told["scales"] = [
            number_of({"scale of a picture": scale}, "scale of a picture", 0.001, 1)
            for scale in scales
        ]
        return Attempt(word_of(values, inquiry) if inquiry.words else _written(values), told)


def in_parts(prompt: str, words: Sequence[str]) -> tuple[str, list[str]]:
    r"""A prompt without the options that stand in it, each on a line after its letter, and the
    options.

    Parameters
    ----------
    prompt : str
        As models get it.
    words : sequence of str
        The answers among which one is chosen.

    Returns
    -------
    text : str
        The prompt as it is where it does not list each answer once.
    labels : list of str
        What an answer stands for; "" where it stands for itself.

    Examples
    --------
    >>> in_parts("What is it?\nA. a dog\nB. a cat\nAnswer with the letter.", ("A", "B"))
    ('What is it?\nAnswer with the letter.', ['a dog', 'a cat'])
    >>> in_parts("Is it a dog?\nPlease answer yes or no.", ("yes", "no"))
    ('Is it a dog?\nPlease answer yes or no.', ['', ''])
    """
    lines = prompt.split("\n")
    found = {line: option for line in lines if (option := re.match(r"([A-E])\. ?(.*)$", line))}
    if [option[1] for option in found.values()] != list(words):
        return prompt, ["" for _ in words]
    return "\n".join(line for line in lines if line not in found), [
        option[2] for option in found.values()
    ]


def _written(values: Mapping[str, Any]) -> str:
    """An answer in one's own words."""
    text = values.get("choice")
    words = " ".join(text.split()) if isinstance(text, str) else ""
    if not 1 <= len(words) <= _LONGEST:
        raise InputError(f"the answer has {len(words)} characters; write 1 to {_LONGEST:,}")
    return words
