"""Ask about items in words: those of a benchmark, of a construction, and cases for a judge.

Questions are plain data, files by path and content and texts, so that another process could ask
them; images are read only when they are needed.

A judge is a chat model that reads the replies that rules cannot read. Its card, prompts and repeats
are part of a result. Its replies are stored word for word like any answer, so that nothing is
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
from itertools import groupby
from pathlib import Path
from typing import cast

import numpy as np

from psyprobe._typing import ByteArray
from psyprobe.analysis.words.readers import JUDGE
from psyprobe.analysis.words.reply_text import without_reasoning
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import JUDGE_TOKENS
from psyprobe.files.images import decode_image
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.files.parsing import read_bytes
from psyprobe.files.terminal import progress_bar, settings
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import (
    Answer,
    AnswerObserver,
    Decoding,
    Inquiry,
    ask_all,
)
from psyprobe.running.loop import Writer, ask_round
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import Answered, Batch, Origin, Question
from psyprobe.running.store import Store, open_store

#: Version of the procedure by which a judge is asked.
JUDGING = "judge 1"
_MARKUP = r"[\s*_`\"'(){}\[\]:=]*"
#: A reply in lower case that is a single word or number, without sign or fraction.
_VERDICT = re.compile(
    rf"{_MARKUP}(?:(?:the |my |final )*(?:score|verdict|answer|rating|grade)(?: "
    rf"is)?\b{_MARKUP})?(?P<verdict>[^\W_]+)"
    r"[\s*_`\"'(){}\[\].!]*"
)


@dataclass(frozen=True)
class ItemQuestion:
    """One question about an item."""

    #: Name by which the caller finds the answer; unique among questions asked together.
    name: str
    prompt: str
    decoding: Decoding
    #: Path and SHA-256 of each image file, in the order of display; none for a question in words
    #: alone.
    images: tuple[tuple[str, str], ...] = ()
    #: System text of the prompt.
    system: str = ""
    #: The answers among which a person chooses; none for a free answer.
    words: tuple[str, ...] = ()
    #: A person's attempt at the question, from 1; 0 for any other observer.
    attempt: int = 0

    @functools.cached_property
    def request(self) -> JsonObject:
        """The question but for its images, as JSON values."""
        request: JsonObject = {
            "prompt": self.prompt,
            "system": self.system,
            "decoding": self.decoding.to_dict(),
        }
        if self.attempt:
            request |= {"words": list(self.words), "attempt": self.attempt}
        return request

    @functools.cached_property
    def image_digest(self) -> str:
        """The digest of the question's images."""
        return digest([sha256 for _, sha256 in self.images])

    @functools.cached_property
    def request_digest(self) -> str:
        """The digest of the question but for its images."""
        return digest(self.request)


@dataclass(frozen=True)
class ImageQuestions:
    """The images of a batch, and the requests about them."""

    images: tuple[tuple[str, str], ...]
    #: Prompt, system text and decoding of each question, by the digest of the request.
    requests: Mapping[str, JsonMapping]


def answer_items(
    observers: Mapping[str, AnswerObserver], batches: Iterable[Batch]
) -> Iterator[Answered]:
    """Ask observers batches of questions about images, and iterate over the answers.

    Raises
    ------
    InputError
        An image has changed since the questions were made.
    """
    for name, observer_batches in groupby(
        batches, key=lambda batch: batch.questions[0].observer
    ):
        yield from _ask_batches(observers[name], observer_batches)


