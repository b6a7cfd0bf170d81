"""Define the questions that are put to observers in words, their answers, and how to ask."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.images import check_images
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card, Observer

if TYPE_CHECKING:
    from psyprobe.observers.decisions.recipe import Decision

#: The `finish` of an answer that does not count, since the attempt was given up; the question is
#: asked again.
GIVEN_UP = "given up"
#: The `finish` of an answer in place of which a server refused the question.
REFUSED = "refused"
#: Fields of `Decoding` that only servers take.
SPECIAL = ("top_p", "reasoning_effort", "response_format", "extra_body")


@dataclass(frozen=True)
class Decoding:
    """The settings by which a language model draws an answer.

    Parameters
    ----------
    temperature : float
        From 0 (the likeliest token every time) to 2.
    max_tokens : int
        Where an answer is cut off, in tokens.
    logprobs : bool
        Ask for the log-probabilities of the first token of the answer.
    seed : int, optional
        Seed of the sampling, where the model takes one.
    top_p : float, optional
        Probability, above 0 to 1, that the likeliest tokens from which is drawn have together.
    reasoning_effort : str, optional
        How long a reasoning model thinks, in its server's own words, such as "low".
    response_format : mapping, optional
        The form of the reply as the chat-completions protocol has it, such as a JSON schema.
    extra_body : mapping, optional
        Further fields of the request to a server.

    Raises
    ------
    InputError
        A value is out of range.

    Examples
    --------
    >>> Decoding(temperature=3)
    Traceback (most recent call last):
    psyprobe.errors.InputError: temperature is 3; give a number from 0 to 2
    """

    temperature: float = 0.0
    max_tokens: int = 16
    logprobs: bool = True
    seed: int | None = None
    top_p: float | None = None
    reasoning_effort: str | None = None
    response_format: JsonMapping | None = field(default=None, hash=False)
    extra_body: JsonMapping | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 2:
            raise InputError(
                f"temperature is {self.temperature}; give a number from 0 to 2"
            )
        if self.max_tokens < 1:
            raise InputError(
                f"max_tokens is {self.max_tokens}; give a whole number of at least 1"
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(
                f"top_p is {self.top_p}; give a number above 0 and up to 1"
            )

    @property
    def special(self) -> JsonObject:
        """Return by name the settings that only servers take, if set."""
        return {
            name: value
            for name in SPECIAL
            if (value := getattr(self, name)) is not None
        }

    def to_dict(self) -> JsonObject:
        """Return the decoding settings for JSON, without unset ones that only servers take."""
        usual = {
            name: value for name, value in vars(self).items() if name not in SPECIAL
        }
        return usual | self.special


_GREEDY = Decoding()
#: Fields of an answer that `TotalCost` adds up.
_TOKENS = ("tokens_in", "tokens_cached", "tokens_out", "tokens_thinking")
#: Fields of an answer that hold what a server wrote.
_TEXTS = ("text", "finish", "model", "server", "refusal", "thinking", "currency")
#: Fields that few answers have, with their values in all others.
_RARE: JsonObject = {
    "refusal": "",
    "thinking": "",
    "tokens_thinking": 0,
    "tokens_cached": 0,
    "currency": "USD",
    "instead": {},
    "session": {},
    "decision": {},
}
_YES_NO = ("yes", "no")


@dataclass(frozen=True, eq=False)
class Example:
    """A question with its answer that goes before the question that is asked."""

    #: Arrays (H, W, 3) of display drive in [0, 1].
    images: tuple[FloatArray, ...]
    prompt: str
    answer: str


@dataclass(frozen=True, eq=False)
class Inquiry:
    """One question put to an observer, with the images that it is about.

    Parameters
    ----------
    prompt : str
        The text of the question.
    images : tuple of ndarray, each (H, W, 3)
        Display drive in [0, 1], in the order in which they are shown.
    system : str
        Instruction that goes before; empty for none.
    decoding : Decoding
        How the answer is drawn.
    words : tuple of str
        Answers whose first-token probabilities are wanted, such as ("yes", "no") or ("A", "B", "C",
        "D"). Case and surrounding space of a token do not count.
    key : str
        A mark by which the caller recognises the question; no observer sees it.
    examples : tuple of Example
        Questions with answers that go before.
    drawing : mapping, optional
        For an observer whose page draws by itself: "stimuli", the specifications, "dither_seeds"
        and "delivery"; then there are no images.
    attempt : int
        Number of the person's attempt, from 1; earlier ones were given up.
    decision : Decision, optional
        For an observer that decides by a trained stage: the stage.
    """

    prompt: str
    images: tuple[FloatArray, ...] = ()
    system: str = ""
    decoding: Decoding = _GREEDY
    words: tuple[str, ...] = _YES_NO
    key: str = ""
    examples: tuple[Example, ...] = ()
    drawing: JsonMapping | None = None
    attempt: int = 1
    decision: Decision | None = None

    @property
    def all_images(self) -> tuple[FloatArray, ...]:
        """The images of the examples, then those of the question."""
        example_images = [
            image for example in self.examples for image in example.images
        ]
        return (*example_images, *self.images)


@dataclass(frozen=True)
class Answer:
    """An observer's reply to a question, word for word.

    Parameters
    ----------
    text : str
        The reply as it came, unparsed. Halves of characters (lone surrogates), which no file can
        hold, are spelt out, here and in all other text, as a backslash and the code.
    first_tokens : tuple of (str, float), optional
        Log-probabilities (natural) of the first token of the answer, likeliest first: at least
        those the observer offers of the inquiry's words. None where the observer offers none.
    complete : bool
        True where `first_tokens` holds every token that spells one of the words; False where only
        the likeliest are listed, so that an absent one has at most the probability of the last.
    finish : str
        Why the text ended: "stop", "length", "content_filter", "refused", or another word of the
        server.
    tokens_in, tokens_out : int, optional
        Tokens of the question, images included, and of the reply.
    latency : float
        Seconds that the attempt that succeeded took, from sending to the end of the reply.
    attempts : int
        How often the question was sent.
    cost : float, optional
        Its price, where the server says it or the prices of the model were given.
    model, server : str
        The names that they give themselves: the model's identifier, and the server's version or
        fingerprint.
    refusal : str
        What the server said where it refused the question and answered others. The text is empty
        then, so that nobody reads these words as an answer.
    thinking : str
        The model's thinking, where the server sends it apart from the reply.
    tokens_thinking : int, optional
        How many of the reply's tokens went into thinking; by their share of the characters where
        the server does not say.
    tokens_cached : int, optional
        How many of the question's tokens the server had cached, as it says.
    currency : str
        Currency of `cost`.
    instead : mapping of str to list
        By name, what the server refuses: [what was asked for, what was sent in its place].
    session : mapping, optional
        A person's reaction time, frames, screen and seeds.
    decision : mapping, optional
        The "variables" that a decision stage compared, one for each alternative, and whether they
        "tied".

    Examples
    --------
    >>> Answer.from_dict(Answer("Yes.", (("Yes", -0.1), ("No", -2.4))).to_dict()).first_tokens
    (('Yes', -0.1), ('No', -2.4))
    """

    text: str
    first_tokens: tuple[tuple[str, float], ...] | None = None
    complete: bool = False
    finish: str = "stop"
    tokens_in: int | None = None
    tokens_out: int | None = None
    latency: float = 0.0
    attempts: int = 1
    cost: float | None = None
    model: str = ""
    server: str = ""
    refusal: str = ""
    thinking: str = ""
    tokens_thinking: int | None = None
    tokens_cached: int | None = None
    currency: str = "USD"
    instead: JsonMapping = field(default_factory=dict, hash=False)
    session: JsonMapping | None = None
    decision: JsonMapping | None = None

    def __post_init__(self) -> None:
        texts = [getattr(self, name) for name in _TEXTS]
        tokens = [token for token, _ in self.first_tokens or ()]
        # Nearly always; looking at each text takes longer than the rest of making an answer.
        if "".join([*texts, *tokens]).isascii():
            return
        for name, text in zip(_TEXTS, texts, strict=True):
            object.__setattr__(self, name, _escape_surrogates(text))
        if self.first_tokens is not None:
            pairs = tuple(
                (_escape_surrogates(token), value) for token, value in self.first_tokens
            )
            object.__setattr__(self, "first_tokens", pairs)

    def to_dict(self) -> JsonObject:
        """Return the answer as JSON values, without rare fields that are not set."""
        unset = {
            name
            for name, usual in _RARE.items()
            if getattr(self, name) in (None, usual)
        }
        return {name: value for name, value in vars(self).items() if name not in unset}

    @property
    def named(self) -> dict[str, str]:
        """The model name and fingerprint that the server gave with the answer."""
        names = {"model": self.model, "fingerprint": self.server}
        return {key: name for key, name in names.items() if name}

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Answer:
        """Build the answer that `to_dict` describes."""
        pairs = values.get("first_tokens")
        if pairs is not None:
            pairs = tuple((str(token), float(logprob)) for token, logprob in pairs)
        return cls(**{**values, "first_tokens": pairs})


class TotalCost:
    """The tokens and the money that replies took, and how many are refusals.

    Each reply is as `Answer.to_dict` gives it.

    Examples
    --------
    >>> priced = {"tokens_in": 700, "tokens_out": 5, "cost": 0.25}
    >>> total = TotalCost([priced, {"tokens_in": 800, "tokens_out": 6}])
    >>> total.to_dict()["tokens_in"], total.to_dict()["cost"], total.to_dict()["unpriced"]
    (1500, {'USD': 0.25}, 1)
    """

    def __init__(self, replies: Iterable[JsonMapping] = ()) -> None:
        self._answers = 0
        self._unpriced = 0
        self._tokens: Counter[str] = Counter()
        self._cost: dict[str, float] = {}
        self._refusals: Counter[str] = Counter()
        for reply in replies:
            self.add(reply)

    def add(self, reply: JsonMapping | None) -> None:
        """Add the cost of a reply; None stands for a question that nobody was asked."""
        if reply is None:
            return
        self._answers += 1
        if reply.get("finish") == REFUSED:
            self._refusals[reply["refusal"]] += 1
        self._tokens.update({name: reply.get(name) or 0 for name in _TOKENS})
        cost = reply.get("cost")
        if cost is None:
            self._unpriced += 1
        else:
            currency = reply.get("currency", "USD")
            self._cost[currency] = self._cost.get(currency, 0.0) + cost

    def to_dict(self) -> JsonObject:
        """Return counts of answers and tokens, cost by currency, and answers without a price.

        Where a server refused questions, their number and its commonest words are there too.
        """
        refusals = {
            "refused": self._refusals.total(),
            "refusal": "".join(words for words, _ in self._refusals.most_common(1)),
        }
        return {
            "answers": self._answers,
            **{name: self._tokens[name] for name in _TOKENS},
            "cost": dict(sorted(self._cost.items())),
            "unpriced": self._unpriced,
            **(refusals if self._refusals else {}),
        }

    @property
    def currency(self) -> str:
        """The currency of all costs, or several with "and" between."""
        return " and ".join(sorted(self._cost)) or "USD"


def _escape_surrogates(text: str) -> str:
    """Escape halves of surrogate pairs, which UTF-8 cannot hold, as backslash codes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


