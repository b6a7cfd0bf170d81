"""A vision-language model of the transformers library: its loading, how images get into it, and its
eye alone.

The eye is an observer by name, "transformers_vision:MODEL_OR_PATH"; what it makes of words is in
`transformers_chat`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import psyprobe.observers.encoders.network as nets
from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError, WeightsError, unknown_name
from psyprobe.observers.chat.protocol import eight_bit
from psyprobe.observers.images import check_finite, check_images, checked_size, size_text
from psyprobe.observers.protocol import Card

PACKAGES = ("transformers", "torch", "torchvision", "tokenizers")
#: What of a repository's generation settings is kept; its temperature, penalties and forced tokens
#: are not.
_KEPT = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
#: What the vision towers of transformers models are called, of those that take (N, 3, H, W).
TOWERS = ("vision_tower", "vision_model")
#: The size of the paper's stimulus, px: what a processor makes of it is the native size where it
#: takes several.
USUAL = 256
#: A tenth of an 8-bit step: a processor that lets it pass rounds nothing.
STEP = 0.1 / 255


@dataclass(frozen=True)
class LocalOptions:
    """A chat model, or a part of one, in this process.

    Parameters
    ----------
    random_weights, device, dtype
        As in `HubOptions`.
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
    processor: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class ChatModel:
    """A vision-language model, ready to run: in evaluation mode, greedy, without settings of its
    repository's.
    """

    name: str
    model: Any
    processor: Any
    device: Any
    dtype: str
    weights: str
    weights_digest: str
    random_weights: bool

    def card(self, pixels: PixelPath, features: tuple[str, ...] = (), **options: Any) -> Card:
        """The card of what gives `features`, or else answers; it holds the class and what the
        processor does.
        """
        told = {
            "image_processor": self.processor.image_processor.to_dict(),
            "chat_template": getattr(self.processor, "chat_template", None),
        }
        canonical = json.dumps(told, sort_keys=True, default=str).encode()
        same = ("name", "dtype", "weights", "weights_digest", "random_weights")
        return Card(
            **{each: getattr(self, each) for each in same},
            ability="features" if features else "answer",
            features=features,
            input_size=pixels.input_size,
            input="normalised",
            mean=pixels.mean,
            std=pixels.std,
            device=str(self.device),
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
        kinds = {
            key: self.model.dtype if value.is_floating_point() else None
            for key, value in batch.items()
        }
        return {key: value.to(self.device, kinds[key]) for key, value in batch.items()}


def load_model(name: str, source: str, options: LocalOptions) -> ChatModel:
    """A model with its processor.

    `source` is a folder that ``save_pretrained`` wrote, or the model's name on the hub, looked for
    in the library's cache.

    Raises
    ------
    WeightsError
        If there is no such folder, or the weights are neither in the cache nor on the hub.
    InputError
        If it is no model that takes images and text and writes text.
    """
    import torch

    random_weights = options.random_weights
    dtype = options.dtype
    if dtype not in nets.DTYPES:
        raise unknown_name("dtype", dtype, nets.DTYPES)
    where = nets.checked_device(name, options.device)
    folder = Path(source).expanduser()
    if folder.is_dir():
        try:
            model, processor = _load(name, str(folder), random_weights, getattr(torch, dtype))
        except PsyprobeError:
            raise
        except (OSError, ValueError, RuntimeError, KeyError) as problem:
            told = (
                f"the folder holds no model that transformers can load: {nets.first_line(problem)}"
            )
            raise WeightsError(f"{name}: {told}") from problem
        origin = f"folder {folder}"
    elif folder.is_absolute() or source.startswith((".", "~")):
        raise WeightsError(f"{name}: there is no folder {source!r}")
    else:
        with nets.hub_weights(name):
            model, processor = _load(name, source, random_weights, getattr(torch, dtype))
        origin = f"transformers, {source}"
    # A folder of random weights, as tests make them, says so in its configuration.
    random_weights = random_weights or bool(getattr(model.config, "random_weights", False))
    digest = nets.state_digest(model.state_dict())
    _decode_plainly(model, processor.tokenizer)
    origin = nets.RANDOM if random_weights else origin
    return ChatModel(
        name, model.eval().to(where), processor, where, dtype, origin, digest, random_weights
    )


def _load(name: str, source: str, random_weights: bool, dtype: Any) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor

    with _quiet():
        try:
            processor = AutoProcessor.from_pretrained(source)
        except ImportError as problem:
            raise PsyprobeError(
                f"{name}: its processor needs a package: {nets.first_line(problem)}"
            ) from problem
        if not hasattr(processor, "image_processor") or not hasattr(processor, "tokenizer"):
            raise InputError(
                f"{name} takes no images beside text: its processor is a {type(processor).__name__}"
            )
        config = AutoConfig.from_pretrained(source)
        if type(config) not in AutoModelForImageTextToText._model_mapping:
            told = f"transformers has it as {config.model_type}"
            raise InputError(f"{name} is no model that answers about images: {told}")
        if random_weights:
            with nets.seeded():
                return AutoModelForImageTextToText.from_config(config, dtype=dtype), processor
        return AutoModelForImageTextToText.from_pretrained(source, dtype=dtype), processor


def _decode_plainly(model: Any, tokenizer: Any) -> None:
    """Forget the repository's temperature, penalties and forced tokens; those of the parts of a
    model too.
    """
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


class PixelPath:
    """The way of an image through a processor: codes in, normalised pixels out, and back to drive.

    What a processor does is found by sending images through it, not read from its settings: whether
    fractions of an 8-bit code pass, which size it leaves as it is, and which of several views shows
    the whole image.

    Parameters
    ----------
    name : str
        The observer's name, for messages.
    image_processor : transformers.BaseImageProcessor
        The processor.
    dtype : torch.dtype
        The format in which the network takes pixels.
    input_size : tuple of int, optional
        (height, width), px, that images will have; by default what the processor makes of 256 x 256
        px.
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
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._name = name
        self._processor = image_processor
        self._dtype = dtype
        self._overview = 0
        self.bits: int | None = 8
        #: An image goes in once, whole: tiles would show the network the same stimulus at two
        #: scales.
        whole = (
            {"do_image_splitting": False}
            if getattr(image_processor, "do_image_splitting", False)
            else {}
        )
        self.options = whole if options is None else dict(options)
        self._obstacle = self._measure()
        self.input_size = None if self._obstacle else self._native(search=options is None)
        if input_size is not None:
            if self._obstacle or not self._leaves(input_size):
                instead = (
                    f"; leave input_size out to draw at {size_text(self.input_size)}"
                    if self.input_size
                    else ""
                )
                raise InputError(
                    f"{name} does not take images of {size_text(input_size)} as they are{instead}"
                )
            self.input_size = input_size

    @property
    def mean(self) -> tuple[float, ...]:
        """What the processor subtracts, in units of drive."""
        return self._normalisation("image_mean", 0.0)

    @property
    def std(self) -> tuple[float, ...]:
        """What the processor divides by, in units of drive."""
        return self._normalisation("image_std", 1.0)

    def hand_over(self, images: Sequence[FloatArray]) -> list[Any]:
        """Images in the form in which the processor takes them: uint8 codes (H, W, 3), or float32
        codes (3, H, W) that are not rounded.

        Raises
        ------
        InputError
            If an image has another shape or format, or lies between 8-bit codes where those are
            needed.
        """
        import torch

        for image in images:
            check_images(np.asarray(image)[None], self._name)
            if np.shape(image)[-1] != 3:
                raise InputError(f"{self._name} takes three channels and got {np.shape(image)[-1]}")
        if self.bits == 8:
            return [eight_bit(image) for image in images]
        # Codes in floating point, not drive: what the processor pads with and divides by is meant
        # for codes.
        codes = (np.asarray(image, dtype=np.float64).transpose(2, 0, 1) * 255 for image in images)
        return [torch.from_numpy(np.ascontiguousarray(code, dtype=np.float32)) for code in codes]

    def delivered(self, image: FloatArray) -> FloatArray:
        """The image that the network gets: drive (h, w, 3), after resizing, rounding and the
        network's own format.

        Where an image is cut into tiles, the view of the whole.

        Raises
        ------
        PsyprobeError
            If the processor lays its pixels out in a way that is not known here.
        """
        if self._obstacle:
            raise PsyprobeError(
                f"{self._name}: what reaches the network cannot be told: {self._obstacle}"
            )
        return self._drive(self._views(image)[self._overview].to(self._dtype))

    def _views(self, image: FloatArray) -> Any:
        """(views, 3, h, w) as the processor normalises them."""
        batch = self._processor([self.hand_over([image])], return_tensors="pt", **self.options)
        return _planes(batch, self._processor)

    def _drive(self, view: Any) -> FloatArray:
        normalised = view.double().cpu().numpy().transpose(1, 2, 0)
        factor = self._processor.rescale_factor if self._processor.do_rescale else 1.0
        return np.asarray(
            (normalised * np.asarray(self.std) + np.asarray(self.mean)) / factor / 255
        )

    def _normalisation(self, setting: str, none: float) -> tuple[float, ...]:
        given = getattr(self._processor, setting) if self._processor.do_normalize else none
        return tuple(np.broadcast_to(given, 3).tolist())

    def _measure(self) -> str:
        """Find out whether floats pass and which view is the whole; the reason where pixels cannot
        be read back.
        """
        obstacle = ""
        grey = np.full((USUAL, USUAL, 3), 128 / 255)
        for bits in (None, 8):
            self.bits = bits
            try:
                level = self._middle(grey)
                rise = self._middle(grey + STEP) - level if bits is None else STEP
            except (
                Exception
            ) as problem:  # whatever a processor raises on floats or a layout that is unknown here
                obstacle = nets.first_line(problem)
                continue
            if not np.allclose(level, 128 / 255, atol=1e-3):
                obstacle = f"mid grey comes out as {np.round(level, 3).tolist()}"
            elif np.allclose(rise, STEP, rtol=0.05, atol=0):
                self._overview = self._whole_view()
                return ""
        return obstacle

    def _middle(self, image: FloatArray) -> FloatArray:
        drive = self._drive(self._views(image)[0])
        return np.asarray(drive[drive.shape[0] // 2, drive.shape[1] // 2])

    def _whole_view(self) -> int:
        """The first or the last view, whichever holds more of a ramp; libraries put the whole at
        either end.
        """
        ramp = np.broadcast_to((np.arange(USUAL) / 255)[:, None], (USUAL, USUAL, 3))
        seen = self._views(ramp)
        spread = [float(seen[each].max() - seen[each].min()) for each in (0, -1)]
        return 0 if spread[0] >= spread[1] else -1

    def _native(self, *, search: bool) -> tuple[int, int] | None:
        """The size that passes as it is, with the processor's resizing switched off where nothing
        else helps.
        """
        given = self.options
        for extra in ({}, {"do_resize": False}) if search else ({},):
            self.options = given | extra
            try:
                height, width = self._views(np.zeros((USUAL, USUAL, 3)))[self._overview].shape[-2:]
                if self._leaves((height, width)):
                    return height, width
            except (
                ValueError,
                RuntimeError,
                TypeError,
            ):  # this processor cannot do without resizing
                continue
        self.options = given
        return None

    def _leaves(self, size: tuple[int, int]) -> bool:
        noise = np.random.default_rng(0).integers(0, 256, (*size, 3)) / 255
        found = self._drive(self._views(noise)[self._overview])
        return found.shape == noise.shape and bool(np.abs(found - noise).max() < 1e-5)


def pixel_path(name: str, chat: ChatModel, options: LocalOptions) -> PixelPath:
    """The way of images into a model, for the size and the processor's arguments that were asked
    for.
    """
    size = None if options.input_size is None else checked_size(options.input_size)
    return PixelPath(
        name,
        chat.processor.image_processor,
        chat.model.dtype,
        input_size=size,
        options=options.processor,
    )


def _planes(batch: Mapping[str, Any], image_processor: Any) -> Any:
    """The pixels of one image as (views, 3, h, w)."""
    pixels = batch["pixel_values"]
    if "image_grid_thw" in batch:
        _, rows, columns = (int(each) for each in batch["image_grid_thw"][0])
        merge = image_processor.merge_size
        patch = image_processor.patch_size
        # rows and columns of blocks, of patches in a block; then channel, frame, and pixels in a
        # patch
        grid = pixels.reshape(rows // merge, columns // merge, merge, merge, 3, -1, patch, patch)[
            :, :, :, :, :, 0
        ]
        return grid.permute(4, 0, 2, 5, 1, 3, 6).reshape(1, 3, rows * patch, columns * patch)
    if pixels.ndim in (4, 5) and pixels.shape[-3] == 3:
        return pixels.reshape(-1, *pixels.shape[-3:])
    raise PsyprobeError(f"its pixels come in the shape {tuple(pixels.shape)}")


@dataclass(frozen=True)
class VisionOptions(LocalOptions):
    """The vision tower of a chat model.

    Parameters
    ----------
    layers : "all" or iterable of str, optional
        What is wanted: "projector", all that the language model gets of an image; "projector_mean",
        its mean over tokens; "tower", the last layer of the vision tower; "tower_mean", its mean
        over tokens. By default the first of these that the model has: where what the language model
        gets depends on the words too, as in InstructBLIP, there is no projector.
    """

    layers: str | Iterable[str] | None = None


def load_transformers_vision(source: str, options: VisionOptions) -> TransformersVision:
    """The vision tower of a chat model, with the weights and the processor that "transformers:"
    asks.
    """
    name = f"transformers_vision:{source}"
    chat = load_model(name, source, options)
    return TransformersVision(chat, pixel_path(name, chat, options), options.layers)


class TransformersVision:
    """What a chat model's vision tower makes of images."""

    def __init__(
        self, chat: ChatModel, pixels: PixelPath, layers: str | Iterable[str] | None
    ) -> None:
        self._chat = chat
        self._pixels = pixels
        self._lock = threading.Lock()
        size = pixels.input_size or (224, 224)
        known = tuple(self._look(np.full((*size, 3), 128 / 255)))
        wanted = known[:1] if layers is None else known if layers == "all" else layers
        features = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        for name in features:
            if name not in known:
                raise nets.unknown_layer(chat.name, name, known)
        nets.check_each_once(chat.name, features)
        self.card = chat.card(pixels, features)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Feature vectors of images, which go through the tower one by one.

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
        each = [self._look(np.asarray(image)) for image in images]
        found = {name: np.stack([one[name] for one in each]) for name in card.features}
        for name, rows in found.items():
            check_finite(card.name, name, rows, f" (in {card.dtype})")
        return found

    def _look(self, image: FloatArray) -> dict[str, FloatArray]:
        import torch

        model = self._chat.model
        processor = self._chat.processor.image_processor
        batch = processor(
            [self._pixels.hand_over([image])], return_tensors="pt", **self._pixels.options
        )
        inputs = self._chat.inputs(
            {key: value for key, value in batch.items() if isinstance(value, torch.Tensor)}
        )
        with self._lock, torch.inference_mode(), nets.exact_arithmetic(self._chat.device):
            if hasattr(self._chat.processor, "qformer_tokenizer"):
                seen = vision_tower(model)(inputs["pixel_values"], return_dict=True)
                return _rows("tower", seen.last_hidden_state)
            seen = model.get_image_features(**inputs, return_dict=True)
            given = seen.pooler_output
            tokens = given if isinstance(given, torch.Tensor) else torch.cat(list(given))
            return _rows("projector", tokens) | _rows("tower", seen.last_hidden_state)


def vision_tower(model: Any) -> Any:
    """The part of a model that looks at images, if it has one that takes (N, 3, H, W); else
    None.
    """
    return next(
        (part for name, part in model.named_modules() if name.rpartition(".")[2] in TOWERS), None
    )


def _rows(name: str, tokens: Any) -> dict[str, FloatArray]:
    """All tokens of an image in one row, and their mean."""
    import torch

    flat = tokens.reshape(-1, tokens.shape[-1]).to("cpu", torch.float32)
    return {name: flat.reshape(-1).numpy(), f"{name}_mean": flat.mean(0).numpy()}
