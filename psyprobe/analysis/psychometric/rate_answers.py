"""Stand for curves by answers to blanks, from which guess and lapse rate are known as well.

The profile of one curve asks many times how well the others of its group do under other rates.
Fitted again each time, all profiles of a group take time with the square of its curves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Groups


@dataclass(frozen=True)
class RateAnswers(Groups):
    """Answers that tell the rates of P groups as much as some curves do."""

    #: Answers due to the rate and answers that are not, for guess and for lapse, shape (P, 2).
    due: FloatArray
    other: FloatArray
    #: Second derivative of the log-likelihood by both rates, and the rates at which it is taken,
    #: shapes (P,) and (P, 2).
    mixed: FloatArray
    rates: FloatArray

    def value(self, guess: FloatArray, lapse: FloatArray) -> FloatArray:
        """Compute the log-likelihood at rates of shape (..., P)."""
        rates = np.stack([guess, lapse], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            due = np.where(self.due > 0, self.due * np.log(rates), 0.0)
        value = (due + self.other * np.log1p(-rates)).sum(axis=-1)
        return np.asarray(value + self.mixed * (rates - self.rates).prod(axis=-1))

    def derivatives(
        self, guess: FloatArray, lapse: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the gradient by the rates, and minus the curvature by both ones, shape (2, P)."""
        rates = np.stack([guess, lapse], axis=-1)
        p = np.maximum(rates, 1e-12)
        gradient = self.due / p - self.other / (1 - p)
        gradient += self.mixed[:, None] * (rates - self.rates)[:, ::-1]
        curvature = self.due / p**2 + self.other / (1 - p) ** 2
        return gradient.T, curvature.T


def rate_answers(
    rates: FloatArray, gradient: FloatArray, curvature: FloatArray, mixed: FloatArray
) -> RateAnswers:
    """Choose answers with the same gradient and minus curvature by each rate, shape (P, 2)."""
    rest = 1 - rates
    due = np.maximum((curvature + gradient / rest) * rates**2 * rest, 0.0)
    other = rest * (due / np.maximum(rates, 1e-12) - gradient)
    return RateAnswers(due, other, mixed, rates)
