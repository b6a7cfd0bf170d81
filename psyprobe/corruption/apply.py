"""An image, one of the 33 dimensions, a strength and a seed: the corrupted image.

References
----------
Li et al. (2024). R-Bench, arXiv 2410.05474: the dimensions. It publishes no parameters; those here are levels of
KADID-10k (Lin, Hosu, Saupe 2019, QoMEX) where it has the type, and ours where not, in ``dimensions.toml``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption import blocks, codecs, filters, noise, tones
from psyprobe.corruption.colour_planes import luma
from psyprobe.corruption.dimensions import STRENGTHS, Dimension, dimensions
from psyprobe.errors import InputError, PsyprobeError, unknown_name

#: Pixels of an image for which KADID's lengths and counts are meant.
NATIVE = 512 * 384

#: Each dimension is the function of its name in one of these.
_MODULES = (blocks, codecs, filters, noise, tones)
#: Those that work on colours: a grey image goes through them as RGB, and its luma comes back.
_IN_COLOUR = {
    "color_noise", "color_quantization", "hsv_saturation", "lab_saturation", "maximum_brighten", "color_diffusion",
    "color_shift", "sharpness_change",
}  # fmt: skip

#: Those that change each value by itself: of 8 bits there are 256.
_POINTWISE = {"grayscale_quantization", "minimum_darken", "mean_shift", "contrast_change"}
#: Those that move, cover, average or encode values, which 8-bit codes can be as they are. OpenCV filters codes by small
#: kernels faster than floats, and by large ones more slowly: defocus and shake go through floats.
_ON_CODES = {
    "motion_blur", "blocking_obstacle", "resolution_limit", "color_quantization", "jpeg2000", "jpeg", "webp",
    "block_exchange", "block_repeat", "block_lost",
}  # fmt: skip


def corrupt(
    image: Any,
    name: str,
    strength: str | float,
    seed: int = 0,
    *,
    image_id: str = "",
    scale: bool = False,
    denoiser: Callable[[FloatArray, float], FloatArray] | None = None,
) -> Any:
    """Corrupt an image in one of the 33 ways of R-Bench.

    Parameters
    ----------
    image : array_like, shape (H, W), (H, W, 1) or (H, W, 3)
        sRGB or grey: float from 0 to 1, or uint8. At least 8 px a side.
    name : str
        A dimension: "motion_blur"; see `dimensions`.
    strength : {"low", "mid", "high"} or float
        One of the three, or a parameter of the dimension in its own unit.
    seed : int
        Of chance. What is drawn depends on seed, dimension, strength and `image_id` alone, so order does not matter.
    image_id : str
        A name of the image, so that images of one seed are not all corrupted by the same noise.
    scale : bool
        Scale lengths by the square root of the number of pixels over 512 x 384, and counts of blocks by that number:
        the parameters are meant for that size. By default they are taken as they are.
    denoiser : callable, optional
        Of `cnn_denoise` only: from one noisy plane (0 to 1) and the standard deviation of its noise to a plane. Without
        one, non-local means stand in for the network.

    Raises
    ------
    PsyprobeError
        OpenCV or scikit-image is not installed.

    Notes
    -----
    The result has the shape and format of the image. Dimensions with ``captured`` are simulated; R-Bench photographed
    them.

    Examples
    --------
    >>> image = np.full((64, 64, 3), 0.5)
    >>> float(corrupt(image, "mean_shift", 0.25).mean()) in (0.25, 0.75)
    True
    >>> bool((corrupt(image, "white_noise", "mid", seed=1) == corrupt(image, "white_noise", "mid", seed=1)).all())
    True
    """
    known = dimensions()
    if name not in known:
        raise unknown_name("corruption", name, known)
    _check_packages()
    given, values = _checked(image, name)
    amount = _amount(known[name], strength, values.shape, scale)
    rng = _generator(seed, name, strength, image_id)
    grey = values.shape[-1] == 1
    if grey and name in _IN_COLOUR:
        values = np.repeat(values, 3, axis=-1)
    if denoiser is not None:
        if name != "cnn_denoise":
            raise InputError(f"a denoiser is for 'cnn_denoise', not for {name!r}; leave it out")
        result = noise.cnn_denoise(values, amount, rng, denoiser)
    elif name in _POINTWISE and given.dtype == np.uint8:
        return _by_table(given, lambda ramp: _function(name)(ramp, amount, rng))
    else:
        result = _function(name)(values, amount, rng)
    if result.dtype == np.uint8:
        return result.reshape(given.shape)
    result = np.clip(result, 0, 1, out=None if result is values else result)
    if grey and name in _IN_COLOUR:
        result = luma(result)
    result = result.reshape(given.shape)
    if given.dtype == np.uint8:
        result *= 255
        return np.rint(result, out=result).astype(np.uint8)
    return result.astype(given.dtype, copy=False)


def _function(name: str) -> Callable[[FloatArray, float, np.random.Generator], FloatArray]:
    found: Callable[..., FloatArray] = next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    return found


@functools.cache
def _check_packages() -> None:
    missing = [package for package in ("cv2", "skimage") if importlib.util.find_spec(package) is None]
    if missing:
        raise PsyprobeError(f"corruptions need {' and '.join(missing)}: pip install 'psyprobe[corruption]'")


def _by_table(codes: Any, function: Callable[[FloatArray], FloatArray]) -> Any:
    """What a function of each value by itself makes of 8-bit codes: computed for all 256, and looked up."""
    ramp = (np.arange(256, dtype=np.float32) / np.float32(255))[:, None, None]
    table = np.rint(np.clip(function(ramp), 0, 1) * 255).astype(np.uint8).ravel()
    import cv2

    return np.asarray(cv2.LUT(codes, table)).reshape(codes.shape)


def _checked(image: Any, name: str) -> tuple[Any, Any]:
    """The image as given, and as (H, W, C) in the format that is computed in."""
    given = np.asarray(image)
    if given.ndim not in (2, 3) or (given.ndim == 3 and given.shape[-1] not in (1, 3)) or min(given.shape[:2]) < 8:
        raise InputError(
            f"the image has shape {given.shape}; give (H, W), (H, W, 1) or (H, W, 3) with at least 8 px a side, no "
            "alpha channel"
        )
    if given.dtype == np.uint8 and name in _ON_CODES and (given.shape[-1] == 3 or name not in _IN_COLOUR):
        return given, given.reshape(*given.shape[:2], -1)
    if given.dtype == np.uint8:
        # float32 holds every step of 8 bits 65,536 times over.
        return given, (given.astype(np.float32) / np.float32(255)).reshape(*given.shape[:2], -1)
    if given.dtype.kind != "f":
        raise InputError(f"the image has the format {given.dtype}; give uint8, or float from 0 to 1")
    if not np.isfinite(given).all() or given.min() < 0 or given.max() > 1:
        raise InputError(
            f"the image has values from {np.nanmin(given):g} to {np.nanmax(given):g}; give finite values from 0 to 1"
        )
    values: FloatArray = np.ascontiguousarray(given, dtype=np.float64 if given.dtype == np.float64 else np.float32)
    return given, values.reshape(*given.shape[:2], -1)


def _amount(dimension: Dimension, strength: str | float, shape: tuple[int, ...], scale: bool) -> float:
    if isinstance(strength, str):
        if strength not in STRENGTHS:
            raise unknown_name("strength", strength, STRENGTHS)
        amount = dimension.levels[STRENGTHS.index(strength)]
    else:
        amount = float(strength)
        if not math.isfinite(amount):
            what = dimension.parameter
            raise InputError(f"the strength of {dimension.name} is {amount}; give a finite number ({what})")
    pixels = shape[0] * shape[1] / NATIVE
    factor = {"length": math.sqrt(pixels), "count": pixels, "": 1.0}[dimension.scales]
    return amount * factor if scale else amount


def _generator(seed: int, name: str, strength: str | float, image_id: str) -> np.random.Generator:
    told = hashlib.sha256(f"{seed}\n{name}\n{strength}\n{image_id}".encode()).digest()
    return np.random.default_rng(np.frombuffer(told, dtype=np.uint32))
