"""Corrupt an image along each of the 33 dimensions, by a function of the dimension's name.

A function takes an image, the dimension's parameter and a random generator. First come those that
blur, cover, move and encode, then those that change each value or colour in its place.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from psyprobe._typing import FloatArray
from psyprobe.corruption import colour_planes as planes
from psyprobe.corruption.denoising import non_local_means
from psyprobe.corruption.filters import (
    convolve,
    disk_kernel,
    gaussian,
    motion_kernel,
    shake_kernel,
)
from psyprobe.corruption.palette import median_cut
from psyprobe.files.json_types import JsonObject

#: Side of a macro-block, and of the larger squares of `block_lost`, px.
BLOCK = 16
LOST = 32


def motion_blur(image: FloatArray, length: float, rng: Generator) -> FloatArray:
    """Blur by motion along a line of random direction; length 1 changes nothing, as in KADID."""
    return convolve(image, motion_kernel(length, rng.uniform(0, 180)))


def lens_blur(image: FloatArray, radius: float) -> FloatArray:
    """Defocus by an area-exact disk, as KADID; R-Bench speaks of fog and refraction."""
    return convolve(image, disk_kernel(radius))


def lens_shaking(image: FloatArray, extent: float, rng: Generator) -> FloatArray:
    """Blur by a simulated camera shake; R-Bench moved its camera."""
    return convolve(image, shake_kernel(extent, rng))


def gaussian_filter(image: FloatArray, sigma: float) -> FloatArray:
    """Blur by a Gaussian that is truncated at two standard deviations, as KADID."""
    return gaussian(image, sigma, truncate=2.0)


def color_diffusion(image: FloatArray, amount: float) -> FloatArray:
    """Blur CIELAB's a and b (sigma = 1.5 amount + 2 px) and multiply them by the amount."""
    lab = planes.rgb_to_lab(image)
    lab[..., 1:] = amount * gaussian(
        np.ascontiguousarray(lab[..., 1:]), 1.5 * amount + 2
    )
    return planes.lab_to_rgb(lab)


def color_shift(image: FloatArray, length: float, rng: Generator) -> FloatArray:
    """Shift the green channel in a random direction of one quadrant, at the edges."""
    angle = rng.uniform(0, np.pi / 2)
    shift = np.rint(length * np.array([math.cos(angle), math.sin(angle)])).astype(int)
    mask = _edges(planes.luma(image))
    green = cv2.extractChannel(image, 1)
    shifted = cv2.copyMakeBorder(green, shift[0], 0, shift[1], 0, cv2.BORDER_REPLICATE)
    shifted = shifted[: green.shape[0], : green.shape[1]]
    is_codes = green.dtype == np.uint8
    change = cv2.subtract(shifted, green, dtype=cv2.CV_32F if is_codes else -1)
    cv2.multiply(change, mask, dst=change)
    result = image.copy()
    new_green = cv2.add(green, change, dtype=cv2.CV_8U if is_codes else -1)
    cv2.insertChannel(new_green, result, 1)
    return result


def _edges(grey: FloatArray) -> FloatArray:
    """Compute how strong a grey image's edges are, 0 to 1: its gradient, blurred by 4 px.

    The lowest tenth of the range is 0, and the steepest hundredth of all pixels is 1.
    """
    right, down = np.empty((2, *grey.shape), grey.dtype)
    # At the border a slope is that to the neighbour; elsewhere half of that between two.
    for slope, values in ((right, grey), (down.T, grey.T)):
        np.subtract(values[:, 2:], values[:, :-2], out=slope[:, 1:-1])
        slope[:, [0, -1]] = 2 * (values[:, [1, -1]] - values[:, [0, -2]])
    right *= right
    down *= down
    right += down
    # Rows, then columns, in two thirds of the time of a blur of both.
    weights = cv2.getGaussianKernel(33, 4.0)
    cv2.filter2D(
        np.sqrt(right, out=right),
        -1,
        weights.T,
        dst=down,
        borderType=cv2.BORDER_REPLICATE,
    )
    mask = cv2.filter2D(down, -1, weights, dst=right, borderType=cv2.BORDER_REPLICATE)
    lowest, highest, *_ = cv2.minMaxLoc(mask)
    bound = lowest + 0.1 * (highest - lowest)
    low = _quantile(mask, 0.01, bound)
    high = _quantile(mask, 0.99, bound)
    mask -= mask.dtype.type(low)
    mask /= mask.dtype.type(high - low if high > low else np.inf)
    return np.asarray(np.clip(mask, 0, 1, out=mask))


