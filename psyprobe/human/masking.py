"""Contrast thresholds of people on masks.

References
----------
Foley (1994). Human luminance pattern-vision mechanisms: masking experiments require a new model. JOSA A 11(6),
1710-1719.
Gegenfurtner, Kiper (1992). Contrast detection in luminance and chromatic noise. JOSA A 9(11), 1880-1888.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name
from psyprobe.human.tables import read_human_table

#: Name to frequency of the target (cpd) and kind of the mask's contrast.
_STUDIES = {"foley1994": (2.0, "michelson"), "gegenfurtner_kiper1992": (1.2, "rms")}


@dataclass(frozen=True)
class MaskingData:
    """Thresholds of a Gabor target at several contrasts of one mask, of the study `name`."""

    name: str
    mask_contrast: FloatArray
    """Shape (K,), increasing, above 0, of the kind `mask_contrast_kind`."""
    threshold: FloatArray
    """Michelson contrast of the target at threshold, shape (K,)."""
    scored: npt.NDArray[np.bool_]
    """Points at which Cai et al. (2025) score models: 0.005 < mask contrast < 0.25."""
    unmasked_threshold: float | None
    """Threshold without a mask; None where it was not measured."""
    frequency: float
    """Of the target, cpd."""
    mask_contrast_kind: str
    """Of a grating "michelson", of noise "rms"."""
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
