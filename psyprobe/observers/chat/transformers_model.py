"""Load vision-language models of the transformers library, and hand images to them.

Their vision tower alone is an observer, "transformers_vision:MODEL_OR_PATH"; `transformers_chat`
asks the whole model.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import psyprobe.observers.encoders.network as nets
from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError, WeightsError, check_known
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.chat.protocol import eight_bit
from psyprobe.observers.images import (
    check_finite,
    check_images,
    checked_size,
    size_text,
)
from psyprobe.observers.protocol import Card

PACKAGES = ("transformers", "torch", "torchvision", "tokenizers")
#: The generation settings of a repository that stay; its temperature, penalties and forced tokens
#: do not.
_SETTINGS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
#: The names of vision towers that take (N, 3, H, W) in transformers models.
TOWERS = ("vision_tower", "vision_model")
#: Side of the paper's stimulus, px: a processor that takes several sizes has the size that it makes
#: of this one as its native size.
USUAL = 256
#: A tenth of an 8-bit step: a processor that lets it pass rounds nothing.
STEP = 0.1 / 255


@dataclass(frozen=True)
class LocalOptions:
    """The options of a chat model, or a part of one, in this process.

    Parameters
    ----------
    random_weights, device, dtype
        Those of `HubOptions`.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that stimuli are drawn at, for models that take several
        sizes.
    processor : mapping, optional
        Arguments for the image part of the model's processor, such as ``{"do_image_splitting":
        True}``; by default an image goes in once and whole.
    """

    random_weights: bool = False
    device: str | None = None
    dtype: str = "float32"
    input_size: int | tuple[int, int] | None = None
    processor: JsonMapping | None = None


@dataclass(frozen=True, eq=False)
class ChatModel:
    """A vision-language model, ready to run: in evaluation mode, and decoding greedily."""

    model: Any
    processor: Any
    pixels: PixelPath
    device: Any
    #: The card of an observer that asks the whole model.
    card: Card

    def inputs(self, batch: JsonMapping) -> JsonObject:
        """Move a batch's tensors to the model's device, pixels in the model's dtype."""
        return {
            key: value.to(
                self.device, self.model.dtype if value.is_floating_point() else None
            )
            for key, value in batch.items()
        }


def load_model(name: str, source: str, options: LocalOptions) -> ChatModel:
    """Load a chat model with its processor, from the cache or the hub.

    `source` is a folder that ``save_pretrained`` wrote, or the model's name on the hub, looked for
    in the library's cache.

    Raises
    ------
    WeightsError
        If there is no such folder, or the weights are neither in the cache nor on the hub.
    InputError
        If it is no model that takes images and text and writes text.
    """
    check_known("dtype", [options.dtype], nets.DTYPES)
    device = nets.checked_device(name, options.device)
    folder = Path(source).expanduser()
    if folder.is_dir():
        problems = (OSError, ValueError, RuntimeError, KeyError)
        message = f"{name}: the folder holds no model that transformers can load"
        with nets.explained(message, *problems, error=WeightsError):
            model, processor = _load(name, str(folder), options)
        origin = f"folder {folder}"
    elif folder.is_absolute() or source.startswith((".", "~")):
        raise WeightsError(f"{name}: there is no folder {source!r}")
    else:
        with nets.hub_weights(name):
            model, processor = _load(name, source, options)
        origin = f"transformers, {source}"
    # The configuration of a folder of random weights, as tests make them, says so.
    is_random = options.random_weights or bool(
        getattr(model.config, "random_weights", False)
    )
    digest = nets.state_digest(model.state_dict())
    _reset_decoding(model, processor.tokenizer)
    model = model.eval().to(device)
    size = options.input_size
    pixels = PixelPath(
        name,
        processor.image_processor,
        model.dtype,
        input_size=None if size is None else checked_size(size),
        options=options.processor,
    )
    # The card holds the model's class and a digest of what the processor does.
    processing = {
        "image_processor": processor.image_processor.to_dict(),
        "chat_template": getattr(processor, "chat_template", None),
    }
    canonical = json.dumps(processing, sort_keys=True, default=str).encode()
    card = Card(
        name,
        "answer",
        dtype=options.dtype,
        weights=nets.RANDOM if is_random else origin,
        weights_digest=digest,
        random_weights=is_random,
        input_size=pixels.input_size,
        input="normalised",
        mean=pixels.mean,
        std=pixels.std,
        device=str(device),
        options={
            "architecture": type(model).__name__,
            "processor_digest": hashlib.sha256(canonical).hexdigest(),
            "processor": dict(pixels.options),
        },
        software={package: version(package) for package in PACKAGES},
    )
    return ChatModel(model, processor, pixels, device, card)


