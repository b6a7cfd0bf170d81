"""Encoders of known d' by decision stages (tests/data/decisions/encoders.csv), and what holds each
of the 18 rows that an implementation must meet."""

from __future__ import annotations

import ast
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis.efficiency.ideal_observer import (
    d_prime_at,
    ideal_d_prime,
    proportion_correct,
)
from psyprobe.analysis.psychometric import fit_psychometric
from psyprobe.light.display import Display
from psyprobe.observers.decisions.stages import train_detector

TESTS = Path(__file__).parents[1]
TABLE = TESTS / "data" / "decisions" / "encoders.csv"
SIZE = 224
PPD = 60
#: Fields of noise on which stages are trained, and others on which they are tested.
PAIRS = 8
FIELDS = 80

#: The test that holds each row of the list in the reference on decisions.
ROWS = {
    1: [
        "questions/test_decided.py::test_the_pixels_are_as_right_as_the_ideal_observer",
        "observers/test_decision_encoders.py::test_the_ideal_observer_of_row_1",
    ],
    2: [
        "questions/test_decided.py::test_the_pixels_are_as_right_as_the_ideal_observer"
    ],
    3: [
        "observers/test_decision_encoders.py::test_drive_loses_of_the_energy_what_the_table_says"
    ],
    4: [
        "questions/test_decided.py::test_half_of_the_pixels_have_half_of_the_energy",
        "observers/test_decision_encoders.py::test_the_mirrored_half_has_the_same_energy",
    ],
    5: [
        "observers/test_decision_encoders.py::test_encoders_have_the_d_prime_of_the_table",
        "observers/test_decision_encoders.py::test_trained_templates_keep_the_energy_of_the_table",
    ],
    6: [
        "observers/test_decision_encoders.py::test_encoders_have_the_d_prime_of_the_table",
        "observers/test_decision_encoders.py::test_unknown_phase_costs_what_theory_says",
    ],
    7: [
        "observers/test_decision_stages.py"
        "::test_features_of_noise_alone_answer_by_chance_in_95_of_100_intervals",
        "questions/test_decided.py::test_labels_are_swapped_sixty_times_by_chance",
    ],
    8: [
        "observers/test_decision_stages.py::test_rotation_shift_and_scale_change_no_answer"
    ],
    9: [
        "observers/test_decision_stages.py"
        "::test_any_invertible_map_changes_no_answer_without_shrinkage"
    ],
    10: [
        "observers/test_decision_stages.py::test_constant_and_rare_features_do_no_harm"
    ],
    11: [
        "observers/test_decision_stages.py::test_wide_features_take_no_square_matrix",
        "observers/test_decision_stages.py::test_rows_and_features_give_the_same_weights",
    ],
    12: [
        "observers/test_decision_stages.py::test_single_images_cost_what_the_formula_says"
    ],
    13: ["analysis/test_ideal_observer.py::test_thresholds_of_gabors"],
    14: [
        "questions/test_decided.py::test_workers_and_resumption_give_the_same_bytes",
        "questions/test_decided.py"
        "::test_a_run_killed_in_training_and_after_goes_on_to_the_same_bytes",
        "questions/test_decision_protocols.py::test_any_order_of_batches_gives_the_same_bytes",
    ],
    15: ["analysis/test_ideal_observer.py::test_equivalent_noise"],
    16: [
        "observers/test_decision_encoders.py"
        "::test_intervals_of_thresholds_hold_the_truth_in_90_to_99_of_100_runs"
    ],
    17: [
        "questions/test_decision_protocols.py"
        "::test_two_intervals_of_the_same_field_have_no_efficiency",
        "probes/test_fresh_noise.py::test_two_intervals_on_one_mask_of_noise_are_remarked",
        "questions/test_decided.py::test_two_intervals_have_two_fields_of_noise",
    ],
    18: ["questions/test_decided.py::test_without_noise_efficiency_is_not_defined"],
}


