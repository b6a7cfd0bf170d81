"""ColorVideoVDP as an observer: "cvvdp", a full-reference metric of visible differences.

References
----------
Mantiuk, Hanji, Ashraf, Asano, Chapiro (2024). ColorVideoVDP: a visual difference predictor for image, video and
display distortions. ACM Transactions on Graphics 43(4).
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.encoders.network import checked_device
from psyprobe.observers.light import check_light
from psyprobe.observers.protocol import STIMULUS_PPD, Card
from psyprobe.observers.registry import register_observer

#: Brighter than any stimulus, so that light passes the metric's own display model as it is.
_PEAK = 10_000.0
#: Images of 224 x 224 px that the metric compares at once; its pyramids take some 40 MB for each.
_AT_ONCE = 16 * 224 * 224


class ColorVideoVDP:
    """How different two still images look, by ColorVideoVDP.

    The response is 1 - JOD / 10, as in Cai et al. 2025: 0 where no difference is seen (10 JOD), 0.1 for each just
    objectionable difference. The metric gets the light that the display emits, in cd/m²; its own display model is
    set to pass it on unchanged (linear BT.709, no reflections, black at a millionth of the peak).

    Parameters
    ----------
    ppd : float, optional
        Pixels per degree that the metric is told, whatever the stimulus has: 75.4 for the published runs. Without
        it the truth.
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    """

    def __init__(self, *, ppd: float | None = None, device: str | None = None) -> None:
        if ppd is not None and not (math.isfinite(ppd) and ppd > 0):
            raise InputError(f"cvvdp: ppd is {ppd} pixels per degree and must be above 0")
        self._ppd = ppd
        self._device = checked_device("cvvdp", device)
        self._metrics: dict[tuple[int, int, float], Any] = {}
        self.card = Card(
            "cvvdp",
            "difference",
            ("difference",),
            encoding="linear light, cd/m²",
            device=str(self._device),
            weights=f"package cvvdp {version('cvvdp')}",
            licence="MIT",
            paper="Mantiuk et al. 2024, ColorVideoVDP, ACM TOG 43(4)",
            # another version of the metric is another observer
            options={"ppd": STIMULUS_PPD if ppd is None else ppd, "version": version("cvvdp")},
            software={package: version(package) for package in ("torch", "cvvdp")},
        )

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """How different each test image looks from its reference.

        1 - JOD / 10, in float64; `ppd` is not used where the observer was loaded with its own.

        Raises
        ------
        InputError
            If the shapes differ, or light is not finite, below 0 or beyond 10,000 cd/m².
        """
        import torch

        test, reference = check_light(test, reference, self.card.name)
        brightest = float(max(test.max(), reference.max()))
        if brightest > _PEAK:
            raise InputError(f"cvvdp takes light up to {_PEAK:g} cd/m² and was given {brightest:g} cd/m²")
        height, width = test.shape[1:3]
        metric = self._metric(height, width, ppd if self._ppd is None else self._ppd)
        step = max(1, _AT_ONCE // (height * width))
        quality = []
        for start in range(0, len(test), step):
            pair = (
                torch.from_numpy(np.array(np.moveaxis(each[start : start + step], -1, 1), dtype=np.float32, order="C"))
                for each in (test, reference)
            )
            with torch.inference_mode(), _quiet_about_dim_light():
                quality.append(metric.predict(*pair, dim_order="BCHW")[0].reshape(-1).cpu().numpy())
        return 1 - np.concatenate(quality) / 10

    def _metric(self, height: int, width: int, ppd: float) -> Any:
        """The metric for one size and resolution, made once."""
        key = (height, width, ppd)
        if key not in self._metrics:
            pycvvdp = _imported()

            class Exact(pycvvdp.cvvdp):  # type: ignore[misc, name-defined]
                def met2jod(self, difference: Any) -> Any:
                    # in float32, 10 JOD less a difference below 1e-6 is 10 JOD
                    return super().met2jod(difference.double())

            self._metrics[key] = Exact(
                display_photometry=pycvvdp.vvdp_display_photo_eotf(
                    Y_peak=_PEAK, contrast=1e6, source_colorspace="BT.709-linear", E_ambient=0
                ),
                display_geometry=pycvvdp.vvdp_display_geometry([width, height], ppd=ppd),
                heatmap=None,
                quiet=True,
                device=self._device,
            )
        return self._metrics[key]


@register_observer(
    "cvvdp",
    form="cvvdp",
    summary="metric: ColorVideoVDP, a predictor of visible differences",
    ability="difference",
    requires=("torch", "pycvvdp"),
    install="pip install 'psyprobe[metrics]'",
)
def load_cvvdp(name: str, *, input: str = "raw", ppd: float | None = None, device: str | None = None) -> ColorVideoVDP:
    """ColorVideoVDP; `input` is taken for uniformity, since light has no normalisation to apply or leave out."""
    return ColorVideoVDP(ppd=ppd, device=device)


@contextmanager
def _quiet_about_dim_light() -> Iterator[None]:
    """It takes any mean below 1 for light that was not scaled to cd/m²; dim backgrounds are meant here."""

    def unwanted(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("The mean color value is less than 1")

    root = logging.getLogger()
    root.addFilter(unwanted)
    try:
        yield
    finally:
        root.removeFilter(unwanted)


def _imported() -> Any:
    with warnings.catch_warnings():
        # its own source warns of invalid escapes as Python compiles it
        warnings.simplefilter("ignore")
        logger = logging.getLogger("torch.utils.cpp_extension")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            import pycvvdp
        finally:
            logger.setLevel(level)
    return pycvvdp
