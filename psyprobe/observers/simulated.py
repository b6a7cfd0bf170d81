"""Observers of known truth, "simulated:NAME": a contrast sensitivity function that answers in words.

They look at pixels and at nothing else, so one and the same observer works in process and behind a server: what a
measurement finds can be held against what is true. For tests, for planning how many questions are needed, for teaching.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.observers import simulated_speech as speech
from psyprobe.observers.answering import Answer, Decoding
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import ObserverRow, register_observer
from psyprobe.observers.simulated_mind import CERTAIN, Mind, logit, psychometric, sigmoid, uniform
from psyprobe.transfer_function import Eotf, checked_eotf, light_of_drive

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

#: Luminance of a pixel from linear light of the sRGB primaries.
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
#: Radius in units of the Nyquist frequency beyond which no stimulus has energy: what is there is dither noise.
_CORNER = 1.25
#: Images whose visible contrast is remembered: 25 prompts share one image.
_REMEMBERED = 256
_GREEDY = Decoding()
_IDEAL = Mind()


@dataclass(frozen=True)
class _Look:
    """What it saw in an image: the codes' digest, and contrast in units of threshold."""

    digest: bytes
    visible: float


class SimulatedObserver:
    """Says whether it sees a pattern, as its contrast sensitivity function and psychometric function tell it to.

    The image's luminance over its mean is filtered by the contrast sensitivity function; sqrt(2) times the standard
    deviation of what passes is contrast in units of threshold, in the sinusoid-equivalent kind (`sinusoid_rms`). White
    noise, as dither makes it, is estimated in the corners of the spectrum, where no stimulus is, and subtracted. The
    log10 of that enters the psychometric function, whose middle is at 0.

    Text is drawn at temperatures above 0; at 0 it is the likelier answer. Everything is a function of the seed, the
    image's pixels, the prompt and the decoding's seed, so it can be asked again.

    Parameters
    ----------
    name : str
        A key of `SENSITIVITIES`.
    mind : Mind
        What is true of it.
    deg : float
        Width of an image, degrees of visual angle.
    luminance : float
        Of the background, cd/m²: only castlecsf, stelacsf and barten depend on it.
    eotf : str, float or pairs
        How drive values turn into light, as for `psyprobe.Display`.

    Raises
    ------
    InputError
        A value is out of range.

    Examples
    --------
    >>> from psyprobe.stimulus import Noise
    >>> from psyprobe.display import Display
    >>> observer = SimulatedObserver("watson-malo")
    >>> spec = Noise(frequency=4, contrast=0.05, luminance=40, ppd=64, size=256)
    >>> image = Display(peak=200).encode(spec.draw())
    >>> observer.answer([image], "Is there a pattern visible in the image?").text
    'Yes.'
    """

    bits = None
    images_at_once = 2

    def __init__(
        self,
        name: str,
        mind: Mind = _IDEAL,
        *,
        deg: float = 4.0,
        luminance: float = 40.0,
        eotf: Any = "srgb",
    ) -> None:
        if name not in SENSITIVITIES:
            raise unknown_name("simulated observer", name, SENSITIVITIES)
        if not (math.isfinite(deg) and deg > 0):
            raise InputError(f"deg is {deg}; give the width of an image in degrees, > 0")
        self.name = name
        self.mind = mind
        self.deg = float(deg)
        self.luminance = float(luminance)
        self._eotf: Eotf = checked_eotf(eotf)
        self._looks: OrderedDict[bytes, _Look] = OrderedDict()
        self._gains: dict[tuple[int, int], FloatArray] = {}
        self._lock = threading.Lock()
        # Fails here, and not at the first question, where the CSF does not reach.
        self.sensitivity([1.0])
        self.card = Card(
            f"simulated:{name}",
            "answer",
            encoding="sRGB" if eotf == "srgb" else str(eotf),
            dtype="float64",
            options={
                "version": 1,
                "deg": self.deg,
                "luminance": self.luminance,
                **{key: list(v) if isinstance(v, tuple) else v for key, v in asdict(mind).items()},
            },
        )

    def __repr__(self) -> str:
        return f"SimulatedObserver({self.name!r}, {self.mind})"

    def sensitivity(self, frequency: npt.ArrayLike) -> FloatArray:
        """Its sensitivity, 1 / threshold contrast, to a sinusoid.

        Parameters
        ----------
        frequency : array_like of float
            cpd, > 0.

        Returns
        -------
        ndarray
            Of the same shape, >= 0.
        """
        f = np.asarray(frequency, dtype=np.float64)
        if self.name == "flat":
            return np.full(f.shape, 100.0 * self.mind.scale)
        model, options = _csf(self.name, self.luminance, self.deg)
        found: FloatArray = self.mind.scale * np.clip(model(f, **options), 0.0, None)
        return found

    def true_sensitivity(self, spec: Specification) -> FloatArray:
        """What it truly is for a stimulus: 1 / the contrast, in the stimulus' own kind, that is at threshold.

        Of noise with the same amplitude everywhere in a ring of frequencies, the root mean square of the sensitivity
        over the ring's Fourier coefficients; of anything else, that of the image as it is drawn.

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
        ring = self._ring(spec)
        if ring is not None:
            return ring
        contrast = np.asarray(getattr(spec, "contrast", 0.0), dtype=np.float64)
        if not (contrast != 0).all():
            raise InputError("a stimulus of contrast 0 has no threshold; give the contrast that is meant")
        light = np.asarray(spec.draw().luminance, dtype=np.float64)
        batch = light.shape[:-2]
        seen = np.array([self._filtered(each)[0] for each in light.reshape(-1, *light.shape[-2:])])
        sensitivity: FloatArray = np.sqrt(seen).reshape(batch) / np.abs(np.broadcast_to(contrast, batch))
        return sensitivity

    def prompt_shift(self, prompt: str) -> float:
        """By how much log10 threshold contrast is higher under this prompt than it is on average.

        Parameters
        ----------
        prompt : str
            Its full text.

        Returns
        -------
        float
            log10 contrast.
        """
        (u,) = uniform(1, "prompt", self.mind.seed, prompt)
        return self.mind.prompt_sd * NormalDist().inv_cdf(u)

    def visible(self, image: FloatArray) -> float:
        """Contrast of an image in units of its threshold; 0 where there is nothing but noise.

        Parameters
        ----------
        image : ndarray, shape (H, W, 3)
            Display drive in [0, 1].

        Returns
        -------
        float
        """
        return self._look(image).visible

    def probability(self, images: Sequence[FloatArray], prompt: str) -> float:
        """How likely it is to say yes ("first", where two images are shown) to a question that it answers.

        Parameters
        ----------
        images : sequence of ndarray, each (H, W, 3)
            One, or two to choose from.
        prompt : str
            Its full text.

        Returns
        -------
        float
        """
        return self._probability([self._look(image) for image in images], prompt)

    def delivered(self, image: FloatArray) -> FloatArray:
        """The image itself: it looks at it as it is.

        Parameters
        ----------
        image : ndarray, shape (H, W, 3)
            Display drive.

        Returns
        -------
        ndarray
        """
        return image

    def answer(
        self,
        images: Sequence[FloatArray],
        prompt: str,
        *,
        system: str = "",
        decoding: Decoding = _GREEDY,
        words: Sequence[str] = ("yes", "no"),
    ) -> Answer:
        """The answer to one question.

        Parameters
        ----------
        images : sequence of ndarray, each (H, W, 3)
            One image, or two to choose from.
        prompt : str
            What is asked.
        system : str
            Passed over.
        decoding : Decoding
            How the answer is drawn.
        words : sequence of str
            Passed over: the two answers follow from the prompt, as they must behind a server.

        Returns
        -------
        Answer

        Raises
        ------
        InputError
            There is no image, or more than two.
        """
        mind = self.mind
        looks = [self._look(image) for image in images]
        p = self._probability(looks, prompt)
        question = (mind.seed, *(look.digest for look in looks), prompt, decoding.seed)
        mood, choice, wording = uniform(3, "answer", *question)
        kind = "refusal" if mood < mind.refusal else "unparsed" if mood < mind.refusal + mind.unparsed else "answer"
        pair = speech.FORCED_CHOICE if len(looks) == 2 else speech.pair_for(prompt)
        temperature = 0.0 if mind.text == "greedy" else decoding.temperature
        affirmative = choice < sigmoid(logit(p) / temperature) if temperature else p > 0.5
        text = speech.reply(kind, affirmative, pair, wording, self._reversed(prompt))
        shown, finish, tokens_out = speech.cut(text, decoding.max_tokens)
        tokens = speech.first_tokens(kind, p, pair, mind.answer_mass) if decoding.logprobs else None
        return Answer(
            shown,
            tokens,
            complete=tokens is not None,
            finish=finish,
            tokens_in=len(speech.tokens(system + " " + prompt)) + sum(_patches(image) for image in images),
            tokens_out=tokens_out,
            model=self.card.name,
            server=f"simulated-{self.card.digest[:12]}",
        )

    def _probability(self, looks: Sequence[_Look], prompt: str) -> float:
        if len(looks) not in (1, 2):
            raise InputError(
                f"{self.card.name} was given {len(looks)} images; it looks at one, or at two to choose from"
            )
        mind = self.mind
        seen = [self._seen(look, prompt) for look in looks]
        if len(seen) == 2:
            # What is seen in one only is chosen; of two equal ones, either.
            p = seen[0] * (1 - seen[1]) + 0.5 * (seen[0] * seen[1] + (1 - seen[0]) * (1 - seen[1]))
        else:
            p = 1 - seen[0] if self._reversed(prompt) else seen[0]
        return (1 - abs(mind.yes_bias)) * p + max(mind.yes_bias, 0.0)

    def _seen(self, look: _Look, prompt: str) -> float:
        mind = self.mind
        log_odds = -CERTAIN
        if look.visible > 0:
            x = math.log10(look.visible) - self.prompt_shift(prompt)
            log_odds = logit(psychometric(x, mind.width, mind.function))
        if mind.logit_sd:
            (u,) = uniform(1, "image", mind.seed, look.digest)
            log_odds += mind.logit_sd * NormalDist().inv_cdf(u)
        return mind.guess + (1 - mind.guess - mind.lapse) * sigmoid(log_odds)

    def _reversed(self, prompt: str) -> bool:
        return bool(set(re.findall(r"\w+", prompt.casefold())) & set(self.mind.reversed_words))

    def _look(self, image: FloatArray) -> _Look:
        drive = np.asarray(image)
        if drive.ndim != 3 or drive.shape[-1] not in (1, 3) or drive.dtype.kind != "f" or 0 in drive.shape:
            raise InputError(
                f"{self.card.name} looks at display drive, floating point, of shape (H, W, 3), and got {drive.dtype} "
                f"of shape {drive.shape}"
            )
        drive = np.ascontiguousarray(drive[..., :1] if drive.strides[-1] == 0 else drive, dtype=np.float32)
        raw = hashlib.sha256(drive.data).digest()
        with self._lock:
            known = self._looks.get(raw)
            if known is not None:
                self._looks.move_to_end(raw)
                return known
        shown = _known_by(drive)
        digest = hashlib.sha256(repr(shown.shape).encode() + shown.tobytes()).digest()
        look = _Look(digest, self._visible(self._light(shown)))
        with self._lock:
            self._looks[raw] = look
            if len(self._looks) > _REMEMBERED:
                self._looks.popitem(last=False)
        return look

    def _light(self, shown: npt.NDArray[Any]) -> FloatArray:
        weights = _LUMINANCE if shown.shape[-1] == 3 else np.ones(1)
        if shown.dtype == np.uint8:
            table = _light_of_codes(self._eotf)
            mixed: FloatArray = np.sum([w * table[shown[..., i]] for i, w in enumerate(weights)], axis=0)
            return mixed
        if not np.isfinite(shown).all():
            raise InputError(f"{self.card.name} was given an image with NaN or infinity in it")
        light: FloatArray = light_of_drive(shown, self._eotf) @ weights
        return light

    def _visible(self, light: FloatArray) -> float:
        power, noise = self._filtered(light)
        return math.sqrt(max(power - noise, 0.0))

    def _filtered(self, light: FloatArray) -> tuple[float, float]:
        """Twice the variance of the filtered contrast image, and how much of that is white noise."""
        mean = float(light.mean())
        if not mean > 0:
            return 0.0, 0.0
        height, width = light.shape
        gain = self._gain(height, width)
        spectrum = np.fft.rfft2(light / mean - 1)
        power = spectrum.real**2 + spectrum.imag**2
        pixels = height * width
        corner = power[_corner(height, width)]
        # The median, over ln 2, is the mean of exponentially distributed power, and few outliers do not move it.
        floor = float(np.median(corner)) / math.log(2) if corner.size else 0.0
        return 2 * float((gain * power).sum()) / pixels**2, 2 * floor * float(gain.sum()) / pixels**2

    def _gain(self, height: int, width: int) -> FloatArray:
        """Squared sensitivity at each coefficient of `rfft2`, those counted double that stand for two."""
        known = self._gains.get((height, width))
        if known is None:
            radius, double = _radius(height, width)
            f = radius * (width / self.deg)
            flat = np.zeros(f.shape)
            flat[f > 0] = self.sensitivity(f[f > 0])
            known = self._gains[(height, width)] = flat**2 * double
        return known

    def _ring(self, spec: Specification) -> FloatArray | None:
        """Root mean square sensitivity over a ring of equal amplitudes; None if the stimulus is something else."""
        if getattr(spec, "kind", "") != "annulus_noise" or np.any(np.asarray(getattr(spec, "window", 0.0))):
            return None
        height, width = spec.shape
        radius, double = _radius(height, width)
        gain = self._gain(height, width)
        frequency, low, high = (np.asarray(getattr(spec, name)) for name in ("frequency", "low", "high"))
        low, high = np.broadcast_arrays(low * frequency, high * frequency)
        f = radius * float(spec.ppd)
        rings = [(f > a) & (f < b) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
        power = np.array([gain[ring].sum() / double[ring].sum() for ring in rings])
        return np.broadcast_to(np.sqrt(power).reshape(low.shape), spec.batch)


def _rows() -> list[ObserverRow]:
    return [ObserverRow(f"simulated:{name}", f"simulated: {what}", "answer") for name, what in SENSITIVITIES.items()]


@register_observer(
    "simulated",
    form="simulated:NAME",
    summary="an observer of known truth that answers in words",
    ability="answer",
    rows=_rows,
)
def load_simulated(
    name: str,
    *,
    deg: float = 4.0,
    luminance: float = 40.0,
    eotf: Any = "srgb",
    scale: float = 1.0,
    width: float = 0.8,
    function: str = "logistic",
    guess: float = 0.0,
    lapse: float = 0.0,
    yes_bias: float = 0.0,
    prompt_sd: float = 0.0,
    logit_sd: float = 0.0,
    refusal: float = 0.0,
    unparsed: float = 0.0,
    answer_mass: float = 0.98,
    text: str = "sampled",
    reversed_words: Sequence[str] = speech.REVERSED_WORDS,
    seed: int = 0,
) -> SimulatedObserver:
    """A simulated observer; the options are those of `SimulatedObserver` and `Mind`."""
    mind = Mind(
        scale, width, function, guess, lapse, yes_bias, prompt_sd, logit_sd, refusal, unparsed, answer_mass, text,
        tuple(word.casefold() for word in reversed_words), seed,
    )  # fmt: skip
    return SimulatedObserver(name, mind, deg=deg, luminance=luminance, eotf=eotf)


def _known_by(drive: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """The codes where the image is one of 8 bits, else the drive; a single channel where all are equal.

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


