"""Score the sensitivities of a questioning run beside people and trivial observers.

References
----------
Wang et al. (2024). "My answer is C": first-token probabilities do not match text answers in
instruction-tuned language models. Findings of ACL: for some models the two disagree in most
answers. Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological
Measurement 20(1), 37-46.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray, Option
from psyprobe.analysis.efficiency.noise_masking import NoiseMasking, noise_masking
from psyprobe.analysis.efficiency.scores import (
    Efficiency,
    curve_notes,
    efficiencies,
    limited_stages,
    mean_entries,
    training_notes,
)
from psyprobe.analysis.psychometric.csf_posterior import CONTRADICTION
from psyprobe.analysis.responses import levels_of, observer_of
from psyprobe.analysis.score import (
    OBSERVER,
    Entry,
    Metric,
    Recorded,
    Row,
    Tabled,
    interval_text,
    number,
    percent,
)
from psyprobe.analysis.words import comparison
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.fit import experiment_table
from psyprobe.analysis.words.posterior_fit import fit_notes
from psyprobe.analysis.words.readers import Rereading, judge_rereadings
from psyprobe.analysis.words.sessions import is_remote, sessions_of
from psyprobe.analysis.words.trial_table import trials
from psyprobe.errors import InputError
from psyprobe.files.flags import flag_words
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import as_text
from psyprobe.files.units import unit_symbol
from psyprobe.observers.chat.cost_summary import (
    describe_refusals,
    describe_result_cost,
)
from psyprobe.running.task import CONTRAST_AXIS, stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr

#: Remark on a threshold below what is claimed.
UNSURE = "contrast below 0.03 on a screen that nobody measured"
#: Below this agreement, text should count and not the first token.
ENOUGH = 0.95
#: Posterior standard deviations of a frequency off its parabola that are named.
_LARGE_DEVIATION = 3.0


@dataclass(frozen=True)
class Agreement(Recorded):
    """Agreement between the first token and the text of answers."""

    #: Share of answers in which both say the same.
    agreement: float
    #: Cohen's kappa, agreement beyond chance; None where only one answer was ever given.
    kappa: float | None
    #: Answers of which both were read.
    n: int
    #: Answers with first-token probabilities whose text says neither yes nor no.
    unread: int
    #: Agreement prompt by prompt.
    by_prompt: dict[str, float]

    @property
    def enough(self) -> bool:
        """Tell whether first tokens may replace the text: agreement of at least 0.95."""
        return self.agreement >= ENOUGH


def answer_agreement(result: xr.Dataset) -> Agreement | None:
    """Compare the answers of first tokens with those of texts.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.

    Returns
    -------
    Agreement or None
        Over the answers that were let run on to a text; None where there are none.
    """
    result = trials(result)
    if not {"p_yes", "reading", "reply_requested", "prompt"} <= set(result.variables):
        return None
    p = result["p_yes"].values.astype(float)
    reading = as_text(result["reading"].values)
    with_text = np.isfinite(p) & result["reply_requested"].values.astype(bool)
    legible = with_text & np.isin(reading, ("yes", "no"))
    if not legible.any():
        return None
    token = p[legible] > 0.5
    words = reading[legible] == "yes"
    agree = token == words
    by_chance = token.mean() * words.mean() + (1 - token.mean()) * (1 - words.mean())
    prompts = as_text(result["prompt"].values)[legible]
    kappa = (agree.mean() - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return Agreement(
        agreement=float(agree.mean()),
        kappa=kappa and float(kappa),
        n=int(legible.sum()),
        unread=int((with_text & ~legible).sum()),
        by_prompt=pd.Series(agree).groupby(prompts, sort=False).mean().to_dict(),
    )


_KEY = (
    "r, RMSE: Pearson correlation and root mean square error of sensitivities, arithmetic mean "
    "over prompts. (mean ± SD): over single prompts.",
    "r log, RMSE log: the same of log10 sensitivities and their geometric mean; 0.3 is a factor "
    "of two.",
    "shape: RMSE log that remains after the best gain. gain: that gain, log10.",
    "prompts: those with a usable threshold at every scored frequency. frequencies: those "
    "scored, of all asked.",
    "CSF: geometric mean over prompts. usable: prompts in it.",
)
_KEY_OF_INTERVALS = (
    "intervals over prompts, {confidence} %: if other prompts and images had been taken; of fewer "
    "than three prompts over trials: if the same had been asked about other images.",
)
_KEY_OF_JUDGE = (
    "read otherwise: of the replies read as text, those that the judge takes differently "
    "(opposite: for the other answer; left out: for neither), and the score under it.",
)
_KEY_WITHOUT_PEOPLE = (
    "thresholds: usable ones, of all prompts and levels.",
    "sensitivity: 1 / threshold contrast, geometric mean over prompts. usable: prompts in it.",
    "There is no human reference to compare with.",
)

_KEY_OF_DIFFERENCES = (
    "threshold: where answers are right, or yes, halfway from guessing to certainty; of two "
    "images 75 % (d' = 0.954). Its inverse stands in place of a sensitivity.",
)

#: Attributes of a result that tell how it is fitted.
_FIT_ATTRIBUTES = ("design", "readout", "experiment_toml", "experiment")

_KEY_OF_EFFICIENCY = (
    "efficiency: energy of the threshold of an ideal observer in the same noise, task and "
    "criterion, over that of this threshold; from 0 to 1 but for error. ideal: sensitivity of that "
    "observer. energy: contrast energy of the threshold.",
)

_KEY_OF_MASKING = (
    "N_eq: density of noise in the light that would stand for the observer's own, where energy = "
    "d'² (N + N_eq) / efficiency. residuals: their root mean square in log10 contrast; p: how "
    "often they are as large where this holds. Both intervals: over trials, by profile likelihood.",
)

_KEY_OF_ACUITY = (
    "limit: 1 / that period, the highest frequency told from a uniform field.",
)

_READOUTS = {"text": "text answers", "p_yes": "P(yes)"}
#: Resamples where only the values are wanted.
_FEWEST = 100
#: Lapse rates of observers that are not decision stages.
_COMMON_LAPSES = (0.0, 0.1)
#: Headings of the statistics in tables.
HEADINGS = dict(
    zip(comparison.STATISTICS, ("r", "RMSE", "r log", "RMSE log", "shape"), strict=True)
)


@dataclass(frozen=True)
class CsfPoint:
    """The sensitivity measured at one level."""

    #: Value of the level, as a frequency in cpd.
    value: float
    #: Geometric mean over usable prompts; None where there is none.
    sensitivity: float | None
    #: Its interval; None where an end is open.
    low: float | None
    high: float | None
    #: Sensitivity of people; None where the curve does not reach, or there is none.
    human: float | None
    #: Prompts with a usable threshold.
    usable: int
    #: Number of all prompts.
    prompts: int
    #: How many prompts have which status.
    statuses: Mapping[str, int]
    #: Prompts of which more than 10 % of the replies say neither yes nor no.
    low_validity: int
    #: Questions that do not count because their contrast could not be delivered.
    not_shown: int
    #: Whether the threshold lies below a contrast of 0.03 on a screen that nobody measured.
    unsure: bool
    #: Efficiency in noise of a stated density, with the threshold of the ideal observer.
    efficiency: Efficiency | None = None

    def cells(self, unit: str, finest: bool) -> dict[str, str]:
        """Format a level's sensitivity, threshold or highest frequency as table cells."""
        counts = {status: n for status, n in self.statuses.items() if status != "ok"}
        counts |= {"low validity": self.low_validity}
        counts |= {"questions could not be shown": self.not_shown}
        remarks = [f"{n} {remark}" for remark, n in counts.items() if n]
        remarks += [UNSURE] * self.unsure
        numbers = [self.sensitivity, self.low, self.high, self.human]
        heading = "limit (cpd)" if finest else "sensitivity"
        if unit and not finest:
            heading = f"threshold ({unit})"
            thresholds = [value and 1 / value for value in numbers]
            numbers = [thresholds[place] for place in (0, 2, 1, 3)]
        value, low, high, people = map(plain_number, numbers)
        return {
            heading: "-" if self.sensitivity is None else f"{value} [{low}, {high}]",
            "people": people,
            **self._efficiency_cells(remarks),
            "usable": f"{self.usable}/{self.prompts}",
            "remarks": ", ".join(remarks),
        }

    def _efficiency_cells(self, remarks: list[str]) -> dict[str, str]:
        """Format the efficiency as cells, remarking on one that is impossible."""
        score = self.efficiency
        if score is None:
            return {}
        if score.low is not None and score.low > 1:
            remarks.append(
                "efficiency above 1: something but the signal tells it, or the noise has another "
                "density"
            )
        value, low, high = map(plain_number, (score.efficiency, score.low, score.high))
        return {
            "energy (deg²)": plain_number(score.energy),
            "efficiency": "-"
            if score.efficiency is None
            else f"{value} [{low}, {high}]",
            "ideal": plain_number(1 / score.ideal if score.ideal else None),
        }


