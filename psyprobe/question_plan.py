"""What a run that asks in words means before anything is sent: questions, images, tokens, time and price.

Beside the design that is chosen, the others stand in a table, with the width of the 95 % interval of a threshold that
each is expected to leave.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.answer_store import AnswerStore
from psyprobe.experiment import open_store
from psyprobe.question_file import DESIGNS, QuestionExperiment
from psyprobe.question_run import AskedInWords, asked_of, record_of
from psyprobe.store import Store

if TYPE_CHECKING:
    from psyprobe.observers.protocol import Observer

#: Unless tokens were counted: a patch of so many pixels square is one, and so many letters.
_PATCH = 14
_LETTERS = 4
#: Seconds to an answer, unless they were measured.
_LATENCY = 1.0


@dataclass(frozen=True)
class DesignCost:
    """What one design would take.

    Parameters
    ----------
    design : str
        Its name.
    readout : {"p_yes", "text"}
        How answers are read.
    questions, images : int
        Questions in all, and distinct images; of an adaptive design as expected.
    tokens_in, tokens_out : int
        About so many.
    seconds : float
        About so long.
    cost : float or None
        About so much, in USD; None where no price is known.
    interval_width : float or None
        Expected width of the 95 % interval of a log10 threshold, of one prompt and one frequency.
    """

    design: str
    readout: str
    questions: int
    images: int
    tokens_in: int
    tokens_out: int
    seconds: float
    cost: float | None
    interval_width: float | None


@dataclass(frozen=True)
class QuestionPlan:
    """What running an experiment that asks in words means, before anything is sent.

    Parameters
    ----------
    experiment, observer : str
        Names.
    prompts : int
        Wordings of the question.
    chosen : DesignCost
        What the experiment's design takes.
    others : tuple of DesignCost
        What other designs and read-outs would take.
    answered : int
        Questions of this run that the store holds already.
    refused : tuple of str
        Levels that cannot be shown faithfully, and are not asked.
    measured : bool
        Whether tokens and seconds a question come from answers in the store; else they are a guess.
    size : (int, int)
        Pixels (H, W) of an image.
    ppd : float
        Pixels per degree.
    """

    experiment: str
    observer: str
    prompts: int
    chosen: DesignCost
    others: tuple[DesignCost, ...]
    answered: int
    refused: tuple[str, ...]
    measured: bool
    size: tuple[int, int]
    ppd: float

    @property
    def questions(self) -> int:
        """Questions in all."""
        return self.chosen.questions

    @property
    def images(self) -> int:
        """Distinct images."""
        return self.chosen.images

    def to_dict(self) -> dict[str, Any]:
        """The plan as numbers, text and lists.

        Returns
        -------
        dict
            One entry a field, "questions" and "images".
        """
        return {**asdict(self), "size": list(self.size), "questions": self.questions, "images": self.images}

    def __str__(self) -> str:
        height, width = self.size
        lines = [
            f"{self.experiment} with {self.observer}: {self.questions} questions in {self.prompts} "
            f"wording{'s' * (self.prompts != 1)} about {self.images} distinct images of {height} x {width} px at "
            f"{self.ppd:.4g} ppd ({height / self.ppd:.3g} x {width / self.ppd:.3g} deg); {self.answered} are answered.",
            *(f"Not shown: {reason}." for reason in self.refused),
            "",
            *_table([self.chosen, *self.others]),
            "",
            "* chosen. 95 % interval: expected width, log10 contrast, for the threshold of one wording and frequency. "
            + (
                "Tokens and seconds are those of answers in the store."
                if self.measured
                else f"Tokens and seconds are guesses: one token a patch of {_PATCH} x {_PATCH} px and {_LETTERS} "
                f"letters, {_LATENCY:g} s an answer."
            ),
        ]
        return "\n".join(lines)


def plan_questions(
    experiment: QuestionExperiment, observer: str | Observer | None, *, store: str | Path | Store | None = None
) -> QuestionPlan:
    """What `run_questions` with the same arguments would ask; nothing is asked.

    Parameters
    ----------
    experiment, observer, store
        As for `run_questions`. A store that does not exist yet is not made.

    Returns
    -------
    QuestionPlan
        It prints as a paragraph and a table.

    Raises
    ------
    InputError, StoreError
        As `run_questions` would.
    """
    asked = asked_of(experiment, observer)
    if isinstance(store, str | Path) and not Path(store).exists():
        store = None
    with open_store(store) as opened:
        answered, pace = _so_far(opened, record_of(asked).key)
    refused = refused_levels(asked)
    readout = "text" if experiment.asking.readout == "text" else "p_yes"
    costs = {
        (design, reading): _cost(asked, design, reading, len(refused), pace)
        for design in DESIGNS
        for reading in ("p_yes", "text")
        if not (design == "ladder" and reading == "text")
    }
    name = experiment.asking.design
    chosen = costs.pop((name, readout), None) or _cost(asked, name, readout, len(refused), pace)
    return QuestionPlan(
        experiment=experiment.name,
        observer=asked.observer.card.name,
        prompts=len(experiment.prompts),
        chosen=chosen,
        others=tuple(costs.values()),
        answered=answered,
        refused=tuple(refused.values()),
        measured=pace is not None,
        size=asked.scene.size,
        ppd=asked.scene.ppd,
    )


def refused_levels(asked: AskedInWords) -> dict[tuple[float, float], str]:
    """Levels that cannot be shown faithfully to an observer.

    Parameters
    ----------
    asked : AskedInWords
        What is shown to whom.

    Returns
    -------
    dict of (float, float) to str
        Frequency and contrast to the reason.
    """
    found = {}
    for frequency in asked.experiment.frequency:
        for contrast in asked.experiment.contrast:
            shown = asked.scene.shown(frequency, contrast, 0, 0)
            reason = shown.refused or asked.scene.draw(shown, asked.observer.delivered)[1]["refused"]
            if reason:
                found[frequency, contrast] = f"{frequency:g} cpd at contrast {contrast:.3g}: {reason}"
    return found


@dataclass(frozen=True)
class _Pace:
    """What an answer took on average."""

    tokens_in: float
    tokens_out: float
    seconds: float


def _so_far(store: Store, run: str) -> tuple[int, _Pace | None]:
    answers = [answer for _, _, answer, _ in AnswerStore(store).trials(run) if answer is not None]
    if not answers:
        return 0, None
    n = len(answers)
    return n, _Pace(
        tokens_in=sum(each.tokens_in or 0 for each in answers) / n,
        tokens_out=sum(each.tokens_out or 0 for each in answers) / n,
        seconds=sum(each.latency for each in answers) / n,
    )


def _cost(asked: AskedInWords, design: str, readout: str, refused: int, pace: _Pace | None) -> DesignCost:
    experiment, orders = asked.experiment, len(asked.orders)
    trials, images, width = _trials(asked, design, readout, refused)
    questions = trials * len(experiment.prompts) * orders
    if pace is None:
        height, columns = asked.scene.size
        letters = sum(len(prompt.full) for prompt in experiment.prompts) / len(experiment.prompts)
        patches = orders * math.ceil(height / _PATCH) * math.ceil(columns / _PATCH)
        out = experiment.asking.max_tokens if readout == "text" else 1
        pace = _Pace(patches + (letters + len(experiment.asking.system)) / _LETTERS, out, _LATENCY)
    who: Any = asked.observer
    price_in, price_out = getattr(who, "price_in", None), getattr(who, "price_out", None)
    priced = price_in is not None or price_out is not None
    seconds = questions * pace.seconds / (getattr(who, "concurrency", None) or 1)
    rate = getattr(who, "rate", None)
    tokens_in, tokens_out = round(questions * pace.tokens_in), round(questions * pace.tokens_out)
    return DesignCost(
        design=design,
        readout=readout,
        questions=questions,
        images=images,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        seconds=max(seconds, questions / rate) if rate else seconds,
        cost=(tokens_in * (price_in or 0) + tokens_out * (price_out or 0)) / 1e6 if priced else None,
        interval_width=width,
    )


def _trials(asked: AskedInWords, design: str, readout: str, refused: int) -> tuple[int, int, float | None]:
    """Trials a prompt, distinct images of all prompts, and the expected width of an interval."""
    experiment = asked.experiment
    asking = experiment.asking
    share = asking.catch if asked.task == "yes_no" else 0.0
    frequencies = len(experiment.frequency)
    if design == "constant":
        parts = [asking.repeats.text if readout == "text" else asking.repeats.p_yes]
        if readout == "text" and asking.readout == "auto":
            parts = [asking.repeats.p_yes, asking.repeats.text - asking.repeats.p_yes]
        levels = frequencies * len(experiment.contrast)
        trials = sum(repeats * (levels - refused) + _catches(repeats * levels, share) for repeats in parts)
        return trials, trials * len(asked.orders), None
    return 0, 0, None


def _catches(trials: int, share: float) -> int:
    return math.ceil(trials * share / (1 - share) - 1e-9)


def _table(costs: list[DesignCost]) -> list[str]:
    head = ("design", "read-out", "questions", "images", "tokens in", "tokens out", "time", "price", "95 % interval")
    rows = [head]
    for place, cost in enumerate(costs):
        rows.append(
            (
                ("* " if place == 0 else "  ") + cost.design,
                cost.readout,
                f"{cost.questions:,}",
                f"{cost.images:,}",
                f"{cost.tokens_in:,}",
                f"{cost.tokens_out:,}",
                duration(cost.seconds),
                "-" if cost.cost is None else f"{cost.cost:.2f} USD",
                "-" if cost.interval_width is None else f"{cost.interval_width:.2f}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def duration(seconds: float) -> str:
    """A time as one reads it.

    Parameters
    ----------
    seconds : float
        Of any length.

    Returns
    -------
    str

    Examples
    --------
    >>> duration(42), duration(600), duration(90000)
    ('42 s', '10 min', '25.0 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
