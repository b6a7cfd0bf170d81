"""How often 95 % intervals hold the truth, for every kind that is offered, as a Markdown table.

python benchmarks/interval_coverage.py [KIND ...] [--observers N] [--psignifit CURVES]

Observers of known truth are drawn, answer, and are measured; each row counts the intervals that
hold what they were drawn with. "no value": the share of them about which a status says that there
is no number, and that are not counted. An interval may be open. psignifit takes nearly a second of
processor a curve with its rates fixed, and 16 with free ones, so that only the first are compared.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from psyprobe.analysis.alignment import align
from psyprobe.analysis.intervals import bounded_interval
from psyprobe.analysis.matching import matching_error
from psyprobe.analysis.psychometric import (
    WITH_THRESHOLD,
    fit_psychometric,
    psychometric_function,
)
from psyprobe.analysis.psychometric.csf_posterior import (
    CONTRADICTION,
    CsfGrid,
    CsfPosterior,
    csf_posterior,
    log_parabola,
    spread_parabolas,
)
from psyprobe.analysis.words.csf import prompt_mean
from psyprobe.analysis.words.fit import ChatFit
from psyprobe.analysis.words.logit_fit import (
    fit_logits,
    logit_status,
    threshold_interval,
)
from psyprobe.probes.designs import Design, QuestPlus, QuickCSF, ladder

LEVELS = np.linspace(-3.0, -1.0, 9)
BROAD = (0.5, 1.2)
NARROW = (0.05, 0.25)
FREQUENCIES = (1.0, 2.0, 4.0, 8.0, 16.0)
SIX_FREQUENCIES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
CONTRASTS = np.geomspace(0.001, 1.0, 61)


@dataclass(frozen=True)
class Row:
    """What was simulated, and for each interval whether it holds the truth, and its length."""

    kind: str
    case: str
    covered: np.ndarray
    length: np.ndarray
    #: Share of all intervals without a number.
    lost: float = 0.0

    def __str__(self) -> str:
        n = self.covered.size
        share = self.covered.mean()
        length = np.median(self.length)
        return (
            f"| {self.kind} | {self.case} | {n} | {100 * share:.1f} ± "
            f"{100 * np.sqrt(share * (1 - share) / n):.1f} "
            f"| {length:.2f} | {100 * self.lost:.0f} % |"
        )


def simulate_curves(
    rng: np.random.Generator,
    size: int,
    widths: tuple[float, float],
    trials: int,
    rates: bool,
):
    """Answers of logistic observers, with their thresholds and widths."""
    threshold = rng.uniform(-2.3, -1.7, size)
    width = rng.uniform(*widths, size)
    guess, lapse = (
        rng.uniform(0, maximum, size) if rates else np.zeros(size)
        for maximum in (0.2, 0.06)
    )
    true = (parameter[:, None] for parameter in (threshold, width, guess, lapse))
    return (
        threshold,
        width,
        rng.binomial(trials, psychometric_function(LEVELS, *true, function="logistic")),
    )


def of_fit(
    kind: str, case: str, fit, threshold: np.ndarray, width: np.ndarray
) -> Iterator[Row]:
    """Rows of threshold and width; of a step's threshold beside them."""
    has_threshold = np.isin(fit.status, WITH_THRESHOLD)
    for name, truth, low, high in (
        ("threshold", threshold, fit.log10_threshold_low, fit.log10_threshold_high),
        ("width", width, fit.log10_width_low, fit.log10_width_high),
    ):
        covered = (low <= truth) & (truth <= high)
        yield Row(
            f"{name}, {kind}",
            case,
            covered[has_threshold],
            (high - low)[has_threshold],
            1 - has_threshold.mean(),
        )
        step = np.isin(fit.status, ("separable", "quasi_separable"))
        if name == "threshold" and step.sum() >= 20:
            yield Row(
                f"{name}, {kind}",
                f"{case}: steps alone",
                covered[step],
                (high - low)[step],
            )


