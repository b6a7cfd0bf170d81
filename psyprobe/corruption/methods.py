"""The 33 ways in which an image goes wrong, each a function of its dimension's name.

They take an image, the dimension's parameter and chance. First what spreads, covers, misplaces and
encodes, then what changes values and colours where they stand.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psyprobe._typing import FloatArray
from psyprobe.corruption import colour_planes as planes
from psyprobe.corruption.denoising import non_local_means
from psyprobe.corruption.palette import median_cut

#: Side of a macro-block, px, and of the larger squares that are lost.
BLOCK = 16
LOST = 32


def motion_kernel(length: float, angle: float) -> FloatArray:
    """The point spread of motion along a line: its length in px (1 is no motion), its angle in deg,
    counter-clockwise.

    The weight of a pixel is max(0, 1 - d), d its distance from the segment, as MATLAB's.
    """
    half = (length - 1) / 2
    reach = math.ceil(half)
    x = np.arange(-reach, reach + 1.0)
    y = x[:, None]
    right = math.cos(math.radians(angle))
    down = -math.sin(math.radians(angle))
    along = (x * right + y * down).clip(-half, half)
    distance = np.hypot(x - along * right, y - along * down)
    # Of a distance of 1 less rounding nothing is left that a filter need take.
    return _normalised(np.where(distance < 1 - 1e-9, 1 - distance, 0))


@functools.lru_cache(maxsize=64)
def disk_kernel(radius: float) -> FloatArray:
    """The point spread of defocus: a disk of a radius in px, each pixel weighted by the area of it
    that lies inside.
    """
    reach = math.ceil(radius - 0.5)
    edges = np.arange(-reach, reach + 2) - 0.5

    def area(x: FloatArray, y: FloatArray) -> FloatArray:
        """Of the disk left of x and below y, by integrating the height of the circle."""
        nodes, weights = np.polynomial.legendre.leggauss(64)
        u = -radius + (x[..., None] + radius) * (nodes + 1) / 2
        height = np.sqrt(np.maximum(radius**2 - u**2, 0))
        inside = np.clip(y[..., None] + height, 0, 2 * height)
        return np.asarray((inside * weights).sum(-1) * (x + radius) / 2)

    x, y = np.meshgrid(np.clip(edges, -radius, radius), np.clip(edges, -radius, radius))
    whole = area(x, y)
    weights: FloatArray = np.maximum(np.diff(np.diff(whole, axis=0), axis=1), 0)
    # The quadrature is finer to one side than to the other; a disk is not.
    weights = weights + weights[::-1] + weights[:, ::-1] + weights[::-1, ::-1]
    kernel = _normalised(weights + weights.T)
    # It is kept for the next image; nobody may write into it.
    kernel.flags.writeable = False
    return kernel


def shake_kernel(extent: float, rng: np.random.Generator) -> FloatArray:
    """The point spread of a shaking camera: a random walk of 64 steps whose larger side has an
    extent in px.

    Each point of the path is shared among the four pixels around it.
    """
    path = np.cumsum(rng.standard_normal((64, 2)), axis=0)
    path -= (path.max(axis=0) + path.min(axis=0)) / 2
    path *= extent / np.ptp(path, axis=0).max()
    reach = math.ceil(extent / 2) + 1
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    low = np.floor(path).astype(int)
    share = path - low
    for dy, dx in itertools.product((0, 1), (0, 1)):
        weight = np.abs(1 - dy - share[:, 0]) * np.abs(1 - dx - share[:, 1])
        np.add.at(kernel, (low[:, 0] + dy + reach, low[:, 1] + dx + reach), weight)
    return _normalised(kernel)


def _normalised(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())


def convolve(image: FloatArray, kernel: FloatArray) -> FloatArray:
    """Convolution of each channel, with the border repeated outside."""
    import cv2

    flipped = np.ascontiguousarray(kernel[::-1, ::-1])
    rows, columns = flipped.shape

    def whole(values: FloatArray) -> Any:
        return cv2.filter2D(values, -1, flipped, borderType=cv2.BORDER_REPLICATE)

    if image.dtype != np.uint8 and not 129 < flipped.size < 300:
        return np.asarray(whole(image)).reshape(image.shape)
    if flipped.size <= 129:
        return _in_place(image, flipped)
    if flipped.size >= 300:
        return np.asarray(cv2.convertScaleAbs(whole(image.astype(np.float32)))).reshape(image.shape)
    # From 130 taps on OpenCV turns to Fourier transforms; up to some 300, strips of fewer taps are
    # faster.
    strips = [flipped[top : top + 129 // columns] for top in range(0, rows, 129 // columns)]

    def in_strips(band: FloatArray) -> Any:
        total = None
        top = 0
        kept = len(band) - 2 * (rows // 2)
        for strip in strips:
            under = band[top : top + kept + len(strip) - 1]
            part = cv2.filter2D(
                under, -1, strip, anchor=(columns // 2, 0), borderType=cv2.BORDER_REPLICATE
            )[:kept]
            total = part if total is None else cv2.add(total, part, dst=total)
            top += len(strip)
        return total

    return _by_bands(image, rows, in_strips)


def gaussian(image: FloatArray, sigma: float, truncate: float = 4.0) -> FloatArray:
    """Gaussian blur of each channel, with the border repeated outside; sigma in px, cut off at so
    many of it.
    """
    import cv2

    side = 2 * math.ceil(truncate * sigma) + 1
    if image.dtype == np.uint8:
        # Codes are rounded once, at the end: of weights whose sum is not 1 OpenCV makes no whole
        # numbers.
        weights = cv2.getGaussianKernel(side, sigma)
        blurred = cv2.sepFilter2D(
            image, -1, 2 * weights, weights / 2, borderType=cv2.BORDER_REPLICATE
        )
    else:
        blurred = cv2.GaussianBlur(image, (side, side), sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(blurred).reshape(image.shape)


#: Pixels of 8-bit codes that are filtered in place at once: their float32 values stay in the
#: processor's cache.
_AT_ONCE = 200_000


def _in_place(codes: FloatArray, weights: FloatArray) -> FloatArray:
    """Codes filtered in single precision, with the border repeated outside, and rounded once."""
    import cv2

    half = len(weights) // 2
    # Of a wide image as many rows that the border of a band is little beside them.
    rows = max(96, _AT_ONCE // codes.shape[1])
    result = np.empty_like(codes)
    room = np.empty((min(rows + 2 * half, len(codes)), *codes.shape[1:]), np.float32)
    for top in range(0, len(codes), rows):
        first = max(top - half, 0)
        given = codes[first : top + rows + half]
        band = room[: len(given)]
        band[...] = given
        filtered = cv2.filter2D(band, -1, weights, dst=band, borderType=cv2.BORDER_REPLICATE)[
            top - first :
        ]
        cv2.convertScaleAbs(filtered[:rows], dst=result[top : top + rows])
    return result


#: Rows of 8-bit codes that are filtered strip by strip at once, which takes more room.
_BAND = 128


def _by_bands(image: FloatArray, rows: int, work: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """What a filter of so many rows makes of an image; of codes in single precision, band by band
    in the cache.

    The work takes a band with its border above and below; a result starts below the border.
    """
    import cv2

    half = rows // 2
    if image.dtype != np.uint8:
        padded = cv2.copyMakeBorder(image, half, half, 0, 0, cv2.BORDER_REPLICATE).reshape(
            -1, *image.shape[1:]
        )
        return np.asarray(work(padded)[: len(image)]).reshape(image.shape)
    result = np.empty_like(image)
    room = np.empty((min(_BAND, len(image)) + 2 * half, *image.shape[1:]), np.float32)
    for top in range(0, len(image), _BAND):
        here = result[top : top + _BAND]
        band = room[: len(here) + 2 * half]
        start = max(half - top, 0)
        stop = min(len(image) + half - top, len(band))
        band[start:stop] = image[top + start - half : top + stop - half]
        band[:start], band[stop:] = band[start], band[stop - 1]
        cv2.convertScaleAbs(work(band)[: len(here)], dst=here)
    return result


def motion_blur(image: FloatArray, length: float, rng: np.random.Generator) -> FloatArray:
    """Motion along a line of a random direction. Sources differ for length 1, here the identity as
    in KADID.
    """
    return convolve(image, motion_kernel(length, rng.uniform(0, 180)))


def lens_blur(image: FloatArray, radius: float, rng: np.random.Generator) -> FloatArray:
    """Defocus: an area-exact disk. R-Bench speaks of fog and refraction; KADID's is this disk."""
    return convolve(image, disk_kernel(radius))


