"""Ask chat models of every provider that inspect-ai knows: "inspect:PROVIDER/MODEL"."""

from __future__ import annotations

import base64
import importlib
import importlib.metadata
import itertools
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import lru_cache
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import encode_png
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.chat.event_loop import EventLoop
from psyprobe.observers.chat.protocol import (
    Answer,
    Answering,
    Decoding,
    Inquiry,
    eight_bit,
)
from psyprobe.observers.images import checked_size
from psyprobe.observers.protocol import Card

#: Tokens whose log-probabilities are asked for: as many as OpenAI's protocol lists.
_LISTED = 20
#: The `finish` of an `Answer` by inspect-ai's word for it, where the words differ.
_FINISH = {"max_tokens": "length", "model_length": "length"}


def inspect_card(model: str, input_size: int | None = None) -> Card:
    """Build the card of a model that is asked through inspect-ai.

    Parameters
    ----------
    model : str
        inspect-ai's name for it, PROVIDER/MODEL.
    input_size : int, optional
        Pixels a side at which the model looks, where that is known.
    """
    return Card(
        f"inspect:{model}",
        "answer",
        input_size=None if input_size is None else checked_size(input_size),
        device="server",
        weights="asked by inspect-ai",
        options={"version": 1},
        software={"inspect_ai": importlib.metadata.version("inspect_ai")},
    )


class InspectObserver(Answering):
    """A chat model of Anthropic, Google, Bedrock, Mistral and others, asked through inspect-ai.

    Images go as PNG (lossless) in data URLs, before the text. Keys and addresses are those of
    inspect-ai, from its environment variables. It tries again what a provider refuses for a while.

    Parameters
    ----------
    model : str
        inspect-ai's name for it, PROVIDER/MODEL.
    concurrency : int
        Questions under way at once.
    logprobs : bool
        Whether log-probabilities of the first token are asked for, which some providers refuse.
    input_size : int, optional
        Pixels a side at which the model looks, where you know them: stimuli are then drawn at this
        size.
    **model_args
        Further arguments of inspect-ai's provider.
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
            raise InputError(
                f"concurrency is {concurrency!r}; give a whole number of at least 1"
            )
        self.card = inspect_card(model, input_size)
        self._concurrency = concurrency
        self._logprobs = logprobs
        config = _import_models().GenerateConfig(max_connections=concurrency)
        try:
            self._model = _import_models().get_model(model, config=config, **model_args)
        except (
            Exception
        ) as error:  # each provider has its own, for a missing package or key
            raise PsyprobeError(
                f"inspect-ai has no {model!r}: {_describe_error(error)}"
            ) from None
        self._loop = EventLoop("inspect-ai")
        weakref.finalize(self, self._loop.close)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answer many questions in any order, `concurrency` of them at a time."""
        source = iter(inquiries)
        pending: dict[Future[Answer], Inquiry] = {}
        try:
            while True:
                for inquiry in itertools.islice(
                    source, self._concurrency - len(pending)
                ):
                    pending[self._submit(self.checked(inquiry))] = inquiry
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(future), self._wait_for(future)
        finally:
            for future in pending:
                future.cancel()

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Ask the model one question, and wait for the answer."""
        return self._wait_for(self._submit(inquiry))

    def _submit(self, inquiry: Inquiry) -> Future[Answer]:
        """Start to ask the model one question, in the loop's thread."""
        return self._loop.submit(self._generate, inquiry)

    def _wait_for(self, future: Future[Answer]) -> Answer:
        """Wait for an answer, turning a failure of inspect-ai into one clear error."""
        try:
            return future.result()
        except PsyprobeError:
            raise
        except Exception as error:
            raise PsyprobeError(
                f"{self.card.name} gave no answer: {_describe_error(error)}"
            ) from None

    async def _generate(self, inquiry: Inquiry) -> Answer:
        """Ask the model through inspect-ai, and convert its output to an answer."""
        fields = generate_config(inquiry.decoding, logprobs=self._logprobs)
        config = _import_models().GenerateConfig(**fields)
        return answer_of(
            await self._model.generate(messages_of(inquiry), config=config)
        )


def messages_of(inquiry: Inquiry) -> list[Any]:
    """Convert a question to inspect-ai's messages: system text, examples, images, prompt."""
    model = _import_models()
    messages: list[Any] = []
    if inquiry.system:
        messages.append(model.ChatMessageSystem(content=inquiry.system))
    for example in inquiry.examples:
        messages.append(_user_message(example.images, example.prompt))
        messages.append(model.ChatMessageAssistant(content=example.answer))
    return [*messages, _user_message(inquiry.images, inquiry.prompt)]


def generate_config(decoding: Decoding, *, logprobs: bool) -> JsonObject:
    """Convert decoding settings to the fields of inspect-ai's `GenerateConfig`.

    Raises
    ------
    InputError
        It holds a form of the reply, which inspect-ai takes in another shape.

    Examples
    --------
    >>> generate_config(Decoding(max_tokens=4), logprobs=False)
    {'temperature': 0.0, 'max_tokens': 4}
    """
    fields = decoding.to_dict()
    if fields.pop("response_format", None) is not None:
        raise InputError(
            "questions put by inspect-ai take no asking.response_format; leave it out"
        )
    if fields.pop("logprobs") and logprobs:
        fields |= {"logprobs": True, "top_logprobs": _LISTED}
    return {name: value for name, value in fields.items() if value is not None}


def answer_of(output: Any) -> Answer:
    """Convert inspect-ai's ``ModelOutput`` to an answer.

    From a log that psyprobe wrote, the answer comes back with all its fields as they were.

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
    logged_fields = (output.metadata or {}).get("psyprobe", {})
    parts = choice.message.content if isinstance(choice.message.content, list) else []
    tokens = choice.logprobs.content if choice.logprobs else None
    listed = tokens[0].top_logprobs if tokens else None
    fields = {
        "finish": _FINISH.get(choice.stop_reason, choice.stop_reason),
        "tokens_in": usage.input_tokens if usage else None,
        "tokens_out": usage.output_tokens if usage else None,
        "latency": output.time or 0.0,
        "cost": usage.total_cost if usage else None,
        "model": output.model,
        "server": "inspect-ai",
        "thinking": "\n".join(
            part.reasoning for part in parts if part.type == "reasoning"
        ),
        "tokens_thinking": usage.reasoning_tokens if usage else None,
    }
    first_tokens = (
        tuple((token.token, token.logprob) for token in listed) if listed else None
    )
    return Answer(output.completion, first_tokens, **{**fields, **logged_fields})


def _user_message(images: tuple[FloatArray, ...], prompt: str) -> Any:
    """Build inspect-ai's message of a user from images and a prompt."""
    model = _import_models()
    codes = [eight_bit(image) for image in images]
    parts = [
        model.ContentImage(image=_url(code.shape, code.tobytes())) for code in codes
    ]
    return model.ChatMessageUser(content=[*parts, model.ContentText(text=prompt)])


@lru_cache(maxsize=8)
def _url(shape: tuple[int, ...], codes: bytes) -> str:
    """Encode 8-bit codes as a PNG in a data URL, cached for the prompts of a trial."""
    png = encode_png(np.frombuffer(codes, np.uint8).reshape(shape), noise=True)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _import_models() -> Any:
    """Import inspect-ai's models on first use."""
    return importlib.import_module("inspect_ai.model")


def _describe_error(error: Exception) -> str:
    """Make an error's message one line, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
