"""QUEST+ against the package questplus: the same posterior and the same next level, answer by
answer."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.probes.designs import Grid, Level, QuestPlus

X = np.linspace(-3.0, 0.0, 16)
GRID = Grid(
    threshold=np.linspace(-3.2, 0.1, 12),
    width=np.array([0.3, 0.7, 1.5]),
    guess=np.array([0.02, 0.2]),
    lapse=np.array([0.01, 0.08]),
    width_prior=np.array([1.0, 2.0, 1.0]),
    guess_prior=np.array([3.0, 1.0]),
    lapse_prior=np.array([2.0, 1.0]),
    function="normal",
)


def theirs() -> Any:
    questplus = pytest.importorskip("questplus")
    return questplus.QuestPlus(
        stim_domain={"intensity": X},
        param_domain={
            "mean": GRID.threshold,
            "sd": GRID.width
            / 3.2897072539029435,  # from 5 % to 95 %, in standard deviations
            "lower_asymptote": GRID.guess,
            "lapse_rate": GRID.lapse,
        },
        outcome_domain={"response": ["yes", "no"]},
        prior={
            "mean": np.ones(GRID.threshold.size),
            "sd": GRID.width_prior,
            "lower_asymptote": GRID.guess_prior,
            "lapse_rate": GRID.lapse_prior,
        },
        func="norm_cdf",
        stim_scale="linear",
    )


@pytest.mark.parametrize("seed", range(2))
def test_same_posterior_and_same_next_level(seed: int) -> None:
    rng, reference = np.random.default_rng(seed), theirs()
    ours = QuestPlus(
        [4.0],
        10**X,
        about="all",
        grid=GRID,
        refine=False,
        catch=0.0,
        top=0.0,
        stop=0.0,
        n_max=100,
        seed=seed,
    )
    for _ in range(20):
        (level,) = ours.ask(1)
        expected = reference.next_stim["intensity"]
        assert np.log10(level.contrast) == pytest.approx(expected, abs=1e-9)
        response = rng.random() < 0.1 + 0.85 / (1 + np.exp(-6 * (expected + 1.4)))
        ours.tell(level, float(response))
        index = int(np.argmin(np.abs(X - expected)))
        reference.update(
            stim={"intensity": X[index]},
            outcome={"response": "yes" if response else "no"},
        )
        order = ("mean", "sd", "lower_asymptote", "lapse_rate")
        np.testing.assert_allclose(
            ours.posterior.joint(0),
            reference.posterior.transpose(*order).values,
            rtol=0,
            atol=1e-10,
        )


def test_expected_information_is_the_fall_of_the_expected_entropy() -> None:
    reference = theirs()
    ours = QuestPlus(
        [4.0], 10**X, about="all", grid=GRID, refine=False, catch=0.0, top=0.0
    )
    for x, response in ((-1.4, 1.0), (-2.0, 0.0)):
        index = int(np.argmin(np.abs(X - x)))
        ours.tell(Level(4.0, float(10 ** X[index])), response)
        reference.update(
            stim={"intensity": X[index]},
            outcome={"response": "yes" if response else "no"},
        )
    prior = reference.posterior.values
    information = ours._information(0)
    assert reference.next_stim["intensity"] == X[int(np.argmax(information))]
    entropy = -(prior * np.log(prior)).sum()
    assert entropy - reference.entropy == pytest.approx(information.max(), abs=1e-10)


def published_weibull(x: Any, threshold: Any, width: Any, _: str) -> Any:
    """1 - exp(-10^(slope (x - alpha))): alpha stands for the threshold, and 1 / slope for the
    width."""
    return -np.expm1(-(10 ** np.minimum((x - threshold) / width, 3.0)))


def test_each_step_with_m_alternatives_is_that_of_the_published_form(
    oracle_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("probes.designs.adaptive", "analysis.psychometric.posterior"):
        monkeypatch.setattr(
            f"psyprobe.{module}.detection_probability", published_weibull
        )
    x = np.linspace(-2.5, 0, 26)
    slopes = np.array([5.0, 3.5, 2.0])
    lapses = np.array([0.01, 0.04])
    with (oracle_data / "letters" / "questplus.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    runs = groupby(table, key=lambda row: (int(row["m"]), row["answers"]))
    alternatives = set()
    for (m, _), steps in runs:
        alternatives.add(m)
        design = QuestPlus(
            [4.0],
            10**x,
            chance=1 / m,
            about="all",
            grid=Grid(x, 1 / slopes, np.array([1 / m]), lapses, function="weibull"),
            refine=False,
            catch=0.0,
            top=0.0,
            stop=0.0,
            n_max=100,
        )
        for step in steps:
            (level,) = design.ask(1)
            before = design.posterior.joint(0)
            entropy = -(before * np.log2(np.maximum(before, 1e-300))).sum()
            gain = design._information(0).max() / np.log(2)
            assert np.log10(level.contrast) == pytest.approx(float(step["level"]))
            assert entropy - gain == pytest.approx(
                float(step["entropy_bits"]), abs=1e-8
            )
            design.tell(level, float(step["correct"]))
            joint = design.posterior.joint(0)[:, :, 0]
            means = [
                joint.sum(axis=(1, 2)) @ x,
                joint.sum(axis=(0, 2)) @ slopes,
                joint.sum(axis=(0, 1)) @ lapses,
            ]
            names = ("mean_threshold", "mean_slope", "mean_lapse")
            expected = [float(step[name]) for name in names]
            np.testing.assert_allclose(means, expected, rtol=0, atol=1e-8)
    assert len(alternatives) >= 4
