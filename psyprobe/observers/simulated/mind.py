"""What is true of a simulated observer: its psychometric function, its biases and its noise."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields
from statistics import NormalDist

from psyprobe.errors import InputError, unknown_name
from psyprobe.observers.simulated.speech import REVERSED_WORDS

FUNCTIONS = ("logistic", "normal", "weibull")
#: Natural log odds beyond which nobody's certainty goes; keeps probabilities away from 0 and 1.
CERTAIN = 30.0


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
        How often it says yes without looking, whatever is asked ("first", where two images are shown); negative: no.
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
        Words of a prompt by which it understands that yes means nothing seen ("completely uniform?").
    seed : int
        Of everything random in it.
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

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, float) and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise InputError(f"{field.name} is {value!r}; give a number")
        if self.function not in FUNCTIONS:
            raise unknown_name("psychometric function", self.function, FUNCTIONS)
        if self.text not in ("sampled", "greedy"):
            raise InputError(f"text is {self.text!r}; give 'sampled' or 'greedy'")
        for name in ("scale", "width", "answer_mass"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} is {getattr(self, name)}; give a number > 0")
        for name in ("prompt_sd", "logit_sd"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InputError(f"{name} is {getattr(self, name)}; give a standard deviation >= 0")
        for name in ("guess", "lapse", "refusal", "unparsed"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give a rate from 0 to below 1")
        if self.answer_mass > 1:
            raise InputError(f"answer_mass is {self.answer_mass}; give a probability up to 1")
        if not -1 < self.yes_bias < 1:
            raise InputError(f"yes_bias is {self.yes_bias}; give a rate between -1 (always no) and 1 (always yes)")
        if self.guess + self.lapse >= 1 or self.refusal + self.unparsed >= 1:
            raise InputError("guess + lapse, and refusal + unparsed, must each stay below 1")


def psychometric(x: float, width: float, function: str) -> float:
    """Probability of seeing, without guesses and lapses: 0.5 at x = 0, log10 of contrast over threshold.

    `width` is log10 contrast from 0.05 to 0.95. Weibull means over linear contrast, which is a Gumbel function of x.

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
    return [(int.from_bytes(digest[8 * i : 8 * i + 8], "big") + 0.5) / 2**64 * (1 - 2**-50) for i in range(count)]
