"""Observers of known truth, "simulated:NAME": a contrast sensitivity function that answers in words.

They look at pixels and at nothing else, so one and the same observer works in process and behind a server: what a
measurement finds can be held against what is true. For tests, for planning how many questions are needed, for teaching.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.display import checked_eotf
from psyprobe.observers.chat.answering import Answer, Answering, Inquiry
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import ObserverRow, register_observer
from psyprobe.observers.simulated import speech
from psyprobe.observers.simulated.mind import CERTAIN, Mind, logit, psychometric, sigmoid, uniform
from psyprobe.observers.simulated.sight import Look, Sight

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

_IDEAL = Mind()


class SimulatedObserver(Answering):
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
        self._sight = Sight(f"simulated:{name}", self.sensitivity, self.deg, checked_eotf(eotf))
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
        """Its sensitivity, 1 / threshold contrast, to sinusoids of these frequencies, cpd > 0."""
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
        ring = self._sight.over_ring(spec)
        if ring is not None:
            return ring
        contrast = np.asarray(getattr(spec, "contrast", 0.0), dtype=np.float64)
        if not (contrast != 0).all():
            raise InputError("a stimulus of contrast 0 has no threshold; give the contrast that is meant")
        light = np.asarray(spec.draw().luminance, dtype=np.float64)
        batch = light.shape[:-2]
        seen = np.array([self._sight.filtered(each)[0] for each in light.reshape(-1, *light.shape[-2:])])
        sensitivity: FloatArray = np.sqrt(seen).reshape(batch) / np.abs(np.broadcast_to(contrast, batch))
        return sensitivity

    def prompt_shift(self, prompt: str) -> float:
        """By how much log10 threshold contrast is higher under this prompt than it is on average."""
        (u,) = uniform(1, "prompt", self.mind.seed, prompt)
        return self.mind.prompt_sd * NormalDist().inv_cdf(u)

    def visible(self, image: FloatArray) -> float:
        """Contrast of an image in units of its threshold; 0 where there is nothing but noise."""
        return self._sight.look(image).visible

    def probability(self, images: Sequence[FloatArray], prompt: str) -> float:
        """How likely it is to say yes ("first", where two images are shown) to a question that it answers."""
        shown = self.checked(Inquiry(prompt, tuple(images))).images
        return self._probability([self._sight.look(image) for image in shown], prompt)

    def _reply(self, inquiry: Inquiry) -> Answer:
        prompt, decoding = inquiry.prompt, inquiry.decoding
        mind = self.mind
        looks = [self._sight.look(image) for image in inquiry.images]
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
            tokens_in=len(speech.tokens(inquiry.system + " " + prompt)) + sum(map(_patches, inquiry.images)),
            tokens_out=tokens_out,
            model=self.card.name,
            server=f"simulated-{self.card.digest[:12]}",
        )

    def _probability(self, looks: Sequence[Look], prompt: str) -> float:
        mind = self.mind
        seen = [self._seen(look, prompt) for look in looks]
        if len(seen) == 2:
            # What is seen in one only is chosen; of two equal ones, either.
            p = seen[0] * (1 - seen[1]) + 0.5 * (seen[0] * seen[1] + (1 - seen[0]) * (1 - seen[1]))
        else:
            p = 1 - seen[0] if self._reversed(prompt) else seen[0]
        return (1 - abs(mind.yes_bias)) * p + max(mind.yes_bias, 0.0)

    def _seen(self, look: Look, prompt: str) -> float:
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


def _rows() -> list[ObserverRow]:
    return [ObserverRow(f"simulated:{name}", f"simulated: {what}", "answer") for name, what in SENSITIVITIES.items()]


@dataclass(frozen=True)
class SimulatedOptions(Mind):
    """What is true of an observer by name, as in `Mind`; the rest as in `SimulatedObserver`."""

    deg: float = 4.0
    luminance: float = 40.0
    eotf: Any = "srgb"


@register_observer(
    "simulated",
    form="simulated:NAME",
    summary="an observer of known truth that answers in words",
    ability="answer",
    rows=_rows,
    options=SimulatedOptions,
)
def load_simulated(name: str, options: SimulatedOptions) -> SimulatedObserver:
    """A simulated observer."""
    true = {each.name: getattr(options, each.name) for each in fields(Mind)}
    true["reversed_words"] = tuple(word.casefold() for word in options.reversed_words)
    return SimulatedObserver(name, Mind(**true), deg=options.deg, luminance=options.luminance, eotf=options.eotf)


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