@dataclass(frozen=True)
class ChatScore(Tabled):
    """The score of a questioning run."""

    observer: str
    experiment: str
    #: Reading of the answers that counted.
    readout: str
    #: True if the observer was not trained.
    random_weights: bool
    #: Parameter that was varied: "frequency", "phase", "luminance".
    level: str
    #: Unit of the level.
    unit: str
    #: The curve with which it is compared first; empty where there is none.
    human: str
    #: Scores by human curve, `human` first.
    scores: Mapping[str, comparison.CsfScores]
    #: The same statistics, against `human`, of an observer that knows nothing of frequency: the
    #: constant sensitivity nearest to people (of the sensitivities for linear statistics, of their
    #: logarithms for the others).
    flat: Mapping[str, float | None]
    #: The same of no sensitivity at all.
    blind: Mapping[str, float | None]
    #: Level by level.
    curve: tuple[CsfPoint, ...]
    #: Median over prompts of the rate of yes without a pattern.
    guess: float | None
    #: Median over prompts of the rate of no to any.
    lapse: float | None
    #: Share of replies that say neither yes nor no, and are left out.
    excluded: float
    #: Agreement of first tokens and text, where both were read.
    agreement: Agreement | None
    #: How a judge differs from the rules, and the same statistics under it.
    readings: tuple[Rereading, ...]
    #: What was sent or fitted in place of what was asked for or is usual, as sentences.
    instead: tuple[str, ...]
    #: How many questions a server refused, as a sentence.
    refusals: list[str]
    #: Sentences on a person's sessions: how much was asked, and what the screen leaves open.
    sessions: tuple[str, ...]
    #: Cost of the answers in tokens and money, as a sentence; empty where nothing was counted.
    spent: str
    #: Confidence of all intervals.
    confidence: float
    #: Thresholds over densities of noise; None over another level.
    masking: NoiseMasking | None
    #: Whether a decision stage would tell more after more training.
    training_limited: bool
    #: Unit of the difference of two images; empty where contrast was varied.
    difference_unit: ClassVar[str] = ""
    #: Whether that is the period of the finest stripes, whose inverse is the highest frequency.
    finest: ClassVar[bool] = False
    #: Answers in words have neither.
    layer: ClassVar[str] = ""
    measure: ClassVar[str] = ""

    def rows(self) -> list[Row]:
        """Build the table rows of agreement with people, prompts, baselines and each level."""
        readout = _READOUTS.get(self.readout, self.readout)
        loud = " (random weights)" * self.random_weights
        if self.human:
            rows = self._comparison_rows(
                f"{self.experiment} ({readout}, against {comparison.curve_label(self.human)})"
            )
        else:
            usable = sum(point.usable for point in self.curve)
            prompts = sum(point.prompts for point in self.curve)
            cells = {"thresholds": f"{usable}/{prompts}"}
            title = f"{self.experiment} ({readout})"
            record = self._record("", None)
            notes = self._remarks()
            rows = [Row(title, OBSERVER, "", cells, record, self._entries(), notes)]
        of_frequency = (
            self.human and self.level == "frequency" and not self.difference_unit
        )
        axis = "CSF (cpd)" if of_frequency else f"{self.level} ({self.unit})"
        curve = f"{self.observer}{loud}: {axis}"
        for point in self.curve:
            cells = point.cells(self.difference_unit, self.finest)
            if not self.human:
                del cells["people"]
            rows.append(Row(curve, OBSERVER, f"{point.value:g}", cells))
        if self.masking is not None:
            title = f"{self.observer}{loud}: equivalent input noise"
            rows.append(Row(title, OBSERVER, "", self.masking.cells()))
        title = f"{self.observer}: the same replies read otherwise"
        for reading in self.readings:
            if reading.differ:
                cells = reading.cells | _number_cells(reading.score)
                rows.append(Row(title, OBSERVER, reading.reader, cells))
        return rows

    def _comparison_rows(self, title: str) -> list[Row]:
        """Build table rows of the agreement with the human CSF, its spread and baselines."""
        scores = self.scores[self.human]
        cells = {
            **interval_cells(scores),
            "gain": number(scores.gain, sign=True),
            "prompts": f"{scores.n_valid}/{scores.n_prompts}",
            "frequencies": f"{scores.n_frequencies}/{scores.n_asked}",
        }
        record = self._record(self.human, scores)
        notes = self._remarks()
        rows = [Row(title, OBSERVER, "", cells, record, self._entries(), notes)]
        if scores.n_prompts > 1:
            spread = {
                HEADINGS[name]: _format_spread(statistic, name)
                for name, statistic in scores.statistics.items()
            }
            rows.append(Row(title, OBSERVER, "  single prompts", spread))
        trivial = {"flat curve": self.flat, "blind observer": self.blind}
        for label, values in trivial.items():
            rows.append(Row(title, label, label, _number_cells(values)))
        return rows + [
            Row("", OBSERVER, "", {}, self._record(name, other_scores))
            for name, other_scores in self.scores.items()
            if name != self.human
        ]

    def _entries(self) -> Mapping[Metric, Entry]:
        """Rank the observer by its efficiency, where there is one."""
        if self.masking is not None:
            return self.masking.entries()
        shown = [point.efficiency for point in self.curve if point.efficiency]
        return mean_entries(shown, limited=self.training_limited)

    def _record(self, human: str, scores: comparison.CsfScores | None) -> JsonObject:
        """Collect the agreement with one human CSF as a flat record."""
        record: JsonObject = {
            "experiment": self.experiment,
            "observer": self.observer,
            "readout": self.readout,
            "random_weights": int(self.random_weights),
            "responder": "observer",
            "human": human,
            "confidence": self.confidence,
            "interval_over": scores and scores.interval_over,
        }
        for name, statistic in scores.statistics.items() if scores else ():
            record |= statistic.to_record(name)
        record["gain_log10"] = scores and scores.gain
        for name in ("n_valid", "n_prompts", "n_frequencies", "n_asked"):
            record[name] = getattr(scores, name, None)
        return record | {
            "guess": self.guess,
            "lapse": self.lapse,
            "excluded": self.excluded,
            "agreement": self.agreement and self.agreement.agreement,
            "kappa": self.agreement and self.agreement.kappa,
            **(self.masking.record() if self.masking else {}),
        }

    def _remarks(self) -> list[str]:
        """Write the notes below the score's table: validity, refusals, read-outs, cost."""
        notes = [*self.sessions]
        if self.human and self.scores[self.human].interval_over == comparison.NOTHING:
            notes.append(
                "scores have no intervals: few wordings are usable, and a threshold's is open "
                "at both ends"
            )
        if self.guess is not None and self.lapse is not None and not self.sessions:
            notes.append(
                f"yes without a pattern {self.guess:.2f}, no to any {self.lapse:.2f} (medians "
                "over prompts)"
            )
        if self.excluded:
            notes.append(
                f"{percent(self.excluded, 2)} of the replies say neither yes nor no and are "
                "left out"
            )
        notes += self.refusals
        if self.agreement is not None:
            agreement = self.agreement
            note = (
                f"first token and text agree in {agreement.agreement:.3f} of {agreement.n} "
                "answers"
            )
            if agreement.kappa is not None:
                note += f", kappa {agreement.kappa:.2f}"
            if not agreement.enough and self.readout != "text":
                note += "; below 0.95, so read the text instead"
            notes.append(note)
        notes += filter(None, [*self.instead, self.spent])
        notes += self.masking.remarks if self.masking else ()
        alike = [reading.reader for reading in self.readings if not reading.differ]
        if alike and not self.sessions:
            notes.append(
                f"read alike by {' and by '.join(alike)}: all {self.readings[0].n} replies"
            )
        return notes

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        key = _KEY if self.human else _KEY_WITHOUT_PEOPLE
        return [
            *key,
            *_KEY_OF_INTERVALS,
            *_KEY_OF_JUDGE * bool(self.readings),
            *_KEY_OF_DIFFERENCES * bool(self.difference_unit),
            *_KEY_OF_ACUITY * self.finest,
            *_KEY_OF_EFFICIENCY * any(point.efficiency for point in self.curve),
            *_KEY_OF_MASKING * (self.masking is not None),
        ]


