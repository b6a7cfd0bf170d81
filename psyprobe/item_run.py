"""Ask an observer in words about many items of a benchmark, each once, with every answer kept as it comes.

A judge is asked the same way, with no image: so what it said is kept, cached and counted like any answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from psyprobe._typing import FloatArray
from psyprobe.answer_store import AnswerStore, AskedQuestion
from psyprobe.errors import InputError
from psyprobe.files.progress import progress_bar
from psyprobe.observers.chat.answering import Answer, AnswerObserver, Decoding, Inquiry, ask_all
from psyprobe.store import Store, digest, open_store

#: Answers are written when so many have come, or so many seconds after the last ones were.
_WRITTEN_TOGETHER, _WRITTEN_EVERY = 64, 0.5
#: Greedy, in text.
_PLAIN = Decoding(logprobs=False)


@dataclass(frozen=True)
class ItemQuestion:
    """One question about an item.

    Parameters
    ----------
    name : str
        By what the asker knows it again; unique among those asked together.
    prompt : str
        What is asked.
    shown : tuple of str
        Digests of the images that are shown, in their order; none for a question in words alone.
    images : callable
        Loads them, display drive (H, W, 3), when their turn comes; called only for what is not answered yet.
    system : str
        Instruction that goes before.
    decoding : Decoding
        How the answer is drawn.
    words : tuple of str
        Answers whose first-token probabilities are wanted.
    """

    name: str
    prompt: str
    shown: tuple[str, ...] = ()
    images: Callable[[], tuple[FloatArray, ...]] = tuple
    system: str = ""
    decoding: Decoding = _PLAIN
    words: tuple[str, ...] = ()


def ask_items(
    questions: Sequence[ItemQuestion],
    observer: AnswerObserver,
    *,
    version: str,
    store: str | Path | Store | None = None,
    label: str = "",
    progress: bool | None = None,
) -> dict[str, Answer]:
    """Ask about items what the store does not know yet.

    Parameters
    ----------
    questions : sequence of ItemQuestion
        All that is to be asked; questions alike in all but their name are asked once.
    observer : AnswerObserver
        Who is asked.
    version : str
        Of the way of asking; a change of it asks anew.
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
        The observer does not answer in words or takes fewer images at once, or two questions have one name.
    StoreError
        The store cannot be used.
    """
    _check(questions, observer)
    asked = {question.name: _asked(question, observer, version) for question in questions}
    by_key = {asked[question.name].key: question for question in questions}
    with open_store(store) as opened:
        answers = AnswerStore(opened)
        opened.keep("observer", {observer.card.digest: observer.card.to_dict()})
        missing = answers.missing(by_key)
        answers.add(
            contents=[
                (asked[question.name].prompt, "prompt", _prompt(question))
                for key, question in by_key.items()
                if key in missing
            ]
        )
        todo = [question for key, question in by_key.items() if key in missing]
        # Questions about one image follow each other: servers and models reuse what they made of it.
        todo.sort(key=lambda question: question.shown)
        with progress_bar(len(todo), progress, "question") as bar:
            bar.set_description(label or observer.card.name)
            unwritten: list[tuple[AskedQuestion, Answer]] = []
            since = monotonic()
            try:
                for inquiry, answer in ask_all(observer, _inquiries(todo)):
                    unwritten.append((asked[inquiry.key], answer))
                    bar.update()
                    if len(unwritten) >= _WRITTEN_TOGETHER or monotonic() - since >= _WRITTEN_EVERY:
                        answers.add(unwritten)
                        unwritten, since = [], monotonic()
            finally:
                # Nothing answered is lost, whatever ended the asking.
                answers.add(unwritten)
        found = answers.find({each.key for each in asked.values()})
    return {name: found[each.key] for name, each in asked.items()}


def _inquiries(questions: Sequence[ItemQuestion]) -> Iterator[Inquiry]:
    shown: tuple[str, ...] | None = None
    images: tuple[FloatArray, ...] = ()
    for question in questions:
        if question.shown != shown:
            images, shown = question.images(), question.shown
        yield Inquiry(
            prompt=question.prompt,
            images=images,
            system=question.system,
            decoding=question.decoding,
            words=question.words,
            key=question.name,
        )


def _prompt(question: ItemQuestion) -> dict[str, object]:
    return {"prompt": question.prompt, "system": question.system, "words": list(question.words)}


def _asked(question: ItemQuestion, observer: AnswerObserver, version: str) -> AskedQuestion:
    return AskedQuestion(
        shown=digest(list(question.shown)),
        prompt=digest(_prompt(question)),
        decoding=question.decoding,
        observer=observer.card.digest,
        version=version,
    )


def _check(questions: Sequence[ItemQuestion], observer: AnswerObserver) -> None:
    if observer.card.ability != "answer":
        raise InputError(
            f"{observer.card.name} has the ability {observer.card.ability!r}, and questions need one that answers in "
            "words, such as openai:MODEL"
        )
    names = [question.name for question in questions]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two questions are called {twice!r}; give each a name of its own")
    most = max((len(question.shown) for question in questions), default=0)
    if observer.images_at_once is not None and most > observer.images_at_once:
        raise InputError(
            f"a question shows {most} images, and {observer.card.name} takes {observer.images_at_once} at once; put "
            "them side by side in one file, or take another observer"
        )
