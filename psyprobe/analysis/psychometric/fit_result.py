"""Hold the psychometric functions fitted to a batch of curves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric.sigmoids import psychometric_function, threshold_at
from psyprobe.analysis.psychometric.statuses import StatusArray
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: Properties of a fit that are contrasts.
_IN_CONTRAST = (
    "threshold",
    "threshold_low",
    "threshold_high",
    "raw_threshold",
    "sensitivity",
)


@dataclass(frozen=True)
class PsychometricFit:
    """Fitted psychometric functions of a batch of curves; every array has the batch's shape.

    Thresholds are contrasts, in the unit that was fitted; numbers in log10 say so in their names.
    """

    #: What data allow about the curve; `STATUSES` explains each. Numbers that they do not allow
    #: are nan.
    status: StatusArray
    #: log10 contrast where F = 0.5, and its interval. A side is open, and infinite, where it would
    #: end further beyond the tested levels than the function is wide (or they are apart). Censored
    #: curves have an interval and no threshold.
    log10_threshold: FloatArray
    log10_threshold_low: FloatArray
    log10_threshold_high: FloatArray
    #: Distance from F = 0.05 to F = 0.95, log10 units, and its interval; 0 for a step.
    log10_width: FloatArray
    log10_width_low: FloatArray
    log10_width_high: FloatArray
    #: Rates, in [0, 1); nan where nothing was fitted: without answers, or to a curve that does not
    #: rise.
    guess: FloatArray
    lapse: FloatArray
    #: Overdispersion, in [0, 1): variance = n p (1 - p) (1 + (n - 1) eta²); 0 is binomial.
    eta: FloatArray
    #: Natural logarithm, without the binomial coefficients.
    log_likelihood: FloatArray
    #: Twice the difference in log-likelihood to the saturated model.
    deviance: FloatArray
    #: Levels less free parameters; a rate shared by m curves counts 1/m.
    degrees_of_freedom: FloatArray
    #: Probability of at least this deviance if the function were true, by parametric bootstrap; nan
    #: without `goodness`.
    p_value: FloatArray
    #: Whether the best climb ended at a maximum.
    converged: BoolArray
    #: p-value of the test whether the curve rises at all; 1 where none was needed.
    p_rising: FloatArray
    #: log10 contrasts between which the best rising proportions cross the criterion, whatever their
    #: form.
    log10_bracket_low: FloatArray
    log10_bracket_high: FloatArray
    #: Mean of the rising proportions as a distribution, log10 contrast; nan where they do not go
    #: from 0 to 1.
    log10_spearman_karber: FloatArray
    #: Whether the range of the prior, and not the answers, ends the threshold's interval; with
    #: interval "posterior" alone.
    bounded: BoolArray
    #: Number of contrasts above 0 with trials.
    levels: npt.NDArray[np.int64]
    #: Family of the sigmoid.
    function: str
    #: Probability that an interval holds the truth.
    level: float

    @property
    def threshold(self) -> FloatArray:
        """Contrast where F = 0.5; nan where there is no threshold."""
        return np.asarray(10.0**self.log10_threshold)

    @property
    def threshold_low(self) -> FloatArray:
        """Contrast at the lower end of the threshold's interval; 0 where it is open."""
        return np.asarray(10.0**self.log10_threshold_low)

    @property
    def threshold_high(self) -> FloatArray:
        """Contrast at the upper end of the threshold's interval; infinite where it is open."""
        return np.asarray(10.0**self.log10_threshold_high)

    @property
    def width(self) -> FloatArray:
        """Contrast at F = 0.95 less that at F = 0.05; 0 of a step, nan without a threshold."""
        low, high = (
            10.0
            ** threshold_at(
                share, self.log10_threshold, self.log10_width, function=self.function
            )
            for share in (0.05, 0.95)
        )
        return np.asarray(high - low)

    @property
    def bracket_low(self) -> FloatArray:
        """Lower contrast of the bracket without a form; see `log10_bracket_low`."""
        return np.asarray(10.0**self.log10_bracket_low)

    @property
    def bracket_high(self) -> FloatArray:
        """Upper contrast of the bracket without a form; see `log10_bracket_low`."""
        return np.asarray(10.0**self.log10_bracket_high)

    @property
    def spearman_karber(self) -> FloatArray:
        """Contrast at the Spearman-Karber mean; see `log10_spearman_karber`."""
        return np.asarray(10.0**self.log10_spearman_karber)

    @property
    def sensitivity(self) -> FloatArray:
        """1 / contrast at threshold; nan where there is none."""
        return np.asarray(10.0**-self.log10_threshold)

    @property
    def log10_raw_threshold(self) -> FloatArray:
        """log10 contrast at which half of all answers, guesses too, are yes; nan without one."""
        return threshold_at(
            0.5,
            self.log10_threshold,
            self.log10_width,
            self.guess,
            self.lapse,
            function=self.function,
        )

    @property
    def raw_threshold(self) -> FloatArray:
        """Contrast at which half the answers are yes; see `log10_raw_threshold`."""
        return np.asarray(10.0**self.log10_raw_threshold)

    def to_frame(self) -> pd.DataFrame:
        """Convert the fit to a pandas table, one row a curve, indexed by its place in the batch."""
        import pandas as pd

        # The last two fields, function and level, are those of all curves.
        names = [field.name for field in fields(self)][:-2]
        shape = np.shape(self.status)
        axes = [f"axis_{i}" for i in range(len(shape))]
        index = (
            pd.MultiIndex.from_product(map(range, shape), names=axes) if shape else None
        )
        columns = {
            name: np.ravel(getattr(self, name)) for name in [*names, *_IN_CONTRAST]
        }
        return pd.DataFrame(columns, index)

    def _repr_html_(self) -> str:
        """Show the fitted parameters as an HTML table in a notebook."""
        from psyprobe.files import html

        names = [
            "status",
            "threshold",
            "threshold_low",
            "threshold_high",
            "log10_width",
            "guess",
            "lapse",
            "sensitivity",
        ]
        rows = self.to_frame()[names].map(_format_cell).to_numpy().tolist()
        return html.table([names, *rows], f"Psychometric function ({self.function})")

    def predict(self, contrast: npt.ArrayLike) -> FloatArray:
        """Compute the probability of yes at contrasts by the fitted functions.

        Parameters
        ----------
        contrast : array_like of float
            Linear contrast, at least 0; one-dimensional, or of shape (..., L) with the batch's
            leading axes.

        Returns
        -------
        ndarray of float64, shape (..., L)
            nan for curves without a threshold.
        """
        linear = np.asarray(contrast, dtype=np.float64)
        if not np.all(linear >= 0):
            raise InputError(
                f"contrast {np.min(linear):g} is not usable; contrast is linear, at least 0"
            )
        with np.errstate(divide="ignore"):
            log10_contrast = np.log10(linear)
        fitted = np.isfinite(self.log10_threshold)
        # A step is drawn as the narrowest function that numbers can represent.
        positive = fitted & (self.log10_width > 1e-9)
        log10_width = np.where(positive, self.log10_width, 1e-9)
        probability = psychometric_function(
            log10_contrast,
            np.where(fitted, self.log10_threshold, 0.0)[..., None],
            log10_width[..., None],
            np.where(fitted, self.guess, 0.0)[..., None],
            np.where(fitted, self.lapse, 0.0)[..., None],
            function=self.function,
        )
        return np.where(fitted[..., None], probability, np.nan)


def _format_cell(cell: Any) -> str:
    """Format a number to four digits, and any other cell as text."""
    return f"{cell:.4g}" if isinstance(cell, float | np.floating) else str(cell)