def _csf(name: str, luminance: float, deg: float) -> tuple[Any, dict[str, float]]:
    from psyprobe import human  # loads on use: it brings tables and scipy

    if name in ("watson-malo", "hpmh"):
        return (human.watson_malo_csf if name == "watson-malo" else human.watson_ahumada_csf), {}
    model = {"castlecsf": human.castle_csf, "stelacsf": human.stela_csf, "barten": human.barten_csf}[name]
    return model, {"luminance": luminance, "area": deg * deg}


def _patches(image: FloatArray) -> int:
    """Tokens that an image of this size takes with patches of 28 px, as in Qwen2.5-VL."""
    height, width = (int(side) for side in image.shape[:2])
    return math.ceil(height / 28) * math.ceil(width / 28)


@cache
def _light_of_codes(eotf: Eotf) -> FloatArray:
    table: FloatArray = light_of_drive(np.arange(256) / 255, eotf)
    return table


@cache
def _radius(height: int, width: int) -> tuple[FloatArray, FloatArray]:
    """Of each coefficient of `rfft2`: radial frequency in cycles per pixel, and for how many coefficients it stands."""
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    double = np.full(radius.shape, 2.0)
    double[:, 0] = 1
    if width % 2 == 0:
        double[:, -1] = 1
    return radius, double


@cache
def _corner(height: int, width: int) -> npt.NDArray[np.bool_]:
    return _radius(height, width)[0] > 0.5 * _CORNER
