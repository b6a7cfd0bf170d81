"""Observers that take clips: a function or a torch module of one's own.

Clips are drawn a few frames at a time where that is enough, or all at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.encoders.network import (
    checked_device,
    exact_arithmetic,
    state_digest,
)
from psyprobe.observers.images import (
    RAW_RANGE,
    as_numpy,
    check_finite,
    check_images,
    check_light,
    checked_size,
)
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card, Clips

Function = Callable[..., Any]


def whole(clips: Clips) -> FloatArray:
    """Draw all frames of clips, shape (N, T, H, W, 3); grey as a view of one plane."""
    return clips.frames(0, clips.shape[1])


class FeaturesOfClips:
    """A function from clips to features: ``function(clips)``, as in
    `psyprobe.observers.observer`.
    """

    def __init__(
        self, function: Function, card: Card, takes: tuple[str, ...] = ()
    ) -> None:
        self._function = function
        self._takes = takes
        self.card = replace(card, clips=True)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Refuse still images."""
        raise InputError(
            f"{self.card.name} takes clips (N, T, H, W, 3) and was given still images: show it "
            "a stimulus of a kind "
            "such as flicker or drift"
        )

    def clip_features(self, clips: Clips) -> Mapping[str, FloatArray]:
        """Call the function on the clips; gives an array (N, D) for each name in ``card.features``.

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
        returned = self._function(
            drive, **{name: getattr(clips, name) for name in self._takes}
        )
        named_features = (
            returned if isinstance(returned, Mapping) else {card.features[0]: returned}
        )
        if set(named_features) != set(card.features):
            raise InputError(
                f"{card.name} returned {sorted(named_features)} and its card says "
                f"{sorted(card.features)}: name what it returns "
                "with features=(...)"
            )
        rows = {}
        for name in card.features:
            values = as_numpy(named_features[name])
            if values.ndim < 2 or len(values) != len(drive) or values.dtype.kind != "f":
                raise InputError(
                    f"{card.name}: {name!r} has shape {values.shape} and format {values.dtype} "
                    f"for {len(drive)} clips; "
                    "wanted is one row of floating-point numbers a clip"
                )
            check_finite(card.name, name, values)
            rows[name] = values.reshape(len(drive), -1)
        return rows


class DifferenceOfClips:
    """A function of two batches of clips: ``function(test, reference)``, as in
    `psyprobe.observers.observer`.
    """

    def __init__(
        self, function: Function, card: Card, takes: tuple[str, ...] = ()
    ) -> None:
        self._function = function
        self._takes = takes
        self.card = replace(card, clips=True, encoding="linear light, cd/m²")

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Refuse still images."""
        raise InputError(
            f"{self.card.name} compares clips (N, T, H, W, 3) and was given still images"
        )

    def clip_difference(
        self, test: Clips, reference: Clips, *, ppd: float
    ) -> FloatArray:
        """Call the function on test clips and references; gives a difference for each, shape (N,).

        Raises
        ------
        InputError
            If the clips are no light, or the function returns something else than one number a
            pair.
        PsyprobeError
            If a difference is not finite.
        """
        name = self.card.name
        fps = test.fps
        clips = [whole(batch) for batch in (test, reference)]
        test_frames, reference_frames = (
            clip.reshape(-1, *clip.shape[2:]) for clip in clips
        )
        check_light(test_frames, reference_frames, name)
        options = {
            key: value
            for key, value in (("ppd", ppd), ("fps", fps))
            if key in self._takes
        }
        differences = as_numpy(self._function(*clips, **options))
        if differences.shape != (len(clips[0]),) or differences.dtype.kind != "f":
            raise InputError(
                f"{name} returned shape {differences.shape} and format {differences.dtype} for "
                f"{len(clips[0])} pairs of clips; "
                "wanted is one floating-point number a pair"
            )
        if not np.isfinite(differences).all():
            raise PsyprobeError(f"{name}: a difference is NaN or infinity")
        return differences


def clip_network(
    module: Any,
    card: Card,
    *,
    device: str | None = None,
    input_size: int | tuple[int, int] | None = None,
) -> FeaturesOfClips:
    """Make an observer of a torch module that takes clips (N, 3, T, H, W).

    Its input is drive, normalised by mean and standard deviation of the card.

    Parameters
    ----------
    module : torch.nn.Module
        Returns one tensor (N, ...), or one for each of ``card.features``, by name.
    card : Card
        Without device and size; without a digest, that of the module's state is taken.
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that clips are drawn at; any size if not given.
    """
    import torch

    torch_device = checked_device(card.name, device)
    network = module.eval().to(device=torch_device, dtype=torch.float32)
    mean, std = (
        torch.tensor(values, dtype=torch.float32, device=torch_device)[
            :, None, None, None
        ]
        for values in (card.mean, card.std)
    )

    def look(clips: FloatArray) -> Any:
        channels_first = np.moveaxis(ImagePlanes.of(clips).planes, -1, 1)
        planes = torch.from_numpy(channels_first.astype(np.float32)).to(torch_device)
        with torch.inference_mode(), exact_arithmetic(torch_device):
            output = network((planes - mean).div_(std).contiguous())
        return (
            {name: tensor.cpu() for name, tensor in output.items()}
            if isinstance(output, Mapping)
            else output.cpu()
        )

    digest = card.weights_digest
    if digest is None:
        digest = hashlib.sha256(
            f"{module}{state_digest(module.state_dict())}".encode()
        ).hexdigest()
    size = None if input_size is None else checked_size(input_size)
    network_card = replace(
        card,
        input_size=size,
        device=str(torch_device),
        weights_digest=digest,
        input="normalised",
    )
    return FeaturesOfClips(look, network_card)
