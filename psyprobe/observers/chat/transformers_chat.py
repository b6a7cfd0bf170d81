"""Chat models of the transformers library, in this process: "transformers:MODEL_OR_PATH"."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.protocol import Answer, Answering, Decoding, Inquiry, image_digest
from psyprobe.observers.chat.transformers_model import (
    ChatModel,
    LocalOptions,
    PixelPath,
    load_model,
    pixel_path,
    vision_tower,
)
from psyprobe.observers.encoders.network import exact_arithmetic, first_line

#: Of the first token, at least this many of the likeliest are told.
LIKELIEST = 20
#: How far log-probabilities may differ with and without sharing, in float32 and in shorter formats.
SLACK = 1e-3
SLACK_SHORT = 0.25


@dataclass(frozen=True)
class ChatOptions(LocalOptions):
    """A chat model in this process.

    Parameters
    ----------
    template : str
        What stands around the prompt where the model has no chat template: "Question: {prompt}
        Answer:".
    batch_size : int
        How many inquiries are worked on at once.
    """

    template: str = "{prompt}"
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(f"batch_size is {self.batch_size}; give a whole number of at least 1")
        if "{prompt}" not in self.template:
            raise InputError(
                f"the template {self.template!r} lacks {{prompt}}, where the question goes"
            )


def load_transformers(source: str, options: ChatOptions) -> TransformersChat:
    """A chat model of the transformers library, from a folder or from the library's cache of the
    hub.
    """
    name = f"transformers:{source}"
    chat = load_model(name, source, options)
    return TransformersChat(chat, pixel_path(name, chat, options), options)


class TransformersChat(Answering):
    """A vision-language model that answers in words, with the whole distribution of its first
    token.

    Decoding is the inquiry's alone: temperature, penalties and forced tokens of the model's
    repository are left out. Prompts about the same images share the work on those: the model's
    state after the image is kept and each prompt goes on from there, or, where that is not
    possible, the vision tower runs once. The first time, the answer with and without sharing are
    compared, and where they differ nothing is shared from then on.
    """

    fewest_images = 1

    def __init__(self, chat: ChatModel, pixels: PixelPath, options: ChatOptions) -> None:
        self._chat = chat
        self._pixels = pixels
        self._template = options.template
        self._batch_size = options.batch_size
        self.bits = pixels.bits
        self._model = chat.model
        self._processor = chat.processor
        self._tokenizer = chat.processor.tokenizer
        self._templated = bool(getattr(chat.processor, "chat_template", None))
        ids = (getattr(chat.model.config, f"image_token_{name}", None) for name in ("id", "index"))
        self._image_token: int | None = next((id_ for id_ in ids if id_ is not None), None)
        self._lock = threading.Lock()  # the model keeps state of its own between tokens
        #: Whether prompts go on from the model's state after the image; None until the first chance
        #: to.
        can_share = (
            self._templated and self._padding_side == "left" and self._image_token is not None
        )
        self.shares_prefix: bool | None = None if can_share else False
        self.card = chat.card(pixels, template="chat" if self._templated else options.template)
        one, two = (self._text(Inquiry("", (np.zeros(0),) * count)) for count in (1, 2))
        self.images_at_once = (
            None if len(two) > len(one) else 1
        )  # 1 where the template has room for one image

    def delivered(self, image: FloatArray) -> FloatArray:
        """As in `PixelPath`: after the processor's resizing and rounding, and the network's number
        format.
        """
        return self._pixels.delivered(image)

    def _reply(self, inquiry: Inquiry) -> Answer:
        return next(self._answers([inquiry]))[1]

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answers to many questions, `batch_size` at once; fastest where those about the same image
        come together.

        The latency of an answer is that of its batch. First tokens are complete: every token that
        spells one of the words, and the 20 likeliest.
        """
        return self._answers(map(self.checked, inquiries))

    def _answers(self, checked: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        inquiries = iter(checked)
        while batch := list(itertools.islice(inquiries, self._batch_size)):
            alone: list[Inquiry] = []
            for group in _about_the_same(batch):
                together = (
                    self._going_on(group)
                    if len(group) > 1 and self.shares_prefix is not False
                    else None
                )
                if together is None:
                    alone += group
                else:
                    yield from zip(group, together, strict=True)
            if alone:
                yield from zip(alone, self._from_scratch(alone)[0], strict=True)

    def _from_scratch(
        self, group: list[Inquiry], *, share: bool = True
    ) -> tuple[list[Answer], FloatArray]:
        """Each with its own images, padded on the left to one length."""
        began = time.perf_counter()
        inputs = self._encode(group)
        once: AbstractContextManager[None] = nullcontext()
        if (
            share
            and all(len(each.images) == 1 for each in group)
            and inputs["pixel_values"].ndim == 4
        ):
            once = encoded_once(self._model, [image_digest(each.images[0]) for each in group])
        with self._lock, once:
            return self._generate(inputs, group, began)

    def _going_on(self, group: list[Inquiry]) -> list[Answer] | None:
        """All from the state after what their texts share, images included; None where that cannot
        be done.
        """
        import torch

        began = time.perf_counter()
        parts = prefix_inputs(self._encode(group), self._image_token, self._tokenizer.pad_token_id)
        if parts is None:
            return None
        prefix, rest = parts
        window = getattr(self._model.config.get_text_config(), "sliding_window", None)
        if window is not None and rest["input_ids"].shape[1] > window:
            return None  # what fills up between the image and the words would push the image out of view
        try:
            with self._lock:
                with torch.inference_mode(), exact_arithmetic(self._chat.device):
                    state = self._model(**prefix, use_cache=True, logits_to_keep=1).past_key_values
                    state.batch_repeat_interleave(len(group))
                answers, first = self._generate({**rest, "past_key_values": state}, group, began)
        except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
            if self.shares_prefix:
                raise
            self.shares_prefix = False  # this architecture's state cannot be gone on from
            return None
        if self.shares_prefix is None:
            _, alone = self._from_scratch(group, share=False)
            likely = alone > np.log(1e-6)
            slack = SLACK if self._chat.dtype == "float32" else SLACK_SHORT
            self.shares_prefix = bool(np.abs(first - alone)[likely].max() < slack)
        return answers if self.shares_prefix else None

    @cached_property
    def _padding_side(self) -> str:
        """Left of what a decoder goes on with; right of what an encoder reads, where T5 counts
        distances over gaps.
        """
        config = self._model.config
        encoder = config.is_encoder_decoder or getattr(
            config.get_text_config(), "is_encoder_decoder", False
        )
        return "right" if encoder else "left"

    def _text(self, inquiry: Inquiry) -> str:
        if not self._templated:
            if inquiry.system:
                raise InputError(
                    f"{self.card.name} has no chat template and so no place for a system "
                    "instruction"
                )
            return self._template.replace("{prompt}", inquiry.prompt)
        said = (
            [{"role": "system", "content": [{"type": "text", "text": inquiry.system}]}]
            if inquiry.system
            else []
        )
        shown = [{"type": "image"} for _ in inquiry.images]
        said.append({"role": "user", "content": [*shown, {"type": "text", "text": inquiry.prompt}]})
        try:
            text: str = self._processor.apply_chat_template(
                said, add_generation_prompt=True, tokenize=False
            )
        except Exception as problem:  # a template may refuse in any way it likes
            if not inquiry.system:
                raise
            told = f"its chat template says {first_line(problem)!r}"
            raise InputError(f"{self.card.name} takes no system instruction: {told}") from None
        return text

    def _encode(self, group: list[Inquiry]) -> dict[str, Any]:
        texts = [self._text(each) for each in group]
        shown = {id(image): image for each in group for image in each.images}
        handed = dict(zip(shown, self._pixels.hand_over(list(shown.values())), strict=True))
        begin = self._tokenizer.bos_token
        keep = (
            {"add_special_tokens": False}
            if begin and all(text.startswith(begin) for text in texts)
            else {}
        )
        encoded = self._processor(
            images=[[handed[id(image)] for image in each.images] for each in group],
            text=texts,
            padding=True,
            padding_side=self._padding_side,
            return_tensors="pt",
            images_kwargs=dict(self._pixels.options),
            **keep,
        )
        if "qformer_attention_mask" in encoded:
            # A Q-Former counts positions from the first column, filled or not: its padding belongs
            # on the right.
            order = (1 - encoded["qformer_attention_mask"]).argsort(dim=1, stable=True)
            for key in ("qformer_input_ids", "qformer_attention_mask"):
                encoded[key] = encoded[key].gather(1, order)
        return self._chat.inputs(encoded)

    def _generate(
        self, inputs: Mapping[str, Any], group: list[Inquiry], began: float
    ) -> tuple[list[Answer], FloatArray]:
        """Answers, and the log-probabilities of their first tokens, shape (N, vocabulary)."""
        import torch

        steps = max(each.decoding.max_tokens for each in group)
        drawn = any(each.decoding.temperature for each in group)
        with torch.inference_mode(), exact_arithmetic(self._chat.device):
            found = self._model.generate(
                **inputs,
                max_new_tokens=steps,
                do_sample=False,
                logits_processor=[Noise([each.decoding for each in group])] if drawn else None,
                output_logits=True,
                return_dict_in_generate=True,
            )
            first = torch.log_softmax(found.logits[0].double(), dim=-1).cpu().numpy()
        if np.isnan(first).any():
            raise PsyprobeError(f"{self.card.name}: the first token's probabilities hold NaN")
        tokens = found.sequences[:, -len(found.logits) :].cpu().numpy()
        lengths = inputs["attention_mask"].sum(-1).cpu().tolist()
        took = time.perf_counter() - began
        rows = zip(group, tokens, first, lengths, strict=True)
        return [
            self._answer(each, row, logprobs, int(length), took)
            for each, row, logprobs, length in rows
        ], first

    def _answer(
        self, inquiry: Inquiry, row: FloatArray, first: FloatArray, length: int, took: float
    ) -> Answer:
        tokens = row[: inquiry.decoding.max_tokens]
        (ends,) = np.nonzero(np.isin(tokens, self._ends))
        tokens = tokens[: ends[0] + 1] if ends.size else tokens
        return Answer(
            text=self._tokenizer.decode(tokens, skip_special_tokens=True),
            first_tokens=self._first_tokens(inquiry.words, first)
            if inquiry.decoding.logprobs
            else None,
            complete=inquiry.decoding.logprobs,
            finish="stop" if ends.size else "length",
            tokens_in=length,
            tokens_out=len(tokens),
            latency=took,
            model=self.card.name,
            server=f"transformers {self.card.software['transformers']}",
        )

    def _first_tokens(
        self, words: Sequence[str], logprobs: FloatArray
    ) -> tuple[tuple[str, float], ...]:
        spelled = (self._spellings.get(word.strip().casefold(), ()) for word in words)
        wanted = set(np.argsort(logprobs)[-LIKELIEST:].tolist()).union(*spelled)
        ordered = sorted(wanted, key=lambda token: -logprobs[token])
        return tuple((self._vocabulary[token], float(logprobs[token])) for token in ordered)

    @cached_property
    def _vocabulary(self) -> list[str]:
        """The text of every token; networks may have a few more than the tokenizer knows."""
        known = self._tokenizer.batch_decode([[token] for token in range(len(self._tokenizer))])
        return [*known, *[""] * (self._model.get_output_embeddings().weight.shape[0] - len(known))]

    @cached_property
    def _spellings(self) -> dict[str, list[int]]:
        """Which tokens spell a word, whatever their case and surrounding space."""
        found: dict[str, list[int]] = {}
        for token, text in enumerate(self._vocabulary):
            found.setdefault(text.strip().casefold(), []).append(token)
        return found

    @cached_property
    def _ends(self) -> list[int]:
        parts = (getattr(part, "generation_config", None) for part in self._model.modules())
        ids = (
            part.eos_token_id
            for part in parts
            if part is not None and part.eos_token_id is not None
        )
        return [end for id_ in ids for end in (id_ if isinstance(id_, list) else [id_])]


def _about_the_same(batch: list[Inquiry]) -> Iterable[list[Inquiry]]:
    """The inquiries by what they show and what goes before it."""
    groups: dict[tuple[str, ...], list[Inquiry]] = {}
    for each in batch:
        groups.setdefault((each.system, *map(image_digest, each.images)), []).append(each)
    return groups.values()


class Noise:
    """Draws tokens by the Gumbel-max rule: the likeliest after noise is a draw from the softmax.

    Each inquiry has its own stream of random numbers, so that a seed gives the same text in any
    batch.
    """

    def __init__(self, decodings: Sequence[Decoding]) -> None:
        self._temperatures = [decoding.temperature for decoding in decodings]
        self._streams = [np.random.default_rng(decoding.seed) for decoding in decodings]

    def __call__(self, tokens: Any, scores: Any) -> Any:
        """The scores over temperature, plus noise, in the rows that are drawn; shape (N,
        vocabulary).
        """
        import torch

        drawn = scores.double()
        for row, (temperature, stream) in enumerate(
            zip(self._temperatures, self._streams, strict=True)
        ):
            if temperature:
                noise = torch.from_numpy(stream.gumbel(size=scores.shape[-1]))
                drawn[row] = drawn[row] / temperature + noise.to(scores.device)
        return drawn


def prefix_inputs(
    inputs: Mapping[str, Any], image_token: int | None, padding: int
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What inquiries about the same images begin with alike, those images included, and the texts
    to go on with.

    `inputs` are padded on the left and hold the same images. Given are the inputs of the shared
    beginning, one row, and the text inputs of all, padded between it and the rest; None where an
    image comes after the point of parting.
    """
    import torch

    tokens = inputs["input_ids"]
    mask = inputs["attention_mask"].bool()
    rows = [row[kept] for row, kept in zip(tokens, mask, strict=True)]
    lengths = [len(row) for row in rows]
    shortest = min(lengths)
    longest = max(lengths)
    same = torch.stack([row[:shortest] == rows[0][:shortest] for row in rows]).all(0)
    # one token at least is left to each, or there would be nothing to go on with
    shared = min(int(same.long().cumprod(0).sum()), shortest - 1)
    if any(bool((row[shared:] == image_token).any()) for row in rows):
        return None
    prefix = {}
    rest = {}
    for name, value in inputs.items():
        if value.shape != tokens.shape:
            prefix[name] = value[: len(value) // len(rows)]
            continue
        full = [row[kept] for row, kept in zip(value, mask, strict=True)]
        fill = padding if name == "input_ids" else 0
        prefix[name] = full[0][None, :shared]
        rest[name] = torch.stack(
            [
                torch.cat([row[:shared], row.new_full((longest - len(row),), fill), row[shared:]])
                for row in full
            ]
        )
    return prefix, rest


@contextmanager
def encoded_once(model: Any, images: Sequence[str]) -> Iterator[None]:
    """In here the model's vision tower looks once at each image, whichever rows of the batch hold
    it.

    `images` tells the images of the rows apart; nothing is done where no tower takes
    ``pixel_values`` (N, 3, H, W).
    """
    import torch

    tower = vision_tower(model)
    first = [images.index(fromkey) for fromkey in dict.fromkeys(images)]
    if tower is None or len(first) == len(images):
        yield
        return
    row_of = [list(dict.fromkeys(images)).index(image) for image in images]
    forward = tower.forward

    def once(pixel_values: Any, **arguments: Any) -> Any:
        if len(pixel_values) != len(images):
            return forward(pixel_values, **arguments)
        seen = forward(pixel_values[first], **arguments)
        for name, value in seen.items():
            if isinstance(value, torch.Tensor):
                seen[name] = value[row_of]
            elif isinstance(value, tuple):
                seen[name] = tuple(None if part is None else part[row_of] for part in value)
        return seen

    tower.forward = once
    try:
        yield
    finally:
        del tower.forward
