"""The eye of a chat model, without its language: "transformers_vision:MODEL_OR_PATH"."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat.transformers_chat import INSTALL
from psyprobe.observers.chat.transformers_loading import ChatModel, LocalOptions, load_model
from psyprobe.observers.chat.transformers_pixels import PixelPath, pixel_path
from psyprobe.observers.chat.transformers_sharing import vision_tower
from psyprobe.observers.encoders.images import check_images
from psyprobe.observers.encoders.network import check_each_once, exact_arithmetic, unknown_layer
from psyprobe.observers.registry import register_observer


@dataclass(frozen=True)
class VisionOptions(LocalOptions):
    """The vision tower of a chat model.

    Parameters
    ----------
    layers : "all" or iterable of str, optional
        What is wanted: "projector", all that the language model gets of an image; "projector_mean", its mean over
        tokens; "tower", the last layer of the vision tower; "tower_mean", its mean over tokens. By default the
        first of these that the model has: where what the language model gets depends on the words too, as in
        InstructBLIP, there is no projector.
    """

    layers: str | Iterable[str] | None = None


@register_observer(
    "transformers_vision",
    form="transformers_vision:MODEL_OR_PATH",
    summary="the vision tower of a chat model of the transformers library",
    requires=("torch", "torchvision", "transformers"),
    install=INSTALL,
    options=VisionOptions,
)
def load_transformers_vision(source: str, options: VisionOptions) -> TransformersVision:
    """The vision tower of a chat model, with the weights and the processor that "transformers:" asks."""
    name = f"transformers_vision:{source}"
    chat = load_model(name, source, options)
    return TransformersVision(chat, pixel_path(name, chat, options), options.layers)


class TransformersVision:
    """What a chat model's vision tower makes of images."""

    def __init__(self, chat: ChatModel, pixels: PixelPath, layers: str | Iterable[str] | None) -> None:
        self._chat, self._pixels = chat, pixels
        self._lock = threading.Lock()
        size = pixels.input_size or (224, 224)
        known = tuple(self._look(np.full((*size, 3), 128 / 255)))
        wanted = known[:1] if layers is None else known if layers == "all" else layers
        features = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        for name in features:
            if name not in known:
                raise unknown_layer(chat.name, name, known)
        check_each_once(chat.name, features)
        self.card = chat.card(pixels, features)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Feature vectors of images, which go through the tower one by one.

        Raises
        ------
        InputError
            If the images are not of the native size, or lie between 8-bit codes where the processor wants those.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        hint = ", or load the observer with input_size=(height, width), where the model takes several sizes"
        check_images(images, card.name, input_size=card.input_size, hint=hint)
        each = [self._look(np.asarray(image)) for image in images]
        found = {name: np.stack([one[name] for one in each]) for name in card.features}
        for name, rows in found.items():
            if not np.isfinite(rows).all():
                raise PsyprobeError(f"{card.name}: the feature {name!r} holds NaN or infinity (in {card.dtype})")
        return found

    def _look(self, image: FloatArray) -> dict[str, FloatArray]:
        import torch

        model, processor = self._chat.model, self._chat.processor.image_processor
        batch = processor([self._pixels.hand_over([image])], return_tensors="pt", **self._pixels.options)
        inputs = self._chat.inputs({key: value for key, value in batch.items() if isinstance(value, torch.Tensor)})
        with self._lock, torch.inference_mode(), exact_arithmetic(self._chat.device):
            if hasattr(self._chat.processor, "qformer_tokenizer"):
                seen = vision_tower(model)(inputs["pixel_values"], return_dict=True)
                return _rows("tower", seen.last_hidden_state)
            seen = model.get_image_features(**inputs, return_dict=True)
            given = seen.pooler_output
            tokens = given if isinstance(given, torch.Tensor) else torch.cat(list(given))
            return _rows("projector", tokens) | _rows("tower", seen.last_hidden_state)


def _rows(name: str, tokens: Any) -> dict[str, FloatArray]:
    """All tokens of an image in one row, and their mean."""
    import torch

    flat = tokens.reshape(-1, tokens.shape[-1]).to("cpu", torch.float32)
    return {name: flat.reshape(-1).numpy(), f"{name}_mean": flat.mean(0).numpy()}
