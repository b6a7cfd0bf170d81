"""State what is true of a simulated observer, and compute its probabilities from that."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonMapping
from psyprobe.light.colour import DIRECTIONS as COLOURS
from psyprobe.observers.protocol import Card
from psyprobe.observers.simulated.speech import REVERSED_WORDS

FUNCTIONS = ("logistic", "normal", "weibull")
#: The highest log odds (natural) of a probability; keeps it away from 0 and 1.
CERTAIN = 30.0
#: Just noticeable differences, which matter only where two images are compared.
COMPARING = ("orientation_jnd", "frequency_jnd")
_POSITIVE = ("scale", "width", "answer_mass", "deg", *COMPARING)


@dataclass(frozen=True)
class Mind:
    """The truth about a simulated observer.

    Parameters
    ----------
    scale : float
        Factor on its sensitivity.
    width : float
        log10 contrast from 5 % to 95 % of the psychometric function.
    function : {"logistic", "normal", "weibull"}
        Shape of that function over log10 contrast.
    guess : float
        How often it sees a pattern where there is none.
    lapse : float
        How often it misses a pattern that is plainly there.
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
        Words of a prompt that tell it that yes means nothing seen ("completely uniform?").
    seed : int
        Seed of everything random in it.
    deg : float
        Width of an image, degrees of visual angle.
    luminance : float
        Luminance of the background, cd/m²: only castlecsf, stelacsf and barten depend on it.
    eotf : str, float or pairs
        How drive values turn into light, as for `psyprobe.Display`.
    direction : {"achromatic", "red_green", "yellow_violet"}
        The one direction of colour along which it sees contrast (RMS cone contrast on the image's
        mean); others than the first with castlecsf and flat.
    orientation_jnd, frequency_jnd : float
        Differences of two images at which d' is 1: a turn, degrees, and a Weber fraction of
        frequency. Contrasts are compared by Legge and Foley's (1980) transducer, whose threshold is
        that of the sensitivity.
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
    reversed_words: tuple[str, ...] = REVERSED_WORDS
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
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if isinstance(field.default, float) and not is_number:
                raise InputError(f"{name} is {value!r}; give a number")
            if name == "seed" and type(value) is not int:
                raise InputError(f"{name} is {value!r}; give a whole number")
            if name in _POSITIVE and not 0 < value < math.inf:
                raise InputError(f"{name} is {value}; give a number > 0")
            if name in ("prompt_sd", "logit_sd") and not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}; give a standard deviation >= 0")
            if name in ("guess", "lapse", "refusal", "unparsed") and not 0 <= value < 1:
                raise InputError(f"{name} is {value}; give a rate from 0 to below 1")
        object.__setattr__(self, "deg", float(self.deg))
        object.__setattr__(self, "luminance", float(self.luminance))
        words = tuple(word.casefold() for word in self.reversed_words)
        object.__setattr__(self, "reversed_words", words)
        if self.function not in FUNCTIONS:
            raise unknown_name("psychometric function", self.function, FUNCTIONS)
        if self.direction not in COLOURS:
            raise unknown_name("colour direction", self.direction, COLOURS)
        if self.text not in ("sampled", "greedy"):
            raise InputError(f"text is {self.text!r}; give 'sampled' or 'greedy'")
        if self.answer_mass > 1:
            raise InputError(
                f"answer_mass is {self.answer_mass}; give a probability up to 1"
            )
        if not -1 < self.yes_bias < 1:
            raise InputError(
                f"yes_bias is {self.yes_bias}; give a rate between -1 (always no) and 1 (always "
                "yes)"
            )
        if self.guess + self.lapse >= 1 or self.refusal + self.unparsed >= 1:
            raise InputError(
                "guess + lapse, and refusal + unparsed, must each stay below 1"
            )


def simulated_card(name: str, truth: JsonMapping) -> Card:
    """Build the card of an observer of known truth.

    Parameters
    ----------
    name : str
        What follows "simulated:" in its name.
    truth : mapping
        The parameters of its mind, of which "eotf" is the encoding of its images.
    """
    options = {"version": 1, **truth}
    encoding = str(options.pop("eotf")).replace("srgb", "sRGB")
    return Card(
        f"simulated:{name}",
        "answer",
        encoding=encoding,
        dtype="float64",
        options=options,
    )


def psychometric(x: float, width: float, function: str) -> float:
    """Compute the probability of seeing a log contrast over threshold, without guesses and lapses.

    Parameters
    ----------
    x : float
        log10 of contrast over threshold; the probability at 0 is 0.5.
    width : float
        log10 contrast from 0.05 to 0.95.
    function : str
        One of `FUNCTIONS`; "weibull" is one over linear contrast, so a Gumbel function of x.

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
    """Convert natural log odds to a probability."""
    return 1 / (1 + math.exp(-max(-700.0, min(log_odds, 700.0))))


def logit(p: float) -> float:
    """Convert a probability to natural log odds, no further from 0 than `CERTAIN`."""
    if p <= 0 or p >= 1:
        return math.copysign(CERTAIN, p - 0.5)
    return max(-CERTAIN, min(math.log(p) - math.log1p(-p), CERTAIN))


def uniform(count: int, *key: object) -> list[float]:
    """Draw uniform numbers strictly between 0 and 1 that depend on nothing but the key."""
    digest = hashlib.sha512(repr(key).encode()).digest()
    return [
        (int.from_bytes(digest[8 * i : 8 * i + 8], "big") + 0.5) / 2**64 * (1 - 2**-50)
        for i in range(count)
    ]


def normal(*key: object) -> float:
    """Draw a standard normal number that depends on nothing but the key."""
    return NormalDist().inv_cdf(uniform(1, *key)[0])