@dataclass(frozen=True)
class ChoiceScore(ChatScore):
    """The score of a run that asked which of two images has more of something."""

    #: Unit of the difference of two images.
    difference_unit: str = ""  # type: ignore[misc]
    #: Whether that is the period of the finest stripes.
    finest: bool = False  # type: ignore[misc]


def score_chat(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    human: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **options: Option,
) -> tuple[ChatScore]:
    """Score a CSF measured in words against the human CSF.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    measure, layer : None
        Answers in words have neither.
    human : str, optional
        The curve to compare with first, as `human_names` lists them; without it the experiment's.
    confidence, resamples, seed
        Of the intervals, of the bootstrap of the scores, and of all resampling.
    **options
        How to fit, as for `chat_csf`.

    Raises
    ------
    InputError
        If this is no result of a questioning run, nothing of it can be read, or a measure or layer
        is named.
    UnknownNameError
        If there is no such human curve.
    """
    refuse_features(measure=measure, layer=layer)
    result = trials(result)
    csf = chat_csf(result, confidence=confidence, seed=seed, **options)
    with_lapses = csf
    if "training" in result.attrs:
        with_lapses = chat_csf(
            result, seed=seed, **{"lapse": _COMMON_LAPSES, **options}
        )
    (level,) = levels_of(csf)
    page = None if human else comparison.human_of_page(csf)
    curves: dict[str, FloatArray] = {}
    if page is not None and page[0]:
        curves = dict([page])
    elif page is None and level == "frequency":
        first = human or comparison.default_human(csf)
        curves = {
            curve_name: comparison.human_curve(csf, curve_name)[1]
            for curve_name in (first, *comparison.human_names())
        }
    name = next(iter(curves), "")
    curve = curves.get(name, np.full(csf.sizes[level], np.nan))
    scores = {
        curve_name: comparison.compare_with_human(
            csf, {curve_name: human_curve}, resamples=resamples, seed=seed
        )
        for curve_name, human_curve in curves.items()
    }
    flat, blind = _trivial(curve[np.isfinite(curve)])

    def statistics(other: xr.Dataset) -> dict[str, float | None]:
        if not curves:
            return {}
        csf_of_other = chat_csf(other, confidence=confidence, seed=seed, **options)
        return _values(
            comparison.compare_with_human(
                csf_of_other, {name: curve}, resamples=_FEWEST, seed=seed
            )
        )

    count = float(csf["trials"].sum() + csf["catch_trials"].sum())
    excluded = float(csf["excluded"].sum() + csf["catch_excluded"].sum())
    stimulus_axis = stimulus_axis_of(csf).name
    score_class: type[ChatScore] = ChatScore
    extra_fields: JsonObject = {}
    if stimulus_axis != "contrast":
        score_class = ChoiceScore
        extra_fields["difference_unit"] = unit_symbol(csf[stimulus_axis].attrs)
        extra_fields["finest"] = stimulus_axis == "period"
    return (
        score_class(
            observer=observer_of(result),
            experiment=str(result.attrs.get("experiment", "")),
            readout=str(result.attrs.get("readout", "text")),
            random_weights=bool(result.attrs.get("random_weights", 0)),
            level=level,
            unit=unit_symbol(csf[level].attrs),
            **extra_fields,
            human=name,
            scores=scores,
            flat=flat,
            blind=blind,
            curve=_collect_points(csf, level, curve),
            guess=_median(csf["guess"].values),
            lapse=_median(csf["lapse"].values),
            excluded=excluded / max(count + excluded, 1.0),
            agreement=answer_agreement(result),
            readings=judge_rereadings(
                result, _values(scores[name]) if curves else {}, statistics
            ),
            instead=(
                *replaced_settings(result),
                *fit_notes(
                    *(str(result.attrs.get(name, "")) for name in _FIT_ATTRIBUTES)
                ),
                *misfit_notes(csf),
            ),
            refusals=describe_refusals(result.attrs),
            sessions=(
                *session_notes(csf),
                *training_notes(result),
                *curve_notes(csf, with_lapses),
            ),
            spent=describe_result_cost(result.attrs),
            confidence=confidence,
            masking=noise_masking(csf),
            training_limited=bool(limited_stages(result)),
        ),
    )