@runtime_checkable
class AnswerObserver(Observer, Protocol):
    """An observer that is shown images and asked in words, such as a chat model.

    If it can work on many questions at once, it is a `ManyAnswersObserver` too; `ask_all` makes use
    of that.
    """

    @property
    def bits(self) -> int | None:
        """Bits a channel of its images (8: values k/255); None where any float passes unrounded."""

    @property
    def images_at_once(self) -> int | None:
        """The most images that one question may hold; None for any number."""

    def delivered(self, image: FloatArray) -> FloatArray:
        """Return the image that the network gets: drive values (h, w, 3), resized and rounded.

        It is not normalised. Where it cannot be known, as behind a server, it is the image as it
        was sent.
        """

    def answer(
        self,
        images: Sequence[FloatArray],
        prompt: str,
        *,
        system: str = "",
        decoding: Decoding = _GREEDY,
        words: Sequence[str] = _YES_NO,
    ) -> Answer:
        """Answer one question about images, as an `Answer`."""


@runtime_checkable
class ManyAnswersObserver(AnswerObserver, Protocol):
    """An observer that works on many questions at once, such as a server or a GPU."""

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answer many questions, each as soon as it can be, in any order.

        Inquiries are taken from the iterator only as the observer gets to them.
        """


class Answering:
    """The base of observers that answer: it checks each question before their own `_reply`."""

    card: Card
    #: The fewest images that a question may hold; the others are as in `AnswerObserver`.
    fewest_images = 0
    bits: int | None = None
    images_at_once: int | None = None
    #: Whether examples may go before a question, and its decoding may hold what only servers take.
    takes_all = False

    def delivered(self, image: FloatArray) -> FloatArray:
        """Return the image as it is, since what becomes of it later is not known."""
        return image

    def answer(
        self,
        images: Sequence[FloatArray],
        prompt: str,
        *,
        system: str = "",
        decoding: Decoding = _GREEDY,
        words: Sequence[str] = _YES_NO,
    ) -> Answer:
        """Check and answer one question about images, as an `Answer`.

        Raises
        ------
        InputError
            If the images are not what the observer takes, or it does not take another part of the
            question.
        PsyprobeError
            If there is no answer.
        """
        words = (words,) if isinstance(words, str) else tuple(words)
        return self._reply(
            self.checked(Inquiry(prompt, tuple(images), system, decoding, words))
        )

    def checked(self, inquiry: Inquiry) -> Inquiry:
        """Return a question as it is, refusing one that this observer cannot take.

        Raises
        ------
        InputError
            If there are too few or too many images, or one is no drive in [0, 1], or not of 8 bits
            where the observer needs that.
        """
        count = len(inquiry.images)
        lowest = self.fewest_images
        highest = self.images_at_once
        if count < lowest or (highest is not None and count > highest):
            raise InputError(
                f"{self.card.name} takes {_describe_image_count(lowest, highest)} at a time and "
                f"was shown {count} images"
            )
        refused = [] if self.takes_all else [*inquiry.decoding.special]
        if inquiry.examples and not self.takes_all:
            refused.append("examples")
        if refused:
            raise InputError(
                f"{self.card.name} takes no {' and no '.join(refused)}; leave "
                f"{'it' if len(refused) == 1 else 'them'} out"
            )
        for image in inquiry.all_images:
            self._check_image(image)
        return inquiry

    def _check_image(self, image: FloatArray) -> None:
        """Refuse an image of a wrong shape or range, or not of 8 bits where those are asked."""
        check_images(np.asarray(image)[None], self.card.name)
        if self.bits == 8:
            eight_bit(image)

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Answer one question that was checked."""
        raise NotImplementedError


