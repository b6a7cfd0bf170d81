"""QUEST+ against the package questplus: the same posterior and the same next level, answer by
answer."""

from __future__ import annotations

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
        wanted = reference.next_stim["intensity"]
        assert np.log10(level.contrast) == pytest.approx(wanted, abs=1e-9)
        said = rng.random() < 0.1 + 0.85 / (1 + np.exp(-6 * (wanted + 1.4)))
        ours.tell(level, float(said))
        index = int(np.argmin(np.abs(X - wanted)))
        reference.update(
            stim={"intensity": X[index]}, outcome={"response": "yes" if said else "no"}
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
    for x, said in ((-1.4, 1.0), (-2.0, 0.0)):
        index = int(np.argmin(np.abs(X - x)))
        ours.tell(Level(4.0, float(10 ** X[index])), said)
        reference.update(
            stim={"intensity": X[index]}, outcome={"response": "yes" if said else "no"}
        )
    prior = reference.posterior.values
    information = ours._information(0)
    assert reference.next_stim["intensity"] == X[int(np.argmax(information))]
    entropy = -(prior * np.log(prior)).sum()
    assert entropy - reference.entropy == pytest.approx(information.max(), abs=1e-10)