def session_notes(csf: xr.Dataset) -> tuple[str, ...]:
    """Describe a person's sessions in sentences; none for other observers."""
    sessions = sessions_of(csf)
    if not sessions:
        return ()
    answers = sum(session.trials for session in sessions)
    lapse = _median(csf["lapse"].values)
    notes = [f"{answers} answers in {len(sessions)} session{'s' * (len(sessions) > 1)}"]
    notes[0] += "" if lapse is None else f", wrong at any contrast {lapse:.2f}"
    if "prior" in (options := json.loads(csf.attrs["fit"])):
        whose = "ordinary eyes" if options["prior"] == "people" else "any eyes"
        notes[0] += f"; the curve is the posterior of qCSF with the prior for {whose}"
    if "session_area" in csf and len(sessions) > 1:
        areas = ", ".join(f"{area:.2f}" for area in csf["session_area"].values)
        notes.append(f"area under the log CSF of each session, in order: {areas}")
    if is_remote(csf):
        notes.append(
            "answered elsewhere, on a screen of their own: its light, the distance within 10 % and "
            "who sat there are taken on trust; groups and differences within a person can be told, "
            "thresholds of one person cannot"
        )
    offset = float(csf.attrs["screen_offset"])
    if task_of(csf).axis != CONTRAST_AXIS:
        note = f"intervals hold the error of the distance, {offset:.2g} log10 (1 SD)"
        return (*notes, note)
    note = f"intervals hold the screen's error, {offset:.2g} log10 (1 SD) for all thresholds"
    is_guessed = any(session.screen.light != "measured" for session in sessions)
    if is_guessed and not experiment_table(csf, "noise").get("density"):
        note += " and 0.15 below a contrast of 0.03 on one that nobody measured"
    return (*notes, note)


