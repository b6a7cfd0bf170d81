"""Is a photograph fit to be a reference: large enough, sharp, neither too dark nor too bright, and not cut off."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError


@dataclass(frozen=True)
class ReferenceLimits:
    """What a reference image must be like; chosen so that snapshots pass and thumbnails, blur and blank pages do not.

    Parameters
    ----------
    side : int
        Smallest allowed shorter side, px.
    sharpness : float
        Smallest allowed variance of the Laplacian of luma, in 8-bit codes squared (Pech-Pacheco et al. 2000), after the
        image was made so small that its shorter side is 256 px, since it grows with resolution.
    exposure : (float, float)
        Smallest and largest allowed mean luma, 0 to 1.
    clipped : float
        Largest allowed share of pixels at 0 or 255 in all channels.
    """

    side: int = 224
    sharpness: float = 20.0
    exposure: tuple[float, float] = (0.05, 0.95)
    clipped: float = 0.5

    def to_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold."""
        return {**asdict(self), "exposure": list(self.exposure)}


def measure_reference(image: npt.NDArray[np.uint8]) -> dict[str, float]:
    """Side, sharpness, exposure and clipped share of an image.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.

    Returns
    -------
    dict of str to float
        As in `ReferenceLimits`.

    Examples
    --------
    >>> measure_reference(np.zeros((32, 32, 3), np.uint8))
    {'side': 32, 'sharpness': 0.0, 'exposure': 0.0, 'clipped': 1.0}
    """
    import cv2

    grey = luma(image.astype(np.float32))
    small = grey
    shorter = min(grey.shape)
    if shorter > 256:
        size = (round(grey.shape[1] * 256 / shorter), round(grey.shape[0] * 256 / shorter))
        small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))
    flat = (image == 0).all(axis=-1) | (image == 255).all(axis=-1)
    return {
        "side": shorter,
        "sharpness": float(np.var(cv2.Laplacian(small, cv2.CV_32F))),
        "exposure": float(grey.mean()) / 255,
        "clipped": float(flat.mean()),
    }


def check_reference(image: npt.NDArray[np.uint8], name: str, limits: ReferenceLimits) -> dict[str, float]:
    """Measure a reference image, and refuse one that is not fit.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    name : str
        For messages.
    limits : ReferenceLimits
        What is fit.

    Returns
    -------
    dict of str to float
        As `measure_reference` gives it.

    Raises
    ------
    InputError
        It is too small, blurred, too dark or bright, or cut off.
    """
    found = measure_reference(image)
    low, high = limits.exposure
    if found["side"] < limits.side:
        raise InputError(f"{name} has a shorter side of {found['side']:g} px; a reference needs {limits.side}")
    if not low <= found["exposure"] <= high:
        raise InputError(f"{name} has a mean luma of {found['exposure']:.3f}; a reference needs {low:g} to {high:g}")
    if found["clipped"] > limits.clipped:
        raise InputError(
            f"{name} has {found['clipped']:.0%} of its pixels black or white; a reference may have {limits.clipped:.0%}"
        )
    if found["sharpness"] < limits.sharpness:
        raise InputError(
            f"{name} is blurred: its Laplacian has the variance {found['sharpness']:.1f}; a reference needs "
            f"{limits.sharpness:g}"
        )
    return found
