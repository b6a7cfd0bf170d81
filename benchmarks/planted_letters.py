"""Plant known truths in observers of the pages of letters, paths and dots; print what comes back.

    python benchmarks/planted_letters.py [SEEDS] [PAGE ...]
    python benchmarks/planted_letters.py 4000 stopped_charts    # scores of charts whose reader stops
    python benchmarks/planted_letters.py 40 stopped_sessions    # the same by sessions of people
    python benchmarks/planted_letters.py 20 joint_channel       # the channel, of two densities too
    python benchmarks/planted_letters.py 4 joint_channel pixels # the same by a filter of pixels
    python benchmarks/planted_letters.py 20 similarity          # of 26 and of 10 letters

The first rows are of observers that are told numbers in place of images, as in
tests/questions/test_planted_pages.py; those of `simulated:letters` look at pixels. Each has SEEDS
runs (20), of which seed, letters and answers differ. Templates tell N from Z, which have the same
ink, by a sum over the pixels that they get; what they should reach follows from the pixels alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.analysis.identification.channel import fit_channel
from psyprobe.analysis.identification.charts import score_by_letter
from psyprobe.analysis.identification.confusions import (
    ChoiceModel,
    Confusions,
    choice_model,
    fit_choice_model,
)
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.people.observer import PersonObserver

for folder in ("questions", "people"):
    sys.path.append(str(Path(__file__).parent.parent / "tests" / folder))
from planted_pages import run_planted, weibull
from seated import screen
from test_planted_pages import THRESHOLDS

Settings = dict[str, Any]
Truths = dict[float, float]
#: Pages with one threshold: settings, slope, truth at each value of the level.
ACUITY: dict[str, tuple[Settings, float, Truths]] = {
    name: ({}, 3.5, {-1: 0.1})
    for name in ("letter_acuity", "landolt_4", "landolt_8", "tumbling_e")
}
#: Pages of `simulated:letters`: its mind, and truth at each value of the level.
READ: dict[str, tuple[Settings, Settings, Truths]] = {
    "letter_acuity": ({}, {"letter_px": 12.0}, {-1: 0.1}),
    "letter_acuity_contrast": (
        {"levels.contrast": {"values": [-1, -0.3, -0.1]}},
        {"letter_px": 8.0, "size_by_contrast": 0.4},
        {value: 8 / 60 * abs(value) ** -0.4 for value in (-1, -0.3, -0.1)},
    ),
    "letter_csf": (
        {"levels.letter_size": {"values": [0.2667, 0.5333]}},
        {"letter_px": 2.0, "contrast": 0.05},
        {0.2667: 0.05, 0.5333: 0.05},
    ),
    "crowding": (
        {"levels.flankers": {"values": [2]}},
        {"letter_px": 2.0, "crowding": 1.8},
        {2: 0.36},
    ),
}


#: Density of the noise, deg², and pixels per degree, of letters in white noise.
DENSITY = 3e-5
NOISE_PPD = 12
#: The screen of pages in noise.
DISPLAY = pp.Display(peak=400)
#: Peak of the planted channel, cycles a letter of so many degrees; its width at half height, octaves;
#: the threshold without noise; densities of the noise, deg².
PEAK = 3.0
LETTER = 0.4
OCTAVES = 1.5
QUIET = 0.004
DENSITIES = (1.25e-6, 5e-6)


def by_numbers(
    name: str, settings: Settings, slope: float, truths: Truths
) -> tuple[Settings, Truths, Callable[[Experiment, int], Any]]:
    """Build what runs a page without an image."""
    page = load_experiment(name)
    if len(truths) > 1:
        level = next(
            level for level, values in page.levels.items() if {*truths} <= {*values}
        )
        settings = {**settings, f"levels.{level}": {"values": sorted(truths)}}

    def run(experiment: Experiment, seed: int) -> Any:
        return run_planted(
            experiment,
            lambda value, x: weibull(x, truths[value], slope),
            pytest.MonkeyPatch(),
            seed=seed,
        )

    return settings, truths, run


def by_pixels(
    settings: Settings, mind: Settings, truths: Truths
) -> tuple[Settings, Truths, Callable[[Experiment, int], Any]]:
    """Build what has a page read by the simulated reader."""

    def run(experiment: Experiment, seed: int) -> Any:
        reader = pp.load_observer("simulated:letters", **mind, seed=seed)
        return pp.run(experiment, reader, progress=False)

    return settings, truths, run


def difference(letter_size: float, ppd: float, pixels: int) -> npt.NDArray[np.float64]:
    """Draw what parts N from Z at contrast -1, as shares of the ground."""
    fixed: Settings = {"contrast": -1, "luminance": 100, "ppd": ppd, "size": pixels}
    light = [
        np.asarray(pp.optotype(letter=letter, letter_size=letter_size, **fixed))
        for letter in "NZ"
    ]
    return (light[0] - light[1]) / 100


def by_template(
    weights: npt.NDArray[np.float64], own_noise: float
) -> Callable[[Experiment, int], Any]:
    """Build what has a page answered by a weighted sum of pixels, with noise of its own."""

    def run(experiment: Experiment, seed: int) -> Any:
        random = np.random.default_rng(seed)

        def reply(images: Any, prompt: str) -> str:
            light = np.asarray(DISPLAY.decode(images[0]))[..., 0] / 100 - 1
            response = np.sum(light * weights) + random.normal(0, own_noise)
            return "N" if response > 0 else "Z"

        observer = pp.observer(reply, name="template", version=str(seed), bits=None)
        return pp.run(experiment, observer, progress=False)

    return run


def contrast_at_threshold(signal: float, sd: float) -> float:
    """Compute the contrast at which 0.75 are right: halfway from guessing to 1."""
    return float(2 * stats.norm.ppf(0.75) * sd / signal)


def efficiency_row(
    size: float, efficiency: float
) -> tuple[Settings, Truths, Callable[[Experiment, int], Any]]:
    """Build what has letters in white noise told apart with an efficiency."""
    apart = difference(size, NOISE_PPD, 48)
    energy = float(np.sum(apart**2))
    outer = np.sqrt(DENSITY) * NOISE_PPD * np.sqrt(energy)
    own = outer * np.sqrt(1 / efficiency - 1)
    contrasts = [-float(f"{x:.3g}") for x in np.geomspace(0.3, 0.003, 21)]
    settings = {
        "asking.options.n_max": 60,
        "options.values": ["N", "Z"],
        "stimulus.parameters.size": 48,
        "stimulus.parameters.ppd": NOISE_PPD,
        "noise.density": DENSITY,
        "levels": {
            "letter_size": {"values": [size]},
            "contrast": {"values": contrasts},
        },
    }
    truth = contrast_at_threshold(energy, np.hypot(outer, own))
    return settings, {size: truth}, by_template(apart, own)


def channel_row(
    density: float,
) -> tuple[Settings, Truths, Callable[[Experiment, int], Any]]:
    """Build what has letters in bands of noise told apart by one channel."""
    ppd = 60
    pixels = 96
    spectrum = np.fft.fft2(difference(LETTER, ppd, pixels))
    axis = np.fft.fftfreq(pixels, 1 / ppd)
    frequency = np.hypot(axis[:, None], axis)
    frequency[0, 0] = 1e-9
    off = np.log2(frequency * LETTER / PEAK) / OCTAVES
    # Power at a frequency times the area of an octave there is a log-Gaussian function.
    gain = np.sqrt(0.5 ** (4 * off**2)) / frequency
    phase = spectrum / np.maximum(np.abs(spectrum), 1e-12)
    weights = np.fft.ifft2(gain * phase).real
    power = np.abs(np.fft.fft2(weights)) ** 2 / pixels**2
    signal = float(np.sum(weights * np.fft.ifft2(spectrum).real))
    own = QUIET / contrast_at_threshold(signal, 1)
    truths = {}
    for band in load_experiment("letter_channel").levels["noise_frequency"]:
        inside = np.abs(np.log2(frequency / band)) <= 0.5
        variance = density * ppd**2 * np.sum(power[inside])
        truths[float(band)] = contrast_at_threshold(
            signal, np.hypot(own, np.sqrt(variance))
        )
    settings = {
        "asking.options.n_max": 100,
        "options.values": ["N", "Z"],
        "noise.density": density,
    }
    return settings, truths, by_template(weights, own)


def by_normal(truths: Truths) -> Callable[[Experiment, int], Any]:
    """Build what has a page answered by numbers as a template among two letters answers it."""

    def run(experiment: Experiment, seed: int) -> Any:
        return run_planted(
            experiment,
            lambda value, x: float(
                2 * stats.norm.cdf(stats.norm.ppf(0.75) * x / truths[value]) - 1
            ),
            pytest.MonkeyPatch(),
            lapse=0.0,
            seed=seed,
        )

    return run


def channel_of(
    bands: npt.ArrayLike, thresholds: npt.ArrayLike, density: npt.ArrayLike = 1.0
) -> tuple[float, float]:
    """Fit a channel to thresholds in bands: log2 of its peak, cycles a letter; and its width."""
    channel = fit_channel(bands, thresholds, density=density)
    if channel is None:
        return np.nan, np.nan
    return float(np.log2(channel.peak * LETTER)), channel.width


def rows() -> Iterator[tuple[str, str, Settings, Truths, Callable[..., Any]]]:
    """List the rows of the table: page, observer, settings, truths, and what runs it."""
    for name, (settings, slope, truths, *_) in {**ACUITY, **THRESHOLDS}.items():
        yield name, "numbers", *by_numbers(name, settings, slope, truths)
    for name, entry in READ.items():
        yield name, "`simulated:letters`", *by_pixels(*entry)
    for size in (1.0, 2.0):
        for efficiency in (1.0, 0.5):
            label = f"template, {size * NOISE_PPD:g} px, efficiency {efficiency:g}"
            yield "letter_noise", label, *efficiency_row(size, efficiency)
    for density in DENSITIES:
        yield "letter_channel", f"channel, {density:g} deg²", *channel_row(density)


def print_charts(people: int) -> None:
    """Print scores by letter of a Pelli-Robson chart read whole, and up to a triplet missed.

    Of simulated people whose contrast sensitivity and slope are known, and who lapse in 0.02.
    """
    print("| log10 sensitivity | whole: bias | SD | stopped: bias | SD |")
    print("|---|---|---|---|---|")
    random = np.random.default_rng(1)
    triplets = np.arange(16)
    for planted in (1.0, 1.5, 1.8):
        seen = 1 - 0.5 ** (10 ** (3.5 * (planted - 0.15 * triplets)))
        right = random.binomial(3, 0.1 + 0.9 * 0.98 * seen, (people, 16))
        missed = right < 2
        last = np.where(missed.any(axis=1), missed.argmax(axis=1), 15)
        counts = right.sum(axis=1), (right * (triplets <= last[:, None])).sum(axis=1)
        errors = [0.05 * (count - 3) - planted for count in counts]
        cells = [f"{e.mean():+.2f} | {e.std():.2f}" for e in errors]
        print(f"| {planted:g} | {' | '.join(cells)} |")


def print_sessions(people: int) -> None:
    """Print scores and thresholds of sessions of `pelli_robson` at a screen, which stop.

    Of the same simulated people as in `print_charts`.
    """
    print(
        "| log10 sensitivity | questions | score: bias | SD | fit: bias | SD | intervals |"
    )
    print("|---|---|---|---|---|---|---|")
    for planted in (1.0, 1.5, 1.8):
        rows = []
        for seed in range(people):
            random = np.random.default_rng([seed, 6])

            def answer(
                inquiry: Inquiry,
                random: np.random.Generator = random,
                planted: float = planted,
            ) -> Answer:
                assert inquiry.drawing is not None
                (letter,) = inquiry.drawing["stimuli"]
                strength = -letter["contrast"] * 10**planted
                sees = random.random() < 0.98 * (1 - 0.5 ** (strength**3.5))
                place = int(letter["letter"]) if sees else int(random.integers(10))
                return Answer(
                    inquiry.words[place], model="simulated", session={"session": "one"}
                )

            observer = PersonObserver("ANNA", "one", screen(), answer)
            page = load_experiment("pelli_robson").with_settings({"asking.seed": seed})
            result = pp.run(page, observer, store=None, progress=False)
            csf = chat_csf(result)
            value, low, high = (
                float(np.log10(csf[f"mean_sensitivity{end}"].values.item()))
                for end in ("", "_low", "_high")
            )
            score = score_by_letter(result)
            rows.append(
                [
                    pp.analysis.trials(result).sizes["trial"],
                    -(np.nan if score is None else score) - planted,
                    value - planted,
                    not (low > planted or high < planted),
                ]
            )
        count, score_error, error, holds = np.array(rows, float).T
        print(
            f"| {planted:g} | {count.mean():.0f} | {np.nanmean(score_error):+.2f} | "
            f"{np.nanstd(score_error):.2f} | {np.nanmean(error):+.2f} | {np.nanstd(error):.2f} | "
            f"{holds.sum():.0f} of {people} |",
            flush=True,
        )


def print_joint_channels(runs: int, *, by_pixels: bool) -> None:
    """Print errors of channels fitted to each density, and to both.

    Thresholds are those of the filter of pixels, which answers, or answers are drawn by numbers.
    """
    print(
        "| fitted to | channels of | peak: bias | RMSE, octaves | width: bias | RMSE |"
    )
    print("|---|---|---|---|---|---|")
    rows = [channel_row(density) for density in DENSITIES]
    bands = sorted(rows[0][1])
    planted = [[truths[band] for band in bands] for _, truths, _ in rows]
    density = np.array(DENSITIES)[:, None]
    thresholds = np.empty((runs, len(rows), len(bands)))
    for seed in range(runs):
        for place, (settings, truths, answer) in enumerate(rows):
            page = load_experiment("letter_channel").with_settings(
                {**settings, "asking.seed": seed}
            )
            csf = chat_csf((answer if by_pixels else by_normal(truths))(page, seed))
            thresholds[seed, place] = csf["threshold"].values.ravel()
    for name, part in (
        ("faint", slice(0, 1)),
        ("dense", slice(1, 2)),
        ("both", slice(2)),
    ):
        truth = channel_of(bands, np.array(planted)[part], density[part])
        channels = [channel_of(bands, each[part], density[part]) for each in thresholds]
        off = np.array(channels) - truth
        count = int(np.isfinite(off[:, 0]).sum())
        cells = [
            f"{np.nanmean(error):+.2f} | {np.sqrt(np.nanmean(error**2)):.2f}"
            for error in off.T
        ]
        print(f"| {name} | {count} of {runs} | {' | '.join(cells)} |", flush=True)


def print_similarity(runs: int) -> None:
    """Print errors of similarities of planted observers, by the number of answers.

    Each letter is shown equally often at eight contrasts, as `alphabet_26` asks; similarities of
    guesses are log-normal, SD 0.35 log10, and one letter is 6, one 3 times as readily named.
    """
    print("| letters | answers | half a count: bias | RMSE | fit: bias | RMSE |")
    print("|---|---|---|---|---|---|")
    random = np.random.default_rng(1)
    for m in (10, 26):
        upper = np.triu(10 ** random.normal(0, 0.35, (m, m)), 1)
        readiness = np.append([6.0, 3.0], np.ones(m - 2))
        guesses = ChoiceModel(readiness, upper + upper.T + np.eye(m)).probabilities()
        seen = 1 - 0.5 ** ((2.0 ** np.arange(-3, 5) / 1.25) ** 3.5)
        shares = seen[:, None, None] * np.eye(m) + (1 - seen)[:, None, None] * guesses
        truth = choice_model(shares.mean(axis=0)).similarity
        pairs = np.triu_indices(m, 1)
        for repeats in (1, 4, 16, 64, 128, 256):
            errors = []
            for _ in range(runs):
                counts = random.multinomial(repeats, shares).sum(axis=0)
                confusions = Confusions((*map(str, range(m)),), counts)
                models = choice_model(counts + 0.5), fit_choice_model(confusions)
                errors.append(
                    [np.log10(model.similarity / truth)[pairs] for model in models]
                )
            usual, fitted = np.moveaxis(errors, 1, 0)
            cells = [
                f"{error.mean():+.3f} | {np.sqrt(np.mean(error**2)):.3f}"
                for error in (usual, fitted)
            ]
            print(f"| {m} | {8 * m * repeats} | {' | '.join(cells)} |", flush=True)


def main(seeds: int = 20, *names: str) -> None:
    """Print the bias, error and coverage of every page."""
    if names == ("stopped_charts",):
        print_charts(seeds)
        return
    if names[:1] == ("joint_channel",):
        print_joint_channels(seeds, by_pixels="pixels" in names)
        return
    if names == ("stopped_sessions",):
        print_sessions(seeds)
        return
    if names == ("similarity",):
        print_similarity(seeds)
        return
    print("| page | observer | runs | bias, log10 | RMSE | 95 % intervals that hold |")
    print("|---|---|---|---|---|---|")
    for name, observer, settings, truths, run in rows():
        if names and name not in names:
            continue
        truth = np.array([truths[value] for value in sorted(truths)])
        errors: list[float] = []
        channels: list[tuple[float, float]] = []
        intervals_hold: list[bool] = []
        for seed in range(seeds):
            page = load_experiment(name).with_settings(
                {**settings, "asking.seed": seed}
            )
            csf = chat_csf(run(page, seed))
            threshold, low, high = (
                csf[f"threshold{end}"].values.ravel() for end in ("", "_low", "_high")
            )
            errors += np.log10(threshold / truth).tolist()
            if name == "letter_channel":
                channels.append(channel_of(sorted(truths), threshold))
            # An open end is no bound.
            above = np.isnan(low) | (low <= truth)
            below = np.isnan(high) | (truth <= high)
            intervals_hold += (above & below & ~np.isnan(threshold)).tolist()
        finite = np.array(errors)[np.isfinite(errors)]
        lacking = len(errors) - len(finite)
        print(
            f"| `{name}` | {observer} | {seeds} x {len(truth)} | {finite.mean():+.3f} | "
            f"{np.sqrt(np.mean(finite**2)):.3f} | {sum(intervals_hold)} of {len(errors)}"
            f"{f', {lacking} without threshold' if lacking else ''} |",
            flush=True,
        )
        if channels:
            (peak, width) = channel_of(sorted(truths), truth)
            off = np.array(channels) - (peak, width)
            print(
                f"{observer}: peak planted at {2**peak:.2f} cycles a letter, width {width:.2f} "
                f"octaves; bias {np.nanmean(off, axis=0).round(2).tolist()} octaves, "
                f"RMSE {np.sqrt(np.nanmean(off**2, axis=0)).round(2).tolist()}",
                file=sys.stderr,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
