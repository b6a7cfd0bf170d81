"""stelaCSF: achromatic contrast sensitivity over area, spatio-temporal frequency, luminance and eccentricity.

References
----------
Mantiuk, Ashraf, Chapiro (2022). stelaCSF: a unified model of contrast sensitivity as the function of
spatio-temporal frequency, eccentricity, luminance and area. ACM Transactions on Graphics 41(4):145.
doi:10.1145/3528223.3530115

Examples
--------
>>> stela_csf([1.0, 4.0, 16.0], luminance=100, area=3.1416).round(1)
array([103.5, 247. ,  55.7])
"""

from __future__ import annotations

from psyprobe._typing import FloatArray
from psyprobe.human.mechanisms import AchromaticMechanism, Condition, SpatialChannel
from psyprobe.human.signature import Limits, achromatic_csf

MECHANISM = AchromaticMechanism(
    sustained=SpatialChannel(0.000219263, 0.103686, 270.0, 0.65),
    transient=SpatialChannel(1.75147, 0.000273289, 270.0, 0.65),
    sustained_sensitivity=(68.9501, 59.5023, 0.164274, 7.54866e-07, 7.77268e09),
    sustained_peak=(1.62144, 36.6565, 0.255823),
    transient_sensitivity=(0.500846, 57.3469),
    transient_peak=0.0267489,
    sustained_decay=(1.3314, 5.79336),
    transient_tuning=(0.1898, 0.12314),
    transient_centre=(0.0, 5.0),
    eccentricity=(0.0296662, 0.0113638, 0.0190062, 0.0193858),
)

LIMITS = Limits(
    "stelaCSF",
    needs=("frequency", "luminance", "area"),
    takes=("temporal_frequency", "eccentricity", "visual_field"),
    valid={"frequency": (1 / 16, 64.0), "luminance": (0.001, 10_000.0), "eccentricity": (0.0, 120.0)},
    source="Mantiuk, Ashraf, Chapiro (2022), ACM Transactions on Graphics 41(4):145",
)


@achromatic_csf(LIMITS)
def stela_csf(**condition: FloatArray) -> FloatArray:
    """Achromatic sensitivity of the human eye by stelaCSF (Mantiuk et al. 2022).

    Call and errors as in `castle_csf`; frequency, luminance and area are needed. The default visual field is that of
    castleCSF, so that changing the model does not change the place; the authors' code has 0 (temporal) here.
    """
    return MECHANISM.sensitivity(Condition(**condition))
