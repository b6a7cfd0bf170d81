"""How an image gets to an observer that takes 8-bit files, and how much of its contrast arrives.

Rounding to 8 bits changes faint patterns: two neighbouring codes are 0.8 % of contrast apart from
their mean at mid-grey, and below that a pattern vanishes or turns into one of fixed contrast,
according to where its mean falls between two codes. Dither before rounding, ``floor(v + U)`` with U
uniform in [0, 1) for every pixel and channel, keeps the contrast at every level in return for white
noise of about half a code ("rpdf"; "tpdf" has just half a code at every level). Resizing, JPEG and
a model's own input stage change it again, so contrast is measured on what arrives.

The noise of a trial depends on its level and repeat, not on its contrast or its prompt: the
contrasts of a ladder share their pattern, and all prompts their images. Seeds are derived from what
they belong to, so no order of asking can change an image.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import encode_png
from psyprobe.files.output import digest
from psyprobe.light.codes import DITHERS, check_room
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import eight_bit
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.differences import PERIOD, apply_change
from psyprobe.probes.displayed_images import show, spread
from psyprobe.stimulus import Specification, Uniform
from psyprobe.stimulus.specification import level_of, with_levels

#: Of images that a page draws by itself from their specifications, frame by frame.
PAGE_DITHERS = ("golden", "noisy_bit", "wide")

#: Share of the asked contrast that must arrive.
GAIN_LIMITS = (0.9, 1.1)

#: Highest frequency, as a share of the Nyquist frequency of what arrives.
NYQUIST_SHARE = 0.9


@dataclass(frozen=True)
class Delivery:
    """In which form images are handed over.

    Parameters
    ----------
    bits : {8, None}
        Bits a channel; None hands over floats as they are, for local models that take them.
    dither : {"rpdf", "tpdf", "none"}
        Noise before rounding, as in `psyprobe.light.codes.to_codes`. Of a page, one of
        `PAGE_DITHERS`.
    format : {"png", "page"}
        File format: lossless. JPEG takes most of a faint pattern away. "page": no file, the
        observer's page draws.

    Raises
    ------
    InputError
        On any other value.

    Examples
    --------
    >>> Delivery(format="jpeg")
    Traceback (most recent call last):
        ...
    psyprobe.errors.InputError: image format is 'jpeg'; only png is lossless: JPEG takes most of a faint pattern away
    """

    bits: int | None = 8
    dither: str = "rpdf"
    format: str = "png"

    def __post_init__(self) -> None:
        if self.bits not in (8, None) or isinstance(self.bits, bool):
            raise InputError(
                f"bits is {self.bits!r}; give 8, or None for floats that are not rounded"
            )
        known = PAGE_DITHERS if self.format == "page" else DITHERS
        if self.dither not in known:
            raise unknown_name("dither", str(self.dither), known)
        if self.format not in ("png", "page"):
            raise InputError(
                f"image format is {self.format!r}; only png is lossless: JPEG takes most of a "
                "faint pattern away"
            )


@dataclass(frozen=True)
class Delivered:
    """What arrived of the contrast that was asked for.

    Attributes
    ----------
    contrast : float
        Contrast of the asked pattern in what arrived, in the kind of contrast in which it was
        asked.
    coherent_gain : float
        That over what was asked: 1 is faithful. NaN where nothing was asked, on a catch trial.
    total_contrast : float
        ``sqrt(2) * SD / mean`` of the light, dither noise and all else included.
    nyquist : float
        Highest frequency that the pixels of what arrived can hold, cpd.
    """

    contrast: float
    coherent_gain: float
    total_contrast: float
    nyquist: float


def deliver(
    drive: FloatArray, delivery: Delivery = Delivery(), seed: int | Sequence[int] = 0
) -> FloatArray:
    """Images in the form in which they are handed over.

    Parameters
    ----------
    drive : array, shape (..., H, W, 3)
        Display drive in [0, 1].
    delivery : Delivery
        The form.
    seed : int or array of int
        Of the dither of each image, broadcast over the leading dimensions; the same seed is the
        same noise.

    Returns
    -------
    ndarray of float32, shape (..., H, W, 3)
        Values k/255 where 8 bits are handed over.

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
            "0 to 1: show it on a "
            "display that is not of extended range"
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
    """A delivered image as the bytes of a PNG file: lossless, 8 bits, RGB.

    Parameters
    ----------
    drive : array, shape (H, W, 3)
        Values k/255, as `deliver` makes them.

    Returns
    -------
    bytes

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
    asked: Specification,
    display: Display,
    reference: Specification | None = None,
    difference: float | None = None,
) -> Delivered:
    """How much of the contrast, or of the difference, that was asked for is in an image as it
    arrived.

    The light that the image stands for is correlated with the pattern that was asked, over the same
    field in degrees: noise, of dither or other origin, averages out, and a pattern that was
    blurred, lost or put out of phase counts for what is left of it. An image of another size is
    compared with the asked pattern resampled through its spectrum.

    Parameters
    ----------
    drive : array, shape (h, w, 3), of a clip (T, h, w, 3)
        Display drive after all rounding and resizing; see `AnswerObserver.delivered`.
    asked : Specification
        One stimulus, of light modulated about a mean; a clip is correlated over all its frames.
    display : Display
        That the image was encoded for.
    reference : Specification, optional
        From which it differs; without it its background, or what masks it.
    difference : float, optional
        By how much; without it by its contrast.

    Returns
    -------
    Delivered

    Raises
    ------
    InputError
        The image has another shape than the asked field.

    Examples
    --------
    >>> from psyprobe.stimulus import AnnulusNoise
    >>> display, spec = Display(peak=200), AnnulusNoise(frequency=4, contrast=0.01)
    >>> sent = deliver(display.encode(spec.draw()), seed=1)
    >>> round(delivered_contrast(sent, spec, display).coherent_gain, 2)
    1.0
    """
    values = np.asarray(drive, dtype=np.float64)
    if asked.batch:
        raise InputError(
            f"{asked!r} stands for {math.prod(asked.batch)} images; give the one that was shown"
        )
    frames = asked.extent[:-2]
    if (
        values.ndim != len(frames) + 3
        or values.shape[: len(frames)] != frames
        or values.shape[-1] != 3
    ):
        given = (
            f"the {frames[0]} frames of one clip, ({frames[0]}, h, w, 3)"
            if frames
            else "one image, (h, w, 3)"
        )
        raise InputError(f"the delivered image has shape {values.shape}; give {given}")
    height, width = values.shape[-3:-1]
    if abs(height * asked.shape[1] - width * asked.shape[0]) > max(asked.shape):
        raise InputError(
            f"the delivered image has {height} x {width} px, the asked field {asked.shape[0]} x "
            f"{asked.shape[1]}: it "
            "was cropped or stretched, and its pixels have no size in degrees; draw the "
            "stimulus in that shape"
        )
    light = display.luminance(values)
    found = np.asarray(light / light.mean() - 1)
    total = float(np.sqrt(2) * found.std())
    nyquist = min(height / asked.field[0], width / asked.field[1]) / 2
    contrast = difference
    if contrast is None:
        contrast = float(asked.value("contrast")) if "contrast" in asked.levels() else 0.0
    if contrast == 0:
        return Delivered(0.0, math.nan, total, nyquist)
    wanted = _modulation(asked)
    reference = asked.reference() if reference is None else reference
    if not isinstance(reference, Uniform):
        # Of a target on a mask only what the mask does not show counts.
        behind = _modulation(reference)
        found = found - _resampled(behind, (height, width))
        wanted = wanted - behind
    energy = float(np.mean(wanted**2))
    if energy < 1e-20:
        gain = _gain_in_colour(values, asked, reference, display)
    else:
        gain = float(np.mean(found * _resampled(wanted, (height, width)))) / energy
    return Delivered(gain * contrast, gain, total, nyquist)


def _modulation(asked: Specification) -> FloatArray:
    """Luminance of a stimulus about its mean, as a fraction of it."""
    light: FloatArray = np.asarray(asked.draw().luminance, dtype=np.float64)
    return np.asarray(light / light.mean() - 1)


def _gain_in_colour(
    drive: FloatArray, asked: Specification, reference: Specification, display: Display
) -> float:
    """As the gain in luminance, of a pattern that has colour alone: in the light of the display's
    three primaries.
    """
    found = display.decode(drive)
    wanted = np.asarray(display.decode(display.encode(asked.draw())), dtype=np.float64)
    behind = np.asarray(display.decode(display.encode(reference.draw())), dtype=np.float64)
    pattern = wanted - behind
    shape = found.shape[-3:-1]
    shown = found - np.stack([_resampled(behind[..., c], shape) for c in range(3)], axis=-1)
    expected = np.stack([_resampled(pattern[..., c], shape) for c in range(3)], axis=-1)
    return float(np.sum(shown * expected) / np.sum(expected**2))


def refused(delivered: Delivered | Sequence[Delivered], frequency: float) -> str | None:
    """Why a level cannot be shown faithfully, or None where it can.

    Parameters
    ----------
    delivered : Delivered or sequence of Delivered
        What arrived of the images of one level; their mean gain decides, since dither scatters that
        of one faint image. Catch trials have no gain, and always pass.
    frequency : float
        Of the pattern, cpd.

    Returns
    -------
    str or None
        One clause: what is wrong, by how much, and the remedy.

    Examples
    --------
    >>> refused(Delivered(0.1, 1.0, 0.1, 32.0), frequency=4) is None
    True
    >>> refused(Delivered(0.1, 1.0, 0.1, 28.0), frequency=30)
    '30 cpd is above 0.9 of the 28 cpd that the pixels the observer gets can hold; ask up to 25.2 cpd'
    """
    group = [delivered] if isinstance(delivered, Delivered) else list(delivered)
    shown = [each for each in group if not math.isnan(each.coherent_gain)]
    if not shown:
        return None
    nyquist = min(each.nyquist for each in shown)
    if frequency > NYQUIST_SHARE * nyquist * (1 + 1e-9):
        return (
            f"{frequency:g} cpd is above {NYQUIST_SHARE:g} of the {nyquist:g} cpd that the "
            "pixels the observer gets "
            f"can hold; ask up to {NYQUIST_SHARE * nyquist:.4g} cpd"
        )
    gain = float(np.mean([each.coherent_gain for each in shown]))
    low, high = GAIN_LIMITS
    if not low <= gain <= high:
        return (
            f"{round(gain, 3) + 0.0:g} of the asked contrast arrives, and {low:g} to {high:g} "
            "is faithful; use dither, "
            "draw at the size in pixels that the observer takes, or leave the level out"
        )
    return None


def one_bit_contrast(display: Display, luminance: float) -> float:
    """Contrast of a pattern of two neighbouring 8-bit codes: the least that exists without dither.

    Parameters
    ----------
    display : Display
        With the transfer function.
    luminance : float
        Mean, cd/m², within what the display shows.

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
    light = [float(green.decode(np.float64(drive + change))) for change in (-tiny, tiny)]
    return (light[1] - light[0]) / (2 * tiny) / luminance / 255 / 2


