"""Decision stages against published formulas, scikit-learn and observers of known truth."""

from __future__ import annotations

import csv
import math
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.observers.decisions import training
from psyprobe.observers.decisions.recipe import Recipe
from psyprobe.observers.decisions.stages import (
    Stage,
    area_d_prime,
    shrunk_weights,
    train_detector,
    train_identifier,
)
from psyprobe.observers.decisions.training import TrainedStage, train_stage

TABLE = Path(__file__).parents[1] / "data" / "decisions" / "training_bias.csv"


def all_bias_rows() -> list[dict[str, Any]]:
    """Rows of the table of training bias."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def bias_rows() -> list[dict[str, Any]]:
    """Rows that are quick to simulate; benchmarks/decision_checks.py has all of them."""
    return [
        row
        for row in all_bias_rows()
        if int(row["features"]) <= 256
        and int(row["images_per_class"]) <= 512
        and (row["stage"] != "logistic" or row["images_per_class"] == "128")
        # In the whitened space it is the template of white noise, of which there are rows.
        and not (row["stage"] == "template" and row["covariance"] != "white")
    ]


def pairs(
    seed: int, n: int, width: int, separation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Noise of unit variance with and without a signal in its first feature."""
    noise = np.random.default_rng(seed).normal(size=(n, width))
    return noise + separation * np.eye(1, width), noise


@pytest.mark.parametrize(("width", "n"), [(20, 60), (300, 40)])
def test_rows_and_features_give_the_same_weights(width: int, n: int) -> None:
    """The inverse in the space of rows is that in the space of features."""
    generator = np.random.default_rng(3)
    residuals = generator.normal(size=(n, width)) * np.linspace(0.1, 2, width)
    delta = generator.normal(size=(1, width))
    covariance = residuals.T @ residuals / n
    mu = np.trace(covariance) / width
    alpha = np.mean(covariance**2)
    share = min((alpha + mu**2) / ((n + 1) * (alpha - mu**2 / width)), 1)
    expected = np.linalg.solve(
        (1 - share) * covariance + share * mu * np.eye(width), delta[0]
    )
    weights = shrunk_weights(delta, residuals, n)[0]
    assert np.allclose(
        weights, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max()
    )


def test_the_share_is_that_of_scikit_learn() -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    residuals = np.random.default_rng(5).normal(size=(50, 8)) * np.arange(1, 9)
    theirs = covariance.OAS(assume_centered=True).fit(residuals)
    expected = np.linalg.solve(theirs.covariance_, np.ones(8))
    weights = shrunk_weights(np.ones((1, 8)), residuals, 50)[0]
    assert np.allclose(weights, expected, rtol=1e-12)


def simulated_d_primes(row: dict[str, Any], seeds: int) -> np.ndarray:
    """Compute the population d' of stages that are trained as a row of the table says."""
    n = int(row["images_per_class"])
    width = int(row["features"])
    d = float(row["dprime_population"])
    stage = row["stage"].removeprefix("paired_")
    paired = row["stage"] != stage
    white = row["covariance"] == "white"
    scales = np.ones(width) if white else np.arange(1, width + 1) ** -0.5
    values = []
    for seed in range(seeds):
        generator = np.random.default_rng([seed, n, width])
        direction = generator.normal(size=width)
        signal = scales * direction * d / np.linalg.norm(direction)
        blanks = scales * generator.normal(size=(n, width))
        noise = blanks if paired else scales * generator.normal(size=(n, width))
        rows = noise + signal
        if stage == "lda":
            residuals = np.concatenate([rows - rows.mean(0), blanks - blanks.mean(0)])
            delta = rows.mean(0) - blanks.mean(0)
            w = shrunk_weights(delta[None], residuals, n, shrinkage=0)[0]
        elif stage == "template":
            # It knows the covariance: it is trained where features are white.
            trained = train_detector(
                stage, [rows / scales], blanks / scales, paired=paired
            )
            w = trained.weights[0] / scales
        else:
            name = "lda" if stage == "oas" else stage
            w = train_detector(name, [rows], blanks, paired=paired).weights[0]
        values.append(w @ signal / np.linalg.norm(w * scales))
    return np.array(values)