def psychometric(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Threshold and width by profile likelihood and bootstrap."""
    for name, widths, trials, rates in (
        ("broad, 9 x 10 trials", BROAD, 10, False),
        ("broad, 9 x 40 trials", BROAD, 40, False),
        ("narrow, 9 x 10 trials", NARROW, 10, False),
        ("broad, 9 x 10 trials, rates free", BROAD, 10, True),
    ):
        threshold, width, yes = simulate_curves(rng, size, widths, trials, rates)
        how = {"guess": "fit", "lapse": "fit"} if rates else {}
        yield from of_fit(
            "profile",
            name,
            fit_psychometric(10**LEVELS, yes, trials, **how),
            threshold,
            width,
        )
        if trials == 10 and widths is BROAD:
            subset = slice(size // 4)
            fit = fit_psychometric(
                10**LEVELS,
                yes[subset],
                trials,
                interval="bootstrap",
                resamples=199,
                **how,
            )
            yield from of_fit("bootstrap", name, fit, threshold[subset], width[subset])
    threshold = rng.uniform(-2.3, -1.7, size)
    width = rng.uniform(*BROAD, size)
    yes, trial_counts, levels = staircase(rng, threshold, width, 100)
    yield from of_fit(
        "profile",
        "staircase, 100 trials",
        fit_psychometric(10**levels, yes, trial_counts),
        threshold,
        width,
    )


def staircase(
    rng: np.random.Generator, threshold: np.ndarray, width: np.ndarray, trials: int
):
    """Two yes down, one no up, in steps of 0.1 log10: counts, shape (observers, levels)."""
    levels = np.arange(-35, -4) / 10
    size = threshold.size
    yes, trial_counts = np.zeros((2, size, levels.size))
    place = np.full(size, levels.size - 1)
    run = np.zeros(size, dtype=int)
    curves = np.arange(size)
    for _ in range(trials):
        rate = psychometric_function(
            levels[place], threshold, width, function="logistic"
        )
        responses = rng.random(size) < rate
        trial_counts[curves, place] += 1
        yes[curves, place] += responses
        run = np.where(responses, run + 1, 0)
        step = np.where(~responses, 1, np.where(run == 2, -1, 0))
        run[run == 2] = 0
        place = np.clip(place + step, 0, levels.size - 1)
    return yes, trial_counts, levels


def short_staircases(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds of few trials in two intervals, at 1 to 18 conditions: posterior and profile."""
    for conditions, median, spread, trials in (
        (18, 0.6, 0.1, 25),
        (18, 0.6, 0.1, 40),
        (18, 0.6, 0.1, 80),
        (6, 0.6, 0.1, 40),
        (1, 0.6, 0.1, 40),
        (18, 0.6, 0.2, 40),
        (6, 0.3, 0.05, 40),
        (6, 1.2, 0.1, 40),
    ):
        kinds = ("posterior", "profile") if median == 0.6 else ("posterior",)
        ends: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
        truth = []
        for _ in range(max(1, size // conditions)):
            threshold = rng.uniform(-2.2, -0.9, conditions)
            width = 10 ** rng.normal(np.log10(median), spread, conditions)
            right, trial_counts, levels = choices_by_staircase(
                rng, threshold, width, trials
            )
            truth.append(threshold)
            for kind in kinds:
                fit = fit_psychometric(
                    10**levels,
                    right,
                    trial_counts,
                    guess=0.5,
                    lapse="fit",
                    shared=(-1,),
                    interval=kind,
                )
                ends[kind].append([fit.log10_threshold_low, fit.log10_threshold_high])
        true = np.concatenate(truth)
        for kind in kinds:
            low, high = np.concatenate(ends[kind], axis=-1)
            has_interval = ~np.isnan(low)
            is_open = np.isinf(high[has_interval]).mean()
            yield Row(
                f"threshold, {kind}",
                f"staircase, two intervals, {trials} trials, {conditions} conditions, widths "
                f"{median:g} × 10^±{spread:g}; {100 * is_open:.0f} % open above",
                ((low <= true) & (true <= high))[has_interval],
                (high - low)[has_interval],
                1 - has_interval.mean(),
            )


def choices_by_staircase(
    rng: np.random.Generator, threshold: np.ndarray, width: np.ndarray, trials: int
):
    """Three right down, one wrong up, in two intervals, from half a log10 unit above."""
    levels = np.arange(-40, 1) / 10
    place = np.rint((threshold + 4.5) * 10).astype(int)
    size = threshold.size
    right, trial_counts = np.zeros((2, size, levels.size))
    run = np.zeros(size, dtype=int)
    curves = np.arange(size)
    for _ in range(trials):
        rate = psychometric_function(
            levels[place], threshold, width, 0.5, 0.02, function="logistic"
        )
        is_right = rng.random(size) < rate
        trial_counts[curves, place] += 1
        right[curves, place] += is_right
        run = np.where(is_right, run + 1, 0)
        step = np.where(~is_right, 1, np.where(run == 3, -1, 0))
        run[run == 3] = 0
        place = np.clip(place + step, 0, levels.size - 1)
    return right, trial_counts, levels


def words(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Mean sensitivity over wordings that move the threshold, and over identical ones."""
    for name, prompts, apart, widths in (
        ("5 wordings 0.2 log10 apart", 5, 0.2, BROAD),
        ("5 wordings, all alike, narrow curves", 5, 0.0, NARROW),
        ("25 wordings, all alike, narrow curves", 25, 0.0, NARROW),
        ("1 wording", 1, 0.0, BROAD),
    ):
        observers = max(20, size // max(prompts, 4))
        centre = rng.uniform(-2.2, -1.8, observers)
        width = rng.uniform(*widths, observers)
        threshold = centre + apart * rng.normal(size=(prompts, observers))
        rate = psychometric_function(
            LEVELS, threshold[..., None], width[:, None], function="logistic"
        )
        fit = fit_psychometric(10**LEVELS, rng.binomial(10, rate), 10)
        nothing = np.full(fit.status.shape, np.nan)
        chat_fit = ChatFit(
            fit.status,
            fit.log10_threshold,
            fit.log10_threshold_low,
            fit.log10_threshold_high,
            fit.log10_width,
            fit.guess,
            fit.lapse,
            nothing,
            nothing,
        )
        mean, low, high, _ = prompt_mean(chat_fit, 0.95)
        is_finite = np.isfinite(mean)
        covered = (low <= -centre) & (-centre <= high)
        yield Row(
            "mean sensitivity of words",
            name,
            covered[is_finite],
            (high - low)[is_finite],
            1 - is_finite.mean(),
        )


def p_yes(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds of log-odds of yes, six curves a prompt, at ten levels and 20 blanks."""
    levels = np.linspace(-3.0, -0.6, 10)
    for images, width, guess, lapse, scatter in (
        (3, 0.8, 0.0, 0.0, 0.5),
        (3, 0.8, 0.0, 0.0, 1.0),
        (3, 0.8, 0.25, 0.0, 0.5),
        (3, 0.3, 0.0, 0.0, 0.5),
        (3, 0.6, 0.02, 0.02, 0.5),
        (1, 0.8, 0.0, 0.0, 0.5),
        (1, 0.8, 0.0, 0.0, 1.0),
        (1, 0.6, 0.02, 0.02, 0.5),
        (1, 0.8, 0.25, 0.02, 1.0),
    ):
        prompts = max(20, int(0.4 * size))
        threshold = rng.uniform(-2.3, -1.3, (prompts, 6))
        x = np.broadcast_to(levels, (*threshold.shape, levels.size))
        rate = psychometric_function(
            x, threshold[..., None], width, guess, lapse, function="logistic"
        ).clip(1e-6, 1 - 1e-6)
        floor = max(guess, 1e-4)
        logit = np.log(rate / (1 - rate))[..., None]
        logit = logit + rng.normal(0, scatter, (*x.shape, images))
        blank = np.log(floor / (1 - floor)) + rng.normal(0, scatter, (prompts, 20))
        fit = fit_logits(x, logit, blank)
        low, high = threshold_interval(fit, logit, blank, 0.95)
        yield Row(
            "threshold of P(yes)",
            f"{images} {'images' if images > 1 else 'image'} a level, width {width:g}, guess {guess:g}, lapse {lapse:g}, "
            f"logit SD {scatter:g}",
            ((low <= threshold) & (threshold <= high)).ravel(),
            (high - low).ravel(),
        )


def p_yes_adaptive(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds of log-odds of yes, six curves a prompt, at the levels that a design chose."""
    for (name, make, runs), (width, guess, lapse, scatter) in itertools.product(
        (
            ("ladder", partial(ladder, contrasts=(0.001, 1.0)), size // 5),
            ("QUEST+", partial(QuestPlus, contrasts=CONTRASTS), size // 5),
            ("qCSF", partial(QuickCSF, contrasts=CONTRASTS), size // 10),
        ),
        (
            (0.8, 0.02, 0.02, 0.5),
            (0.8, 0.02, 0.02, 1.0),
            (0.8, 0.2, 0.02, 0.5),
        ),
    ):
        runs = max(20, runs)
        threshold = parabolas(rng, SIX_FREQUENCIES, runs)
        answers = [
            answers_of_design(
                make(SIX_FREQUENCIES, seed=seed),
                threshold[seed],
                (width, guess, lapse),
                scatter,
                rng,
            )
            for seed in range(runs)
        ]
        x, logit, blank = cells_of(answers, len(SIX_FREQUENCIES))
        fit = fit_logits(x, logit, blank)
        low, high = threshold_interval(fit, logit, blank, 0.95)
        has_threshold = np.isin(logit_status(fit, logit), WITH_THRESHOLD)
        questions = np.mean([len(run) for run in answers])
        yield Row(
            "threshold of P(yes)",
            f"{name}, 6 frequencies, {questions:.0f} questions, width {width:g}, guess {guess:g}, "
            f"lapse {lapse:g}, logit SD {scatter:g}",
            ((low <= threshold) & (threshold <= high))[has_threshold],
            (high - low)[has_threshold],
            1 - has_threshold.mean(),
        )


def parabolas(
    rng: np.random.Generator, frequencies: tuple[float, ...], size: int
) -> np.ndarray:
    """Log10 thresholds of log-parabolas over frequency, each off by 0.07, shape (size, F)."""
    peak = rng.uniform(1.6, 2.2, (size, 1))
    best = rng.uniform(2, 5, (size, 1))
    distance = np.log10(frequencies) - np.log10(best)
    off = rng.normal(0, 0.07, (size, len(frequencies)))
    return -peak + 0.9 * distance**2 + off


def answers_of_design(
    design: Design,
    threshold: np.ndarray,
    shape: tuple[float, float, float],
    scatter: float,
    rng: np.random.Generator,
) -> list[tuple[int, float, float]]:
    """Ask until a design ends: place, contrast (0: blank) and logit of yes of each question."""
    width, guess, lapse = shape
    place_of = {value: place for place, value in enumerate(design.values)}
    answers = []
    while not design.finished:
        for level in design.ask(1):
            place = place_of.get(level.value, 0)
            rate = guess
            if level.contrast:
                x = np.log10(level.contrast)
                rate = psychometric_function(
                    x, threshold[place], width, guess, lapse, function="logistic"
                )
            logit = np.log(rate / (1 - rate)) + rng.normal(0, scatter)
            design.tell(level, float(1 / (1 + np.exp(-logit))))
            answers.append((place, level.contrast, float(logit)))
    return answers


def cells_of(
    answers: list[list[tuple[int, float, float]]], curves: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lay answers out as `fit_logits` takes them: log10 contrasts, logits, those of blanks."""
    cells: list[dict[tuple[int, float], list[float]]] = []
    blanks = []
    for run in answers:
        of_run: dict[tuple[int, float], list[float]] = {}
        for place, contrast, logit in run:
            if contrast:
                of_run.setdefault((place, contrast), []).append(logit)
        cells.append(of_run)
        blanks.append([logit for _, contrast, logit in run if not contrast])
    levels = max(
        sum(place == curve for place, _ in run)
        for run in cells
        for curve in range(curves)
    )
    images = max(len(logits) for run in cells for logits in run.values())
    x = np.zeros((len(cells), curves, levels))
    logit = np.full((*x.shape, images), np.nan)
    for run_place, run in enumerate(cells):
        used = [0] * curves
        for (curve, contrast), logits in sorted(run.items()):
            x[run_place, curve, used[curve]] = np.log10(contrast)
            logit[run_place, curve, used[curve], : len(logits)] = logits
            used[curve] += 1
    blank = np.full((len(blanks), max(map(len, blanks))), np.nan)
    for run_place, logits in enumerate(blanks):
        blank[run_place, : len(logits)] = logits
    return x, logit, blank


def posteriors(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds by QUEST+ and qCSF, of observers from a population."""
    contrasts = np.geomspace(0.001, 1.0, 41)
    for name, make, queries in (("QUEST+", QuestPlus, 50), ("qCSF", QuickCSF, 30)):
        covered = []
        length = []
        for seed in range(max(6, size // 10)):
            guess = 0.2 * rng.random()
            lapse = 0.05 * rng.random()
            width = 0.7 * 10 ** rng.normal(0, 0.15)
            # A log-parabola, which is what qCSF assumes.
            peak = rng.uniform(1.6, 2.2)
            threshold = (
                -peak + 0.9 * (np.log10(FREQUENCIES) - np.log10(rng.uniform(2, 5))) ** 2
            )
            asking = make(FREQUENCIES, contrasts, stop=0.0, n_max=10_000, seed=seed)
            truth = dict(zip(FREQUENCIES, threshold.tolist(), strict=True))
            for _ in range(queries * len(FREQUENCIES)):
                (level,) = asking.ask(1)
                x = np.log10(level.contrast) if level.contrast else -np.inf
                detection_probability = 1 / (
                    1
                    + np.exp(
                        -2 * np.log(19) * (x - truth.get(level.value, 0.0)) / width
                    )
                )
                asking.tell(
                    level,
                    float(
                        rng.random()
                        < guess + (1 - guess - lapse) * detection_probability
                    ),
                )
            estimate = asking.estimate()
            true = -np.array([truth[value] for value in estimate.values])
            covered.append((estimate.low <= true) & (true <= estimate.high))
            length.append(estimate.high - estimate.low)
        case = f"5 frequencies, {queries} questions each"
        yield Row(
            f"posterior, {name}", case, np.concatenate(covered), np.concatenate(length)
        )


def draw_parabola(
    rng: np.random.Generator, frequencies: tuple[float, ...]
) -> np.ndarray:
    """Draw a log-parabola: log10 sensitivity at some frequencies."""
    return log_parabola(
        np.array(frequencies),
        rng.uniform(1.8, 2.4),
        rng.uniform(0.3, 0.6),
        rng.uniform(0.4, 0.6),
        rng.uniform(0.4, 0.8),
    )


def off_parabola(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds by qCSF in two intervals, of curves that deviate from a log-parabola."""
    frequencies = (0.5, *FREQUENCIES)
    contrasts = np.geomspace(0.001, 1.0, 61)
    for spread in (0.0, 0.12, 0.2):
        for name, csf in (("learned", CsfGrid()), ("0.07", CsfGrid(deviation=0.07))):
            covered = []
            length = []
            odds = []
            for seed in range(max(6, size // 10)):
                curve = draw_parabola(rng, frequencies)
                true = curve + rng.normal(0, spread, curve.size)
                asking = QuickCSF(
                    frequencies,
                    contrasts,
                    chance=0.5,
                    stop=0.0,
                    n_max=180,
                    csf=csf,
                    seed=seed,
                )
                while not asking.finished:
                    (level,) = asking.ask(1)
                    threshold = -true[frequencies.index(level.value)]
                    x = np.log10(level.contrast)
                    right = psychometric_function(
                        x, threshold, 0.6, 0.5, 0.02, function="logistic"
                    )
                    asking.tell(level, float(rng.random() < right))
                estimate = asking.estimate()
                covered.append((estimate.low <= true) & (true <= estimate.high))
                length.append(estimate.high - estimate.low)
                odds.append(estimate.misfit.bayes_factor)
            contradicted_share = np.mean(np.array(odds) > CONTRADICTION)
            yield Row(
                "posterior, qCSF",
                f"2 intervals, 6 frequencies, 30 questions each, {spread:g} off a parabola; "
                f"deviation {name}; Bayes factor above 3 in {100 * contradicted_share:.0f} %",
                np.concatenate(covered),
                np.concatenate(length),
            )


def parabola_grids(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """The same answers, at fixed distances from thresholds, by parabolas of more or less close
    curves."""
    frequencies = (0.5, *FREQUENCIES)
    csf = CsfGrid()
    cells = len(csf.parameters())
    everywhere = spread_parabolas(csf, np.full(cells, 1 / cells), 20 * cells)
    for spread in (0.0, 0.12):
        estimates: dict[str, list[tuple[np.ndarray, np.ndarray, float]]] = {
            "of the grid": [],
            "refined": [],
            "20 a cell": [],
        }
        for _ in range(max(6, size // 10)):
            curve = draw_parabola(rng, frequencies)
            true = -curve + rng.normal(0, spread, curve.size)
            asked = np.tile([-0.25, -0.05, 0.1, 0.25, 0.45], 6)
            x = true[:, None] + asked
            right = rng.random(x.shape) < psychometric_function(
                x, true[:, None], 0.6, 0.5, 0.02, function="logistic"
            )
            answers = [
                (place, contrast, float(answer))
                for place in range(true.size)
                for contrast, answer in zip(x[place], right[place], strict=True)
            ]
            on_grid = csf_posterior(frequencies, (0.001, 1.0), 0.5)
            on_grid.tell_all(answers)
            dense = CsfPosterior(frequencies, on_grid.grid, csf, everywhere)
            dense.tell_all(answers)
            for kind, posterior in zip(
                estimates, (on_grid, on_grid.refined(csf), dense), strict=True
            ):
                ends = np.array([posterior.interval(place) for place in range(6)])
                covered = (ends[:, 0] <= true) & (true <= ends[:, 1])
                odds = posterior.misfit().bayes_factor
                estimates[kind].append((covered, np.ptp(ends, axis=1), odds))
        log_odds = {
            kind: np.log([odds for _, _, odds in rows])
            for kind, rows in estimates.items()
        }
        for kind, rows in estimates.items():
            contradicted = (log_odds[kind] > np.log(CONTRADICTION)).mean()
            off = log_odds[kind] - log_odds["20 a cell"]
            yield Row(
                f"posterior, qCSF, parabolas {kind}",
                f"2 intervals, 6 frequencies, 30 answers each, {spread:g} off a parabola; "
                f"Bayes factor above 3 in {100 * contradicted:.0f} %, its log off by "
                f"{np.sqrt((off**2).mean()):.2f} (at most {np.abs(off).max():.2f})",
                np.concatenate([covered for covered, _, _ in rows]),
                np.concatenate([length for _, length, _ in rows]),
            )


def choices(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds by QUEST+ in two intervals, each trial in both orders, that ends where they look
    narrow enough."""
    contrasts = np.geomspace(0.001, 1.0, 61)
    rows: dict[str, tuple[list[np.ndarray], list[np.ndarray]]] = {
        "profile": ([], []),
        "posterior, QUEST+": ([], []),
    }
    lost = []
    for seed in range(max(6, size // 10)):
        threshold = rng.uniform(-2, -1, len(FREQUENCIES))
        width = rng.uniform(*BROAD)
        asking = QuestPlus(FREQUENCIES, contrasts, chance=0.5, seed=seed)
        yes, trial_counts = np.zeros((2, len(FREQUENCIES), contrasts.size))
        while not asking.finished:
            for level in asking.ask(12):
                place = FREQUENCIES.index(level.value)
                step = int(np.searchsorted(contrasts, level.contrast))
                detection_probability = psychometric_function(
                    np.log10(level.contrast),
                    threshold[place],
                    width,
                    function="logistic",
                )
                responses = (rng.random(2) < 0.5 + 0.5 * detection_probability).astype(
                    float
                )
                asking.tell(level, responses.tolist())
                yes[place, step] += responses.sum()
                trial_counts[place, step] += 2
        estimate = asking.estimate()
        ends = {"posterior, QUEST+": (-estimate.high, -estimate.low)}
        fit = fit_psychometric(
            contrasts, yes, trial_counts, guess=0.5, lapse=(0.0, 0.1), shared=(-1,)
        )
        has_threshold = np.isin(fit.status, WITH_THRESHOLD)
        lost.append(~has_threshold)
        ends["profile"] = (
            fit.log10_threshold_low[has_threshold],
            fit.log10_threshold_high[has_threshold],
        )
        for name, (low, high) in ends.items():
            true = threshold[has_threshold] if name == "profile" else threshold
            rows[name][0].append((low <= true) & (true <= high))
            rows[name][1].append(high - low)
    for name, (covered, length) in rows.items():
        share = float(np.concatenate(lost).mean()) if name == "profile" else 0.0
        case = "2 intervals, both orders drawn, ends at 0.3"
        yield Row(name, case, np.concatenate(covered), np.concatenate(length), share)


def directions(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Thresholds by qCSF in four directions, each level asked in all of them: what the prior and
    the width do."""
    contrasts = np.geomspace(0.002, 0.95, 55)
    for prior, width in itertools.product(("people", "any"), (0.5, 0.8)):
        covered = []
        length = []
        for seed in range(max(6, size // 10)):
            peak = rng.uniform(1.6, 2.2)
            bandwidth = rng.uniform(0.4, 0.7)
            threshold = -log_parabola(
                np.array(FREQUENCIES), peak, rng.uniform(0.3, 0.6), bandwidth, 0.6
            )
            truth = dict(zip(FREQUENCIES, threshold.tolist(), strict=True))
            asking = QuickCSF(
                FREQUENCIES,
                contrasts,
                chance=0.25,
                prior=prior,
                stop=0.0,
                n_max=45,
                top=0.02,
                seed=seed,
            )
            while not asking.finished:
                (level,) = asking.ask(1)
                z = (np.log10(level.contrast) - truth[level.value]) / width
                right = 0.25 + 0.73 / (1 + np.exp(-2 * np.log(19) * z))
                asking.tell(level, (rng.random(4) < right).astype(float).tolist())
            estimate = asking.estimate()
            true = -np.array([truth[value] for value in estimate.values])
            covered.append((estimate.low <= true) & (true <= estimate.high))
            length.append(estimate.high - estimate.low)
        case = (
            f'4 directions, 45 levels in each, prior "{prior}", curves {width:g} wide'
        )
        yield Row(
            "posterior, qCSF", case, np.concatenate(covered), np.concatenate(length)
        )


def neighbours(
    rng: np.random.Generator, shape: tuple[int, int], alike: float
) -> np.ndarray:
    """Standard normal values along the last axis, of which neighbours correlate."""
    noise = rng.normal(size=shape)
    for k in range(1, shape[1]):
        noise[:, k] = alike * noise[:, k - 1] + np.sqrt(1 - alike**2) * noise[:, k]
    return noise


def alignment(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """The alignment score, of responses to which each slice adds a level of its own."""
    multiplier = np.geomspace(0.5, 2.0, 10)
    log_m = np.log10(multiplier)
    for spread in (0.1, 0.3):
        endless = log_m + spread * rng.normal(size=(1000, 1))
        truth = align(multiplier, endless, resamples=100).value
        for name, alike in (
            ("independent", 0.0),
            ("neighbours correlate 0.5", 0.5),
            ("0.8", 0.8),
        ):
            covered = []
            length = []
            for offset in neighbours(rng, (size // 2, 12), alike):
                alignment = align(
                    multiplier, log_m + spread * offset[:, None], resamples=300
                )
                covered.append(alignment.low <= truth <= alignment.high)
                length.append(alignment.high - alignment.low)
            yield Row(
                "alignment score",
                f"12 slices {spread:g} log10 off, {name}",
                np.array(covered),
                np.array(length),
            )


def matching(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Errors of matched contrast at nine frequencies with five references."""
    for factor in (1.3, 1.8):
        scale = 0.2 * np.exp(np.log(factor) * rng.normal(size=(200_000, 1)))
        squares = ((scale * rng.normal(size=(200_000, 5))) ** 2).mean(axis=1)
        truth = {"mean": np.sqrt(squares).mean(), "pooled": np.sqrt(squares.mean())}
        for name, alike in (("independent", 0.0), ("neighbours correlate 0.5", 0.5)):
            errors = []
            for scales in 0.2 * np.exp(
                np.log(factor) * neighbours(rng, (size, 9), alike)
            ):
                errors.append(
                    matching_error(
                        10 ** (scales * rng.normal(size=(5, 9))),
                        np.ones((5, 9)),
                        resamples=300,
                    )
                )
            for measure, true in truth.items():
                ends = np.array(
                    [
                        (getattr(error, measure).low, getattr(error, measure).high)
                        for error in errors
                    ]
                )
                covered = (ends[:, 0] <= true) & (true <= ends[:, 1])
                case = f"9 frequencies, factor {factor:g}, {name}"
                yield Row(
                    f"matching error, {measure}", case, covered, ends[:, 1] - ends[:, 0]
                )


def proportions(rng: np.random.Generator, size: int) -> Iterator[Row]:
    """Shares of right answers, of which some or all belong together."""
    for items, rate in ((30, 0.5), (30, 0.9), (30, 0.97), (200, 0.9)):
        right = rng.binomial(1, rate, (4 * size, items))
        yield _proportion(f"{items} items, {100 * rate:g} % right", right, rate)
    rates = rng.beta(4, 1, (4 * size, 30))
    right = rng.binomial(4, rates) / 4
    yield _proportion("30 pairs of 4 questions, 80 % right", right, 0.8)


def _proportion(case: str, right: np.ndarray, rate: float) -> Row:
    n = right.shape[1]
    error = right.std(axis=1, ddof=1) / np.sqrt(n)
    means = right.mean(axis=1)
    ends = np.array(
        [
            bounded_interval(float(m), float(e), n, 0.95)
            for m, e in zip(means, error, strict=True)
        ]
    )
    return Row(
        "proportion",
        case,
        (ends[:, 0] <= rate) & (rate <= ends[:, 1]),
        ends[:, 1] - ends[:, 0],
    )


def psignifit_rows(rng: np.random.Generator, curves: int) -> Iterator[Row]:
    """Such curves by psignifit, at its defaults but for the rates."""
    try:
        import psignifit
    except ImportError:
        print("psignifit is not installed, so that its rows are missing")
        return
    for name, widths in (
        ("broad, 9 x 10 trials", BROAD),
        ("narrow, 9 x 10 trials", NARROW),
    ):
        threshold, width, answers = simulate_curves(
            rng, curves, widths, 10, rates=False
        )
        ends = np.empty((2, 2, curves))
        for i, yes in enumerate(answers):
            data = np.stack([LEVELS, yes, np.full(yes.size, 10)], axis=-1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                psignifit_fit = psignifit.psignifit(
                    data,
                    sigmoid="logistic",
                    experiment_type="yes/no",
                    fixed_parameters={"gamma": 0.0, "lambda": 0.0},
                )
            for row, parameter in enumerate(("threshold", "width")):
                ends[row, :, i] = psignifit_fit.confidence_intervals[parameter]["0.95"]
        for (low, high), truth, quantity in zip(
            ends, (threshold, width), ("threshold", "width"), strict=True
        ):
            yield Row(
                f"{quantity}, psignifit 4",
                name,
                (low <= truth) & (truth <= high),
                high - low,
            )


KINDS = {
    "psychometric": psychometric,
    "words": words,
    "posteriors": posteriors,
    "off_parabola": off_parabola,
    "alignment": alignment,
    "matching": matching,
    "proportions": proportions,
    "directions": directions,
    "choices": choices,
    "staircases": short_staircases,
    "p_yes": p_yes,
    "p_yes_adaptive": p_yes_adaptive,
    "parabola_grids": parabola_grids,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)"
    )
    parser.add_argument(
        "--observers",
        type=int,
        default=1000,
        metavar="N",
        help="simulated for a row (default 1000)",
    )
    parser.add_argument(
        "--psignifit",
        type=int,
        default=0,
        metavar="CURVES",
        help="curves given to psignifit",
    )
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(
            f"there is no kind {min(unknown)!r}; give some of {', '.join(KINDS)}"
        )
    print(
        "| interval | observers | n | covers, % | median length | no value "
        "|\n|---|---|---|---|---|---|"
    )
    begin = time.process_time()
    for number, (name, rows) in enumerate(KINDS.items()):
        if options.kinds and name not in options.kinds:
            continue
        # A kind's seed is its own, so that one that is run alone gives the same rows.
        for row in rows(np.random.default_rng([20261122, number]), options.observers):
            print(row, flush=True)
    if options.psignifit:
        for row in psignifit_rows(
            np.random.default_rng([20261122, 99]), options.psignifit
        ):
            print(row, flush=True)
    print(f"\n{time.process_time() - begin:.0f} s of processor")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