def _resampled(pattern: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """A pattern at another number of pixels over the same field, through its Fourier series about
    the centre.
    """
    old_shape = pattern.shape[-2:]
    if old_shape == shape:
        return pattern
    spectrum = np.fft.fft2(pattern)
    result = np.zeros((*pattern.shape[:-2], *shape), np.complex128)
    source = []
    target = []
    for old, new in zip(old_shape, shape, strict=True):
        # The coefficient at the Nyquist frequency has no partner of opposite sign: it is left out.
        most = (min(old, new) - 1) // 2
        cycles = np.arange(-most, most + 1)
        source.append((cycles % old, np.exp(1j * np.pi * cycles * (old - 1) / old)))
        target.append((cycles % new, np.exp(-1j * np.pi * cycles * (new - 1) / new)))
    (rows, row_phase), (columns, column_phase) = source
    kept = spectrum[..., rows[:, None], columns] * row_phase[:, None] * column_phase
    (rows, row_phase), (columns, column_phase) = target
    result[..., rows[:, None], columns] = kept * row_phase[:, None] * column_phase
    return np.asarray(np.fft.ifft2(result).real * (math.prod(shape) / math.prod(old_shape)))


#: Images whose mean gain decides about a level of which one image is off.
_JUDGED = 4


def derived_seed(*parts: Any) -> int:
    """A seed from 0 to 2**31 - 1 that depends on nothing but what it is for.

    Examples
    --------
    >>> derived_seed(0, "noise", 4.0, 1) == derived_seed(0, "noise", 4.0, 1)
    True
    """
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True)
class TrialImages:
    """The images of one trial as specifications, before they are drawn and delivered."""

    #: What is drawn, in the order in which it is shown: the pattern and, with two intervals, what
    #: it is told from.
    specs: tuple[Specification, ...]
    #: Which of them is the pattern.
    pattern: int
    #: Of each image.
    dither_seeds: tuple[int, ...]
    #: Of the pattern's noise.
    image_seed: int
    #: Of the level, in its unit, and of the pattern; 0 in a catch trial.
    value: float = 0.0
    contrast: float = 0.0
    #: Why nothing can be shown; then there are no specifications.
    refused: str = ""


