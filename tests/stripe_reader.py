"""Simulate a reader of stripes whose server resizes images and sends them as JPEG."""

from __future__ import annotations

import io

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, eight_bit
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card

#: It sees no direction where energies differ by less than this share of them, or by less than the
#: square of this many codes.
_MIN_SHARE = 0.05
_MIN_CODES = 0.1


class StripeReader(Answering):
    """An observer that names the direction of stripes by the energy of differences across and down.

    Luma and colour count alike. Where neither direction has more energy, it guesses.

    Parameters
    ----------
    side : int, optional
        Side in pixels to which images are resized (Pillow's bicubic, with smoothing).
    jpeg : int, optional
        JPEG quality, 1 to 95, with which images are then encoded; colour has half the resolution
        (4:2:0).
    smoothing : bool
        Whether resizing smooths; else it takes the nearest pixel, and fine stripes alias.
    guesses : bool
        Whether it answers without looking.
    seed : int
        Seed of its guesses.

    Raises
    ------
    InputError
        A size or a quality is out of range.

    Examples
    --------
    >>> stripes = np.zeros((64, 64, 3))
    >>> stripes[:, ::2] = 1
    >>> StripeReader().answer([stripes], "Are the stripes vertical or horizontal?").text
    'Vertical.'
    """

    fewest_images = images_at_once = 1
    bits = 8

    def __init__(
        self,
        side: int | None = None,
        jpeg: int | None = None,
        *,
        smoothing: bool = True,
        guesses: bool = False,
        seed: int = 0,
    ) -> None:
        if side is not None and not 8 <= side <= 8192:
            raise InputError(f"side is {side!r} px; give a whole number from 8 to 8192")
        if jpeg is not None and not 1 <= jpeg <= 95:
            raise InputError(f"jpeg is {jpeg!r}; give a quality from 1 to 95")
        self._side = side
        self._jpeg = jpeg
        self._smoothing = smoothing
        self._guesses = guesses
        self._rng = np.random.default_rng(seed)
        options = {
            "side": side,
            "jpeg": jpeg,
            "smoothing": smoothing,
            "guesses": guesses,
            "seed": seed,
        }
        self.card = Card("simulated stripe reader", "answer", options=options)

    def delivered(self, image: FloatArray) -> FloatArray:
        """Return the image that it gets to see, drive (h, w, 3)."""
        drive = self._delivered_codes(image) / 255.0
        return np.repeat(drive[..., None], 3, axis=-1) if drive.ndim == 2 else drive

    def _delivered_codes(self, image: FloatArray) -> FloatArray:
        """Resize and encode an image; codes (h, w) of a grey image, or (h, w, 3)."""
        from PIL import Image

        codes = eight_bit(image)
        if ImagePlanes.of(image).is_grey:
            codes = np.ascontiguousarray(codes[..., 0])
        picture = Image.fromarray(codes)
        if self._side is not None:
            method = (
                Image.Resampling.BICUBIC
                if self._smoothing
                else Image.Resampling.NEAREST
            )
            picture = picture.resize((self._side, self._side), method)
        if self._jpeg is not None:
            file = io.BytesIO()
            picture.save(file, "JPEG", quality=self._jpeg, subsampling="4:2:0")
            picture = Image.open(file)
        return np.asarray(picture, dtype=np.float64)

    def _reply(self, inquiry: Inquiry) -> Answer:
        across = down = 0.0
        if not self._guesses:
            across, down = _energies(self._delivered_codes(inquiry.images[0]))
        is_visible = abs(across - down) > max(
            _MIN_SHARE * (across + down), _MIN_CODES**2
        )
        is_vertical = across > down if is_visible else self._rng.random() < 0.5
        return Answer(
            "Vertical." if is_vertical else "Horizontal.", model=self.card.name
        )


def _energies(codes: FloatArray) -> tuple[float, float]:
    """Return mean squares of differences across and down, over luma and colour (ITU-R BT.601)."""
    planes = codes[None]
    if codes.ndim == 3:
        luma = codes @ np.array([0.299, 0.587, 0.114])
        planes = np.stack(
            [luma, (codes[..., 2] - luma) / 1.772, (codes[..., 0] - luma) / 1.402]
        )
    across = np.mean(np.diff(planes, axis=2) ** 2)
    down = np.mean(np.diff(planes, axis=1) ** 2)
    return float(len(planes) * across), float(len(planes) * down)
