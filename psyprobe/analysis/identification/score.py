"""Score runs in which one of several labels is named: thresholds, confusions and biases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray, Option
from psyprobe.analysis.identification.channel import (
    BAND_LEVEL,
    Channel,
    fit_channel,
)
from psyprobe.analysis.identification.charts import score_by_letter
from psyprobe.analysis.identification.confusions import (
    Confusions,
    bias_intervals,
    count_confusions,
    forgive,
)
from psyprobe.analysis.identification.replies import OTHERS
from psyprobe.analysis.result_stimulus import page_of, stimulus_on
from psyprobe.analysis.score import OBSERVER, Row, Tabled, interval_text, percent
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.score import ChatScore, CsfPoint, plain_number, score_chat
from psyprobe.analysis.words.trial_table import trials
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import as_text
from psyprobe.files.units import unit_symbol
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Fewest questions about a label for a threshold of its own.
_LEAST_TRIALS = 12
#: Confusions that are listed.
_LISTED = 5
#: Share of one label among all answers, above which it is told.
_ONE_LABEL = 0.9
#: Labels that charts may count for each other.
_ALIKE = ("C", "O")


@dataclass(frozen=True)
class Threshold:
    """A threshold on the stimulus axis; None where there is none, or an end is open."""

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{plain_number(self.value)} [{plain_number(self.low)}, {plain_number(self.high)}]"


@dataclass(frozen=True)
class LabelScore:
    """Answers, bias and thresholds of one label."""

    label: str
    #: Questions that showed it and were answered, and the share of right answers.
    answered: int
    correct: float | None
    #: Share of all answers that name it, and its bias in the choice model with its interval.
    share: float | None
    bias: float
    bias_low: float
    bias_high: float
    #: Thresholds by the values of the level; empty where too few questions showed it.
    thresholds: tuple[Threshold, ...]

    def cells(self, unit: str) -> dict[str, str]:
        """Format the label's threshold, correct answers and bias as table cells."""
        return {
            "answered": str(self.answered),
            "right": percent(self.correct),
            f"threshold{unit}": ", ".join(map(str, self.thresholds)) or "-",
            "said": percent(self.share),
            "bias": interval_text(self.bias, self.bias_low, self.bias_high),
        }


