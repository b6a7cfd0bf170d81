"""Chat models behind any server that speaks OpenAI's chat-completions protocol: "openai:MODEL".

The server's address and the key come from the environment and are written nowhere: not into a card,
a result, a log or an error.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.metadata
import ipaddress
import os
import queue
import threading
import uuid
import warnings
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, InputError, PsyprobeError, UnfinishedError
from psyprobe.files.images import encode_png
from psyprobe.observers.chat.openai_protocol import OPENAI, URL_VARIABLE
from psyprobe.observers.chat.openai_sending import Endpoint, LeftOutError, Question, Sender
from psyprobe.observers.chat.prices import Budget, Price
from psyprobe.observers.chat.protocol import Answer, Answering, Decoding, Inquiry, eight_bit
from psyprobe.observers.protocol import Card

#: Images whose PNG is kept: 25 prompts share one.
_REMEMBERED = 8
#: Questions taken from whoever asks, for each that is under way: those that wait to be tried again
#: take no place.
_AHEAD = 4
#: Seconds and requests a second that nobody means; and characters of an address.
_MOST = 1e6
_LONGEST_ADDRESS = 2000
#: Held while a connection is opened, so that threads share one.
_OPENING = threading.Lock()


@dataclass(frozen=True)
class Capabilities:
    """What a server was found to do, when it was asked with a small image.

    Parameters
    ----------
    logprobs : {"given", "refused", "absent"}
        Whether log-probabilities of the first token come back, are refused, or are silently left
        out.
    listed : int
        How many of them are listed at most; 0 where there are none.
    several_images : bool
        Whether a question with two images is taken.
    seed : bool
        Whether a seed is taken; whether it has an effect is the server's business.
    model, server : str
        What answered, as it names itself.
    """

    logprobs: str
    listed: int
    several_images: bool
    seed: bool
    model: str
    server: str


class OpenAIObserver(Answering):
    """A chat model behind an OpenAI-compatible server: OpenAI, vLLM, SGLang, Ollama, llama.cpp,
    gateways and others.

    Images go as PNG (lossless) in data URLs, before the text. Log-probabilities of the first token
    are asked for; where a server refuses or leaves them out, the text alone comes back
    (``first_tokens`` is None). Many questions are under way at once; each is sent again, after a
    pause, on HTTP 429, 5xx, time-outs, broken connections and JSON that breaks off. A wrong key, an
    unknown model or a refused question ends it with one sentence.

    Parameters
    ----------
    model : str
        As the server calls it.
    base_url : str, optional
        The server's address, usually ending in /v1; by default the environment's OPENAI_BASE_URL,
        and OpenAI's own server without that. The key is OPENAI_API_KEY of the environment.
    concurrency : int
        Questions under way at once.
    rate : float, optional
        Requests a second at most.
    timeout : float
        Seconds after which an attempt is given up.
    retries : int
        How often a question is sent again after it failed.
    detail : {"high", "low", "auto"}
        How large servers that tell sizes apart take the images.
    thinking : int
        Tokens that a model which thinks before it answers is given for that, besides those of the
        answer.
    input_size : int or (int, int), optional
        Pixels (height, width) at which the model looks, where you know them: stimuli are then drawn
        at this size.
    server : str
        A name of yours for the server, where the model's name does not tell two of them apart; a
        part of the card.

    Attributes
    ----------
    price : Price, optional
        What its questions cost; without it, an answer costs what the server says.
    budget : Budget, optional
        What may be spent on it.

    Examples
    --------
    >>> from psyprobe.observers import load_observer
    >>> from psyprobe.observers.simulated.serving import serve
    >>> with serve(load_observer("simulated:flat")) as server:
    ...     with OpenAIObserver("simulated:flat", base_url=server.base_url) as observer:
    ...         answer = observer.answer([np.full((64, 64, 3), 128 / 255)], "Is there a pattern?")
    >>> answer.text, answer.first_tokens[0]
    ('no', ('No', -0.1255...))
    """

    bits = 8
    takes_all = True
    price: Price | None = None
    budget: Budget | None = None

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        concurrency: int = 8,
        rate: float | None = None,
        timeout: float = 300.0,
        retries: int = 8,
        detail: str = "high",
        thinking: int = 4096,
        input_size: int | Sequence[int] | None = None,
        server: str = "",
    ) -> None:
        whole = type(concurrency) is int and type(retries) is int
        if not (whole and 1 <= concurrency <= _MOST and 0 <= retries <= _MOST):
            raise InputError(
                f"concurrency is {concurrency!r} and retries {retries!r}; give whole numbers, "
                "at least 1 and at least 0"
            )
        for name, value in (("rate", rate), ("timeout", timeout)):
            if value is not None and not (_is_number(value) and 0 < value <= _MOST):
                raise InputError(
                    f"{name} is {value!r}; give a finite number > 0 and up to {_MOST:g}"
                )
        if detail not in ("high", "low", "auto"):
            raise InputError(f"detail is {detail!r}; give 'high', 'low' or 'auto'")
        if type(thinking) is not int or not 0 <= thinking <= _MOST:
            raise InputError(
                f"thinking is {thinking!r} tokens; give a whole number from 0 to {_MOST:g}"
            )
        size = _size(input_size)
        url = os.environ.get(URL_VARIABLE) or None if base_url is None else base_url
        place = _place(url)
        self.endpoint = Endpoint(model, url, concurrency, rate, timeout, retries, detail, thinking)
        self._encoded: deque[tuple[FloatArray, bytes]] = deque(maxlen=_REMEMBERED)
        self._sender: Sender | None = None
        self._capabilities: Capabilities | None = None
        self.card = Card(
            f"openai:{model}",
            "answer",
            input_size=size,
            device="server",
            weights="behind a server",
            options={
                "version": 1,
                "detail": detail,
                "endpoint": place,
                **({"server": str(server)} if server else {}),
            },
            software={"aiohttp": importlib.metadata.version("aiohttp")},
        )

    def __repr__(self) -> str:
        return f"OpenAIObserver({self.endpoint.model!r})"

    def __enter__(self) -> OpenAIObserver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sender": None}

    @property
    def concurrency(self) -> int:
        """Questions under way at once."""
        return self.endpoint.concurrency

    @property
    def rate(self) -> float | None:
        """Requests a second at most."""
        return self.endpoint.rate

    def capabilities(self) -> Capabilities:
        """What the server can do; it is asked once, with two small questions."""
        if self._capabilities is None:
            grey = np.full((64, 64, 3), 128 / 255, np.float32)
            prompt = "Is there a pattern visible in the image? Answer with yes or no."
            # A temperature of 1 is the one that every model takes.
            sender = self.sending()
            inquiry = Inquiry(prompt, (grey,), decoding=Decoding(temperature=1.0, seed=0))
            one = sender.submit(self.question(inquiry)).result()
            dialect = sender.dialect
            # What is found is what is given back.
            sender.found.clear()
            try:
                self.answer(
                    [grey, grey], prompt, decoding=Decoding(temperature=1.0, logprobs=False)
                )
                several = True
            except PsyprobeError:
                several = False
            given = "refused" if not dialect.listed else "given" if one.first_tokens else "absent"
            listed = dialect.listed if given == "given" else 0
            self.images_at_once = None if several else 1
            self._capabilities = Capabilities(
                given, listed, several, "seed" not in dialect.without, one.model, one.server
            )
            found = {"server": one.server, "model": one.model, "logprobs": given}
            self.card = replace(self.card, software={**self.card.software, **found})
        return self._capabilities

    def served(self, certain: bool) -> dict[str, str]:
        """What the server says that it serves: "listed", and where that tells nothing "model" and
        "fingerprint".

        Parameters
        ----------
        certain : bool
            Whether a small question is put where the server's list does not tell.

        Raises
        ------
        PsyprobeError
            It cannot be told; never where it need not be certain.
        """
        if listed := self.sending().listed():
            return {"listed": listed}
        if not certain:
            return {}
        # Its like was never asked: what lies between must not answer out of a cache.
        prompt = f"Answer with yes. ({uuid.uuid4().hex[:8]})"
        inquiry = Inquiry(prompt, decoding=Decoding(temperature=1.0, logprobs=False))
        return self._reply(inquiry).named

    def _reply(self, inquiry: Inquiry) -> Answer:
        sender = self.sending()
        future = sender.submit(self.question(inquiry))
        try:
            return future.result()
        finally:
            future.cancel()
            _tell(sender)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answers to many questions, as they come, in any order.

        Inquiries are drawn upon as there is room; four times `concurrency` are out at most, those
        included that wait to be tried again. Closing the generator takes back what is under way.

        Raises
        ------
        PsyprobeError
            A question cannot be answered; what else has been answered by then is yielded before.
            Where others were answered while it was tried, those that are left are asked before.
        UnfinishedError
            Another question might not fit into the budget; what was under way is yielded before.
        """
        sender = self.sending()
        source = iter(inquiries)
        out: dict[Future[Answer], Inquiry] = {}
        done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()
        more = True
        answered = 0
        left_out = 0
        last: LeftOutError | None = None
        stopped: UnfinishedError | None = None
        try:
            while more or out:
                while more and len(out) < _AHEAD * self.endpoint.concurrency and done.empty():
                    inquiry = next(source, None)
                    if inquiry is None:
                        more = False
                        break
                    future = sender.submit(self.question(self.checked(inquiry)))
                    out[future] = inquiry
                    future.add_done_callback(done.put)
                if not out:
                    break
                future = done.get()
                _tell(sender)
                problem = future.exception()
                if isinstance(problem, UnfinishedError):
                    # Nothing new is sent; what is under way is paid for, and waited for.
                    del out[future]
                    more = False
                    stopped = problem
                    continue
                if isinstance(problem, LeftOutError) and left_out < answered:
                    del out[future]
                    left_out = left_out + 1
                    last = problem
                    continue
                if problem is not None:
                    del out[future]
                    for each in [each for each in out if each.done() and each.exception() is None]:
                        yield out.pop(each), each.result()
                    raise problem
                answered += 1
                yield out.pop(future), future.result()
        finally:
            for future in out:
                future.cancel()
        if stopped is not None:
            raise stopped
        if last is not None:
            raise PsyprobeError(
                f"{last} ({left_out} of {answered + left_out} questions are without an answer)"
            )

    def close(self) -> None:
        """Close all connections; the next question opens them again."""
        if self._sender is not None:
            self._finalizer()
            self._sender = None

    def sending(self) -> Sender:
        """What sends to the server; made when it is first needed."""
        with _OPENING:
            # After a fork, the thread that sends is not there.
            if self._sender is None or self._sender.pid != os.getpid():
                self._sender = Sender(self.endpoint)
                self._finalizer = weakref.finalize(self, self._sender.close)
            self._sender.price = self.price
            self._sender.budget = self.budget
            return self._sender

    def _check_image(self, image: FloatArray) -> None:
        """Left to `_url`, which sees each image once, however many questions share it."""

    def question(self, inquiry: Inquiry) -> Question:
        """A question as it is sent, its images as data."""
        before = (image for example in inquiry.examples for image in example.images)
        return Question(inquiry, [self._url(image) for image in (*before, *inquiry.images)])

    def _url(self, image: FloatArray) -> bytes:
        """The image as a data URL; encoded once, as long as it is among the last that were asked
        about.
        """
        shown = np.asarray(image)
        # Compared as a whole: as fast as a digest, and an array that was changed meanwhile is
        # another image.
        known = next(
            (each for each in tuple(self._encoded) if np.array_equal(each[0], shown)), None
        )
        if known is None:
            super()._check_image(shown)
            png = encode_png(eight_bit(shown), noise=True)
            known = (shown.copy(), b"data:image/png;base64," + base64.b64encode(png))
            self._encoded.appendleft(known)
        return known[1]


