"""Patterns before they become light: envelopes, carriers and noise of unit amplitude, drawn for a whole batch at once.

Coordinates: pixel centres lie at (i - (N - 1)/2)/ppd, x to the right, y up. Factors are computed in float64 on the
processor, whatever the precision and device of the image: that is cheap, and twenty times more exact in float32 than
computing phases in float32.

`shape` is (H, W) in pixels and `ppd` pixels per degree; parameters of a batch have shape (n,), its images (n, H, W).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError

#: Memory of one block of spectra, so that drawing a long batch stays in the processor's cache.
_NOISE_BLOCK = 4


def pixel_positions(pixels: int, ppd: float) -> FloatArray:
    """Positions of pixel centres along one axis, deg, ascending and symmetric about 0.

    Examples
    --------
    >>> pixel_positions(4, 2.0).tolist()
    [-0.75, -0.25, 0.25, 0.75]
    """
    return (np.arange(pixels) - (pixels - 1) / 2) / ppd


def cos_sin_degrees(angle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of angles in degrees, exactly 0 and 1 at multiples of 90.

    Examples
    --------
    >>> [abs(float(v[0])) for v in cos_sin_degrees(np.array([90.0]))]
    [0.0, 1.0]
    """
    quarter, rest = np.divmod(np.asarray(angle, float), 90.0)
    c, s = np.cos(np.deg2rad(rest)), np.sin(np.deg2rad(rest))
    turn = quarter.astype(int) % 4
    return (
        np.select([turn == 0, turn == 1, turn == 2], [c, -s, -c], s),
        np.select([turn == 0, turn == 1, turn == 2], [s, c, -s], -c),
    )


def namespace(device: str | None) -> Any:
    """Array functions of the backend: numpy, or torch where a device is named."""
    if device is None:
        import array_api_compat.numpy as xp
    else:
        import array_api_compat.torch as xp
    return xp


def to_backend(values: FloatArray, dtype: str, device: str | None) -> Array:
    """A float64 numpy array, rounded once to `dtype` and moved to `device` (None keeps numpy)."""
    rounded = np.ascontiguousarray(values, dtype=dtype)
    if device is None:
        return rounded
    import torch

    # Torch warns of arrays that cannot be written to, such as a parameter that was broadcast.
    return torch.from_numpy(rounded if rounded.flags.writeable else rounded.copy()).to(device)


def column(values: FloatArray, dtype: str, device: str | None) -> Array:
    """Numbers, one for each image, shaped to be added to images."""
    return to_backend(values[:, None, None], dtype, device)


def gabor_factors(
    shape: tuple[int, int],
    ppd: float,
    *,
    frequency: FloatArray,
    orientation: FloatArray,
    phase: FloatArray,
    x: FloatArray,
    y: FloatArray,
    radius: FloatArray | None,
    balanced: bool,
) -> tuple[FloatArray, FloatArray]:
    """Two stacks of vectors whose matrix product is a batch of Gabors (or gratings, without a radius).

    cos(a + b) = cos a cos b - sin a sin b, and an isotropic Gaussian is a product: so each image is a product of an
    H x 2 and a 2 x W matrix. Balancing subtracts the multiple of the envelope that makes the sum zero, a third column.

    Parameters
    ----------
    frequency, orientation, phase, x, y, radius : ndarray, shape (n,)
        cpd, deg, deg, deg, deg, deg. `radius` None leaves out the envelope.
    balanced : bool
        Whether the sum over the image is made zero.

    Returns
    -------
    rows : ndarray, shape (n, H, 2 or 3)
    columns : ndarray, shape (n, 2 or 3, W)
    """
    dx = pixel_positions(shape[1], ppd) - x[:, None]
    dy = -pixel_positions(shape[0], ppd) - y[:, None]
    cosine, sine = cos_sin_degrees(orientation)
    across = 2 * np.pi * (frequency * cosine)[:, None] * dx + np.deg2rad(phase)[:, None]
    down = 2 * np.pi * (frequency * sine)[:, None] * dy
    envelope_x, envelope_y = np.ones_like(dx), np.ones_like(dy)
    if radius is not None:
        envelope_x = np.exp(-(dx**2) / (2 * radius**2)[:, None])
        envelope_y = np.exp(-(dy**2) / (2 * radius**2)[:, None])
    columns = np.stack([np.cos(across) * envelope_x, -np.sin(across) * envelope_x], axis=1)
    rows = np.stack([np.cos(down) * envelope_y, np.sin(down) * envelope_y], axis=2)
    if balanced:
        total = np.einsum("nhk,nkw->n", rows, columns)
        share = total / (envelope_x.sum(axis=1) * envelope_y.sum(axis=1))
        columns = np.concatenate([columns, -share[:, None, None] * envelope_x[:, None]], axis=1)
        rows = np.concatenate([rows, envelope_y[..., None]], axis=2)
    return rows, columns


