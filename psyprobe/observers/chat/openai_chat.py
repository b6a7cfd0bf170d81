"""Ask chat models behind servers of OpenAI's chat-completions protocol: "openai:MODEL".

The server's address and the key come from the environment and are written nowhere: not into a card,
a result, a log or an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import ipaddress
import os
import queue
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from urllib.parse import urlsplit

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, InputError, PsyprobeError, UnfinishedError
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.chat.openai_protocol import OPENAI, URL_VARIABLE
from psyprobe.observers.chat.openai_sending import (
    Endpoint,
    LeftOutError,
    Question,
    Sender,
    control_prompt,
    data_url,
)
from psyprobe.observers.chat.prices import Budget, Price
from psyprobe.observers.chat.protocol import (
    Answer,
    Answering,
    Decoding,
    Inquiry,
)
from psyprobe.observers.images import checked_size
from psyprobe.observers.protocol import Card

#: Images whose PNG is remembered: 25 prompts share one.
_REMEMBERED = 8
#: Questions that are drawn from the caller for each that may be under way, so that those that wait
#: to be tried again take no place.
_AHEAD = 4
#: The largest number that an option may be, and characters of the longest address.
_MOST = 1e6
_LONGEST_ADDRESS = 2000
#: Locked while a sender is made, so that threads share one.
_OPENING = threading.Lock()


class OpenAIObserver(Answering):
    """A chat model behind an OpenAI-compatible server: vLLM, SGLang, Ollama, OpenAI or others.

    Images go as PNG (lossless) in data URLs, before the text. Log-probabilities of the first token
    are asked for; where a server refuses or leaves them out, the text alone comes back
    (``first_tokens`` is None). Many questions are under way at once; each is sent again, after a
    pause, on HTTP 429, 5xx, time-outs, broken connections and JSON that breaks off. A wrong key or
    an unknown model ends the run with one sentence, after a few attempts more where the server has
    answered before. A question that is refused while others are answered has this refusal as its
    answer: ``finish`` is "refused", and ``refusal`` what the server said.

    Parameters
    ----------
    model : str
        The model's name at the server.
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
    >>> from psyprobe.observers.simulated.serving import SimulatedServer
    >>> with SimulatedServer(load_observer("simulated:flat")) as server:
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
        counts = (
            (concurrency, "concurrency", 1),
            (retries, "retries", 0),
            (thinking, "thinking", 0),
        )
        for count, name, lowest in counts:
            if type(count) is not int or not lowest <= count <= _MOST:
                raise InputError(
                    f"{name} is {count!r}; give a whole number from {lowest} to {_MOST:g}"
                )
        for name, value in (("rate", rate), ("timeout", timeout)):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 < value <= _MOST):
                raise InputError(
                    f"{name} is {value!r}; give a finite number > 0 and up to {_MOST:g}"
                )
        if detail not in ("high", "low", "auto"):
            raise InputError(f"detail is {detail!r}; give 'high', 'low' or 'auto'")
        url = os.environ.get(URL_VARIABLE) or None if base_url is None else base_url
        self.endpoint = Endpoint(
            model, url, concurrency, rate, timeout, retries, detail, thinking
        )
        self.concurrency = concurrency
        self.rate = rate
        self._encoded: deque[tuple[FloatArray, bytes]] = deque(maxlen=_REMEMBERED)
        self._sender: Sender | None = None
        options = {"version": 1, "detail": detail, "endpoint": _endpoint_digest(url)}
        if server:
            options["server"] = str(server)
        self.card = Card(
            f"openai:{model}",
            "answer",
            input_size=_check_input_size(input_size),
            device="server",
            weights="behind a server",
            options=options,
            software={"aiohttp": importlib.metadata.version("aiohttp")},
        )

    def __repr__(self) -> str:
        return f"OpenAIObserver({self.endpoint.model!r})"

    def __enter__(self) -> OpenAIObserver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> JsonObject:
        return {**self.__dict__, "_sender": None}

    def served(self, certain: bool) -> dict[str, str]:
        """Ask the server which model it serves: its listing, model name and fingerprint.

        Parameters
        ----------
        certain : bool
            Whether a small question is put where the server's list does not tell.

        Raises
        ------
        PsyprobeError
            The question has no answer; never where it need not be certain.
        """
        sender = self.sending()
        line = sender.wait_for(sender.describe_model)
        listed = {"listed": line} if line else {}
        if listed.get("listed", self.endpoint.model) != self.endpoint.model:
            return listed
        if not certain:
            return listed
        inquiry = Inquiry(
            control_prompt(), decoding=Decoding(temperature=1.0, logprobs=False)
        )
        return {**listed, **self._reply(inquiry).named}

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Ask the server one question, wait for the answer, and warn of what it refused."""
        sender = self.sending()
        future = sender.submit(self.question(inquiry))
        try:
            return future.result()
        finally:
            future.cancel()
            _warn_of_notices(sender)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answer many questions, each as soon as it can be, in any order.

        Inquiries are drawn as there is room; four times `concurrency` are out at most, those
        included that wait to be tried again. Closing the generator takes back what is under way.

        Raises
        ------
        PsyprobeError
            A question cannot be answered; what else has been answered by then is yielded before.
            If others were answered while it was tried, the remaining ones are asked before.
        UnfinishedError
            Another question might not fit into the budget; what was under way is yielded before.
        """
        sender = self.sending()
        source = iter(inquiries)
        pending: dict[Future[Answer], Inquiry] = {}
        done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()
        is_open = True
        answered = 0
        left_out: list[LeftOutError] = []
        budget_spent: UnfinishedError | None = None
        try:
            while is_open or pending:
                while (
                    is_open
                    and len(pending) < _AHEAD * self.concurrency
                    and done.empty()
                ):
                    inquiry = next(source, None)
                    if inquiry is None:
                        is_open = False
                        break
                    future = sender.submit(self.question(self.checked(inquiry)))
                    pending[future] = inquiry
                    future.add_done_callback(done.put)
                if not pending:
                    break
                future = done.get()
                inquiry = pending.pop(future)
                _warn_of_notices(sender)
                problem = future.exception()
                if problem is None:
                    answered += 1
                    yield inquiry, future.result()
                elif isinstance(problem, UnfinishedError):
                    # Nothing new is sent; what is under way is paid for, and waited for.
                    is_open = False
                    budget_spent = problem
                elif isinstance(problem, LeftOutError) and len(left_out) < answered:
                    left_out.append(problem)
                else:
                    for future in list(pending):
                        if future.done() and future.exception() is None:
                            yield pending.pop(future), future.result()
                    raise problem
        finally:
            for future in pending:
                future.cancel()
        if budget_spent is not None:
            raise budget_spent
        if left_out:
            count = len(left_out)
            raise PsyprobeError(
                f"{left_out[-1]} ({count} of {answered + count} questions are without an answer)"
            )

    def close(self) -> None:
        """Close all connections to the server; the next question opens them again."""
        if self._sender is not None:
            self._finalizer()
            self._sender = None

    def sending(self) -> Sender:
        """Return the object that sends requests to the server, made at first need."""
        with _OPENING:
            # A fork does not copy the thread that sends.
            if self._sender is None or self._sender.pid != os.getpid():
                self._sender = Sender(self.endpoint)
                self._finalizer = weakref.finalize(self, self._sender.close)
            self._sender.price = self.price
            self._sender.budget = self.budget
            return self._sender

    def _check_image(self, image: FloatArray) -> None:
        """Check nothing, since encoding checks each image once for all questions."""

    def question(self, inquiry: Inquiry) -> Question:
        """Encode a question's images as data URLs, so that it can be sent."""
        return Question(inquiry, [self._url(image) for image in inquiry.all_images])

    def _url(self, image: FloatArray) -> bytes:
        """Encode an image as a data URL, or recall that of a recent image."""
        array = np.asarray(image)
        for encoded_array, url in tuple(self._encoded):
            if encoded_array is array:
                return url
        # Comparing all pixels is as fast as a digest, and finds out if an array was changed.
        for encoded_array, url in tuple(self._encoded):
            if np.array_equal(encoded_array, array):
                return url
        super()._check_image(array)
        url = data_url(array)
        is_fixed = array.base is None and not array.flags.writeable
        self._encoded.appendleft((array if is_fixed else array.copy(), url))
        return url