def _tell(sender: Sender) -> None:
    """Warn of what a server was found to refuse, once."""
    while sender.found:
        warnings.warn(sender.found.popleft(), ConditionWarning, stacklevel=2)


def _size(given: int | Sequence[int] | None) -> tuple[int, int] | None:
    if given is None:
        return None
    sides = (
        (given, given)
        if type(given) is int
        else tuple(given)
        if isinstance(given, Sequence)
        else ()
    )
    if len(sides) != 2 or not all(type(side) is int and 8 <= side <= 8192 for side in sides):
        raise InputError(
            f"input_size is {given!r}; give pixels from 8 to 8192, or two such numbers as "
            "[height, width]"
        )
    return (sides[0], sides[1])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _place(url: str | None) -> str:
    """What tells one server from another in a store without giving its address away.

    Loopback is one place whatever the port, so that a server that is started again there is the
    same.
    """
    address = OPENAI if url is None else url
    try:
        parts = urlsplit(
            address if isinstance(address, str) and len(address) <= _LONGEST_ADDRESS else ""
        )
        # A port that is none is found out only where it is read.
        host = (
            (parts.hostname or "") if parts.scheme in ("http", "https") and parts.port != 0 else ""
        )
    except ValueError:
        host = ""
    if not host:
        raise InputError(
            f"what base_url or {URL_VARIABLE} gives is no address of a server; give one such as "
            "http://127.0.0.1:8000/v1"
        )
    if parts.username or parts.password or parts.query:
        raise InputError(
            f"the address in base_url or {URL_VARIABLE} holds a user, a password or a query, "
            "which libraries write "
            "into logs; put the key into OPENAI_API_KEY and leave the rest out"
        )
    with contextlib.suppress(ValueError):  # a name, and no number
        if ipaddress.ip_address(host).is_loopback:
            return "loopback"
    if host == "localhost":
        return "loopback"
    told = f"{parts.netloc.casefold()}{parts.path.rstrip('/')}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]
