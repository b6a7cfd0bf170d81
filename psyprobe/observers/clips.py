"""Observers that take clips: a function or a torch module of one's own.

Clips are drawn a few frames at a time where that is enough, or all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.encoders.network import (
    checked_device,
    exact_arithmetic,
)
from psyprobe.observers.functions import DifferenceOfFunction, FeaturesOfFunction, Size
from psyprobe.observers.images import (
    RAW_RANGE,
    check_images,
    check_light,
    three_channels,
)
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card, Clips


def whole(clips: Clips) -> FloatArray:
    """Draw all frames of clips as one array, shape (N, T, H, W, 3)."""
    return clips.frames(0, clips.shape[1])


class FeaturesOfClips(FeaturesOfFunction):
    """A function from clips to features: ``function(clips)``, as in
    `psyprobe.observers.observer`.
    """

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Refuse still images: this observer takes clips only."""
        raise InputError(
            f"{self.card.name} takes clips (N, T, H, W, 3) and was given still images: show it "
            "a stimulus of a kind such as flicker or drift"
        )

    def clip_features(self, clips: Clips) -> Mapping[str, FloatArray]:
        """Compute the function's features of clips, an array (N, D) for each name on the card.

        Raises
        ------
        InputError
            If the clips are not of its size, or the function returns something else than its card
            says.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        drive = whole(clips)
        frames = drive.reshape(-1, *drive.shape[2:])
        check_images(
            frames, card.name, input_size=card.input_size, pixel_range=RAW_RANGE
        )
        options = {name: getattr(clips, name) for name in self._takes}
        return self._rows(self._function(drive, **options), len(drive))


class DifferenceOfClips(DifferenceOfFunction):
    """A function of two batches of clips: ``function(test, reference)``, as in
    `psyprobe.observers.observer`.
    """

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Refuse still images: this observer takes clips only."""
        raise InputError(
            f"{self.card.name} compares clips (N, T, H, W, 3) and was given still images"
        )

    def clip_difference(
        self, test: Clips, reference: Clips, *, ppd: float
    ) -> FloatArray:
        """Compute the function's difference of each test clip from its reference, shape (N,).

        Raises
        ------
        InputError
            If the clips are no light, or the function returns something else than one number a
            pair.
        PsyprobeError
            If a difference is not finite.
        """
        clips = [whole(batch) for batch in (test, reference)]
        test_frames, reference_frames = (
            clip.reshape(-1, *clip.shape[2:]) for clip in clips
        )
        check_light(test_frames, reference_frames, self.card.name)
        return self._call_function(*clips, ppd=ppd, fps=test.fps)


def clip_network(
    module: Any,
    card: Card,
    mean: Iterable[float] = (0.0, 0.0, 0.0),
    std: Iterable[float] = (1.0, 1.0, 1.0),
    device: str | None = None,
    input_size: Size = None,
    features: tuple[str, ...] = ("output",),
) -> FeaturesOfClips:
    """Wrap a torch module that takes clips (N, 3, T, H, W) as an observer.

    Its input is drive, normalised.

    Parameters
    ----------
    module : torch.nn.Module
        Returns one tensor (N, ...), or one for each of `features`, by name.
    card : Card
        Its name, and whence it comes.
    mean, std : iterable of float
        The normalisation that the module was trained with, a value a channel, for drive in [0, 1].
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that clips are drawn at; any size if not given.
    features : tuple of str
        Names of what the module returns.
    """
    import torch

    torch_device = checked_device(card.name, device)
    network = module.eval().to(device=torch_device, dtype=torch.float32)
    card = replace(
        card,
        mean=three_channels(card.name, "mean", mean),
        std=three_channels(card.name, "std", std),
        device=str(torch_device),
        input="normalised",
        clips=True,
    )
    shift, scale = (
        torch.tensor(values, dtype=torch.float32, device=torch_device)[
            :, None, None, None
        ]
        for values in (card.mean, card.std)
    )

    def look(clips: FloatArray) -> Any:
        channels_first = np.moveaxis(ImagePlanes.of(clips).planes, -1, 1)
        planes = torch.from_numpy(channels_first.astype(np.float32)).to(torch_device)
        with torch.inference_mode(), exact_arithmetic(torch_device):
            output = network((planes - shift).div_(scale).contiguous())
        return (
            {name: tensor.cpu() for name, tensor in output.items()}
            if isinstance(output, Mapping)
            else output.cpu()
        )

    return FeaturesOfClips(look, card, features, input_size)