def table_error(row: dict[str, Any], values: np.ndarray) -> float:
    """Compute the error of a mean beside the table's."""
    # The table drew one direction a row, where variances differ between directions.
    draws = len(values) if row["covariance"] == "white" else 1
    return float(np.std(values)) / math.sqrt(draws) + float(row["se"])


@pytest.mark.parametrize("row", bias_rows(), ids=lambda row: " ".join(row.values()))
def test_finite_training_costs_what_simulations_say(row: dict[str, Any]) -> None:
    """The population d' of trained stages is that of the table."""
    values = simulated_d_primes(row, 12 if row["stage"] == "logistic" else 40)
    expected = float(row["dprime_simulated"])
    if row["stage"] == "logistic":
        # Its strength is chosen among others than the table's, at a cost of a few percent.
        assert np.mean(values) == pytest.approx(expected, rel=0.1)
    else:
        error = table_error(row, values)
        assert np.mean(values) == pytest.approx(expected, abs=3 * error + 1e-6)


def chance_shares(seeds: int) -> np.ndarray:
    """Count right answers of 400 trials by stages trained on features of noise alone."""
    generator = np.random.default_rng(8)
    shares = []
    for _ in range(seeds):
        signals, blanks = generator.normal(size=(2, 32, 8))
        stage = train_detector("lda", [signals], blanks)
        first, second = (
            stage.variables(rows)[:, 0] for rows in generator.normal(size=(2, 400, 8))
        )
        shares.append(np.sum(first > second))
    return np.array(shares)


def test_features_of_noise_alone_answer_by_chance_in_95_of_100_intervals() -> None:
    """Row 7: 400 stages, each of 400 trials without a signal."""
    right = chance_shares(400)
    share = right / 400
    # Wilson's interval holds one half where the share lies within 1.96 errors of one half.
    is_covered = np.abs(share - 0.5) <= 1.96 * np.sqrt(0.25 / 400)
    assert 0.93 <= is_covered.mean() <= 0.97
    assert share.mean() == pytest.approx(0.5, abs=3 * np.sqrt(0.25 / 400 / 400))


def test_single_images_cost_what_the_formula_says() -> None:
    """128 single images, 64 features, d' 2: 1.789 with the mean difference."""
    values = []
    for seed in range(200):
        signals, _ = pairs(seed, 128, 64, 2.0)
        _, blanks = pairs(seed + 5_000, 128, 64, 2.0)
        w = train_detector("template", [signals], blanks, paired=False).weights[0]
        values.append(2 * w[0] / np.linalg.norm(w))
    assert np.mean(values) == pytest.approx(1.789, rel=0.01)


