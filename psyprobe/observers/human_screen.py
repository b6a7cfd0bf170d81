"""The screen in front of a human observer, and what its errors cost.

It belongs to the core because stored answers of people are scored with it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, WhiteNoise
from psyprobe.stimulus.specification import with_levels

#: How a page sends contrasts finer than 8 bits. golden: one number a pixel, moved by the golden
#: ratio from frame to frame; noisy_bit: a fresh one each frame (Allard & Faubert 2008); wide: as
#: golden, over eight codes, so that errors of single steps of the panel average out.
Dither = Literal["golden", "noisy_bit", "wide"]


def threshold_error(
    assumed: Display, true: Display, mean: float, contrast: float | FloatArray
) -> tuple[float, FloatArray]:
    """Compute a screen's true mean, cd/m², and log10 of true over requested contrast.

    By so much a person's true threshold lies above the one reported.

    Parameters
    ----------
    assumed, true : Display
        What stimuli are drawn for, and what the screen is.
    mean : float
        Requested, cd/m².
    contrast : float or array
        Requested, Michelson.

    Raises
    ------
    GamutError
        If the assumed display cannot show the contrast.

    Examples
    --------
    >>> from psyprobe import Display
    >>> mean, error = threshold_error(Display(peak=200), Display(peak=200, eotf=2.2), 40, 0.1)
    >>> round(mean, 1), round(float(error), 3)
    (40.6, 0.009)
    """
    contrast = np.asarray(contrast, dtype=np.float64)
    ends = mean * np.stack(
        [1 - contrast, np.ones_like(contrast), 1 + contrast]
    ).reshape(3, -1)
    low, middle, high = true.decode(assumed.encode(ends, dtype="float64")[..., 0])
    true_contrast = ((high - low) / (high + low)).reshape(contrast.shape)
    return float(middle[0]), np.log10(true_contrast / contrast)


#: Fewest device pixels in a period of upright or lying stripes: fewer blur them by more than 0.08
#: log10.
LEAST_PIXELS = 3
#: Fewest device pixels in a stroke of a letter, a fifth of its height: with fewer, what is seen
#: depends on the position between pixels.
LEAST_STROKE = 2
_STROKES = 5
#: Deepest contrast that letters on charts need (ISO 10938).
_DARK_INK = -0.85
#: Contrast below which single steps of a panel decide, and the error there where nobody measured it
#: (de Wit 2023).
STEPS_BELOW = 0.03
_STEPS_SD = 0.15
#: Points of a measured tone curve as the page's shader takes it.
_CURVE_POINTS = 4097
#: Exponent of a usual screen, and how surely it is one, where nobody looked.
_EXPONENT = 2.2
_EXPONENT_SD = 0.15
#: Standard deviations of a threshold's error, log10: of reflections, and of a curve that a
#: photometer read.
_GLARE = 0.02
_PHOTOMETER = 0.01
#: Of a distance by tape, mm, and by the blind spot, log10.
_TAPE_MM = 10.0
_SPOT = 0.04


@dataclass(frozen=True)
class Screen:
    """The screen in front of a person, as it was calibrated, and where they sit.

    Examples
    --------
    >>> screen = Screen(pitch=0.265, distance=1000, display=Display(peak=200))
    >>> round(screen.ppd, 2), Screen.from_dict(screen.to_dict()) == screen
    (65.86, True)
    """

    #: Width of a device pixel and viewing distance, mm.
    pitch: float
    distance: float
    display: Display
    #: How the light is known: "guess", "value" (peak luminance by data sheet or photometer) or
    #: "measured" (a display that was given with its curve).
    light: str = "guess"
    #: Standard deviation of the exponent of the tone curve: a guess, or what matches by eye
    #: scattered.
    exponent_sd: float = _EXPONENT_SD
    #: "tape" or "blind_spot".
    distance_method: str = "tape"
    dither: Dither = "golden"
    #: As the browser says: device pixels in a CSS pixel, CSS px of the screen, and ms of a frame.
    device_pixel_ratio: float = 1.0
    size: tuple[int, int] = (0, 0)
    period: float = 0.0

    def __post_init__(self) -> None:
        if not 200 <= self.distance <= 5000:
            raise InputError(
                f"viewing distance is {self.distance:g} mm; give 200 to 5000 mm, from eye to screen"
            )
        if self.dither not in get_args(Dither):
            raise InputError(
                f"dither is {self.dither!r}; give one of {', '.join(get_args(Dither))}"
            )
        grey = np.asarray(
            self.display.encode([[self.display.peak / 4]], dtype="float64")
        )[0, 0]
        if isinstance(self.display.black, tuple) or float(np.ptp(grey)) > 1e-6:
            raise InputError(
                f"the display's channels differ (black {self.display.black}, grey "
                f"{grey.round(4).tolist()}), and "
                "the page draws grey with equal channels; give one black and one eotf for all, "
                "or a table of white"
            )

    @property
    def ppd(self) -> float:
        """Device pixels per degree where the gaze meets the screen."""
        return 1 / (2 * math.degrees(math.atan(self.pitch / (2 * self.distance))))

    @property
    def offset(self) -> float:
        """The standard deviation of the error that a session's thresholds share, log10 contrast."""
        if self.light == "measured":
            return _PHOTOMETER
        eotf = self.display.eotf
        exponent = eotf if isinstance(eotf, float) else _EXPONENT
        assumed = replace(self.display, eotf=exponent)
        ends = (
            replace(self.display, eotf=exponent + sign * self.exponent_sd)
            for sign in (-1, 1)
        )
        errors = [
            float(threshold_error(assumed, end, self.display.peak / 4, 0.01)[1])
            for end in ends
        ]
        return math.hypot(float(np.mean(np.abs(errors))), _GLARE)

    @property
    def frequency_sd(self) -> float:
        """The standard deviation of the error that a session's frequencies share, log10 cpd."""
        if self.distance_method == "blind_spot":
            return _SPOT
        return math.log10(1 + _TAPE_MM / self.distance)

    def threshold_sd(self, contrast: FloatArray) -> FloatArray:
        """Compute the SD of single thresholds' errors by the screen, log10 contrast.

        Below a contrast of 0.03 one step of the panel decides, which only a photometer knows.

        Parameters
        ----------
        contrast : ndarray
            At threshold, Michelson.

        Examples
        --------
        >>> screen = Screen(pitch=0.265, distance=1000, display=Display(peak=200))
        >>> (screen.threshold_sd(np.array([0.01, 0.1])) > 0.1).tolist()
        [True, False]
        """
        has_steps = (np.asarray(contrast) < STEPS_BELOW) & (self.light != "measured")
        return np.asarray(np.hypot(self.offset, _STEPS_SD * has_steps))

    def drawn(self, lowest: Specification, highest: Specification) -> Specification:
        """Return a stimulus of the same degrees in this screen's pixels.

        Letters that are darker than this screen's black become as dark as it.

        Parameters
        ----------
        lowest, highest : Specification
            As its file describes it, with the lowest and with the highest levels.

        Raises
        ------
        InputError
            The page cannot draw it, or the screen has too few or too large pixels for it.
        """
        target, *others = getattr(lowest, "parts", (lowest,))
        is_letter = "letter_size" in target.levels()
        is_gabor = (
            target.kind == "gabor"
            and target.value("aspect") == 1
            and not getattr(target, "balanced", False)
        )
        if not (is_letter or is_gabor) or not all(
            isinstance(part, WhiteNoise) for part in others
        ):
            raise InputError(
                f"the page draws letters and round Gabors, alone or in noise of a stated density, "
                f"and this stimulus is a {' + '.join(part.kind for part in (target, *others))}; "
                "give a Gabor or a letter"
            )
        ppd = self.ppd
        side = max(round(degrees * ppd) for degrees in lowest.field)
        if is_letter:
            size = min(float(spec.value("letter_size")) for spec in (lowest, highest))
            self._check_detail(
                f"logMAR {round(math.log10(60 * size / _STROKES), 2) + 0.0:g}",
                LEAST_STROKE,
                "stroke",
                size / _STROKES,
                "size",
            )
            lowest = self._with_ink(lowest)
        else:
            frequency = float(highest.value("frequency"))
            self._check_detail(
                f"{frequency:g} cpd", LEAST_PIXELS, "period", 1 / frequency, "frequency"
            )
        room = min(self.size) * self.device_pixel_ratio
        if room and side > room:
            raise InputError(
                f"the pattern takes {side} px at {self.distance:.0f} mm, and the screen has "
                f"{room:.0f}; sit nearer, or "
                "use a larger screen"
            )
        return lowest.changed(size=(side, side), ppd=ppd)

    def _check_detail(
        self, level: str, least: int, detail: str, degrees: float, name: str
    ) -> None:
        """Refuse a level whose finest detail, deg, has too few of this screen's pixels."""
        pixels = degrees * self.ppd
        if pixels < least:
            needed = self.distance * least / pixels
            raise InputError(
                f"{level} needs {least} pixels a {detail}, and this screen at "
                f"{self.distance:.0f} mm has {pixels:.2f}; sit {math.ceil(needed / 10) * 10} mm "
                f"away, or leave the {name} out"
            )

    def _with_ink(self, spec: Specification) -> Specification:
        """Return letters in ink no darker than this screen's black, refusing a pale one."""
        # Rounded up, so that the display can show it.
        deepest = math.ceil(1e4 * (self.display.floor / spec.luminance - 1)) / 1e4
        contrast = float(spec.value("contrast"))
        if contrast >= deepest:
            return spec
        if deepest > _DARK_INK:
            raise InputError(
                f"black of this screen has {self.display.floor:.3g} cd/m², a contrast of "
                f"{deepest:.2f} on {spec.luminance:g} cd/m², and letters need {_DARK_INK:g}; "
                "dim the room, or raise stimulus.parameters.luminance"
            )
        return with_levels(spec, contrast=deepest)

    def uniforms(self) -> JsonObject:
        """Return the screen's light as parameters of the page's shader."""
        display = self.display
        assert isinstance(display.black, float)  # as was checked
        reflected = display.ambient * display.reflectivity / math.pi
        levels: JsonObject = {
            "peak": display.peak,
            "black": display.black,
            "reflected": reflected,
        }
        eotf = {"srgb": -1.0, "linear": 1.0}.get(str(display.eotf), display.eotf)
        if isinstance(eotf, float):
            return {**levels, "power": eotf}
        light = (
            np.linspace(0, 1, _CURVE_POINTS) * (display.peak - display.black)
            + display.black
            + reflected
        )
        drive = np.asarray(display.encode(light[None, :], dtype="float64"))[0, :, 0]
        return {**levels, "power": 0.0, "curve": drive.tolist()}

    def to_dict(self) -> JsonObject:
        """Return the screen as JSON values."""
        return {
            **asdict(self),
            "display": self.display.to_dict(),
            "size": list(self.size),
        }

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Screen:
        """Build the screen that `to_dict` describes."""
        display = Display.from_dict(values["display"])
        return cls(**{**values, "display": display, "size": tuple(values["size"])})
