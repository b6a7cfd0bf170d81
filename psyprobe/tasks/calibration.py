"""Measure how a server resizes and compresses images, by its answers: ``psyprobe ask --calibrate``.

Stripes are shown in grades of fineness and contrast, and the observer says whether they are nearer
to vertical or to horizontal. They have slope 2:1, so that the finer axis passes the limit of
sampling first and its alias has the other direction: sampled at side M, stripes on an image of side
S are told rightly while 2 S / (M period) is below 2 / (cos + sin) = 1.49 (less where smoothing
leaves too little to see), and wrongly over the whole octave beyond wherever anything of them is
seen. Right answers thus show that M is at least 2 S / (1.49 period), however it is smoothed, and
going on by octaves from the coarsest is not misled by aliases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import ByteArray, FloatArray
from psyprobe.analysis.intervals import bounded_interval
from psyprobe.analysis.words.reply import read_reply
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import lay_out, progress_bar
from psyprobe.observers.chat.protocol import (
    AnswerObserver,
    Decoding,
    Inquiry,
    TotalCost,
    ask_all,
)

if TYPE_CHECKING:
    import pandas as pd

QUESTION = (
    "The image shows stripes. Are they nearer to vertical or to horizontal? Answer with "
    "vertical or horizontal."
)
#: Side of the image whose resizing is measured, px.
SIDE = 1344
#: Sides of a model's input, px, that the first grades tell apart, and steps from one to the next.
OCTAVES = (52, 104, 208, 416, 832)
STEPS = 4
#: Periods of stripes of colour, px: halving the resolution of colour reverses or loses the last.
COLOUR_PERIODS = (8.0, 4.0, 2.0)
#: Contrasts of faint stripes, codes of 255 from trough to crest, and their period, px: that of a
#: block of JPEG.
CODES = (32, 8, 4, 3, 2, 1)
FAINT_PERIOD = 8.0
#: A grade is told (or reversed) where so many right (or wrong) answers have at most this
#: probability by guessing.
CHANCE = 0.01
#: Least number of trials that can be told from guessing.
FEWEST = math.ceil(math.log2(1 / CHANCE))
#: Unit vector across vertical stripes (columns, rows), and the highest frequency told rightly, in
#: units of Nyquist's.
_ACROSS = (2 / math.sqrt(5), 1 / math.sqrt(5))
_LIMIT = 2 / sum(_ACROSS)
#: Codes of red, green and blue for one of Cr (ITU-R BT.601).
_RED_GREEN = np.array([1.402, -0.299 / 0.587 * 1.402, 0.0])
#: The largest disc of the grades of colour and contrast, px.
_MAX_DIAMETER = 416
_DECODING = Decoding(max_tokens=64, logprobs=False)


@dataclass(frozen=True)
class Stripes:
    """A disc of sinusoidal stripes on grey.

    Parameters
    ----------
    side : int
        Side of the image, px.
    diameter : int
        Diameter of the disc, px.
    period : float
        Period across the stripes, px.
    codes : int
        Contrast from trough to crest in the middle, 1 to 240; for colour in Cr of JPEG (ITU-R
        BT.601), up to 160.
    colour : bool
        Whether stripes are red and green of one luma, as JPEG has it, in place of light and dark.
    """

    side: int
    diameter: int
    period: float
    codes: int
    colour: bool = False

    def __str__(self) -> str:
        kind = "red-green" if self.colour else "grey"
        codes = "1 code" if self.codes == 1 else f"{self.codes} codes"
        return f"{kind} stripes, period {self.period:.3g} px, {codes}, {self.side} px image"


def draw(stripes: Stripes, vertical: bool, seed: int) -> ByteArray:
    """Draw stripes leaning left or right of vertical or horizontal, with a random phase.

    Parameters
    ----------
    stripes : Stripes
        The stripes to draw.
    vertical : bool
        Whether they are nearer to vertical, with slope 2:1; else nearer to horizontal.
    seed : int
        Seed of phase and lean.

    Returns
    -------
    array, shape (side, side, 3), uint8
        Grey is a read-only view of one plane.

    Examples
    --------
    >>> image = draw(Stripes(64, 64, 8.0, codes=4), vertical=True, seed=0)
    >>> image.shape, sorted({int(code) for code in image.flat})
    ((64, 64, 3), [126, 127, 128, 129, 130])
    """
    rng = np.random.default_rng(seed)
    phase = 2 * math.pi * rng.random()
    lean = 1 if rng.random() < 0.5 else -1
    offsets = np.arange(stripes.diameter) - (stripes.diameter - 1) / 2
    x = offsets[None, :]
    y = offsets[:, None]
    fine, coarse = (x, y) if vertical else (y, x)
    # Soft from half of the radius on: a sharp edge has a direction of its own that outlives the
    # stripes.
    edge = (
        np.cos(math.pi * np.clip(2 * np.hypot(x, y) / stripes.diameter - 0.5, 0, 0.5))
        ** 2
    )
    position = _ACROSS[0] * fine + lean * _ACROSS[1] * coarse
    wave = edge * np.sin(2 * math.pi / stripes.period * position + phase)
    # An odd number of codes has no middle code: rounding goes to the even one, 128 or 130 or so,
    # all around.
    middle = 128 - stripes.codes // 2 + stripes.codes / 2
    channels = _RED_GREEN if stripes.colour else np.ones(1)
    disc = np.rint(middle + stripes.codes / 2 * wave[..., None] * channels).astype(
        np.uint8
    )
    before = (stripes.side - stripes.diameter) // 2
    after = stripes.side - stripes.diameter - before
    margins = ((before, after), (before, after), (0, 0))
    image = np.pad(disc, margins, constant_values=int(np.rint(middle)))
    return np.broadcast_to(image, (stripes.side, stripes.side, 3))


@dataclass(frozen=True)
class Grade:
    """The answers to one grade of stripes."""

    stripes: Stripes
    trials: int
    #: Answers that named the direction, and those that named the other one; the rest named none.
    right: int
    wrong: int

    @property
    def is_told(self) -> bool:
        """Tell whether the stripes' direction is named rightly more often than by guessing."""
        return _tail(self.right, self.trials) <= CHANCE

    @property
    def is_reversed(self) -> bool:
        """Tell whether the stripes' direction is named wrongly more often than by guessing."""
        return _tail(self.wrong, self.trials) <= CHANCE

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share of right answers."""
        share = self.right / self.trials
        error = math.sqrt(share * (1 - share) / self.trials)
        return bounded_interval(share, error, self.trials, 0.95)

    @property
    def verdict(self) -> str:
        """The verdict on the stripes: "told", "reversed" or "not told"."""
        return (
            "told" if self.is_told else "reversed" if self.is_reversed else "not told"
        )


def _tail(count: int, trials: int) -> float:
    """Compute the probability of at least so many answers of one kind by guessing between two."""
    from scipy.special import bdtrc

    return float(bdtrc(count - 1, trials, 0.5))


@dataclass(frozen=True)
class Calibration:
    """The result of `calibrate`: what a server does to an observer's images.

    Parameters
    ----------
    observer : str
        Name of the observer.
    grades : tuple of Grade
        Grades in the order in which they were shown.
    at_least, below : int or None
        Bounds of the side, px, to which an image of `SIDE` is resized; None where there is none.
    findings : tuple of str
        Sentences, each of which is a bound.
    spent : mapping
        Answers, tokens and cost, as `TotalCost` has them.
    """

    observer: str
    grades: tuple[Grade, ...]
    at_least: int | None
    below: int | None
    findings: tuple[str, ...]
    spent: JsonObject

    def to_dict(self) -> JsonObject:
        """Return the calibration as JSON values."""
        return {
            **vars(self),
            "side": SIDE,
            "cannot_tell": CANNOT_TELL,
            "grades": [
                {
                    **vars(grade.stripes),
                    "trials": grade.trials,
                    "right": grade.right,
                    "wrong": grade.wrong,
                    "interval": grade.interval,
                    "verdict": grade.verdict,
                }
                for grade in self.grades
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """Convert the calibration to a pandas table: how often each stripes were told right."""
        import pandas as pd

        return pd.DataFrame(self.to_dict()["grades"])

    def __str__(self) -> str:
        rows = [["shown", "right", "of", "95 % interval", "stripes are"]]
        for grade in self.grades:
            low, high = grade.interval
            counts = [str(grade.right), str(grade.trials)]
            rows.append(
                [str(grade.stripes), *counts, f"{low:.2f} to {high:.2f}", grade.verdict]
            )
        lines = [
            "",
            "Found:",
            *self.findings,
            "",
            "What this cannot tell:",
            *CANNOT_TELL,
        ]
        return lay_out("text", rows, lines)


#: Remarks on what answers cannot tell.
CANNOT_TELL = (
    "- Whether stripes are lost on the way or by the eye: a model that does not see fine, "
    "coloured or faint stripes looks like one that is served less of the image, so only what is "
    "told is certain.",
    "- Tiles: a model that looks at an image in pieces, or twice at two sizes, is found at its "
    "finest.",
    "- Images of other sizes and shapes: a server may resize those otherwise; sides hold for "
    f"images of {SIDE} x {SIDE} px. JPEG after smaller images were enlarged spares fine colour "
    "and faint stripes, and is not found.",
)


def most_questions(trials: int) -> int:
    """Compute the largest number of questions that `calibrate` asks.

    Parameters
    ----------
    trials : int
        As for `calibrate`.

    Examples
    --------
    >>> most_questions(20)
    340
    """
    bisections = int(math.log2(STEPS))
    return trials * (len(OCTAVES) + bisections + len(COLOUR_PERIODS) + 1 + len(CODES))


def calibrate(
    observer: AnswerObserver,
    trials: int = 20,
    *,
    seed: int = 0,
    decoding: Decoding = _DECODING,
    progress: bool | None = None,
) -> Calibration:
    """Measure how a server resizes and compresses images, by stripes whose direction it names.

    Three series go from the coarsest grade to the first that is not told: fine grey stripes on an
    image of `SIDE`, for resizing; red-green ones at a size that resizing leaves alone, for JPEG's
    halved resolution of colour, with grey ones of the finest period beside them; and faint ones,
    for its quantisation.

    Parameters
    ----------
    observer : AnswerObserver
        The observer to ask, without an input size.
    trials : int
        Questions a grade, each with a direction, phase and lean of its own, at least `FEWEST`. An
        observer that guesses passes a grade with a probability of at most `CHANCE` (0.6 % at 20).
    seed : int
        Seed of the images.
    decoding : Decoding
        How answers are drawn.
    progress : bool, optional
        Whether to show a bar; by default on a terminal and in a notebook.

    Raises
    ------
    InputError
        Too few trials, or an observer that answers no question about an image of any size.

    Examples
    --------
    >>> import psyprobe as pp
    >>> from PIL import Image
    >>> def reader(images, prompt):
    ...     codes = np.rint(255 * images[0]).astype("uint8")
    ...     light = np.asarray(Image.fromarray(codes).resize((90, 90)), float)
    ...     across, down = (np.square(np.diff(light, axis=axis)).mean() for axis in (1, 0))
    ...     return "Vertical" if across > down else "Horizontal"
    >>> found = calibrate(pp.observer(reader, bits=8), trials=7)
    >>> found.at_least, found.below
    (87, 104)
    """
    check_calibrated(observer, trials)
    with progress_bar(most_questions(trials), progress, "question") as bar:
        test = _StripeTest(observer, trials, seed, decoding, bar)
        at_least, below, findings = _resizing(test)
        if at_least is not None:
            findings += [_colour(test, at_least), _contrast(test, at_least)]
    return Calibration(
        observer.card.name,
        tuple(test.grades),
        at_least,
        below,
        tuple(findings),
        test.total_cost.to_dict(),
    )


def check_calibrated(observer: AnswerObserver, trials: int) -> None:
    """Refuse an observer that `calibrate` cannot ask, or too few trials."""
    if trials < FEWEST:
        raise InputError(
            f"{trials} trials a grade cannot be told from guessing; give at least {FEWEST}, 20 "
            "is usual"
        )
    card = observer.card
    if card.ability != "answer":
        raise InputError(
            f"{card.name} does not answer in words; name an observer that does, such as "
            "openai:MODEL at your server"
        )
    if card.input_size is not None:
        rows, columns = card.input_size
        raise InputError(
            f"{card.name} is shown images of {rows} x {columns} px; calibration finds out at "
            "which size a model looks, so leave input_size out, or name a model behind a server"
        )


@dataclass(frozen=True)
class _StripeTest:
    """Asks an observer about grades of stripes, and collects the grades and their cost."""

    observer: AnswerObserver
    trials: int
    seed: int
    decoding: Decoding
    bar: Any
    grades: list[Grade] = field(default_factory=list)
    total_cost: TotalCost = field(default_factory=TotalCost)

    def grade(self, stripes: Stripes) -> Grade:
        """Ask about stripes of one fineness in all trials, and count right answers."""
        counts = {True: 0, False: 0}
        for inquiry, answer in ask_all(self.observer, self._inquiries(stripes)):
            reading = read_reply(answer.text, yes=("vertical",), no=("horizontal",))
            if reading in ("yes", "no"):
                counts[reading == inquiry.key] += 1
            self.total_cost.add(answer.to_dict())
            self.bar.update()
        grade = Grade(stripes, self.trials, counts[True], counts[False])
        self.grades.append(grade)
        return grade

    def _inquiries(self, stripes: Stripes) -> Iterator[Inquiry]:
        """Iterate over the questions about stripes of one grade, half of them vertical by lot."""
        rng = np.random.default_rng([self.seed, len(self.grades)])
        for _ in range(self.trials):
            vertical = bool(rng.random() < 0.5)
            seed = int(rng.integers(2**32))
            codes = draw(stripes, vertical, seed)
            # Grey stays a view of one plane, which costs a third.
            planes = codes if stripes.colour else codes[..., :1]
            image: FloatArray = np.broadcast_to(planes / np.float32(255), codes.shape)
            key = "yes" if vertical else "no"
            yield Inquiry(
                QUESTION,
                (image,),
                decoding=self.decoding,
                words=("vertical", "horizontal"),
                key=key,
            )


def _for_side(side: float) -> Stripes:
    """Build the finest stripes that a model with an input of this side, px, can tell."""
    return Stripes(SIDE, SIDE // 2, 2 * SIDE / (_LIMIT * side), 240)


def _resizing(test: _StripeTest) -> tuple[int | None, int | None, list[str]]:
    """Measure the bounds of the side to which a server resizes images, and describe them."""
    count, lost = _ask_series(test, list(map(_for_side, OCTAVES)))
    if not count:
        finding = "- It does not answer the easy ones: nothing can be told of what the server does."
        return None, None, [finding]
    lowest_side = OCTAVES[count - 1]
    if lost is None:
        finding = (
            f"- An image of {SIDE} px on the side is looked at as {lowest_side} px or more: "
            "input_size can be that."
        )
        return lowest_side, None, [finding]
    is_reversed = lost.is_reversed
    low_step = 0
    high_step = STEPS
    while high_step - low_step > 1:
        step = (low_step + high_step) // 2
        grade = test.grade(_for_side(lowest_side * 2 ** (step / STEPS)))
        is_reversed = is_reversed or grade.is_reversed
        if grade.is_told:
            low_step = step
        else:
            high_step = step
    at_least = math.floor(lowest_side * 2 ** (low_step / STEPS))
    below = math.ceil(lowest_side * 2 ** (high_step / STEPS))
    upper_bound = (
        f"; finer stripes are not told: it is resized to less than about {below} px, or the eye "
        "is no finer"
    )
    if is_reversed:
        upper_bound = (
            f", and less than about {below} px: finer stripes are named wrongly, as "
            "aliases are"
        )
    finding = (
        f"- An image of {SIDE} px on the side is looked at as {at_least} px or more{upper_bound}. "
        f"Set input_size={at_least}."
    )
    return at_least, below, [finding]


def _ask_series(
    test: _StripeTest, series: Sequence[Stripes]
) -> tuple[int, Grade | None]:
    """Ask about finer and finer stripes, and count those told before the first that is not."""
    for count, stripes in enumerate(series):
        grade = test.grade(stripes)
        if not grade.is_told:
            return count, grade
    return len(series), None


def _colour(test: _StripeTest, side: int) -> str:
    """Measure whether a server keeps fine stripes of colour, and describe it."""
    diameter = min(side, _MAX_DIAMETER)
    series = [
        Stripes(side, diameter, period, 120, colour=True) for period in COLOUR_PERIODS
    ]
    count, lost = _ask_series(test, series)
    if not count:
        return (
            "- Red-green stripes are not told even where they are coarse: nothing can be "
            "told of colour."
        )
    if lost is None:
        return (
            f"- Colour is told at the finest period, {COLOUR_PERIODS[-1]:g} px: no JPEG 4:2:0 or "
            "the like halves it."
        )
    period = lost.stripes.period
    if not test.grade(Stripes(side, diameter, period, 120)).is_told:
        return (
            f"- Neither colour nor grey is told at {period:g} px: nothing can be told of "
            "JPEG's halving of colour."
        )
    loss = "named wrongly, as aliases are" if lost.is_reversed else "lost"
    is_finest = period == COLOUR_PERIODS[-1]
    cause = (
        "JPEG 4:2:0 or the like" if is_finest else "more than JPEG 4:2:0, or by the eye"
    )
    return (
        f"- Colour at {period:g} px is {loss}, and told at {COLOUR_PERIODS[count - 1]:g} px, "
        f"while grey is told at {period:g} px: {cause}."
    )


def _contrast(test: _StripeTest, side: int) -> str:
    """Measure the faintest stripes that pass a server's compression, and describe it."""
    diameter = min(side, _MAX_DIAMETER)
    series = [Stripes(side, diameter, FAINT_PERIOD, codes) for codes in CODES]
    count, lost = _ask_series(test, series)
    if not count:
        return f"- Stripes of {CODES[0]} codes are not told: nothing can be told of fainter ones."
    if lost is None:
        return (
            "- Stripes of 1 code are told: nothing coarser than 8 bits, and no JPEG that "
            "loses them."
        )
    faint = "1 code" if lost.stripes.codes == 1 else f"{lost.stripes.codes} codes"
    cause = "lost: by JPEG's quantisation, a coarser rounding, or an eye that sees no fainter ones"
    if lost.is_reversed:
        cause = (
            f"named wrongly: only the means of JPEG's blocks of {FAINT_PERIOD:g} px are left, "
            "whose alias turns"
        )
    return f"- Stripes of {CODES[count - 1]} codes are told, and those of {faint} are {cause}."
