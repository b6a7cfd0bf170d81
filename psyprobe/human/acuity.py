"""Find the finest stripes that people see: as measured, as fitted, and as castleCSF predicts.

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

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._json import JsonObject
from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name
from psyprobe.human.castle import castle_csf

if TYPE_CHECKING:
    import pandas as pd

_FILES = files("psyprobe.human") / "data" / "resolution_limit"
#: (c, cF, cR) of limit = (log10 S - c) / (cF (1 + cR e)), by direction.
_FIT = {
    "achromatic": (2.13474805, -0.04393618, 0.16007963),
    "red_green": (2.17939345, -0.02996545, 0.45358028),
    "yellow_violet": (1.77668671, -0.05503703, 0.4629946),
}
#: Highest frequency that castleCSF is declared for, and highest one that is searched, cpd.
DECLARED = 64.0
_HIGHEST = 5000.0


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
    import pandas as pd

    path = _FILES / ("observers.csv" if observers else "medians.csv")
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")


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


@dataclass(frozen=True)
class CastleLimit:
    """The frequency at which castleCSF falls to a sensitivity."""

    #: The highest frequency, cpd.
    frequency: float
    #: Whether it lies beyond the 64 cpd up to which castleCSF is declared.
    extrapolated: bool


def castle_limit(
    sensitivity: float,
    direction: str,
    *,
    luminance: float,
    area: float,
    eccentricity: float = 0.0,
) -> CastleLimit | None:
    """Find the highest frequency at which castleCSF reaches a sensitivity, for comparison.

    Parameters
    ----------
    sensitivity : float
        1 / RMS cone contrast.
    direction, luminance, area, eccentricity
        As for `psyprobe.human.castle_csf`.

    Returns
    -------
    CastleLimit or None
        None if it does not reach it up to 5,000 cpd.

    Examples
    --------
    >>> limit = castle_limit(1.095, "achromatic", luminance=100, area=3.1416)
    >>> round(limit.frequency, 1), limit.extrapolated
    (64.1, True)
    """
    from scipy.optimize import brentq

    conditions: JsonObject = {
        "luminance": luminance,
        "area": area,
        "direction": direction,
        "eccentricity": eccentricity,
    }

    def excess(frequency: Any) -> Any:
        return castle_csf(frequency, **conditions) - sensitivity

    grid = np.geomspace(0.01, _HIGHEST, 2000)
    visible = np.flatnonzero(excess(grid) >= 0)
    if not visible.size:
        return None
    last = int(visible[-1])
    if last == len(grid) - 1:
        return CastleLimit(_HIGHEST, True)
    frequency = float(
        brentq(excess, grid[last], grid[last + 1], xtol=1e-13, rtol=1e-15)
    )
    return CastleLimit(frequency, frequency > DECLARED)
