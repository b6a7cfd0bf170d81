"""Measure how far two images differ: "castlecsf", in human thresholds, and "cvvdp", ColorVideoVDP.

The first is a sanity check: built from the same contrast sensitivity function by which detection is
scored, it has to score near the attainable maximum. Where it does not, the protocol tests more than
a sensitivity function.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5. Legge, Foley (1980).
Contrast masking in human vision. JOSA 70:1458. Mantiuk, Hanji, Ashraf, Asano, Chapiro (2024).
ColorVideoVDP: a visual difference predictor for image, video and display distortions. ACM
Transactions on Graphics 43(4).
"""

from __future__ import annotations

import functools
import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.human import castle_mechanisms
from psyprobe.light.colour import cone_observer
from psyprobe.light.display import Display
from psyprobe.observers.encoders.network import checked_device
from psyprobe.observers.images import check_light
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import STIMULUS_PPD, Card, Clips

#: From LMS to the achromatic, red-green and yellow-violet responses of castleCSF's mechanisms.
_MECHANISMS = np.array([[1.0, 1.0, 0.0], [1.0, -2.3112, 0.0], [-1.0, -1.0, 50.9875]])
#: Threshold rises with the visible contrast of a mask to this power (Legge & Foley 1980).
_MASKING = 0.62
#: Share of the image, at each edge, over which a difference fades out: a patch that the edge cuts
#: off would otherwise spill into all frequencies.
_TAPER = 0.1
#: Widths of the bins over radial frequency in units of the lowest frequency of the image.
_BIN = 0.25
#: (∫e)² / ∫e² of e, the squared cosine under a Gaussian, is 4/3 of the area pi sigma² that
#: castleCSF means.
_AREA = 0.75
#: Brighter than any stimulus, so that light passes the metric's own display model as it is.
_PEAK = 10_000.0
#: Pixels that the metric compares at once; its pyramids take some 40 MB for an image of 224 x 224.
_AT_ONCE = 16 * 224 * 224


class CastleCsf:
    """A metric of how far two images differ, in units of the human detection threshold.

    The difference of light is split into castleCSF's three colour mechanisms and into spatial
    frequencies (Fourier energy), each divided by the light to which the eye has adapted (the mean
    of the reference) and weighted by its sensitivity there; the parts are pooled as energies. That
    gives d, the peak contrast over the threshold contrast. A pattern in the reference masks: d is
    divided by 1 + m^0.62, m being the mask's own contrast over threshold. The response is d / (1 +
    d): 0 for equal images, 0.5 at threshold, never quite 1.

    It has no separate orientation or frequency channels (any mask masks any target), no phase, no
    facilitation by weak masks, no eccentricity and no time. Area is estimated from how concentrated
    the difference is, on the light between the pixels too, which is exact for Gabors on a uniform
    field, of any frequency, phase and orientation. For noise it is a third of the covered area,
    times three quarters. For a grating that fills the image it is half of it: at threshold, in
    an image of 3.2 deg, the response is 0.49 at 1 cpd and 0.57 at 16 cpd.

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
        options={"version": 2, "masking": _MASKING},
        paper="Ashraf et al. 2024, castleCSF; masking after Legge & Foley 1980",
    )

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Compute how different each test image looks from its reference, shape (N,).

        0 is equal, and 0.5 at the human threshold; the arguments are those of `DifferenceObserver`.

        Raises
        ------
        InputError
            If the shapes differ, a value is not finite, or a reference is black.
        """
        test, reference = check_light(test, reference, self.card.name)
        images = [ImagePlanes.of(test), ImagePlanes.of(reference)]
        grey = all(batch.is_grey for batch in images)
        channels = (batch.planes if grey else batch.rgb for batch in images)
        test_light, reference_light = (
            np.moveaxis(np.asarray(batch, np.float64), -1, 1) for batch in channels
        )
        mean_light = reference_light.mean(axis=(2, 3), keepdims=True)
        if not (mean_light > 0).all():
            raise InputError(
                f"{self.card.name}: a reference image is black (0 cd/m²), and the eye adapts to "
                "no light"
            )
        to_mechanisms = _rgb_to_mechanisms()
        if grey:
            to_mechanisms = to_mechanisms.sum(axis=1, keepdims=True)
        # castleCSF takes contrast and luminance from the reference's achromatic response, L + M.
        luminance = mean_light[..., 0, 0] @ to_mechanisms[0]
        target = _visibility(
            test_light - reference_light, to_mechanisms, luminance, ppd
        )
        mask: FloatArray = np.zeros(len(target))
        pattern = reference_light - mean_light
        if pattern.any():
            mask = _visibility(pattern, to_mechanisms, luminance, ppd)
        strength: FloatArray = target / (1 + mask**_MASKING)
        return strength / (1 + strength)


