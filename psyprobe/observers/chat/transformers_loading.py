"""A vision-language model of the transformers library and its processor, from a folder or the library's cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError, PsyprobeError, WeightsError, unknown_name
from psyprobe.observers.encoders.network import DTYPES, checked_device
from psyprobe.observers.encoders.weights import RANDOM, first_line, hub_weights, seeded, state_digest
from psyprobe.observers.protocol import Card

if TYPE_CHECKING:
    from psyprobe.observers.chat.transformers_pixels import PixelPath

PACKAGES = ("transformers", "torch", "torchvision", "tokenizers")
#: What of a repository's generation settings is kept; its temperature, penalties and forced tokens are not.
_KEPT = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


@dataclass(frozen=True)
class LocalOptions:
    """A chat model, or a part of one, in this process.

    Parameters
    ----------
    random_weights, device, dtype
        As in `HubOptions`.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that stimuli are drawn at, for models that take several sizes.
    processor : mapping, optional
        Arguments for the image part of the model's processor, such as ``{"do_image_splitting": True}``; by default
        an image goes in once and whole.
    """

    random_weights: bool = False
    device: str | None = None
    dtype: str = "float32"
    input_size: int | tuple[int, int] | None = None
    processor: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class ChatModel:
    """A vision-language model, ready to run: in evaluation mode, greedy, without settings of its repository's."""

    name: str
    model: Any
    processor: Any
    device: Any
    dtype: str
    weights: str
    weights_digest: str
    random_weights: bool

    def card(self, pixels: PixelPath, features: tuple[str, ...] = (), **options: Any) -> Card:
        """The card of what gives `features`, or else answers; it holds the class and what the processor does."""
        told = {
            "image_processor": self.processor.image_processor.to_dict(),
            "chat_template": getattr(self.processor, "chat_template", None),
        }
        canonical = json.dumps(told, sort_keys=True, default=str).encode()
        return Card(
            self.name,
            "features" if features else "answer",
            features,
            input_size=pixels.input_size,
            input="normalised",
            mean=pixels.mean,
            std=pixels.std,
            dtype=self.dtype,
            device=str(self.device),
            weights=self.weights,
            weights_digest=self.weights_digest,
            random_weights=self.random_weights,
            options={
                "architecture": type(self.model).__name__,
                "processor_digest": hashlib.sha256(canonical).hexdigest(),
                "processor": dict(pixels.options),
                **options,
            },
            software={package: version(package) for package in PACKAGES},
        )

    def inputs(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors of a batch on the model's device, those of pixels in the model's format."""
        kinds = {key: self.model.dtype if value.is_floating_point() else None for key, value in batch.items()}
        return {key: value.to(self.device, kinds[key]) for key, value in batch.items()}


def load_model(name: str, source: str, options: LocalOptions) -> ChatModel:
    """A model with its processor.

    `source` is a folder that ``save_pretrained`` wrote, or the model's name on the hub, looked for in the library's
    cache.

    Raises
    ------
    WeightsError
        If there is no such folder, or the weights are neither in the cache nor on the hub.
    InputError
        If it is no model that takes images and text and writes text.
    """
    import torch

    random_weights, dtype = options.random_weights, options.dtype
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    where = checked_device(name, options.device)
    folder = Path(source).expanduser()
    if folder.is_dir():
        try:
            model, processor = _load(name, str(folder), random_weights, getattr(torch, dtype))
        except PsyprobeError:
            raise
        except (OSError, ValueError, RuntimeError, KeyError) as problem:
            told = f"the folder holds no model that transformers can load: {first_line(problem)}"
            raise WeightsError(f"{name}: {told}") from problem
        origin = f"folder {folder}"
    elif folder.is_absolute() or source.startswith((".", "~")):
        raise WeightsError(f"{name}: there is no folder {source!r}")
    else:
        with hub_weights(name):
            model, processor = _load(name, source, random_weights, getattr(torch, dtype))
        origin = f"transformers, {source}"
    # A folder of random weights, as tests make them, says so in its configuration.
    random_weights = random_weights or bool(getattr(model.config, "random_weights", False))
    digest = state_digest(model.state_dict())
    _decode_plainly(model, processor.tokenizer)
    origin = RANDOM if random_weights else origin
    return ChatModel(name, model.eval().to(where), processor, where, dtype, origin, digest, random_weights)


def _load(name: str, source: str, random_weights: bool, dtype: Any) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor

    with _quiet():
        try:
            processor = AutoProcessor.from_pretrained(source)
        except ImportError as problem:
            raise PsyprobeError(f"{name}: its processor needs a package: {first_line(problem)}") from problem
        if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
            raise InputError(f"{name} takes no images beside text: its processor is a {type(processor).__name__}")
        config = AutoConfig.from_pretrained(source)
        if type(config) not in AutoModelForImageTextToText._model_mapping:
            told = f"transformers has it as {config.model_type}"
            raise InputError(f"{name} is no model that answers about images: {told}")
        if random_weights:
            with seeded():
                return AutoModelForImageTextToText.from_config(config, dtype=dtype), processor
        return AutoModelForImageTextToText.from_pretrained(source, dtype=dtype), processor


def _decode_plainly(model: Any, tokenizer: Any) -> None:
    """Forget the repository's temperature, penalties and forced tokens; those of the parts of a model too."""
    from transformers import GenerationConfig

    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    for part in model.modules():
        own = getattr(part, "generation_config", None)
        if own is not None:
            kept = {key: getattr(own, key, None) for key in _KEPT}
            kept["pad_token_id"] = kept["pad_token_id"] or tokenizer.pad_token_id
            part.generation_config = GenerationConfig(**kept)


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars of the library's."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