def _quantile(values: FloatArray, share: float, bound: float) -> float:
    """Compute a quantile as `numpy.quantile`, but no lower than a bound."""
    index, fraction = divmod(share * (values.size - 1), 1)
    if np.count_nonzero(values <= bound) > index + 1:
        return bound
    # Values that are well below by a sample of one in sixteen need no sorting.
    sample = np.sort(values[::4, ::4], axis=None)
    above = values[values >= sample[int(max(share - 0.02, 0) * sample.size)]]
    count_below = values.size - above.size
    if count_below > index:
        above = values
        count_below = 0
    rank = int(index) - count_below
    ordered = np.partition(above, rank + 1, axis=None)
    low = float(ordered[: rank + 1].max())
    high = float(ordered[rank + 1])
    return max(low + fraction * (high - low), bound)


def sharpness_change(image: FloatArray, amount: float) -> FloatArray:
    """Sharpen CIELAB's L by unsharp masking with sigma 3 px, as MATLAB, with ringing at edges."""
    lab = planes.rgb_to_lab(image)
    lightness = np.ascontiguousarray(lab[..., 0])
    lab[..., 0] = np.clip(
        lightness + amount * (lightness - gaussian(lightness, 3.0)), 0, 100
    )
    return planes.lab_to_rgb(lab)


def blocking_obstacle(image: FloatArray, area: float, rng: Generator) -> FloatArray:
    """Cover the image by a sharp patch of its proportions and a random colour (simulated)."""
    size = [max(1, round(side * math.sqrt(area))) for side in image.shape[:2]]
    return _cover(image, size, 1, rng)


def lens_obstacle(image: FloatArray, area: float, rng: Generator) -> FloatArray:
    """Cover the image by a dark blob out of focus, as dirt on the lens (simulated)."""
    rows, columns = image.shape[:2]
    aspect = rng.uniform(0.6, 1.6)
    radius_y = math.sqrt(area * rows * columns / math.pi * aspect)
    radius_x = radius_y / aspect
    centre_y = rng.uniform(0.2, 0.8) * rows
    centre_x = rng.uniform(0.2, 0.8) * columns
    # The blob is smooth: it is blurred on a coarse grid, eight pixels a standard deviation.
    sigma = 0.15 * min(rows, columns)
    step = max(1, int(sigma / 8))
    offset = image.dtype.type((step - 1) / 2)
    y, x = np.mgrid[0:rows:step, 0:columns:step].astype(image.dtype) + offset
    is_inside = ((y - centre_y) / radius_y) ** 2 + ((x - centre_x) / radius_x) ** 2 <= 1
    matte = gaussian(is_inside.astype(image.dtype), sigma / step, truncate=3.0)
    size = (matte.shape[1] * step, matte.shape[0] * step)
    enlarged = np.asarray(cv2.resize(matte, size, interpolation=cv2.INTER_LINEAR))
    matte = 0.95 * enlarged[:rows, :columns]
    colour = rng.uniform(0, 0.25, image.shape[2])
    return np.asarray(image * (1 - matte[..., None]) + matte[..., None] * colour)