def lens_shaking(image: FloatArray, extent: float, rng: np.random.Generator) -> FloatArray:
    """Simulated camera shake; R-Bench moved its camera."""
    return convolve(image, shake_kernel(extent, rng))


def gaussian_filter(image: FloatArray, sigma: float, rng: np.random.Generator) -> FloatArray:
    """Gaussian blur, cut off at two standard deviations as KADID's."""
    return gaussian(image, sigma, truncate=2.0)


def color_diffusion(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """CIELAB's a and b blurred (sigma = 1.5 amount + 2 px) and multiplied by the amount; L
    stays.
    """
    lab = planes.rgb_to_lab(image)
    lab[..., 1:] = amount * gaussian(np.ascontiguousarray(lab[..., 1:]), 1.5 * amount + 2)
    return planes.lab_to_rgb(lab)


def color_shift(image: FloatArray, length: float, rng: np.random.Generator) -> FloatArray:
    """The green channel shifted to a random direction of one quadrant, blended in where there are
    edges.
    """
    import cv2

    angle = rng.uniform(0, np.pi / 2)
    shift = np.rint(length * np.array([math.cos(angle), math.sin(angle)])).astype(int)
    mask = _edges(planes.luma(image))
    green = cv2.extractChannel(image, 1)
    moved = cv2.copyMakeBorder(green, shift[0], 0, shift[1], 0, cv2.BORDER_REPLICATE)
    moved = moved[: green.shape[0], : green.shape[1]]
    changed = cv2.subtract(moved, green, dtype=cv2.CV_32F if green.dtype == np.uint8 else -1)
    cv2.multiply(changed, mask, dst=changed)
    result = image.copy()
    cv2.insertChannel(
        cv2.add(green, changed, dtype=cv2.CV_8U if green.dtype == np.uint8 else -1), result, 1
    )
    return result


def _edges(grey: FloatArray) -> FloatArray:
    """Where a grey image has edges, from 0 to 1: how steep it is, blurred by 4 px.

    Of the range the lowest tenth is 0, and what the steepest hundredth of all pixels exceeds is 1.
    """
    import cv2

    right, down = np.empty((2, *grey.shape), grey.dtype)
    # At the border a slope is that to the one neighbour; elsewhere it is half of that between two.
    for slope, values in ((right, grey), (down.T, grey.T)):
        np.subtract(values[:, 2:], values[:, :-2], out=slope[:, 1:-1])
        slope[:, [0, -1]] = 2 * (values[:, [1, -1]] - values[:, [0, -2]])
    right *= right
    down *= down
    right += down
    # Rows, then columns, in two thirds of the time of a blur of both.
    weights = cv2.getGaussianKernel(33, 4.0)
    cv2.filter2D(
        np.sqrt(right, out=right), -1, weights.T, dst=down, borderType=cv2.BORDER_REPLICATE
    )
    mask = cv2.filter2D(down, -1, weights, dst=right, borderType=cv2.BORDER_REPLICATE)
    lowest, highest, *_ = cv2.minMaxLoc(mask)
    least = lowest + 0.1 * (highest - lowest)
    low, high = (_quantile(mask, share, least) for share in (0.01, 0.99))
    mask -= mask.dtype.type(low)
    mask /= mask.dtype.type(high - low if high > low else np.inf)
    return np.asarray(np.clip(mask, 0, 1, out=mask))


def _quantile(values: FloatArray, share: float, least: float) -> float:
    """As `numpy.quantile`, but at least so much, which is mostly found by counting."""
    place, beyond = divmod(share * (values.size - 1), 1)
    if np.count_nonzero(values <= least) > place + 1:
        return least
    # What one in sixteen of these smooth values shows to lie well below is not sorted.
    few = np.sort(values[::4, ::4], axis=None)
    above = values[values >= few[int(max(share - 0.02, 0) * few.size)]]
    left_out = values.size - above.size
    if left_out > place:
        above = values
        left_out = 0
    rank = int(place) - left_out
    ordered = np.partition(above, rank + 1, axis=None)
    low = float(ordered[: rank + 1].max())
    high = float(ordered[rank + 1])
    return max(low + beyond * (high - low), least)


def sharpness_change(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """Unsharp masking of CIELAB's L with sigma 3 px, as MATLAB's; ringing at edges."""
    lab = planes.rgb_to_lab(image)
    lightness = np.ascontiguousarray(lab[..., 0])
    lab[..., 0] = np.clip(lightness + amount * (lightness - gaussian(lightness, 3.0)), 0, 100)
    return planes.lab_to_rgb(lab)


def blocking_obstacle(image: FloatArray, area: float, rng: np.random.Generator) -> FloatArray:
    """A sharp opaque patch of a random flat colour, of the image's proportions. Simulated; R-Bench
    held up objects.
    """
    return _covered(
        image, [max(1, round(side * math.sqrt(area))) for side in image.shape[:2]], 1, rng
    )


def lens_obstacle(image: FloatArray, area: float, rng: np.random.Generator) -> FloatArray:
    """A dark blob out of focus, as of dirt on the lens. Simulated; R-Bench photographed through
    dirty lenses.
    """
    import cv2

    rows, columns = image.shape[:2]
    aspect = rng.uniform(0.6, 1.6)
    radius_y = math.sqrt(area * rows * columns / math.pi * aspect)
    radius_x = radius_y / aspect
    centre_y = rng.uniform(0.2, 0.8) * rows
    centre_x = rng.uniform(0.2, 0.8) * columns
    # So smooth a blob is blurred on a coarse grid, eight pixels to a standard deviation, and
    # enlarged.
    sigma = 0.15 * min(rows, columns)
    step = max(1, int(sigma / 8))
    y, x = np.mgrid[0:rows:step, 0:columns:step].astype(image.dtype) + image.dtype.type(
        (step - 1) / 2
    )
    matte = (((y - centre_y) / radius_y) ** 2 + ((x - centre_x) / radius_x) ** 2 <= 1).astype(
        image.dtype
    )
    matte = gaussian(matte, sigma / step, truncate=3.0)
    size = (matte.shape[1] * step, matte.shape[0] * step)
    matte = (
        0.95 * np.asarray(cv2.resize(matte, size, interpolation=cv2.INTER_LINEAR))[:rows, :columns]
    )
    colour = rng.uniform(0, 0.25, image.shape[2])
    return np.asarray(image * (1 - matte[..., None]) + matte[..., None] * colour)


def block_exchange(image: FloatArray, pairs: float, rng: np.random.Generator) -> FloatArray:
    """Pairs of macro-blocks of the grid change places; none takes part twice."""
    rows, columns = (side // BLOCK for side in image.shape[:2])
    count = min(round(pairs), rows * columns // 2)
    result = image.copy()
    for pair in rng.permutation(rows * columns)[: 2 * count].reshape(count, 2):
        here, there = (
            _area([BLOCK * each for each in divmod(int(place), columns)], (BLOCK, BLOCK))
            for place in pair
        )
        result[here], result[there] = image[there], image[here]
    return result


def block_repeat(image: FloatArray, copies: float, rng: np.random.Generator) -> FloatArray:
    """Patches are copied over places up to 8 px away, one after the other, as KADID does. R-Bench:
    a block repeated.
    """
    size = [min(BLOCK, side) for side in image.shape[:2]]
    places = _places(image, size)
    result = image.copy()
    for _ in range(round(copies)):
        corner = _corner(places, rng)
        moved = [
            start + round(16 * (float(u) - 0.5))
            for start, u in zip(corner, rng.random(2), strict=True)
        ]
        kept = [
            min(max(at, 0), side - own)
            for at, side, own in zip(moved, image.shape, size, strict=False)
        ]
        result[_area(kept, size)] = result[_area(corner, size)].copy()
    return result


def block_lost(image: FloatArray, count: float, rng: np.random.Generator) -> FloatArray:
    """Squares of 32 px take one random colour each, as in KADID; R-Bench's text speaks of random
    pixels.
    """
    return _covered(image, [min(LOST, side) for side in image.shape[:2]], round(count), rng)


def block_interpolation(image: FloatArray, count: float, rng: np.random.Generator) -> FloatArray:
    """Macro-blocks are dropped and filled from their borders.

    A pixel becomes the mean of the four border pixels in its row and column, weighted by the
    inverse of their distance.
    """
    rows, columns = (side // BLOCK for side in image.shape[:2])
    chosen = rng.permutation(rows * columns)[: min(round(count), rows * columns)]
    result = image.copy()
    near = 1 / np.arange(1, BLOCK + 1, dtype=image.dtype)[:, None, None]
    # From above, below, left and right.
    fading = (near, near[::-1], near.swapaxes(0, 1), near[::-1].swapaxes(0, 1))
    height, width = image.shape[:2]
    for place in chosen:
        y, x = (int(start) * BLOCK for start in divmod(int(place), columns))
        # A border outside the image has no weight; the others of a block at the edge take over.
        there = (y > 0, y + BLOCK < height, x > 0, x + BLOCK < width)
        weights = [weight * known for weight, known in zip(fading, there, strict=True)]
        total = sum(weights)
        if np.all(total):
            across = image[y : y + BLOCK]
            down = image[:, x : x + BLOCK]
            left = across[:, max(x - 1, 0)]
            right = across[:, min(x + BLOCK, width - 1)]
            borders = (
                down[max(y - 1, 0)],
                down[min(y + BLOCK, height - 1)],
                left[:, None],
                right[:, None],
            )
            filled = sum(weight * border for weight, border in zip(weights, borders, strict=True))
            result[y : y + BLOCK, x : x + BLOCK] = filled / total
    return result


def _covered(
    image: FloatArray, size: Sequence[int], count: int, rng: np.random.Generator
) -> FloatArray:
    """The image with so many patches of a size, each at a random place and of a random colour."""
    import cv2

    result = image.copy()
    places = _places(image, size)
    white = 255 if image.dtype == np.uint8 else 1
    for _ in range(count):
        top, left = _corner(places, rng)
        colour = [white * each for each in rng.random((image.shape[2],)).tolist()]
        # Drawing rounds a colour to the image's codes.
        cv2.rectangle(result, (left, top, size[1], size[0]), colour, cv2.FILLED)
    return result


def _places(image: FloatArray, size: Sequence[int]) -> tuple[int, int]:
    """How many places there are for a patch of a size, down and across."""
    return image.shape[0] - size[0] + 1, image.shape[1] - size[1] + 1


def _corner(places: tuple[int, int], rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(places[0])), int(rng.integers(places[1]))


def _area(corner: Sequence[int], size: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start, start + own) for start, own in zip(corner, size, strict=True))


def color_quantization(image: FloatArray, colours: float, rng: np.random.Generator) -> FloatArray:
    """A palette of so many colours by median cut, with error diffusion. MATLAB's rule of least
    variance is close.
    """
    from PIL import Image

    codes = _codes(image)
    palette = Image.new("P", (1, 1))
    palette.putpalette(median_cut(codes, round(colours)).tobytes())
    dithered = Image.fromarray(codes).quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    return _values(np.asarray(dithered.convert("RGB")), image)


def jpeg2000(image: FloatArray, ratio: float, rng: np.random.Generator) -> FloatArray:
    """JPEG 2000 at a compression ratio, irreversible; by OpenJPEG's version to 0.5 dB."""
    from PIL import Image

    # A small image has fewer wavelet levels than the codec takes by default.
    levels = int(np.clip(np.log2(min(image.shape[:2])), 1, 6))
    rate: dict[str, Any] = {
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


def jpeg(image: FloatArray, quality: float, rng: np.random.Generator) -> FloatArray:
    """JPEG with chroma at half the resolution."""
    import cv2

    chroma = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420]
    return _coded(image, ".jpg", [cv2.IMWRITE_JPEG_QUALITY, round(quality), *chroma])


def webp(image: FloatArray, quality: float, rng: np.random.Generator) -> FloatArray:
    """WebP with loss. Its worst quality is still milder than JPEG's 4."""
    import cv2

    return _coded(image, ".webp", [cv2.IMWRITE_WEBP_QUALITY, min(round(quality), 100)])


def _coded(image: FloatArray, codec: str, options: Sequence[int]) -> FloatArray:
    import cv2

    codes = _codes(image)
    if image.shape[-1] == 1:
        return _values(
            cv2.imdecode(cv2.imencode(codec, codes, options)[1], cv2.IMREAD_GRAYSCALE), image
        )
    # Held until the image is decoded: a decoder that takes bits of its memory leaves no room there
    # for the result.
    swapped = cv2.cvtColor(codes, cv2.COLOR_RGB2BGR)
    return _values(
        cv2.imdecode(cv2.imencode(codec, swapped, options)[1], cv2.IMREAD_COLOR_RGB), image
    )


def _codes(image: FloatArray) -> NDArray[np.uint8]:
    """The image in 8 bits, which codecs take."""
    if image.dtype == np.uint8:
        return np.asarray(image)
    return np.asarray(np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8))


def _values(codes: Any, like: FloatArray) -> FloatArray:
    shaped = np.asarray(codes).reshape(like.shape)
    return (
        shaped
        if like.dtype == np.uint8
        else np.asarray((shaped / np.float64(255)).astype(like.dtype))
    )


def white_noise(image: FloatArray, variance: float, rng: np.random.Generator) -> FloatArray:
    """Gaussian noise, independent in each pixel and channel."""
    noise = normal(image.shape, image.dtype, rng)
    noise *= image.dtype.type(np.sqrt(variance))
    noise += image
    return noise


def color_noise(image: FloatArray, variance: float, rng: np.random.Generator) -> FloatArray:
    """Gaussian noise in each plane of studio-range YCbCr."""
    noisy = white_noise(planes.rgb_to_ycbcr(image), variance, rng)
    return planes.ycbcr_to_rgb(np.clip(noisy, 0, 1, out=noisy))


def impulse_noise(image: FloatArray, density: float, rng: np.random.Generator) -> FloatArray:
    """Each sample becomes 0 or 1, each with half the density. By sample as in MATLAB, not by pixel
    as in one port.
    """
    chance = rng.random(image.size, dtype=np.float32)
    struck = np.flatnonzero(chance < density)
    result = image.copy()
    result.reshape(-1)[struck] = (chance[struck] >= density / 2) * (
        255 if image.dtype == np.uint8 else 1
    )
    return result


def multiplicative_noise(
    image: FloatArray, variance: float, rng: np.random.Generator
) -> FloatArray:
    """Noise in proportion to the value, uniform as MATLAB's speckle (ports take Gaussian noise)."""
    reach = np.sqrt(3 * variance)
    factor: FloatArray = rng.random(image.shape, dtype=image.dtype.type)
    factor *= image.dtype.type(2 * reach)
    factor += image.dtype.type(1 - reach)
    factor *= image
    return factor


def clock_jittering(image: FloatArray, displacement: float, rng: np.random.Generator) -> FloatArray:
    """Five rounds in which each pixel is read at a place off by independent Gaussian displacements,
    bilinear.
    """
    import cv2

    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]].astype(np.float32)
    for _ in range(5):
        dx, dy = normal((2, *image.shape[:2]), np.dtype(np.float32), rng) * np.float32(displacement)
        moved = cv2.remap(
            image, columns - dx, rows - dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        image = np.asarray(moved).reshape(image.shape)
    return image


def cnn_denoise(
    image: FloatArray,
    variance: float,
    rng: np.random.Generator,
    denoiser: Callable[[FloatArray, float], FloatArray] | None = None,
) -> FloatArray:
    """White noise, and what a denoiser leaves of the image.

    R-Bench used a learned network such as DnCNN. Without one, non-local means stand in: their
    remains look different.
    """
    sigma = float(np.sqrt(variance))
    noisy = np.clip(white_noise(image, variance, rng), 0, 1)
    clean = denoiser or non_local_means
    cleaned = [
        np.asarray(clean(np.ascontiguousarray(noisy[..., i]), sigma))
        for i in range(image.shape[-1])
    ]
    return np.stack(cleaned, axis=-1).astype(image.dtype, copy=False)


@functools.cache
def _quantiles() -> FloatArray:
    """65,536 equally likely values of a normal distribution with mean 0 and variance 1; the largest
    is 4.3.
    """
    from scipy.special import ndtri

    values: FloatArray = ndtri((np.arange(65536) + 0.5) / 65536)
    return np.asarray((values / np.sqrt(np.mean(values**2))).astype(np.float32))


def normal(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> FloatArray:
    """Standard normal noise.

    In single precision, in which 8-bit images are computed, by looking up quantiles: four times
    faster than a generator of normal numbers, and finer than 8 bits can show. In double precision
    by the generator.
    """
    if dtype == np.float32:
        return np.asarray(_quantiles().take(rng.integers(0, 65536, size=shape, dtype=np.uint16)))
    return np.asarray(rng.standard_normal(shape))


def bright_illumination(image: FloatArray, gain: float, rng: np.random.Generator) -> FloatArray:
    """A lamp in view: a halo of the gain around a random place and a veil of an eighth of it.
    Simulated.
    """
    rows, columns = image.shape[:2]
    y, x = np.mgrid[:rows, :columns].astype(image.dtype)
    centre_y = rng.uniform(0, rows)
    centre_x = rng.uniform(0, columns)
    distance = np.hypot(y - centre_y, x - centre_x) / math.hypot(rows, columns)
    halo = gain * np.exp(-((distance / 0.25) ** 2)) + gain / 8
    return np.asarray(image + halo[..., None])


def dark_illumination(image: FloatArray, stops: float, rng: np.random.Generator) -> FloatArray:
    """Less light, by so many stops in linear light, with the noise of a sensor. Simulated."""
    light = planes.srgb_to_linear(image) * image.dtype.type(2.0**-stops)
    light += normal(image.shape, image.dtype, rng) * np.sqrt(1e-3 * light + 1e-5).astype(
        image.dtype, copy=False
    )
    return planes.linear_to_srgb(np.clip(light, 0, 1))


def resolution_limit(image: FloatArray, strength: float, rng: np.random.Generator) -> FloatArray:
    """Both sides scaled by 0.95 - strength^0.6 with the nearest pixel, and back likewise. R-Bench:
    upsampling.
    """
    import cv2

    scale = 0.95 - strength**0.6
    chosen = []
    repeated = []
    for side in image.shape[:2]:
        small = max(1, round(side * scale))
        chosen.append(np.minimum(((np.arange(small) + 0.5) * side / small).astype(int), side - 1))
        repeated.append(np.minimum(((np.arange(side) + 0.5) * small / side).astype(int), small - 1))
    # Rows are copied faster than columns.
    rows = image[chosen[0]]
    turned = cv2.transpose(rows).take(chosen[1][repeated[1]], axis=0)
    return np.asarray(cv2.transpose(turned).take(repeated[0], axis=0)).reshape(image.shape)


def grayscale_quantization(
    image: FloatArray, levels: float, rng: np.random.Generator
) -> FloatArray:
    """So many equally spaced levels a channel, as R-Bench's text says; KADID sets thresholds by
    Otsu's rule.
    """
    top = max(1, round(levels) - 1)
    return np.asarray(np.rint(image * image.dtype.type(top)) / image.dtype.type(top))


def hsv_saturation(image: FloatArray, factor: float, rng: np.random.Generator) -> FloatArray:
    """Saturation of HSV times the factor; below 0 hues are opposite."""
    import cv2

    # channel = V - V S max(0, min(k, 4 - k, 1)) with k = (n + 6 H) mod 6 and n = 5, 3, 1 is linear
    # in S: each channel moves along the line between itself and V, and hue need not be computed.
    channels = cv2.split(image)
    value = cv2.max(cv2.max(channels[0], channels[1]), channels[2])
    return np.asarray(
        cv2.merge([cv2.addWeighted(channel, factor, value, 1 - factor, 0) for channel in channels])
    )


def lab_saturation(image: FloatArray, factor: float, rng: np.random.Generator) -> FloatArray:
    """CIELAB's a and b times the factor."""
    lab = planes.rgb_to_lab(image)
    lab[..., 1:] *= factor
    return planes.lab_to_rgb(lab)


def maximum_brighten(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """A parabola that lifts mid-tones: two thirds on RGB, one third on CIELAB's L, as KADID's."""
    lab = planes.rgb_to_lab(image)
    lab[..., 0] = 100 * _lifted(lab[..., 0] / 100, amount)
    return np.asarray((2 * _lifted(image, amount) + np.clip(planes.lab_to_rgb(lab), 0, 1)) / 3)


def minimum_darken(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """A parabola that lowers mid-tones, on RGB."""
    return _lifted(image, -amount)


def mean_shift(image: FloatArray, offset: float, rng: np.random.Generator) -> FloatArray:
    """All values moved by the offset, up or down by chance. KADID's middle level is no change at
    all.
    """
    return image + image.dtype.type(offset if rng.random() < 0.5 else -offset)


def contrast_change(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """A cubic curve that raises contrast about the middle; below -0.2 it lowers it, as KADID also
    does.

    The not-a-knot spline through (0, 0), (0.3, 0.25 - a/4), (0.5, 0.5), (0.7, 0.75 + a/4), (1, 1)
    is odd about its middle and therefore one polynomial, 0.5 + b u + c u^3 with u = x - 0.5.
    """
    c = -(0.05 + amount / 4) / 0.042
    b = 1 - c / 4
    u = image - image.dtype.type(0.5)
    return np.asarray(np.clip(0.5 + u * (b + c * u * u), 0, 1).astype(image.dtype, copy=False))


def _lifted(values: FloatArray, amount: float) -> FloatArray:
    return np.asarray(np.clip(values + values.dtype.type(2 * amount) * values * (1 - values), 0, 1))
