"""The metric "castlecsf": how many human thresholds of contrast two images differ by, according to castleCSF.

It is the reference for sanity: built from the same contrast sensitivity function that detection is scored by, it has to
score near the attainable maximum. What it lacks shows where the protocol tests more than a sensitivity function.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5.
Legge, Foley (1980). Contrast masking in human vision. JOSA 70:1458.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.human import castle_mechanisms
from psyprobe.light.colour import cone_observer
from psyprobe.light.display import Display
from psyprobe.observers.encoders.images import is_grey_view
from psyprobe.observers.light import check_light
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import register_observer

#: LMS to achromatic, red-green and yellow-violet responses, as castleCSF's mechanisms have them.
_MECHANISMS = np.array([[1.0, 1.0, 0.0], [1.0, -2.3112, 0.0], [-1.0, -1.0, 50.9875]])
#: Threshold rises with the visible contrast of a mask to this power (Legge & Foley 1980).
_MASKING = 0.62
#: Share of the image, at each edge, over which a difference fades out: a patch that the edge cuts off would
#: otherwise spill into all frequencies.
_TAPER = 0.1
#: Widths of the bins over radial frequency in units of the lowest frequency of the image.
_BIN = 0.25
#: (∫e)² / ∫e² of e, the squared cosine under a Gaussian, is 4/3 of the area pi sigma² that castleCSF means.
_AREA = 0.75


class CastleCsf:
    """Says how far two images differ in units of the human detection threshold.

    The difference of light is split into castleCSF's three colour mechanisms and into spatial frequencies (Fourier
    energy), each divided by the light to which the eye has adapted (the mean of the reference) and weighted by its
    sensitivity there; the parts are pooled as energies. That gives d, the peak contrast over the threshold contrast.
    A pattern in the reference masks: d is divided by 1 + m^0.62, m being the mask's own contrast over threshold. The
    response is d / (1 + d): 0 for equal images, 0.5 at threshold, never quite 1.

    What it is not: there are no separate orientation or frequency channels (any mask masks any target), no phase,
    no facilitation by weak masks, no eccentricity and no time. Area is estimated from how concentrated the
    difference is, which is exact for Gabors on a uniform field; for noise it is a third of what is covered, three
    quarters times.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> spec = Gabor(frequency=4, contrast=[0, 1 / 203.41], luminance=100, size=224, ppd=60)
    >>> light = np.repeat(spec.draw().pixels[..., None], 3, axis=-1)
    >>> CastleCsf().difference(light, light[[0, 0]], ppd=60).round(1)
    array([0. , 0.5])
    """

    card = Card(
        "castlecsf",
        "difference",
        ("difference",),
        encoding="linear light, cd/m²",
        dtype="float64",
        options={"version": 1, "masking": _MASKING},
        paper="Ashraf et al. 2024, castleCSF; masking after Legge & Foley 1980",
    )

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """How different each test image looks from its reference.

        0 is equal, and 0.5 at the human threshold; the arguments are those of `DifferenceObserver`.

        Raises
        ------
        InputError
            If the shapes differ, a value is not finite, or a reference is black.
        """
        test, reference = check_light(test, reference, self.card.name)
        grey = is_grey_view(test) and is_grey_view(reference)
        planes = 1 if grey else 3
        shown, surround = (np.moveaxis(np.asarray(each[..., :planes], np.float64), -1, 1) for each in (test, reference))
        adapted = surround.mean(axis=(2, 3), keepdims=True)
        if not (adapted > 0).all():
            raise InputError(f"{self.card.name}: a reference image is black (0 cd/m²), and the eye adapts to no light")
        to_mechanisms = _rgb_to_mechanisms()
        if grey:
            to_mechanisms = to_mechanisms.sum(axis=1, keepdims=True)
        # The achromatic response L + M of the reference is what castleCSF takes contrast and luminance from.
        luminance = adapted[..., 0, 0] @ to_mechanisms[0]
        seen = _Eye(to_mechanisms, luminance, ppd)
        target = seen.visibility(shown - surround)
        masked = surround != adapted
        mask = seen.visibility(surround - adapted) if masked.any() else np.zeros(len(target))
        strength = target / (1 + mask**_MASKING)
        return strength / (1 + strength)


@register_observer(
    "castlecsf",
    form="castlecsf",
    summary="metric: contrast over human threshold, by castleCSF; the sanity reference",
    ability="difference",
)
def load_castlecsf(name: str, *, input: str = "raw") -> CastleCsf:
    """The metric; `input` is taken for uniformity, since light has no normalisation to apply or leave out."""
    return CastleCsf()


@dataclass(frozen=True)
class _Eye:
    """Human sensitivity, adapted to the light of each reference."""

    to_mechanisms: FloatArray
    luminance: FloatArray
    ppd: float

    def visibility(self, modulation: FloatArray) -> FloatArray:
        """Peak contrast over threshold contrast, (N,), of modulations of light, (N, planes, H, W)."""
        height, width = modulation.shape[2:]
        tapered = modulation * np.outer(_taper(height), _taper(width))
        contrast = np.einsum("mc,nchw->nmhw", self.to_mechanisms, tapered) / self.luminance[:, None, None, None]
        local = np.square(contrast).sum(axis=1)
        energy = local.sum(axis=(1, 2)) / self.ppd**2
        spread = np.square(local).sum(axis=(1, 2)) / self.ppd**2
        area = np.full(len(energy), height * width / self.ppd**2)
        np.divide(_AREA * energy**2, spread, out=area, where=spread > 0)
        bins, frequency, weight = _radial_bins(height, width, self.ppd)
        spectrum = np.square(np.abs(np.fft.rfft2(contrast))) * (weight / (height * width * self.ppd**2))
        # A luminance step of the whole image has no frequency: it counts as half a cycle an image.
        eye = castle_mechanisms(frequency, luminance=self.luminance[:, None], area=area[:, None])
        visible = np.zeros(len(energy))
        for mechanism, sensitivity in enumerate((eye.achromatic, eye.red_green, eye.yellow_violet)):
            rows = spectrum[:, mechanism].reshape(len(energy), -1)
            binned = np.array([np.bincount(bins, row, len(frequency)) for row in rows])
            visible += (binned * sensitivity**2).sum(axis=1)
        # The energy of a Gabor of peak contrast c and area A is c² A / 2.
        result: FloatArray = np.sqrt(2 * visible / area)
        return result


@functools.cache
def _rgb_to_mechanisms() -> FloatArray:
    matrix = _MECHANISMS @ cone_observer("cie2006_led_lcd").from_xyz @ Display().rgb_to_xyz
    # castleCSF's cones are scaled so that L + M is luminance; of this observer's white it is 1.051 times as much.
    scaled: FloatArray = matrix / matrix[0].sum()
    return scaled


def _taper(count: int) -> FloatArray:
    """1 inside, falling to 0 as a raised cosine at both ends."""
    inside = np.minimum(np.arange(count) + 0.5, count - np.arange(count) - 0.5) / (_TAPER * count)
    rising: FloatArray = 0.5 - 0.5 * np.cos(np.pi * np.minimum(inside, 1.0))
    return rising


@functools.lru_cache(maxsize=8)
def _radial_bins(height: int, width: int, ppd: float) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """Bin of each coefficient of ``rfft2``, mean frequency (cpd) of each bin, and how often each coefficient counts."""
    across = np.fft.rfftfreq(width) * ppd
    radius = np.hypot(np.fft.fftfreq(height)[:, None] * ppd, across)
    lowest = ppd / max(height, width)
    _, bins = np.unique(np.round(radius / (_BIN * lowest)), return_inverse=True)
    bins = bins.reshape(-1)
    frequency = np.bincount(bins, radius.ravel()) / np.bincount(bins)
    frequency[0] = lowest / 2
    # The other half of the spectrum is the mirror image of this one, but for its first and its Nyquist column.
    weight = np.where((across == 0) | (across == ppd / 2), 1.0, 2.0)
    return bins, frequency, np.broadcast_to(weight, radius.shape)
