"""Observers that cannot be told apart are marked: by letters on scoreboard and report, by flags in
a comparison."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from detection_results import simulated_result

import psyprobe as pp
from psyprobe.analysis.comparison.family import shared_letters
from psyprobe.analysis.comparison.paired import compare_samples
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.detection import DetectionScore
from psyprobe.analysis.scoreboards import scoreboard

#: z of each observer in eight variants: two that are alike, one far above, the pixels between.
SHIFTS = {"near": 0.0, "alike": 0.002, "far": 0.3}


def scored(name: str) -> DetectionScore:
    """A score of eight variants, of which r_s is made up and the pixels' as well."""
    score = pp.score(simulated_result(lambda x, c: c, observer=name), over="levels")
    assert isinstance(score, DetectionScore)
    rng = np.random.default_rng(len(name))
    keys = tuple(f"draw {number}" for number in range(1, 9))

    def over_draws(responder: object, shift: float, spread: float) -> object:
        z = 0.5 + shift + spread * rng.normal(size=8)
        sample = Sample("variants", keys, tuple(np.tanh(z).tolist()), "z")
        low, high = sample.interval()  # type: ignore[misc]
        alignment = replace(
            responder.alignment,  # type: ignore[attr-defined]
            value=sample.mean(),
            low=low,
            high=high,
            over="variants",
            sample=sample,
        )
        return replace(responder, alignment=alignment)  # type: ignore[type-var]

    return replace(
        score,
        score=over_draws(score.score, SHIFTS[name], 0.02),  # type: ignore[arg-type]
        pixels=over_draws(score.pixels, 0.0, 1e-4),  # type: ignore[arg-type]
    )


def test_letters_are_shared_by_those_that_nothing_tells_apart() -> None:
    # a differs from c alone; d from all: three groups, of which two overlap in b.
    different = np.zeros((4, 4))
    for first, second in ((0, 2), (0, 3), (1, 3), (2, 3)):
        different[first, second] = 1
    assert shared_letters(different) == ["A", "AB", "B", "C"]
    assert shared_letters(np.zeros((3, 3))) == ["A", "A", "A"]
    assert len(set(shared_letters(np.triu(np.ones((30, 30)), 1)))) == 30


def test_letters_agree_with_every_pair() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        different = np.triu(rng.random((6, 6)) < 0.5, 1)
        letters = shared_letters(different)
        for first in range(6):
            for second in range(first + 1, 6):
                shared = set(letters[first]) & set(letters[second])
                assert bool(shared) != bool(different[first, second])


def test_the_scoreboard_marks_what_is_not_told_apart(tmp_path: Path) -> None:
    scores = [scored(name) for name in SHIFTS]
    board = scoreboard(scores)
    (test,) = board.tests
    entries = {
        row.name: row.entries[test] for row in board.rows if row.kind == "observer"
    }
    assert entries["near"].letters == entries["alike"].letters == "A"
    assert entries["far"].letters == "B"
    text = " ".join(board.table().split())
    assert "observers that share one are not told apart" in text
    assert (
        "paired t over the 8 variants that both were shown, Holm over 3 pairs" in text
    )
    # Flags come from the comparison with the pixels, corrected over the three observers.
    assert [name for name, entry in entries.items() if "p" in entry.flags] == [
        "near",
        "alike",
    ]


def test_a_flag_is_corrected_over_the_observers_of_the_test() -> None:
    # p between 0.05 / 3 and 0.05 alone: better than the pixels by itself, and not among three.
    far = scored("far")
    names = ["one", "other", "third"]
    close = far.score.alignment.sample
    pixels = far.pixels.alignment.sample
    assert close is not None and pixels is not None
    wave = np.array([1, -1, 1, -1, 1, -1, 1, -1]) * 0.1
    z = np.arctanh(pixels.values) + 0.1 + wave + 0.03 * (wave > 0)
    sample = replace(close, values=tuple(np.tanh(z).tolist()))
    p = compare_samples(sample, pixels).p
    assert p is not None and 0.05 / 3 < p < 0.05

    def score_of(name: str) -> DetectionScore:
        alignment = replace(far.score.alignment, sample=sample, value=sample.mean())
        score = replace(far.score, alignment=alignment)
        return replace(far, observer=name, score=score)

    def flags(*observers: str) -> set[str]:
        board = scoreboard([score_of(name) for name in observers])
        return {
            entry.flags
            for row in board.rows
            if row.kind == "observer"
            for entry in row.entries.values()
        }

    assert all("p" not in flag for flag in flags("one"))
    assert all("p" in flag for flag in flags(*names))


def test_one_variant_has_no_letters() -> None:
    results = [simulated_result(lambda x, c: c, observer=name) for name in "ab"]
    board = scoreboard([pp.score(result) for result in results])  # type: ignore[misc]
    assert not board.comparisons
    assert "No brackets (Gabor ach): one variant was shown" in board.table()
