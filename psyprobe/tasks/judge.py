"""A judge: a chat model that reads what rules cannot. Who judges, in which words and how often, is part of a result.

Rules come first, and a judge is asked only about what they leave open; that is for whoever calls to decide. What a
judge said is kept raw like any answer, so that nothing is judged twice and every verdict can be read again. A reply
that is none of the verdicts is counted, and never taken for one.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.output import digest
from psyprobe.observers import load_observer
from psyprobe.observers.chat.answering import AnswerObserver, Decoding
from psyprobe.running.store import Store
from psyprobe.tasks.asking import ItemQuestion, ask_items

if TYPE_CHECKING:
    from psyprobe.experiment import Experiment

#: Of the way in which a judge is asked.
JUDGING = "judge 1"
#: Long enough for a model that cannot leave it at one word.
_MAX_TOKENS = 32


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
        """The one verdict that a reply names, or None: the whole reply, or the only verdict among its words.

        Examples
        --------
        >>> prompt = judge_prompts()["rbench_short"]
        >>> [prompt.read(text) for text in ("2", "Score: 1.", "1 or 2", "good")]
        [1.0, 0.5, None, None]
        """
        words = set(re.findall(r"\w+", reply.casefold()))
        named = [word for word in self.verdicts if word in words]
        return self.verdicts[named[0]] if len(named) == 1 else None

    def verdicts_of(self, replies: Sequence[str]) -> Verdicts:
        """What several replies about one case come to."""
        read = [(self.read(reply), reply) for reply in replies]
        return Verdicts(
            read=tuple(verdict for verdict, _ in read if verdict is not None),
            unread=tuple(reply for verdict, reply in read if verdict is None),
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

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise InputError(f"a judge is asked {self.repeats} times; give at least 1")
        if self.repeats > 1 and self.temperature == 0:
            raise InputError(
                f"{self.repeats} repeats at temperature 0 are one and the same answer; give a temperature or 1 repeat"
            )

    def decoding(self, repeat: int) -> Decoding:
        """How the reply of one repeat is drawn."""
        seed = repeat if self.temperature else None
        return Decoding(self.temperature, _MAX_TOKENS, logprobs=False, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """Everything one must know to judge again, as JSON can hold it."""
        prompts = {name: digest([p.system, p.text, dict(p.verdicts)]) for name, p in judge_prompts().items()}
        return {
            "observer": self.observer.card.to_dict(),
            "repeats": self.repeats,
            "temperature": self.temperature,
            "prompts": {name: f"{judge_prompts()[name].version} ({value[:12]})" for name, value in prompts.items()},
        }


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

    @property
    def failed(self) -> bool:
        """Whether no reply was a verdict."""
        return not self.read

    @property
    def mean(self) -> float:
        """Mean of numeric verdicts, from 0 to 1."""
        if self.failed:
            raise InputError(f"the judge gave no verdict but {self.unread[0]!r}; judge again, or leave the item out")
        return sum(float(each) for each in self.read) / len(self.read)

    @property
    def majority(self) -> float | str | None:
        """The verdict of more than half of the replies, those that were none counted; None where there is none."""
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
    answers = ask_items(
        [question for each in questions.values() for question in each],
        judge.observer,
        version=JUDGING,
        store=store,
        label=f"judge {judge.observer.card.name}",
        progress=progress,
    )
    return {
        case.name: judge_prompts()[case.prompt].verdicts_of([answers[each.name].text for each in questions[case.name]])
        for case in cases
    }


def judge_questions(case: Case, judge: Judge) -> list[ItemQuestion]:
    """One question for each time that a case is put."""
    prompts = judge_prompts()
    if case.prompt not in prompts:
        raise unknown_name("prompt for a judge", case.prompt, prompts)
    prompt = prompts[case.prompt]
    return [
        ItemQuestion(f"{case.name}\n{repeat}", prompt.filled(case), judge.decoding(repeat), system=prompt.system)
        for repeat in range(1 if case.once else judge.repeats)
    ]


def judge_of(experiment: Experiment) -> Judge | None:
    """The judge that a page names, or None."""
    named = experiment.judge
    if named is None:
        return None
    return Judge(load_observer(named.observer, **named.options), named.repeats, named.temperature)


def read_verdicts(text: str) -> dict[str, Verdicts]:
    """Verdicts by case, read by today's rules from the JSON of cases: name, prompt, and replies of each."""
    prompts = judge_prompts()
    return {name: prompts[prompt].verdicts_of(replies) for name, prompt, replies in json.loads(text)}
