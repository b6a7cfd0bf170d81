"""A simulated reader of stripes behind the steps of a server: images are resized and sent as JPEG
before it looks.
"""

from __future__ import annotations

import io

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, eight_bit
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card

#: It sees no direction where energies differ by less than this share of them, or by less than so
#: many codes, squared.
_LEAST_SHARE = 0.05
_LEAST_CODES = 0.1


class StripeReader(Answering):
    """Names the direction of stripes by the energy of differences across and down, of luma and of
    colour alike.

    Where neither direction has more, it guesses.

    Parameters
    ----------
    side : int, optional
        Images are resized to so many pixels on the side before it looks (Pillow's bicubic, with
        smoothing).
    jpeg : int, optional
        Images are then encoded as JPEG of this quality, 1 to 95, with colour at half the resolution
        (4:2:0).
    smoothing : bool
        False: resizing takes the nearest pixel, and fine stripes alias.
    guesses : bool
        It answers without looking.
    seed : int
        Of its guesses.

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
        """The image as it gets to see it, drive (h, w, 3)."""
        seen = self._steps(image) / 255.0
        return np.repeat(seen[..., None], 3, axis=-1) if seen.ndim == 2 else seen

    def _steps(self, image: FloatArray) -> FloatArray:
        """Codes of the image that it gets to see; one plane of a grey view."""
        from PIL import Image

        codes = eight_bit(image)
        shown = Image.fromarray(
            np.ascontiguousarray(codes[..., 0]) if ImagePlanes.of(image).is_grey else codes
        )
        if self._side is not None:
            way = Image.Resampling.BICUBIC if self._smoothing else Image.Resampling.NEAREST
            shown = shown.resize((self._side, self._side), way)
        if self._jpeg is not None:
            file = io.BytesIO()
            shown.save(file, "JPEG", quality=self._jpeg, subsampling="4:2:0")
            shown = Image.open(file)
        return np.asarray(shown, dtype=np.float64)

    def _reply(self, inquiry: Inquiry) -> Answer:
        across, down = (0.0, 0.0) if self._guesses else _energies(self._steps(inquiry.images[0]))
        seen = abs(across - down) > max(_LEAST_SHARE * (across + down), _LEAST_CODES**2)
        vertical = across > down if seen else self._rng.random() < 0.5
        return Answer("Vertical." if vertical else "Horizontal.", model=self.card.name)


def _energies(codes: FloatArray) -> tuple[float, float]:
    """Mean squares of the differences across and down, over luma and both colour planes of ITU-R
    BT.601.
    """
    planes = codes[None]
    if codes.ndim == 3:
        luma = codes @ np.array([0.299, 0.587, 0.114])
        planes = np.stack([luma, (codes[..., 2] - luma) / 1.772, (codes[..., 0] - luma) / 1.402])
    across, down = (
        float(len(planes) * np.mean(np.diff(planes, axis=axis) ** 2)) for axis in (2, 1)
    )
    return across, down
