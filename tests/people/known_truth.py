"""People of known acuity and of known efficiency in noise, who look at what is drawn for them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.stimulus import Gabor, Optotype, specification_from_dict

#: Slope of the Weibull function over a letter's size, and share of wrong key presses.
SLOPE, LAPSE = 3.5, 0.02


def letter_deg(logmar: float) -> float:
    """The scale, deg, of a Weibull function that stands halfway at an acuity."""
    return float(10**logmar / 12 / math.log(2) ** (1 / SLOPE))


def reads_letters(logmar: float, seed: int) -> Callable[[Inquiry], Answer]:
    """Somebody of an acuity, halfway between guessing and certainty."""
    rng = np.random.default_rng([seed, 3])

    def answer_inquiry(inquiry: Inquiry) -> Answer:
        assert inquiry.drawing is not None
        (stimulus,) = inquiry.drawing["stimuli"]
        right = int(
            stimulus["letter"] if "letter" in stimulus else stimulus["orientation"] / 90
        )
        share = (stimulus["letter_size"] / letter_deg(logmar)) ** SLOPE
        sees = rng.random() < (1 - LAPSE) * (1 - math.exp(-share))
        place = right if sees else int(rng.integers(len(inquiry.words)))
        return Answer(
            inquiry.words[place], model="a person", session={"session": "first"}
        )

    return answer_inquiry


def internal_sd(
    template: npt.NDArray[np.float64], density: float, ppd: float, efficiency: float
) -> float:
    """The SD of contrasts seen in noise of one's own that leaves an efficiency."""
    energy = float((template**2).sum()) / ppd**2
    return math.sqrt(density / energy * (1 / efficiency - 1))


class NoisyEyes:
    """Fits the signal to two images, adds noise of its own, and takes the larger.

    Parameters
    ----------
    efficiency : float
        The share of the ideal observer's energy that it uses.
    density : float
        Of the noise in the images, deg².
    seed : int
        Of its own noise.
    """

    def __init__(
        self, efficiency: float, density: float = 2.78e-6, seed: int = 0
    ) -> None:
        self.efficiency = efficiency
        self.density = density
        self._seed = seed
        self._rng = np.random.default_rng([seed, 4])

    def choose(
        self,
        contrasts: Sequence[npt.NDArray[np.float64]],
        template: npt.NDArray[np.float64],
        ppd: float,
        rng: np.random.Generator,
    ) -> int:
        responses = np.array([(image * template).sum() for image in contrasts])
        responses /= (template**2).sum()
        sd = internal_sd(template, self.density, ppd, self.efficiency)
        return int(np.argmax(responses + rng.normal(0, sd, 2)))

    def answer_inquiry(self, inquiry: Inquiry) -> Answer:
        """Answer like a person at the page, to whom stimuli come as specifications."""
        assert inquiry.drawing is not None
        stimuli = inquiry.drawing["stimuli"]
        specs = [specification_from_dict(stimulus) for stimulus in stimuli]
        (signal,) = (
            part
            for stimulus in stimuli
            for part in stimulus.get("parts", [])
            if part["kind"] == "gabor"
        )
        gabor = specification_from_dict({**signal, "contrast": 0.1})
        images = [spec.draw().luminance / spec.luminance - 1 for spec in specs]
        template = 10 * (gabor.draw().luminance / gabor.luminance - 1)
        place = self.choose(images, template, gabor.ppd, self._rng)
        return Answer(
            ("first", "second")[place], model="a person", session={"session": "first"}
        )

    def look(self, images: Any, prompt: str) -> str:
        """Answer like a model that gets drive of an sRGB display, of 4 cpd at 16 ppd."""
        light = [np.asarray(image, dtype=float)[..., 0] for image in images]
        light = [
            np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
            for x in light
        ]
        contrasts = [x / x.mean() - 1 for x in light]
        gabor = Gabor(
            frequency=4, contrast=0.1, radius=0.5, ppd=16, size=light[0].shape
        )
        template = 10 * (gabor.draw().luminance / gabor.luminance - 1)
        # A server may be asked in any order.
        image_seed = zlib.crc32(np.asarray(images).tobytes())
        rng = np.random.default_rng([self._seed, image_seed])
        return ("first", "second")[self.choose(contrasts, template, 16, rng)]


def letter_eyes(logmar: float) -> dict[str, Any]:
    """Return the values that `eyes.js` needs to read Sloan's letters from pixels."""
    shapes = [
        -Optotype(letter=number, contrast=-1.0, letter_size=1.0, ppd=20, size=20)
        .draw()
        .luminance
        / 100
        + 1
        for number in range(10)
    ]
    return {
        "shapes": [shape.ravel().round(3).tolist() for shape in shapes],
        "areas": [float(shape.sum()) / 16 for shape in shapes],
        "keys": list("cdhknorsvz"),
        "letter_deg": letter_deg(logmar),
        "slope": SLOPE,
        "lapse": LAPSE,
    }
