"""Derivatives of a wave under an envelope, as products of columns and rows.

A wave and a Gaussian are products of a column and a row. So sums over pixels that a fit needs are
small products of matrices, and no pattern is written down. Leading axes, "...", are a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from psyprobe._typing import FloatArray, IntArray, Shape
from psyprobe.stimulus.estimate import Float64, eigen_inverse, lengths

#: The real part of a wave is the first of these products of a column and a row less the second, its
#: imaginary part the sum of the next two, the profile the last: field, sign, and which factors.
FIELD = np.array([0, 0, 1, 1, 2])
SIGN = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
_DOWN = np.array([0, 1, 0, 1, 2])
_ACROSS = np.array([0, 1, 1, 0, 2])

#: So many pixels of an image at a time stay in the cache, and need no new memory.
_CHUNK_PIXELS = 2**14


class _Factors(NamedTuple):
    """Indices of the column and the row of every product, in the order of polynomials."""

    column: IntArray
    row: IntArray


@lru_cache
def _factors(fields: int, powers: int) -> _Factors:
    """Compute which column and row multiply to each product, the constant last."""
    i, j = np.divmod(np.arange(powers**2), powers)
    down = 1 + _DOWN[: fields + 2, None] + j * fields
    across = 1 + _ACROSS[: fields + 2, None] + i * fields
    return _Factors(np.append(down, 0), np.append(across, 0))


def axis_profiles(
    angle: Float64, profile: Float64, distance: Float64, fields: int, powers: int
) -> Float64:
    """Compute the profiles of a wave along one axis, (..., 1 + powers * fields, N).

    First ones, then the wave's real and imaginary part and, if there are three fields, the bare
    envelope; then the same times powers of the distance from its centre.

    Parameters
    ----------
    angle : ndarray, shape (..., N)
        Phase of the wave, rad.
    profile, distance : ndarray, shape (..., N)
        Height of the envelope, and distance from its centre.
    """
    *batch, pixels = angle.shape
    profiles = np.ones((*batch, 1 + powers * fields, pixels))
    profiles[..., 1, :] = np.cos(angle) * profile
    profiles[..., 2, :] = np.sin(angle) * profile
    if fields > 2:
        profiles[..., 3, :] = profile
    for start in range(1, 1 + (powers - 1) * fields, fields):
        lower = profiles[..., start : start + fields, :]
        profiles[..., start + fields : start + 2 * fields, :] = (
            lower * distance[..., None, :]
        )
    return profiles


class Profiles(NamedTuple):
    """A wave under an envelope, as columns and rows that multiply to its fields.

    Columns and rows are those of `axis_profiles`, of the first `fields` of which `draw` takes sums.
    """

    columns: Float64
    rows: Float64
    #: Weight of all products but that of ones, shape (..., H, W); None for 1.
    weight: FloatArray | None
    #: Two, or three with the bare envelope.
    fields: int

    @property
    def batch(self) -> Shape:
        """Leading axes of columns, rows and weights together."""
        arrays = (self.columns, self.rows, self.weight)
        shapes = [array.shape[:-2] for array in arrays if array is not None]
        return np.broadcast_shapes(*shapes)

    @property
    def powers(self) -> int:
        """Number of powers of the distance, the zeroth included."""
        return int(self.columns.shape[-2] - 1) // self.fields

    def linear(self) -> Profiles:
        """Return the profiles without powers of the distance."""
        first = slice(1 + self.fields)
        columns = self.columns[..., first, :]
        return self._replace(columns=columns, rows=self.rows[..., first, :])

    def sums(self, images: Float64) -> Float64:
        """Sum images, (..., H, W), times products of each column and row, (..., C, R)."""
        weighted = images if self.weight is None else images * self.weight
        sums = self.columns @ weighted @ self.rows.mT
        if self.weight is not None:
            sums[..., 0, 0] = images.sum(axis=(-2, -1))
        return np.asarray(sums)

    def image(self, linear: Float64) -> Float64:
        """Draw ``E (p cos + q sin + d)``, (..., H, W), for (p, q) or (p, q, d) on the last axis."""
        batch = np.broadcast_shapes(linear.shape[:-1], self.batch)
        images = np.empty((*batch, self.columns.shape[-1], self.rows.shape[-1]))
        for place, chunk in self._draw(linear, batch):
            images[place] = chunk
        return images

    def highest(self, linear: Float64) -> Float64:
        """Compute the largest pixel of what `image` draws, (...)."""
        batch = np.broadcast_shapes(linear.shape[:-1], self.batch)
        highest = np.full(batch, -np.inf)
        for place, chunk in self._draw(linear, batch):
            image = place[:-1]
            highest[image] = max(highest[image], chunk.max())
        return highest

    def subtract(
        self, linear: Float64, background: Float64, images: Float64, out: Float64
    ) -> Float64:
        """Subtract ``E (p cos + q sin + d) + b`` from images, (..., H, W), into `out`."""
        for place, chunk in self._draw(linear, images.shape[:-2]):
            # The background is far above the wave: where it goes first, the wave keeps its last
            # digits.
            rows = out[place]
            np.subtract(images[place], background[place[:-1]], out=rows)
            rows -= chunk
        return out

    def _draw(
        self, linear: Float64, batch: Shape
    ) -> Iterator[tuple[tuple[int | slice, ...], Float64]]:
        """Iterate over the rows of what `image` draws, some at a time, with their places."""
        p = linear[..., 0]
        q = linear[..., 1]
        mixture = np.zeros((*linear.shape[:-1], self.fields, self.fields))
        mixture[..., 0, 0] = p
        mixture[..., 0, 1] = mixture[..., 1, 0] = q
        mixture[..., 1, 1] = -p
        if self.fields > 2:
            mixture[..., 2, 2] = linear[..., 2]
        columns = self.columns[..., 1 : 1 + self.fields, :].mT @ mixture
        columns = np.broadcast_to(columns, (*batch, *columns.shape[-2:]))
        rows = self.rows[..., 1 : 1 + self.fields, :]
        rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:]))
        height = columns.shape[-2]
        width = rows.shape[-1]
        weight = self.weight
        if weight is not None:
            weight = np.broadcast_to(weight, (*batch, height, width))
        count = max(1, _CHUNK_PIXELS // width)
        buffer = np.empty((count, width))
        for index in np.ndindex(*batch):
            for start in range(0, height, count):
                place = (*index, slice(start, start + count))
                chunk_columns = columns[place]
                chunk = buffer[: len(chunk_columns)]
                np.matmul(chunk_columns, rows[index], out=chunk)
                if weight is not None:
                    chunk *= weight[place]
                yield place, chunk


class Solution(NamedTuple):
    """Coefficients of least squares, with their standard errors, (..., K)."""

    values: Float64
    errors: Float64
    #: Mean of each image, (...).
    mean: Float64
    #: Sum of squares that the fit leaves of each image, (...).
    squares: Float64
    #: `Profiles.sums` of the images less the fit, but for these last small coefficients, (..., K).
    sums: Float64
    missing: Float64


class Step(NamedTuple):
    """A damped Gauss-Newton step of the parameters, (..., K)."""

    values: Float64
    #: Length of the change of the image, (...).
    change: Float64
    #: Inverse of the normal matrix, (..., K, K).
    inverse: Float64


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of an image by K parameters.

    They are sums of products of a column and a row, times a weight, and of a constant.
    """

    profiles: Profiles
    #: Coefficients of every product in each derivative, and of the constant, shape (..., K,
    #: products + 1).
    polynomials: Float64

    @property
    def _factors(self) -> _Factors:
        """Which column and row multiply to each entry of these derivatives."""
        return _factors(self.profiles.fields, self.profiles.powers)

    @cached_property
    def normal(self) -> Float64:
        """Sums over pixels of the products of two derivatives, shape (..., K, K)."""
        u, v = self._factors
        u_pairs = (..., u[:, None], u)
        v_pairs = (..., v[:, None], v)
        columns, rows, weight, _ = self.profiles
        if weight is None:
            sums = (columns @ columns.mT)[u_pairs] * (rows @ rows.mT)[v_pairs]
        else:
            first, second = np.triu_indices(columns.shape[-2])
            pair = np.zeros((columns.shape[-2], columns.shape[-2]), int)
            pair[first, second] = pair[second, first] = np.arange(first.size)
            column_products = columns[..., first, :] * columns[..., second, :]
            row_products = rows[..., first, :] * rows[..., second, :]
            products = column_products @ weight**2 @ row_products.mT
            sums = products[..., pair[u_pairs], pair[v_pairs]]
            # The constant has no weight.
            totals = (columns @ weight @ rows.mT)[..., u, v]
            totals[..., -1] = columns.shape[-1] * rows.shape[-1]
            sums[..., -1, :] = totals
            sums[..., :, -1] = totals
        return np.asarray(self.polynomials @ sums @ self.polynomials.mT)

    def project(self, sums: Float64) -> Float64:
        """Sum images times each derivative over pixels, (..., K), from their `Profiles.sums`."""
        u, v = self._factors
        return np.asarray((self.polynomials @ sums[..., u, v, None])[..., 0])

    def moments(self, linear: Float64) -> tuple[Float64, Float64]:
        """Compute mean and variance of what profiles draw, (...), by linear derivatives."""
        totals = self.normal[..., -1, :]
        mean = (totals[..., :-1] * linear).sum(axis=-1) / totals[..., -1]
        products = (self.normal[..., :-1, :-1] @ linear[..., None])[..., 0]
        squares = (products * linear).sum(axis=-1) / totals[..., -1]
        return mean, np.maximum(squares - mean**2, 0.0)

    def solve(self, images: Float64, profiles: Profiles) -> Solution:
        """Fit images, (..., H, W), by least squares with linear derivatives.

        `profiles` are those of the derivatives with powers of the distance too.
        """
        scale = _outer(lengths(self.normal))
        solver = eigen_inverse(self.normal / scale, 1e-13) / scale
        projection = self.project(self.profiles.sums(images))
        mean = projection[..., -1] / (images.shape[-2] * images.shape[-1])
        rough = (solver @ projection[..., None])[..., 0]
        subtract = profiles.subtract
        residual = np.empty(images.shape)
        subtract(rough[..., :-1], rough[..., -1], images, out=residual)
        # A second pass restores the precision that the normal equations lose by squaring the
        # condition number.
        sums = profiles.sums(residual)
        step = (solver @ self.project(sums)[..., None])[..., 0]
        squares = square_sums(residual)
        # Only where it explains next to all of what is left does that need to be drawn.
        hidden = self._quadratic(step) > 0.999 * squares
        missing = np.where(hidden[..., None], 0.0, step)
        if hidden.any():
            drawn = step - missing
            subtract(drawn[..., :-1], drawn[..., -1], residual, out=residual)
            squares = square_sums(residual)
            sums = profiles.sums(residual)
        squares = squares - self._quadratic(missing)
        errors = standard_errors(solver)
        return Solution(rough + step, errors, mean, squares, sums, missing)

    def step(self, sums: Float64, missing: Float64, damping: Float64) -> Step:
        """Compute the step of the parameters that explains most of images with `Profiles.sums`.

        `missing`, (..., K), are steps already taken that are not yet subtracted from the images;
        `damping`, (...), shortens the step in directions of which the images tell little.
        """
        scale = _outer(lengths(self.normal))
        scaled = self.normal / scale
        inverse = eigen_inverse(scaled, 1e-12)
        damped = inverse
        if damping.any():
            diagonal = damping[..., None, None] * np.eye(scale.shape[-1])
            damped = eigen_inverse(scaled + diagonal, 1e-12)
        projection = self.project(sums)[..., None] - self.normal @ missing[..., None]
        values = (damped / scale @ projection)[..., 0]
        change = np.sqrt(np.maximum(self._quadratic(values), 0.0))
        return Step(values, change, inverse / scale)

    def _quadratic(self, values: Float64) -> Float64:
        """Compute the sum of squares of the sum of derivatives times values, (..., K) to (...)."""
        return np.asarray(
            ((self.normal @ values[..., None])[..., 0] * values).sum(axis=-1)
        )


def _outer(scale: Float64) -> Float64:
    """Multiply all pairs of scales, (..., K) to (..., K, K)."""
    return np.asarray(scale[..., :, None] * scale[..., None, :])


def square_sums(images: Float64) -> Float64:
    """Compute the sum of squares of each image, (..., H, W)."""
    *batch, height, width = images.shape
    flat = images.reshape(*batch, 1, height * width)
    return np.asarray((flat @ flat.mT)[..., 0, 0])


def standard_errors(inverse: Float64) -> Float64:
    """Compute the root of the diagonal of inverse normal matrices, (..., K)."""
    return np.sqrt(np.maximum(np.diagonal(inverse, axis1=-2, axis2=-1), 0.0))