def readout_rows() -> list[dict[str, float]]:
    """Rows of the table of proportions of answers and of posteriors."""
    path = TABLE.with_name("readout.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: float(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("row", readout_rows(), ids=lambda row: f"d={row['d']:g}")
def test_words_are_the_table_s_answers_and_not_its_posteriors(
    row: dict[str, float],
) -> None:
    """A stage on one normal feature says what an unbiased observer says."""
    noise = np.random.default_rng(2).normal(size=(400_000, 1))
    signals, blanks = noise[:200_000] + row["d"], noise[200_000:]
    stage = Stage(np.array([[1.0]]), np.array([row["d"] / 2]))
    signal_variables, empty = (
        stage.variables(signals)[:, 0],
        stage.variables(blanks)[:, 0],
    )
    assert np.mean(signal_variables > empty) == pytest.approx(
        row["pc_2afc_answer"], abs=0.0035
    )
    yes_no = (np.mean(signal_variables > 0) + np.mean(empty <= 0)) / 2
    assert yes_no == pytest.approx(row["pc_yes_no_answer"], abs=0.0025)
    assert row["pc_2afc_answer"] - row["pc_2afc_mean_posterior"] > 0.008


def test_rotation_shift_and_scale_change_no_answer() -> None:
    signals, blanks = pairs(1, 80, 30, 1.5)
    test, _ = pairs(2, 2_000, 30, 0.7)
    rotation = np.linalg.qr(np.random.default_rng(4).normal(size=(30, 30)))[0]
    order = np.random.default_rng(5).permutation(30)
    plain = train_detector("lda", [signals], blanks).variables(test)
    for change in (
        lambda rows: rows * 1000,
        lambda rows: rows + 7,
        lambda rows: rows[:, order],
        lambda rows: rows @ rotation,
    ):
        changed = train_detector("lda", [change(signals)], change(blanks))
        decisions = changed.variables(change(test))
        clear = np.abs(plain) > 1e-8 * plain.std()
        assert np.array_equal(decisions[clear] > 0, plain[clear] > 0)


def test_any_invertible_map_changes_no_answer_without_shrinkage() -> None:
    signals, blanks = pairs(1, 200, 12, 1.5)
    test, _ = pairs(2, 2_000, 12, 0.7)
    matrix = np.random.default_rng(4).normal(size=(12, 12))

    def answers(mapped: np.ndarray | None) -> np.ndarray:
        first, second, third = (
            rows if mapped is None else rows @ mapped
            for rows in (signals, blanks, test)
        )
        delta = first.mean(axis=0) - second.mean(axis=0)
        residuals = np.concatenate([first - first.mean(0), second - second.mean(0)])
        w = shrunk_weights(delta[None], residuals, 200, shrinkage=0)[0]
        return np.asarray((third - (first.mean(0) + second.mean(0)) / 2) @ w)

    plain = answers(None)
    clear = np.abs(plain) > 1e-8 * plain.std()
    assert np.array_equal(answers(matrix)[clear] > 0, plain[clear] > 0)


def test_constant_and_rare_features_do_no_harm() -> None:
    signals, blanks = pairs(1, 100, 20, 1.5)
    test, empty = pairs(2, 1_000, 20, 1.5)

    def widened(rows: np.ndarray, seed: int) -> np.ndarray:
        fires = np.random.default_rng(seed).random(len(rows)) < 1e-3
        return np.column_stack([rows, np.full(len(rows), 3.0), fires])

    plain = train_detector("lda", [signals], blanks)
    with_constant = [
        np.column_stack([r, np.full(len(r), 3.0)]) for r in (signals, blanks, test)
    ]
    detector = train_detector("lda", [with_constant[0]], with_constant[1])
    decisions = plain.variables(test)
    assert np.array_equal(detector.variables(with_constant[2]) > 0, decisions > 0)
    wide = train_detector("lda", [widened(signals, 7)], widened(blanks, 7))
    alone = area_d_prime(plain.variables(test), plain.variables(empty))
    wide_d_prime = area_d_prime(
        wide.variables(widened(test, 8)), wide.variables(widened(empty, 9))
    )
    assert np.all(np.isfinite(wide.weights))
    assert wide_d_prime == pytest.approx(alone, rel=0.02)


@pytest.mark.parametrize(
    "name", ["lda", "logistic", "prototype", "quadratic", "template"]
)
def test_every_stage_finds_a_plain_signal(name: str) -> None:
    signals, blanks = pairs(1, 200, 10, 2.0)
    test, empty = pairs(2, 500, 10, 2.0)
    stage = train_detector(name, [signals], blanks)
    d_prime = area_d_prime(stage.variables(test), stage.variables(empty))
    assert 1.75 < d_prime < 2.2


def test_the_quadratic_stage_finds_a_signal_in_the_variance_alone() -> None:
    generator = np.random.default_rng(3)
    blanks = generator.normal(size=(400, 4))
    signals = generator.normal(size=(400, 4)) * [2, 1, 1, 1]
    test = generator.normal(size=(2_000, 4)) * [2, 1, 1, 1]
    empty = generator.normal(size=(2_000, 4))
    quadratic = train_detector("quadratic", [signals], blanks, paired=False)
    linear = train_detector("lda", [signals], blanks, paired=False)
    assert area_d_prime(quadratic.variables(test), quadratic.variables(empty)) > 0.6
    assert abs(area_d_prime(linear.variables(test), linear.variables(empty))) < 0.3


def test_the_identifier_is_right_as_often_as_theory_says() -> None:
    """Orthogonal signals of equal energy are named as places are chosen."""
    from psyprobe.analysis.efficiency.ideal_observer import proportion_correct

    noise = np.random.default_rng(3).normal(size=(2_000, 4))
    stage = train_identifier("lda", [noise + 1.5 * row for row in np.eye(4)])
    test = np.random.default_rng(4).normal(size=(20_000, 4))
    right = [
        np.mean(np.argmax(stage.variables(test + 1.5 * row), axis=1) == j)
        for j, row in enumerate(np.eye(4))
    ]
    assert np.mean(right) == pytest.approx(float(proportion_correct(1.5, 4)), abs=0.01)


def test_wide_features_take_no_square_matrix() -> None:
    """50,176 features of 64 pairs; a matrix of features by features would take 20 GB."""
    signals, blanks = pairs(1, 64, 50_176, 30.0)
    tracemalloc.start()
    stage = train_detector("lda", [signals], blanks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e9
    assert stage.weights.shape == (1, 50_176)
    assert int(np.argmax(stage.weights)) == 0


def test_what_cannot_be_trained_is_refused() -> None:
    signals, blanks = pairs(1, 10, 3, 1.0)
    with pytest.raises(UnknownNameError, match="decision stage 'lad'"):
        train_detector("lad", [signals], blanks)
    with pytest.raises(InputError, match="the same with and without the signal"):
        train_detector("lda", [blanks], blanks)
    with pytest.raises(InputError, match="at least 2"):
        train_detector("lda", [signals[:1]], blanks)
    with pytest.raises(InputError, match="take 'lda'"):
        train_identifier("logistic", [signals, blanks])
    with pytest.raises(InputError, match="images have 4 features"):
        Stage(np.ones((1, 3)), np.zeros(1)).variables(np.ones((2, 4)))


@pytest.mark.parametrize("place", [0, 2])
def test_thresholds_of_known_efficiency_are_held(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pixels and half of them; benchmarks/decision_checks.py has 600 runs of five encoders."""
    monkeypatch.syspath_prepend(str(TABLE.parents[3] / "benchmarks"))
    import decision_checks

    monkeypatch.setattr(decision_checks.training, "_SWAPS", 2)
    coverage = decision_checks.coverage(decision_checks.encoders()[place], 24)
    # Three binomial errors below 95 %, and four errors of a mean.
    assert coverage.is_covered.mean() > 0.8
    mean, low, high = coverage.efficiency
    assert np.log(mean / coverage.encoder.efficiency) == pytest.approx(
        0, abs=4 * np.log(high / low) / 3.92
    )


@pytest.mark.parametrize("kinds", [1, 3])
def test_checks_in_the_space_of_images_are_those_on_all_features(
    kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wide features that often vanish, as of a convolution, with images that are the same."""
    pattern = np.random.default_rng(9).normal(size=600)

    def rows(contrast: float, fields: Sequence[int]) -> np.ndarray:
        noise = np.array([np.random.default_rng(f).normal(size=600) for f in fields])
        signals = [contrast * np.roll(pattern, kind) for kind in range(kinds)]
        if not contrast:
            return (
                np.maximum(noise, 1)[None]
                if kinds == 1
                else np.zeros((1, len(fields), 0))
            )
        images = np.array([np.maximum(noise + signal, 1) for signal in signals])
        images[:, ::4] = images[:1, ::4]
        return images

    def trained() -> TrainedStage:
        return train_stage(
            Recipe(pairs=40),
            rows,
            (0.01, 1.0),
            yes_no=False,
            picture_rows=lambda _: rows(1, []),
        )

    spanned = trained()
    monkeypatch.setattr(
        training._Features,
        "spanned",
        classmethod(lambda cls, recipe, signals, blanks: cls(signals, blanks)),
    )
    plain = trained()
    assert spanned.learning == plain.learning
    assert spanned.swapped == plain.swapped
    assert np.array_equal(spanned.stage.weights, plain.stage.weights)