@pytest.mark.parametrize("row", range(1, 19))
def test_every_row_is_held_by_a_test(row: int) -> None:
    for address in ROWS[row]:
        file, name = address.split("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
        assert name in functions, address


def rows() -> list[dict[str, Any]]:
    """Rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def gabor(row: dict[str, Any], **changes: float) -> np.ndarray:
    """Draw the Gabor of a row at contrast 1, as contrast of light."""
    parameters = {
        "frequency": float(row["frequency_cpd"]),
        "radius": float(row["radius_deg"]),
        **changes,
    }
    stimulus = pp.gabor(contrast=1, luminance=100, ppd=PPD, size=SIZE, **parameters)
    return np.asarray(stimulus.luminance / 100 - 1)


def template(row: dict[str, Any]) -> np.ndarray:
    """Draw the template, of length 1, that a row describes by what is wrong with it."""
    signal = {"frequency": float(row["frequency_cpd"]), "radius": row["radius_deg"]}
    words = row["what"].split()
    changes: dict[str, float] = {}
    if words[0] == "turned":
        changes = {"orientation": float(words[2])}
    elif words[0] == "phase":
        changes = {"phase": float(words[1])}
    elif words[1:2] == ["x"]:
        changes = {words[0]: float(signal[words[0]]) * float(words[2])}
    profile = gabor(row, **changes)
    return np.asarray(profile / np.linalg.norm(profile))


def pooled(images: np.ndarray, width: int) -> np.ndarray:
    """Average squares of pixels."""
    count = SIZE // width
    blocks = images.reshape(len(images), count, width, count, width)
    return np.asarray(blocks.mean(axis=(2, 4)).reshape(len(images), -1))


def encoder(row: dict[str, Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Build the encoder of a row, a function of contrast images (N, H, W)."""
    name = row["encoder"]
    generator = np.random.default_rng(11)
    if name == "pixels":
        return lambda images: images.reshape(len(images), -1)
    if name == "half":
        return lambda images: images[:, :, SIZE // 2 :].reshape(len(images), -1)
    if name == "mean_pool":
        return lambda images: pooled(images, int(row["what"].split()[2]))
    if name == "one_template":
        return lambda images: np.tensordot(images, template(row), 2)[:, None]
    if name == "late_noise":
        scale = float(row["what"].split(" SD ")[-1].split()[0]) * float(row["noise_sd"])

        def noisy(images: np.ndarray) -> np.ndarray:
            clean = np.tensordot(images, template({**row, "what": "matched"}), 2)
            return np.asarray(clean + scale * generator.normal(size=len(images)))[
                :, None
            ]

        return noisy
    if name == "srgb_drive":
        mean, peak = (float(part.split()[1]) for part in row["what"].split(",")[1:3])
        display = Display(peak=peak)
        return lambda images: np.asarray(display.encode(mean * (1 + images)))[
            ..., 1
        ].reshape(len(images), -1)
    if name == "quadrature_energy":
        pair = [gabor(row), gabor(row, phase=90)]

        def energy(images: np.ndarray) -> np.ndarray:
            shares = [
                np.tensordot(images, part, 2) ** 2 / np.sum(part**2) for part in pair
            ]
            return np.asarray(np.sum(shares, axis=0))[:, None]

        return energy
    if name == "pixel_energy":
        weights = gabor(row) ** 2
        return lambda images: np.tensordot(images**2, weights, 2)[:, None]
    assert name == "noise_only"
    return lambda images: generator.normal(size=(len(images), 4))


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    """Fields of white noise of SD 1: the first `PAIRS` for training, twice `FIELDS` for tests."""
    generator = np.random.default_rng(5)
    count = PAIRS + 2 * FIELDS
    return generator.standard_normal((count, SIZE, SIZE), dtype=np.float32)


@pytest.mark.parametrize(
    "row", rows(), ids=lambda row: f"{row['encoder']} {row['what']}"
)
def test_encoders_have_the_d_prime_of_the_table(
    row: dict[str, Any], noise: np.ndarray
) -> None:
    """A stage that was trained on 8 pairs is as right as the table says of the encoder."""
    function = encoder(row)
    signal = (float(row["contrast"]) * gabor(row)).astype(np.float32)
    fields = float(row["noise_sd"]) * noise
    # An energy has no mean to learn by in eight fields, and is compared as it is.
    is_energy = row["encoder"].endswith("energy")
    trained = fields[:PAIRS]
    stage = train_detector("template", [function(trained + signal)], function(trained))
    weights = np.ones(1) if is_energy else stage.weights[0]
    first = function(fields[PAIRS : PAIRS + FIELDS] + signal) @ weights
    second = function(fields[PAIRS + FIELDS :]) @ weights
    share = np.mean(first[:, None] > second)
    expected = float(proportion_correct(float(row["dprime_2afc"])))
    # The error of a share of pairs (Hanley & McNeil 1982).
    same_signal = expected / (2 - expected)
    same_blank = 2 * expected**2 / (1 + expected)
    shared = (FIELDS - 1) * (same_signal + same_blank - 2 * expected**2)
    error = math.sqrt(expected * (1 - expected) + shared) / FIELDS
    assert share == pytest.approx(expected, abs=3 * error)


LINEAR = [
    row
    for row in rows()
    if row["encoder"] in ("pixels", "half", "mean_pool", "one_template", "late_noise")
]


@pytest.mark.parametrize(
    "row", LINEAR, ids=lambda row: f"{row['encoder']} {row['what']}"
)
def test_trained_templates_keep_the_energy_of_the_table(
    row: dict[str, Any], noise: np.ndarray
) -> None:
    """In a linear encoder noise cancels from pairs, so the trained template has no error."""
    signal = float(row["contrast"]) * gabor(row)
    fields = float(row["noise_sd"]) * noise[:2].astype(float)
    function = encoder(row)
    if row["encoder"] == "late_noise":
        function = encoder({**row, "encoder": "one_template", "what": "matched"})
    difference = function(fields + signal) - function(fields)
    stage = train_detector("template", [difference + 1.0], np.ones_like(difference))
    weights = stage.weights[0]
    spread = float(row["noise_sd"]) * np.linalg.norm(weights)
    if row["encoder"] == "mean_pool":
        spread /= int(row["what"].split()[2])
    if row["encoder"] == "late_noise":
        late = float(row["what"].split(" SD ")[-1].split()[0])
        spread *= math.sqrt(1 + late**2)
    d_prime = float(weights @ difference[0]) / spread
    ideal = ideal_d_prime(signal, (float(row["noise_sd"]) / PPD) ** 2, PPD)
    assert ideal == pytest.approx(float(row["dprime_ideal"]), rel=1e-9)
    efficiency = (d_prime / ideal) ** 2
    assert efficiency == pytest.approx(float(row["efficiency"]), rel=1e-5, abs=1e-9)


def test_drive_loses_of_the_energy_what_the_table_says(noise: np.ndarray) -> None:
    """Row 3: what a stage on drive shares with the matched filter of light, field by field."""
    row = next(row for row in rows() if "mean 100" in row["what"])
    function = encoder(row)
    signal = (float(row["contrast"]) * gabor(row)).astype(np.float32)
    fields = float(row["noise_sd"]) * noise
    trained = fields[:PAIRS]
    stage = train_detector("template", [function(trained + signal)], function(trained))
    tested = fields[PAIRS:]
    ideal = np.tensordot(tested, signal, 2)
    shared = np.corrcoef(stage.variables(function(tested))[:, 0], ideal)[0, 1]
    assert shared**2 == pytest.approx(float(row["efficiency"]), abs=1e-3)
    assert 0.995 < shared**2 < 1


def test_the_mirrored_half_has_the_same_energy() -> None:
    signal = gabor({"frequency_cpd": 4, "radius_deg": 0.5})
    right = signal[:, SIZE // 2 :]
    left_half = signal[:, ::-1][:, SIZE // 2 :]
    assert np.sum(right**2) == pytest.approx(np.sum(left_half**2), rel=1e-9)
    assert np.sum(right**2) / np.sum(signal**2) == pytest.approx(0.5, abs=1e-9)


def test_the_ideal_observer_of_row_1() -> None:
    signal = gabor({"frequency_cpd": 4, "radius_deg": 0.5})
    unit = ideal_d_prime(signal, (0.1 / PPD) ** 2, PPD)
    assert 0.01 * unit == pytest.approx(3.75994, abs=5e-6)
    assert d_prime_at(0.75) / unit == pytest.approx(0.0025369, abs=5e-8)


def test_unknown_phase_costs_what_theory_says() -> None:
    share = proportion_correct(3.75994, phase_known=False)
    assert share == pytest.approx(0.98541, abs=5e-6)
    assert d_prime_at(0.75, phase_known=False) == pytest.approx(1.6651, abs=5e-5)
    for criterion, efficiency in ((0.75, 0.3282), (0.9, 0.510)):
        ratio = d_prime_at(criterion) / d_prime_at(criterion, phase_known=False)
        assert ratio**2 == pytest.approx(efficiency, abs=5e-4)


def test_intervals_of_thresholds_hold_the_truth_in_90_to_99_of_100_runs() -> None:
    """Row 16: the ideal observer of row 1 answers 40 times at each of seven contrasts."""
    truth = 0.0025369
    contrast = np.geomspace(truth / 4, 4 * truth, 7)
    share = proportion_correct(contrast / truth * d_prime_at(0.75))
    right = np.random.default_rng(7).binomial(40, share, size=(100, 7))
    fit = fit_psychometric(contrast, right, 40, function="weibull", guess=0.5)
    low, high = fit.threshold_low, fit.threshold_high
    coverage = np.mean((low <= truth) & (truth <= high))
    assert 0.90 <= coverage <= 0.99
