"""Simulate natural pictures, whose amplitude falls with frequency as that of photographs does.

References
----------
Field (1987). Relations between the statistics of natural images and the response properties of
cortical cells. Journal of the Optical Society of America A 4(12), 2379-2394.
"""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray, Size


def natural_picture(shape: Size, seed: int) -> FloatArray:
    """Draw a picture of random phases whose amplitude is in proportion to 1 / frequency.

    Parameters
    ----------
    shape : tuple of int
        Pixels (H, W).
    seed : int
        Of the phases.

    Returns
    -------
    ndarray, shape (H, W)
        Of mean 0 and of a largest deviation of 1, so that light in it reaches as far as in a
        pattern of the same contrast.

    Examples
    --------
    >>> picture = natural_picture((32, 48), seed=1)
    >>> picture.shape, float(np.abs(picture).max())
    ((32, 48), 1.0)
    """
    height, width = shape
    white = np.random.default_rng(seed).standard_normal(shape)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    frequency[0, 0] = np.inf
    picture = np.fft.irfft2(np.fft.rfft2(white) / frequency, s=shape)
    return np.asarray(picture / np.abs(picture).max())
