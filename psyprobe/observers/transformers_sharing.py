"""Work done once for several prompts about one image, and draws that do not depend on what else is in the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from psyprobe.observers.answering import Decoding

#: What the vision towers of transformers models are called, of those that take (N, 3, H, W).
TOWERS = ("vision_tower", "vision_model")


class Noise:
    """Draws tokens by the Gumbel-max rule: the likeliest after noise is a draw from the softmax.

    Each inquiry has its own stream of random numbers, so that a seed gives the same text in any batch.

    Parameters
    ----------
    decodings : sequence of Decoding
        One a row of the batch.
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
    each: Sequence[Mapping[str, Any]], image_token: int | None, padding: int
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What inquiries begin with alike, images included, and the whole of them with room for that state.

    Parameters
    ----------
    each : sequence of mapping
        The model's inputs, one inquiry of one row each, unpadded.
    image_token : int, optional
        The token that stands for a part of an image.
    padding : int
        The token that fills up.

    Returns
    -------
    (dict, dict) or None
        The inputs of the shared beginning, one row; and the text inputs of all, padded between the shared beginning
        and the rest. None where an image comes after the point at which the texts part.
    """
    import torch

    rows = [inputs["input_ids"][0] for inputs in each]
    shortest = min(map(len, rows))
    same = torch.stack([row[:shortest] == rows[0][:shortest] for row in rows]).all(0)
    # one token at least is left to each, or there would be nothing to go on with
    shared = min(int(same.long().cumprod(0).sum()), shortest - 1)
    if any(bool((row[shared:] == image_token).any()) for row in rows):
        return None
    along = [name for name, value in each[0].items() if tuple(value.shape) == (1, len(rows[0]))]
    prefix = {name: value[:, :shared] if name in along else value for name, value in each[0].items()}
    longest = max(map(len, rows))
    rest = {
        name: torch.stack(
            [
                torch.cat(
                    [
                        inputs[name][0, :shared],
                        inputs[name].new_full((longest - len(row),), padding if name == "input_ids" else 0),
                        inputs[name][0, shared:],
                    ]
                )
                for inputs, row in zip(each, rows, strict=True)
            ]
        )
        for name in along
    }
    return prefix, rest


def vision_tower(model: Any) -> Any:
    """The part of a model that looks at images, if it has one that takes (N, 3, H, W); else None.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The whole.

    Returns
    -------
    torch.nn.Module or None
    """
    return next((part for name, part in model.named_modules() if name.rpartition(".")[2] in TOWERS), None)


@contextmanager
def encoded_once(model: Any, images: Sequence[str]) -> Iterator[None]:
    """In here the model's vision tower looks once at each image, whichever rows of the batch hold it.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Its tower takes ``pixel_values`` of shape (N, 3, H, W); nothing is done where none is found.
    images : sequence of str
        What tells the images of the N rows apart.
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