def ask_items(
    questions: Sequence[ItemQuestion],
    observer: AnswerObserver,
    *,
    version: str,
    store: str | Path | Store | None = None,
    label: str = "",
    progress: bool | None = None,
) -> dict[str, Answer]:
    """Ask questions about images outside of an experiment, and return answers by name.

    Parameters
    ----------
    questions : sequence of ItemQuestion
        The questions; those alike in all but their name are asked once.
    observer : AnswerObserver
        The observer to ask.
    version : str
        Version of the procedure of asking.
    store : str, Path or Store, optional
        The store that holds answers, and is not asked for again. Without it nothing is stored.
    label : str
        Text before the progress bar.
    progress : bool, optional
        Whether to show a bar; by default on a terminal and in a notebook.

    Raises
    ------
    InputError
        The observer cannot answer the questions, or two of them have one name.
    """
    check_questions(questions, observer)
    keys = keys_of(questions, observer, version)
    with open_store(store) as opened:
        opened.add_contents(
            [(observer.card.digest, "observer", observer.card.to_dict())]
        )
        observers = {observer.card.digest: observer}
        batches = batches_of(questions, observer, version)
        origins = Origins(opened, observers, answer_items)
        with Writer(opened) as writer, progress_bar(0, progress, "question") as bar:
            bar.set_description(label or observer.card.name)
            ask_round(opened, answer_items, observers, origins, batches, bar, writer)
        # One object for questions that are alike.
        answers = {
            key: Answer.from_dict(answer["reply"])
            for key, answer in opened.require_answers([*keys.values()]).items()
        }
    return {name: answers[key] for name, key in keys.items()}


def check_questions(
    questions: Sequence[ItemQuestion], observer: AnswerObserver
) -> None:
    """Refuse questions that the observer cannot answer, and two of one name."""
    card = observer.card
    if card.ability != "answer":
        raise InputError(
            f"{card.name} has the ability {card.ability!r}, and questions need one that answers "
            "in words, such as openai:MODEL"
        )
    names = Counter(question.name for question in questions)
    for name, count in names.most_common(1):
        if count > 1:
            raise InputError(
                f"two questions are called {name!r}; give each a name of its own"
            )
    image_count = max((len(question.images) for question in questions), default=0)
    if observer.images_at_once is not None and image_count > observer.images_at_once:
        raise InputError(
            f"a question shows {image_count} images, and {card.name} takes "
            f"{observer.images_at_once} at once; put them side by side in one file, or take "
            "another observer"
        )


def batches_of(
    questions: Sequence[ItemQuestion], observer: AnswerObserver, version: str
) -> list[Batch]:
    """Group questions by their images, which are then read once."""
    groups: dict[tuple[tuple[str, str], ...], list[ItemQuestion]] = {}
    for question in questions:
        groups.setdefault(question.images, []).append(question)
    return [
        Batch(
            tuple(_build_question(question, observer, version) for question in group),
            ImageQuestions(
                images,
                {question.request_digest: question.request for question in group},
            ),
            # A person's attempts are all of one session.
            session=observer.card.digest if group[0].attempt else "",
        )
        for images, group in groups.items()
    ]


def keys_of(
    questions: Sequence[ItemQuestion], observer: AnswerObserver, version: str
) -> dict[str, str]:
    """Compute the key of each question's answer in a store, by the question's name."""
    return {
        question.name: _build_question(question, observer, version).key
        for question in questions
    }


def _build_question(
    question: ItemQuestion, observer: AnswerObserver, version: str
) -> Question:
    """Build the question to store: image, request, observer and version, as digests."""
    return Question(
        question.image_digest, question.request_digest, observer.card.digest, version
    )


def _ask_batches(
    observer: AnswerObserver, batches: Iterable[Batch]
) -> Iterator[Answered]:
    """Ask an observer the questions of batches, and iterate over the answers to store."""
    pending: dict[str, tuple[Question, ImageQuestions]] = {}

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            work: ImageQuestions = batch.work
            images = tuple(
                read_planned(*image).astype(np.float32) / np.float32(255)
                for image in work.images
            )
            for question in batch.questions:
                request = work.requests[question.request]
                pending[question.key] = (question, work)
                yield Inquiry(
                    request["prompt"],
                    images,
                    request["system"],
                    Decoding(**request["decoding"]),
                    tuple(request.get("words", ())),
                    question.key,
                    attempt=request.get("attempt", 1),
                )

    for inquiry, answer in ask_all(observer, inquiries()):
        question, work = pending.pop(inquiry.key)
        contents = (
            (question.request, "request", work.requests[question.request]),
            (question.stimulus, "stimuli", [sha256 for _, sha256 in work.images]),
        )
        yield Answered(
            question, {"reply": answer.to_dict()}, contents, Origin(served=answer.named)
        )


