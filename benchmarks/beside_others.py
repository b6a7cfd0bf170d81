"""The same work by psyprobe and by its peers, where both run here: values and processor time.

    OMP_NUM_THREADS=1 python benchmarks/beside_others.py

Needs `pip install --no-deps stimupy psignifit questplus osculari visualpriors clip`, and torch for
osculari. A peer that is not installed is left out, with a line that says so.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import warnings

import numpy as np

import psyprobe as pp
from psyprobe.probes.designs import Grid, QuestPlus
from psyprobe.stimulus import Gabor
from psyprobe.stimulus.kinds.gratings import Grating
from psyprobe.stimulus.measuring import certify

#: Work, quantity, what was requested, psyprobe's value, the peer with its version, and its value.
Row = tuple[str, str, str, str, str, str]
ROUNDS = 7
N_TRIALS = 40
CONTRAST = np.array([0.001, 0.0018, 0.0032, 0.0056, 0.01, 0.018, 0.032, 0.056, 0.1])
#: Of 40 trials in two intervals.
CORRECT = np.array([21, 19, 22, 26, 33, 38, 39, 40, 40])


def main() -> None:
    head = ("work", "quantity", "requested", "psyprobe", "peer", "value of the peer")
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for peer, measure in PEERS.items():
        try:
            name = f"{peer} {version(peer)}"
        except PackageNotFoundError:
            print(f"{peer} is not installed", file=sys.stderr)
            continue
        for row in measure(name):
            print("| " + " | ".join(row) + " |", flush=True)


def milliseconds(work: Callable[[], object], count: int = 1) -> float:
    """Measure the median processor time of one of `count` pieces of work, ms."""
    work()
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return 1000 * statistics.median(seconds) / count


def timed(seconds: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    """Do a piece of work, and add its processor time, s, to what its doer has taken."""
    start = time.process_time()
    outcome = work()
    seconds[name] += time.process_time() - start
    return outcome


def delivered(light: np.ndarray, spec: pp.Specification, quantity: str) -> float:
    """Measure one quantity of an image in cd/m², as psyprobe's certificates do."""
    rows = certify(light, "luminance", spec)
    return next(row.delivered for row in rows if row.quantity == quantity)


def beside_stimupy(peer: str) -> Iterator[Row]:
    from stimupy.stimuli.gabors import gabor

    spec = Gabor(
        frequency=4.0,
        contrast=0.5,
        luminance=100.0,
        radius=0.3,
        phase=-90.0,
        ppd=60.0,
        size=120,
    )
    ours = spec.draw().pixels

    def draw_theirs() -> np.ndarray:
        image = gabor(
            visual_size=2,
            ppd=60,
            frequency=4,
            sigma=0.3,
            intensities=(50, 150),
            origin="mean",
        )
        return np.asarray(image["img"])

    theirs = draw_theirs()
    for quantity, requested, unit in (
        ("frequency", 4, "cpd"),
        ("radius", 0.3, "deg"),
        ("contrast", 0.5, ""),
    ):
        values = [delivered(image, spec, quantity) for image in (ours, theirs)]
        cells = [f"{value:.6g} {unit}".strip() for value in (requested, *values)]
        yield "a Gabor of 120 px", quantity, cells[0], cells[1], peer, cells[2]
    contrasts = np.geomspace(0.01, 0.5, 100)
    single = milliseconds(
        lambda: pp.gabor(frequency=4, contrast=0.5, radius=0.3, size=120)
    )
    batch = milliseconds(
        lambda: pp.gabor(frequency=4, contrast=contrasts, radius=0.3, size=120), 100
    )
    yield (
        "a Gabor of 120 px",
        "time, ms",
        "",
        f"{single:.2g}; {batch:.2g} in batches of 100",
        peer,
        f"{milliseconds(draw_theirs):.2g}",
    )


def beside_osculari(peer: str) -> Iterator[Row]:
    from osculari.datasets import imutils
    from osculari.datasets.gratings import GratingsDataset

    spec = Grating(frequency=8.0, contrast=0.5, luminance=0.5, ppd=128.0, size=128)
    ours = spec.draw().pixels
    image = GratingsDataset(128, spatial_frequencies=[8], thetas=[0.0]).make_grating(
        0, 1.0, channels=1
    )
    theirs = np.asarray(imutils.michelson_contrast(image, 0.5)).reshape(128, 128)
    values = [delivered(light, spec, "contrast") for light in (ours, theirs)]
    yield (
        "a full grating at contrast 0.5",
        "contrast",
        "0.5",
        f"{values[0]:.6g}",
        peer,
        f"{values[1]:.6g}",
    )


