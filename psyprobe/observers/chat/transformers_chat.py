"""Ask chat models of the transformers library in this process: "transformers:MODEL_OR_PATH"."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.chat.protocol import (
    Answer,
    Answering,
    Decoding,
    Inquiry,
    image_digest,
)
from psyprobe.observers.chat.transformers_model import (
    LocalOptions,
    load_model,
)
from psyprobe.observers.encoders.network import exact_arithmetic, first_line

#: How many of the likeliest first tokens an answer lists at least.
LIKELIEST = 20
#: How far log-probabilities may differ with and without sharing, in float32 and in shorter formats.
SLACK = 1e-3
SLACK_SHORT = 0.25


@dataclass(frozen=True)
class ChatOptions(LocalOptions):
    """The options of a chat model in this process.

    Parameters
    ----------
    template : str
        Text around the prompt where the model has no chat template: "Question: {prompt} Answer:".
    batch_size : int
        How many inquiries are worked on at once.
    """

    template: str = "{prompt}"
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(
                f"batch_size is {self.batch_size}; give a whole number of at least 1"
            )
        if "{prompt}" not in self.template:
            raise InputError(
                f"the template {self.template!r} lacks {{prompt}}, where the question goes"
            )


class TransformersChat(Answering):
    """A vision-language model that answers with the whole distribution of its first token.

    Its source is a folder, or a name in the transformers library's cache of the hub.

    Decoding follows the inquiry alone: temperature, penalties and forced tokens of the model's
    repository are left out. Prompts about the same images share the work on those where that is
    possible: each prompt continues from the model's state after the image. The first time, answers
    with and without sharing are compared, and if they differ nothing is shared from then on.
    """

    fewest_images = 1

    def __init__(self, source: str, options: ChatOptions) -> None:
        chat = load_model(f"transformers:{source}", source, options)
        self._chat = chat
        self._pixels = chat.pixels
        self._template = options.template
        self._batch_size = options.batch_size
        self.bits = chat.pixels.bits
        self._model = chat.model
        self._processor = chat.processor
        self._tokenizer = chat.processor.tokenizer
        self._has_template = bool(getattr(chat.processor, "chat_template", None))
        config = chat.model.config
        self._image_token: int | None = getattr(
            config, "image_token_id", getattr(config, "image_token_index", None)
        )
        self._lock = threading.Lock()  # the model holds state between tokens
        can_share = (
            self._has_template
            and self._padding_side == "left"
            and self._image_token is not None
        )
        #: Whether prompts continue from the model's state after the image; None until the first
        #: trial.
        self.shares_prefix: bool | None = None if can_share else False
        template = "chat" if self._has_template else options.template
        self.card = replace(
            chat.card, options={**chat.card.options, "template": template}
        )
        image = np.zeros(0)
        text_of_one, text_of_two = (
            self._text(Inquiry("", (image,) * count)) for count in (1, 2)
        )
        # A template with room for one image writes the same for two.
        self.images_at_once = None if len(text_of_two) > len(text_of_one) else 1

    def delivered(self, image: FloatArray) -> FloatArray:
        """Return the image that the network gets, as drive values (h, w, 3)."""
        return self._pixels.delivered(image)

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Ask the model one question, and return its answer."""
        return next(self._ask_in_batches([inquiry]))[1]

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answer many questions, `batch_size` at once, in any order.

        It is fastest where questions about the same image come together. The latency of an answer
        is that of its batch. First tokens are complete: every token that spells one of the words,
        and the 20 likeliest.
        """
        return self._ask_in_batches(map(self.checked, inquiries))

    def _ask_in_batches(
        self, inquiries: Iterable[Inquiry]
    ) -> Iterator[tuple[Inquiry, Answer]]:
        """Ask the model questions in batches, reusing what it computed of a shared image."""
        source = iter(inquiries)
        while batch := list(itertools.islice(source, self._batch_size)):
            remaining: list[Inquiry] = []
            for group in _group_by_images(batch):
                answers = self._continue_from_image(group)
                if answers is None:
                    remaining += group
                else:
                    yield from zip(group, answers, strict=True)
            if remaining:
                yield from zip(remaining, self._from_scratch(remaining)[0], strict=True)

    def _from_scratch(self, group: list[Inquiry]) -> tuple[list[Answer], FloatArray]:
        """Answer questions about any images, their texts padded to one length.

        Returns what `_generate` does.
        """
        start = time.perf_counter()
        inputs = self._encode(group)
        with self._lock:
            return self._generate(inputs, group, start)

    def _continue_from_image(self, group: list[Inquiry]) -> list[Answer] | None:
        """Answer questions about the same images, computing what they share once.

        Returns None where that cannot be done.
        """
        import torch

        if len(group) == 1 or self.shares_prefix is False:
            return None
        start = time.perf_counter()
        parts = prefix_inputs(
            self._encode(group), self._image_token, self._tokenizer.pad_token_id
        )
        if parts is None:
            return None
        prefix, inputs = parts
        window = getattr(self._model.config.get_text_config(), "sliding_window", None)
        if window is not None and inputs["input_ids"].shape[1] > window:
            return None  # the padding between image and words would push the image out of view
        try:
            with self._lock:
                with torch.inference_mode(), exact_arithmetic(self._chat.device):
                    state = self._model(
                        **prefix, use_cache=True, logits_to_keep=1
                    ).past_key_values
                    state.batch_repeat_interleave(len(group))
                inputs["past_key_values"] = state
                answers, logprobs = self._generate(inputs, group, start)
        except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
            if self.shares_prefix:
                raise
            self.shares_prefix = False  # this architecture cannot continue from a state
            return None
        if self.shares_prefix is None:
            _, unshared_logprobs = self._from_scratch(group)
            likely = unshared_logprobs > np.log(1e-6)
            slack = SLACK if self.card.dtype == "float32" else SLACK_SHORT
            difference = np.abs(logprobs - unshared_logprobs)[likely].max()
            self.shares_prefix = bool(difference < slack)
        return answers if self.shares_prefix else None

    @cached_property
    def _padding_side(self) -> str:
        """The side on which texts are padded: left for decoders, right for encoders.

        T5 counts distances between tokens over the padding between them.
        """
        config = self._model.config
        configs = (config, config.get_text_config())
        has_encoder = any(
            getattr(part, "is_encoder_decoder", False) for part in configs
        )
        return "right" if has_encoder else "left"

    def _text(self, inquiry: Inquiry) -> str:
        """Build the text that the model reads, with placeholders for the images."""
        if not self._has_template:
            if inquiry.system:
                raise InputError(
                    f"{self.card.name} has no chat template and so no place for a system "
                    "instruction"
                )
            return self._template.replace("{prompt}", inquiry.prompt)
        messages: list[JsonObject] = []
        if inquiry.system:
            parts = [{"type": "text", "text": inquiry.system}]
            messages.append({"role": "system", "content": parts})
        parts = [{"type": "image"} for _ in inquiry.images]
        parts.append({"type": "text", "text": inquiry.prompt})
        messages.append({"role": "user", "content": parts})
        try:
            text: str = self._processor.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
        except Exception as problem:  # a template may raise anything
            if not inquiry.system:
                raise
            reason = f"its chat template says {first_line(problem)!r}"
            raise InputError(
                f"{self.card.name} takes no system instruction: {reason}"
            ) from None
        return text

    def _encode(self, group: list[Inquiry]) -> JsonObject:
        """Build the model's input tensors of some questions, padded to one length."""
        texts = [self._text(inquiry) for inquiry in group]
        images = {id(image): image for inquiry in group for image in inquiry.images}
        codes = dict(
            zip(images, self._pixels.hand_over(list(images.values())), strict=True)
        )
        begin = self._tokenizer.bos_token
        arguments: JsonObject = {}
        if begin and all(text.startswith(begin) for text in texts):
            arguments["add_special_tokens"] = False
        encoded = self._processor(
            images=[
                [codes[id(image)] for image in inquiry.images] for inquiry in group
            ],
            text=texts,
            padding=True,
            padding_side=self._padding_side,
            return_tensors="pt",
            images_kwargs=dict(self._pixels.options),
            **arguments,
        )
        if "qformer_attention_mask" in encoded:
            # A Q-Former counts positions from the first column, padding included: its padding
            # belongs on the right.
            order = (1 - encoded["qformer_attention_mask"]).argsort(dim=1, stable=True)
            for key in ("qformer_input_ids", "qformer_attention_mask"):
                encoded[key] = encoded[key].gather(1, order)
        return self._chat.inputs(encoded)

    def _generate(
        self, inputs: JsonMapping, group: list[Inquiry], start: float
    ) -> tuple[list[Answer], FloatArray]:
        """Generate answers, with the log-probabilities of first tokens, (N, vocabulary)."""
        import torch

        decodings = [inquiry.decoding for inquiry in group]
        is_sampled = any(decoding.temperature for decoding in decodings)
        with torch.inference_mode(), exact_arithmetic(self._chat.device):
            output = self._model.generate(
                **inputs,
                max_new_tokens=max(decoding.max_tokens for decoding in decodings),
                do_sample=False,
                logits_processor=[Noise(decodings)] if is_sampled else None,
                output_logits=True,
                return_dict_in_generate=True,
            )
            logprobs = (
                torch.log_softmax(output.logits[0].double(), dim=-1).cpu().numpy()
            )
        if np.isnan(logprobs).any():
            raise PsyprobeError(
                f"{self.card.name}: the first token's probabilities hold NaN"
            )
        tokens = output.sequences[:, -len(output.logits) :].cpu().numpy()
        lengths = inputs["attention_mask"].sum(-1).cpu().tolist()
        latency = time.perf_counter() - start
        rows = zip(group, tokens, logprobs, lengths, strict=True)
        return [self._build_answer(*row, latency) for row in rows], logprobs

    def _build_answer(
        self,
        inquiry: Inquiry,
        tokens: FloatArray,
        logprobs: FloatArray,
        tokens_in: int,
        latency: float,
    ) -> Answer:
        """Build an answer from generated tokens, cut at the end token, and log-probabilities."""
        tokens = tokens[: inquiry.decoding.max_tokens]
        (ends,) = np.nonzero(np.isin(tokens, self._end_tokens))
        tokens = tokens[: ends[0] + 1] if ends.size else tokens
        has_logprobs = inquiry.decoding.logprobs
        return Answer(
            text=self._tokenizer.decode(tokens, skip_special_tokens=True),
            first_tokens=self._first_tokens(inquiry.words, logprobs)
            if has_logprobs
            else None,
            complete=has_logprobs,
            finish="stop" if ends.size else "length",
            tokens_in=int(tokens_in),
            tokens_out=len(tokens),
            latency=latency,
            model=self.card.name,
            server=f"transformers {self.card.software['transformers']}",
        )

    def _first_tokens(
        self, words: Sequence[str], logprobs: FloatArray
    ) -> tuple[tuple[str, float], ...]:
        """List the tokens that spell a word, and the likeliest, with log-probabilities."""
        spellings = (self._spellings.get(word.strip().casefold(), ()) for word in words)
        tokens = set(np.argsort(logprobs)[-LIKELIEST:].tolist()).union(*spellings)
        ordered = sorted(tokens, key=lambda token: -logprobs[token])
        return tuple(
            (self._vocabulary[token], float(logprobs[token])) for token in ordered
        )

    @cached_property
    def _vocabulary(self) -> list[str]:
        """The text of every token; "" for those that only the network has."""
        texts = self._tokenizer.batch_decode(
            [[token] for token in range(len(self._tokenizer))]
        )
        size = self._model.get_output_embeddings().weight.shape[0]
        return [*texts, *[""] * (size - len(texts))]

    @cached_property
    def _spellings(self) -> dict[str, list[int]]:
        """The tokens that spell a word, whatever their case and surrounding space."""
        spellings: dict[str, list[int]] = {}
        for token, text in enumerate(self._vocabulary):
            spellings.setdefault(text.strip().casefold(), []).append(token)
        return spellings

    @cached_property
    def _end_tokens(self) -> list[int]:
        """The tokens that end a text, of all parts of the model."""
        tokens: list[int] = []
        for part in self._model.modules():
            config = getattr(part, "generation_config", None)
            token = getattr(config, "eos_token_id", None)
            if token is not None:
                tokens += token if isinstance(token, list) else [token]
        return tokens


