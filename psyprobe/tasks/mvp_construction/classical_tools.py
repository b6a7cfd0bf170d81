"""Tools without weights: classical segmentation and inpainting, as substitutes that say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.tasks.mvp_construction.manipulation import Image, Mask
from psyprobe.tasks.mvp_construction.tools import ToolCard, versions

_INSTALL = "pip install 'psyprobe[corruption]'"


class RegionSegmenter:
    """The regions of a classical segmentation, one mask each.

    Parameters
    ----------
    method : {"felzenszwalb", "slic"}
        Graph-based segmentation (scale, sigma, min_size), or superpixels (n_segments, compactness, sigma).
    **settings : float
        Of the method; those of scikit-image, which are to be told in the card.

    Raises
    ------
    InputError
        There is no such method.
    PsyprobeError
        scikit-image is not installed.

    References
    ----------
    Felzenszwalb & Huttenlocher (2004). Efficient graph-based image segmentation. IJCV 59.
    Achanta et al. (2012). SLIC superpixels compared to state-of-the-art superpixel methods. IEEE TPAMI 34.
    """

    def __init__(self, method: str = "felzenszwalb", **settings: Any) -> None:
        defaults = {
            "felzenszwalb": {"scale": 400.0, "sigma": 0.8, "min_size": 400},
            "slic": {"n_segments": 12, "compactness": 10.0, "sigma": 1.0},
        }
        if method not in defaults:
            raise InputError(f"there is no classical segmentation {method!r}; give felzenszwalb or slic")
        unknown = sorted(set(settings) - set(defaults[method]))
        if unknown:
            raise InputError(f"{method} has no setting {unknown[0]!r}; it has {', '.join(defaults[method])}")
        try:
            software = versions("skimage")
        except ImportError as error:
            raise PsyprobeError(f"segmenter {method} needs scikit-image: {_INSTALL}") from error
        self._method = method
        self._settings = {**defaults[method], **settings}
        self.card = ToolCard(method, self._settings, software)

    def masks(self, image: Image) -> Mask:
        """One mask a region, with what it encloses: the eyes of a face belong to the face."""
        from scipy.ndimage import binary_fill_holes
        from skimage import segmentation

        labels = np.asarray(getattr(segmentation, self._method)(image, channel_axis=-1, **self._settings))
        return np.stack([binary_fill_holes(labels == label) for label in np.unique(labels)])


class SmoothInpainter:
    """Fills a hole smoothly from its rim (pull-push); it does not know what the caption says.

    The image is halved until no hole is left, averaging known pixels alone; then the holes of each size are filled
    from the next smaller one.

    References
    ----------
    Gortler, Grzeszczuk, Szeliski & Cohen (1996). The lumigraph. SIGGRAPH, section 3.4.
    """

    card = ToolCard("pull_push", {"caption": "not used"})

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """The image with its hole filled from the rim."""
        from PIL.Image import Resampling

        known: FloatArray = (~hole).astype(np.float32)
        levels: list[tuple[FloatArray, FloatArray]] = [(np.asarray(image, dtype=np.float32), known)]
        while (known == 0).any() and known.size > 1:
            light, known = levels[-1]
            size = (-(-known.shape[0] // 2), -(-known.shape[1] // 2))
            smaller = _resized(known[..., None], size, Resampling.BOX)
            light = _resized(light * known[..., None], size, Resampling.BOX) / np.maximum(smaller, 1e-6)
            known = smaller[..., 0]
            levels.append((light, known))
        filled: FloatArray = np.where(levels[-1][1][..., None] > 0, levels[-1][0], np.float32(127.5))
        for light, known in levels[-2::-1]:
            filled = np.where(known[..., None] > 0, light, _resized(filled, known.shape, Resampling.BILINEAR))
        return np.clip(np.rint(filled), 0, 255).astype(np.uint8)


def _resized(channels: FloatArray, size: tuple[int, ...], kind: Any) -> FloatArray:
    """Channels (H, W, C) in float32 at another height and width."""
    from PIL import Image as Picture

    height, width = size
    planes = [Picture.fromarray(channels[..., k].astype(np.float32)) for k in range(channels.shape[-1])]
    return np.stack([np.asarray(plane.resize((width, height), kind)) for plane in planes], axis=-1)


class RecolourEditor:
    """Turns the colours of an image by a drawn angle; it does not know what the instruction says.

    A stand-in where no editing model is at hand. In opponent channels (grey, red-green, yellow-blue) the two colour
    channels are turned, so lightness stays about the same.
    """

    card = ToolCard("recolour", {"instruction": "not used"})

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """The image in other colours."""
        angle = np.deg2rad(np.random.default_rng(seed).uniform(90, 270))
        axes = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]]) / np.sqrt([[3], [2], [6]])
        turn = np.array(
            [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]], dtype=np.float64
        )
        turned = np.asarray(image, dtype=np.float64) @ (axes.T @ turn @ axes).T
        return np.clip(np.rint(turned), 0, 255).astype(np.uint8)
