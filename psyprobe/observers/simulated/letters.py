"""Simulate a reader of known truth: it finds the letter in an image and names it.

It is loaded as "simulated:letters", and looks at pixels and at the labels that a prompt lists, so
that whatever a server does to images reaches it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from psyprobe._typing import FloatArray, Size
from psyprobe.errors import InputError
from psyprobe.light.transfer import checked_eotf, light_of_drive
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.simulated.mind import simulated_card, uniform
from psyprobe.observers.simulated.speech import (
    cut,
    draw_answer,
    first_tokens,
    reply,
    tokens,
)
from psyprobe.stimulus.catalogue import catalogue_folder
from psyprobe.stimulus.coverage import Outline, area, coverage
from psyprobe.stimulus.kinds.fonts import glyph_outlines
from psyprobe.stimulus.kinds.image import stamp_of
from psyprobe.stimulus.kinds.letters import SLOAN, letter_outlines

#: The labels that a prompt lists.
_OPTIONS = re.compile(r": ([^?:]*)\?")
#: Angle of each word for a direction, deg counter-clockwise from the right.
_ANGLES = {"right": 0, "up": 90, "upper": 90, "left": 180, "down": 270, "lower": 270}
#: Strokes in the height of a letter, and pixels of the letter of which moments are taken.
_STROKES = 5
_LARGE = 60
#: Least pixels beside the ink that are looked at, and blur (px) with which it is searched.
_MARGIN = 6
_BLUR = 1.0
#: Share of the strongest change that is ink, and the least change in units of the noise.
_INK = 0.4
_LEAST_SIGNAL = 5.0
#: Pixels beside that ink in which there may still be some.
_BESIDE = 2
#: Width over height from which a letter and its flankers touch.
_TOUCHING = 1.6
#: Variance of a square pixel along both axes, px².
_PIXEL_VARIANCE = 2 / 12
_WEIGHTS = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True)
class LetterMind:
    """The truth about a simulated reader of letters.

    A letter is seen with the probability 1 - 0.5 ** ((level / threshold) ** slope), multiplied over
    size, contrast and spacing; else a label is guessed by bias and similarity.

    Parameters
    ----------
    letter_px : float
        Height of letters at threshold, px of the image that it looks at, at full contrast.
    slope : float
        Exponent of the three Weibull functions.
    contrast : float
        Weber contrast at threshold, without its sign; 0 for none.
    size_by_contrast : float
        How the threshold height depends on contrast: ``letter_px * contrast ** -size_by_contrast``.
    crowding : float
        Spacing of flankers, centre to centre in heights, at which half are seen; 0 for none.
    lapse : float
        Share of questions answered without looking, by any label alike.
    bias : mapping of str to float
        Weight of labels among guesses; 1 for those not named.
    similarity : mapping of str to float
        How readily one label is guessed for another, by two labels with a blank between them, such
        as "C O", from 0; 1 for pairs not named.
    refusal, unparsed : float
        Shares of questions that it refuses, or to which it names no label.
    answer_mass : float
        Probability that the first token is a label, where it answers.
    max_side : int
        Side, px, to which larger images are shrunk before it looks; 0 for none.
    seed : int
        Seed of everything random in it.
    eotf : str, float or pairs
        How drive values turn into light, as for `psyprobe.Display`.
    """

    letter_px: float = 6.0
    slope: float = 4.0
    contrast: float = 0.0
    size_by_contrast: float = 0.0
    crowding: float = 0.0
    lapse: float = 0.0
    bias: Mapping[str, float] = field(default_factory=dict, hash=False)
    similarity: Mapping[str, float] = field(default_factory=dict, hash=False)
    refusal: float = 0.0
    unparsed: float = 0.0
    answer_mass: float = 0.98
    max_side: int = 0
    seed: int = 0
    eotf: Any = "srgb"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in ("bias", "similarity"):
                if not isinstance(value, Mapping):
                    raise InputError(f"{name} is {value!r}; give weights by label")
                for label, weight in value.items():
                    _check_number(f"{name} of {label}", weight)
            elif name != "eotf":
                _check_number(name, value)
        for name in ("letter_px", "slope", "answer_mass"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; give a number > 0")
        for name in ("max_side", "seed"):
            if type(getattr(self, name)) is not int:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}; give a whole number"
                )
        shares = self.lapse, self.refusal + self.unparsed, self.answer_mass
        if max(shares) > 1:
            raise InputError(
                f"lapse is {self.lapse}, refusal and unparsed together "
                f"{self.refusal + self.unparsed:g} and answer_mass {self.answer_mass}; give up "
                "to 1"
            )


def _check_number(name: str, value: Any) -> None:
    """Refuse what is no finite number from 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise InputError(f"{name} is {value!r}; give a number from 0")


