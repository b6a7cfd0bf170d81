"""Plan a run in words before anything is sent: questions, images, tokens, time and price.

A table compares the chosen design with the others, with the width of the 95 % interval of a
threshold that each is expected to reach.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import Size
from psyprobe.analysis.score import Recorded
from psyprobe.analysis.words.posterior_fit import fit_notes
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.chat.prices import USD, money
from psyprobe.observers.protocol import TrainableObserver
from psyprobe.probes import designs
from psyprobe.probes.cost import Expense, Pace, duration, expense, measured_pace
from psyprobe.probes.designs.expected import DESIGNS, DesignConditions, DesignName
from psyprobe.probes.designs.rounds import catch_trials
from psyprobe.probes.displayed_images import spread
from psyprobe.probes.words.prompt_variant import fill_prompt
from psyprobe.running.store import Store
from psyprobe.running.task import CONTRAST_AXIS
from psyprobe.stimulus.specification import level_of

if TYPE_CHECKING:
    from psyprobe.probes.words.schedule import WordsSchedule

#: Size of a token where tokens were not counted: a square of so many pixels, or so many letters.
_PATCH = 14
_LETTERS = 4
#: Seconds per answer where they were not measured.
_LATENCY = 1.0
#: Standard deviation, in codes, from which the dither of a uniform field hides that of patterns.
_LEAST_NOISE = 0.25
#: Standard deviation from image to image of the log odds of an assumed observer.
_LOGIT_SD = 0.5


@dataclass(frozen=True)
class DesignCost(Expense):
    """The estimated cost and precision of one design; of an adaptive one they are expected ones."""

    design: str
    #: "p_yes" or "text".
    readout: str
    #: Number of distinct images.
    images: int
    #: Expected width of the 95 % interval of a log10 threshold, for one prompt and one level.
    interval_width: float


@dataclass(frozen=True)
class WordsPlan(Recorded):
    """The work that a run in words would do, before anything is sent."""

    #: Names.
    experiment: str
    observer: str
    #: Number of prompt variants.
    prompts: int
    #: Costs of the experiment's design, and of other designs and read-outs.
    chosen: DesignCost
    others: tuple[DesignCost, ...]
    #: Number of questions of this run with an answer in the store.
    answered: int
    #: Levels that cannot be shown faithfully, and are left out.
    refused: tuple[str, ...]
    #: Warnings of what may spoil the measurement.
    remarks: tuple[str, ...]
    #: Cost of the questions without an answer.
    left: Expense
    #: Source of tokens and seconds, as a sentence; and whether they were measured, not guessed.
    source: str
    measured: bool
    #: Pixels (H, W) of an image, and pixels per degree.
    size: Size
    ppd: float
    #: Frames of a clip, each an image of a question; 1 for stills.
    frames: int
    #: Whether a person who answers too few right is asked no more.
    may_stop: bool = False
    #: Images on which the decision stages of an encoder are trained before the first question, and
    #: seconds that it takes.
    training_images: int = 0
    training_seconds: float = 0.0

    @property
    def questions(self) -> int:
        """The number of questions in all."""
        return self.chosen.questions

    @property
    def images(self) -> int:
        """The number of distinct images."""
        return self.chosen.images

    @property
    def seconds(self) -> float:
        """The estimated time of training and of the questions without an answer."""
        return self.training_seconds + self.left.seconds

    def to_dict(self) -> JsonObject:
        """Return the plan as numbers, text and lists.

        Returns
        -------
        dict
            One entry a field, "questions" and "images".
        """
        return {
            **super().to_dict(),
            "questions": self.questions,
            "images": self.images,
        }

    def _repr_html_(self) -> str:
        """Show the plan as HTML text in a notebook."""
        from psyprobe.files import html

        return html.preformatted(str(self))

    def __str__(self) -> str:
        height, width = self.size
        items = "images" if self.frames == 1 else f"clips of {self.frames} frames"
        lines = [
            f"{self.experiment} with {self.observer}: {'up to ' * self.may_stop}"
            f"{self.questions:,} questions in "
            f"{self.prompts} wording{'s' * (self.prompts != 1)} about {self.images:,} distinct "
            f"{items} of {height} x {width} px at {self.ppd:.4g} ppd ({height / self.ppd:.3g} x "
            f"{width / self.ppd:.3g} deg); {self.answered:,} are answered.",
            *(f"Not shown: {reason}." for reason in self.refused),
            *(f"Note: {remark}." for remark in self.remarks),
            *(
                [
                    f"Decision stages are trained on {self.training_images:,} images first: about "
                    f"{duration(self.training_seconds)}."
                ]
                if self.training_images
                else []
            ),
            *([f"Left are {self.left}."] if self.answered else []),
            "",
            *_table_lines([self.chosen, *self.others]),
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
    """Plan a run in words that has not begun, at most timing one question."""
    answered, pace = _read_progress(schedule, store, timed)
    training_images = 0
    training_seconds = 0.0
    if schedule.training is not None:
        training_images = schedule.training.missing_images(store)
        pace = pace or _encoder_pace(schedule, timed)
        image_seconds = pace.seconds / schedule.scene.images
        if timed and training_images:
            assert isinstance(schedule.observer, TrainableObserver)
            image_seconds = schedule.training.time_image(schedule.observer)
        training_seconds = training_images * image_seconds
    refused, sample_size = refused_levels(schedule)
    levels = len(schedule.values) * len(schedule.contrasts)
    refused_count = round(len(refused) * levels / sample_size)
    readout = "text" if schedule.asking.readout == "text" else "p_yes"
    # qCSF models sensitivity to contrast over frequency.
    models_csf = schedule.level == "frequency" and schedule.axis == CONTRAST_AXIS
    candidates = [design for design in DESIGNS if models_csf or design != "quick_csf"]
    costs = {
        (design, reading): _estimate_design_cost(
            schedule, design, reading, refused_count, pace
        )
        for design, reading in itertools.product(candidates, ("p_yes", "text"))
        if (design, reading) != ("ladder", "text")
    }
    name: DesignName = schedule.asking.design
    design_cost = costs.pop((name, readout), None) or _estimate_design_cost(
        schedule, name, readout, refused_count, pace
    )
    question_pace = _question_pace(schedule, readout, pace)
    remaining = expense(
        schedule.observer,
        question_pace,
        max(design_cost.questions - answered, 0),
        _image_sizes(schedule),
    )
    return WordsPlan(
        experiment=schedule.experiment.name,
        observer=schedule.observer.card.name,
        prompts=len(schedule.asking.prompts),
        chosen=design_cost,
        others=tuple(costs.values()),
        answered=answered,
        refused=_describe_refused(schedule, refused),
        remarks=(
            *schedule.remarks,
            *fit_notes(
                name, readout, schedule.experiment.toml, schedule.experiment.name
            ),
            *_remarks(schedule, sample_size, levels),
        ),
        left=remaining,
        source=question_pace.source,
        measured=pace is not None,
        size=schedule.scene.spec.shape,
        ppd=schedule.scene.spec.ppd,
        frames=schedule.scene.spec.frames,
        may_stop=schedule.asking.stop_below is not None,
        training_images=training_images,
        training_seconds=training_seconds,
    )


def refused_levels(
    schedule: WordsSchedule,
) -> tuple[dict[tuple[float, float], str], int]:
    """Find the levels that cannot be shown faithfully, with reasons, and count those drawn.

    If there are many levels, an evenly spaced sample is drawn.
    """
    sample = spread(list(itertools.product(schedule.values, schedule.contrasts)))
    refused = {}
    for value, contrast in sample:
        trial = schedule.scene.plan_trial(value, contrast, 0, 0)
        _, measured = schedule.scene.draw(trial, schedule.observer.delivered)
        if measured["refused"]:
            refused[value, contrast] = measured["refused"]
    return refused, len(sample)


def _describe_refused(
    schedule: WordsSchedule, refused: Mapping[tuple[float, float], str]
) -> tuple[str, ...]:
    """Describe levels that cannot be shown, one sentence a value and reason."""
    unit = level_of(schedule.scene.spec, schedule.level).unit
    name = schedule.axis.name.replace("_", " ")
    groups: defaultdict[tuple[float, str], list[float]] = defaultdict(list)
    for (value, contrast), reason in refused.items():
        groups[value, reason].append(contrast)
    sentences = []
    for (value, reason), contrasts in groups.items():
        span = f"{name} {contrasts[0]:.3g}"
        if len(contrasts) > 1:
            span = f"{len(contrasts)} {name}s from {contrasts[0]:.3g} to {contrasts[-1]:.3g}"
        sentences.append(f"{value:g} {unit} at {span}: {reason}")
    return tuple(sentences)


def _remarks(schedule: WordsSchedule, sample_size: int, levels: int) -> Iterator[str]:
    """Iterate over warnings of what may spoil the measurement or the plan."""
    scene = schedule.scene
    prompts = schedule.asking.prompts
    if scene.spec.is_clip and not any(
        fill_prompt(prompt, scene.spec) != prompt.full for prompt in prompts
    ):
        yield (
            f"a question shows {scene.images} frames, and no prompt tells how many come "
            "in a second; {frames}, {fps} and {seconds} in a prompt stand for the clip's"
        )
    sends_codes = scene.delivery.bits is not None and scene.delivery.format != "page"
    if sends_codes and scene.delivery.dither != "none":
        value = schedule.values[0]
        (image, *_), _ = scene.draw(scene.plan_trial(value, 0.0, 0, 0), np.asarray)
        noise = 255 * float(np.std(image))
        if noise < _LEAST_NOISE:
            yield (
                f"a uniform field lies on an 8-bit code, where dither adds {noise:.2g} codes of "
                "noise, and to patterns about 0.4: they can be told from it by their dither "
                'alone; set delivery.dither to "tpdf", whose noise is the same everywhere, or '
                "choose a peak of the display that puts the mean halfway between two codes"
            )
    if sample_size < levels:
        yield (
            f"{sample_size:,} of {levels:,} levels were drawn to see which can be shown; the "
            "number of questions follows them"
        )


def _read_progress(
    schedule: WordsSchedule, store: Store, timed: bool
) -> tuple[int, Pace | None]:
    """Count the answered questions and estimate tokens and time of the others."""
    observer = schedule.observer
    layout = schedule.layout()
    required_entries = {name: layout[name] for name in ("size", "asking")} | {
        "probe": schedule.experiment.probe
    }
    answered = 0
    replies = []
    has_origins = store.origins(observer.card.digest)
    # A round may hold very many questions, so it is built only to look for their answers, or to ask
    # one of them.
    batches = first = schedule.next() if has_origins or timed else []
    while batches and has_origins:
        keys = [question.key for batch in batches for question in batch.questions]
        stored_answers = store.answers(keys)
        round_answers = [stored_answers[key] for key in keys if key in stored_answers]
        answered += sum(
            not answer["refused"] and "stage" not in answer for answer in round_answers
        )
        replies += [answer["reply"] for answer in round_answers if answer["reply"]]
        if len(round_answers) < len(keys):
            break
        schedule.tell(stored_answers)
        batches = schedule.next()
    put_batches = schedule.probe.answer if timed else None
    return answered, measured_pace(
        store, observer, replies, required_entries, put_batches, first
    )


def _encoder_pace(schedule: WordsSchedule, timed: bool) -> Pace:
    """Time an encoder on the images of a question, or guess."""
    observer = schedule.observer
    seconds = _LATENCY
    if timed and isinstance(observer, TrainableObserver):
        assert schedule.training is not None
        scene = schedule.scene
        trials = (
            scene.plan_trial(value, schedule.contrasts[-1], 0, 0)
            for value in schedule.values
        )
        trial = next(trial for trial in trials if not trial.refused)
        # The first pass may load a network.
        for _ in range(2):
            start = perf_counter()
            images, _ = scene.draw(trial, schedule.observer.delivered)
            observer.rows(
                images,
                schedule.training.recipe,
                scene.display,
                scene.spec.frames,
                scene.fps,
            )
            seconds = perf_counter() - start
    source = "Seconds are those of drawing and one pass, which takes no tokens."
    if not timed:
        source = (
            f"Seconds are a guess: {_LATENCY:g} s a question, which takes no tokens."
        )
    return Pace(0.0, 0.0, 0.0, seconds, 0.0, USD, source)


def _question_pace(
    schedule: WordsSchedule, readout: str, measured: Pace | None
) -> Pace:
    """Average tokens and time over questions for text and for the first token alone."""
    pace = measured or _guess_pace(schedule)
    if not pace.whole_text or pace.tokens_out is None:
        return pace
    share = 1.0 if readout == "text" else schedule.asking.check
    return replace(pace, tokens_out=1 + share * (pace.tokens_out - 1))


def _guess_pace(schedule: WordsSchedule) -> Pace:
    """Guess a question's tokens and time from image patches and letters."""
    asking = schedule.asking
    letters = fmean(len(prompt.full) for prompt in asking.prompts)
    patches = sum(
        math.ceil(height / _PATCH) * math.ceil(columns / _PATCH)
        for height, columns in _image_sizes(schedule)
    )
    assumption = f"{_PATCH} x {_PATCH} px or {_LETTERS} letters a token, {_LATENCY:g} s an answer"
    return Pace(
        tokens_in=patches + (letters + len(asking.system)) / _LETTERS,
        tokens_cached=0.0,
        tokens_out=asking.max_tokens,
        seconds=_LATENCY,
        cost=None,
        currency=USD,
        source=f"Tokens and seconds are guesses: {assumption}.",
        whole_text=True,
    )


