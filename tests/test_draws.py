"""Joint draws of what a test does not mean to measure: the same for all observers, in number and
in kind as the page says, and with an interval that holds the truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.analysis.alignment import alignment_score
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.intervals import fisher
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment, load_suite
from psyprobe.experiment.draws import drawn_parameters
from psyprobe.probes.experiments import load_results, plan, run
from psyprobe.probes.reproduce import reproduce
from psyprobe.stimulus import Gabor


def test_a_page_may_ask_for_a_number_of_draws(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\n[variants]\ndraw = 3\n", encoding="utf-8")
    result = run(path, "pixels", progress=False)
    assert json.loads(result.attrs["variants"]) == {"draw": [1, 2, 3]}
    assert result["variant"].values.tolist() == ["draw 1", "draw 2", "draw 3"]
    path.write_text(text + "\n[variants]\ndraw = 0\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"variants.draw is 0"):
        load_experiment(path)


def test_all_nuisances_are_drawn_together_and_parts_move_together(
    tmp_path: Path,
) -> None:
    masked = load_experiment("mask_coherent").with_variants({"draw": [1, 2]})
    first, second = (page.spec(contrast=0.1) for page in masked.expanded())
    for name in ("phase", "x", "y"):
        # The phase between target and mask is what the test measures.
        assert first.value(name) == first.value(f"mask_{name}")
        assert first.value(name) != second.value(name)
    assert abs(first.value("x")) <= 8 / first.ppd
    noise = load_experiment("noise_achromatic").with_variants({"draw": [1, 2]})
    seeds = [page.spec(frequency=2.0, contrast=0.1).seed for page in noise.expanded()]
    assert len(set(seeds)) == 2
    with pytest.raises(InputError, match="give the number of a draw"):
        load_experiment("area").with_variants({"draw": [0]})


def test_eight_draws_are_the_first_of_sixteen_and_nothing_is_asked_twice(
    tmp_path: Path,
) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    run(path, "pixels", variants={"draw": range(1, 3)}, store=store, progress=False)
    grown = plan(path, "pixels", variants={"draw": range(1, 5)}, store=store)
    assert 0 < grown.answered < grown.questions


def test_the_first_draw_alone_shows_the_level_grid(tmp_path: Path) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    draws = {"draw": [1, 2]}
    full_plan = plan(path, "pixels", variants=draws)
    alone = plan(path, "pixels", variants={"draw": [1]})
    assert full_plan.grid == alone.grid
    result = run(path, "pixels", variants=draws, store=store, progress=False)
    assert result["scored_response_by_variant_angular"].sizes["variant"] == 2
    assert "response_by_variant_angular" not in result
    # A run without the grid before or after does not hide the whole.
    run(path, "pixels", variants=draws, store=store, score_only=True, progress=False)
    (loaded,) = load_results(store)
    assert loaded.identical(result)


def test_one_showing_can_be_asked_for_of_a_page_that_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_experiment(tmp_path)
    plain = run(path, "pixels", progress=False)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\n[variants]\ndraw = 2\n", encoding="utf-8")
    single = run(path, "pixels", variants={}, progress=False)
    np.testing.assert_array_equal(
        single["scored_response_angular"], plain["scored_response_angular"]
    )
    command = ["run", str(path), "--observer", "pixels", "--output", str(tmp_path)]
    assert main([*command, "--variants", "none", "--score-only"]) == 0
    (saved,) = tmp_path.glob("*.nc")
    assert "variants" not in pp.load_results(saved)[0].attrs
    assert reproduce(saved).same
    assert main([*command, "--plan"]) == 0
    assert "small in 2 variants" in capsys.readouterr().out


def test_the_interval_of_eight_draws_holds_the_score_of_endless_ones() -> None:
    # Responses over twenty levels that hang on phase by another shift at each level.
    gabor = Gabor(frequency=4.0, contrast=0.1)
    level = np.arange(20)
    offset = np.random.default_rng(5).normal(0, 0.1, 20)
    multiplier = np.geomspace(0.5, 2, 10)
    scores = []
    for number in range(1, 2001):
        phase = np.deg2rad(drawn_parameters(gabor, ["phase"], number)["phase"])
        shift = offset + 0.1 * np.cos(2 * phase + level / 2)
        scores.append(
            alignment_score(multiplier, np.log10(multiplier) + shift[:, None] + 3)
        )
    truth = fisher(np.array(scores)).mean()
    covered = []
    for eight in np.reshape(scores, (-1, 8)):
        low, high = Sample("variants", tuple("abcdefgh"), tuple(eight), "z").interval()  # type: ignore[misc]
        covered.append(fisher(low) < truth < fisher(high))
    assert 0.91 <= np.mean(covered) <= 0.98


@pytest.mark.draws
def test_corrected_pages_draw_eight_and_published_ones_are_as_printed() -> None:
    for page in load_suite("cai2025"):
        assert page.variants == {"draw": tuple(range(1, 9))}, page.name
    for page in load_suite("cai2025_published"):
        assert page.variants == {}, page.name


def test_tests_show_pages_once_whatever_they_set() -> None:
    page = load_experiment("area")
    short = page.with_settings({"levels.contrast.n": 5})
    assert page.variants == short.variants == {}
