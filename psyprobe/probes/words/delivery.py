"""Deliver images to an observer as 8-bit files, and measure how much of their contrast arrives.

Rounding to 8 bits changes faint patterns: two neighbouring codes are 0.8 % of contrast apart from
their mean at mid-grey, and below that a pattern vanishes or turns into one of fixed contrast,
according to where its mean falls between two codes. Dither before rounding, ``floor(v + U)`` with U
uniform in [0, 1) for every pixel and channel, keeps the contrast at every level in return for white
noise of about half a code ("rpdf"; "tpdf" has just half a code at every level). Resizing, JPEG and
a model's own input stage change it again, so contrast is measured on what arrives.

The noise of a pattern or mask depends on the trial's level and repeat, not on its contrast or its
prompt: the contrasts of a ladder share their pattern, and all prompts their images. Noise of a
stated density is fresh in every image: its seed depends on contrast, order and interval too. Seeds
are derived from the trial that they belong to, so the order of questions cannot change an image.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray, IntArray, Size
from psyprobe.errors import GamutError, InputError, check_known
from psyprobe.files.images import encode_png
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import digest
from psyprobe.light.codes import DITHERS, check_room
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import eight_bit
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.differences import apply_change
from psyprobe.running.task import CONTRAST_AXIS, StimulusAxis
from psyprobe.stimulus import (
    Backend,
    Specification,
    Stimulus,
    Sum,
    Uniform,
    WhiteNoise,
)
from psyprobe.stimulus.kinds.white_noise import LARGEST_DEVIATION
from psyprobe.stimulus.specification import with_levels

#: Dithers of images that a page draws itself from their specifications, frame by frame.
PAGE_DITHERS = ("golden", "noisy_bit", "wide")

#: Turns an image as it was sent into the input of an observer's network.
Transform: TypeAlias = Callable[[FloatArray], FloatArray]

#: Share of the asked contrast that must arrive.
GAIN_LIMITS = (0.9, 1.1)

#: Highest frequency, as a share of the Nyquist frequency of what arrives.
NYQUIST_SHARE = 0.9


@dataclass(frozen=True)
class Delivery:
    """The form in which images are delivered to an observer.

    Parameters
    ----------
    bits : {8, None}
        Bits per channel; None delivers floats as they are, for local models that take them.
    dither : {"rpdf", "tpdf", "none"}
        Noise before rounding, as in `psyprobe.light.codes.to_codes`; for a page, one of
        `PAGE_DITHERS`.
    format : {"png", "page"}
        File format, which must be lossless: JPEG takes most of a faint pattern away. "page" stands
        for no file; the observer's page draws the image.

    Raises
    ------
    InputError
        A value is another one.

    Examples
    --------
    >>> Delivery(format="jpeg")
    Traceback (most recent call last):
        ...
    psyprobe.errors.InputError: image format is 'jpeg'; only png is lossless: JPEG takes
    most of a faint pattern away
    """

    bits: int | None = 8
    dither: str = "rpdf"
    format: str = "png"

    def __post_init__(self) -> None:
        if self.bits not in (8, None) or isinstance(self.bits, bool):
            raise InputError(
                f"bits is {self.bits!r}; give 8, or None for floats that are not rounded"
            )
        dithers = PAGE_DITHERS if self.format == "page" else DITHERS
        check_known("dither", [self.dither], dithers)
        if self.format not in ("png", "page"):
            raise InputError(
                f"image format is {self.format!r}; only png is lossless: JPEG takes most of a "
                "faint pattern away"
            )


@dataclass(frozen=True)
class Delivered:
    """The contrast of a pattern in an image as it arrived at an observer.

    Attributes
    ----------
    contrast : float
        Contrast of the pattern in the image that arrived, of the kind of the requested contrast.
    coherent_gain : float
        This contrast over the requested one: 1 is faithful. NaN on a catch trial.
    total_contrast : float
        ``sqrt(2) * SD / mean`` of the light, dither noise and all else included.
    nyquist : float
        Highest frequency that the pixels of the image that arrived can hold, cpd.
    """

    contrast: float
    coherent_gain: float
    total_contrast: float
    nyquist: float


def deliver(
    drive: FloatArray, delivery: Delivery = Delivery(), seed: int | Sequence[int] = 0
) -> FloatArray:
    """Convert drive values of images to what is sent: rounded, dithered or as they are.

    Parameters
    ----------
    drive : array, shape (..., H, W, 3)
        Display drive in [0, 1].
    delivery : Delivery
        The form.
    seed : int or array of int
        Seed of the dither of each image, broadcast over the leading dimensions; the same seed gives
        the same noise.

    Returns
    -------
    ndarray of float32, shape (..., H, W, 3)
        Values k/255 where 8 bits are delivered.

    Raises
    ------
    InputError
        A drive outside [0, 1] has no 8-bit code; one within half a code of the ends has no room for
        "tpdf" dither.

    Examples
    --------
    >>> grey = np.full((2, 2, 3), 0.5, np.float32)
    >>> np.unique(255 * deliver(grey, seed=1)).tolist()
    [127.0, 128.0]
    """
    values = np.asarray(drive)
    if delivery.bits is None:
        return np.asarray(values, dtype=np.float32)
    if values.ndim < 3 or values.shape[-1] != 3:
        raise InputError(
            f"the image has shape {values.shape}; give drive values of shape (..., H, W, 3)"
        )
    # The channels of a grey image are one plane, with noise of their own.
    planes = ImagePlanes.of(values).planes
    if not (planes.min(initial=0.0) >= 0 and planes.max(initial=0.0) <= 1):
        raise InputError(
            f"the image has drive values from {values.min():g} to {values.max():g}; 8 bits hold "
            "0 to 1: show it on a display that is not of extended range"
        )
    if delivery.dither == "tpdf":
        check_room(planes * np.float64(255), 8)
    delivered = np.empty(values.shape, dtype=np.float32)
    seeds = np.broadcast_to(np.asarray(seed), values.shape[:-3])
    for index in np.ndindex(*seeds.shape):
        if delivery.dither == "none":
            codes = np.full(values.shape[-3:], 0.5)
        else:
            rng = np.random.default_rng(int(seeds[index]))
            codes = rng.random(values.shape[-3:])
            if delivery.dither == "tpdf":
                codes += rng.random(values.shape[-3:]) - 0.5
        # In float64: a sum rounded to float32 would carry a value that is a whole code up to the
        # next.
        steps = planes[index] * np.float64(255)
        for channel in range(3):
            codes[..., channel] += steps[..., channel % steps.shape[-1]]
        np.floor(codes, out=codes)
        np.divide(codes, 255, out=delivered[index], casting="same_kind")
    return delivered


def png_bytes(drive: FloatArray) -> bytes:
    """Encode a delivered image as a lossless 8-bit PNG.

    Parameters
    ----------
    drive : array, shape (H, W, 3)
        Values k/255, as `deliver` makes them.

    Raises
    ------
    InputError
        A value lies between two codes; see `psyprobe.observers.chat.protocol.eight_bit`.

    Examples
    --------
    >>> from psyprobe.files.images import decode_png
    >>> decode_png(png_bytes(np.full((1, 1, 3), 0.2, np.float32))).tolist()
    [[[51, 51, 51]]]
    """
    return encode_png(eight_bit(drive), noise=True)


def delivered_contrast(
    drive: FloatArray,
    stimulus: Specification,
    display: Display,
    reference: Specification | None = None,
    difference: float | None = None,
    blank_drive: FloatArray | None = None,
    drawing: Stimulus | None = None,
) -> Delivered:
    """Measure the contrast, or difference, that is left in an image as delivered.

    The light of the image is correlated with the requested pattern over the same field in degrees:
    noise, of dither or other origin, averages out, and a pattern that was blurred, lost or put out
    of phase counts for what is left of it. An image of another size is compared with the pattern
    resampled through its spectrum.

    Parameters
    ----------
    drive : array, shape (h, w, 3), of a clip (T, h, w, 3)
        Display drive after all rounding and resizing; see `AnswerObserver.delivered`.
    stimulus : Specification
        One stimulus, of light modulated about a mean; a clip is correlated over all its frames.
    display : Display
        The display that the image was encoded for.
    reference : Specification, optional
        The stimulus from which it differs; by default its background, or its mask.
    difference : float, optional
        The amount of the difference; by default its contrast.
    blank_drive : array, shape as `drive`, optional
        The reference as it arrived, where it is noise: resizing that changes the noise would
        scatter what is left of it; by default the reference as it was drawn.
    drawing : Stimulus, optional
        The stimulus as it was drawn; by default it is drawn again.

    Raises
    ------
    InputError
        The image has another shape than the stimulus.

    Examples
    --------
    >>> from psyprobe.stimulus import AnnulusNoise
    >>> display, spec = Display(peak=200), AnnulusNoise(frequency=4, contrast=0.01)
    >>> sent = deliver(display.encode(spec.draw()), seed=1)
    >>> round(delivered_contrast(sent, spec, display).coherent_gain, 2)
    1.0
    """
    values = np.asarray(drive, dtype=np.float64)
    if stimulus.batch:
        raise InputError(
            f"{stimulus!r} stands for {math.prod(stimulus.batch)} images; give the one that was "
            "shown"
        )
    frames = stimulus.extent[:-2]
    if values.ndim < 3 or values.shape[:-3] != frames or values.shape[-1] != 3:
        expected_shape = "one image, (h, w, 3)"
        if frames:
            expected_shape = (
                f"the {frames[0]} frames of one clip, ({frames[0]}, h, w, 3)"
            )
        raise InputError(
            f"the delivered image has shape {values.shape}; give {expected_shape}"
        )
    height, width = values.shape[-3:-1]
    if abs(height * stimulus.shape[1] - width * stimulus.shape[0]) > max(
        stimulus.shape
    ):
        raise InputError(
            f"the delivered image has {height} x {width} px, the asked field {stimulus.shape[0]} x "
            f"{stimulus.shape[1]}: it was cropped or stretched, and its pixels have no size in "
            "degrees; draw the stimulus in that shape"
        )
    light = display.luminance(values)
    image_modulation = np.asarray(light / light.mean() - 1)
    total = float(np.sqrt(2) * image_modulation.std())
    nyquist = min(height / stimulus.field[0], width / stimulus.field[1]) / 2
    contrast = difference
    if contrast is None and "contrast" in stimulus.levels():
        contrast = float(stimulus.value("contrast"))
    if not contrast:
        return Delivered(0.0, math.nan, total, nyquist)
    drawing = stimulus.draw() if drawing is None else drawing
    pattern_modulation = _modulation(drawing)
    reference = stimulus.reference() if reference is None else reference
    if not isinstance(reference, Uniform):
        # A target on a mask counts without its mask.
        reference_modulation = _modulation(reference.draw())
        pattern_modulation = pattern_modulation - reference_modulation
        if blank_drive is None:
            blank_modulation = _resample(reference_modulation, (height, width))
        else:
            blank_light = display.luminance(np.asarray(blank_drive, np.float64))
            blank_modulation = np.asarray(blank_light / blank_light.mean() - 1)
        image_modulation = image_modulation - blank_modulation
    energy = float(np.mean(pattern_modulation**2))
    if energy < 1e-20:
        gain = _colour_gain(values, drawing, reference.draw(), display, blank_drive)
    else:
        received_pattern = _resample(pattern_modulation, (height, width))
        gain = float(np.mean(image_modulation * received_pattern)) / energy
    return Delivered(gain * contrast, gain, total, nyquist)


def _modulation(drawing: Stimulus) -> FloatArray:
    """Compute the luminance of a stimulus about its mean, as a fraction of the mean."""
    light: FloatArray = np.asarray(drawing.luminance, dtype=np.float64)
    return np.asarray(light / light.mean() - 1)


def _colour_gain(
    drive: FloatArray,
    drawing: Stimulus,
    reference: Stimulus,
    display: Display,
    blank_drive: FloatArray | None,
) -> float:
    """Measure the delivered share of a pattern of colour alone."""

    def resample(light: FloatArray) -> FloatArray:
        return np.stack([_resample(light[..., c], shape) for c in range(3)], axis=-1)

    def light_of(drawing: Stimulus) -> FloatArray:
        return np.asarray(display.decode(display.encode(drawing)), np.float64)

    image_light = display.decode(drive)
    shape = image_light.shape[-3:-1]
    reference_light = light_of(reference)
    blank_light = (
        resample(reference_light)
        if blank_drive is None
        else display.decode(blank_drive)
    )
    difference_light = image_light - blank_light
    expected = resample(light_of(drawing) - reference_light)
    return float(np.sum(difference_light * expected) / np.sum(expected**2))


def refused(delivered: Delivered | Sequence[Delivered], frequency: float) -> str | None:
    """Describe why a level cannot be shown faithfully; None if it can.

    Parameters
    ----------
    delivered : Delivered or sequence of Delivered
        Contrasts that arrived of the images of one level; their mean gain decides, since dither
        scatters the gain of a single faint image. Catch trials have no gain, and always pass.
    frequency : float
        Frequency of the pattern, cpd.

    Returns
    -------
    str or None
        One clause: the fault, its size and the remedy.

    Examples
    --------
    >>> refused(Delivered(0.1, 1.0, 0.1, 32.0), frequency=4) is None
    True
    >>> refused(Delivered(0.1, 1.0, 0.1, 28.0), frequency=30)
    '30 cpd is above 0.9 of the 28 cpd that the pixels the observer gets can hold; ask up
    to 25.2 cpd'
    """
    images = [delivered] if isinstance(delivered, Delivered) else list(delivered)
    patterns = [pattern for pattern in images if not math.isnan(pattern.coherent_gain)]
    if not patterns:
        return None
    nyquist = min(pattern.nyquist for pattern in patterns)
    if frequency > NYQUIST_SHARE * nyquist * (1 + 1e-9):
        return (
            f"{frequency:g} cpd is above {NYQUIST_SHARE:g} of the {nyquist:g} cpd that the pixels "
            f"the observer gets can hold; ask up to {NYQUIST_SHARE * nyquist:.4g} cpd"
        )
    gain = float(np.mean([pattern.coherent_gain for pattern in patterns]))
    low, high = GAIN_LIMITS
    if not low <= gain <= high:
        return (
            f"{round(gain, 3) + 0.0:g} of the asked contrast arrives, and {low:g} to {high:g} is "
            "faithful; use dither, draw at the size in pixels that the observer takes, or leave "
            "the level out"
        )
    return None


def one_bit_contrast(display: Display, luminance: float) -> float:
    """Compute the contrast of neighbouring 8-bit codes: the smallest without dither.

    Parameters
    ----------
    display : Display
        The display, whose transfer function matters.
    luminance : float
        Mean luminance, cd/m², within the display's range.

    Returns
    -------
    float
        Michelson contrast of half a step up and down, to first order: g/(2n) for a power law with
        exponent g at code n.

    Examples
    --------
    On a display with gamma 2 at code 128 it is 1/128: without dither, no sensitivity above 128 can
    be measured.

    >>> round(one_bit_contrast(Display(peak=100, eotf=2.0), 100 * (128 / 255) ** 2), 5)
    0.00781
    """
    # Where guns differ, green stands for all: it has most of the light.
    drive = float(np.asarray(display.encode([[luminance]], dtype="float64"))[0, 0, 1])
    green = display.guns[1]
    tiny = 1e-6
    light = [
        float(green.decode(np.float64(drive + change))) for change in (-tiny, tiny)
    ]
    return (light[1] - light[0]) / (2 * tiny) / luminance / 255 / 2


def _resample(pattern: FloatArray, shape: Size) -> FloatArray:
    """Resample a pattern over the same field, through its Fourier series about the centre."""
    old_shape = pattern.shape[-2:]
    if old_shape == shape:
        return pattern
    spectrum = np.fft.fft2(pattern)
    result = np.zeros((*pattern.shape[:-2], *shape), np.complex128)
    # The coefficient at the Nyquist frequency has no partner of opposite sign and is left out.
    cycles = [
        np.arange(-highest, highest + 1)
        for highest in (np.minimum(old_shape, shape) - 1) // 2
    ]
    old_places, old_phases = _coefficients(cycles, old_shape)
    places, phases = _coefficients(cycles, shape)
    coefficients = spectrum[old_places] * old_phases[0] * old_phases[1]
    result[places] = coefficients * phases[0].conj() * phases[1].conj()
    return np.asarray(
        np.fft.ifft2(result).real * (math.prod(shape) / math.prod(old_shape))
    )


def _coefficients(
    cycles: Sequence[IntArray], shape: Size
) -> tuple[tuple[Any, ...], list[FloatArray]]:
    """Find the places of Fourier coefficients in a spectrum, and their phases."""
    places: list[Any] = [...]
    phases = []
    for grid, size in zip(np.ix_(*cycles), shape, strict=True):
        places.append(grid % size)
        phases.append(np.exp(1j * np.pi * grid * (size - 1) / size))
    return tuple(places), phases


#: How many images decide by their mean gain about a level of which one image is unfaithful.
_JUDGED_IMAGES = 4


def derived_seed(*parts: Any) -> int:
    """Derive a seed from 0 to 2**31 - 1 that depends only on its arguments.

    Examples
    --------
    >>> derived_seed(0, "noise", 4.0, 1) == derived_seed(0, "noise", 4.0, 1)
    True
    """
    return (
        int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big")
        >> 1
    )


@dataclass(frozen=True)
class TrialImages:
    """The images of one trial as specifications, before they are drawn and delivered."""

    #: Stimuli in the order in which they are shown: the pattern and, with two intervals, its
    #: reference.
    specs: tuple[Specification, ...]
    #: Index of the pattern.
    pattern: int
    #: Seed of the dither of each image.
    dither_seeds: tuple[int, ...]
    #: Seed of the pattern's noise; that of a stated density has one for each image.
    image_seed: int
    #: Value of the level, in its unit, and contrast of the pattern; 0 in a catch trial.
    value: float = 0.0
    contrast: float = 0.0
    #: Why nothing can be shown; then there are no specifications.
    refused: str = ""
    #: The reference in the same noise as the pattern; None without noise of a stated density.
    blank: Specification | None = None


@dataclass(frozen=True)
class Scene:
    """Draws the images of an experiment for one observer; it can be sent to another process."""

    #: The stimulus at the observer's input size.
    spec: Specification
    #: Name of the level other than contrast.
    level: str
    display: Display
    delivery: Delivery
    #: Whether patterns are left out if too little of them arrives.
    refuse: bool
    #: Seed of noise and dither.
    seed: int
    #: Images in a trial: 1, or 2 of which one is the reference.
    intervals: int
    #: Digest of the observer's card.
    observer: str
    #: The stimulus axis, whose value is called contrast here whatever it is.
    axis: StimulusAxis = CONTRAST_AXIS
    #: The parameter that it sets, to the value times `sign`, or to its reciprocal.
    axis_parameter: str = "contrast"
    sign: int = 1
    reciprocal: bool = False
    #: Parameter and unit in which two images differ, as in [difference]; None where one of them is
    #: uniform.
    change: tuple[str, str] | None = None
    #: Values of a parameter of the pattern in each order; empty where the stimulus has its own.
    label_values: tuple[float, ...] = ()
    label_parameter: str = "orientation"
    #: Distances up to which parameters vary at random about their values, by name.
    jitter: tuple[tuple[str, float], ...] = ()
    #: Contrast than which none is darker, where ink varies: black of a person's screen.
    darkest: float = -math.inf

    @property
    def images(self) -> int:
        """The number of images in a question: one for each stimulus, or all frames of a clip."""
        return self.intervals * self.spec.frames

    @property
    def fps(self) -> float:
        """The frames a second of clips; 0 of stills."""
        return float(self.spec.fps) if self.spec.is_clip else 0.0

    def levels(self, value: float, contrast: float) -> dict[str, float]:
        """Return a trial's levels by the names of what the experiment varies."""
        name = self.change[0] if self.change else self.axis.name
        return {self.level: value, name: contrast}

    @property
    def scales(self) -> bool:
        """Tell whether the stimulus axis scales one pattern, which keeps its form."""
        return self.axis_parameter.split("_")[-1] == "contrast"

    def axis_level(self, contrast: float) -> dict[str, float]:
        """Return the parameter, by name, that a value on the stimulus axis sets."""
        level = 1 / contrast if self.reciprocal else self.sign * contrast
        if self.axis_parameter == "contrast":
            level = max(level, self.darkest)
        return {self.axis_parameter: level}

    def plan_trial(
        self, value: float, contrast: float, repeat: int, order: int
    ) -> TrialImages:
        """Choose the stimuli and random seeds of a trial.

        Parameters
        ----------
        value : float
            Value of the level, in its unit; without effect in a catch trial.
        contrast : float
            Contrast, or the difference of two images; 0 in a catch trial.
        repeat : int
            Index of this trial among those of its level.
        order : int
            With two intervals, the index of the image with the pattern, or with more of it; else
            the index of its label, such as an orientation.
        """
        catch = contrast == 0
        pattern = order if self.intervals == 2 else 0
        key = ["catch", repeat] if catch else [value, contrast, repeat]
        image_seed = derived_seed(self.seed, "noise", *key[:1], repeat)
        refusal = "" if catch else self._frequency_refusal(value, contrast)
        if refusal:
            return TrialImages((), pattern, (), image_seed, refused=refusal)
        fields = [
            self.stimuli(
                value,
                contrast,
                image_seed,
                order,
                derived_seed(self.seed, "fresh noise", *key, order, interval),
            )
            for interval in range(self.intervals)
        ]
        spec, blank = fields[pattern]
        specs = [blank if catch else spec]
        seeds = [derived_seed(self.seed, "dither", *key)]
        if self.intervals == 2:
            specs.insert(1 - order, fields[1 - pattern][1])
            seeds.insert(
                1 - order, derived_seed(self.seed, "dither of the uniform field", *key)
            )
        return TrialImages(
            tuple(specs),
            pattern,
            tuple(seeds),
            image_seed,
            value,
            contrast,
            blank=blank if self.fresh_noise else None,
        )

    def stimuli(
        self,
        value: float,
        contrast: float,
        image_seed: int,
        order: int = 0,
        noise_seed: int | None = None,
    ) -> tuple[Specification, Specification]:
        """Build the pattern at a level and its reference, both in the same noise.

        Parameters
        ----------
        value, contrast, order
            As for `plan_trial`.
        image_seed : int
            Seed of the noise of patterns and masks.
        noise_seed : int, optional
            Seed of noise of a stated density; by default `image_seed`.
        """
        catch = contrast == 0
        spec = self.spec
        if self.label_values:
            spec = with_levels(spec, **{self.label_parameter: self.label_values[order]})
        noise_seed = image_seed if noise_seed is None else noise_seed
        fresh: dict[str, float] = {
            name: derived_seed(noise_seed, name) for name in self.fresh_noise
        }
        if self.level == "contrast":
            value = max(value, self.darkest)
        levels = {
            self.level: value,
            **self._random_seeds(image_seed),
            **fresh,
            **self._jittered(image_seed),
        }
        if self.change is None:
            levels = fresh if catch else {**levels, **self.axis_level(contrast)}
            spec = with_levels(spec, **levels)
            blank = spec.reference()
        else:
            blank = with_levels(spec, **levels)
            parameter, unit = self.change
            amount = apply_change(unit, float(blank.value(parameter)), contrast)
            spec = with_levels(blank, **{parameter: amount})
        return spec, blank

    @cached_property
    def fresh_noise(self) -> tuple[str, ...]:
        """The names of the noise seeds that differ from image to image."""
        if not isinstance(self.spec, Sum):
            return ()
        parts = zip(self.spec.part_names, self.spec.parts[1:], strict=True)
        return tuple(
            f"{name}_seed" for name, part in parts if isinstance(part, WhiteNoise)
        )

    def check_noise(self, trial: TrialImages) -> None:
        """Refuse noise whose five standard deviations would leave the display's gamut."""
        for spec in trial.specs:
            if not self.fresh_noise or not isinstance(spec, Sum):
                continue
            noise = [part for part in spec.parts if isinstance(part, WhiteNoise)]
            if any(part.direction != noise[0].direction for part in spec.parts):
                # Only a drawing tells where modulations of several directions lead.
                continue
            reach = LARGEST_DEVIATION * sum(float(part.rms) for part in noise)
            pattern = sum(
                np.asarray(part.modulation(Backend()))
                for part in spec.parts
                if part not in noise
            )
            change = np.array([np.min(pattern) - reach, np.max(pattern) + reach])
            light = spec.luminance * (1 + change)
            try:
                if spec.parts[0].in_colour:
                    cones = 1 + change[:, None] * noise[0].cone_contrast
                    lms = spec.luminance * noise[0].background_lms * cones
                    self.display.encode(lms[None], space="lms", observer=spec.observer)
                else:
                    self.display.encode(light[None])
            except GamutError:
                raise GamutError(
                    f"with noise of {reach:.3g} about it (five standard deviations at "
                    f"{spec.ppd:.4g} pixels per degree) light reaches from {light[0]:.4g} to "
                    f"{light[1]:.4g} cd/m², and the display shows {self.display.floor:.4g} to "
                    f"{self.display.ceiling:.4g} cd/m²; lower the highest contrast, or the density "
                    "of the noise"
                ) from None

    def describe(self, trial: TrialImages) -> JsonObject:
        """Describe all that determines the images of a trial, as JSON values."""
        return {
            "stimuli": [spec.digest for spec in trial.specs],
            "pattern": trial.pattern,
            "image_seed": trial.image_seed,
            "dither_seeds": list(trial.dither_seeds),
            "delivery": asdict(self.delivery),
            "display": self._display_digest,
            "observer": self.observer,
            "refused": trial.refused,
            "judged": self.refuse,
        }

    def draw(
        self, trial: TrialImages, transform: Transform
    ) -> tuple[tuple[FloatArray, ...], JsonObject]:
        """Draw the images of a trial as they are sent, and measure the contrast delivered.

        Parameters
        ----------
        trial : TrialImages
            A trial of this scene.
        transform : callable
            The observer's ``delivered``, which turns a sent image into the input of its network.

        Returns
        -------
        images : tuple of array, each (H, W, 3)
            Display drive; for clips all frames of the first in order, then all of the second.
        measured : dict
            "delivered_contrast", "coherent_gain", "total_contrast", and "refused": why the trial
            must not be shown, or "".

        Raises
        ------
        GamutError
            The display cannot show one of them.
        """
        measured: JsonObject = dict.fromkeys(
            ("delivered_contrast", "coherent_gain", "total_contrast")
        )
        measured["refused"] = trial.refused
        if trial.refused:
            return (), measured
        if self.delivery.format == "page":
            # Dither in time delivers the contrast to a percent, so errors are those of the screen.
            measured["delivered_contrast"] = trial.contrast
            measured["coherent_gain"] = 1.0
            return (), measured
        images, arrival = self._deliver_trial(trial, transform)
        measured["delivered_contrast"] = arrival.contrast
        measured["total_contrast"] = arrival.total_contrast
        if trial.contrast:
            measured["coherent_gain"] = arrival.coherent_gain
            measured["refused"] = self._refusal(trial, arrival, transform)
        return images, measured

    @cached_property
    def _display_digest(self) -> str:
        """The digest of the display."""
        return digest(self.display.to_dict())

    def _random_seeds(self, image_seed: int) -> dict[str, int]:
        """Derive each random seed of a stimulus from the seed of its image."""
        return {
            name: image_seed if name == "seed" else derived_seed(image_seed, name)
            for name in self.spec.levels()
            if name.split("_")[-1] == "seed" and name != self.level
        }

    def _jittered(self, image_seed: int) -> dict[str, float]:
        """Draw the values of parameters that vary at random from trial to trial."""
        values = {}
        for name, reach in self.jitter:
            share = derived_seed(image_seed, "jitter", name) / 2**31
            values[name] = float(self.spec.value(name)) + reach * (2 * share - 1)
        return values

    def _deliver_trial(
        self, trial: TrialImages, transform: Transform
    ) -> tuple[tuple[FloatArray, ...], Delivered]:
        """Draw and deliver the images of a trial, and measure the contrast delivered."""
        drawings = [spec.draw() for spec in trial.specs]
        stimuli = [*map(self._deliver_drawing, drawings, trial.dither_seeds)]
        images = tuple(chain.from_iterable(stimuli))
        spec = trial.specs[trial.pattern]
        for image in images:
            # Questions with other prompts share the image; an observer may rely on that.
            image.setflags(write=False)
        frames = [transform(image) for image in stimuli[trial.pattern]]
        received = np.stack(frames) if spec.is_clip else frames[0]
        if trial.blank is not None:
            # The same noise and dither, so that neither scatters what arrives of the pattern.
            dither_seed = trial.dither_seeds[trial.pattern]
            (blank_image,) = self._deliver_drawing(trial.blank.draw(), dither_seed)
            return images, delivered_contrast(
                received,
                spec,
                self.display,
                trial.blank,
                trial.contrast,
                transform(blank_image),
                drawings[trial.pattern],
            )
        # Without another stimulus beside it, the whole pattern is the difference.
        reference = None if self.change is None else trial.specs[1 - trial.pattern]
        return images, delivered_contrast(
            received,
            spec,
            self.display,
            reference,
            trial.contrast,
            drawing=drawings[trial.pattern],
        )

    def _deliver_drawing(self, drawing: Stimulus, seed: int) -> tuple[FloatArray, ...]:
        """Deliver an image, or each frame of a clip with its own dither."""
        drive = self.display.encode(drawing)
        spec = drawing.spec
        if not spec.is_clip:
            return (deliver(drive, self.delivery, seed),)
        seeds = [derived_seed(seed, "frame", frame) for frame in range(spec.frames)]
        return tuple(deliver(drive, self.delivery, seeds))

    def _refusal(
        self,
        trial: TrialImages,
        arrival: Delivered,
        transform: Transform,
    ) -> str:
        """Describe why a pattern must not be shown; "" if it may."""
        frequency = _pattern_frequency(trial.specs[trial.pattern])
        if not self.refuse or refused(arrival, frequency) is None:
            return ""
        # Dither scatters the gain of a faint image, so several images decide about the level.
        trials = (
            self.plan_trial(trial.value, trial.contrast, i, trial.pattern)
            for i in range(_JUDGED_IMAGES)
        )
        arrivals = [self._deliver_trial(other, transform)[1] for other in trials]
        return refused(arrivals, frequency) or ""

    def _frequency_refusal(self, value: float, contrast: float) -> str:
        """Describe why a trial's highest frequency cannot be shown; "" if it can."""
        frequency = (
            value if self.level == "frequency" else _pattern_frequency(self.spec)
        )
        if self.change is None:
            frequency = self.axis_level(contrast).get("frequency", frequency)
        elif self.change[0] == "frequency":
            frequency = apply_change(self.change[1], frequency, contrast)
        nyquist = self.spec.ppd / 2
        if not self.refuse and frequency <= nyquist:
            return ""
        faithful = Delivered(
            1.0, coherent_gain=1.0, total_contrast=1.0, nyquist=nyquist
        )
        return refused(faithful, frequency) or ""


def _pattern_frequency(spec: Any) -> float:
    """Return a pattern's frequency, cpd; 0 if it has none."""
    return float(spec.value("frequency")) if "frequency" in spec.levels() else 0.0