def _describe_image_count(lowest: int, highest: int | None) -> str:
    """Describe in words how many images an observer takes."""
    if highest is None:
        return f"at least {lowest}"
    return "one image" if highest == 1 else f"{lowest or 'up'} to {highest} images"


def ask_all(
    observer: AnswerObserver, inquiries: Iterable[Inquiry]
) -> Iterator[tuple[Inquiry, Answer]]:
    """Ask an observer many questions, as many at once as it takes.

    Inquiries are drawn only as the observer gets to them, so that a generator keeps memory
    constant; answers come in any order.
    """
    if isinstance(observer, ManyAnswersObserver):
        yield from observer.answers(inquiries)
        return
    for inquiry in inquiries:
        answer = observer.answer(
            inquiry.images,
            inquiry.prompt,
            system=inquiry.system,
            decoding=inquiry.decoding,
            words=inquiry.words,
        )
        yield inquiry, answer


def eight_bit(image: FloatArray) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Convert an image whose values are all k/255 to 8-bit codes.

    Parameters
    ----------
    image : ndarray, shape (H, W, 3)
        Display drive.

    Raises
    ------
    InputError
        A value lies between two codes: rounding it here would change the contrast that was asked
        for.

    Examples
    --------
    >>> eight_bit(np.full((1, 1, 3), 128 / 255)).tolist()
    [[[128, 128, 128]]]
    """
    values = ImagePlanes.of(np.asarray(image)).planes * 255.0
    codes = np.rint(values)
    values -= codes
    step = float(np.abs(values, out=values).max(initial=0))
    if not step <= 1e-3 or codes.min(initial=0) < 0 or codes.max(initial=0) > 255:
        raise InputError(
            f"the image has drive values up to {step:.3g} of a step off the 8-bit codes 0 to "
            "255; round it with dither first (psyprobe.probes.words.delivery), since rounding "
            "changes the contrast"
        )
    return np.array(np.broadcast_to(codes.astype(np.uint8), np.shape(image)))


def image_digest(image: FloatArray) -> str:
    """Return the SHA-256, hexadecimal, of an image's shape and values in float32."""
    values = np.ascontiguousarray(image, dtype="<f4")
    return hashlib.sha256(
        json.dumps(values.shape).encode() + values.tobytes()
    ).hexdigest()