def oriented_envelope(
    shape: tuple[int, int],
    ppd: float,
    *,
    orientation: FloatArray,
    x: FloatArray,
    y: FloatArray,
    radius: FloatArray,
    aspect: FloatArray,
) -> FloatArray:
    """Elliptical Gaussian envelopes, whose standard deviation along the stripes is `aspect` times `radius`."""
    dx = (pixel_positions(shape[1], ppd) - x[:, None])[:, None, :]
    dy = (-pixel_positions(shape[0], ppd) - y[:, None])[:, :, None]
    cosine, sine = (v[:, None, None] for v in cos_sin_degrees(orientation))
    across, along = dx * cosine + dy * sine, dy * cosine - dx * sine
    sigma, ratio = radius[:, None, None], aspect[:, None, None]
    return np.asarray(np.exp(-(across**2 + (along / ratio) ** 2) / (2 * sigma**2)))


def round_window(
    shape: tuple[int, int],
    ppd: float,
    *,
    x: FloatArray,
    y: FloatArray,
    radius: FloatArray,
    edge: FloatArray,
) -> FloatArray:
    """Discs of unit height with a raised-cosine edge.

    The window is 1 up to ``radius - edge/2``, 0 from ``radius + edge/2`` on and 1/2 at `radius`; an edge of 0 is a hard
    disc (pixels whose centres lie within the radius).
    """
    dx = (pixel_positions(shape[1], ppd) - x[:, None])[:, None, :]
    dy = (-pixel_positions(shape[0], ppd) - y[:, None])[:, :, None]
    distance = np.hypot(dx, dy) - radius[:, None, None]
    width = edge[:, None, None]
    ramp = np.clip(distance / np.where(width > 0, width, 1.0) + 0.5, 0.0, 1.0)
    return np.where(width > 0, 0.5 * (1 + np.cos(np.pi * ramp)), distance <= 0)


def noise_images(
    shape: tuple[int, int],
    ppd: float,
    *,
    amplitude: FloatArray,
    offset: FloatArray,
    low: FloatArray,
    high: FloatArray,
    exponent: FloatArray,
    edge: FloatArray,
    seed: FloatArray,
    dtype: str,
    device: str | None,
) -> Array:
    """Band-limited Gaussian noise of exact mean and standard deviation, image by image.

    Only the coefficients inside the ring are drawn, as normal deviates keyed by the image's own seed; the inverse
    transform does the rest. The spectrum's amplitude is r^-exponent inside the ring.

    Parameters
    ----------
    amplitude, offset : ndarray, shape (n,)
        Standard deviation and mean of each image.
    low, high : ndarray, shape (n,)
        Edges of the ring, cpd, both included; half-power points where the edge is soft.
    exponent : ndarray, shape (n,)
        0 white, 1 pink.
    edge : ndarray, shape (n,)
        Width of the raised-cosine edges of the power, octaves; 0 is a brick wall.
    seed : ndarray of int, shape (n,)
        One for each image.
    dtype, device
        Of the result; the deviates are the same in all of them.
    """
    import scipy.fft

    xp = namespace(device)
    count, half = len(low), shape[1] // 2 + 1
    result = xp.empty((count, *shape), dtype=getattr(xp, dtype), device=device or "cpu")
    rings: dict[tuple[float, ...], _Ring] = {}
    complex_type = "complex128" if dtype == "float64" else "complex64"
    for start in range(0, count, _NOISE_BLOCK):
        stop = min(start + _NOISE_BLOCK, count)
        spectra: npt.NDArray[Any] = np.zeros((stop - start, shape[0] * half), complex_type)
        for row, i in enumerate(range(start, stop)):
            key = (float(low[i]), float(high[i]), float(exponent[i]), float(edge[i]))
            ring = rings[key] if key in rings else rings.setdefault(key, _ring(shape, ppd, *key))
            spectra[row, ring.index] = _unit_coefficients(ring, int(seed[i])) * (shape[0] * shape[1] * amplitude[i])
        spectrum = spectra.reshape(-1, shape[0], half)
        if device is None:
            result[start:stop] = scipy.fft.irfft2(spectrum, s=shape, overwrite_x=True)
        else:
            import torch

            result[start:stop] = torch.fft.irfft2(torch.from_numpy(spectrum).to(device), s=shape)
        result[start:stop] += to_backend(offset[start:stop, None, None], dtype, device)
    return result


