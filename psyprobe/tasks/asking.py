"""Asking about items in words: a benchmark's, a judge's cases, the steps of a construction.

What is asked is plain data, files by path and content and texts, so that another process could ask it; images are read
only when their turn comes. A judge is asked the same way, with no image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError
from psyprobe.files.images import decode_image
from psyprobe.files.output import digest
from psyprobe.files.terminal import progress_bar
from psyprobe.observers.chat.answering import Answer, AnswerObserver, Decoding, Inquiry, ask_all
from psyprobe.running.loop import ask_round
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import Store, open_store


@dataclass(frozen=True)
class ItemQuestion:
    """One question about an item."""

    #: By what the asker knows it again; unique among those asked together.
    name: str
    prompt: str
    decoding: Decoding
    #: Path and SHA-256 of each image file, in the order in which they are shown; none for a question in words alone.
    images: tuple[tuple[str, str], ...] = ()
    #: Instruction that goes before.
    system: str = ""

    @cached_property
    def asked(self) -> dict[str, Any]:
        """All but the images, as JSON can hold it."""
        return {"prompt": self.prompt, "system": self.system, "decoding": dict(vars(self.decoding))}

    @cached_property
    def digests(self) -> tuple[str, str]:
        """Of what is shown, and of what is asked."""
        return digest([sha256 for _, sha256 in self.images]), digest(self.asked)


@dataclass(frozen=True)
class Work:
    """The images of a batch, and what is asked about them by the digest that its questions carry."""

    images: tuple[tuple[str, str], ...]
    asked: Mapping[str, Mapping[str, Any]]


def put(observers: Mapping[str, AnswerObserver], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Put questions about items; an answer holds "reply", as `Answer.to_dict` gives it.

    Raises
    ------
    InputError
        An image is not what it was when the questions were made.
    """
    for name, together in groupby(batches, key=lambda batch: batch.questions[0].observer):
        yield from _put(observers[name], together)


def ask_items(
    questions: Sequence[ItemQuestion],
    observer: AnswerObserver,
    *,
    version: str,
    store: str | Path | Store | None = None,
    label: str = "",
    progress: bool | None = None,
) -> dict[str, Answer]:
    """Ask what a store does not know yet, outside of any experiment.

    Parameters
    ----------
    questions : sequence of ItemQuestion
        All that is to be asked; questions alike in all but their name are asked once.
    observer : AnswerObserver
        Who is asked.
    version : str
        Of the way of asking.
    store : str, Path or Store, optional
        The file that keeps answers. Without it nothing is kept.
    label : str
        What stands before the progress bar.
    progress : bool, optional
        Whether to show one; by default on a terminal and in a notebook.

    Returns
    -------
    dict of str to Answer
        By name.

    Raises
    ------
    InputError
        As `check_questions`.
    """
    check_questions(questions, observer)
    keys = keys_of(questions, observer, version)
    with open_store(store) as opened, progress_bar(0, progress, "question") as bar:
        bar.set_description(label or observer.card.name)
        opened.keep([(observer.card.digest, "observer", observer.card.to_dict())])
        batches = batches_of(questions, observer, version)
        found = ask_round(opened, put, {observer.card.digest: observer}, batches, bar)
    answers = {key: Answer.from_dict(answer["reply"]) for key, answer in found.items()}
    return {name: answers[key] for name, key in keys.items()}


def check_questions(questions: Sequence[ItemQuestion], observer: AnswerObserver) -> None:
    """Refuse an observer that cannot be asked so, and two questions of one name."""
    if observer.card.ability != "answer":
        raise InputError(
            f"{observer.card.name} has the ability {observer.card.ability!r}, and questions need one that answers in "
            "words, such as openai:MODEL"
        )
    names = [question.name for question in questions]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two questions are called {twice!r}; give each a name of its own")
    most = max((len(question.images) for question in questions), default=0)
    if observer.images_at_once is not None and most > observer.images_at_once:
        raise InputError(
            f"a question shows {most} images, and {observer.card.name} takes {observer.images_at_once} at once; put "
            "them side by side in one file, or take another observer"
        )


def batches_of(questions: Sequence[ItemQuestion], observer: AnswerObserver, version: str) -> list[Batch]:
    """Questions about the same images together: servers and models reuse what they made of them."""
    together: dict[tuple[tuple[str, str], ...], list[ItemQuestion]] = {}
    for question in questions:
        together.setdefault(question.images, []).append(question)
    return [
        Batch(
            tuple(_question(question, observer, version) for question in members),
            Work(images, {question.digests[1]: question.asked for question in members}),
        )
        for images, members in together.items()
    ]


def keys_of(questions: Sequence[ItemQuestion], observer: AnswerObserver, version: str) -> dict[str, str]:
    """The key under which a store keeps the answer to each question, by name."""
    return {question.name: _question(question, observer, version).key for question in questions}


def _question(question: ItemQuestion, observer: AnswerObserver, version: str) -> Question:
    return Question(*question.digests, observer.card.digest, version)


def _put(observer: AnswerObserver, batches: Iterable[Batch]) -> Iterator[Answered]:
    under_way: dict[str, tuple[Question, Work]] = {}

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            work: Work = batch.work
            images = tuple(read_planned(*image).astype(np.float32) / np.float32(255) for image in work.images)
            for question in batch.questions:
                asked = work.asked[question.asked]
                under_way[question.key] = (question, work)
                yield Inquiry(
                    prompt=asked["prompt"],
                    images=images,
                    system=asked["system"],
                    decoding=Decoding(**asked["decoding"]),
                    words=(),
                    key=question.key,
                )

    for inquiry, answer in ask_all(observer, inquiries()):
        question, work = under_way.pop(inquiry.key)
        told = (
            (question.asked, "asked", work.asked[question.asked]),
            (question.shown, "shown", [sha256 for _, sha256 in work.images]),
        )
        yield Answered(question, {"reply": answer.to_dict()}, told)


def read_planned(path: str, sha256: str) -> npt.NDArray[np.uint8]:
    """An image file, which must be the one that was planned."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise InputError(f"{path} has changed since the questions were made; run again")
    return decode_image(raw, path)