@dataclass(frozen=True)
class IdentificationScore(Tabled):
    """The score of a run that asked which of several labels is shown."""

    #: The thresholds, over all labels.
    pooled: ChatScore
    labels: tuple[LabelScore, ...]
    #: Questions by the label shown, and by the label named, outside, ambiguous, refusal, invalid.
    confusions: tuple[tuple[int, ...], ...]
    #: The most frequent confusions: label shown, label named and how often.
    largest: tuple[tuple[str, str, int], ...]
    #: Entropy of the labels named over log m: 1 if all are named alike, 0 if one is.
    evenness: float | None
    #: Probability that shares differ from 1 / m by so much (chi squared).
    uneven_p: float | None
    #: Thresholds by the values of the level where C and O count for each other; empty where they
    #: are not both labels.
    c_for_o: tuple[Threshold, ...]
    #: Scores by letter, as on a chart: log10 of the stimulus axis, and the same with C and O
    #: counted for each other; None where levels are no chart's.
    chart: float | None
    chart_c_for_o: float | None
    #: The channel that bands of noise tell; None of a page without them.
    channel: Channel | None
    #: Height of the letters, deg; None where it is a level, or nothing of the kind.
    height: float | None
    #: Name and unit of the stimulus axis, and pixels per degree; None on several screens.
    axis: str
    unit: str
    ppd: float | None

    @property
    def observer(self) -> str:
        """The name of the observer."""
        return self.pooled.observer

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self.pooled.experiment

    @property
    def random_weights(self) -> bool:
        """Tell whether the observer's weights are random."""
        return self.pooled.random_weights

    @property
    def confidence(self) -> float:
        """The confidence level of all intervals."""
        return self.pooled.confidence

    layer = ""
    measure = ""

    @property
    def others(self) -> dict[str, int]:
        """The number of replies that name no label, by reason."""
        sums = np.sum(self.confusions, axis=0)[-len(OTHERS) :]
        return dict(zip(OTHERS, sums.tolist(), strict=True))

    def rows(self) -> list[Row]:
        """Build the table rows of pooled thresholds, then of each label."""
        rows = self.pooled.rows()
        first = rows[0]
        rows[0] = replace(
            first,
            record={**first.record, **self._record()},
            notes=[*first.notes, *self._remarks()],
        )
        unit = "" if self.unit in ("", "1") else f" ({self.unit})"
        title = f"{self.observer}: labels"
        return rows + [
            Row(title, OBSERVER, label.label, label.cells(unit))
            for label in self.labels
        ]

    def _record(self) -> JsonObject:
        """Collect chance, counts of other replies and evenness as a flat record."""
        return {
            "alternatives": len(self.labels),
            "chance": 1 / len(self.labels),
            "chart": self.chart,
            "chart_c_for_o": self.chart_c_for_o,
            **self.others,
            "evenness": self.evenness,
            "uneven_p": self.uneven_p,
        }

    def _remarks(self) -> list[str]:
        """Write notes on the answers: confusions, bias, refusals."""
        questions = int(np.sum(self.confusions))
        notes = [
            f"{len(self.labels)} alternatives: guessing is right in "
            f"{percent(1 / len(self.labels), 2)}; the threshold is halfway from there to certainty"
        ]
        counts = [f"{count} {name}" for name, count in self.others.items() if count]
        if counts:
            notes.append(
                f"of {questions} replies {', '.join(counts)}: outside counts as wrong, the others "
                "are left out"
            )
        for label in self.labels:
            if (label.share or 0) > _ONE_LABEL:
                notes.append(f"says {label.label} in {percent(label.share)}")
        if self.largest:
            pairs = [
                f"{named} for {shown} ({count})" for shown, named, count in self.largest
            ]
            notes.append(f"largest confusions: {', '.join(pairs)}")
        if self.uneven_p is not None and self.evenness is not None:
            notes.append(
                f"labels are said unevenly with p = {self.uneven_p:.2g} (chi squared); entropy of "
                f"answers {self.evenness:.2f} of that of even ones"
            )
        if self.axis == "letter_size":
            notes += map(self._letter_note, self.pooled.curve)
        if self.channel is not None:
            notes.append(self._channel_text(self.channel))
        if self.chart is not None:
            note = f"as on a chart, by letter: {self._chart_text(self.chart)}"
            if self.chart_c_for_o is not None:
                forgiving = self._chart_text(self.chart_c_for_o)
                note += f"; with C and O counted for each other {forgiving}"
            notes.append(note)
        if self.c_for_o:
            forgiving = ", ".join(map(str, self.c_for_o))
            notes.append(f"threshold with C and O counted for each other: {forgiving}")
        return notes

    def _channel_text(self, channel: Channel) -> str:
        """Describe the channel by which letters are read."""
        peak = interval_text(channel.peak, channel.peak_low, channel.peak_high)
        width = interval_text(channel.width, channel.width_low, channel.width_high)
        letters = ""
        if self.height is not None:
            letters = f", {channel.peak * self.height:.2f} cycles a letter"
        return (
            f"channel: peak {peak} cpd{letters}; {width} octaves wide at half height (intervals "
            "over bands, from their scatter about the fit)"
        )

    def _chart_text(self, score: float) -> str:
        """Format a score by letter in the unit of its chart."""
        if self.axis == "letter_size":
            return f"logMAR {score + np.log10(12):.2f}"
        return f"log10 sensitivity {-score:.2f}"

    def _letter_note(self, point: CsfPoint) -> str:
        """Describe how large letters are at threshold, first in pixels."""
        where = f"at {self.pooled.level} {point.value:g}"
        if point.sensitivity is None:
            return f"{where}: no threshold"
        height = 1 / point.sensitivity
        logmar = f"logMAR {np.log10(12 * height):.2f}"
        if self.ppd is None:
            return f"{where}: {logmar}"
        pixels = height * self.ppd
        return (
            f"{where}: letters {pixels:.3g} px high, {pixels / 5:.3g} px a "
            f"stroke; {logmar} at {self.ppd:.4g} pixels per degree"
        )

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        return [
            *self.pooled.notes(),
            "right: share of the questions that showed the label. said: share of the label among "
            "all labels named. bias: how readily it is named in the choice model of Luce (1963), "
            "with its interval over trials ({confidence} %, bootstrap); the biases of all labels "
            "have the sum 1.",
        ]


