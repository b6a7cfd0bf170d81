"""Contrasts that look equal to people at different spatial frequencies.

References
----------
Georgeson, Sullivan (1975). Contrast constancy: deblurring in human vision by spatial frequency channels.
J. Physiol. 252(3), 627-656.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.human.tables import read_human_table


@dataclass(frozen=True)
class MatchingData:
    """Contrasts of gratings that match a reference grating."""

    reference_contrast: FloatArray
    """Michelson contrast of the reference grating, decreasing, shape (K,)."""
    frequency: FloatArray
    """Of the test gratings, cpd, increasing, shape (F,)."""
    matched_contrast: FloatArray
    """Michelson contrast of the test grating that looks as strong as the reference, shape (K, F)."""
    reference_frequency: float
    """Of the reference grating, cpd."""
    luminance: float
    """Mean luminance of both, cd/m²."""
    citation: str


def matching_data() -> MatchingData:
    """Human contrast matches of Georgeson and Sullivan (1975), averaged over observers.

    8 reference contrasts at 5 cpd, 9 test frequencies; as digitised from a published figure by Cai et al. (2025).

    Notes
    -----
    At 5 cpd, where test and reference are the same, the digitised matches differ from the reference contrast by up
    to 0.06 log10 units, so no observer reaches an error of 0.

    Examples
    --------
    >>> data = matching_data()
    >>> data.matched_contrast.shape, data.reference_frequency, data.luminance
    ((8, 9), 5.0, 10.0)
    """
    citation, columns = read_human_table("georgeson_sullivan1975")
    reference = np.unique(columns["reference_contrast"])[::-1]
    frequency = np.unique(columns["frequency"])
    return MatchingData(
        reference_contrast=reference,
        frequency=frequency,
        matched_contrast=columns["matched_contrast"].reshape(len(reference), len(frequency)),
        reference_frequency=5.0,
        luminance=10.0,
        citation=citation,
    )
