"""Simulate observers of known truth: a contrast sensitivity function that answers in words.

They are loaded as "simulated:NAME". They look at pixels and at nothing else, so the same observer
works in process and behind a server, and what a measurement finds can be compared with the truth.
They serve for tests, for planning how many questions are needed, and for teaching.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import AnyArray, FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import DIRECTIONS as COLOURS
from psyprobe.light.colour import contrast_along, rgb_to_xyz_matrix, xyz_to_lms
from psyprobe.light.primaries import SRGB_PRIMARIES
from psyprobe.light.transfer import checked_eotf, light_of_drive
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.registry import ObserverRow
from psyprobe.observers.simulated.comparing import (
    Wave,
    compared_property,
    contrast_dprime,
    nearest_direction,
    wave_dprime,
    wave_of,
)
from psyprobe.observers.simulated.mind import (
    CERTAIN,
    COMPARING,
    Mind,
    logit,
    normal,
    psychometric,
    sigmoid,
    simulated_card,
    uniform,
)
from psyprobe.observers.simulated.speech import (
    DIRECTIONS,
    INTERVAL_WORDS,
    cut,
    draw_answer,
    first_tokens,
    reply,
    tokens,
    words_for,
    words_of,
)

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification

#: Descriptions of the sensitivities by the name that stands after "simulated:".
SENSITIVITIES = {
    "watson-malo": "the Watson-Malo CSF",
    "hpmh": "the Watson-Ahumada CSF (HPmH)",
    "castlecsf": "castleCSF at the background's luminance, over the whole image",
    "stelacsf": "stelaCSF at the background's luminance, over the whole image",
    "barten": "Barten's CSF at the background's luminance, over the whole image",
    "flat": "sensitivity 100 at every frequency",
}
_IN_TIME = ("castlecsf", "stelacsf")
#: Luminance, and XYZ, from linear light of the sRGB primaries.
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
_XYZ = rgb_to_xyz_matrix(SRGB_PRIMARIES)
#: Radius, in units of the Nyquist frequency, beyond which no stimulus has energy, only dither
#: noise.
_CORNER = 1.25
#: Percepts that are remembered: 25 prompts share one image.
_REMEMBERED = 256
#: Read-only images that are recognised by identity: prompts that share one follow each other.
_RECENT = 4
#: Words of a prompt that say that images are the frames of a film, or of two.
_FRAME_RATE = re.compile(r"(\d+(?:\.\d+)?) frames a second")
_TWO_FILMS = re.compile(r"\btwo films\b")
_IDEAL = Mind()


class Percept(NamedTuple):
    """What an observer sees in an image."""

    #: Digest of the pixels.
    digest: bytes
    #: Contrast in units of threshold.
    visible: float


class SimulatedObserver(Answering):
    """An observer that detects patterns by a contrast sensitivity and a psychometric function.

    The image's luminance over its mean is filtered by the contrast sensitivity function; sqrt(2)
    times the standard deviation of the filtered image is contrast in units of threshold, in the
    sinusoid-equivalent kind (`sinusoid_rms`). White noise, as dither makes it, is estimated in the
    corners of the spectrum, where no stimulus is, and subtracted. The log10 of that enters the
    psychometric function, whose middle is at 0. If the prompt says how many frames a film has in a
    second, its frames are filtered together, over space and time.

    Text is drawn at temperatures above 0; at 0 it is the likelier answer. Everything is a function
    of the seed, the image's pixels, the prompt and the decoding's seed, so it can be asked again.

    Parameters
    ----------
    name : str
        A key of `SENSITIVITIES`.
    mind : Mind
        The truth about it.

    Examples
    --------
    >>> from psyprobe.stimulus import Noise
    >>> from psyprobe.light.display import Display
    >>> observer = SimulatedObserver("watson-malo")
    >>> spec = Noise(frequency=4, contrast=0.05, luminance=40, ppd=64, size=256)
    >>> image = Display(peak=200).encode(spec.draw())
    >>> observer.answer([image], "Is there a pattern visible in the image?").text
    'Yes.'
    """

    fewest_images = 1

    def __init__(self, name: str, mind: Mind = _IDEAL) -> None:
        if name not in SENSITIVITIES:
            raise unknown_name("simulated observer", name, SENSITIVITIES)
        if mind.direction != COLOURS[0] and name not in ("castlecsf", "flat"):
            raise InputError(
                f"{name} knows nothing of direction {mind.direction!r}; castlecsf and flat see "
                "colour"
            )
        self.name = name
        self.mind = mind
        self._eotf = checked_eotf(mind.eotf)
        self._percepts: dict[tuple[bytes, float | None], Percept] = {}
        self._recent: deque[tuple[FloatArray, Percept]] = deque(maxlen=_RECENT)
        self._gains: dict[tuple[tuple[int, ...], float | None], FloatArray] = {}
        # A luminance that the CSF does not cover fails here, and not at the first question.
        self.sensitivity([1.0])
        options = {**asdict(mind), "reversed_words": list(mind.reversed_words)}
        for option in (*COMPARING, "direction"):
            # The card leaves out defaults that matter only where images are compared, or in colour.
            if options[option] == getattr(_IDEAL, option):
                del options[option]
        self.card = simulated_card(name, options)

    def __repr__(self) -> str:
        return f"SimulatedObserver({self.name!r}, {self.mind})"

    def sensitivity(
        self, frequency: npt.ArrayLike, temporal_frequency: npt.ArrayLike = 0.0
    ) -> FloatArray:
        """Compute the simulated sensitivity, 1 / threshold contrast, to sinusoids.

        Parameters
        ----------
        frequency : array_like
            Spatial frequency, cpd > 0.
        temporal_frequency : array_like
            Hz. Only castlecsf and stelacsf depend on it; to the others what flickers is as visible
            as what stands still.
        """
        f, t = np.broadcast_arrays(
            np.asarray(frequency, np.float64),
            np.asarray(temporal_frequency, np.float64),
        )
        if self.name == "flat":
            return np.full(f.shape, 100.0 * self.mind.scale)
        in_time = {"temporal_frequency": t} if self.name in _IN_TIME and t.any() else {}
        sensitivity = np.clip(_build_csf(self.name, self.mind)(f, **in_time), 0.0, None)
        return np.asarray(self.mind.scale * sensitivity)

    def true_sensitivity(self, spec: Specification) -> FloatArray:
        """Compute 1 / the contrast of a stimulus at threshold, in the stimulus's own contrast.

        It is that of the image as it is drawn: of noise with equal amplitudes in a ring of
        frequencies, the root mean square of the sensitivity over the ring's Fourier coefficients.

        Parameters
        ----------
        spec : stimulus specification
            Its contrast does not matter, as long as it is not 0 everywhere.

        Returns
        -------
        ndarray
            One value a stimulus of the batch.

        Raises
        ------
        InputError
            The contrast is 0, so that there is no threshold.

        Examples
        --------
        >>> from psyprobe.stimulus import Grating
        >>> grating = Grating(frequency=4, contrast=0.1, ppd=64, size=256)
        >>> float(SimulatedObserver("watson-malo").true_sensitivity(grating).round(1))
        188.8
        """
        contrast = np.asarray(getattr(spec, "contrast", 0.0), dtype=np.float64)
        if not contrast.all():
            raise InputError(
                "a stimulus of contrast 0 has no threshold; give the contrast that is meant"
            )
        fps = spec.fps if spec.is_clip else None
        lights = self._light_of_stimuli(spec).reshape(-1, *spec.extent)
        powers = np.array([self._filtered(light, fps)[0] for light in lights])
        return np.asarray(np.sqrt(powers).reshape(spec.batch) / np.abs(contrast))

    def prompt_shift(self, prompt: str) -> float:
        """Compute how far a prompt raises log10 threshold contrast above its average."""
        return self.mind.prompt_sd * normal("prompt", self.mind.seed, prompt)

    def visible(self, image: FloatArray) -> float:
        """Compute an image's contrast in units of threshold; 0 where it is only noise."""
        return self._percept(image).visible

    def probability(self, images: Sequence[FloatArray], prompt: str) -> float:
        """Compute the probability of the first answer: yes, "first" or "vertical"."""
        views, fps = views_of(
            self.checked(Inquiry(prompt, tuple(images))).images, prompt
        )
        percepts = [self._percept(view, fps) for view in views]
        return self._probabilities(views, percepts, prompt)[0]

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Answer in words, at random, as the simulated mind sees images and reads the prompt."""
        prompt = inquiry.prompt
        decoding = inquiry.decoding
        mind = self.mind
        views, fps = views_of(inquiry.images, prompt)
        percepts = [self._percept(view, fps) for view in views]
        probabilities = self._probabilities(views, percepts, prompt)
        question = (
            mind.seed,
            *(percept.digest for percept in percepts),
            prompt,
            decoding.seed,
        )
        mood, choice, phrase = uniform(3, "answer", *question)
        kind = "answer"
        if mood < mind.refusal:
            kind = "refusal"
        elif mood < mind.refusal + mind.unparsed:
            kind = "unparsed"
        words = INTERVAL_WORDS if len(views) == 2 else words_for(prompt)
        temperature = 0.0 if mind.text == "greedy" else decoding.temperature
        index = draw_answer(probabilities, temperature, choice)
        text = reply(kind, index, words, phrase, self._is_reversed(prompt))
        # An image takes patches of 28 px, as in Qwen2.5-VL.
        patches = sum(
            math.ceil(image.shape[0] / 28) * math.ceil(image.shape[1] / 28)
            for image in inquiry.images
        )
        text, finish, tokens_out = cut(text, decoding.max_tokens)
        logprobs = None
        if decoding.logprobs:
            logprobs = first_tokens(kind, probabilities, words, mind.answer_mass)
        return Answer(
            text,
            logprobs,
            complete=logprobs is not None,
            finish=finish,
            tokens_in=len(tokens(f"{inquiry.system} {prompt}")) + patches,
            tokens_out=tokens_out,
            model=self.card.name,
            server=f"simulated-{self.card.digest[:12]}",
        )

    def _probabilities(
        self, views: Sequence[FloatArray], percepts: Sequence[Percept], prompt: str
    ) -> list[float]:
        """Compute the probability of each word that the prompt asks for, bias included."""
        words = words_for(prompt)
        if len(views) == 1 and words[0] in DIRECTIONS:
            probabilities = self._direction_probabilities(
                views[0], percepts[0], prompt, words
            )
        elif len(views) == 2 and (name := compared_property(prompt)):
            probabilities = [self._comparison_probability(name, views, percepts)]
        else:
            probabilities = [self._detection_probability(percepts, prompt)]
        bias = self.mind.yes_bias
        p = (1 - abs(bias)) * probabilities[0] + max(bias, 0.0)
        if len(probabilities) <= 2:
            return [p, 1 - p]
        other_bias = max(-bias, 0.0) / (len(words) - 1)
        return [
            p,
            *((1 - abs(bias)) * other + other_bias for other in probabilities[1:]),
        ]

    def _detection_probability(self, percepts: Sequence[Percept], prompt: str) -> float:
        """Compute the probability of yes about one image, or of "first" about two."""
        p = self._visibility(percepts[0], prompt)
        if len(percepts) == 2:
            q = self._visibility(percepts[1], prompt)
            # A pattern that is seen in one image decides; otherwise it guesses.
            return p * (1 - q) + 0.5 * (p * q + (1 - p) * (1 - q))
        return 1 - p if self._is_reversed(prompt) else p

    def _comparison_probability(
        self, name: str, views: Sequence[FloatArray], percepts: Sequence[Percept]
    ) -> float:
        """Compute the probability of choosing the first of two images as having more."""
        mind = self.mind
        if name == "contrast":
            d_prime = contrast_dprime(*(percept.visible for percept in percepts))
        else:
            first, second = map(self._wave, views)
            d_prime = wave_dprime(name, first, second, getattr(mind, f"{name}_jnd"))
        return mind.lapse / 2 + (1 - mind.lapse) * NormalDist().cdf(
            d_prime / math.sqrt(2)
        )

    def _direction_probabilities(
        self, view: FloatArray, percept: Percept, prompt: str, words: tuple[str, ...]
    ) -> list[float]:
        """Compute the probability of naming each direction, equal if nothing is seen."""
        share = 1 / len(words)
        if not percept.visible > 0:
            return [share] * len(words)
        p = self._visibility(percept, prompt)
        nearest = nearest_direction(
            self._wave(view), [DIRECTIONS[word] for word in words]
        )
        probabilities = [share - p * share] * len(words)
        probabilities[nearest] = share + p * (1 - share)
        return probabilities

    def _visibility(self, percept: Percept, prompt: str) -> float:
        """Compute the probability of seeing a pattern, guesses and lapses included."""
        mind = self.mind
        log_odds = -CERTAIN
        if percept.visible > 0:
            x = math.log10(percept.visible) - self.prompt_shift(prompt)
            log_odds = logit(psychometric(x, mind.width, mind.function))
        if mind.logit_sd:
            log_odds += mind.logit_sd * normal("image", mind.seed, percept.digest)
        return mind.guess + (1 - mind.guess - mind.lapse) * sigmoid(log_odds)

    def _is_reversed(self, prompt: str) -> bool:
        """Tell whether a prompt has a word that reverses yes and no."""
        return not words_of(prompt).isdisjoint(self.mind.reversed_words)

    def _wave(self, view: FloatArray) -> Wave:
        """Find the strongest Fourier component of an image, or of a film's middle frame."""
        image = view[len(view) // 2] if view.ndim == 4 else view
        return wave_of(self._light(_canonical_pixels(_planes(image))))

    def _percept(self, view: FloatArray, fps: float | None = None) -> Percept:
        """Compute what is visible in an image or film, cached for read-only ones."""
        for recent_view, percept in tuple(self._recent):
            if recent_view is view:
                return percept
        percept = self._measured(view, fps)
        if (
            isinstance(view, np.ndarray)
            and view.base is None
            and not view.flags.writeable
        ):
            self._recent.append((view, percept))
        return percept

    def _measured(self, view: FloatArray, fps: float | None) -> Percept:
        """Compute what is visible in an image or film, or recall it by the pixels.

        Raises
        ------
        InputError
            It is no image.
        """
        drive = np.asarray(view)
        axes = 3 if fps is None else 4
        if (
            drive.ndim != axes
            or drive.shape[-1] not in (1, 3)
            or drive.dtype.kind != "f"
            or not drive.size
        ):
            raise InputError(
                f"{self.card.name} looks at display drive, floating point, of shape (H, W, 3), "
                f"and got {drive.dtype} of shape {drive.shape}"
            )
        drive = _planes(drive)
        key = hashlib.sha256(drive.data).digest(), fps
        if percept := self._percepts.get(key):
            return percept
        pixels = _canonical_pixels(drive)
        digest = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).digest()
        power, noise = self._filtered(self._light(pixels), fps)
        percept = Percept(digest, math.sqrt(max(power - noise, 0.0)))
        if len(self._percepts) >= _REMEMBERED:
            self._percepts.clear()
        self._percepts[key] = percept
        return percept

    def _light(self, pixels: AnyArray) -> FloatArray:
        """Convert pixels to luminance, or to 1 + contrast along the observer's colour direction."""
        if not np.isfinite(pixels).all():
            raise InputError(
                f"{self.card.name} was given an image with NaN or infinity in it"
            )
        is_codes = pixels.dtype == np.uint8
        if self.mind.direction != COLOURS[0]:
            light = light_of_drive(pixels / 255 if is_codes else pixels, self._eotf)
            rgb = np.broadcast_to(light, (*light.shape[:-1], 3))
            return self._colour_contrast(xyz_to_lms(rgb @ _XYZ.T))
        weights = _LUMINANCE if pixels.shape[-1] == 3 else np.ones(1)
        if is_codes:
            table = light_of_drive(np.arange(256) / 255, self._eotf)
            channels = [
                weight * table[pixels[..., i]] for i, weight in enumerate(weights)
            ]
            return np.asarray(np.sum(channels, axis=0))
        return np.asarray(light_of_drive(pixels, self._eotf) @ weights)

    def _colour_contrast(self, lms: FloatArray) -> FloatArray:
        """Compute contrast along the observer's colour direction from LMS contrasts."""
        return (
            1 + contrast_along(self.mind.direction, lms) if lms.any() else lms[..., 0]
        )

    def _light_of_stimuli(self, spec: Specification) -> FloatArray:
        """Draw stimuli in the same units as `_light`, batch axes first."""
        stimulus = spec.draw()
        if self.mind.direction == COLOURS[0]:
            return np.asarray(stimulus.luminance, dtype=np.float64)
        if stimulus.space != "lms":
            return np.ones((*spec.batch, *spec.extent))
        images = np.asarray(stimulus.pixels).reshape(-1, *spec.extent, 3)
        contrasts = np.stack([self._colour_contrast(image) for image in images])
        return contrasts.reshape(*spec.batch, *spec.extent)

    def _filtered(
        self, light: FloatArray, fps: float | None = None
    ) -> tuple[float, float]:
        """Compute twice the variance of filtered contrast, and how much of it is white noise."""
        mean = float(light.mean())
        if not mean > 0:
            return 0.0, 0.0
        gain = self._gain(light.shape, fps)
        spectrum = np.fft.rfftn(light / mean - 1)
        power = spectrum.real**2 + spectrum.imag**2
        corner = power[..., _radius(*light.shape[-2:])[0] > 0.5 * _CORNER]
        # The median, over ln 2, is the mean of exponentially distributed power, and robust against
        # outliers.
        floor = float(np.median(corner)) / math.log(2) if corner.size else 0.0
        filtered_power = 2 * float((gain * power).sum()) / light.size**2
        return filtered_power, 2 * floor * float(gain.sum()) / light.size**2

    def _gain(self, shape: tuple[int, ...], fps: float | None = None) -> FloatArray:
        """Compute squared sensitivity at each coefficient of `rfftn`, times its multiplicity."""
        if (shape, fps) not in self._gains:
            radius, multiplicity = _radius(*shape[-2:])
            f = radius * (shape[-1] / self.mind.deg)
            sensitivity: FloatArray = np.zeros(f.shape)
            if fps is None:
                sensitivity[f > 0] = self.sensitivity(f[f > 0])
            else:
                # Uniform flicker is seen as the lowest frequency that the image holds.
                frequencies, f_index = np.unique(
                    np.where(f > 0, f, f[f > 0].min()), return_inverse=True
                )
                rates = np.abs(np.fft.fftfreq(shape[0], 1 / fps))
                rates, rate_index = np.unique(rates, return_inverse=True)
                grid = self.sensitivity(frequencies, rates[:, None])
                sensitivity = grid[rate_index][:, f_index.reshape(f.shape)]
                sensitivity[0, f == 0] = 0.0
            self._gains[shape, fps] = sensitivity**2 * multiplicity
        return self._gains[shape, fps]