@dataclass(frozen=True)
class _Ring:
    """Which coefficients of a half-plane spectrum a band holds, and what joins them."""

    index: npt.NDArray[np.int64]  # into the flattened (H, W//2 + 1) spectrum
    amplitude: FloatArray  # relative, shape of index
    first_column: npt.NDArray[np.int64]  # members of index without a mirror image outside the half-plane
    mirrored: npt.NDArray[np.int64]  # those of first_column at negative frequencies ...
    mirrors: npt.NDArray[np.int64]  # ... and their partners at positive ones


def _ring(shape: tuple[int, int], ppd: float, low: float, high: float, exponent: float, edge: float) -> _Ring:
    height, width = shape
    vertical, horizontal = np.fft.fftfreq(height), np.fft.rfftfreq(width)
    radial = np.hypot(vertical[:, None], horizontal) * ppd
    # Rows and columns at the Nyquist frequency have no partner of opposite sign; without them the ring is isotropic.
    radial[np.abs(vertical) == 0.5] = 0.0
    radial[:, horizontal == 0.5] = 0.0
    reach = 2.0 ** (edge / 2)
    # A coefficient that lies on an edge is inside, on whichever side rounding puts it.
    inside = (radial > 0) & (radial >= low / reach * (1 - 1e-9)) & (radial <= high * reach * (1 + 1e-9))
    index = np.flatnonzero(inside)
    if not index.size:
        raise InputError(
            f"a band from {low:.4g} to {high:.4g} cpd holds no frequency of a field of {height / ppd:.4g} x "
            f"{width / ppd:.4g} deg, whose frequencies lie {ppd / max(shape):.4g} cpd apart; widen band or field"
        )
    r = radial.ravel()[index]
    amplitude = r**-exponent
    if edge > 0:
        outward = np.maximum(np.log2(low / r), np.log2(r / high)) / edge
        amplitude = amplitude * np.sqrt(0.5 * (1 + np.cos(np.pi * np.clip(outward + 0.5, 0.0, 1.0))))
    rows, columns = np.divmod(index, radial.shape[1])
    first_column = np.flatnonzero(columns == 0)
    mirrored = first_column[rows[first_column] > height // 2]
    mirrors = np.searchsorted(index, (height - rows[mirrored]) * radial.shape[1])
    return _Ring(index, amplitude, first_column, mirrored, mirrors)


def _unit_coefficients(ring: _Ring, seed: int) -> npt.NDArray[Any]:
    """Coefficients of one image whose standard deviation is 1 (in units of the number of pixels)."""
    # Deviates are always drawn in float32: a seed means the same image in every precision.
    normal = np.random.default_rng(seed).standard_normal(2 * len(ring.index), dtype=np.float32)
    values = normal.view(np.complex64).astype(np.complex128) * ring.amplitude
    values[ring.mirrored] = values[ring.mirrors].conj()
    squared = values.real**2 + values.imag**2
    # Parseval: every coefficient outside the first column stands for its mirror image too.
    power = 2 * squared.sum() - squared[ring.first_column].sum()
    return np.asarray(values / np.sqrt(power))
