"""Measure at which size a served model sees images: ``psyprobe ask --calibrate letters``.

A letter is shown in the middle of square images that are otherwise empty, and named. While nothing
is resized its height at threshold is the same in images of any side; above a limit it grows with
the side. The break is the limit, whatever the model's acuity is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.identification.replies import read_label
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
from psyprobe.probes.designs.adaptive import QuestPlus
from psyprobe.probes.designs.protocol import Level
from psyprobe.stimulus.coverage import coverage
from psyprobe.stimulus.kinds.letters import SLOAN, letter_outlines

QUESTION = (
    "Which of these letters is shown in the image: {options}? Answer with one letter."
)
#: Sides of the images, px.
SIDES = (256, 384, 512, 768, 1024, 1536, 2048)
#: Heights of letters that may be shown, px.
HEIGHTS: tuple[float, ...] = tuple(np.geomspace(4, 160, 33).tolist())
#: Reach in px of the random place of a letter, and questions that are put at once.
_JITTER = 4.0
_AT_ONCE = 8
_STROKES = 5
#: Fewest questions a side.
_FEWEST = 10
#: Grids of the fit: log10 height at threshold (px), exponent and lapse rate of the Weibull
#: function, step of log10 limit, and exponents of a growth with the side that is no limit.
_THRESHOLDS = np.linspace(math.log10(3), math.log10(200), 92)
_SLOPES = np.array([1.5, 2.5, 4.0, 6.0])
_LAPSES = np.array([0.01, 0.05, 0.15])
_STEP = 0.01
_GROWTHS = np.linspace(0.1, 0.9, 9)
#: Probability below which "no limit" is excluded, and evidence by which another form is preferred.
_EXCLUDED = 0.05
_PREFERRED = 10.0
#: How much the filter by which a server shrinks may move the limit.
_FILTERS = 1.05
#: Share of replies without a label from which the result is doubted.
_UNREAD = 0.05
_DECODING = Decoding(max_tokens=64, logprobs=False)

#: Remarks on what answers cannot tell.
CANNOT_TELL = (
    "- Who shrinks: the server, or the model's own processor; the smaller of the two is found.",
    "- The exact side: filters of resizing move it, so that it is good to about 10 %.",
    "- Images of other shapes, which may be limited by their pixels or tokens and not by a side.",
    "- Models that cut images into tiles, or see less of large images for other reasons: then no "
    "side is given.",
)


@dataclass(frozen=True)
class SideThreshold:
    """The answers to letters in images of one side.

    Parameters
    ----------
    side : int
        Side of the images, px.
    answered, correct : int
        Replies that name a letter, and that name the right one.
    height, low, high : float
        Height of letters at threshold, px of the image as sent, and its 95 % interval.
    """

    side: int
    answered: int
    correct: int
    height: float
    low: float
    high: float


@dataclass(frozen=True)
class ServedSize:
    """The result of `measure_served_size`.

    Parameters
    ----------
    observer : str
        Name of the observer.
    sides : tuple of SideThreshold
        Thresholds by the side of the image.
    limit, low, high : float or None
        Side, px, to which larger images are shrunk, and its 95 % interval, which allows for
        different filters; None where there is none, or none can be told.
    unlimited_up_to : int or None
        The largest side, px, up to which no limit was found; None where one was, or none can be
        told.
    finding : str
        What this means, as a sentence.
    spent : mapping
        Answers, tokens and cost, as `TotalCost` has them.
    """

    observer: str
    sides: tuple[SideThreshold, ...]
    limit: float | None
    low: float | None
    high: float | None
    unlimited_up_to: int | None
    finding: str
    spent: JsonObject

    def to_dict(self) -> JsonObject:
        """Return the result as JSON values."""
        return {
            **vars(self),
            "sides": [vars(side) for side in self.sides],
            "cannot_tell": CANNOT_TELL,
        }

    def __str__(self) -> str:
        rows = [["image", "right", "of", "letter at threshold", "95 % interval"]]
        rows += [
            [
                f"{side.side} px",
                str(side.correct),
                str(side.answered),
                f"{side.height:.3g} px",
                f"{side.low:.3g} to {side.high:.3g} px",
            ]
            for side in self.sides
        ]
        lines = ["", self.finding, "", "What this cannot tell:", *CANNOT_TELL]
        return lay_out("text", rows, lines)


def measure_served_size(
    observer: AnswerObserver,
    trials: int = 40,
    *,
    sides: Sequence[int] = SIDES,
    seed: int = 0,
    decoding: Decoding = _DECODING,
    progress: bool | None = None,
) -> ServedSize:
    """Measure at which side an observer sees images, by the acuity for letters over their side.

    Parameters
    ----------
    observer : AnswerObserver
        The observer to ask, without an input size.
    trials : int
        Questions a side, at least 10; heights are chosen by QUEST+.
    sides : sequence of int
        Sides of the square images, px, at least 256, ascending.
    seed : int
        Seed of letters, places and the order of options.
    decoding : Decoding
        How answers are drawn.
    progress : bool, optional
        Whether to show a bar; by default on a terminal and in a notebook.

    Raises
    ------
    InputError
        Too few trials or sides.

    Examples
    --------
    >>> import psyprobe as pp
    >>> reader = pp.load_observer("simulated:letters", max_side=320)
    >>> found = measure_served_size(reader, sides=(256, 768))
    >>> found.low < 320 < found.high
    True
    """
    if trials < _FEWEST or len(sides) < 2 or sides[0] < SIDES[0]:
        raise InputError(
            f"there are {trials} trials a side and sides of {list(sides)} px; give at least "
            f"{_FEWEST} trials and two sides of {SIDES[0]} px or more"
        )
    chance = 1 / len(SLOAN)
    design = QuestPlus(
        sides,
        HEIGHTS,
        chance=chance,
        n_max=trials,
        stop=0,
        function="weibull",
        seed=seed,
    )
    total_cost = TotalCost()
    answered: Counter[tuple[float, float]] = Counter()
    correct: Counter[tuple[float, float]] = Counter()
    count = 0
    with progress_bar(trials * len(sides), progress, "question") as bar:
        while levels := design.ask(_AT_ONCE):
            inquiries = _inquiries(levels, count, seed, decoding)
            count += len(levels)
            for inquiry, answer in ask_all(observer, inquiries):
                name, place = inquiry.key.split()
                level = levels[int(place)]
                label = read_label(answer.text, SLOAN)
                is_read = label in (*SLOAN, "outside")
                if is_read:
                    answered[level.value, level.contrast] += 1
                    correct[level.value, level.contrast] += label == name
                design.tell(level, float(label == name) if is_read else None)
                total_cost.add(answer.to_dict())
                bar.update()
    thresholds = tuple(
        _side_threshold(design, place, side, answered, correct)
        for place, side in enumerate(sides)
    )
    fit = _fit(sides, answered, correct, chance)
    finding = _finding(fit, thresholds)
    unread = count - answered.total()
    if unread > _UNREAD * count:
        finding = f"{unread} of {count} replies name no letter. {finding}"
    return ServedSize(
        observer.card.name,
        thresholds,
        *fit.limits,
        None if fit.limits[0] or not fit.is_unlimited else sides[-1],
        finding,
        total_cost.to_dict(),
    )


def _inquiries(
    levels: Sequence[Level], count: int, seed: int, decoding: Decoding
) -> Iterator[Inquiry]:
    """Iterate over the questions about letters in images; keys are "LETTER PLACE"."""
    for place, level in enumerate(levels):
        rng = np.random.default_rng([seed, count + place])
        name = SLOAN[rng.integers(len(SLOAN))]
        x, y = rng.uniform(-_JITTER, _JITTER, 2)
        side = int(level.value)
        middle = x + 1j * y
        stroke = level.contrast / _STROKES
        outlines = [stroke * outline + middle for outline in letter_outlines(name)]
        # Only the part with the letter is drawn.
        part = math.ceil(level.contrast + 2 * _JITTER) // 2 * 2 + side % 2
        ink = np.pad(coverage(outlines, (part, part)), (side - part) // 2)
        codes = np.rint(128 * (1 - ink))
        plane = (codes / 255).astype(np.float32)[..., None]
        image: FloatArray = np.broadcast_to(plane, (side, side, 3))
        options = ", ".join(SLOAN[i] for i in rng.permutation(len(SLOAN)))
        yield Inquiry(
            QUESTION.format(options=options),
            (image,),
            decoding=decoding,
            words=SLOAN,
            key=f"{name} {place}",
        )


def _side_threshold(
    design: QuestPlus,
    place: int,
    side: int,
    answered: Mapping[tuple[float, float], int],
    correct: Mapping[tuple[float, float], int],
) -> SideThreshold:
    """Read the threshold of one side off the design's posterior."""
    low, high = design.posterior.interval(place)
    keys = [key for key in answered if key[0] == side]
    return SideThreshold(
        side,
        sum(answered[key] for key in keys),
        sum(correct[key] for key in keys),
        float(10 ** design.posterior.mean(place)),
        float(10**low),
        float(10**high),
    )


