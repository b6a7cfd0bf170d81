"""d', criterion and thresholds from answers to stimuli and blanks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.analysis.words.signal_detection import (
    d_prime_threshold,
    detect,
    log_linear_rate,
    two_interval_d_prime,
)
from psyprobe.errors import InputError


def test_oracle(oracle_data: Path) -> None:
    with (oracle_data / "chat_csf" / "sdt_oracle.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["hits"]:
            counts = [
                float(row[name])
                for name in ("hits", "n_signal", "false_alarms", "n_noise")
            ]
            detection = detect(*counts)
            expected = [
                row[n]
                for n in (
                    "H_loglinear",
                    "F_loglinear",
                    "dprime",
                    "criterion_c",
                    "ln_beta",
                )
            ]
            statistics = (
                detection.hit_rate,
                detection.false_alarm_rate,
                detection.d_prime,
                detection.criterion,
                detection.log_beta,
            )
            np.testing.assert_allclose(
                statistics, [float(v) for v in expected], atol=1e-6
            )
        else:
            correct = float(row["note"].split()[-1])
            np.testing.assert_allclose(
                two_interval_d_prime(correct),
                float(row["dprime_2afc_from_PC"]),
                atol=1e-6,
            )
    assert len(rows) > 10


@given(st.integers(0, 40), st.integers(0, 40))
def test_mirrored_answers_mirror_the_criterion(hits: int, false_alarms: int) -> None:
    detection, mirrored = (
        detect(hits, 40, false_alarms, 40),
        detect(40 - false_alarms, 40, 40 - hits, 40),
    )
    np.testing.assert_allclose(mirrored.d_prime, detection.d_prime, atol=1e-12)
    np.testing.assert_allclose(mirrored.criterion, -detection.criterion, atol=1e-12)


def test_one_block_of_blanks_serves_a_batch() -> None:
    detection = detect([[0, 5], [10, 20]], 20, [2, 4], 20)
    assert detection.d_prime.shape == (2, 2)
    assert detection.d_prime[1, 0] == detect(10, 20, 2, 20).d_prime


def test_threshold_follows_the_scale_of_contrast() -> None:
    contrast, d_prime = (
        np.array([0.001, 0.003, 0.01, 0.03]),
        np.array([0.1, -0.2, 0.9, 2.0]),
    )
    threshold = d_prime_threshold(contrast, d_prime)
    assert 0.01 < threshold < 0.03
    np.testing.assert_allclose(d_prime_threshold(7 * contrast, d_prime), 7 * threshold)
    np.testing.assert_allclose(
        d_prime_threshold(contrast, 2 * d_prime, criterion=2.0), threshold
    )
    assert np.isnan(d_prime_threshold(contrast, d_prime * 0.3))
    assert np.isnan(d_prime_threshold(contrast, d_prime + 2))
    assert d_prime_threshold(contrast, np.stack([d_prime] * 3)).shape == (3,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_linear_rate(3, 2), "3 yes of 2 trials"),
        (lambda: log_linear_rate(-1, 2), "yes from -1"),
        (lambda: log_linear_rate(0, 0), "trials above 0"),
        (lambda: log_linear_rate(np.nan, 2), "not a finite number"),
        (lambda: two_interval_d_prime(1.0), "proportion correct 1 has no finite"),
        (lambda: d_prime_threshold([0.0, 0.1], [0, 1]), "rising"),
        (lambda: d_prime_threshold([0.1, 0.2], [0, np.inf]), "not a finite number"),
        (lambda: detect([1, 2], 3, [1, 2, 3], 3), "do not broadcast"),
    ],
)
def test_what_cannot_be_used_is_said(call, message) -> None:
    with pytest.raises(InputError, match=message):
        call()