def misfit_notes(csf: xr.Dataset) -> tuple[str, ...]:
    """Describe how far curves measured by qCSF deviate from its log-parabola.

    None for other designs.
    """
    if "misfit" not in csf:
        return ()
    odds = csf["misfit_bayes_factor"].values
    contradictions = int((odds > CONTRADICTION).sum())
    if odds.size > 1 and contradictions:
        return (
            f"{contradictions} of {odds.size} wordings deviate from the log-parabola of qCSF "
            f"(Bayes factor above {CONTRADICTION:g}); intervals allow for it",
        )
    if not contradictions:
        return (
            "no sign of a deviation from the log-parabola of qCSF: Bayes factor "
            f"{odds.max():.1f}; one of 0.12 log10 shows in a fifth of cases at 30 questions a "
            "frequency",
        )
    deviation, low, high = (
        float(csf[f"misfit{end}"].values[0]) for end in ("", "_low", "_high")
    )
    note = (
        f"deviates from the log-parabola of qCSF: SD {deviation:.2f} [{low:.2f}, {high:.2f}] "
        f"log10, Bayes factor {odds[0]:.0f}; intervals allow for it"
    )
    (level,) = levels_of(csf)
    means = csf["deviation"].values[0]
    sizes = np.abs(means) / csf["deviation_sd"].values[0]
    if sizes.max() > _LARGE_DEVIATION:
        place = int(sizes.argmax())
        direction = "above" if means[place] > 0 else "below"
        value = f"{csf[level].values[place]:g} {unit_symbol(csf[level].attrs)}"
        note += f"; at {value} {abs(means[place]):.2f} {direction}"
    return (note,)


