"""Chat models of every provider that inspect-ai knows: "inspect:PROVIDER/MODEL"."""

from __future__ import annotations

import base64
import importlib
import importlib.metadata
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import lru_cache
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import encode_png
from psyprobe.observers.chat.event_loop import EventLoop
from psyprobe.observers.chat.protocol import Answer, Answering, Decoding, Inquiry, eight_bit
from psyprobe.observers.protocol import Card

#: Tokens whose log-probabilities are asked for: as many as OpenAI's protocol lists.
_LISTED = 20
#: What inspect-ai calls the end of a reply, and what `Answer` calls it.
_FINISH = {"max_tokens": "length", "model_length": "length"}


def inspect_card(model: str, input_size: int | None = None) -> Card:
    """The card of a model that inspect-ai asks, by us or by itself.

    Parameters
    ----------
    model : str
        As inspect-ai calls it, PROVIDER/MODEL.
    input_size : int, optional
        Pixels a side at which the model looks, where that is known.
    """
    if input_size is not None and (type(input_size) is not int or input_size < 1):
        raise InputError(f"input_size is {input_size!r} px; give a whole number of at least 1")
    return Card(
        f"inspect:{model}",
        "answer",
        input_size=None if input_size is None else (input_size, input_size),
        device="server",
        weights="asked by inspect-ai",
        options={"version": 1},
        software={"inspect_ai": importlib.metadata.version("inspect_ai")},
    )


class InspectObserver(Answering):
    """A chat model asked through inspect-ai: of Anthropic, Google, Bedrock, Mistral, vLLM and its
    other providers.

    Images go as PNG (lossless) in data URLs, before the text. Keys and addresses are those of
    inspect-ai, from its environment variables. It tries again what a provider refuses for a while.

    Parameters
    ----------
    model : str
        As inspect-ai calls it, PROVIDER/MODEL.
    concurrency : int
        Questions under way at once.
    logprobs : bool
        Whether log-probabilities of the first token are asked for, which some providers refuse.
    input_size : int, optional
        Pixels a side at which the model looks, where you know them: stimuli are then drawn at this
        size.
    **model_args
        What the provider of inspect-ai takes besides.
    """

    bits = 8
    takes_all = True

    def __init__(
        self,
        model: str,
        *,
        concurrency: int = 8,
        logprobs: bool = True,
        input_size: int | None = None,
        **model_args: Any,
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise InputError(f"concurrency is {concurrency!r}; give a whole number of at least 1")
        self.card = inspect_card(model, input_size)
        self._concurrency = concurrency
        self._logprobs = logprobs
        config = _module("model").GenerateConfig(max_connections=concurrency)
        try:
            self._model = _module("model").get_model(model, config=config, **model_args)
        except Exception as error:  # each provider has its own, for a missing package or key
            raise PsyprobeError(f"inspect-ai has no {model!r}: {_line(error)}") from None
        self._loop = EventLoop("inspect-ai")
        weakref.finalize(self, self._loop.close)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answers to many questions, as they come, in any order; `concurrency` of them are under
        way.
        """
        source = iter(inquiries)
        out: dict[Future[Answer], Inquiry] = {}
        try:
            while True:
                while len(out) < self._concurrency and (inquiry := next(source, None)) is not None:
                    out[self._asked(self.checked(inquiry))] = inquiry
                if not out:
                    return
                for future in wait(out, return_when=FIRST_COMPLETED).done:
                    yield out.pop(future), self._heard(future)
        finally:
            for future in out:
                future.cancel()

    def _reply(self, inquiry: Inquiry) -> Answer:
        return self._heard(self._asked(inquiry))

    def _asked(self, inquiry: Inquiry) -> Future[Answer]:
        return self._loop.soon(self._generate, inquiry)

    def _heard(self, future: Future[Answer]) -> Answer:
        try:
            return future.result()
        except PsyprobeError:
            raise
        except Exception as error:
            raise PsyprobeError(f"{self.card.name} gave no answer: {_line(error)}") from None

    async def _generate(self, inquiry: Inquiry) -> Answer:
        told = generate_config(inquiry.decoding, logprobs=self._logprobs)
        config = _module("model").GenerateConfig(**told)
        return answer_of(await self._model.generate(messages_of(inquiry), config=config))


def messages_of(inquiry: Inquiry) -> list[Any]:
    """A question as the messages of inspect-ai: system text, examples, then images and prompt."""
    model = _module("model")
    messages: list[Any] = []
    if inquiry.system:
        messages.append(model.ChatMessageSystem(content=inquiry.system))
    for example in inquiry.examples:
        messages.append(_shown(example.images, example.prompt))
        messages.append(model.ChatMessageAssistant(content=example.answer))
    return [*messages, _shown(inquiry.images, inquiry.prompt)]


def generate_config(decoding: Decoding, *, logprobs: bool) -> dict[str, Any]:
    """A decoding as the fields of inspect-ai's ``GenerateConfig`` that it sets.

    Raises
    ------
    InputError
        It holds a form of the reply, which inspect-ai takes in another shape.

    Examples
    --------
    >>> generate_config(Decoding(max_tokens=4), logprobs=False)
    {'temperature': 0.0, 'max_tokens': 4}
    """
    told = decoding.to_dict()
    if told.pop("response_format", None) is not None:
        raise InputError("questions put by inspect-ai take no asking.response_format; leave it out")
    wanted = told.pop("logprobs") and logprobs
    told |= {"logprobs": True, "top_logprobs": _LISTED} if wanted else {}
    return {name: value for name, value in told.items() if value is not None}


def answer_of(output: Any) -> Answer:
    """What came back, from inspect-ai's ``ModelOutput``; as it was, where it comes from a log that
    psyprobe wrote.

    Raises
    ------
    PsyprobeError
        There is no reply in it.
    """
    if not output.choices:
        raise PsyprobeError(
            f"{output.model or 'the model'} gave no answer: {output.error or 'there is no reply'}"
        )
    choice = output.choices[0]
    usage = output.usage
    kept = (output.metadata or {}).get("psyprobe", {})
    parts = choice.message.content if isinstance(choice.message.content, list) else []
    listed = (
        choice.logprobs.content[0].top_logprobs
        if choice.logprobs and choice.logprobs.content
        else None
    )
    told = {
        "finish": _FINISH.get(choice.stop_reason, choice.stop_reason),
        "tokens_in": usage.input_tokens if usage else None,
        "tokens_out": usage.output_tokens if usage else None,
        "latency": output.time or 0.0,
        "cost": usage.total_cost if usage else None,
        "model": output.model,
        "server": "inspect-ai",
        "thinking": "\n".join(part.reasoning for part in parts if part.type == "reasoning"),
        "tokens_thinking": usage.reasoning_tokens if usage else None,
    }
    first = tuple((each.token, each.logprob) for each in listed) if listed else None
    return Answer(output.completion, first, **{**told, **kept})


def _shown(images: tuple[FloatArray, ...], prompt: str) -> Any:
    model = _module("model")
    codes = [eight_bit(image) for image in images]
    shown = [model.ContentImage(image=_url(code.shape, code.tobytes())) for code in codes]
    return model.ChatMessageUser(content=[*shown, model.ContentText(text=prompt)])


@lru_cache(maxsize=8)
def _url(shape: tuple[int, ...], codes: bytes) -> str:
    """A PNG as a data URL; all wordings of a trial share it."""
    png = encode_png(np.frombuffer(codes, np.uint8).reshape(shape), noise=True)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _module(name: str) -> Any:
    return importlib.import_module(f"inspect_ai.{name}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
