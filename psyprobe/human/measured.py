"""What was measured: thresholds of people on masks and of ModelFest's Gabors, and contrasts that look equal.

References
----------
Foley (1994). Human luminance pattern-vision mechanisms: masking experiments require a new model. JOSA A 11(6),
1710-1719.
Gegenfurtner, Kiper (1992). Contrast detection in luminance and chromatic noise. JOSA A 9(11), 1880-1888.
Georgeson, Sullivan (1975). Contrast constancy: deblurring in human vision by spatial frequency channels.
J. Physiol. 252(3), 627-656.
Carney et al. (1999). Development of an image/threshold database for designing and testing human vision models.
Proc. SPIE 3644, 542-551.
Watson, Ahumada (2005). A standard model for foveal detection of spatial contrast. Journal of Vision 5(9):6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.human.tables import read_human_table

#: Name to frequency of the target (cpd) and kind of the mask's contrast.
_STUDIES = {"foley1994": (2.0, "michelson"), "gegenfurtner_kiper1992": (1.2, "rms")}


@dataclass(frozen=True)
class MaskingData:
    """Thresholds of a Gabor target at several contrasts of one mask, of the study `name`."""

    name: str
    #: Shape (K,), increasing, above 0, of the kind `mask_contrast_kind`.
    mask_contrast: FloatArray
    #: Michelson contrast of the target at threshold, shape (K,).
    threshold: FloatArray
    #: Points at which Cai et al. (2025) score models: 0.005 < mask contrast < 0.25.
    scored: npt.NDArray[np.bool_]
    #: Threshold without a mask; None where it was not measured.
    unmasked_threshold: float | None
    #: Of the target, cpd.
    frequency: float
    #: Of a grating "michelson", of noise "rms".
    mask_contrast_kind: str
    citation: str


def masking_data(name: str) -> MaskingData:
    """Human thresholds on masks, as digitised from the published figures by Cai et al. (2025).

    Parameters
    ----------
    name : {"foley1994", "gegenfurtner_kiper1992"}
        "foley1994": a Gabor of 2 cpd on a full-field grating of the same frequency, orientation and phase.
        "gegenfurtner_kiper1992": a Gabor of 1.2 cpd on static luminance noise.

    Examples
    --------
    >>> data = masking_data("foley1994")
    >>> len(data.threshold), int(data.scored.sum()), round(data.unmasked_threshold, 4)
    (10, 8, 0.0261)
    """
    if name not in _STUDIES:
        raise unknown_name("masking study", name, _STUDIES)
    citation, columns = read_human_table(name)
    masked = columns["mask_contrast"] > 0
    unmasked = columns["threshold"][~masked]
    frequency, kind = _STUDIES[name]
    return MaskingData(
        name=name,
        mask_contrast=columns["mask_contrast"][masked],
        threshold=columns["threshold"][masked],
        scored=columns["scored"][masked] == 1,
        unmasked_threshold=float(unmasked[0]) if len(unmasked) else None,
        frequency=frequency,
        mask_contrast_kind=kind,
        citation=citation,
    )


@dataclass(frozen=True)
class MatchingData:
    """Contrasts of gratings that match a reference grating."""

    #: Michelson contrast of the reference grating, decreasing, shape (K,).
    reference_contrast: FloatArray
    #: Of the test gratings, cpd, increasing, shape (F,).
    frequency: FloatArray
    #: Michelson contrast of the test grating that looks as strong as the reference, shape (K, F).
    matched_contrast: FloatArray
    #: Of the reference grating, cpd.
    reference_frequency: float
    #: Mean luminance of both, cd/m².
    luminance: float
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


_CONSTANT_SIZE = 0.5  # deg


@dataclass(frozen=True)
class ModelFestGabors:
    """Thresholds of 14 Gabors."""

    #: In cpd.
    frequency: FloatArray
    #: Standard deviation of the Gaussian, deg: 0.5 for the first ten, then half a cycle.
    radius: FloatArray
    #: Mean over observers of log10 Michelson contrast at 84 % correct (of two intervals, or equivalent).
    log10_threshold: FloatArray
    #: Standard deviation between observers.
    log10_sd: FloatArray
    #: Of the background, cd/m².
    luminance: float
    observers: int
    citation: str

    @property
    def sensitivity(self) -> FloatArray:
        """1 / threshold contrast, of the geometric mean of observers, shape (14,)."""
        return np.asarray(10.0**-self.log10_threshold)


def modelfest_gabors() -> ModelFestGabors:
    """Stimuli 1 to 14 of ModelFest.

    Examples
    --------
    >>> data = modelfest_gabors()
    >>> float(data.frequency[data.sensitivity.argmax()]), round(float(data.sensitivity.max()), 1)
    (4.0, 127.8)
    """
    citation, columns = read_human_table("modelfest_gabors")
    del columns["stimulus"]
    return ModelFestGabors(**columns, luminance=30.0, observers=16, citation=citation)


def modelfest_csf(frequency: npt.ArrayLike) -> FloatArray:
    """Sensitivity to ModelFest's Gabors of 0.5 deg standard deviation, from 1.12 to 30 cpd.

    Between its ten frequencies it is interpolated in a straight line between logarithms; beyond, it is refused.

    Examples
    --------
    >>> modelfest_csf([2.0, 4.0, 16.0]).round(1)
    array([ 91.3, 127.8,  19.8])
    """
    data = modelfest_gabors()
    series = data.radius == _CONSTANT_SIZE
    measured = data.frequency[series]
    asked = np.asarray(frequency, dtype=np.float64)
    inside = (asked >= measured[0]) & (asked <= measured[-1])
    if not inside.all():
        raise InputError(
            f"frequency is {asked[~inside].ravel()[0]:g} cpd; ModelFest measured {measured[0]:g} to {measured[-1]:g} "
            "cpd with Gabors of one size: leave it out, or use a model such as castle_csf"
        )
    sensitivity: FloatArray = 10.0 ** -np.interp(np.log(asked), np.log(measured), data.log10_threshold[series])
    return sensitivity
