"""Asking about items in words: a benchmark's, the steps of a construction, and a judge about what
rules leave open.

What is asked is plain data, files by path and content and texts, so that another process could ask
it; images are read only when their turn comes.

A judge is a chat model that is asked the same way, with no image: it reads what rules cannot. Who
judges, in which words and how often, is part of a result. Rules come first; what they leave open is
for whoever calls to decide. What a judge said is kept raw like any answer, so that nothing is
judged twice and every verdict can be read again. A reply that is none of the verdicts is counted,
and never taken for one.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from psyprobe.analysis.words.readers import JUDGE
from psyprobe.analysis.words.reply import without_reasoning
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import JUDGE_TOKENS
from psyprobe.files.images import decode_image
from psyprobe.files.output import digest
from psyprobe.files.parsing import read_bytes
from psyprobe.files.terminal import progress_bar
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding, Inquiry, ask_all
from psyprobe.running.loop import Writer, ask_round
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import Answered, Batch, Origin, Question
from psyprobe.running.store import Store, open_store

#: Of the way in which a judge is asked.
JUDGING = "judge 1"
_MARKUP = r"[\s*_`\"'(){}\[\]:=]*"
#: A reply in lower case that is one word or number; a sign, a fraction or a further word makes it
#: none.
_VERDICT = re.compile(
    rf"{_MARKUP}(?:(?:the |my |final )*(?:score|verdict|answer|rating|grade)(?: "
    rf"is)?\b{_MARKUP})?(?P<verdict>[^\W_]+)"
    r"[\s*_`\"'(){}\[\].!]*"
)


@dataclass(frozen=True)
class ItemQuestion:
    """One question about an item."""

    #: By what the asker knows it again; unique among those asked together.
    name: str
    prompt: str
    decoding: Decoding
    #: Path and SHA-256 of each image file, in the order in which they are shown; none for a
    #: question in words alone.
    images: tuple[tuple[str, str], ...] = ()
    #: Instruction that goes before.
    system: str = ""
    #: The answers among which a person chooses; none where they answer in words of their own.
    words: tuple[str, ...] = ()
    #: At which attempt of a person, from 1; 0 of anybody else, who needs no other.
    attempt: int = 0

    @functools.cached_property
    def asked(self) -> dict[str, Any]:
        """All but the images, as JSON can hold it."""
        told = {"prompt": self.prompt, "system": self.system, "decoding": self.decoding.to_dict()}
        return (
            {**told, "words": list(self.words), "attempt": self.attempt} if self.attempt else told
        )

    @functools.cached_property
    def digests(self) -> tuple[str, str]:
        """Of what is shown, and of what is asked."""
        return digest([sha256 for _, sha256 in self.images]), digest(self.asked)


@dataclass(frozen=True)
class ImageQuestions:
    """The images of one batch, and what is asked about them, by the digest that its questions
    carry.
    """

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
    with open_store(store) as opened:
        opened.add_contents([(observer.card.digest, "observer", observer.card.to_dict())])
        observers = {observer.card.digest: observer}
        batches = batches_of(questions, observer, version)
        with Writer(opened) as writer, progress_bar(0, progress, "question") as bar:
            bar.set_description(label or observer.card.name)
            asked = [
                *ask_round(opened, put, observers, Origins(opened, observers), batches, bar, writer)
            ]
        answers = {
            key: Answer.from_dict(answer["reply"])
            for key, answer in zip(asked, opened.iterate_answers(asked), strict=True)
        }
    return {name: answers[key] for name, key in keys.items()}


def check_questions(questions: Sequence[ItemQuestion], observer: AnswerObserver) -> None:
    """Refuse an observer that cannot be asked so, and two questions of one name."""
    if observer.card.ability != "answer":
        raise InputError(
            f"{observer.card.name} has the ability {observer.card.ability!r}, and questions "
            "need one that answers in "
            "words, such as openai:MODEL"
        )
    names = [question.name for question in questions]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two questions are called {twice!r}; give each a name of its own")
    most = max((len(question.images) for question in questions), default=0)
    if observer.images_at_once is not None and most > observer.images_at_once:
        raise InputError(
            f"a question shows {most} images, and {observer.card.name} takes "
            f"{observer.images_at_once} at once; put "
            "them side by side in one file, or take another observer"
        )


def batches_of(
    questions: Sequence[ItemQuestion], observer: AnswerObserver, version: str
) -> list[Batch]:
    """Questions about the same images together: servers and models reuse what they made of them."""
    together: dict[tuple[tuple[str, str], ...], list[ItemQuestion]] = {}
    for question in questions:
        together.setdefault(question.images, []).append(question)
    return [
        Batch(
            tuple(_question(question, observer, version) for question in members),
            ImageQuestions(images, {question.digests[1]: question.asked for question in members}),
            # A person's attempts are all of one session.
            session=observer.card.digest if members[0].attempt else "",
        )
        for images, members in together.items()
    ]


def keys_of(
    questions: Sequence[ItemQuestion], observer: AnswerObserver, version: str
) -> dict[str, str]:
    """The key under which a store keeps the answer to each question, by name."""
    return {question.name: _question(question, observer, version).key for question in questions}


def _question(question: ItemQuestion, observer: AnswerObserver, version: str) -> Question:
    return Question(*question.digests, observer.card.digest, version)


def _put(observer: AnswerObserver, batches: Iterable[Batch]) -> Iterator[Answered]:
    under_way: dict[str, tuple[Question, ImageQuestions]] = {}

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            work: ImageQuestions = batch.work
            images = tuple(
                read_planned(*image).astype(np.float32) / np.float32(255) for image in work.images
            )
            for question in batch.questions:
                asked = work.asked[question.request]
                under_way[question.key] = (question, work)
                decoding = Decoding(**asked["decoding"])
                words = tuple(asked.get("words", ()))
                attempt = asked.get("attempt", 1)
                yield Inquiry(
                    asked["prompt"],
                    images,
                    asked["system"],
                    decoding,
                    words,
                    question.key,
                    attempt=attempt,
                )

    for inquiry, answer in ask_all(observer, inquiries()):
        question, work = under_way.pop(inquiry.key)
        told = (
            (question.request, "request", work.asked[question.request]),
            (question.stimulus, "stimuli", [sha256 for _, sha256 in work.images]),
        )
        yield Answered(question, {"reply": answer.to_dict()}, told, Origin(served=answer.named))


def read_planned(path: str, sha256: str) -> npt.NDArray[np.uint8]:
    """An image file, which must be the one that was planned."""
    raw = read_bytes(path)
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise InputError(f"{path} has changed since the questions were made; run again")
    return decode_image(raw, path)


# -- a judge
# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgePrompt:
    """What a judge is asked, and which replies are verdicts."""

    #: Of the prompt; the digest changes with the text even where nobody changed the version.
    name: str
    version: str
    #: With {question}, {key} and {answer} to be filled in.
    system: str
    text: str
    #: Reply in lower case, and what it stands for; "" stands for none of them.
    verdicts: Mapping[str, float | str]

    def filled(self, case: Case) -> str:
        """The prompt for one case; what stands in braces inside an answer is left as it is."""
        parts = {"{question}": case.question, "{key}": case.key, "{answer}": case.answer}
        return re.sub(r"\{(?:question|key|answer)\}", lambda found: parts[found.group()], self.text)

    def read(self, reply: str) -> float | str | None:
        """The verdict that a reply is, or None: reasoning, a label and markup aside, it must be the
        whole reply.

        Examples
        --------
        >>> prompt = judge_prompts()["rbench_short"]
        >>> [prompt.read(text) for text in ("2", "Score: 1.", "<think>0?</think>2", "0.5", "1 or 2")]
        [1.0, 0.5, 1.0, None, None]
        """
        said = _VERDICT.fullmatch(without_reasoning(reply))
        return self.verdicts.get(said["verdict"]) if said else None

    def verdicts_of(self, replies: Sequence[tuple[str, str]]) -> Verdicts:
        """What several replies about one case come to, each with why it ended; one that was cut off
        is no verdict.

        Examples
        --------
        >>> judge_prompts()["rbench_short"].verdicts_of([("2", "stop"), ("1", "length"), ("Hm", "stop")])
        Verdicts(read=(1.0,), unread=('1', 'Hm'), cut=1)
        """
        read = [(None if end == "length" else self.read(reply), reply) for reply, end in replies]
        return Verdicts(
            read=tuple(verdict for verdict, _ in read if verdict is not None),
            unread=tuple(reply for verdict, reply in read if verdict is None),
            cut=sum(end == "length" for _, end in replies),
        )


@functools.cache
def judge_prompts() -> dict[str, JudgePrompt]:
    """The prompts that come with psyprobe, by name.

    Examples
    --------
    >>> sorted(judge_prompts())
    ['choice_letter', 'rbench_caption', 'rbench_choice', 'rbench_short', 'yes_no']
    """
    page = tomllib.loads(files("psyprobe.tasks").joinpath("judge.toml").read_text(encoding="utf-8"))
    return {
        name: JudgePrompt(name, row["version"], row["system"], row["text"].strip(), row["verdicts"])
        for name, row in page.items()
    }


@dataclass(frozen=True)
class Judge:
    """Who judges, and how."""

    #: Any that answers in words: `load_observer("openai:MODEL")`.
    observer: AnswerObserver
    #: How often each case is put; with temperature 0 once is enough.
    repeats: int = 1
    #: Of the sampling, 0 to 2; each repeat has a seed of its own.
    temperature: float = 0.0
    #: Where a reply is cut off, reasoning included.
    max_tokens: int = JUDGE_TOKENS

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError(f"a judge is asked {self.repeats} times; give at least 1")
        if self.repeats > 1 and self.temperature == 0:
            raise InputError(
                f"{self.repeats} repeats at temperature 0 are one and the same answer; give a "
                "temperature or 1 repeat"
            )

    def decoding(self, repeat: int) -> Decoding:
        """How the reply of one repeat is drawn."""
        seed = repeat if self.temperature else None
        return Decoding(self.temperature, self.max_tokens, logprobs=False, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """Everything one must know to judge again, as JSON can hold it."""
        prompts = {
            name: f"{each.version} ({digest([each.system, each.text, dict(each.verdicts)])[:12]})"
            for name, each in judge_prompts().items()
        }
        return {**vars(self), "observer": self.observer.card.to_dict(), "prompts": prompts}


@dataclass(frozen=True)
class Case:
    """One answer to be judged."""

    #: Unique among the cases judged together.
    name: str
    #: Name of the judge's prompt.
    prompt: str
    #: What was asked, what is right, and what was answered.
    question: str
    key: str
    answer: str
    #: Put once, however often the judge is asked about others.
    once: bool = False


@dataclass(frozen=True)
class Verdicts:
    """What a judge made of one case."""

    #: One for each reply that was a verdict.
    read: tuple[float | str, ...]
    #: The replies that were none, word for word.
    unread: tuple[str, ...]
    #: How many of these were cut off before they ended.
    cut: int = 0

    @property
    def failed(self) -> bool:
        """Whether no reply was a verdict."""
        return not self.read

    @property
    def mean(self) -> float:
        """Mean of numeric verdicts, from 0 to 1."""
        if self.failed:
            remedy = "give the judge more tokens" if self.cut else "judge again"
            how = " and was cut off" if self.cut else ""
            raise InputError(
                f"the judge gave no verdict but {self.unread[0]!r}{how}; {remedy}, or leave the "
                "item out"
            )
        return sum(float(each) for each in self.read) / len(self.read)

    @property
    def majority(self) -> float | str | None:
        """The verdict of more than half of the replies, those that were none counted; None where
        there is none.
        """
        if self.failed:
            return None
        verdict, count = Counter(self.read).most_common(1)[0]
        return verdict if 2 * count > len(self.read) + len(self.unread) else None


def judge_cases(
    cases: Sequence[Case],
    judge: Judge,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> dict[str, Verdicts]:
    """Put cases to a judge outside of any experiment; what the store holds is not asked again.

    Parameters
    ----------
    cases : sequence of Case
        What rules left open.
    judge : Judge
        Who judges, and how.
    store, progress
        As for `ask_items`.

    Returns
    -------
    dict of str to Verdicts
        By name of the case.

    Raises
    ------
    UnknownNameError
        There is no such prompt.
    PsyprobeError
        The judge cannot be reached: never is something else put in its place.
    """
    questions = {case.name: judge_questions(case, judge) for case in cases}
    asked = [question for each in questions.values() for question in each]
    label = f"judge {judge.observer.card.name}"
    answers = ask_items(
        asked, judge.observer, version=JUDGING, store=store, label=label, progress=progress
    )
    return {
        case.name: judge_prompts()[case.prompt].verdicts_of(
            [
                (found.text, found.finish)
                for found in (answers[each.name] for each in questions[case.name])
            ]
        )
        for case in cases
    }


def judge_questions(case: Case, judge: Judge) -> list[ItemQuestion]:
    """One question for each time that a case is put."""
    prompts = judge_prompts()
    if case.prompt not in prompts:
        raise unknown_name("prompt for a judge", case.prompt, prompts)
    prompt = prompts[case.prompt]
    return [
        ItemQuestion(
            f"{case.name}\n{repeat}",
            prompt.filled(case),
            judge.decoding(repeat),
            system=prompt.system,
        )
        for repeat in range(1 if case.once else judge.repeats)
    ]


def judge_of(experiment: Experiment) -> Judge | None:
    """The judge that a page names, or None."""
    named = experiment.judge
    if named is None:
        return None
    judging = cast(AnswerObserver, load_observer(named.observer, **named.options))
    return Judge(judging, named.repeats, named.temperature, named.max_tokens)


def reader_of(judge: Judge) -> dict[str, str]:
    """Attributes of a variable of a result that holds what a judge makes of its replies."""
    name = judge.observer.card.name
    return {
        "units": "1",
        "long_name": f"the replies as {name} reads them",
        "reader": f"{JUDGE} {name}",
    }


def count_verdicts(found: Iterable[Verdicts]) -> dict[str, int]:
    """Of cases: how many there are, how many have no verdict at all, and how many replies were none
    or were cut off.
    """
    found = list(found)
    return {
        "cases": len(found),
        "without_verdict": sum(each.failed for each in found),
        "unread_replies": sum(len(each.unread) for each in found),
        "cut_replies": sum(each.cut for each in found),
    }


def read_verdicts(text: str) -> dict[str, Verdicts]:
    """Verdicts by case, read by today's rules from the JSON of cases: name, prompt, and replies
    with their ends.
    """
    prompts = judge_prompts()
    return {
        name: prompts[prompt].verdicts_of(replies) for name, prompt, replies in json.loads(text)
    }