def views_of(
    images: Sequence[FloatArray], prompt: str
) -> tuple[list[FloatArray], float | None]:
    """Group a question's images to films where the prompt states frames a second.

    Parameters
    ----------
    images : sequence of array, each (H, W, 3)
        One or two images; or the frames of one film, or of "two films" all of the first before
        those of the second.
    prompt : str
        The question.

    Returns
    -------
    (list of array, float or None)
        One or two images (H, W, 3) or films (T, H, W, 3), and frames a second.

    Raises
    ------
    InputError
        The prompt does not explain how many images there are.

    Examples
    --------
    >>> frames = [np.zeros((8, 8, 3))] * 20
    >>> prompt = "Here are 10 frames of each of two films, 60 frames a second. Which one moves?"
    >>> views, fps = views_of(frames, prompt)
    >>> [view.shape for view in views], fps
    ([(10, 8, 8, 3), (10, 8, 8, 3)], 60.0)
    """
    frame_rate = _FRAME_RATE.search(prompt.casefold())
    films = 2 if _TWO_FILMS.search(prompt.casefold()) else 1
    if frame_rate is None or len(images) % films or not images:
        if not 1 <= len(images) <= 2:
            raise InputError(
                "a simulated observer takes one or two images, or the frames of one film or of "
                "two films whose prompt tells their 'frames a second', and was shown "
                f"{len(images)} images"
            )
        return list(images), None
    count = len(images) // films
    views = [
        np.stack(images[start : start + count])
        for start in range(0, len(images), count)
    ]
    return views, float(frame_rate[1])