def load_castlecsf(name: str, *, input: str = "raw") -> CastleCsf:
    """Load the image metric that weights differences by castleCSF."""
    return CastleCsf()


def _visibility(
    modulation: FloatArray, to_mechanisms: FloatArray, luminance: FloatArray, ppd: float
) -> FloatArray:
    """Compute peak contrast over threshold contrast, (N,), for an eye adapted to a luminance.

    `modulation` is light, (N, planes, H, W), less its mean.
    """
    height, width = modulation.shape[2:]
    tapered = modulation * np.outer(_taper(height), _taper(width))
    contrast = (
        np.einsum("mc,nchw->nmhw", to_mechanisms, tapered)
        / luminance[:, None, None, None]
    )
    amplitudes = np.fft.rfft2(contrast)
    energy = np.square(contrast).sum(axis=(1, 2, 3)) / ppd**2
    spread = _squared_energy(contrast, amplitudes) / ppd**2
    area = np.full(len(energy), height * width / ppd**2)
    np.divide(_AREA * energy**2, spread, out=area, where=spread > 0)
    bins, frequency, weight = _radial_bins(height, width, ppd)
    spectrum = np.square(np.abs(amplitudes)) * (weight / (height * width * ppd**2))
    # A luminance step of the whole image has no frequency: it counts as half a cycle an image.
    eye = castle_mechanisms(frequency, luminance=luminance[:, None], area=area[:, None])
    visible = np.zeros(len(energy))
    for mechanism, sensitivity in enumerate(
        (eye.achromatic, eye.red_green, eye.yellow_violet)
    ):
        rows = spectrum[:, mechanism].reshape(len(energy), -1)
        binned = np.array([np.bincount(bins, row, len(frequency)) for row in rows])
        visible += (binned * sensitivity**2).sum(axis=1)
    # The energy of a Gabor of peak contrast c and area A is c² A / 2.
    return np.asarray(np.sqrt(2 * visible / area))


def _squared_energy(
    contrast: FloatArray, amplitudes: npt.NDArray[np.complex128]
) -> FloatArray:
    """Sum each image's squared local energy, (N,), over pixels and points between.

    Squared energy has four times the frequency of the grating, so that at 4 pixels a cycle the sum
    over pixels alone depends on the phase. With the points between it is exact up to the Nyquist
    frequency.

    Parameters
    ----------
    contrast : ndarray, shape (N, mechanisms, H, W)
        Of the pixels.
    amplitudes : ndarray
        Its ``rfft2``.
    """
    height, width = contrast.shape[2:]
    half_down = np.exp(1j * np.pi * np.fft.fftfreq(height))[:, None]
    half_right = np.exp(1j * np.pi * np.fft.rfftfreq(width))
    total: FloatArray = np.square(np.square(contrast).sum(axis=1)).sum(axis=(1, 2))
    for shift in (half_down, half_right, half_down * half_right):
        between = np.fft.irfft2(amplitudes * shift, s=(height, width))
        total = total + np.square(np.square(between).sum(axis=1)).sum(axis=(1, 2))
    return total / 4