def _image_sizes(schedule: WordsSchedule) -> list[Size]:
    """List the sizes (H, W) of the images of a question, those of examples included."""
    return (
        [schedule.scene.spec.shape]
        * schedule.scene.images
        * (1 + len(schedule.asking.examples))
    )


def _estimate_design_cost(
    schedule: WordsSchedule,
    design: DesignName,
    readout: str,
    refused: int,
    pace: Pace | None,
) -> DesignCost:
    """Estimate the questions, images, tokens, time, price and interval width of a design."""
    orders = schedule.questions_per_trial
    prompts = len(schedule.asking.prompts)
    trials, shared = _estimate_trials(schedule, design, readout, refused)
    total = expense(
        schedule.observer,
        _question_pace(schedule, readout, pace),
        trials * prompts * orders,
        _image_sizes(schedule),
    )
    informative = trials * _answers_per_trial(schedule, readout)
    return DesignCost(
        **vars(total),
        design=design,
        readout=readout,
        images=orders
        * (shared + (trials - shared) * prompts)
        # Both intervals show noise of their own.
        * (schedule.scene.intervals if schedule.scene.fresh_noise else 1),
        interval_width=designs.expected_interval_width(
            design, informative, **_design_conditions(schedule, readout)
        ),
    )


def _estimate_trials(
    schedule: WordsSchedule, design: DesignName, readout: str, refused: int
) -> Size:
    """Estimate the trials with one prompt, and how many share images with other prompts."""
    asking = schedule.asking
    conditions = _design_conditions(schedule, readout)
    share = conditions["catch"]
    values = conditions["values"]
    options = asking.options if design == asking.design else {}
    if design == "constant":
        parts = [asking.repeats.text if readout == "text" else asking.repeats.p_yes]
        if readout == "text" and asking.readout == "auto":
            parts = [asking.repeats.p_yes, asking.repeats.text - asking.repeats.p_yes]
        levels = values * conditions["levels"]
        trials = sum(
            repeats * (levels - refused) + catch_trials(repeats * levels, share)
            for repeats in parts
        )
        return trials, trials
    if design == "ladder":
        repeats = values * options.get("repeats", 1)
        coarse = options.get("coarse", 5) * repeats
        fine = options.get("fine", 4) * repeats
        first = coarse + catch_trials(coarse, share)
        return first + fine + catch_trials(fine, share), first + catch_trials(
            fine, share
        )
    per_value = design == "quest_plus"
    limits = inspect.signature(
        designs.QuestPlus if per_value else designs.QuickCSF
    ).parameters
    stop, limit = (
        options.get(name, limits[name].default) for name in ("stop", "n_max")
    )
    if per_value:
        limit = math.ceil(limit * values / (1 - share))
    answers = _answers_per_trial(schedule, readout)
    width = designs.expected_interval_width(design, limit * answers, **conditions)
    if width < stop:
        queries = designs.expected_queries(design, stop, **conditions)
        limit = math.ceil(queries / answers)
    return limit, 0