@dataclass(frozen=True)
class _Fit:
    """What the answers say of a limit: its best value and interval, or that there is none."""

    limits: tuple[float | None, float | None, float | None]
    #: Whether thresholds do not depend on the side, as far as can be told.
    is_unlimited: bool
    #: Whether thresholds grow with the side as no single limit lets them.
    is_other: bool


def _fit(
    sides: Sequence[int],
    answered: Mapping[tuple[float, float], int],
    correct: Mapping[tuple[float, float], int],
    chance: float,
) -> _Fit:
    """Fit one acuity and one limit to all answers, with slope and lapses unknown."""
    keys = sorted(answered)
    side = np.log10([key[0] for key in keys])
    height = np.log10([key[1] for key in keys])
    right = np.array([correct[key] for key in keys], float)
    wrong = np.array([answered[key] for key in keys], float) - right

    def evidence(growth: FloatArray) -> float:
        """Average the likelihood over acuity, slope and lapses, as a logarithm."""
        x = height - growth - _THRESHOLDS[:, None]
        logs = []
        for slope in _SLOPES:
            seen = 1 - 0.5 ** (10 ** (slope * np.clip(x, -3, 1.5)))
            for lapse in _LAPSES:
                p = lapse * chance + (1 - lapse) * (chance + (1 - chance) * seen)
                logs.append((right * np.log(p) + wrong * np.log(1 - p)).sum(axis=1))
        return float(np.logaddexp.reduce(np.array(logs), axis=None))

    lowest = math.log10(sides[0])
    highest = math.log10(sides[-1])
    grid = np.arange(lowest, highest, _STEP)
    limited = np.array([evidence(np.maximum(side - limit, 0)) for limit in grid])
    unlimited = evidence(np.zeros_like(side))
    growing = [evidence(growth * (side - lowest)) for growth in _GROWTHS]
    limited_evidence = np.logaddexp.reduce(limited) - math.log(len(grid))
    other_evidence = np.logaddexp.reduce(growing) - math.log(len(growing))
    simple_evidence = np.logaddexp(limited_evidence, unlimited) - math.log(2)
    is_other = bool(other_evidence - simple_evidence > math.log(_PREFERRED))
    p_unlimited = math.exp(unlimited - np.logaddexp(limited_evidence, unlimited))
    if is_other or p_unlimited > _EXCLUDED:
        return _Fit((None, None, None), p_unlimited > 0.5 and not is_other, is_other)
    mass = np.exp(limited - limited.max()).cumsum()
    low, middle, high = np.interp(np.array([0.025, 0.5, 0.975]) * mass[-1], mass, grid)
    return _Fit(
        (float(10**middle), float(10**low / _FILTERS), float(10**high * _FILTERS)),
        False,
        False,
    )


def _finding(fit: _Fit, sides: Sequence[SideThreshold]) -> str:
    """Say in a sentence at which size images are looked at."""
    first = sides[0]
    last = sides[-1]
    limit, low, high = fit.limits
    if limit is not None and low is not None and high is not None:
        return (
            f"Letters in an image of {last.side} px need {last.height:.3g} px where "
            f"{first.height:.3g} px are enough in one of {first.side} px: it is looked at as about "
            f"{limit:.0f} px ({low:.0f} to {high:.0f})."
        )
    if fit.is_other:
        return (
            "Letters must be larger in larger images, but not as one limit of the side has it: no "
            "side can be told (tiles, tokens or attention)."
        )
    if fit.is_unlimited:
        return (
            f"Letters of about {first.height:.3g} px are enough in images of any side: no limit up "
            f"to {last.side} px."
        )
    return (
        "Whether there is a limit cannot be told from so few answers; give more trials."
    )