@dataclass(frozen=True)
class Scene:
    """The images of an experiment for one observer; a value that another process can take."""

    #: The stimulus at the size at which the observer gets it.
    spec: Specification
    #: Name of the level besides contrast.
    level: str
    display: Display
    delivery: Delivery
    #: Whether patterns of which too little arrives are not shown.
    refuse: bool
    #: Of noise and dither.
    seed: int
    #: Images in a trial: 1, or 2 of which one is the reference.
    intervals: int
    #: Digest of the observer's card.
    observer: str
    #: Parameter and unit in which two images differ, as of [difference]; None where one of them is
    #: uniform.
    change: tuple[str, str] | None = None
    #: Of the pattern, deg, by the order; empty where the stimulus has its own.
    orientations: tuple[float, ...] = ()

    @property
    def images(self) -> int:
        """Images in a question: one a stimulus, or all frames of a clip."""
        return self.intervals * self.spec.frames

    def levels(self, value: float, contrast: float) -> dict[str, float]:
        """Return the levels of a trial by the names of what the experiment varies."""
        axis = "contrast"
        if self.change is not None:
            parameter, unit = self.change
            axis = unit if unit == PERIOD.name else parameter
        return {self.level: value, axis: contrast}

    def shown(self, value: float, contrast: float, repeat: int, order: int) -> TrialImages:
        """What a trial shows.

        Parameters
        ----------
        value : float
            Of the level, in its unit; of no effect in a catch trial.
        contrast : float
            0 in a catch trial; of two images that differ, by how much.
        repeat : int
            Which showing of the level this is.
        order : int
            With two intervals, which image is the pattern, or has more: 0 or 1; else which of the
            orientations it has.
        """
        catch = contrast == 0
        place_of_pattern = order if self.intervals == 2 else 0
        place = ["catch", repeat] if catch else [value, contrast, repeat]
        image_seed = derived_seed(self.seed, "noise", *place[:1], repeat)
        beyond = "" if catch else self._beyond(self._highest(value, contrast))
        if beyond:
            return TrialImages((), place_of_pattern, (), image_seed, refused=beyond)
        spec = self.spec
        if self.orientations:
            spec = with_levels(spec, orientation=self.orientations[order])
        if self.change is not None and self.change[1] == PERIOD.name:
            finest = {} if catch else {"frequency": 1 / contrast}
            spec = with_levels(spec, **{self.level: value}, **finest, **self._seeded(image_seed))
            blank = spec.reference()
        elif self.change is not None:
            blank = with_levels(spec, **{self.level: value}, **self._seeded(image_seed))
            parameter, unit = self.change
            spec = with_levels(
                blank, **{parameter: apply_change(unit, float(blank.value(parameter)), contrast)}
            )
        else:
            if not catch:
                spec = with_levels(
                    spec, **{self.level: value}, contrast=contrast, **self._seeded(image_seed)
                )
            blank = spec.reference()
        specs = [blank if catch else spec]
        seeds = [derived_seed(self.seed, "dither", *place)]
        if self.intervals == 2:
            specs.insert(1 - order, blank)
            seeds.insert(1 - order, derived_seed(self.seed, "dither of the uniform field", *place))
        return TrialImages(
            tuple(specs), place_of_pattern, tuple(seeds), image_seed, value, contrast
        )

    def identity(self, shown: TrialImages) -> dict[str, Any]:
        """Everything that decides what an observer gets to see, as JSON can hold it: digests of
        specs and display.
        """
        return {
            "stimuli": [spec.digest for spec in shown.specs],
            "pattern": shown.pattern,
            "image_seed": shown.image_seed,
            "dither_seeds": list(shown.dither_seeds),
            "delivery": asdict(self.delivery),
            "display": self._display,
            "observer": self.observer,
            "refused": shown.refused,
            "judged": self.refuse,
        }

    def draw(
        self, shown: TrialImages, through: Callable[[FloatArray], FloatArray]
    ) -> tuple[tuple[FloatArray, ...], dict[str, Any]]:
        """The images of a trial as an observer is sent them, and what of their contrast reaches it.

        Parameters
        ----------
        shown : TrialImages
            Of this scene.
        through : callable
            The observer's ``delivered``: what becomes of a sent image before the network.

        Returns
        -------
        images : tuple of array, each (H, W, 3)
            Display drive; of clips all frames of the first in order, then all of the second.
        measured : dict
            "delivered_contrast", "coherent_gain", "total_contrast", and "refused": why it is not to
            be shown, or "".

        Raises
        ------
        GamutError
            The display cannot show one of them.
        """
        measured: dict[str, Any] = dict.fromkeys(
            ("delivered_contrast", "coherent_gain", "total_contrast")
        )
        measured["refused"] = shown.refused
        if shown.refused:
            return (), measured
        if self.delivery.format == "page":
            # Dither in time delivers what is asked to a percent: what the screen makes of it is one
            # common error.
            return (), {**measured, "delivered_contrast": shown.contrast, "coherent_gain": 1.0}
        images, found = self._sent(shown, through)
        measured |= {"delivered_contrast": found.contrast, "total_contrast": found.total_contrast}
        if shown.contrast:
            measured |= {
                "coherent_gain": found.coherent_gain,
                "refused": self._refused(shown, found, through),
            }
        return images, measured

    def check(self, name: str, observer: str, values: tuple[float, ...], strongest: float) -> None:
        """Draw the strongest contrast of each level, or of very many that of some, before anything
        is asked.

        Parameters
        ----------
        name, observer : str
            Of the experiment and of who is asked, for messages.
        values : tuple of float
            Of the level, in its unit.
        strongest : float
            The highest contrast.

        Raises
        ------
        InputError
            The display cannot show one, or no level can be shown.
        """
        height, width = self.spec.shape
        unit = level_of(self.spec, self.level).unit
        drawn = f"drawn at {height} x {width} px for {observer}"
        all_shown = {value: self.shown(value, strongest, 0, 0) for value in spread(values)}
        if all(shown.refused for shown in all_shown.values()):
            raise InputError(f"{name}, {drawn}: {all_shown[values[0]].refused}")
        for value, shown in all_shown.items():
            try:
                for spec in shown.specs[:1]:
                    self.display.encode(spec.draw())
            except InputError as error:
                raise type(error)(
                    f"{name}, {self.level} {value:g} {unit}, contrast {strongest:g}, {drawn}: "
                    f"{error}"
                ) from error

    @cached_property
    def _display(self) -> str:
        return digest(self.display.to_dict())

    def _seeded(self, image_seed: int) -> dict[str, int]:
        seeds = [
            name
            for name in self.spec.levels()
            if name.split("_")[-1] == "seed" and name != self.level
        ]
        return {
            name: image_seed if name == "seed" else derived_seed(image_seed, name) for name in seeds
        }

    def _sent(
        self, shown: TrialImages, through: Callable[[FloatArray], FloatArray]
    ) -> tuple[tuple[FloatArray, ...], Delivered]:
        """The images of a trial, and what arrives of the contrast of the pattern."""
        stimuli = [
            self._delivered(*pair) for pair in zip(shown.specs, shown.dither_seeds, strict=True)
        ]
        images = tuple(image for each in stimuli for image in each)
        spec = shown.specs[shown.pattern]
        for image in images:
            # All prompts are asked about the same, which an observer may tell by this.
            image.setflags(write=False)
        seen = [through(image) for image in stimuli[shown.pattern]]
        sent = np.stack(seen) if spec.is_clip else seen[0]
        if self.change is None:
            return images, delivered_contrast(sent, spec, self.display)
        # Of the finest stripes the whole pattern is what differs.
        reference = None if self.change[1] == PERIOD.name else shown.specs[1 - shown.pattern]
        return images, delivered_contrast(sent, spec, self.display, reference, shown.contrast)

    def _delivered(self, spec: Specification, seed: int) -> tuple[FloatArray, ...]:
        """One image, or each frame of a clip with dither of its own."""
        if not spec.is_clip:
            return (deliver(show([spec], self.display).drive.rgb[0], self.delivery, seed),)
        seeds = [derived_seed(seed, "frame", frame) for frame in range(spec.frames)]
        return tuple(deliver(self.display.encode(spec.draw()), self.delivery, seeds))

    def _highest(self, value: float, contrast: float) -> float:
        """The highest frequency of a trial, cpd."""
        frequency = value if self.level == "frequency" else _frequency(self.spec)
        if self.change == ("frequency", PERIOD.name):
            return 1 / contrast
        if self.change is not None and self.change[0] == "frequency":
            return apply_change(self.change[1], frequency, contrast)
        return frequency

    def _refused(
        self, shown: TrialImages, found: Delivered, through: Callable[[FloatArray], FloatArray]
    ) -> str:
        """Why a pattern is not to be shown; "" where it is."""
        frequency = _frequency(shown.specs[shown.pattern])
        if not self.refuse or refused(found, frequency) is None:
            return ""
        # Dither scatters the gain of one faint image, so the level is judged by several.
        others = (self.shown(shown.value, shown.contrast, i, shown.pattern) for i in range(_JUDGED))
        return refused([self._sent(other, through)[1] for other in others], frequency) or ""

    def _beyond(self, frequency: float) -> str:
        """Why a frequency cannot be shown at this resolution; "" where it can."""
        nyquist = self.spec.ppd / 2
        if not self.refuse and frequency <= nyquist:
            return ""
        return (
            refused(
                Delivered(contrast=1.0, coherent_gain=1.0, total_contrast=1.0, nyquist=nyquist),
                frequency,
            )
            or ""
        )


def _frequency(spec: Any) -> float:
    """Of a pattern, cpd; 0 of one that has none."""
    return float(spec.value("frequency")) if "frequency" in spec.levels() else 0.0