def beside_psignifit(peer: str) -> Iterator[Row]:
    import psignifit

    data = np.stack([np.log10(CONTRAST), CORRECT, np.full(CORRECT.size, 40)], axis=-1)

    def fit_ours() -> pp.PsychometricFit:
        return pp.fit_psychometric(
            CONTRAST, CORRECT, 40, guess=0.5, lapse="fit", function="normal"
        )

    def fit_theirs() -> psignifit.Result:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return psignifit.psignifit(data, sigmoid="norm", experiment_type="2AFC")

    ours = fit_ours()
    theirs = fit_theirs()
    low, high = theirs.confidence_intervals["threshold"]["0.95"]
    work = "a fit of nine levels, two intervals, 40 trials each"
    yield (
        work,
        "log10 threshold [95 % interval over trials]",
        "",
        f"{float(ours.log10_threshold):.3f} [{float(ours.log10_threshold_low):.3f}, "
        f"{float(ours.log10_threshold_high):.3f}]",
        peer,
        f"{theirs.parameter_estimate['threshold']:.3f} [{low:.3f}, {high:.3f}]",
    )
    times = (milliseconds(fit_ours), milliseconds(fit_theirs))
    yield work, "time, ms", "", f"{times[0]:.0f}", peer, f"{times[1]:.0f}"


def beside_questplus(peer: str) -> Iterator[Row]:
    import questplus

    log_contrasts = np.linspace(-3.0, 0.0, 31)
    grid = Grid(
        threshold=np.linspace(-3.2, 0.1, 34),
        width=np.geomspace(0.2, 2.0, 10),
        guess=np.linspace(0.01, 0.3, 5),
        lapse=np.array([0.01, 0.03, 0.08]),
        function="normal",
    )
    ours = QuestPlus(
        [4.0],
        10**log_contrasts,
        about="all",
        grid=grid,
        refine=False,
        catch=0.0,
        top=0.0,
        stop=0.0,
        n_max=100,
    )
    theirs = questplus.QuestPlus(
        stim_domain={"intensity": log_contrasts},
        param_domain={
            "mean": grid.threshold,
            # From 5 % to 95 %, in standard deviations.
            "sd": grid.width / 3.2897072539029435,
            "lower_asymptote": grid.guess,
            "lapse_rate": grid.lapse,
        },
        outcome_domain={"response": ["yes", "no"]},
        func="norm_cdf",
        stim_scale="linear",
    )
    rng = np.random.default_rng(1)
    equal_levels = 0
    seconds: dict[str, float] = {"psyprobe": 0.0, "questplus": 0.0}
    for _ in range(N_TRIALS):
        (level,) = timed(seconds, "psyprobe", lambda: ours.ask(1))
        stimulus = timed(seconds, "questplus", lambda: theirs.next_stim)
        log_contrast = float(np.log10(level.contrast))
        equal_levels += abs(log_contrast - stimulus["intensity"]) < 1e-9
        is_yes = rng.random() < 0.02 + 0.95 / (1 + np.exp(-6 * (log_contrast + 1.8)))
        # The peer takes levels of its own grid alone, to the last digit.
        place = log_contrasts[np.argmin(np.abs(log_contrasts - log_contrast))]
        tell_ours = partial(ours.tell, level, float(is_yes))
        tell_theirs = partial(
            theirs.update,
            stim={"intensity": place},
            outcome={"response": "yes" if is_yes else "no"},
        )
        timed(seconds, "psyprobe", tell_ours)
        timed(seconds, "questplus", tell_theirs)
    axes = ("mean", "sd", "lower_asymptote", "lapse_rate")
    difference = np.abs(
        ours.posterior.joint(0) - theirs.posterior.transpose(*axes).values
    ).max()
    work = (
        f"QUEST+, {N_TRIALS} yes/no trials, {int(np.prod(grid.shape))} parameter values"
    )
    yield (
        work,
        "levels that are the same; largest difference of posteriors",
        "",
        f"{equal_levels} of {N_TRIALS}; {difference:.0e}",
        peer,
        "",
    )
    times = [1000 * value / N_TRIALS for value in seconds.values()]
    yield work, "time a trial, ms", "", f"{times[0]:.2g}", peer, f"{times[1]:.2g}"


PEERS = {
    "stimupy": beside_stimupy,
    "osculari": beside_osculari,
    "psignifit": beside_psignifit,
    "questplus": beside_questplus,
}

if __name__ == "__main__":
    main()