def _warn_of_notices(sender: Sender) -> None:
    """Warn once of request fields that a server refused."""
    while sender.notices:
        warnings.warn(sender.notices.popleft(), ConditionWarning, stacklevel=2)


def _check_input_size(size: int | Sequence[int] | None) -> tuple[int, int] | None:
    """Check an input size of 8 to 8192 px, and return (height, width), or None."""
    if size is None:
        return None
    height, width = checked_size(size)
    if not 8 <= min(height, width) <= max(height, width) <= 8192:
        raise InputError(
            f"input_size is {size!r}; give pixels from 8 to 8192, or two such numbers as "
            "[height, width]"
        )
    return height, width


def _endpoint_digest(url: str | None) -> str:
    """Hash a server's address, to tell servers apart without giving it away.

    Loopback counts as one server whatever the port, so that one that is started again there is the
    same.
    """
    address = OPENAI if url is None else url
    host: str | None = ""
    with contextlib.suppress(ValueError):
        if isinstance(address, str) and len(address) <= _LONGEST_ADDRESS:
            parts = urlsplit(address)
            # An invalid port raises only where it is read.
            if parts.scheme in ("http", "https") and parts.port != 0:
                host = parts.hostname
    if not host:
        raise InputError(
            f"what base_url or {URL_VARIABLE} gives is no address of a server; give one such as "
            "http://127.0.0.1:8000/v1"
        )
    if parts.username or parts.password or parts.query:
        raise InputError(
            f"the address in base_url or {URL_VARIABLE} holds a user, a password or a query, "
            "which libraries write into logs; put the key into OPENAI_API_KEY and leave the rest "
            "out"
        )
    with contextlib.suppress(ValueError):  # a name, and no number
        if ipaddress.ip_address(host).is_loopback:
            return "loopback"
    if host == "localhost":
        return "loopback"
    place = f"{parts.netloc.casefold()}{parts.path.rstrip('/')}"
    return hashlib.sha256(place.encode()).hexdigest()[:12]