def simulated_rows() -> list[ObserverRow]:
    """List the simulated observers by name."""
    return [
        ObserverRow(f"simulated:{name}", f"simulated: {description}", "answer")
        for name, description in SENSITIVITIES.items()
    ]


def _build_csf(name: str, mind: Mind) -> Callable[[FloatArray], FloatArray]:
    """Build the sensitivity over frequency of a named CSF model, for a simulated observer."""
    from psyprobe import human  # loads on use: it brings tables and scipy

    model: Callable[..., FloatArray] = {
        "watson-malo": human.watson_malo_csf,
        "hpmh": human.watson_ahumada_csf,
        "castlecsf": human.castle_csf,
        "stelacsf": human.stela_csf,
        "barten": human.barten_csf,
    }[name]
    if name in ("watson-malo", "hpmh"):
        return model
    # Without a direction castleCSF takes that of its authors, which is all but achromatic.
    colour = {} if mind.direction == COLOURS[0] else {"direction": mind.direction}
    return partial(model, luminance=mind.luminance, area=mind.deg * mind.deg, **colour)


def _planes(image: FloatArray) -> npt.NDArray[np.float32]:
    """Return one channel of an image where all are the same plane, else all."""
    return np.ascontiguousarray(ImagePlanes.of(image).planes, dtype=np.float32)


def _canonical_pixels(drive: npt.NDArray[np.float32]) -> AnyArray:
    """Convert drive to uint8 codes if it is 8-bit, as one channel where all are equal.

    By its codes an image is the same in process, out of a PNG, and however its drive was rounded.
    """
    values = drive * np.float32(255)
    codes = np.rint(values).clip(0, 255)
    is_eight_bit = np.abs(values - codes).max() < 1e-3
    pixels: AnyArray = codes.astype(np.uint8) if is_eight_bit else drive
    if np.array_equal(pixels, np.broadcast_to(pixels[..., :1], pixels.shape)):
        pixels = np.ascontiguousarray(pixels[..., :1])
    return pixels


@cache
def _radius(height: int, width: int) -> tuple[FloatArray, FloatArray]:
    """Compute radial frequency, cycles a pixel, and multiplicity of `rfft2` coefficients."""
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    multiplicity = np.full(radius.shape, 2.0)
    multiplicity[:, 0] = 1
    if width % 2 == 0:
        multiplicity[:, -1] = 1
    return radius, multiplicity