def replaced_settings(result: xr.Dataset) -> tuple[str, ...]:
    """Describe which settings a server refused, and what it was asked instead.

    Examples
    --------
    >>> import xarray
    >>> settings = '[{"name": "temperature", "requested": 0.0, "sent": null, "answers": 90}]'
    >>> replaced_settings(xarray.Dataset(attrs={"replaced_settings": settings}))
    ('temperature 0.0 was left out of 90 questions, since the server does not take it',)
    """
    sentences = []
    for load in json.loads(result.attrs.get("replaced_settings", "[]")):
        name, requested, replacement, count = map(
            load.get, ("name", "requested", "sent", "answers")
        )
        if name == "logprobs":
            sentences.append(
                f"no log-probabilities came back of {count} questions that asked for them"
            )
        elif replacement is None:
            sentences.append(
                f"{name} {requested} was left out of {count} questions, since the server does not "
                "take it"
            )
        elif name != "top_logprobs":
            sentences.append(
                f"{name} {replacement} was sent in place of {requested} in {count} questions"
            )
    return tuple(sentences)


def refuse_features(**options: str | None) -> None:
    """Refuse options of feature observers, which answers in words do not have."""
    names = [name for name, value in options.items() if value is not None]
    if names:
        raise InputError(
            f"answers in words have no {' and no '.join(names)}; leave "
            f"{'it' if len(names) == 1 else 'them'} out"
        )


