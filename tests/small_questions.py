"""An experiment that asks in words and runs in a moment, and an observer that answers it from the
pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.observers import Card
from psyprobe.observers.chat.protocol import Answer, Decoding, Inquiry, image_digest

STIMULUS = """
title = "Small noise"
kind = "annulus_noise"
[parameters]
frequency = 4.0
contrast = 0.1
luminance = 40.0
ppd = 16
size = 32
"""

EXPERIMENT = """
title = "A small experiment in words"
source = "psyprobe's own tests"
stimulus = "small_noise.toml"
probe = "yes_no"
differences = ["it is small"]
[levels]
frequency = { values = [2, 4] }
contrast = { values = [0.03, 0.08, 0.2] }
[asking]
prompts = ["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]
repeats = { text = 4, p_yes = 2 }
catch = 0.1
seed = 3
[display]
peak = 185.3
"""


def write_questions(
    folder: Path, *changes: tuple[str, str], name: str = "words"
) -> Path:
    """Write both files, each (old, new) text of the experiment replaced, and give the path."""
    text = EXPERIMENT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "small_noise.toml").write_text(STIMULUS, encoding="utf-8")
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


GREEDY = Decoding()


class Seeing:
    """Says yes to a contrast above 0.1, with the log odds of a steep function; keeps what it was
    asked."""

    bits: int | None = 8
    images_at_once: int | None = 2

    def __init__(
        self,
        *,
        logprobs: bool = True,
        mass: float = 0.9,
        input_size: tuple[int, int] | None = None,
        reply: str = "",
        name: str = "seeing",
    ) -> None:
        self.card = Card(
            name,
            "answer",
            input_size=input_size,
            options={"mass": mass, "logprobs": logprobs},
        )
        self.inquiries: list[Inquiry] = []
        self.logprobs, self.mass, self.reply = logprobs, mass, reply

    def delivered(self, image: FloatArray) -> FloatArray:
        return image

    def answer(
        self,
        images: Sequence[FloatArray],
        prompt: str,
        *,
        system: str = "",
        decoding: Decoding = GREEDY,
        words: Sequence[str] = ("yes", "no"),
    ) -> Answer:
        logits = [self._logit(image) for image in images]
        logit = logits[0] if len(logits) == 1 else logits[0] - logits[1]
        if prompt == "Is it uniform?":
            logit = -logit
        text = self.reply or (words[0] if logit > 0 else words[-1]).title()
        tokens = None
        if self.logprobs and decoding.logprobs:
            p = 1 / (1 + math.exp(-logit))
            # Far-off probabilities underflow; a model lists them all the same.
            pairs = [
                (words[0], math.log(self.mass * max(p, 1e-9))),
                (words[-1], math.log(self.mass * max(1 - p, 1e-9))),
            ]
            tokens = tuple(sorted(pairs, key=lambda pair: -pair[1]))
        return Answer(
            text,
            tokens,
            complete=True,
            tokens_in=100,
            tokens_out=decoding.max_tokens,
            latency=0.01,
            cost=1e-4,
        )

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        for inquiry in inquiries:
            self.inquiries.append(inquiry)
            yield (
                inquiry,
                self.answer(
                    inquiry.images,
                    inquiry.prompt,
                    system=inquiry.system,
                    decoding=inquiry.decoding,
                    words=inquiry.words,
                ),
            )

    @staticmethod
    def _logit(image: FloatArray) -> float:
        light = np.asarray(image, np.float64).mean(axis=-1) ** 2.2
        contrast = math.sqrt(2) * float(light.std() / light.mean())
        return 6 * math.log10(max(contrast, 1e-6) / 0.1)


class Backwards(Seeing):
    """The same, but answers come in another order, as from a server with many questions under
    way."""

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        waiting: list[tuple[Inquiry, Answer]] = []
        for pair in super().answers(inquiries):
            waiting.append(pair)
            if len(waiting) == 7:
                yield from reversed(waiting)
                waiting = []
        yield from reversed(waiting)


def without_repeats(questions: Iterable[Any]) -> list[Any]:
    """Drop repeats: a run that uses stored answers asks a few of their questions again."""
    return [*dict.fromkeys(questions)]


def digests(inquiries: Iterable[Inquiry]) -> list[tuple[Any, ...]]:
    """Return images, prompt, system text and decoding of each inquiry, comparable."""
    return [
        (
            *map(image_digest, inquiry.images),
            inquiry.prompt,
            inquiry.system,
            inquiry.decoding,
        )
        for inquiry in inquiries
    ]