def score_identification(
    result: xr.Dataset,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **options: Option,
) -> tuple[IdentificationScore]:
    """Score a result in which one of several labels was to be named.

    Parameters
    ----------
    result : xarray.Dataset
        Of the run.
    confidence, resamples, seed, **options
        As for `psyprobe.analysis.words.score.score_chat`.

    Raises
    ------
    InputError
        No labels were asked for, or as `score_chat`.
    """
    (pooled,) = score_chat(
        result, confidence=confidence, resamples=resamples, seed=seed, **options
    )
    table = trials(result)
    confusions = count_confusions(table)
    axis = stimulus_axis_of(result).name

    def fit(part: xr.Dataset) -> tuple[Threshold, ...]:
        try:
            csf = chat_csf(part, confidence=confidence, seed=seed)
        except InputError:
            # Nothing of this part can be read.
            return ()
        return _thresholds(csf)

    c_for_o: tuple[Threshold, ...] = ()
    chart_c_for_o = None
    height = _letter_height(result)
    if {*_ALIKE} <= {*confusions.labels}:
        forgiven = forgive(table, _ALIKE)
        c_for_o = fit(forgiven)
        chart_c_for_o = score_by_letter(forgiven)
    channel = None
    if pooled.level == BAND_LEVEL:
        thresholds = [1 / (point.sensitivity or np.inf) for point in pooled.curve]
        bands = [point.value for point in pooled.curve]
        channel = fit_channel(bands, thresholds, confidence=confidence)
    counts = confusions.counts.astype(int)
    return (
        IdentificationScore(
            # What it says of yes and no is said here of labels.
            pooled=replace(pooled, guess=None, excluded=0.0),
            labels=_label_scores(table, confusions, fit, confidence, seed),
            confusions=tuple(map(tuple, counts.tolist())),
            largest=tuple(confusions.largest(_LISTED)),
            evenness=_evenness(confusions.shares),
            uneven_p=_uneven_p(confusions),
            c_for_o=c_for_o,
            chart=None if height is None else score_by_letter(table),
            chart_c_for_o=chart_c_for_o,
            channel=channel,
            height=height,
            axis=axis,
            unit=unit_symbol(table[axis].attrs),
            ppd=_finite_or_none(float(result.attrs.get("ppd", np.nan))),
        ),
    )


def _letter_height(result: xr.Dataset) -> float | None:
    """Read the height of the letters of a page, deg; None if they have none."""
    stimulus = stimulus_on(page_of(result))
    if stimulus is None or "letter_size" not in stimulus.spec().levels():
        return None
    return float(stimulus.spec().value("letter_size"))


def _label_scores(
    table: xr.Dataset,
    confusions: Confusions,
    fit: Callable[[xr.Dataset], tuple[Threshold, ...]],
    confidence: float,
    seed: int,
) -> tuple[LabelScore, ...]:
    """Score each label by itself: threshold, share correct and bias."""
    bias, low, high = bias_intervals(confusions, confidence=confidence, seed=seed)
    shown = as_text(table["shown"].values)
    scores = []
    for i, label in enumerate(confusions.labels):
        answered = int(confusions.answered[i])
        part = table.isel(trial=shown == label)
        scores.append(
            LabelScore(
                label,
                answered,
                _finite_or_none(confusions.correct[i]),
                _finite_or_none(confusions.shares[i]),
                float(bias[i]),
                float(low[i]),
                float(high[i]),
                fit(part) if answered >= _LEAST_TRIALS else (),
            )
        )
    return tuple(scores)


def _thresholds(csf: xr.Dataset) -> tuple[Threshold, ...]:
    """Read the mean threshold and its interval at each value of the level."""
    columns = [
        csf[f"mean_sensitivity{end}"].values.tolist() for end in ("", "_high", "_low")
    ]
    return tuple(
        Threshold(
            *(1 / value if value and np.isfinite(value) else None for value in ends)
        )
        for ends in zip(*columns, strict=True)
    )


def _evenness(shares: FloatArray) -> float | None:
    """Compute the entropy of shares, relative to that of equal shares."""
    named = shares[shares > 0]
    if not named.size:
        return None
    return float(-(named * np.log(named)).sum() / np.log(len(shares))) + 0.0


def _uneven_p(confusions: Confusions) -> float | None:
    """Compute the p-value of labels being named as often as they are shown."""
    from scipy import stats

    said = confusions.named.sum(axis=0)
    shown = confusions.named.sum(axis=1)
    if not (shown > 0).all():
        return None
    return float(stats.chisquare(said, shown).pvalue)


def _finite_or_none(value: float) -> float | None:
    """Convert to a float, or to None if it is not finite."""
    return float(value) if np.isfinite(value) else None