def _collect_points(
    csf: xr.Dataset, level: str, human: FloatArray
) -> tuple[CsfPoint, ...]:
    """Collect sensitivity, interval and statuses at each level of a CSF."""
    statuses = flag_words(csf["status"]).T.tolist()
    values = {name: variable.values for name, variable in csf.variables.items()}
    unsure = values.get("unsure", np.zeros(csf.sizes[level]))
    efficiency = {score.value: score for score in efficiencies(csf)}
    return tuple(
        CsfPoint(
            value=float(values[level][i]),
            sensitivity=_finite_or_none(values["mean_sensitivity"][i]),
            low=_finite_or_none(values["mean_sensitivity_low"][i]),
            high=_finite_or_none(values["mean_sensitivity_high"][i]),
            human=_finite_or_none(human[i]),
            usable=int(values["n_usable"][i]),
            prompts=csf.sizes["prompt"],
            statuses=dict(Counter(statuses[i])),
            low_validity=int(values["low_validity"][:, i].sum()),
            not_shown=int(values["not_shown"][i]),
            unsure=bool(unsure[i]),
            efficiency=efficiency.get(float(values[level][i])),
        )
        for i in range(csf.sizes[level])
    )


def _trivial(human: Any) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Compute the scores of the best constant CSF, and of one that sees nothing."""
    unknown: dict[str, float | None] = dict.fromkeys(comparison.STATISTICS)
    if not human.size:
        return unknown, unknown
    log_sd = float(np.log10(human).std())
    flat = {"rmse_log10": log_sd, "shape_rmse_log10": log_sd}
    flat["rmse_linear"] = float(human.std())
    blind = {"rmse_linear": float(np.sqrt((human**2).mean()))}
    return unknown | flat, unknown | blind


def _values(scores: comparison.CsfScores) -> dict[str, float | None]:
    """Collect the values of a CSF's scores by name."""
    return {name: statistic.value for name, statistic in scores.statistics.items()}


def _finite_or_none(value: Any) -> float | None:
    """Convert to a float, or to None if it is not finite."""
    return float(value) if np.isfinite(value) else None


def _median(values: Any) -> float | None:
    """Compute the median of finite values; None if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def plain_number(value: float | None) -> str:
    """Format a number with three significant digits or all before the point, or as "-"."""
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def interval_cells(scores: comparison.CsfScores) -> dict[str, str]:
    """Format scores of a CSF with their intervals as table cells."""
    return {
        HEADINGS[name]: interval_text(part.value, part.low, part.high, digits_of(name))
        for name, part in scores.statistics.items()
    }


def _number_cells(values: Mapping[str, float | None]) -> dict[str, str]:
    """Format scores of a CSF as table cells, without intervals."""
    return {
        HEADINGS[name]: number(value, digits_of(name)) for name, value in values.items()
    }


def _format_spread(statistic: comparison.Statistic, name: str) -> str:
    """Format the mean ± SD over prompts of a statistic."""
    digits = digits_of(name)
    mean = number(statistic.prompt_mean, digits)
    sd = statistic.prompt_sd
    return mean if sd is None else f"{mean} ± {number(sd, digits)}"


def digits_of(name: str) -> int:
    """Return the number of decimals to format a score with."""
    return {"rmse_linear": 1, "rmse_log10": 2, "shape_rmse_log10": 2}.get(name, 3)
