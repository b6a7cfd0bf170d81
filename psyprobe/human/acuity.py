"""Find the finest stripes that people see: as measured, and as fitted.

castleCSF is no reference here: at the contrasts of the study it gives 64, 108 and 51 cpd for the
achromatic, red-green and yellow-violet direction, where 47, 44 and 27 were measured.

References
----------
Ashraf, Chapiro, Mantiuk (2025). Resolution limit of the eye - how many pixels can we see? Nature
Communications 16:9086. Data and the parameters of the fit: gfxdisp/resolution_limit at 436be05
(MIT, in ``psyprobe/human/data/resolution_limit/LICENSE``). Watson (2018). The field of view, the
field of resolution, and the field of contrast sensitivity. Journal of Perceptual Imaging 1(1): the
form of the fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name
from psyprobe.human.datasets import read_table

if TYPE_CHECKING:
    import pandas as pd

#: (c, cF, cR) of limit = (log10 S - c) / (cF (1 + cR e)), by direction.
_FIT = {
    "achromatic": (2.13474805, -0.04393618, 0.16007963),
    "red_green": (2.17939345, -0.02996545, 0.45358028),
    "yellow_violet": (1.77668671, -0.05503703, 0.4629946),
}


def resolution_limits(*, observers: bool = False) -> pd.DataFrame:
    """Load the highest visible frequencies of people: medians with ranges, or single people's.

    Parameters
    ----------
    observers : bool, optional
        Whether to load single people: 146 rows in place of 9.

    Returns
    -------
    pandas.DataFrame
        Frequencies in cpd, eccentricity in deg, luminance in cd/m², RMS cone contrast.

    Examples
    --------
    >>> table = resolution_limits()
    >>> table["limit_cpd"][table["eccentricity_deg"] == 0].round(1).tolist()
    [47.2, 44.4, 26.6]
    """
    name = "observers" if observers else "medians"
    return read_table(f"resolution_limit/{name}.csv")


def resolution_limit(
    contrast: Any, direction: Any = "achromatic", eccentricity: Any = 0.0
) -> FloatArray:
    """Compute the highest visible frequency (cpd) at an RMS cone contrast, by the authors' fit."""
    if direction not in _FIT:
        raise unknown_name("direction of a resolution limit", str(direction), _FIT)
    c, c_f, c_r = _FIT[direction]
    log_sensitivity = -np.log10(np.asarray(contrast, dtype=np.float64))
    e = np.asarray(eccentricity, dtype=np.float64)
    return np.asarray((log_sensitivity - c) / (c_f * (1 + c_r * e)))
