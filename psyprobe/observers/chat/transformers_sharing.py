"""Work done once for several prompts about one image, and draws that do not depend on what else is in the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from psyprobe.observers.chat.answering import Decoding

#: What the vision towers of transformers models are called, of those that take (N, 3, H, W).
TOWERS = ("vision_tower", "vision_model")


class Noise:
    """Draws tokens by the Gumbel-max rule: the likeliest after noise is a draw from the softmax.

    Each inquiry has its own stream of random numbers, so that a seed gives the same text in any batch.
    """

    def __init__(self, decodings: Sequence[Decoding]) -> None:
        self._temperatures = [each.temperature for each in decodings]
        self._streams = [np.random.default_rng(each.seed) for each in decodings]

    @property
    def needed(self) -> bool:
        """Whether any row is drawn rather than greedy."""
        return any(self._temperatures)

    def __call__(self, tokens: Any, scores: Any) -> Any:
        """The scores over temperature, plus noise, in the rows that are drawn; shape (N, vocabulary)."""
        import torch

        drawn = scores.double()
        for row, (temperature, stream) in enumerate(zip(self._temperatures, self._streams, strict=True)):
            if temperature:
                noise = torch.from_numpy(stream.gumbel(size=scores.shape[-1]))
                drawn[row] = drawn[row] / temperature + noise.to(scores.device)
        return drawn


def prefix_inputs(
    inputs: Mapping[str, Any], image_token: int | None, padding: int
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What inquiries about the same images begin with alike, those images included, and the texts to go on with.

    `inputs` are padded on the left and hold the same images. Given are the inputs of the shared beginning, one row, and
    the text inputs of all, padded between it and the rest; None where an image comes after the point of parting.
    """
    import torch

    tokens, mask = inputs["input_ids"], inputs["attention_mask"].bool()
    rows = [row[kept] for row, kept in zip(tokens, mask, strict=True)]
    lengths = [len(row) for row in rows]
    shortest, longest = min(lengths), max(lengths)
    same = torch.stack([row[:shortest] == rows[0][:shortest] for row in rows]).all(0)
    # one token at least is left to each, or there would be nothing to go on with
    shared = min(int(same.long().cumprod(0).sum()), shortest - 1)
    if any(bool((row[shared:] == image_token).any()) for row in rows):
        return None
    prefix, rest = {}, {}
    for name, value in inputs.items():
        if value.shape != tokens.shape:
            prefix[name] = value[: len(value) // len(rows)]
            continue
        full = [row[kept] for row, kept in zip(value, mask, strict=True)]
        fill = padding if name == "input_ids" else 0
        prefix[name] = full[0][None, :shared]
        rest[name] = torch.stack(
            [torch.cat([row[:shared], row.new_full((longest - len(row),), fill), row[shared:]]) for row in full]
        )
    return prefix, rest


def vision_tower(model: Any) -> Any:
    """The part of a model that looks at images, if it has one that takes (N, 3, H, W); else None."""
    return next((part for name, part in model.named_modules() if name.rpartition(".")[2] in TOWERS), None)


@contextmanager
def encoded_once(model: Any, images: Sequence[str]) -> Iterator[None]:
    """In here the model's vision tower looks once at each image, whichever rows of the batch hold it.

    `images` tells the images of the rows apart; nothing is done where no tower takes ``pixel_values`` (N, 3, H, W).
    """
    import torch

    tower = vision_tower(model)
    first = [images.index(each) for each in dict.fromkeys(images)]
    if tower is None or len(first) == len(images):
        yield
        return
    row_of = [list(dict.fromkeys(images)).index(each) for each in images]
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
