"""What a fit of psychometric functions gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.sigmoids import psychometric_function
from psyprobe.analysis.psychometric.statuses import StatusArray


@dataclass(frozen=True)
class PsychometricFit:
    """Fitted psychometric functions of a batch of curves; every array has the shape of the batch."""

    #: What may be said of the curve; `STATUSES` tells each in words. Numbers that it forbids are nan.
    status: StatusArray
    #: log10 contrast where F = 0.5, and its interval; an open side is infinite. A censored curve has an interval and no
    #: threshold.
    threshold: FloatArray
    threshold_low: FloatArray
    threshold_high: FloatArray
    #: From F = 0.05 to F = 0.95, log10 units; 0 of a step.
    width: FloatArray
    width_low: FloatArray
    width_high: FloatArray
    #: Rates, in [0, 1); nan where nothing was fitted: without answers, or to a curve that does not rise.
    guess: FloatArray
    lapse: FloatArray
    #: Overdispersion, in [0, 1): variance = n p (1 - p) (1 + (n - 1) eta²); 0 is binomial.
    eta: FloatArray
    #: Natural logarithm, without the binomial coefficients.
    log_likelihood: FloatArray
    #: Twice the log-likelihood that the saturated model has more.
    deviance: FloatArray
    #: Levels less free parameters; a rate shared by m curves counts 1/m.
    degrees_of_freedom: FloatArray
    #: Probability of at least this deviance if the function were true, by parametric bootstrap; nan if not asked for.
    p_value: FloatArray
    #: Whether the best climb ended at a maximum.
    converged: npt.NDArray[np.bool_]
    #: Of the test whether the curve rises at all; 1 where none was needed.
    p_rising: FloatArray
    #: log10 contrasts between which the best rising proportions cross the criterion, whatever their form.
    bracket_low: FloatArray
    bracket_high: FloatArray
    #: Mean of the rising proportions as a distribution, log10 contrast; nan where they do not go from 0 to 1.
    spearman_karber: FloatArray
    #: Different contrasts above 0 with trials, and contrasts given without any.
    levels: npt.NDArray[np.int64]
    dropped_levels: npt.NDArray[np.int64]
    #: Family of the sigmoid.
    function: str
    #: Of the intervals.
    level: float
    #: Within which the rates were sought; equal if fixed.
    guess_bounds: tuple[float, float]
    lapse_bounds: tuple[float, float]

    @property
    def threshold_contrast(self) -> FloatArray:
        """Contrast at threshold; nan where there is none."""
        return np.asarray(10.0**self.threshold)

    @property
    def sensitivity(self) -> FloatArray:
        """1 / contrast at threshold; nan where there is none."""
        return np.asarray(10.0**-self.threshold)

    @property
    def guess_at_bound(self) -> npt.NDArray[np.bool_]:
        """Whether a fitted guess rate ended at its upper bound: a larger one may be true."""
        return _stopped(self.guess, self.guess_bounds)

    @property
    def lapse_at_bound(self) -> npt.NDArray[np.bool_]:
        """Whether a fitted lapse rate ended at its upper bound: a larger one may be true."""
        return _stopped(self.lapse, self.lapse_bounds)

    @property
    def raw_threshold(self) -> FloatArray:
        """log10 contrast at which half the answers are yes, guesses and lapses counted in; nan where they never are."""
        from psyprobe.analysis.psychometric.sigmoids import threshold_at

        return threshold_at(0.5, self.threshold, self.width, self.guess, self.lapse, function=self.function)

    def predict(self, contrast: npt.ArrayLike) -> FloatArray:
        """Probability of yes by the fitted functions.

        Parameters
        ----------
        contrast : array_like of float
            Linear contrast, at least 0; one-dimensional, or of shape (..., L) with the batch's leading axes.

        Returns
        -------
        ndarray of float64, shape (..., L)
            nan for curves without a threshold.
        """
        from psyprobe.errors import InputError

        c = np.asarray(contrast, dtype=np.float64)
        if not np.all(c >= 0):
            raise InputError(f"contrast {np.min(c):g} is not usable; contrast is linear, at least 0")
        with np.errstate(divide="ignore"):
            x = np.log10(c)
        t, w, g, lam = (np.asarray(v)[..., None] for v in (self.threshold, self.width, self.guess, self.lapse))
        known = np.isfinite(t)
        # A step is drawn as the narrowest function that numbers hold.
        narrowest = np.where(known & (w > 1e-9), w, 1e-9)
        p = psychometric_function(
            x, np.where(known, t, 0.0), narrowest, np.where(known, g, 0.0), np.where(known, lam, 0.0),
            function=self.function,
        )  # fmt: skip
        return np.where(known, p, np.nan)


def _stopped(rate: FloatArray, bounds: tuple[float, float]) -> npt.NDArray[np.bool_]:
    if bounds[0] == bounds[1]:
        return np.zeros(rate.shape, dtype=bool)
    return np.asarray(rate >= bounds[1] - 1e-6)