def read_planned(path: str, sha256: str) -> ByteArray:
    """Read an image file, refusing one whose content has changed since the plan."""
    raw = read_bytes(path)
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise InputError(f"{path} has changed since the questions were made; run again")
    return decode_image(raw, path)


@dataclass(frozen=True)
class JudgePrompt:
    """The prompt of a judge, and which replies are verdicts."""

    #: Name and version of the prompt; its digest changes with the text even in the same version.
    name: str
    version: str
    system: str
    #: Prompt with the fields {question}, {key} and {answer}.
    text: str
    #: Verdicts by the reply in lower case.
    verdicts: Mapping[str, float | str]

    def fill(self, case: Case) -> str:
        """Fill in the judge's prompt with a case's question, answer and key."""
        field_pattern = r"\{(question|key|answer)\}"
        return re.sub(field_pattern, lambda match: getattr(case, match[1]), self.text)

    def read(self, reply: str) -> float | str | None:
        """Read a judge's reply as a verdict; None unless the verdict is the whole reply.

        Examples
        --------
        >>> prompt = JudgePrompt("grade", "1", "", "{answer}?", {"2": 1.0, "1": 0.5})
        >>> replies = ("2", "Score: 1.", "<think>1?</think>2", "0.5", "1 or 2")
        >>> [prompt.read(text) for text in replies]
        [1.0, 0.5, 1.0, None, None]
        """
        match = _VERDICT.fullmatch(without_reasoning(reply).casefold())
        return self.verdicts.get(match["verdict"]) if match else None

    def verdicts_of(self, replies: Sequence[tuple[str, str]]) -> Verdicts:
        """Read a judge's replies about one case as verdicts; a cut-off one is none.

        Examples
        --------
        >>> replies = [("Yes", "stop"), ("No", "length"), ("Hm", "stop")]
        >>> judge_prompts()["yes_no"].verdicts_of(replies)
        Verdicts(values=('yes',), unread=('No', 'Hm'), cut=1)
        """
        values = []
        unread = []
        for reply, stop_reason in replies:
            verdict = None if stop_reason == "length" else self.read(reply)
            if verdict is None:
                unread.append(reply)
            else:
                values.append(verdict)
        cut = sum(stop_reason == "length" for _, stop_reason in replies)
        return Verdicts(tuple(values), tuple(unread), cut)


@functools.cache
def judge_prompts() -> dict[str, JudgePrompt]:
    """Read the judge's prompts that come with psyprobe, by name.

    Examples
    --------
    >>> judge_prompts()["yes_no"].verdicts
    {'yes': 'yes', 'no': 'no', 'unknown': ''}
    """
    # Benchmarks have prompts of their own in their rooms.
    paths = sorted(Path(__file__).parent.rglob("judge.toml"), reverse=True)
    pages = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    return {
        name: JudgePrompt(name, **{**row, "text": row["text"].strip()})
        for page in pages
        for name, row in page.items()
    }


@dataclass(frozen=True)
class Judge:
    """A judge: an observer, and how it is asked."""

    #: An observer that answers in words: `load_observer("openai:MODEL")`.
    observer: AnswerObserver
    #: How often each case is put; with temperature 0 once is enough.
    repeats: int = 1
    #: Temperature of the sampling, 0 to 2; each repeat has another seed.
    temperature: float = 0.0
    #: Tokens after which a reply is cut off, reasoning included.
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
        """Return the decoding settings of a repeat, with its seed."""
        seed = repeat if self.temperature else None
        return Decoding(self.temperature, self.max_tokens, logprobs=False, seed=seed)

    def to_dict(self) -> JsonObject:
        """Return all that is needed to judge again, as JSON values."""
        versions = {}
        for name, prompt in judge_prompts().items():
            contents = [prompt.system, prompt.text, dict(prompt.verdicts)]
            versions[name] = f"{prompt.version} ({digest(contents)[:12]})"
        return {
            **vars(self),
            "observer": self.observer.card.to_dict(),
            "prompts": versions,
        }