@functools.cache
def _rgb_to_mechanisms() -> FloatArray:
    """Compute the matrix from linear RGB to achromatic and colour-opponent responses."""
    matrix = (
        _MECHANISMS @ cone_observer("cie2006_led_lcd").from_xyz @ Display().rgb_to_xyz
    )
    # castleCSF's cones are scaled so that L + M is luminance; of this observer's white it is 1.051
    # times as much.
    return np.asarray(matrix / matrix[0].sum())


def _taper(count: int) -> FloatArray:
    """Build a window that is 1 inside and falls to 0 as a raised cosine at both ends."""
    inside = np.minimum(np.arange(count) + 0.5, count - np.arange(count) - 0.5) / (
        _TAPER * count
    )
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.minimum(inside, 1.0)))


@functools.lru_cache(maxsize=8)
def _radial_bins(
    height: int, width: int, ppd: float
) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """Assign the coefficients of `rfft2` to bins of radial frequency.

    Returns the bin of each coefficient, the mean frequency (cpd) of each bin, and how often each
    coefficient counts.
    """
    across = np.fft.rfftfreq(width) * ppd
    radius = np.hypot(np.fft.fftfreq(height)[:, None] * ppd, across)
    lowest = ppd / max(height, width)
    _, bins = np.unique(np.round(radius / (_BIN * lowest)), return_inverse=True)
    bins = bins.reshape(-1)
    frequency = np.bincount(bins, radius.ravel()) / np.bincount(bins)
    frequency[0] = lowest / 2
    # The other half of the spectrum is the mirror image of this one, but for its first and its
    # Nyquist column.
    weight = np.where((across == 0) | (across == ppd / 2), 1.0, 2.0)
    return bins, frequency, np.broadcast_to(weight, radius.shape)


