"""How images get through a transformers processor, and what of them reaches the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.answering import eight_bit
from psyprobe.observers.chat.transformers_loading import ChatModel, LocalOptions
from psyprobe.observers.encoders.images import check_images, checked_size, size_text
from psyprobe.observers.encoders.weights import first_line

#: The size of the paper's stimulus, px: what a processor makes of it is the native size where it takes several.
USUAL = 256
#: A tenth of an 8-bit step: a processor that lets it pass rounds nothing.
STEP = 0.1 / 255


class PixelPath:
    """The way of an image through a processor: codes in, normalised pixels out, and back to drive.

    What a processor does is found by sending images through it, not read from its settings: whether fractions of
    an 8-bit code pass, which size it leaves as it is, and which of several views shows the whole image.

    Parameters
    ----------
    name : str
        The observer's name, for messages.
    image_processor : transformers.BaseImageProcessor
        The processor.
    dtype : torch.dtype
        The format in which the network takes pixels.
    input_size : tuple of int, optional
        (height, width), px, that images will have; by default what the processor makes of 256 x 256 px.
    options : mapping, optional
        Arguments for the processor's image part. By default an image is not cut into tiles, and not resized where
        the processor would otherwise enlarge it and reduce it again.

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
        self._name, self._processor, self._dtype = name, image_processor, dtype
        self._overview = 0
        self.bits: int | None = 8
        self.options = _whole(image_processor) if options is None else dict(options)
        self._obstacle = self._measure()
        self.input_size = None if self._obstacle else self._native(search=options is None)
        if input_size is not None:
            if self._obstacle or not self._leaves(input_size):
                instead = f"; leave input_size out to draw at {size_text(self.input_size)}" if self.input_size else ""
                raise InputError(f"{name} does not take images of {size_text(input_size)} as they are{instead}")
            self.input_size = input_size

    @property
    def mean(self) -> tuple[float, ...]:
        """What the processor subtracts, in units of drive."""
        return tuple(np.broadcast_to(self._processor.image_mean, 3).tolist()) if self._normalises else (0.0,) * 3

    @property
    def std(self) -> tuple[float, ...]:
        """What the processor divides by, in units of drive."""
        return tuple(np.broadcast_to(self._processor.image_std, 3).tolist()) if self._normalises else (1.0,) * 3

    def hand_over(self, images: Sequence[FloatArray]) -> list[Any]:
        """Images in the form in which the processor takes them: uint8 codes (H, W, 3), or float32 codes
        (3, H, W) that are not rounded.

        Raises
        ------
        InputError
            If an image has another shape or format, or lies between 8-bit codes where those are needed.
        """
        import torch

        for image in images:
            check_images(np.asarray(image)[None], self._name)
            if np.shape(image)[-1] != 3:
                raise InputError(f"{self._name} takes three channels and got {np.shape(image)[-1]}")
        if self.bits == 8:
            return [eight_bit(image) for image in images]
        # Codes in floating point, not drive: what the processor pads with and divides by is meant for codes.
        codes = (np.asarray(image, dtype=np.float64).transpose(2, 0, 1) * 255 for image in images)
        return [torch.from_numpy(np.ascontiguousarray(each, dtype=np.float32)) for each in codes]

    def delivered(self, image: FloatArray) -> FloatArray:
        """The image that the network gets: drive (h, w, 3), after resizing, rounding and the network's own format.

        Where an image is cut into tiles, the view of the whole.

        Raises
        ------
        PsyprobeError
            If the processor lays its pixels out in a way that is not known here.
        """
        if self._obstacle:
            raise PsyprobeError(f"{self._name}: what reaches the network cannot be told: {self._obstacle}")
        return self._drive(self._views(image)[self._overview].to(self._dtype))

    def _views(self, image: FloatArray) -> Any:
        """(views, 3, h, w) as the processor normalises them."""
        batch = self._processor([self.hand_over([image])], return_tensors="pt", **self.options)
        return _planes(batch, self._processor)

    def _drive(self, view: Any) -> FloatArray:
        normalised = view.double().cpu().numpy().transpose(1, 2, 0)
        factor = self._processor.rescale_factor if self._processor.do_rescale else 1.0
        drive: FloatArray = (normalised * np.asarray(self.std) + np.asarray(self.mean)) / factor / 255
        return drive

    @property
    def _normalises(self) -> bool:
        return bool(self._processor.do_normalize)

    def _measure(self) -> str:
        """Find out whether floats pass and which view is the whole; the reason where pixels cannot be read back."""
        obstacle = ""
        grey = np.full((USUAL, USUAL, 3), 128 / 255)
        for bits in (None, 8):
            self.bits = bits
            try:
                level = self._middle(grey)
                rise = self._middle(grey + STEP) - level if bits is None else STEP
            except Exception as problem:  # whatever a processor raises on floats or a layout that is unknown here
                obstacle = first_line(problem)
                continue
            if not np.allclose(level, 128 / 255, atol=1e-3):
                obstacle = f"mid grey comes out as {np.round(level, 3).tolist()}"
            elif np.allclose(rise, STEP, rtol=0.05, atol=0):
                self._overview = self._whole_view()
                return ""
        return obstacle

    def _middle(self, image: FloatArray) -> FloatArray:
        drive = self._drive(self._views(image)[0])
        level: FloatArray = drive[drive.shape[0] // 2, drive.shape[1] // 2]
        return level

    def _whole_view(self) -> int:
        """The first or the last view, whichever holds more of a ramp; libraries put the whole at either end."""
        ramp = np.broadcast_to((np.arange(USUAL) / 255)[:, None], (USUAL, USUAL, 3))
        seen = self._views(ramp)
        spread = [float(seen[each].max() - seen[each].min()) for each in (0, -1)]
        return 0 if spread[0] >= spread[1] else -1

    def _native(self, *, search: bool) -> tuple[int, int] | None:
        """The size that passes as it is, with the processor's resizing switched off where nothing else helps."""
        given = self.options
        for extra in ({}, {"do_resize": False}) if search else ({},):
            self.options = given | extra
            try:
                height, width = self._views(np.zeros((USUAL, USUAL, 3)))[self._overview].shape[-2:]
                if self._leaves((height, width)):
                    return height, width
            except (ValueError, RuntimeError, TypeError):  # this processor cannot do without resizing
                continue
        self.options = given
        return None

    def _leaves(self, size: tuple[int, int]) -> bool:
        noise = np.random.default_rng(0).integers(0, 256, (*size, 3)) / 255
        found = self._drive(self._views(noise)[self._overview])
        return found.shape == noise.shape and bool(np.abs(found - noise).max() < 1e-5)


def pixel_path(name: str, chat: ChatModel, options: LocalOptions) -> PixelPath:
    """The way of images into a model, for the size and the processor's arguments that were asked for."""
    size = None if options.input_size is None else checked_size(options.input_size)
    return PixelPath(name, chat.processor.image_processor, chat.model.dtype, input_size=size, options=options.processor)


def _whole(image_processor: Any) -> dict[str, Any]:
    """An image goes in once, whole: tiles would show the network the same stimulus at two scales."""
    return {"do_image_splitting": False} if getattr(image_processor, "do_image_splitting", False) else {}


def _planes(batch: Mapping[str, Any], image_processor: Any) -> Any:
    """The pixels of one image as (views, 3, h, w)."""
    pixels = batch["pixel_values"]
    if "image_grid_thw" in batch:
        _, rows, columns = (int(each) for each in batch["image_grid_thw"][0])
        merge, patch = image_processor.merge_size, image_processor.patch_size
        # rows and columns of blocks, of patches in a block; then channel, frame, and pixels in a patch
        grid = pixels.reshape(rows // merge, columns // merge, merge, merge, 3, -1, patch, patch)[:, :, :, :, :, 0]
        return grid.permute(4, 0, 2, 5, 1, 3, 6).reshape(1, 3, rows * patch, columns * patch)
    if pixels.ndim in (4, 5) and pixels.shape[-3] == 3:
        return pixels.reshape(-1, *pixels.shape[-3:])
    raise PsyprobeError(f"its pixels come in the shape {tuple(pixels.shape)}")