def _load(name: str, source: str, options: LocalOptions) -> tuple[Any, Any]:
    """Load a chat model with its processor, without turning errors into plain ones."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor

    dtype = getattr(torch, options.dtype)
    with _without_progress_bars():
        message = f"{name}: its processor needs a package"
        with nets.explained(message, ImportError, error=PsyprobeError):
            processor = AutoProcessor.from_pretrained(source)
        parts = ("image_processor", "tokenizer")
        if not all(hasattr(processor, part) for part in parts):
            raise InputError(
                f"{name} takes no images beside text: its processor is a {type(processor).__name__}"
            )
        config = AutoConfig.from_pretrained(source)
        if type(config) not in AutoModelForImageTextToText._model_mapping:
            raise InputError(
                f"{name} is no model that answers about images: transformers has it as "
                f"{config.model_type}"
            )
        if options.random_weights:
            with nets.seeded():
                model = AutoModelForImageTextToText.from_config(config, dtype=dtype)
        else:
            model = AutoModelForImageTextToText.from_pretrained(source, dtype=dtype)
        return model, processor


def _reset_decoding(model: Any, tokenizer: Any) -> None:
    """Remove a repository's own temperature, penalties and forced tokens from its model."""
    from transformers import GenerationConfig

    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    for part in model.modules():
        config = getattr(part, "generation_config", None)
        if config is not None:
            settings = {key: getattr(config, key, None) for key in _SETTINGS}
            settings["pad_token_id"] = (
                settings["pad_token_id"] or tokenizer.pad_token_id
            )
            part.generation_config = GenerationConfig(**settings)


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """Hide transformers' progress bars within the block."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


class PixelPath:
    """The path of an image through a processor: codes in, normalised pixels out, and back to drive.

    What a processor does is measured by sending images through it, not read from its settings:
    whether fractions of an 8-bit code pass, which size it leaves as it is, and which of several
    views shows the whole image.

    Parameters
    ----------
    name : str
        The observer's name, for messages.
    image_processor : transformers.BaseImageProcessor
        The processor.
    dtype : torch.dtype
        The format in which the network takes pixels.
    input_size : tuple of int, optional
        (height, width), px, that images will have; by default the size that the processor makes of
        256 x 256 px.
    options : mapping, optional
        Arguments for the processor's image part. By default an image is not cut into tiles, and not
        resized where the processor would otherwise enlarge it and reduce it again.

    Raises
    ------
    InputError
        If the processor does not leave images of `input_size` as they are.

    Attributes
    ----------
    bits : int or None
        8 where codes must be whole numbers, None where any float passes.
    input_size : tuple of int or None
        (height, width) that passes without resizing; None where there is no such size.
    options : dict
        The arguments in force.
    """

    def __init__(
        self,
        name: str,
        image_processor: Any,
        dtype: Any,
        *,
        input_size: tuple[int, int] | None = None,
        options: JsonMapping | None = None,
    ) -> None:
        self._name = name
        self._processor = image_processor
        self._dtype = dtype
        self._overview = 0
        self.bits: int | None = 8
        self.options = {} if options is None else dict(options)
        if options is None and getattr(image_processor, "do_image_splitting", False):
            # An image goes in once, whole: tiles would show the network the same stimulus at two
            # scales.
            self.options["do_image_splitting"] = False
        self._obstacle = self._measure()
        self.input_size = (
            None if self._obstacle else self._native_size(search=options is None)
        )
        if input_size is not None:
            if self._obstacle or not self._preserves(input_size):
                hint = ""
                if self.input_size:
                    hint = f"; leave input_size out to draw at {size_text(self.input_size)}"
                raise InputError(
                    f"{name} does not take images of {size_text(input_size)} as they are{hint}"
                )
            self.input_size = input_size

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean that the image processor subtracts, in units of drive."""
        return self._read_normalisation("image_mean", 0.0)

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation that the image processor divides by, in units of drive."""
        return self._read_normalisation("image_std", 1.0)

    def hand_over(self, images: Sequence[FloatArray]) -> list[Any]:
        """Convert images for the processor: uint8 codes (H, W, 3), or float32 (3, H, W).

        Raises
        ------
        InputError
            If an image has another shape or format, or lies between 8-bit codes where those are
            needed.
        """
        import torch

        for image in images:
            check_images(np.asarray(image)[None], self._name, colour=True)
        if self.bits == 8:
            return [eight_bit(image) for image in images]
        # Codes in floating point, not drive: the processor pads and divides in units of codes.
        codes = (
            np.asarray(image, dtype=np.float64).transpose(2, 0, 1) * 255
            for image in images
        )
        return [
            torch.from_numpy(np.ascontiguousarray(code, dtype=np.float32))
            for code in codes
        ]

    def delivered(self, image: FloatArray) -> FloatArray:
        """Return the image that the network gets: drive values (h, w, 3), resized and rounded.

        Where an image is cut into tiles, it is the view of the whole.

        Raises
        ------
        PsyprobeError
            If the processor lays its pixels out in an unknown way.
        """
        if self._obstacle:
            raise PsyprobeError(
                f"{self._name}: what reaches the network cannot be told: {self._obstacle}"
            )
        return self._drive(self._views(image)[self._overview].to(self._dtype))

    def inputs(self, image: FloatArray) -> JsonMapping:
        """Run the image processor, and return the network's input tensors by name."""
        codes = [self.hand_over([image])]
        batch: JsonMapping = self._processor(codes, return_tensors="pt", **self.options)
        return batch

    def _views(self, image: FloatArray) -> Any:
        """Run the image processor, and return normalised pixels, (views, 3, h, w)."""
        return _pixels_of_views(self.inputs(image), self._processor)

    def _drive(self, view: Any) -> FloatArray:
        """Undo the normalisation of one view, to drive values (h, w, 3)."""
        normalised = view.double().cpu().numpy().transpose(1, 2, 0)
        factor = self._processor.rescale_factor if self._processor.do_rescale else 1.0
        scaled = normalised * np.asarray(self.std) + np.asarray(self.mean)
        return np.asarray(scaled / factor / 255)

    def _read_normalisation(self, setting: str, default: float) -> tuple[float, ...]:
        """Read the mean or SD of each channel from the image processor, or a default."""
        if self._processor.do_normalize:
            default = getattr(self._processor, setting)
        return tuple(np.broadcast_to(default, 3).tolist())

    def _measure(self) -> str:
        """Test whether the processor keeps floats, and which of its views is the whole image.

        Returns why pixels cannot be read back; empty where they can.
        """
        obstacle = ""
        grey = np.full((USUAL, USUAL, 3), 128 / 255)
        for bits in (None, 8):
            self.bits = bits
            try:
                level = self._middle_pixel(grey)
                rise = self._middle_pixel(grey + STEP) - level if bits is None else STEP
            # A processor may raise anything on floats or in an unknown layout.
            except Exception as problem:
                obstacle = nets.first_line(problem)
                continue
            if not np.allclose(level, 128 / 255, atol=1e-3):
                obstacle = f"mid grey comes out as {np.round(level, 3).tolist()}"
            elif np.allclose(rise, STEP, rtol=0.05, atol=0):
                self._overview = self._whole_view()
                return ""
        return obstacle

    def _middle_pixel(self, image: FloatArray) -> FloatArray:
        """Compute the drive value of the pixel that the model sees in the image's middle."""
        drive = self._drive(self._views(image)[0])
        return np.asarray(drive[drive.shape[0] // 2, drive.shape[1] // 2])

    def _whole_view(self) -> int:
        """Find which of the processor's views shows the whole image: 0 first, -1 last.

        Libraries put it at either end; it holds more of a ramp than a tile does.
        """
        ramp = np.broadcast_to((np.arange(USUAL) / 255)[:, None], (USUAL, USUAL, 3))
        views = self._views(ramp)
        first, last = (float(view.max() - view.min()) for view in (views[0], views[-1]))
        return 0 if first >= last else -1

    def _native_size(self, *, search: bool) -> tuple[int, int] | None:
        """Find an image size that the processor leaves as it is."""
        options = self.options
        for extra in ({}, {"do_resize": False}) if search else ({},):
            self.options = options | extra
            try:
                views = self._views(np.zeros((USUAL, USUAL, 3)))
                height, width = views[self._overview].shape[-2:]
                if self._preserves((height, width)):
                    return height, width
            except (ValueError, RuntimeError, TypeError):
                continue  # this processor needs resizing
        self.options = options
        return None

    def _preserves(self, size: tuple[int, int]) -> bool:
        """Tell whether the processor leaves an image of a size as it is."""
        noise = np.random.default_rng(0).integers(0, 256, (*size, 3)) / 255
        drive = self._drive(self._views(noise)[self._overview])
        return drive.shape == noise.shape and bool(np.abs(drive - noise).max() < 1e-5)


def _pixels_of_views(batch: JsonMapping, image_processor: Any) -> Any:
    """Reshape the processor's pixels of one image to (views, 3, h, w)."""
    pixels = batch["pixel_values"]
    if "image_grid_thw" in batch:
        _, rows, columns = (int(count) for count in batch["image_grid_thw"][0])
        merge = image_processor.merge_size
        patch = image_processor.patch_size
        # Axes: rows and columns of blocks, and of patches in a block; then channel, frame, and
        # pixels in a patch.
        shape = (rows // merge, columns // merge, merge, merge, 3, -1, patch, patch)
        grid = pixels.reshape(shape)[:, :, :, :, :, 0]
        return grid.permute(4, 0, 2, 5, 1, 3, 6).reshape(
            1, 3, rows * patch, columns * patch
        )
    if pixels.ndim in (4, 5) and pixels.shape[-3] == 3:
        return pixels.reshape(-1, *pixels.shape[-3:])
    raise PsyprobeError(f"its pixels come in the shape {tuple(pixels.shape)}")


@dataclass(frozen=True)
class VisionOptions(LocalOptions):
    """The options of a chat model's vision tower.

    Parameters
    ----------
    layers : "all" or iterable of str, optional
        Features to return: "projector", all that the language model gets of an image;
        "projector_mean", its mean over tokens; "tower", the last layer of the vision tower;
        "tower_mean", its mean over tokens. By default the first of these that the model has: there
        is no projector where the language model's input depends on the words too, as in
        InstructBLIP.
    """

    layers: str | Iterable[str] | None = None


class TransformersVision:
    """An encoder: the vision tower of a chat model, "transformers_vision:SOURCE"."""

    def __init__(self, source: str, options: VisionOptions) -> None:
        chat = load_model(f"transformers_vision:{source}", source, options)
        self._chat = chat
        self._lock = threading.Lock()
        size = chat.pixels.input_size or (224, 224)
        layer_names = tuple(self._encode(np.full((*size, 3), 128 / 255)))
        usual = layer_names[:1]
        features = nets.chosen_layers(
            chat.card.name,
            usual if options.layers is None else options.layers,
            layer_names,
        )
        self.card = replace(chat.card, ability="features", features=features)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Encode images one by one: a feature vector of each, by layer.

        Raises
        ------
        InputError
            If the images are not of the native size, or lie between 8-bit codes where the processor
            wants those.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        hint = (
            ", or load the observer with input_size=(height, width), where the model takes "
            "several sizes"
        )
        check_images(images, card.name, input_size=card.input_size, hint=hint)
        encoded_images = [self._encode(np.asarray(image)) for image in images]
        features = {
            name: np.stack([layers[name] for layers in encoded_images])
            for name in card.features
        }
        check_finite(card, features)
        return features

    def _encode(self, image: FloatArray) -> dict[str, FloatArray]:
        """Compute all features of one image, by layer."""
        import torch

        model = self._chat.model
        batch = self._chat.pixels.inputs(image)
        tensors = {
            key: value
            for key, value in batch.items()
            if isinstance(value, torch.Tensor)
        }
        inputs = self._chat.inputs(tensors)
        with (
            self._lock,
            torch.inference_mode(),
            nets.exact_arithmetic(self._chat.device),
        ):
            if hasattr(self._chat.processor, "qformer_tokenizer"):
                output = vision_tower(model)(inputs["pixel_values"], return_dict=True)
                return _token_features("tower", output.last_hidden_state)
            output = model.get_image_features(**inputs, return_dict=True)
            tokens = output.pooler_output
            if not isinstance(tokens, torch.Tensor):
                tokens = torch.cat(list(tokens))
            projector = _token_features("projector", tokens)
            return projector | _token_features("tower", output.last_hidden_state)


def vision_tower(model: Any) -> Any:
    """Return the part of a model that encodes images (N, 3, H, W); None where it has none."""
    for name, part in model.named_modules():
        if name.rpartition(".")[2] in TOWERS:
            return part
    return None


def _token_features(name: str, tokens: Any) -> dict[str, FloatArray]:
    """Flatten all tokens of an image into one vector, and take their mean."""
    import torch

    flat = tokens.reshape(-1, tokens.shape[-1]).to("cpu", torch.float32)
    return {name: flat.reshape(-1).numpy(), f"{name}_mean": flat.mean(0).numpy()}
