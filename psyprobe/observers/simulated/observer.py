"""Observers of known truth, "simulated:NAME": a contrast sensitivity function that answers in
words.

They look at pixels and at nothing else, so one and the same observer works in process and behind a
server: what a measurement finds can be held against what is true. For tests, for planning how many
questions are needed, for teaching. From the top: what is true, the observer, what it sees in an
image, how it judges, and how it puts an answer.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import threading
import tomllib
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from importlib.resources import files
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import DIRECTIONS as COLOURS
from psyprobe.light.colour import contrast_along, rgb_to_xyz_matrix, xyz_to_lms
from psyprobe.light.primaries import SRGB_PRIMARIES
from psyprobe.light.transfer import checked_eotf, light_of_drive
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import ObserverRow
from psyprobe.observers.simulated.comparing import (
    asked_to_compare,
    contrast_dprime,
    nearest_direction,
    wave_dprime,
    wave_of,
)

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification

#: Sensitivities by the name that stands after "simulated:", and what they are.
SENSITIVITIES = {
    "watson-malo": "the Watson-Malo CSF",
    "hpmh": "the Watson-Ahumada CSF (HPmH)",
    "castlecsf": "castleCSF at the background's luminance, over the whole image",
    "stelacsf": "stelaCSF at the background's luminance, over the whole image",
    "barten": "Barten's CSF at the background's luminance, over the whole image",
    "flat": "sensitivity 100 at every frequency",
}
_IN_TIME = ("castlecsf", "stelacsf")
FUNCTIONS = ("logistic", "normal", "weibull")
#: Natural log odds beyond which nobody's certainty goes; keeps probabilities away from 0 and 1.
CERTAIN = 30.0
#: Luminance of a pixel from linear light of the sRGB primaries.
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
#: Of linear light of the same primaries, XYZ.
_XYZ = rgb_to_xyz_matrix(SRGB_PRIMARIES)
#: Radius in units of the Nyquist frequency beyond which no stimulus has energy: what is there is
#: dither noise.
_CORNER = 1.25
#: Images whose visible contrast is remembered: 25 prompts share one image.
_REMEMBERED = 256
#: Images that nobody can change any more are known again by themselves: prompts that share one
#: follow each other.
_LATELY = 4
INTERVAL_WORDS = ("First", "Second")
#: Words for the directions of stripes, in the order in which they are named, and the orientation of
#: each, deg.
DIRECTIONS = {"Vertical": 0.0, "Horizontal": 90.0, "Rising": 135.0, "Falling": 45.0}
#: By which it understands that images are the frames of a film, or of two.
_PACE = re.compile(r"(\d+(?:\.\d+)?) frames a second")
_TWO_FILMS = re.compile(r"\btwo films\b")
#: What it needs to know of itself to compare two images.
_COMPARING = ("orientation_jnd", "frequency_jnd")
#: Its words; ``speech.toml`` says of each list what it is.
_SPOKEN = tomllib.loads(
    files("psyprobe.observers.simulated").joinpath("speech.toml").read_text(encoding="utf-8")
)
_PAIRS: list[tuple[str, str]] = [(yes, no) for yes, no in _SPOKEN["pairs"]]
#: Spellings of an answer that share its probability.
_SPELLINGS = (("{0}", 0.9), ("{lower}", 0.07), (" {0}", 0.03))


@dataclass(frozen=True)
class Mind:
    """What is true of a simulated observer.

    Parameters
    ----------
    scale : float
        Factor on its sensitivity.
    width : float
        log10 contrast from 5 % to 95 % of the psychometric function.
    function : {"logistic", "normal", "weibull"}
        Its shape over log10 contrast.
    guess : float
        How often it sees a pattern where there is none.
    lapse : float
        How often it misses one that is plainly there.
    yes_bias : float
        How often it says yes without looking, whatever is asked ("first", where two images are
        shown); negative: no.
    prompt_sd : float
        Standard deviation, log10 contrast, of the shift of threshold from prompt to prompt.
    logit_sd : float
        Standard deviation from image to image of the natural log odds of seeing a pattern.
    refusal : float
        Share of questions that it refuses.
    unparsed : float
        Share of questions to which it says neither yes nor no.
    answer_mass : float
        Probability that the first token is one of the two answers, where it answers at all.
    text : {"sampled", "greedy"}
        Whether words are drawn at the temperature asked for, or always on the likelier side.
    reversed_words : tuple of str
        Words of a prompt by which it understands that yes means nothing seen ("completely
        uniform?").
    seed : int
        Of everything random in it.
    deg : float
        Width of an image, degrees of visual angle.
    luminance : float
        Of the background, cd/m²: only castlecsf, stelacsf and barten depend on it.
    eotf : str, float or pairs
        How drive values turn into light, as for `psyprobe.Display`.
    direction : {"achromatic", "red_green", "yellow_violet"}
        The one direction of colour along which it sees contrast (RMS cone contrast on the image's
        mean); others than the first with castlecsf and flat.
    orientation_jnd, frequency_jnd : float
        At which d' is 1 of two images that differ: a turn, degrees, and a Weber fraction of
        frequency. Of two contrasts, Legge and Foley's (1980) transducer tells it, at threshold
        where the sensitivity has its own.
    """

    scale: float = 1.0
    width: float = 0.8
    function: str = "logistic"
    guess: float = 0.0
    lapse: float = 0.0
    yes_bias: float = 0.0
    prompt_sd: float = 0.0
    logit_sd: float = 0.0
    refusal: float = 0.0
    unparsed: float = 0.0
    answer_mass: float = 0.98
    text: str = "sampled"
    reversed_words: tuple[str, ...] = tuple(_SPOKEN["reversed"])
    seed: int = 0
    deg: float = 4.0
    luminance: float = 40.0
    eotf: Any = "srgb"
    direction: str = "achromatic"
    orientation_jnd: float = 0.6
    frequency_jnd: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            name = field.name
            value = getattr(self, field.name)
            if isinstance(field.default, float) and (
                isinstance(value, bool) or not isinstance(value, int | float)
            ):
                raise InputError(f"{name} is {value!r}; give a number")
            if name == "seed" and (isinstance(value, bool) or not isinstance(value, int)):
                raise InputError(f"{name} is {value!r}; give a whole number")
            if name in ("scale", "width", "answer_mass", *_COMPARING) and not 0 < value < math.inf:
                raise InputError(f"{name} is {value}; give a number > 0")
            if name in ("prompt_sd", "logit_sd") and not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}; give a standard deviation >= 0")
            if name in ("guess", "lapse", "refusal", "unparsed") and not 0 <= value < 1:
                raise InputError(f"{name} is {value}; give a rate from 0 to below 1")
        object.__setattr__(self, "deg", float(self.deg))
        object.__setattr__(self, "luminance", float(self.luminance))
        object.__setattr__(
            self, "reversed_words", tuple(word.casefold() for word in self.reversed_words)
        )
        if not 0 < self.deg < math.inf:
            raise InputError(f"deg is {self.deg}; give the width of an image in degrees, > 0")
        if self.function not in FUNCTIONS:
            raise unknown_name("psychometric function", self.function, FUNCTIONS)
        if self.direction not in COLOURS:
            raise unknown_name("colour direction", self.direction, COLOURS)
        if self.text not in ("sampled", "greedy"):
            raise InputError(f"text is {self.text!r}; give 'sampled' or 'greedy'")
        if self.answer_mass > 1:
            raise InputError(f"answer_mass is {self.answer_mass}; give a probability up to 1")
        if not -1 < self.yes_bias < 1:
            raise InputError(
                f"yes_bias is {self.yes_bias}; give a rate between -1 (always no) and 1 (always "
                "yes)"
            )
        if self.guess + self.lapse >= 1 or self.refusal + self.unparsed >= 1:
            raise InputError("guess + lapse, and refusal + unparsed, must each stay below 1")


_IDEAL = Mind()


class Look(NamedTuple):
    """What it saw in an image: the codes' digest, and contrast in units of threshold."""

    digest: bytes
    visible: float


class SimulatedObserver(Answering):
    """Says whether it sees a pattern, as its contrast sensitivity function and psychometric
    function tell it to.

    The image's luminance over its mean is filtered by the contrast sensitivity function; sqrt(2)
    times the standard deviation of what passes is contrast in units of threshold, in the
    sinusoid-equivalent kind (`sinusoid_rms`). White noise, as dither makes it, is estimated in the
    corners of the spectrum, where no stimulus is, and subtracted. The log10 of that enters the
    psychometric function, whose middle is at 0. The frames of a film, where the prompt tells how
    many come in a second, are looked at as one, over space and time.

    Text is drawn at temperatures above 0; at 0 it is the likelier answer. Everything is a function
    of the seed, the image's pixels, the prompt and the decoding's seed, so it can be asked again.

    Parameters
    ----------
    name : str
        A key of `SENSITIVITIES`.
    mind : Mind
        What is true of it.

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
        self._looks: OrderedDict[tuple[bytes, float | None], Look] = OrderedDict()
        self._lately: deque[tuple[FloatArray, Look]] = deque(maxlen=_LATELY)
        self._gains: dict[tuple[tuple[int, ...], float | None], FloatArray] = {}
        self._lock = threading.Lock()
        self.sensitivity(
            [1.0]
        )  # fails here, and not at the first question, where the CSF does not reach
        options = {"version": 1, **asdict(mind), "reversed_words": list(mind.reversed_words)}
        for each in (*_COMPARING, "direction"):
            # An observer is known by what it is asked for: nobody compares images, or looks at
            # colour, by chance.
            if options[each] == getattr(_IDEAL, each):
                del options[each]
        encoding = "sRGB" if mind.eotf == "srgb" else str(mind.eotf)
        del options["eotf"]
        self.card = Card(
            f"simulated:{name}", "answer", encoding=encoding, dtype="float64", options=options
        )

    def __repr__(self) -> str:
        return f"SimulatedObserver({self.name!r}, {self.mind})"

    def sensitivity(
        self, frequency: npt.ArrayLike, temporal_frequency: npt.ArrayLike = 0.0
    ) -> FloatArray:
        """Its sensitivity, 1 / threshold contrast, to sinusoids of these frequencies, cpd > 0 and
        Hz.

        castlecsf and stelacsf know of time; to the others what flickers is as visible as what
        stands still.
        """
        f, t = np.broadcast_arrays(
            np.asarray(frequency, np.float64), np.asarray(temporal_frequency, np.float64)
        )
        if self.name == "flat":
            return np.full(f.shape, 100.0 * self.mind.scale)
        in_time = {"temporal_frequency": t} if self.name in _IN_TIME and t.any() else {}
        found: FloatArray = self.mind.scale * np.clip(
            _csf(self.name, self.mind)(f, **in_time), 0.0, None
        )
        return found

    def true_sensitivity(self, spec: Specification) -> FloatArray:
        """What it truly is for a stimulus: 1 / the contrast, in the stimulus' own kind, that is at
        threshold.

        Of noise with the same amplitude everywhere in a ring of frequencies, the root mean square
        of the sensitivity over the ring's Fourier coefficients; of anything else, that of the image
        as it is drawn.

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
            The contrast is 0, so that there is nothing to be sensitive to.

        Examples
        --------
        >>> from psyprobe.stimulus import Grating
        >>> grating = Grating(frequency=4, contrast=0.1, ppd=64, size=256)
        >>> float(SimulatedObserver("watson-malo").true_sensitivity(grating).round(1))
        188.8
        """
        ring = self._over_ring(spec)
        if ring is not None:
            return ring
        contrast = np.asarray(getattr(spec, "contrast", 0.0), dtype=np.float64)
        if not (contrast != 0).all():
            raise InputError(
                "a stimulus of contrast 0 has no threshold; give the contrast that is meant"
            )
        fps = spec.fps if spec.is_clip else None
        seen = np.array(
            [self._filtered(each, fps)[0] for each in self._drawn(spec).reshape(-1, *spec.extent)]
        )
        sensitivity: FloatArray = np.sqrt(seen).reshape(spec.batch) / np.abs(
            np.broadcast_to(contrast, spec.batch)
        )
        return sensitivity

    def prompt_shift(self, prompt: str) -> float:
        """By how much log10 threshold contrast is higher under this prompt than it is on
        average.
        """
        return self.mind.prompt_sd * normal("prompt", self.mind.seed, prompt)

    def visible(self, image: FloatArray) -> float:
        """Contrast of an image in units of its threshold; 0 where there is nothing but noise."""
        return self._look(image).visible

    def probability(self, images: Sequence[FloatArray], prompt: str) -> float:
        """How likely it is to say yes to a question that it answers: "first" of two images, of
        stripes "vertical".
        """
        views, fps = views_of(self.checked(Inquiry(prompt, tuple(images))).images, prompt)
        return self._chances(views, [self._look(view, fps) for view in views], prompt)[0]

    def _reply(self, inquiry: Inquiry) -> Answer:
        prompt = inquiry.prompt
        decoding = inquiry.decoding
        mind = self.mind
        views, fps = views_of(inquiry.images, prompt)
        looks = [self._look(view, fps) for view in views]
        chances = self._chances(views, looks, prompt)
        question = (mind.seed, *(look.digest for look in looks), prompt, decoding.seed)
        mood, choice, wording = uniform(3, "answer", *question)
        kind = (
            "refusal"
            if mood < mind.refusal
            else "unparsed"
            if mood < mind.refusal + mind.unparsed
            else "answer"
        )
        words = INTERVAL_WORDS if len(looks) == 2 else words_for(prompt)
        temperature = 0.0 if mind.text == "greedy" else decoding.temperature
        text = reply(
            kind, drawn(chances, temperature, choice), words, wording, self._reversed(prompt)
        )
        # An image takes patches of 28 px, as in Qwen2.5-VL.
        patches = sum(
            math.ceil(image.shape[0] / 28) * math.ceil(image.shape[1] / 28)
            for image in inquiry.images
        )
        shown, finish, tokens_out = cut(text, decoding.max_tokens)
        likely = first_tokens(kind, chances, words, mind.answer_mass) if decoding.logprobs else None
        return Answer(
            shown,
            likely,
            complete=likely is not None,
            finish=finish,
            tokens_in=len(tokens(inquiry.system + " " + prompt)) + patches,
            tokens_out=tokens_out,
            model=self.card.name,
            server=f"simulated-{self.card.digest[:12]}",
        )

    def _chances(
        self, images: Sequence[FloatArray], looks: Sequence[Look], prompt: str
    ) -> tuple[float, ...]:
        """How likely it is to say each of the words that the prompt asks for."""
        bias = self.mind.yes_bias
        words = words_for(prompt)
        if len(looks) == 1 and len(words) > 2:
            chances = self._directions(images[0], looks[0], prompt, words)
            first = (1 - abs(bias)) * chances[0] + max(bias, 0.0)
            rest = max(-bias, 0.0) / (len(words) - 1)
            return first, *((1 - abs(bias)) * chance + rest for chance in chances[1:])
        p = (1 - abs(bias)) * self._probability(images, looks, prompt, words) + max(bias, 0.0)
        return p, 1 - p

    def _probability(
        self,
        images: Sequence[FloatArray],
        looks: Sequence[Look],
        prompt: str,
        words: tuple[str, ...],
    ) -> float:
        """How likely it takes the first of two answers for the right one."""
        if len(looks) == 2 and (what := asked_to_compare(prompt)):
            return self._chosen(what, images, looks)
        if len(looks) == 1 and words[0] in DIRECTIONS:
            return self._directions(images[0], looks[0], prompt, words)[0]
        seen = [self._seen(look, prompt) for look in looks]
        if len(seen) == 2:
            # What is seen in one only is chosen; of two equal ones, either.
            return seen[0] * (1 - seen[1]) + 0.5 * (
                seen[0] * seen[1] + (1 - seen[0]) * (1 - seen[1])
            )
        return 1 - seen[0] if self._reversed(prompt) else seen[0]

    def _chosen(self, what: str, images: Sequence[FloatArray], looks: Sequence[Look]) -> float:
        """How likely it takes the first of two images for the one that has more."""
        mind = self.mind
        if what == "contrast":
            d_prime = contrast_dprime(*(look.visible for look in looks))
        else:
            jnd = mind.orientation_jnd if what == "orientation" else mind.frequency_jnd
            waves = [wave_of(self._light(_known_by(_still(image)))) for image in images]
            d_prime = wave_dprime(what, waves[0], waves[1], jnd)
        return mind.lapse / 2 + (1 - mind.lapse) * NormalDist().cdf(d_prime / math.sqrt(2))

    def _directions(
        self, image: FloatArray, look: Look, prompt: str, words: tuple[str, ...]
    ) -> list[float]:
        """How likely it names each direction: that of what it sees, and any where it sees
        nothing.
        """
        share = 1 / len(words)
        if not look.visible > 0:
            return [share] * len(words)
        seen = self._seen(look, prompt)
        wave = wave_of(self._light(_known_by(_still(image))))
        named = nearest_direction(wave, [DIRECTIONS[word] for word in words])
        return [
            share + (seen * (1 - share) if place == named else -seen * share)
            for place in range(len(words))
        ]

    def _seen(self, look: Look, prompt: str) -> float:
        mind = self.mind
        log_odds = -CERTAIN
        if look.visible > 0:
            x = math.log10(look.visible) - self.prompt_shift(prompt)
            log_odds = logit(psychometric(x, mind.width, mind.function))
        if mind.logit_sd:
            log_odds += mind.logit_sd * normal("image", mind.seed, look.digest)
        return mind.guess + (1 - mind.guess - mind.lapse) * sigmoid(log_odds)

    def _reversed(self, prompt: str) -> bool:
        return bool(set(re.findall(r"\w+", prompt.casefold())) & set(self.mind.reversed_words))

    def _look(self, image: FloatArray, fps: float | None = None) -> Look:
        """What is in an image, or a film of so many frames a second; remembered."""
        for known, look in tuple(self._lately):
            if known is image:
                return look
        look = self._looked(image, fps)
        if isinstance(image, np.ndarray) and image.base is None and not image.flags.writeable:
            self._lately.append((image, look))
        return look

    def _looked(self, image: FloatArray, fps: float | None) -> Look:
        """The same, known by its content.

        Raises
        ------
        InputError
            It is no image.
        """
        drive = np.asarray(image)
        if (
            drive.ndim != (3 if fps is None else 4)
            or drive.shape[-1] not in (1, 3)
            or drive.dtype.kind != "f"
            or 0 in drive.shape
        ):
            raise InputError(
                f"{self.card.name} looks at display drive, floating point, of shape (H, W, 3), "
                f"and got {drive.dtype} "
                f"of shape {drive.shape}"
            )
        drive = _grey(drive)
        raw = hashlib.sha256(drive.data).digest(), fps
        with self._lock:
            if raw in self._looks:
                self._looks.move_to_end(raw)
                return self._looks[raw]
        shown = _known_by(drive)
        digest = hashlib.sha256(repr(shown.shape).encode() + shown.tobytes()).digest()
        power, noise = self._filtered(self._light(shown), fps)
        look = Look(digest, math.sqrt(max(power - noise, 0.0)))
        with self._lock:
            self._looks[raw] = look
            if len(self._looks) > _REMEMBERED:
                self._looks.popitem(last=False)
        return look

    def _light(self, shown: npt.NDArray[Any]) -> FloatArray:
        """Luminance; in colour 1 plus the contrast along its direction."""
        if not np.isfinite(shown).all():
            raise InputError(f"{self.card.name} was given an image with NaN or infinity in it")
        if self.mind.direction != COLOURS[0]:
            light = light_of_drive(shown / 255 if shown.dtype == np.uint8 else shown, self._eotf)
            return self._coloured(
                xyz_to_lms(np.broadcast_to(light, (*light.shape[:-1], 3)) @ _XYZ.T)
            )
        weights = _LUMINANCE if shown.shape[-1] == 3 else np.ones(1)
        if shown.dtype == np.uint8:
            table = light_of_drive(np.arange(256) / 255, self._eotf)
            return np.asarray(
                np.sum([w * table[shown[..., i]] for i, w in enumerate(weights)], axis=0)
            )
        return np.asarray(light_of_drive(shown, self._eotf) @ weights)

    def _coloured(self, lms: FloatArray) -> FloatArray:
        return 1 + contrast_along(self.mind.direction, lms) if lms.any() else lms[..., 0]

    def _drawn(self, spec: Specification) -> FloatArray:
        """Of a stimulus as it is drawn what `_light` gives of an image or a film; a batch before
        its pixels.
        """
        drawn = spec.draw()
        if self.mind.direction == COLOURS[0]:
            return np.asarray(drawn.luminance, dtype=np.float64)
        if drawn.space != "lms":
            return np.ones((*spec.batch, *spec.extent))
        images = np.asarray(drawn.pixels).reshape(-1, *spec.extent, 3)
        return np.stack([self._coloured(image) for image in images]).reshape(
            *spec.batch, *spec.extent
        )

    def _filtered(self, light: FloatArray, fps: float | None = None) -> tuple[float, float]:
        """Twice the variance of the light's contrast behind the filter, and how much of that is
        white noise.
        """
        mean = float(light.mean())
        if not mean > 0:
            return 0.0, 0.0
        gain = self._gain(light.shape, fps)
        spectrum = np.fft.rfftn(light / mean - 1)
        power = spectrum.real**2 + spectrum.imag**2
        corner = power[..., _radius(*light.shape[-2:])[0] > 0.5 * _CORNER]
        # The median, over ln 2, is the mean of exponentially distributed power, and few outliers do
        # not move it.
        floor = float(np.median(corner)) / math.log(2) if corner.size else 0.0
        return 2 * float((gain * power).sum()) / light.size**2, 2 * floor * float(
            gain.sum()
        ) / light.size**2

    def _gain(self, shape: tuple[int, ...], fps: float | None = None) -> FloatArray:
        """Squared sensitivity at each coefficient of `rfftn`, those counted double that stand for
        two.
        """
        if (shape, fps) not in self._gains:
            radius, double = _radius(*shape[-2:])
            f = radius * (shape[-1] / self.mind.deg)
            flat: FloatArray = np.zeros(f.shape)
            if fps is None:
                flat[f > 0] = self.sensitivity(f[f > 0])
            else:
                # What flickers all over is seen as the lowest frequency that the image holds.
                known, place = np.unique(np.where(f > 0, f, f[f > 0].min()), return_inverse=True)
                rates, when = np.unique(
                    np.abs(np.fft.fftfreq(shape[0], 1 / fps)), return_inverse=True
                )
                flat = self.sensitivity(known, rates[:, None])[when][:, place.reshape(f.shape)]
                flat[0, f == 0] = 0.0
            self._gains[shape, fps] = flat**2 * double
        return self._gains[shape, fps]

    def _over_ring(self, spec: Specification) -> FloatArray | None:
        """Root mean square sensitivity over a ring of equal amplitudes; None for anything else than
        a ring.
        """
        if getattr(spec, "kind", "") != "annulus_noise" or np.any(
            np.asarray(getattr(spec, "window", 0.0))
        ):
            return None
        height, width = spec.shape
        radius, double = _radius(height, width)
        gain = self._gain((height, width))
        frequency, low, high = (
            np.asarray(getattr(spec, name)) for name in ("frequency", "low", "high")
        )
        low, high = np.broadcast_arrays(low * frequency, high * frequency)
        f = radius * float(spec.ppd)
        rings = [(f > a) & (f < b) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
        power = np.array([gain[ring].sum() / double[ring].sum() for ring in rings])
        return np.broadcast_to(np.sqrt(power).reshape(low.shape), spec.batch)


def views_of(images: Sequence[FloatArray], prompt: str) -> tuple[list[FloatArray], float | None]:
    """What a question shows: its images, or films (T, H, W, 3) where the prompt tells their frames
    a second.

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
        One or two images or films, and frames a second.

    Raises
    ------
    InputError
        There are as many images as nothing in the prompt explains.

    Examples
    --------
    >>> frames = [np.zeros((8, 8, 3))] * 20
    >>> views, fps = views_of(frames, "Here are 10 frames of each of two films, 60 frames a second. Which one moves?")
    >>> [view.shape for view in views], fps
    ([(10, 8, 8, 3), (10, 8, 8, 3)], 60.0)
    """
    told = _PACE.search(prompt.casefold())
    films = 2 if _TWO_FILMS.search(prompt.casefold()) else 1
    if told is None or len(images) % films or not images:
        if not 1 <= len(images) <= 2:
            raise InputError(
                "a simulated observer takes one or two images, or the frames of one film or of "
                "two films whose prompt "
                f"tells their 'frames a second', and was shown {len(images)} images"
            )
        return list(images), None
    each = len(images) // films
    return [np.stack(images[start : start + each]) for start in range(0, len(images), each)], float(
        told[1]
    )


def simulated_rows() -> list[ObserverRow]:
    """What there is by name."""
    return [
        ObserverRow(f"simulated:{name}", f"simulated: {what}", "answer")
        for name, what in SENSITIVITIES.items()
    ]


def _csf(name: str, mind: Mind) -> Callable[[FloatArray], FloatArray]:
    from psyprobe import human  # loads on use: it brings tables and scipy

    if name in ("watson-malo", "hpmh"):
        return human.watson_malo_csf if name == "watson-malo" else human.watson_ahumada_csf
    model = {
        "castlecsf": human.castle_csf,
        "stelacsf": human.stela_csf,
        "barten": human.barten_csf,
    }[name]
    # Without a direction castleCSF takes its authors' own, which is all but achromatic.
    colour = {} if mind.direction == COLOURS[0] else {"direction": mind.direction}
    return partial(model, luminance=mind.luminance, area=mind.deg * mind.deg, **colour)


def _grey(image: FloatArray) -> npt.NDArray[np.float32]:
    """One channel where all are the same plane."""
    return np.ascontiguousarray(ImagePlanes.of(image).planes, dtype=np.float32)


def _still(view: FloatArray) -> npt.NDArray[np.float32]:
    """The image, or of a film the frame in the middle."""
    return _grey(view[len(view) // 2] if view.ndim == 4 else view)


def _known_by(drive: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """The codes where the image is one of 8 bits, else the drive; a single channel where all are
    equal.

    By its codes an image is the same in process, out of a PNG, and however its drive was rounded.
    """
    values = drive * np.float32(255)
    codes = np.rint(values)
    eight_bit = np.abs(values - codes).max() < 1e-3 and codes.min() >= 0 and codes.max() <= 255
    shown: npt.NDArray[Any] = codes.astype(np.uint8) if eight_bit else drive
    first = shown[..., 0]
    if all(np.array_equal(first, shown[..., i]) for i in range(1, shown.shape[-1])):
        shown = np.ascontiguousarray(shown[..., :1])
    return shown


@cache
def _radius(height: int, width: int) -> tuple[FloatArray, FloatArray]:
    """Of each coefficient of `rfft2`: radial frequency in cycles per pixel, and for how many
    coefficients it stands.
    """
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    double = np.full(radius.shape, 2.0)
    double[:, 0] = 1
    if width % 2 == 0:
        double[:, -1] = 1
    return radius, double


def psychometric(x: float, width: float, function: str) -> float:
    """Probability of seeing, without guesses and lapses: 0.5 at x = 0, log10 of contrast over
    threshold.

    `width` is log10 contrast from 0.05 to 0.95. Weibull means over linear contrast, which is a
    Gumbel function of x.

    Examples
    --------
    >>> [round(psychometric(0.4, 0.8, function), 3) for function in FUNCTIONS]
    [0.95, 0.95, 0.995]
    """
    z = x / width
    if function == "logistic":
        return sigmoid(2 * math.log(19) * z)
    if function == "normal":
        return NormalDist().cdf(2 * NormalDist().inv_cdf(0.95) * z)
    spread = math.log(math.log(0.05) / math.log(0.95))
    return -math.expm1(-math.log(2) * math.exp(min(spread * z, 50.0)))


def sigmoid(log_odds: float) -> float:
    """Probability of these natural log odds."""
    return 1 / (1 + math.exp(-max(-700.0, min(log_odds, 700.0))))


def logit(p: float) -> float:
    """Natural log odds of a probability, no further from 0 than `CERTAIN`."""
    if p <= 0 or p >= 1:
        return math.copysign(CERTAIN, p - 0.5)
    return max(-CERTAIN, min(math.log(p) - math.log1p(-p), CERTAIN))


def uniform(count: int, *of: object) -> list[float]:
    """Numbers strictly between 0 and 1 that are a function of their arguments alone."""
    digest = hashlib.sha512(repr(of).encode()).digest()
    return [
        (int.from_bytes(digest[8 * i : 8 * i + 8], "big") + 0.5) / 2**64 * (1 - 2**-50)
        for i in range(count)
    ]


def normal(*of: object) -> float:
    """A draw from the normal distribution that is a function of its arguments alone."""
    return NormalDist().inv_cdf(uniform(1, *of)[0])


def words_for(prompt: str) -> tuple[str, ...]:
    """The words for yes and no, or for directions, that a prompt asks for.

    Examples
    --------
    >>> words_for("Ist ein Muster zu sehen? Antworte mit ja oder nein.")
    ('Ja', 'Nein')
    """
    words = set(re.findall(r"\w+", prompt.casefold()))
    known = (tuple(DIRECTIONS), *_PAIRS)
    return next((each for each in known if {word.casefold() for word in each} <= words), _PAIRS[0])


def drawn(chances: Sequence[float], temperature: float, choice: float) -> int:
    """Which of several answers is given; at temperature 0 the likeliest, and of equals the last.

    Parameters
    ----------
    chances : sequence of float
        How likely each is; together 1.
    temperature : float
        Of the sampling.
    choice : float
        Drawn from 0 to 1.

    Examples
    --------
    >>> drawn((0.3, 0.7), 1.0, 0.2), drawn((0.3, 0.7), 1.0, 0.4), drawn((0.25, 0.25, 0.3, 0.2), 0.0, 0.1)
    (0, 1, 2)
    """
    if not temperature:
        return max(range(len(chances)), key=lambda place: (chances[place], place))
    logs = [math.log(max(chance, math.exp(-CERTAIN))) / temperature for chance in chances]
    weights = [math.exp(log - max(logs)) for log in logs]
    ends = itertools.accumulate(weight / sum(weights) for weight in weights)
    return next((place for place, end in enumerate(ends) if choice < end), len(chances) - 1)


def reply(kind: str, place: int, words: tuple[str, ...], wording: float, turned: bool) -> str:
    """What it says: "answer", "refusal" or "unparsed", and which of the words it answers with.

    `wording`, from 0 to 1, picks among the ways to put it; `turned` is whether yes means that
    nothing is seen.

    Examples
    --------
    >>> reply("answer", 0, ("Yes", "No"), 0.99, False)
    'Yes, there is a pattern visible in the image.'
    """
    ways: list[str] = _SPOKEN[kind]
    if kind == "answer" and words != _PAIRS[0]:
        ways = ways[:-1]  # sentences are spoken in English only
    way = ways[min(int(wording * len(ways)), len(ways) - 1)]
    word = words[place]
    rest = _SPOKEN["rest"]["no" if place else "yes"][turned]
    return way.format(word, lower=word.lower(), rest=rest)


def first_tokens(
    kind: str, chances: Sequence[float], words: tuple[str, ...], answer_mass: float
) -> tuple[tuple[str, float], ...]:
    """Log-probabilities of the first token, likeliest first, of which `answer_mass` are an answer
    where it answers.

    `chances` are the probabilities of the words among themselves; those of all tokens add up to 1.

    Examples
    --------
    >>> first_tokens("answer", (0.8, 0.2), ("Yes", "No"), 0.98)[:2]
    (('Yes', -0.34870...), ('No', -1.73500...))
    """
    mass = answer_mass if kind == "answer" else 0.03
    found: dict[str, float] = {}
    sides = [max(chance, 1e-12) for chance in chances]
    for word, side in zip(words, sides, strict=True):
        for spelling, share in _SPELLINGS:
            found[spelling.format(word, lower=word.lower())] = mass * side / sum(sides) * share
    first = {"answer": "The", "unparsed": "The", "refusal": "I"}[kind]
    others = [first, *(each for each in _SPOKEN["openers"] if each != first)]
    weights = [1 / (rank + 1) ** (1 if kind == "answer" else 4) for rank in range(len(others))]
    for word, weight in zip(others, weights, strict=True):
        found[word] = max((1 - mass) * weight / sum(weights), 1e-12)
    return tuple(
        sorted(
            ((word, math.log(chance)) for word, chance in found.items()), key=lambda each: -each[1]
        )
    )


def tokens(text: str) -> list[str]:
    """Text in pieces of about the size of tokens, which together are the text.

    Examples
    --------
    >>> tokens("Yes, there is.")
    ['Yes', ',', ' there', ' is', '.']
    """
    return re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text)


def cut(text: str, max_tokens: int) -> tuple[str, str, int]:
    """Text up to so many tokens, why it ended, and how many tokens it has.

    Examples
    --------
    >>> cut("Yes, there is.", 3)
    ('Yes, there', 'length', 3)
    """
    pieces = tokens(text)
    if len(pieces) <= max_tokens:
        return text, "stop", len(pieces)
    return "".join(pieces[:max_tokens]), "length", max_tokens
