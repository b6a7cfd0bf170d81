"""The image itself, without an encoder, through all nine published tests: the printed numbers and
the exact ones."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import psyprobe as pp
from psyprobe.experiment import load_suite
from psyprobe.probes.experiments import plan, run
from psyprobe.probes.results import score

#: Rows of no_encoder_scores.csv of the two masking tests; the goldens have those of the six
#: detection tests.
MASKING = ("mask_coherent", "mask_incoherent")


def expected(folder: Path) -> dict[str, tuple[str, str]]:
    with (folder / "encoder_protocol" / "no_encoder_scores.csv").open(
        encoding="utf-8"
    ) as file:
        return {
            row["quantity"]: (row["authors"], row["exact_float64"])
            for row in csv.DictReader(file)
        }


@pytest.mark.parametrize("name", MASKING)
def test_pixels_reproduce_the_masking_scores(name: str, oracle_data: Path) -> None:
    printed, exact = (float(value) for value in expected(oracle_data)[name])
    result = run(f"{name}_published", "pixels", score_only=True)
    assert score(result, resamples=100).score.alignment.value == pytest.approx(
        printed, abs=5e-5
    )
    assert score(
        result, measure="angular", resamples=100
    ).score.alignment.value == pytest.approx(exact, abs=1e-6)


def test_pixels_reproduce_both_matching_errors(oracle_data: Path) -> None:
    rows = expected(oracle_data)
    result = run("contrast_matching_published", "pixels", score_only=True)
    for normalised, kind in ((False, "unnormalised"), (True, "normalised")):
        exact = score(
            result, measure="angular", normalised=normalised, resamples=100
        ).score.error
        printed = score(result, normalised=normalised, resamples=100).score.error
        for definition, value in (
            ("mean_over_frequencies", "mean"),
            ("pooled", "pooled"),
        ):
            authors, number = rows[f"matching_{kind}_rmse_{definition}"]
            assert getattr(exact, value).value == pytest.approx(float(number), abs=1e-4)
            if authors:
                assert getattr(printed, value).value == pytest.approx(
                    float(authors), abs=5e-4
                )


@pytest.mark.parametrize("suite", ["cai2025", "cai2025_published"])
def test_all_scores_need_at_most_1800_images(suite: str) -> None:
    planned = [
        plan(experiment, "pixels", score_only=True) for experiment in load_suite(suite)
    ]
    assert sum(test_plan.images + test_plan.repeated for test_plan in planned) <= 1800
    assert (
        all(test_plan.grid == 0 for test_plan in planned[:-1])
        and planned[-1].grid == 9 * 40
    )


def test_a_score_without_the_grid_is_the_score_with_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    observer = pp.observer(
        lambda images: images[:, ::8, ::8, 0].reshape(len(images), -1), name="coarse"
    )
    short = run("mask_coherent", observer, store=store, score_only=True)
    assert not {"response", "pixels_response", "frequency", "contrast"} & set(
        short.variables
    )
    assert (
        plan("mask_coherent", observer, store=store).answered
        == plan("mask_coherent", observer).score + 3
    )
    full_result = run("mask_coherent", observer, store=store)
    short_score, entire = (
        score(result, resamples=100) for result in (short, full_result)
    )
    assert (
        short_score.score.alignment == entire.score.alignment
        and short_score.score.slices == entire.score.slices
    )
    assert short_score.score.shape is None and entire.score.shape is not None
    assert "Without a level grid" in str(
        short_score
    ) and "no response level is crossed" not in str(short_score)