def _group_by_images(batch: list[Inquiry]) -> Iterable[list[Inquiry]]:
    """Group questions that show the same images after the same system text."""
    groups: dict[tuple[str, ...], list[Inquiry]] = {}
    for inquiry in batch:
        key = (inquiry.system, *map(image_digest, inquiry.images))
        groups.setdefault(key, []).append(inquiry)
    return groups.values()


class Noise:
    """A logits processor that draws tokens by the Gumbel-max rule.

    The likeliest token after Gumbel noise is a draw from the softmax.

    Each inquiry has its own stream of random numbers, so that a seed gives the same text in any
    batch.
    """

    def __init__(self, decodings: Sequence[Decoding]) -> None:
        self._temperatures = [decoding.temperature for decoding in decodings]
        self._streams = [np.random.default_rng(decoding.seed) for decoding in decodings]

    def __call__(self, tokens: Any, scores: Any) -> Any:
        """Divide scores (N, vocabulary) by temperature and add noise, in rows above 0."""
        import torch

        noisy_scores = scores.double()
        for row, temperature in enumerate(self._temperatures):
            if temperature:
                noise = self._streams[row].gumbel(size=scores.shape[-1])
                noisy_scores[row] /= temperature
                noisy_scores[row] += torch.from_numpy(noise).to(scores.device)
        return noisy_scores