class Sight(NamedTuple):
    """What a reader sees in an image."""

    #: The number of the label whose letter fits best; -1 where there is no letter.
    label: int
    #: Height, px of the image that it looks at; 0 where there is no letter.
    height: float
    #: Weber contrast, without its sign.
    contrast: float
    #: Distance of the nearest flanker, centre to centre in heights; infinite without any.
    spacing: float


class LetterReader(Answering):
    """An observer that names the letter in the middle of an image, as its mind says how well.

    Of the ink nearest to the middle, the height is that at which an exact template has the same
    second moment, and the template that correlates best is the letter. Letters that touch others
    side by side are not parted, and are guessed.

    Everything is a function of the seed, the pixels, the prompt and the decoding's seed, whatever
    the temperature.

    Parameters
    ----------
    name : str
        "letters".
    mind : LetterMind
        The truth about it.

    Examples
    --------
    >>> from psyprobe.light.display import Display
    >>> from psyprobe.stimulus.kinds.letters import Optotype
    >>> spec = Optotype(letter="K", contrast=-1, letter_size=0.4, luminance=100, size=96)
    >>> drive = Display(peak=200).encode(spec.draw())
    >>> LetterReader("letters").answer([drive], "Which letter is shown: O, K, C?").text
    'K.'
    """

    fewest_images = images_at_once = 1

    def __init__(self, name: str, mind: LetterMind = LetterMind()) -> None:
        self.mind = mind
        self._eotf = checked_eotf(mind.eotf)
        self.card = simulated_card(name, asdict(mind))

    def __repr__(self) -> str:
        return f"LetterReader({self.mind})"

    def look(self, image: FloatArray, prompt: str) -> Sight:
        """Find the letter in an image (H, W, 3) of drive, among those that a prompt lists."""
        return self._look(self._shrink(image), _shapes(prompt, _labels(prompt)))

    def probabilities(self, image: FloatArray, prompt: str) -> dict[str, float]:
        """Compute the probability of naming each of the labels that a prompt lists."""
        labels = _labels(prompt)
        shares = self._shares(self.look(image, prompt), labels)
        return dict(zip(labels, shares, strict=True))

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Name a label at random by its probability, or refuse, or say something else."""
        prompt = inquiry.prompt
        mind = self.mind
        decoding = inquiry.decoding
        (image,) = inquiry.images
        labels = _labels(prompt)
        shares = [*self.probabilities(image, prompt).values()]
        # Codes of 8 bits are whole numbers, in process and out of a PNG.
        codes = np.rint(np.asarray(image[..., 0]) * 65535).astype(np.uint16)
        pixels = hashlib.sha256(codes.tobytes()).hexdigest()
        mood, choice, phrase = uniform(3, mind.seed, pixels, prompt, decoding.seed)
        kind = "answer"
        if mood < mind.refusal + mind.unparsed:
            kind = "refusal" if mood < mind.refusal else "unparsed"
        index = draw_answer(shares, 1.0, choice)
        text = reply(kind, index, labels, phrase, False)
        text, finish, tokens_out = cut(text, decoding.max_tokens)
        listed = None
        if decoding.logprobs:
            listed = first_tokens(kind, shares, labels, mind.answer_mass)
        return Answer(
            text,
            listed,
            complete=listed is not None,
            finish=finish,
            tokens_in=len(tokens(f"{inquiry.system} {prompt}")),
            tokens_out=tokens_out,
            model=self.card.name,
            server=f"simulated-{self.card.digest[:12]}",
        )

    def _shrink(self, image: FloatArray) -> FloatArray:
        """Shrink an image to the largest side that is looked at; return it by its planes."""
        planes = np.asarray(ImagePlanes.of(np.asarray(image)).planes)
        height, width = planes.shape[:2]
        side = self.mind.max_side
        if side and side < max(height, width):
            from PIL import Image

            scale = side / max(height, width)
            size = max(1, round(scale * width)), max(1, round(scale * height))
            planes = np.stack(
                [
                    np.asarray(
                        Image.fromarray(plane.astype(np.float32)).resize(
                            size, Image.Resampling.BILINEAR
                        )
                    )
                    for plane in np.moveaxis(planes, -1, 0)
                ],
                axis=-1,
            )
        return planes

    def _look(self, planes: FloatArray, shapes: Sequence[_Shape]) -> Sight:
        """Find the letter and its flankers in an image (H, W, channels) of drive."""
        from scipy import ndimage

        nothing = Sight(-1, 0.0, 0.0, math.inf)
        first = planes[..., 0]
        step = math.ceil(max(first.shape) / 256)
        change = abs(first - np.median(first[::step, ::step]))
        ink = np.argwhere(change > max(change.max() / 4, 1e-6))
        if not len(ink):
            return nothing
        # Around the ink, so that large images take no longer.
        margin = _MARGIN + int(np.ptp(ink, axis=0).max()) // 4
        top, left = np.maximum(ink.min(axis=0) - margin, 0)
        bottom, right = ink.max(axis=0) + margin + 1
        drive = planes[top:bottom, left:right]
        weights = _WEIGHTS if drive.shape[-1] == 3 else np.ones(1)
        light = np.asarray(light_of_drive(drive, self._eotf) @ weights)
        smooth = ndimage.gaussian_filter(light, _BLUR)
        ground = np.median(smooth)
        change = abs(smooth - ground)
        noise = 1.4826 * float(np.median(change))
        mask = change > max(_INK * change.max(), _LEAST_SIGNAL * noise)
        components, count = ndimage.label(mask, np.ones((3, 3)))
        if not count:
            return nothing
        boxes = ndimage.find_objects(components)
        middles = np.array(
            [[(part.start + part.stop - 1) / 2 for part in box] for box in boxes]
        )
        centre = (np.array(first.shape) - 1) / 2 - (top, left)
        distances = np.hypot(*(middles - centre).T)
        target = int(distances.argmin())
        rows, columns = boxes[target]
        others = np.delete(middles, target, axis=0) - middles[target]
        gap = float(np.hypot(*others.T).min()) if len(others) else math.inf
        sides = [
            slice(max(side.start - _BESIDE, 0), side.stop + _BESIDE)
            for side in (rows, columns)
        ]
        if columns.stop - columns.start > _TOUCHING * (rows.stop - rows.start):
            return nothing
        window = np.zeros(light.shape, bool)
        window[tuple(sides)] = True
        beside = ~ndimage.binary_dilation(mask, iterations=_BESIDE)
        level = light[beside].mean() if beside.any() else ground
        window &= ndimage.binary_dilation(mask & window, iterations=_BESIDE)
        if not level > 0:
            return nothing
        signal = np.where(window, light / level - 1, 0.0)
        return _match(signal, shapes, gap)

    def _shares(self, sight: Sight, labels: tuple[str, ...]) -> list[float]:
        """Compute the probability of naming each label, given what is seen."""
        mind = self.mind
        equal = 1 / len(labels)
        if sight.label < 0:
            weights = [mind.bias.get(label, 1.0) for label in labels]
            seen = 0.0
        else:
            shown = labels[sight.label]
            weights = [
                mind.bias.get(label, 1.0) * self._similarity(shown, label)
                for label in labels
            ]
            height = mind.letter_px * sight.contrast**-mind.size_by_contrast
            seen = _weibull(sight.height / height, mind.slope)
            if mind.contrast:
                seen *= _weibull(sight.contrast / mind.contrast, mind.slope)
            if mind.crowding:
                seen *= _weibull(sight.spacing / mind.crowding, mind.slope)
        total = sum(weights) or 1.0
        return [
            mind.lapse * equal
            + (1 - mind.lapse)
            * (seen * (i == sight.label) + (1 - seen) * weight / total)
            for i, weight in enumerate(weights)
        ]

    def _similarity(self, shown: str, label: str) -> float:
        """Return how readily one label is guessed for another."""
        pair = self.mind.similarity
        return pair.get(f"{shown} {label}", pair.get(f"{label} {shown}", 1.0))


def _weibull(level: float, slope: float) -> float:
    """Compute the share that is seen at a level in units of the threshold."""
    return -math.expm1(-math.log(2) * min(level, 1e3) ** slope)


class _Shape(NamedTuple):
    """A letter as it may be shown: its outlines and what they weigh."""

    #: In heights of the letter, from the middle of its frame.
    outlines: tuple[Outline, ...]
    #: Area, and second moment about the centroid, in heights².
    area: float
    moment: float
    centroid: complex

    def draw(self, height: float, centroid: complex, shape: Size) -> FloatArray:
        """Draw the letter with its centroid at a place, px from the middle of an image."""
        middle = centroid - height * self.centroid
        return coverage([height * outline + middle for outline in self.outlines], shape)


@cache
def _shape(name: str, angle: int) -> _Shape:
    """Build a letter, turned by an angle, deg; "font" before a name is the font of psyprobe."""
    if name.startswith("font"):
        font = stamp_of(catalogue_folder("stimuli") / "capitals.ttf")
        outlines = glyph_outlines(font, name.removeprefix("font"))
    else:
        outlines = letter_outlines(name)
    turn = np.exp(1j * np.radians(angle)) / _STROKES
    outlines = tuple(turn * outline for outline in outlines)
    side = 2 * _LARGE
    ink = coverage([_LARGE * outline for outline in outlines], (side, side))
    centroid, moment = _moments(ink)
    moment = (moment - _PIXEL_VARIANCE) / _LARGE**2
    return _Shape(outlines, area(outlines), moment, centroid / _LARGE)


def _moments(ink: FloatArray) -> tuple[complex, float]:
    """Compute the centroid, px right and up of the middle, and the second moment about it, px²."""
    height, width = ink.shape
    x = np.arange(width) - (width - 1) / 2
    y = (height - 1) / 2 - np.arange(height)
    place = x + 1j * y[:, None]
    total = ink.sum()
    centroid = complex((ink * place).sum() / total)
    return centroid, float((ink * abs(place - centroid) ** 2).sum() / total)


def _match(signal: FloatArray, shapes: Sequence[_Shape], gap: float) -> Sight:
    """Find the template that correlates best with contrast in a window around a letter."""
    nothing = Sight(-1, 0.0, 0.0, math.inf)
    if not signal.sum():
        return nothing
    centroid, moment = _moments(signal)
    if not moment > _PIXEL_VARIANCE:
        return nothing
    best = -math.inf
    sight = nothing
    for index, shape in enumerate(shapes):
        height = math.sqrt((moment - _PIXEL_VARIANCE) / shape.moment)
        template = shape.draw(height, centroid, signal.shape)
        power = float((template**2).sum())
        overlap = abs(float((template * signal).sum()))
        if power and overlap**2 / power > best:
            best = overlap**2 / power
            sight = Sight(index, height, overlap / power, gap / height)
    return sight


def _labels(prompt: str) -> tuple[str, ...]:
    """Read the labels that a prompt lists, in their order."""
    match = _OPTIONS.search(prompt)
    labels = tuple(match[1].split(", ")) if match else ()
    if len(labels) < 2:
        raise InputError(
            "simulated:letters names one of the labels that a prompt lists, as in 'Which letter "
            f"is shown: C, O, K?', and this lists none: {prompt[:80]!r}"
        )
    return labels


def _shapes(prompt: str, labels: tuple[str, ...]) -> list[_Shape]:
    """Choose the letters that labels stand for: letters, or directions of a ring or an E."""
    if all(len(label) == 1 for label in labels):
        prefix = "" if {*labels} <= {*SLOAN} else "font"
        return [_shape(prefix + label, 0) for label in labels]
    name = "C" if "ring" in prompt else "E"
    shapes = []
    for label in labels:
        words = label.split()
        if not {*words} <= {*_ANGLES}:
            raise InputError(
                "simulated:letters knows letters, and directions such as right and upper left, "
                f"and no {label!r}"
            )
        directions = [np.exp(1j * np.radians(_ANGLES[word])) for word in words]
        angle = round(float(np.degrees(np.angle(np.sum(directions)))))
        shapes.append(_shape(name, angle))
    return shapes
