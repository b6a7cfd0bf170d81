"""Tools without weights: classical segmentation and inpainting, as substitutes that say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.mvp_construction.masks import Mask
from psyprobe.mvp_construction.tools import Image, ToolCard, versions

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
        """One mask a region, with what it encloses: the eyes of a face belong to the face.

        Parameters
        ----------
        image : ndarray of uint8, shape (H, W, 3)
            sRGB.

        Returns
        -------
        ndarray of bool, shape (N, H, W)
        """
        from scipy.ndimage import binary_fill_holes
        from skimage import segmentation

        labels = np.asarray(getattr(segmentation, self._method)(image, channel_axis=-1, **self._settings))
        return np.stack([binary_fill_holes(labels == label) for label in np.unique(labels)])


class SmoothInpainter:
    """Fills a hole with what continues its rim (Telea's fast marching); it does not know what the caption says.

    Parameters
    ----------
    radius : float
        Of the neighbourhood that a pixel is made from, px.

    Raises
    ------
    PsyprobeError
        OpenCV is not installed.

    References
    ----------
    Telea (2004). An image inpainting technique based on the fast marching method. Journal of Graphics Tools 9.
    """

    def __init__(self, radius: float = 5.0) -> None:
        try:
            software = versions("cv2")
        except ImportError as error:
            raise PsyprobeError(f"inpainter telea needs OpenCV: {_INSTALL}") from error
        self._radius = radius
        self.card = ToolCard("telea", {"radius": radius, "caption": "not used"}, software)

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """The image with its hole filled from the rim.

        Parameters
        ----------
        image : ndarray of uint8, shape (H, W, 3)
            sRGB.
        hole : ndarray of bool, shape (H, W)
            What to fill.
        caption, seed
            Not used: nothing is imagined and nothing drawn.

        Returns
        -------
        ndarray of uint8, shape (H, W, 3)
        """
        import cv2

        filled = cv2.inpaint(np.ascontiguousarray(image), hole.astype(np.uint8), self._radius, cv2.INPAINT_TELEA)
        return np.asarray(filled, dtype=np.uint8)


class RecolourEditor:
    """Turns the colours of an image by a drawn angle; it does not know what the instruction says.

    A stand-in where no editing model is at hand. In opponent channels (grey, red-green, yellow-blue) the two colour
    channels are turned, so lightness stays about the same.
    """

    card = ToolCard("recolour", {"instruction": "not used"})

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """The image in other colours.

        Parameters
        ----------
        image : ndarray of uint8, shape (H, W, 3)
            sRGB.
        instruction : str
            Not used.
        seed : int
            Of the angle, which lies between 90 and 270 deg.

        Returns
        -------
        ndarray of uint8, shape (H, W, 3)
        """
        angle = np.deg2rad(np.random.default_rng(seed).uniform(90, 270))
        axes = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]]) / np.sqrt([[3], [2], [6]])
        turn = np.array(
            [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]], dtype=np.float64
        )
        turned = np.asarray(image, dtype=np.float64) @ (axes.T @ turn @ axes).T
        return np.clip(np.rint(turned), 0, 255).astype(np.uint8)