def prefix_inputs(
    inputs: JsonMapping, image_token: int | None, padding: int
) -> tuple[JsonObject, JsonObject] | None:
    """Split model inputs into the beginning that all questions share, and the rest of each.

    `inputs` are padded on the left and hold the same images. Returns the inputs of the shared
    beginning with the images, one row, and the text inputs of all rows, padded after that
    beginning; None where an image comes after it.
    """
    import torch

    tokens = inputs["input_ids"]
    mask = inputs["attention_mask"].bool()

    def unpadded(values: Any) -> list[Any]:
        return [row[is_token] for row, is_token in zip(values, mask, strict=True)]

    rows = unpadded(tokens)
    lengths = [len(row) for row in rows]
    shortest = min(lengths)
    longest = max(lengths)
    agree = torch.stack([row[:shortest] == rows[0][:shortest] for row in rows]).all(0)
    # At least one token of each row remains, so that there is something to continue with.
    shared = min(int(agree.long().cumprod(0).sum()), shortest - 1)
    if any(bool((row[shared:] == image_token).any()) for row in rows):
        return None
    prefix = {}
    texts = {}
    for name, values in inputs.items():
        if values.shape != tokens.shape:
            prefix[name] = values[: len(values) // len(rows)]
            continue
        fill = padding if name == "input_ids" else 0
        padded = []
        for row in unpadded(values):
            gap = row.new_full((longest - len(row),), fill)
            padded.append(torch.cat([row[:shared], gap, row[shared:]]))
        prefix[name] = padded[0][None, :shared]
        texts[name] = torch.stack(padded)
    return prefix, texts
