"""What an observer that answers in words is asked, and what comes back."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.images import check_images
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card, Observer

#: How the answer of an attempt ends that does not count; the question is asked again.
GIVEN_UP = "given up"
#: Fields of `Decoding` that only servers take.
SPECIAL = ("top_p", "reasoning_effort", "response_format", "extra_body")


@dataclass(frozen=True)
class Decoding:
    """How an answer is drawn from a language model.

    Parameters
    ----------
    temperature : float
        From 0 (the likeliest token every time) to 2.
    max_tokens : int
        Where an answer is cut off, in tokens.
    logprobs : bool
        Ask for the log-probabilities of the first token of the answer.
    seed : int, optional
        Of the sampling, where the model takes one.
    top_p : float, optional
        Only the likeliest tokens that have this probability together are drawn from, above 0 to 1.
    reasoning_effort : str, optional
        How long a reasoning model thinks, in its server's own words, such as "low".
    response_format : mapping, optional
        The form of the reply as the chat-completions protocol has it, such as a JSON schema.
    extra_body : mapping, optional
        What else a server is sent, by name.

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
    response_format: Mapping[str, Any] | None = field(default=None, hash=False)
    extra_body: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 2:
            raise InputError(f"temperature is {self.temperature}; give a number from 0 to 2")
        if self.max_tokens < 1:
            raise InputError(f"max_tokens is {self.max_tokens}; give a whole number of at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}; give a number above 0 and up to 1")

    @property
    def special(self) -> dict[str, Any]:
        """What is set of that which few observers take, by name."""
        told = {name: getattr(self, name) for name in SPECIAL}
        return {name: value for name, value in told.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """All but what few observers take and is not set, as JSON can hold it."""
        return {
            name: value for name, value in vars(self).items() if name not in SPECIAL
        } | self.special


_GREEDY = Decoding()
#: What `Spending` counts of an answer.
_TOKENS = ("tokens_in", "tokens_cached", "tokens_out", "tokens_thinking")
#: Fields of `Answer` that few have, and what stands in all others.
_RARE: dict[str, Any] = {
    "thinking": "",
    "tokens_thinking": 0,
    "tokens_cached": 0,
    "currency": "USD",
    "instead": {},
    "session": {},
}
_YES_NO = ("yes", "no")


@dataclass(frozen=True, eq=False)
class Example:
    """A question with its answer, shown before the one that is asked."""

    #: Display drive in [0, 1], each (H, W, 3).
    images: tuple[FloatArray, ...]
    prompt: str
    answer: str


@dataclass(frozen=True, eq=False)
class Inquiry:
    """One question put to an observer, with the images that it is about.

    Parameters
    ----------
    prompt : str
        What is asked.
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
        Who asks may put here by what it knows the question again; no observer sees it.
    examples : tuple of Example
        Questions with answers that go before.
    drawing : mapping, optional
        For an observer whose page draws by itself: "stimuli", the specifications, "dither_seeds"
        and "delivery"; then there are no images.
    attempt : int
        At which attempt of a person the question is; their earlier ones were given up.
    """

    prompt: str
    images: tuple[FloatArray, ...] = ()
    system: str = ""
    decoding: Decoding = _GREEDY
    words: tuple[str, ...] = _YES_NO
    key: str = ""
    examples: tuple[Example, ...] = ()
    drawing: Mapping[str, Any] | None = None
    attempt: int = 1


@dataclass(frozen=True)
class Answer:
    """What came back, word for word.

    Parameters
    ----------
    text : str
        The reply as it came, unparsed. Halves of characters (lone surrogates), which no file can
        hold, are spelt out, here and in all other text, as a backslash and the code.
    first_tokens : tuple of (str, float), optional
        Log-probabilities (natural) of the first token of the answer, likeliest first: at least
        those the observer offers of the inquiry's words. None where there are none to be had.
    complete : bool
        True where `first_tokens` holds every token that spells one of the words; False where only
        the likeliest are listed, so that an absent one has at most the probability of the last.
    finish : str
        Why the text ended: "stop", "length", "content_filter", or what the server says.
    tokens_in, tokens_out : int, optional
        Tokens of the question, images included, and of the reply.
    latency : float
        Seconds from sending to having it all; of the attempt that succeeded.
    attempts : int
        How often it was sent.
    cost : float, optional
        Its price, where the server tells it or prices of the model were given.
    model, server : str
        What answered, as it names itself: the model's identifier, and the server's version or
        fingerprint.
    thinking : str
        What the server tells of the model's thinking apart from the reply.
    tokens_thinking : int, optional
        How many of the reply's tokens went into thinking; by their share of the characters where it
        does not tell.
    tokens_cached : int, optional
        How many of the question's tokens the server had cached, as it tells.
    currency : str
        Of `cost`.
    instead : mapping of str to list
        What was sent in place of what was asked for, as [asked, sent], by name, where the server
        refuses it.
    session : mapping, optional
        Of a person's answer: reaction time, frames, screen, seeds.

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
    thinking: str = ""
    tokens_thinking: int | None = None
    tokens_cached: int | None = None
    currency: str = "USD"
    instead: Mapping[str, Any] = field(default_factory=dict, hash=False)
    session: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("text", "finish", "model", "server", "thinking", "currency"):
            object.__setattr__(self, name, _speakable(getattr(self, name)))
        if (
            self.first_tokens is not None
            and not "".join([token for token, _ in self.first_tokens]).isascii()
        ):
            tokens = tuple((_speakable(token), logprob) for token, logprob in self.first_tokens)
            object.__setattr__(self, "first_tokens", tokens)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values that JSON can hold, one entry a field; what few answers have
        only where it is.
        """
        rare = {name for name, usual in _RARE.items() if getattr(self, name) in (None, usual)}
        return {name: value for name, value in vars(self).items() if name not in rare}

    @property
    def named(self) -> dict[str, str]:
        """What answered, as far as it names itself: "model" and "fingerprint"."""
        return {
            name: told
            for name, told in (("model", self.model), ("fingerprint", self.server))
            if told
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Answer:
        """The answer that `to_dict` was called on, perhaps after a trip through JSON."""
        tokens = values.get("first_tokens")
        pairs = (
            None
            if tokens is None
            else tuple((str(token), float(logprob)) for token, logprob in tokens)
        )
        return cls(**{**values, "first_tokens": pairs})


class Spending:
    """The sum over replies, each as `Answer.to_dict` gives it; how long they took is not in it.

    Examples
    --------
    >>> spending = Spending([{"tokens_in": 700, "tokens_out": 5, "cost": 0.25}, {"tokens_in": 800, "tokens_out": 6}])
    >>> spending.to_dict()["tokens_in"], spending.to_dict()["cost"], spending.to_dict()["unpriced"]
    (1500, {'USD': 0.25}, 1)
    """

    def __init__(self, replies: Iterable[Mapping[str, Any]] = ()) -> None:
        self._answers = self._unpriced = 0
        self._tokens: Counter[str] = Counter()
        self._cost: dict[str, float] = {}
        for reply in replies:
            self.add(reply)

    def add(self, reply: Mapping[str, Any] | None) -> None:
        """Take one more; None is a question that nobody was asked."""
        if reply is None:
            return
        self._answers += 1
        self._tokens.update({name: reply.get(name) or 0 for name in _TOKENS})
        cost = reply.get("cost")
        if cost is None:
            self._unpriced += 1
        else:
            currency = reply.get("currency", "USD")
            self._cost[currency] = self._cost.get(currency, 0.0) + cost

    def to_dict(self) -> dict[str, Any]:
        """Answers, tokens by kind, cost by currency, and how many answers have a price that is not
        known.
        """
        cost = dict(sorted(self._cost.items()))
        return {
            "answers": self._answers,
            **{name: self._tokens[name] for name in _TOKENS},
            "cost": cost,
            "unpriced": self._unpriced,
        }

    @property
    def currency(self) -> str:
        """Of all costs, or several with "and" between."""
        return " and ".join(sorted(self._cost)) or "USD"


def _speakable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


@runtime_checkable
class AnswerObserver(Observer, Protocol):
    """An observer that is shown images and asked in words, such as a chat model.

    One that can work on many questions at once is a `ManyAnswersObserver` besides; `ask_all` makes
    use of that.
    """

    @property
    def bits(self) -> int | None:
        """Bits a channel that images must come in (8: values k/255); None where any float passes
        unrounded.
        """

    @property
    def images_at_once(self) -> int | None:
        """How many images one inquiry may hold; None for any number."""

    def delivered(self, image: FloatArray) -> FloatArray:
        """An image as it gets into the network: drive (h, w, 3), after resizing and rounding,
        before normalisation.

        Where that cannot be known, as behind a server, the image as it was sent.
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
        """The answer to one question; see `Inquiry` for the arguments."""


@runtime_checkable
class ManyAnswersObserver(AnswerObserver, Protocol):
    """An observer that works on many questions at once, such as a server or a GPU."""

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answer many questions, each as soon as it can be, in any order.

        Inquiries are taken from the iterator only as the observer gets to them.
        """


class Answering:
    """What the observers that answer share: each question passes one check, and then their own
    `_reply`.
    """

    card: Card
    #: The fewest images that a question may hold; the others are as in `AnswerObserver`.
    fewest_images = 0
    bits: int | None = None
    images_at_once: int | None = None
    #: Whether examples may go before a question, and its decoding may hold what only servers take.
    takes_all = False

    def delivered(self, image: FloatArray) -> FloatArray:
        """The image itself: what else becomes of it cannot be seen from here."""
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
        """The answer to one question; see `Inquiry` for the arguments.

        Raises
        ------
        InputError
            If the images are not what the observer takes, or it has no place for something else of
            the question.
        PsyprobeError
            If there is no answer.
        """
        words = (words,) if isinstance(words, str) else tuple(words)
        return self._reply(self.checked(Inquiry(prompt, tuple(images), system, decoding, words)))

    def checked(self, inquiry: Inquiry) -> Inquiry:
        """The question, unchanged, if it can be put to this observer as it is.

        Raises
        ------
        InputError
            If there are too few or too many images, or one is no drive in [0, 1], or not of 8 bits
            where that is wanted.
        """
        count = len(inquiry.images)
        least = self.fewest_images
        most = self.images_at_once
        if count < least or (most is not None and count > most):
            raise InputError(
                f"{self.card.name} takes {_number_of_images(least, most)} at a time and was "
                f"shown {count} images"
            )
        if not self.takes_all and (
            more := [*inquiry.decoding.special, *(["examples"] if inquiry.examples else [])]
        ):
            raise InputError(
                f"{self.card.name} takes no {' and no '.join(more)}; leave "
                f"{'it' if len(more) == 1 else 'them'} out"
            )
        for image in (
            *inquiry.images,
            *(image for example in inquiry.examples for image in example.images),
        ):
            self._check_image(image)
        return inquiry

    def _check_image(self, image: FloatArray) -> None:
        check_images(np.asarray(image)[None], self.card.name)
        if self.bits == 8:
            eight_bit(image)

    def _reply(self, inquiry: Inquiry) -> Answer:
        """The answer to a question that was checked."""
        raise NotImplementedError


def _number_of_images(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return "one image" if most == 1 else f"{least or 'up'} to {most} images"


def ask_all(
    observer: AnswerObserver, inquiries: Iterable[Inquiry]
) -> Iterator[tuple[Inquiry, Answer]]:
    """Put many questions to an observer, as many at once as it takes.

    Inquiries are drawn upon only as the observer gets to them, so that a generator keeps memory
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
    """The 8-bit codes of an image whose values are all k/255.

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
    off = ImagePlanes.of(np.asarray(image)).planes * 255.0
    codes = np.rint(off)
    off -= codes
    step = float(max(off.max(initial=0), -off.min(initial=0)))
    if not step <= 1e-3 or codes.min(initial=0) < 0 or codes.max(initial=0) > 255:
        raise InputError(
            f"the image has drive values up to {step:.3g} of a step off the 8-bit codes 0 to "
            "255; round it with dither "
            "first (psyprobe.probes.words.delivery), since rounding changes the contrast"
        )
    return np.array(np.broadcast_to(codes.astype(np.uint8), np.shape(image)))


def image_digest(image: FloatArray) -> str:
    """SHA-256, hexadecimal, of an image's shape and values in float32."""
    values = np.ascontiguousarray(image, dtype="<f4")
    return hashlib.sha256(json.dumps(values.shape).encode() + values.tobytes()).hexdigest()
