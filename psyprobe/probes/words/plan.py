"""What a run that asks in words means before anything is sent: questions, images, tokens, time and
price.

Beside the design that is chosen, the others stand in a table, with the width of the 95 % interval
of a threshold that each is expected to leave.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.observers.chat.prices import USD, money
from psyprobe.probes import designs
from psyprobe.probes.cost import Expense, Pace, duration, expense, measured_pace
from psyprobe.probes.designs.expected import DESIGNS, DesignConditions, DesignName
from psyprobe.probes.designs.rounds import catch_trials
from psyprobe.probes.displayed_images import spread
from psyprobe.probes.words.prompt_variant import spoken
from psyprobe.running.store import Store
from psyprobe.stimulus.specification import level_of

if TYPE_CHECKING:
    from psyprobe.probes.words.schedule import WordsSchedule

#: Unless tokens were counted: a patch of so many pixels square is one, and so many letters.
_PATCH = 14
_LETTERS = 4
#: Seconds to an answer, unless they were measured.
_LATENCY = 1.0
#: Standard deviation, in codes, of the dither of a uniform field that hides that of patterns.
_LEAST_NOISE = 0.25
#: Standard deviation from image to image of the log odds of an assumed observer.
_LOGIT_SD = 0.5


@dataclass(frozen=True)
class DesignCost:
    """What one design would take."""

    design: str
    #: "p_yes" or "text".
    readout: str
    #: Questions in all, and distinct images; of an adaptive design as expected.
    questions: int
    images: int
    #: About so many, where that is known, and about so long.
    tokens_in: int | None
    tokens_out: int | None
    seconds: float
    #: About so much, in this currency; 0 of a model of one's own, None where no price is known.
    cost: float | None
    currency: str
    #: Expected width of the 95 % interval of a log10 threshold, of one prompt and one level.
    interval_width: float


@dataclass(frozen=True)
class WordsPlan:
    """What running an experiment that asks in words means, before anything is sent."""

    #: Names.
    experiment: str
    observer: str
    #: Wordings of the question.
    prompts: int
    #: What the experiment's design takes, and what other designs and read-outs would take.
    chosen: DesignCost
    others: tuple[DesignCost, ...]
    #: Questions of this run that the store holds already.
    answered: int
    #: Levels that cannot be shown faithfully, and are not asked.
    refused: tuple[str, ...]
    #: What may spoil the measurement.
    remarks: tuple[str, ...]
    #: What is left of it takes.
    left: Expense
    #: From where tokens and seconds are known, as a sentence; and whether they were measured, or
    #: are a guess.
    source: str
    measured: bool
    #: Pixels (H, W) of an image, and pixels per degree.
    size: tuple[int, int]
    ppd: float
    #: Frames of a clip, each an image of a question; of stills 1.
    frames: int

    @property
    def questions(self) -> int:
        """Questions in all."""
        return self.chosen.questions

    @property
    def images(self) -> int:
        """Distinct images."""
        return self.chosen.images

    @property
    def seconds(self) -> float:
        """What is left takes about so long."""
        return self.left.seconds

    def to_dict(self) -> dict[str, Any]:
        """The plan as numbers, text and lists.

        Returns
        -------
        dict
            One entry a field, "questions" and "images".
        """
        return {
            **asdict(self),
            "size": list(self.size),
            "questions": self.questions,
            "images": self.images,
        }

    def _repr_html_(self) -> str:
        from psyprobe.files import html

        return html.preformatted(str(self))

    def __str__(self) -> str:
        height, width = self.size
        what = "images" if self.frames == 1 else f"clips of {self.frames} frames"
        lines = [
            f"{self.experiment} with {self.observer}: {self.questions:,} questions in "
            f"{self.prompts} "
            f"wording{'s' * (self.prompts != 1)} about {self.images:,} distinct {what} of "
            f"{height} x {width} px at "
            f"{self.ppd:.4g} ppd ({height / self.ppd:.3g} x {width / self.ppd:.3g} deg); "
            f"{self.answered:,} are answered.",
            *(f"Not shown: {reason}." for reason in self.refused),
            *(f"Note: {remark}." for remark in self.remarks),
            *([f"Left are {self.left}."] if self.answered else []),
            "",
            *_table([self.chosen, *self.others]),
            "",
            "* chosen; where a model gives no probabilities, the design is asked as text. 95 % "
            "interval: expected",
            "width, log10 contrast, for the threshold of one wording and frequency, if the "
            "psychometric function is",
            f"0.8 wide, guess and lapse rates are 0.02 and log odds scatter by {_LOGIT_SD:g} "
            "from image to image.",
            "Numbers of adaptive designs are expected ones.",
            self.source,
        ]
        return "\n".join(lines)


def words_plan(schedule: WordsSchedule, store: Store, *, timed: bool) -> WordsPlan:
    """What a run of a session would ask that has not begun; nothing is asked, or `timed` one
    question of a server.
    """
    answered, pace = _so_far(schedule, store, timed)
    refused, drawn = refused_levels(schedule)
    levels = len(schedule.experiment.levels[schedule.level]) * len(schedule.contrasts)
    not_asked = round(len(refused) * levels / drawn)
    readout = "text" if schedule.asking.readout == "text" else "p_yes"
    costs = {
        (design, reading): _cost(schedule, design, reading, not_asked, pace)
        for design in DESIGNS
        for reading in ("p_yes", "text")
        # One of them models sensitivity over frequency.
        if (
            design != "quick_csf"
            or (schedule.level == "frequency" and schedule.experiment.difference is None)
        )
        and (design, reading) != ("ladder", "text")
    }
    name: DesignName = schedule.asking.design
    chosen = costs.pop((name, readout), None) or _cost(schedule, name, readout, not_asked, pace)
    known = _pace(schedule, readout, pace)
    left = expense(schedule.observer, known, max(chosen.questions - answered, 0), _sizes(schedule))
    return WordsPlan(
        experiment=schedule.experiment.name,
        observer=schedule.observer.card.name,
        prompts=len(schedule.asking.prompts),
        chosen=chosen,
        others=tuple(costs.values()),
        answered=answered,
        refused=_told(schedule, refused),
        remarks=(*schedule.remarks, *_remarks(schedule), *_of_some(drawn, levels)),
        left=left,
        source=known.source,
        measured=pace is not None,
        size=schedule.scene.spec.shape,
        ppd=schedule.scene.spec.ppd,
        frames=schedule.scene.spec.frames,
    )


def refused_levels(schedule: WordsSchedule) -> tuple[dict[tuple[float, float], str], int]:
    """Levels, by value and contrast, that cannot be shown faithfully to an observer, and why; and
    how many were drawn.

    Of very many levels some are drawn.
    """
    levels = schedule.experiment.levels
    drawn = spread(list(itertools.product(levels[schedule.level], schedule.contrasts)))
    found = {}
    for value, contrast in drawn:
        shown = schedule.scene.shown(value, contrast, 0, 0)
        reason = (
            shown.refused or schedule.scene.draw(shown, schedule.observer.delivered)[1]["refused"]
        )
        if reason:
            found[value, contrast] = reason
    return found, len(drawn)


def _told(schedule: WordsSchedule, refused: Mapping[tuple[float, float], str]) -> tuple[str, ...]:
    """Refused levels in words, those of one value and reason together."""
    unit = level_of(schedule.scene.spec, schedule.level).unit
    name = schedule.axis.name.replace("_", " ")
    alike: dict[tuple[float, str], list[float]] = {}
    for (value, contrast), reason in refused.items():
        alike.setdefault((value, reason), []).append(contrast)
    return tuple(
        f"{value:g} {unit} at "
        + (
            f"{name} {c[0]:.3g}"
            if len(c) == 1
            else f"{len(c)} {name}s from {c[0]:.3g} to {c[-1]:.3g}"
        )
        + f": {reason}"
        for (value, reason), c in alike.items()
    )


def _of_some(drawn: int, levels: int) -> tuple[str, ...]:
    if drawn == levels:
        return ()
    return (
        f"{drawn:,} of {levels:,} levels were drawn to see which can be shown; the number of "
        "questions follows them",
    )


def _remarks(schedule: WordsSchedule) -> tuple[str, ...]:
    clip = schedule.scene.spec
    prompts = schedule.asking.prompts
    if clip.is_clip and not any(spoken(prompt, clip) != prompt.full for prompt in prompts):
        return (
            f"a question shows {schedule.scene.images} frames, and no prompt tells how many come "
            "in a second; "
            "{frames}, {fps} and {seconds} in a prompt stand for the clip's",
            *_dithered(schedule),
        )
    return _dithered(schedule)


def _dithered(schedule: WordsSchedule) -> tuple[str, ...]:
    if schedule.scene.delivery.bits is None or schedule.scene.delivery.dither == "none":
        return ()
    blank = schedule.scene.shown(schedule.experiment.levels[schedule.level][0], 0.0, 0, 0)
    (image, *_), _ = schedule.scene.draw(blank, np.asarray)
    noise = 255 * float(np.std(image))
    if noise >= _LEAST_NOISE:
        return ()
    return (
        f"a uniform field lies on an 8-bit code, where dither adds {noise:.2g} codes of noise, "
        "and to patterns about "
        '0.4: they can be told from it by their dither alone; set delivery.dither to "tpdf", '
        "whose noise is the same "
        "everywhere, or choose a peak of the display that puts the mean halfway between two codes",
    )


def _so_far(schedule: WordsSchedule, store: Store, timed: bool) -> tuple[int, Pace | None]:
    """How many questions are answered, and what one takes: played as far as it goes."""
    who = schedule.observer
    layout = schedule.layout()
    alike = {name: layout[name] for name in ("size", "asking")} | {
        "probe": schedule.experiment.probe
    }
    answered = 0
    replies = []
    known = store.origins(who.card.digest)
    # A round may be of very many questions: it is made only to look for their answers, or to ask
    # one of them.
    batches = first = schedule.next() if known or timed else []
    while batches and known:
        keys = [question.key for batch in batches for question in batch.questions]
        found = store.answers(keys)
        told = [found[key] for key in keys if key in found]
        answered += sum(not each["refused"] for each in told)
        replies += [each["reply"] for each in told if each["reply"] is not None]
        if len(told) < len(keys):
            break
        schedule.tell(found)
        batches = schedule.next()
    put = schedule.probe.answer if timed else None
    return answered, measured_pace(store, who, replies, alike, put, first)


def _pace(schedule: WordsSchedule, readout: str, measured: Pace | None) -> Pace:
    """What one question takes on average, where of some the first token alone is wanted."""
    pace = measured or _guess(schedule)
    if not pace.whole_text or pace.tokens_out is None:
        return pace
    share = 1.0 if readout == "text" else schedule.asking.check
    return replace(pace, tokens_out=1 + share * (pace.tokens_out - 1))


def _guess(schedule: WordsSchedule) -> Pace:
    """What one question takes if patches and letters are tokens."""
    asking = schedule.asking
    letters = sum(len(prompt.full) for prompt in asking.prompts) / len(asking.prompts)
    patches = sum(
        math.ceil(height / _PATCH) * math.ceil(columns / _PATCH)
        for height, columns in _sizes(schedule)
    )
    by = f"{_PATCH} x {_PATCH} px or {_LETTERS} letters a token, {_LATENCY:g} s an answer"
    return Pace(
        tokens_in=patches + (letters + len(asking.system)) / _LETTERS,
        tokens_cached=0.0,
        tokens_out=asking.max_tokens,
        seconds=_LATENCY,
        cost=None,
        currency=USD,
        source=f"Tokens and seconds are guesses: {by}.",
        whole_text=True,
    )


def _sizes(schedule: WordsSchedule) -> list[tuple[int, int]]:
    """Pixels (height, width) of the images of a question, those of examples among them."""
    return [schedule.scene.spec.shape] * schedule.scene.images * (1 + len(schedule.asking.examples))


def _cost(
    schedule: WordsSchedule, design: DesignName, readout: str, refused: int, pace: Pace | None
) -> DesignCost:
    orders = len(schedule.probe.orders)
    prompts = len(schedule.asking.prompts)
    trials, shared = _trials(schedule, design, readout, refused)
    questions = trials * prompts * orders
    all_of_it = expense(
        schedule.observer, _pace(schedule, readout, pace), questions, _sizes(schedule)
    )
    told = trials * _answers(schedule, readout)
    return DesignCost(
        design=design,
        readout=readout,
        questions=questions,
        images=orders * (shared + (trials - shared) * prompts),
        tokens_in=all_of_it.tokens_in,
        tokens_out=all_of_it.tokens_out,
        seconds=all_of_it.seconds,
        cost=all_of_it.cost,
        currency=all_of_it.currency,
        interval_width=designs.expected_interval_width(design, told, **_asked(schedule, readout)),
    )


def _trials(
    schedule: WordsSchedule, design: DesignName, readout: str, refused: int
) -> tuple[int, int]:
    """Trials with one prompt, and how many of them show images that all prompts share."""
    asking = schedule.asking
    levels = schedule.experiment.levels
    share = asking.catch if schedule.task.chance is None else 0.0
    values = len(levels[schedule.level])
    options = asking.options if design == asking.design else {}
    if design == "constant":
        parts = [asking.repeats.text if readout == "text" else asking.repeats.p_yes]
        if readout == "text" and asking.readout == "auto":
            parts = [asking.repeats.p_yes, asking.repeats.text - asking.repeats.p_yes]
        conditions = values * len(schedule.contrasts)
        trials = sum(
            repeats * (conditions - refused) + catch_trials(repeats * conditions, share)
            for repeats in parts
        )
        return trials, trials
    if design == "ladder":
        repeats = values * options.get("repeats", 1)
        coarse, fine = (
            options.get(name, count) * repeats for name, count in (("coarse", 5), ("fine", 4))
        )
        first = coarse + catch_trials(coarse, share)
        return first + fine + catch_trials(fine, share), first + catch_trials(fine, share)
    per_value = design == "quest_plus"
    limits = inspect.signature(designs.QuestPlus if per_value else designs.QuickCSF).parameters
    stop, most = (options.get(name, limits[name].default) for name in ("stop", "n_max"))
    if per_value:
        most = math.ceil(most * values / (1 - share))
    asked = _asked(schedule, readout)
    each = _answers(schedule, readout)
    if designs.expected_interval_width(design, most * each, **asked) >= stop:
        return most, 0
    return math.ceil(designs.expected_queries(design, stop, **asked) / each), 0


def _answers(schedule: WordsSchedule, readout: str) -> int:
    """Answers of a trial that tell something by themselves; probabilities of all orders are one."""
    return len(schedule.probe.orders) if readout == "text" else 1


def _asked(schedule: WordsSchedule, readout: str) -> DesignConditions:
    levels = schedule.experiment.levels
    contrasts = schedule.contrasts
    return {
        "values": len(levels[schedule.level]),
        "contrasts": (contrasts[0], contrasts[-1]),
        "levels": len(contrasts),
        "chance": schedule.task.chance,
        "catch": schedule.asking.catch if schedule.task.chance is None else 0.0,
        "observer": designs.AssumedObserver(logit_sd=None if readout == "text" else _LOGIT_SD),
    }


def _table(costs: list[DesignCost]) -> list[str]:
    head = (
        "design",
        "read-out",
        "questions",
        "images",
        "tokens in",
        "tokens out",
        "time",
        "price",
        "95 % interval",
    )
    rows = [head] + [
        (
            ("* " if cost is costs[0] else "  ") + cost.design,
            cost.readout,
            *(f"{each:,}" for each in (cost.questions, cost.images)),
            *("-" if each is None else f"{each:,}" for each in (cost.tokens_in, cost.tokens_out)),
            duration(cost.seconds),
            "-" if cost.cost is None else money(cost.cost, cost.currency) if cost.cost else "none",
            f"{cost.interval_width:.2f}",
        )
        for cost in costs
    ]
    layouts = [
        f"{'<' if i < 2 else '>'}{max(map(len, column))}"
        for i, column in enumerate(zip(*rows, strict=True))
    ]
    return ["  ".join(map(format, row, layouts)).rstrip() for row in rows]