def _answers_per_trial(schedule: WordsSchedule, readout: str) -> int:
    """Count the independent answers of a trial; probabilities of all orders count as one."""
    return schedule.questions_per_trial if readout == "text" else 1


def _design_conditions(schedule: WordsSchedule, readout: str) -> DesignConditions:
    """Collect what a design's expected interval depends on: levels, chance, read-out."""
    contrasts = schedule.contrasts
    return {
        "values": len(schedule.values),
        "contrasts": (contrasts[0], contrasts[-1]),
        "levels": len(contrasts),
        "chance": schedule.task.chance,
        "catch": schedule.asking.catch if schedule.task.chance is None else 0.0,
        "observer": designs.AssumedObserver(
            logit_sd=None if readout == "text" else _LOGIT_SD
        ),
    }


def _table_lines(costs: list[DesignCost]) -> list[str]:
    """Align the costs of designs as lines of a table, the first marked by "*"."""
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
    rows: list[tuple[str, ...]] = [head]
    rows += [
        (
            ("* " if cost is costs[0] else "  ") + cost.design,
            cost.readout,
            *(
                "-" if count is None else f"{count:,}"
                for count in (
                    cost.questions,
                    cost.images,
                    cost.tokens_in,
                    cost.tokens_out,
                )
            ),
            duration(cost.seconds),
            "none"
            if cost.cost == 0
            else "-"
            if cost.cost is None
            else money(cost.cost, cost.currency),
            f"{cost.interval_width:.2f}",
        )
        for cost in costs
    ]
    layouts = [
        f"{'<' if i < 2 else '>'}{max(map(len, column))}"
        for i, column in enumerate(zip(*rows, strict=True))
    ]
    return ["  ".join(map(format, row, layouts)).rstrip() for row in rows]
