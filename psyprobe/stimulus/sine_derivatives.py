"""Derivatives of a wave under an envelope, as products of columns and rows.

A wave and a Gaussian are products of a column and a row. So sums over pixels that a fit needs are
small products of matrices, and no pattern is written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from psyprobe._typing import FloatArray, IntArray
from psyprobe.stimulus.estimate import Float64, eigen_inverse, lengths

#: The real part of a wave is the first of these products of a column and a row less the second, its
#: imaginary part the sum of the next two, the profile the last: field, sign, and which factors.
FIELD = np.array([0, 0, 1, 1, 2])
SIGN = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
_DOWN = np.array([0, 1, 0, 1, 2])
_ACROSS = np.array([0, 1, 1, 0, 2])


#: So many rows of an image at a time stay in the cache, and need no new memory.
_CHUNK_ROWS = 32


class _Factors(NamedTuple):
    """Indices of the column and the row of every product, in the order of polynomials."""

    column: IntArray
    row: IntArray


@lru_cache
def _factors(fields: int, powers: int) -> _Factors:
    """Compute which column and row profiles multiply to each entry of the derivatives."""
    i, j = np.divmod(np.arange(powers**2), powers)
    down = _DOWN[: fields + 2, None] * powers
    across = _ACROSS[: fields + 2, None] * powers
    return _Factors((down + j).ravel(), (across + i).ravel())


class Solution(NamedTuple):
    """Coefficients of least squares, (..., K), with their standard errors, (K,)."""

    values: Float64
    errors: Float64


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of an image by K parameters.

    They are sums of products of a column and a row, times a weight, and of a constant.
    """

    #: down, across: Real and imaginary part of the wave, and its profile, times powers of the
    #: distance from the centre of the envelope, shapes (fields, powers, H) and (fields, powers, W).
    down: Float64
    across: Float64
    #: Weight of all products, shape (H, W); None for 1.
    weight: FloatArray | None
    #: Coefficients of every product in each derivative, and of the constant, shape (K, products +
    #: 1).
    polynomials: Float64

    @property
    def _factors(self) -> _Factors:
        """Which column and row profiles multiply to each entry of these derivatives."""
        fields, powers, _ = self.down.shape
        return _factors(fields, powers)

    @cached_property
    def _columns(self) -> Float64:
        """The vertical profiles, one a row, shape (K, H)."""
        return self.down.reshape(-1, self.down.shape[-1])

    @cached_property
    def _rows(self) -> Float64:
        """The horizontal profiles, one a row, shape (K, W)."""
        return self.across.reshape(-1, self.across.shape[-1])

    @cached_property
    def normal(self) -> Float64:
        """Sums over pixels of the products of two derivatives, shape (K, K)."""
        u, v = self._factors
        u_pairs = (u[:, None], u)
        v_pairs = (v[:, None], v)
        columns = self._columns
        rows = self._rows
        sums = np.empty((len(u) + 1, len(u) + 1))
        if self.weight is None:
            sums[:-1, :-1] = (columns @ columns.T)[u_pairs] * (rows @ rows.T)[v_pairs]
            sums[-1, :-1] = columns.sum(axis=1)[u] * rows.sum(axis=1)[v]
        else:
            first, second = np.triu_indices(len(columns))
            pair = np.zeros((len(columns), len(columns)), int)
            pair[first, second] = pair[second, first] = np.arange(first.size)
            column_products = columns[first] * columns[second]
            row_products = rows[first] * rows[second]
            products = column_products @ self.weight**2 @ row_products.T
            sums[:-1, :-1] = products[pair[u_pairs], pair[v_pairs]]
            sums[-1, :-1] = (columns @ self.weight @ rows.T)[u, v]
        sums[:-1, -1] = sums[-1, :-1]
        sums[-1, -1] = self.down.shape[-1] * self.across.shape[-1]
        return np.asarray(self.polynomials @ sums @ self.polynomials.T)

    def project(self, image: Float64) -> Float64:
        """Sum images, (..., H, W), times each derivative over pixels, shape (..., K)."""
        weighted = image if self.weight is None else image * self.weight
        products = (self._columns @ weighted @ self._rows.T)[(..., *self._factors)]
        constant = image.sum(axis=(-2, -1))[..., None]
        sums = np.concatenate([products, constant], axis=-1)
        return np.asarray(sums @ self.polynomials.T)

    def image(self, linear: Float64) -> Float64:
        """Draw ``E (p cos + q sin + d)``, (..., H, W), for (p, q) or (p, q, d) on the last axis."""
        images = self._mixed_columns(linear) @ self.across[:, 0]
        if self.weight is not None:
            images *= self.weight
        return np.asarray(images)

    def _mixed_columns(self, linear: Float64) -> Float64:
        """Combine the vertical profiles by the coefficients of images, (..., H, fields)."""
        real, imaginary, *profile = self.down[:, 0]
        p = linear[..., :1]
        q = linear[..., 1:2]
        columns = [p * real + q * imaginary, q * real - p * imaginary]
        columns += [linear[..., 2:3] * column for column in profile]
        return np.stack(columns, axis=-1)

    def subtract(self, linear: Float64, background: Float64, images: Float64) -> None:
        """Subtract ``E (p cos + q sin + d) + b`` from images, (..., H, W), in place."""
        columns = self._mixed_columns(linear)
        for start in range(0, images.shape[-2], _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            chunk = columns[..., rows, :] @ self.across[:, 0]
            if self.weight is not None:
                chunk *= self.weight[rows]
            chunk += background[..., None, None]
            images[..., rows, :] -= chunk

    def solve(self, images: Float64) -> Solution:
        """Fit images, (..., H, W), by least squares, and subtract the fit from them in place."""
        scale = lengths(self.normal)
        inverse = eigen_inverse(self.normal / np.outer(scale, scale), 1e-13)
        values: Float64 = np.zeros((*images.shape[:-2], len(scale)))
        # The second pass restores the precision that the normal equations lose by squaring the
        # condition number.
        for _ in range(2):
            step = (self.project(images) / scale) @ inverse / scale
            self.subtract(step[..., :-1], step[..., -1], images)
            values += step
        errors = np.sqrt(np.clip(np.diagonal(inverse), 0, None)) / scale
        return Solution(values, errors)