@dataclass(frozen=True)
class Case:
    """One answer to be judged."""

    #: Name of the case, unique among those judged together.
    name: str
    #: Name of the judge's prompt.
    prompt: str
    #: The question, the right answer, and the answer to judge.
    question: str
    key: str
    answer: str
    #: Put only once, however many repeats the judge has.
    single_repeat: bool = False


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of a judge on one case."""

    #: Verdicts, without the replies that were none.
    values: tuple[float | str, ...]
    #: Replies that were no verdict, word for word.
    unread: tuple[str, ...]
    #: How many of these were cut off before they ended.
    cut: int = 0

    @property
    def failed(self) -> bool:
        """Tell whether none of the judge's replies was a verdict."""
        return not self.values

    @property
    def mean(self) -> float:
        """The mean of the judge's numeric verdicts, from 0 to 1; NaN without any."""
        return sum(map(float, self.values)) / (len(self.values) or float("nan"))

    @property
    def majority(self) -> float | str | None:
        """The verdict of more than half of the judge's replies; None without one."""
        if self.failed:
            return None
        verdict, count = Counter(self.values).most_common(1)[0]
        return verdict if 2 * count > len(self.values) + len(self.unread) else None


def judge_cases(
    cases: Sequence[Case],
    judge: Judge,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> dict[str, Verdicts]:
    """Ask a judge about cases outside of an experiment, and return verdicts by name.

    Parameters
    ----------
    cases : sequence of Case
        The cases that rules left open.
    judge : Judge
        The judge.
    store, progress
        As for `ask_items`.

    Raises
    ------
    UnknownNameError
        There is no such prompt.
    PsyprobeError
        The judge cannot be reached: nothing is ever put in its place.
    """
    questions = {case.name: judge_questions(case, judge) for case in cases}
    answers = ask_items(
        [question for repeats in questions.values() for question in repeats],
        judge.observer,
        version=JUDGING,
        store=store,
        label=f"judge {judge.observer.card.name}",
        progress=progress,
    )
    verdicts = {}
    for case in cases:
        replies = [answers[question.name] for question in questions[case.name]]
        texts = [(reply.text, reply.finish) for reply in replies]
        verdicts[case.name] = judge_prompts()[case.prompt].verdicts_of(texts)
    return verdicts


def judge_questions(case: Case, judge: Judge) -> list[ItemQuestion]:
    """Build the question of each repeat of a case for the judge."""
    prompts = judge_prompts()
    if case.prompt not in prompts:
        raise unknown_name("prompt for a judge", case.prompt, prompts)
    prompt = prompts[case.prompt]
    return [
        ItemQuestion(
            f"{case.name}\n{repeat}",
            prompt.fill(case),
            judge.decoding(repeat),
            system=prompt.system,
        )
        for repeat in range(1 if case.single_repeat else judge.repeats)
    ]


def load_answerer(
    name: str, words: Sequence[str] = (), option: str = "--observer-option"
) -> AnswerObserver:
    """Load an observer that answers in words, with the options given on the command line."""
    return cast(AnswerObserver, load_observer(name, **settings(words, option)))


def judge_of(experiment: Experiment) -> Judge | None:
    """Load the judge that an experiment names; None if it names none."""
    page = experiment.judge
    if page is None:
        return None
    observer = cast(AnswerObserver, load_observer(page.observer, **page.options))
    return Judge(observer, page.repeats, page.temperature, page.max_tokens)


def reader_of(judge: Judge) -> dict[str, str]:
    """Build the attributes of a result's variable that holds a judge's readings."""
    name = judge.observer.card.name
    return {
        "units": "1",
        "long_name": f"the replies as {name} reads them",
        "reader": f"{JUDGE} {name}",
    }


def count_verdicts(verdicts: Iterable[Verdicts]) -> dict[str, int]:
    """Count cases, cases without any verdict, and replies that were no verdict or cut off."""
    cases = list(verdicts)
    return {
        "cases": len(cases),
        "without_verdict": sum(case.failed for case in cases),
        "unread_replies": sum(len(case.unread) for case in cases),
        "cut_replies": sum(case.cut for case in cases),
    }


def read_verdicts(text: str) -> dict[str, Verdicts]:
    """Read a judge's verdicts by case from a result's JSON."""
    prompts = judge_prompts()
    return {
        name: prompts[prompt].verdicts_of(replies)
        for name, prompt, replies in json.loads(text)
    }