def block_exchange(image: FloatArray, pairs: float, rng: Generator) -> FloatArray:
    """Exchange pairs of macro-blocks of the grid; each takes part at most once."""
    rows, columns = (side // BLOCK for side in image.shape[:2])
    count = min(round(pairs), rows * columns // 2)
    blocks = rng.permutation(rows * columns)[: 2 * count].reshape(count, 2).tolist()
    result = image.copy()
    for first, second in blocks:
        first_area = _grid_area(first, columns)
        second_area = _grid_area(second, columns)
        result[first_area] = image[second_area]
        result[second_area] = image[first_area]
    return result


def _grid_area(block: int, columns: int) -> tuple[slice, ...]:
    """Compute the slices of a square block, counted row by row through a grid of blocks."""
    row, column = divmod(block, columns)
    return _slice_area((BLOCK * row, BLOCK * column), (BLOCK, BLOCK))


def block_repeat(image: FloatArray, copies: float, rng: Generator) -> FloatArray:
    """Copy patches to places up to 8 px away, one after the other, as KADID."""
    size = [min(BLOCK, side) for side in image.shape[:2]]
    places = _places(image, size)
    result = image.copy()
    for _ in range(round(copies)):
        corner = _draw_corner(places, rng)
        target = []
        for start, u, side, extent in zip(
            corner, rng.random(2), image.shape[:2], size, strict=True
        ):
            moved = start + round(16 * (float(u) - 0.5))
            target.append(min(max(moved, 0), side - extent))
        result[_slice_area(target, size)] = result[_slice_area(corner, size)].copy()
    return result


def block_lost(image: FloatArray, count: float, rng: Generator) -> FloatArray:
    """Fill squares of 32 px with a random colour each, as KADID; R-Bench says random pixels."""
    return _cover(
        image, [min(LOST, side) for side in image.shape[:2]], round(count), rng
    )


def block_interpolation(image: FloatArray, count: float, rng: Generator) -> FloatArray:
    """Drop macro-blocks and fill them from their borders.

    A pixel becomes the mean of the four border pixels in its row and column, weighted by the
    inverse of their distance.
    """
    rows, columns = (side // BLOCK for side in image.shape[:2])
    blocks = rng.permutation(rows * columns)[: min(round(count), rows * columns)]
    result = image.copy()
    inverse = 1 / np.arange(1, BLOCK + 1, dtype=image.dtype)[:, None, None]
    # From above, below, left and right.
    inverses = (
        inverse,
        inverse[::-1],
        inverse.swapaxes(0, 1),
        inverse[::-1].swapaxes(0, 1),
    )
    height, width = image.shape[:2]
    for block in blocks.tolist():
        y, x = (start * BLOCK for start in divmod(block, columns))
        # A border outside the image has no weight; the others of a block at the edge take over.
        exists = (y > 0, y + BLOCK < height, x > 0, x + BLOCK < width)
        weights = [
            weight * border for weight, border in zip(inverses, exists, strict=True)
        ]
        total = sum(weights)
        if np.all(total):
            across = image[y : y + BLOCK]
            down = image[:, x : x + BLOCK]
            borders = (
                down[max(y - 1, 0)],
                down[min(y + BLOCK, height - 1)],
                across[:, max(x - 1, 0)][:, None],
                across[:, min(x + BLOCK, width - 1)][:, None],
            )
            filling = sum(
                weight * border for weight, border in zip(weights, borders, strict=True)
            )
            result[y : y + BLOCK, x : x + BLOCK] = filling / total
    return result


def _cover(
    image: FloatArray, size: Sequence[int], count: int, rng: Generator
) -> FloatArray:
    """Cover an image by patches of a size, with random places and colours."""
    result = image.copy()
    places = _places(image, size)
    white = 255 if image.dtype == np.uint8 else 1
    for _ in range(count):
        top, left = _draw_corner(places, rng)
        colour = [white * value for value in rng.random((image.shape[2],)).tolist()]
        # Drawing rounds a colour to the image's codes.
        cv2.rectangle(result, (left, top, size[1], size[0]), colour, cv2.FILLED)
    return result


def _places(image: FloatArray, size: Sequence[int]) -> tuple[int, int]:
    """Count the positions, down and across, at which a patch of a size fits into an image."""
    return image.shape[0] - size[0] + 1, image.shape[1] - size[1] + 1


def _draw_corner(places: tuple[int, int], rng: Generator) -> tuple[int, int]:
    """Draw a random (row, column), uniform over the (rows, columns) of `places`."""
    return int(rng.integers(places[0])), int(rng.integers(places[1]))


def _slice_area(corner: Sequence[int], size: Sequence[int]) -> tuple[slice, ...]:
    """Build the slices that cut `size` pixels from `corner` on, one an axis."""
    return tuple(
        slice(start, start + side) for start, side in zip(corner, size, strict=True)
    )


def color_quantization(image: FloatArray, colours: float) -> FloatArray:
    """Reduce colours to a palette by median cut with error diffusion; MATLAB's rule is close."""
    from PIL import Image

    codes = _codes(image)
    palette = Image.new("P", (1, 1))
    palette.putpalette(median_cut(codes, round(colours)).tobytes())
    dithered = Image.fromarray(codes).quantize(
        palette=palette, dither=Image.Dither.FLOYDSTEINBERG
    )
    return _values(np.asarray(dithered.convert("RGB")), image)


def jpeg2000(image: FloatArray, ratio: float) -> FloatArray:
    """Encode as irreversible JPEG 2000 at a ratio; versions of OpenJPEG differ by 0.5 dB."""
    from PIL import Image

    # A small image has fewer wavelet levels than the codec takes by default.
    levels = int(np.clip(np.log2(min(image.shape[:2])), 1, 6))
    rate: JsonObject = {
        "quality_mode": "rates",
        "quality_layers": [ratio],
        "irreversible": True,
    }
    codes = _codes(image)
    stream = io.BytesIO()
    picture = Image.fromarray(codes[..., 0] if image.shape[-1] == 1 else codes)
    picture.save(stream, "JPEG2000", num_resolutions=levels, **rate)
    with Image.open(stream) as decoded:
        return _values(decoded, image)


def jpeg(image: FloatArray, quality: float) -> FloatArray:
    """Encode as JPEG with chroma at half the resolution."""
    chroma = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420]
    return _encode_and_decode(
        image, ".jpg", [cv2.IMWRITE_JPEG_QUALITY, round(quality), *chroma]
    )


def webp(image: FloatArray, quality: float) -> FloatArray:
    """Encode as lossy WebP, whose worst quality is still milder than JPEG's 4."""
    return _encode_and_decode(
        image, ".webp", [cv2.IMWRITE_WEBP_QUALITY, min(round(quality), 100)]
    )


def _encode_and_decode(
    image: FloatArray, codec: str, options: Sequence[int]
) -> FloatArray:
    """Compress an image with OpenCV's codec of a file suffix (".jpg") and decompress it."""
    codes = _codes(image)
    if image.shape[-1] == 1:
        stream = cv2.imencode(codec, codes, options)[1]
        return _values(cv2.imdecode(stream, cv2.IMREAD_GRAYSCALE), image)
    # This stays in memory until the image is decoded: a decoder that takes bits of its memory
    # leaves no room there for the result.
    swapped = cv2.cvtColor(codes, cv2.COLOR_RGB2BGR)
    stream = cv2.imencode(codec, swapped, options)[1]
    return _values(cv2.imdecode(stream, cv2.IMREAD_COLOR_RGB), image)


def _codes(image: FloatArray) -> NDArray[np.uint8]:
    """Convert an image to 8 bits, which codecs take."""
    if image.dtype == np.uint8:
        return np.asarray(image)
    return np.asarray(np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8))


def _values(codes: Any, like: FloatArray) -> FloatArray:
    """Convert 8-bit codes to the shape and dtype of an image: codes, or floats from 0 to 1."""
    shaped = np.asarray(codes).reshape(like.shape)
    if like.dtype == np.uint8:
        return shaped
    return np.asarray((shaped / np.float64(255)).astype(like.dtype))


def white_noise(image: FloatArray, variance: float, rng: Generator) -> FloatArray:
    """Add Gaussian noise, independent in each pixel and channel."""
    noise = normal(image.shape, image.dtype, rng)
    noise *= image.dtype.type(np.sqrt(variance))
    noise += image
    return noise


def color_noise(image: FloatArray, variance: float, rng: Generator) -> FloatArray:
    """Add Gaussian noise to each plane of studio-range YCbCr."""
    noisy = white_noise(planes.rgb_to_ycbcr(image), variance, rng)
    return planes.ycbcr_to_rgb(np.clip(noisy, 0, 1, out=noisy))


def impulse_noise(image: FloatArray, density: float, rng: Generator) -> FloatArray:
    """Set samples to 0 or 1, each with half the density; by sample as in MATLAB, not by pixel."""
    chance = rng.random(image.size, dtype=np.float32)
    hits = np.flatnonzero(chance < density)
    white = 255 if image.dtype == np.uint8 else 1
    result = image.copy()
    result.reshape(-1)[hits] = (chance[hits] >= density / 2) * white
    return result


def multiplicative_noise(
    image: FloatArray, variance: float, rng: Generator
) -> FloatArray:
    """Add uniform noise in proportion to the value, as MATLAB's speckle; ports use Gaussian."""
    reach = np.sqrt(3 * variance)
    factor: FloatArray = rng.random(image.shape, dtype=image.dtype.type)
    factor *= image.dtype.type(2 * reach)
    factor += image.dtype.type(1 - reach)
    factor *= image
    return factor


def clock_jittering(
    image: FloatArray, displacement: float, rng: Generator
) -> FloatArray:
    """Displace each pixel by independent Gaussian noise, bilinearly, in five rounds."""
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]].astype(np.float32)
    for _ in range(5):
        dx, dy = normal((2, *image.shape[:2]), np.dtype(np.float32), rng) * np.float32(
            displacement
        )
        displaced = cv2.remap(
            image,
            columns - dx,
            rows - dy,
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        image = np.asarray(displaced).reshape(image.shape)
    return image


def cnn_denoise(
    image: FloatArray,
    variance: float,
    rng: Generator,
    denoiser: Callable[[FloatArray, float], FloatArray] | None = None,
) -> FloatArray:
    """Add white noise, and denoise the image.

    R-Bench used a learned network such as DnCNN. Non-local means, the default, leave other traces.
    """
    sigma = float(np.sqrt(variance))
    noisy = np.clip(white_noise(image, variance, rng), 0, 1)
    denoise = denoiser or non_local_means
    channels = [
        np.asarray(denoise(np.ascontiguousarray(noisy[..., i]), sigma))
        for i in range(image.shape[-1])
    ]
    return np.stack(channels, axis=-1).astype(image.dtype, copy=False)


@functools.cache
def _quantiles() -> FloatArray:
    """Compute 65,536 equally likely values of a standard normal distribution, up to ±4.3."""
    from scipy.special import ndtri

    values: FloatArray = ndtri((np.arange(65536) + 0.5) / 65536)
    return np.asarray((values / np.sqrt(np.mean(values**2))).astype(np.float32))


def normal(shape: tuple[int, ...], dtype: np.dtype[Any], rng: Generator) -> FloatArray:
    """Draw standard normal noise.

    Single precision, in which 8-bit images are computed, looks up quantiles: four times faster than
    the generator of normal numbers, and finer than 8 bits. Double precision uses the generator.
    """
    if dtype == np.float32:
        return np.asarray(
            _quantiles().take(rng.integers(0, 65536, size=shape, dtype=np.uint16))
        )
    return np.asarray(rng.standard_normal(shape))


def bright_illumination(image: FloatArray, gain: float, rng: Generator) -> FloatArray:
    """Add simulated glare of a lamp: a halo at a random place, and a veil over the image."""
    rows, columns = image.shape[:2]
    y, x = np.mgrid[:rows, :columns].astype(image.dtype)
    centre_y = rng.uniform(0, rows)
    centre_x = rng.uniform(0, columns)
    distance = np.hypot(y - centre_y, x - centre_x) / math.hypot(rows, columns)
    halo = gain * np.exp(-((distance / 0.25) ** 2)) + gain / 8
    return np.asarray(image + halo[..., None])


def dark_illumination(image: FloatArray, stops: float, rng: Generator) -> FloatArray:
    """Darken linear light by a number of stops, and add simulated sensor noise."""
    light = planes.srgb_to_linear(image) * image.dtype.type(2.0**-stops)
    noise_sd = np.sqrt(1e-3 * light + 1e-5).astype(image.dtype, copy=False)
    light += normal(image.shape, image.dtype, rng) * noise_sd
    return planes.linear_to_srgb(np.clip(light, 0, 1))


def resolution_limit(image: FloatArray, strength: float) -> FloatArray:
    """Scale both sides by 0.95 - strength^0.6 with the nearest pixel, and back."""
    scale = 0.95 - strength**0.6
    samples = []
    repeats = []
    for side in image.shape[:2]:
        small = max(1, round(side * scale))
        samples.append(
            np.minimum(((np.arange(small) + 0.5) * side / small).astype(int), side - 1)
        )
        repeats.append(
            np.minimum(((np.arange(side) + 0.5) * small / side).astype(int), small - 1)
        )
    # Rows are copied faster than columns.
    rows = image[samples[0]]
    transposed = cv2.transpose(rows).take(samples[1][repeats[1]], axis=0)
    return np.asarray(cv2.transpose(transposed).take(repeats[0], axis=0)).reshape(
        image.shape
    )


def grayscale_quantization(image: FloatArray, levels: float) -> FloatArray:
    """Round each channel to equally spaced levels, as R-Bench says; KADID uses Otsu's rule."""
    top = max(1, round(levels) - 1)
    return np.asarray(np.rint(image * image.dtype.type(top)) / image.dtype.type(top))


def hsv_saturation(image: FloatArray, factor: float) -> FloatArray:
    """Multiply the saturation of HSV by the factor; below 0 hues are opposite."""
    # channel = V - V S max(0, min(k, 4 - k, 1)) with k = (n + 6 H) mod 6 and n = 5, 3, 1 is linear
    # in S: each channel moves along the line between itself and V, and hue need not be computed.
    channels = cv2.split(image)
    value = cv2.max(cv2.max(channels[0], channels[1]), channels[2])
    mixed = [
        cv2.addWeighted(channel, factor, value, 1 - factor, 0) for channel in channels
    ]
    return np.asarray(cv2.merge(mixed))


def lab_saturation(image: FloatArray, factor: float) -> FloatArray:
    """Multiply CIELAB's a and b by the factor."""
    lab = planes.rgb_to_lab(image)
    lab[..., 1:] *= factor
    return planes.lab_to_rgb(lab)


def maximum_brighten(image: FloatArray, amount: float) -> FloatArray:
    """Lift mid-tones by a parabola, two thirds on RGB and one third on CIELAB's L, as KADID."""
    lab = planes.rgb_to_lab(image)
    lab[..., 0] = 100 * _lift_midtones(lab[..., 0] / 100, amount)
    return np.asarray(
        (2 * _lift_midtones(image, amount) + np.clip(planes.lab_to_rgb(lab), 0, 1)) / 3
    )


def minimum_darken(image: FloatArray, amount: float) -> FloatArray:
    """Lower mid-tones by a parabola, on RGB."""
    return _lift_midtones(image, -amount)


def mean_shift(image: FloatArray, offset: float, rng: Generator) -> FloatArray:
    """Shift all values by the offset, up or down at random; KADID's middle level is no shift."""
    return image + image.dtype.type(offset if rng.random() < 0.5 else -offset)


def contrast_change(image: FloatArray, amount: float) -> FloatArray:
    """Raise contrast about the middle by a cubic curve, or lower it below -0.2, as KADID.

    The not-a-knot spline through (0, 0), (0.3, 0.25 - a/4), (0.5, 0.5), (0.7, 0.75 + a/4), (1, 1)
    is odd about its middle and therefore one polynomial, 0.5 + b u + c u^3 with u = x - 0.5.
    """
    c = -(0.05 + amount / 4) / 0.042
    b = 1 - c / 4
    u = image - image.dtype.type(0.5)
    return np.asarray(
        np.clip(0.5 + u * (b + c * u * u), 0, 1).astype(image.dtype, copy=False)
    )


def _lift_midtones(values: FloatArray, amount: float) -> FloatArray:
    """Brighten mid values by adding 2 `amount` v (1 - v) to each v in [0, 1]."""
    return np.asarray(
        np.clip(values + values.dtype.type(2 * amount) * values * (1 - values), 0, 1)
    )
