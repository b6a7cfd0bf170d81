"""Load human sensitivity to flicker from eight studies, and compute elaTCSF, fitted to them.

References
----------
Cai, Bozorgian, Ashraf, Wanat, Mantiuk (2024). elaTCSF: A temporal contrast sensitivity function for
flicker detection and modeling variable refresh rate flicker. SIGGRAPH Asia 2024.
doi:10.1145/3680528.3687586 Table: ``flicker_detection_datasets.csv`` of the repository
gfxdisp/elaTCSF (MIT licence, in ``psyprobe/human/data/flicker/LICENSE``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.human.achromatic import achromatic_csf
from psyprobe.human.datasets import read_table
from psyprobe.human.signature import LIMITS

if TYPE_CHECKING:
    import pandas as pd

LICENCE = "MIT, Copyright (c) 2024 Graphics and Displays group, University of Cambridge"
SOURCE = LIMITS["ela_tcsf"].source
_UNITS = {
    "temporal_frequency": "Hz",
    "luminance": "cd/m²",
    "frequency": "cpd",
    "radius": "deg",
    "area": "deg²",
    "eccentricity": "deg",
}

#: Gain, the share of the transient part, and its slowness against the sustained one; time constant,
#: s.
_GAIN = 154.133
_SHARE = 0.721095
_SLOWER = 2.12547
_TAU = 0.00292069
#: Stages of the two low-pass filters.
_STAGES = (15, 16)
#: Probability summation over area: its exponent, and the area of which a flicker has the
#: sensitivity of a point, deg².
_SUMMATION = 3.80022
_POINT = 6.52801
#: Dimmer light makes the formula's scale of frequencies 0 or negative, cd/m².
_DIMMEST = 0.002
#: Nodes of the integral over rings about the fovea, on each of two stretches.
_NODES = 96


@achromatic_csf
def ela_tcsf(
    luminance: FloatArray,
    disc_radius: FloatArray,
    temporal_frequency: FloatArray,
    eccentricity: FloatArray,
) -> FloatArray:
    """Compute sensitivity to discs that flicker, by elaTCSF (Cai et al. 2024).

    Call and errors as in `castle_csf`; there is no spatial frequency. It needs the luminance and
    ``disc_radius``; ``eccentricity`` is that of the centre of the disc. Sensitivities at the points
    of the disc, each at its eccentricity, are summed.

    Examples
    --------
    >>> ela_tcsf(luminance=100, disc_radius=2.0, temporal_frequency=[2.0, 8.0, 32.0]).round(1)
    array([161.9, 350.7,  52.8])
    """
    if (luminance < _DIMMEST).any():
        raise InputError(
            f"luminance is {luminance.min():g} cd/m², and elaTCSF has none below {_DIMMEST:g} "
            "cd/m²; give more light"
        )
    arrays = np.broadcast_arrays(
        luminance, disc_radius, temporal_frequency, eccentricity
    )
    light, radius, frequency, centre = (
        array.astype(np.float64)[..., None] for array in arrays
    )
    position, weight = np.polynomial.legendre.leggauss(_NODES)
    # Rings that lie wholly in the disc, then those that it cuts, whose arcs end steeply.
    inner = np.maximum(radius - centre, 0.0)
    ring = inner * (position + 1) / 2
    total = _integrate(frequency, ring, light, 2 * np.pi * ring, weight * inner / 2)
    nearest = np.abs(centre - radius)
    farthest = centre + radius
    angle = np.pi * (position + 1) / 2
    middle = (farthest + nearest) / 2
    half = (farthest - nearest) / 2
    ring = middle - half * np.cos(angle)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = (ring**2 + centre**2 - radius**2) / (2 * ring * centre)
    arc = np.where(
        centre > 0, 2 * ring * np.arccos(np.clip(np.nan_to_num(cosine), -1, 1)), 0.0
    )
    total += _integrate(
        frequency, ring, light, arc, weight * np.pi / 2 * half * np.sin(angle)
    )
    return np.asarray((total / _POINT) ** (1 / _SUMMATION))


def _integrate(
    frequency: FloatArray,
    ring: FloatArray,
    light: FloatArray,
    arc: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """Integrate sensitivity, raised to the summation exponent, over rings of eccentricity."""
    return np.asarray(
        (_point_sensitivity(frequency, ring, light) ** _SUMMATION * arc * weight).sum(
            axis=-1
        )
    )


def _point_sensitivity(
    frequency: FloatArray, eccentricity: FloatArray, luminance: FloatArray
) -> FloatArray:
    """Compute the sensitivity to a point at some eccentricity, deg."""
    scaled_frequency = ((frequency + 2) / (1 + 0.0341811 * eccentricity) - 2) / (
        0.6678 + 0.222269 * np.log10(luminance)
    )
    omega = 2j * np.pi * scaled_frequency * _TAU
    sustained = (1 + 1.0 * omega) ** -_STAGES[0]
    transient = (1 + _SLOWER * omega) ** -_STAGES[1]
    response = _GAIN * np.abs(sustained - _SHARE * transient)
    return (
        response
        * 10 ** (-0.0330933 * eccentricity)
        * 1.76801
        * (1 + 1.62402 / luminance) ** -0.533781
    )


def flicker_thresholds(dataset: str | None = None) -> pd.DataFrame:
    """Load human sensitivities to flicker, one row a condition: 532 rows of eight data sets.

    Parameters
    ----------
    dataset : str, optional
        One of the data sets; by default all.

    Returns
    -------
    pandas.DataFrame
        `dataset`, `stimulus` ("disk", "smoothed-edge disk" or "gabor"), `temporal_frequency` (Hz),
        `luminance` (cd/m²), `frequency` (cpd, 0 of a disc), `radius` (deg, infinite of an unbounded
        field), `area` (deg²), `eccentricity` (deg) and `sensitivity`, 1 / Michelson contrast at
        threshold. ``attrs`` has `units`, `citation` and `licence`.

    Raises
    ------
    UnknownNameError
        There is no such data set.

    Notes
    -----
    krajancich2021 and hvei_cff2022 measured the frequencies at which flicker vanished; sensitivity
    is the inverse of the stimulus' contrast.

    Examples
    --------
    >>> table = flicker_thresholds("deLange1958")
    >>> len(table), table.attrs["units"]["temporal_frequency"]
    (100, 'Hz')
    """
    table = read_table("flicker/thresholds.csv")
    names = sorted(table["dataset"].unique())
    if dataset is not None:
        if dataset not in names:
            raise unknown_name("flicker data set", dataset, names)
        table = table[table["dataset"] == dataset].reset_index(drop=True)
    table.attrs = {"units": dict(_UNITS), "citation": SOURCE, "licence": LICENCE}
    return table