class ColorVideoVDP:
    """A metric of how different two images or clips look, ColorVideoVDP.

    The response is 1 - JOD / 10, as in Cai et al. 2025: 0 where no difference is seen (10 JOD), 0.1
    for each just objectionable difference. The metric gets the light that the display emits, in
    cd/m²; its own display model is set to pass it on unchanged (linear BT.709, no reflections,
    black at a millionth of the peak).

    Parameters
    ----------
    ppd : float, optional
        Pixels per degree for the metric: 75.4 for the published runs; by default the stimulus' own.
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    """

    def __init__(self, *, ppd: float | None = None, device: str | None = None) -> None:
        if ppd is not None and not (math.isfinite(ppd) and ppd > 0):
            raise InputError(
                f"cvvdp: ppd is {ppd} pixels per degree and must be above 0"
            )
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
            options={
                "ppd": STIMULUS_PPD if ppd is None else ppd,
                "version": version("cvvdp"),
            },
            software={package: version(package) for package in ("torch", "cvvdp")},
            clips=True,
        )

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Compute how different each test image looks from its reference, shape (N,).

        1 - JOD / 10, in float64; `ppd` is not used where the observer was loaded with its own.

        Raises
        ------
        InputError
            If the shapes differ, or light is not finite, below 0 or beyond 10,000 cd/m².
        """
        import torch

        test, reference = check_light(test, reference, self.card.name)
        height, width = test.shape[1:3]
        metric = self._metric(height, width, ppd if self._ppd is None else self._ppd)
        step = max(1, _AT_ONCE // (height * width))
        quality = []
        for start in range(0, len(test), step):
            pair = (
                _channels_first(light[start : start + step])
                for light in (test, reference)
            )
            with torch.inference_mode(), _quiet_about_dim_light():
                quality.append(
                    metric.predict(*pair, dim_order="BCHW")[0].reshape(-1).cpu().numpy()
                )
        return 1 - np.concatenate(quality) / 10

    def clip_difference(
        self, test: Clips, reference: Clips, *, ppd: float
    ) -> FloatArray:
        """Compute how different each test clip looks from its reference, shape (N,).

        The metric asks for frames one by one. It filters 0.25 s of the past, and repeats the first
        frame before the beginning; so it rates a clip of still light differently from the image.

        Raises
        ------
        InputError
            If light is beyond 10,000 cd/m².
        """
        import torch

        count, frames, height, width, _ = test.shape
        if frames == 1:
            return self.difference(
                test.frames(0, 1)[:, 0], reference.frames(0, 1)[:, 0], ppd=ppd
            )
        metric = self._metric(height, width, ppd if self._ppd is None else self._ppd)
        source = _clip_source(test, reference, metric.display_photometry)
        with torch.inference_mode(), _quiet_about_dim_light():
            quality = metric.predict_video_source(source)[0].reshape(-1).cpu().numpy()
        return np.asarray(1 - np.broadcast_to(quality, (count,)) / 10)

    def _metric(self, height: int, width: int, ppd: float) -> Any:
        """Build the metric for an image size and resolution, once."""
        key = (height, width, ppd)
        if key not in self._metrics:
            pycvvdp = _import_cvvdp()

            class Exact(pycvvdp.cvvdp):  # type: ignore[misc, name-defined]
                def met2jod(self, difference: Any) -> Any:
                    # in float32, 10 JOD less a difference below 1e-6 is 10 JOD
                    return super().met2jod(difference.double())

            self._metrics[key] = Exact(
                display_photometry=pycvvdp.vvdp_display_photo_eotf(
                    Y_peak=_PEAK,
                    contrast=1e6,
                    source_colorspace="BT.709-linear",
                    E_ambient=0,
                ),
                display_geometry=pycvvdp.vvdp_display_geometry(
                    [width, height], ppd=ppd
                ),
                heatmap=None,
                quiet=True,
                device=self._device,
            )
        return self._metrics[key]


def load_cvvdp(
    name: str,
    *,
    input: str = "raw",
    ppd: float | None = None,
    device: str | None = None,
) -> ColorVideoVDP:
    """Load the image and video metric ColorVideoVDP."""
    return ColorVideoVDP(ppd=ppd, device=device)


@contextmanager
def _quiet_about_dim_light() -> Iterator[None]:
    """Silence the metric's needless warning about light with a mean below 1 cd/m²."""

    def is_other(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("The mean color value is less than 1")

    root = logging.getLogger()
    root.addFilter(is_other)
    try:
        yield
    finally:
        root.removeFilter(is_other)


def _channels_first(light: Array) -> Any:
    """Convert images (N, H, W, 3) to a float32 tensor (N, 3, H, W), refusing light above peak."""
    import torch

    if (brightest := float(light.max())) > _PEAK:
        raise InputError(
            f"cvvdp takes light up to {_PEAK:g} cd/m² and was given {brightest:g} cd/m²"
        )
    return torch.from_numpy(
        np.array(np.moveaxis(light, -1, 1), dtype=np.float32, order="C")
    )


def _clip_source(test: Clips, reference: Clips, photometry: Any) -> Any:
    """Wrap clips as a video that the metric reads frame by frame."""

    class Source(_import_cvvdp().video_source.video_source_dm):  # type: ignore[misc]
        def get_video_size(self) -> tuple[int, int, int]:
            _, frames, height, width, _ = test.shape
            return height, width, frames

        def get_frames_per_second(self) -> float:
            return test.fps

        def get_batch_size(self) -> int:
            return test.shape[0]

        def get_test_frame(self, frame: int, device: Any, colorspace: str) -> Any:
            return self._frame(test, frame, device, colorspace)

        def get_reference_frame(self, frame: int, device: Any, colorspace: str) -> Any:
            return self._frame(reference, frame, device, colorspace)

        def _frame(self, clips: Clips, frame: int, device: Any, colorspace: str) -> Any:
            light = _channels_first(clips.frames(frame, frame + 1))
            return self.apply_dm_and_color_transform(light.to(device), colorspace)

    return Source(display_photometry=photometry)


def _import_cvvdp() -> Any:
    """Import pycvvdp without its warnings and log lines."""
    with warnings.catch_warnings():
        # Python warns of invalid escapes in its source when it compiles it.
        warnings.simplefilter("ignore")
        logger = logging.getLogger("torch.utils.cpp_extension")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            import pycvvdp
        finally:
            logger.setLevel(level)
    return pycvvdp
