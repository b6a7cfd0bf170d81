"""Several phases, orientations and noise seeds of one experiment: the mean is that of its parts,
whatever was kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.variants import average_variants, variant_spread
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.probes.experiments import load_results, plan, run


def test_the_mean_is_that_of_the_variants_run_one_by_one(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    together = run(
        path,
        "pixels",
        variants={"phase": [0, 90], "orientation": [0, 45]},
        progress=False,
    )
    alone = [
        run(one, "pixels", progress=False)
        for one in load_experiment(path)
        .with_variants({"phase": [0, 90], "orientation": [0, 45]})
        .expanded()
    ]
    np.testing.assert_array_equal(
        together["scored_response_by_variant_angular"],
        np.stack([one["scored_response_angular"] for one in alone]),
    )
    np.testing.assert_allclose(
        together["response_angular"],
        np.mean([one["response_angular"] for one in alone], axis=0),
        rtol=1e-12,
    )
    assert together["variant"].values.tolist()[1] == "phase 0, orientation 45"


def test_a_store_gives_back_one_result_for_all_variants(tmp_path: Path) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    asked = run(
        path, "pixels", variants={"phase": [0, 90]}, store=store, progress=False
    )
    plain = run(path, "pixels", store=store, progress=False)
    found = load_results(store)
    assert len(found) == 2
    assert found[0].identical(asked)
    assert found[1].identical(plain)


def test_a_store_keeps_back_variants_of_which_one_is_unfinished(tmp_path: Path) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    first, _ = load_experiment(path).with_variants({"phase": [0, 90]}).expanded()
    run(first, "pixels", store=store, progress=False)
    with pytest.raises(InputError, match="no finished run"):
        load_results(store)


def test_nothing_is_asked_twice_when_variants_grow(tmp_path: Path) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    run(path, "pixels", variants={"phase": [0, 90]}, store=store, progress=False)
    grown = plan(path, "pixels", variants={"phase": [0, 90, 180]}, store=store)
    one = plan(path, "pixels", variants={"phase": [180]}, store=store)
    assert grown.questions - grown.answered == one.questions - one.answered > 0


def test_a_page_may_name_its_variants(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    path.write_text(
        path.read_text(encoding="utf-8") + "\n[variants]\nphase = [0, 90]\n",
        encoding="utf-8",
    )
    result = run(path, "pixels", progress=False)
    assert json.loads(result.attrs["variants"]) == {"phase": [0, 90]}
    assert result.sizes["variant"] == 2


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("phase = 90", "variants.phase is 90; give a list of numbers"),
        ("phase = []", "give at least one value"),
        ("phase = [0, 0]", "each once"),
        ("contrast = [0.1, 0.2]", "unknown parameter .* 'contrast'"),
        ("colour = [1]", "unknown parameter .* 'colour'"),
        ("luminance = [0]", "variant luminance 0"),
    ],
)
def test_a_bad_variant_is_one_sentence(tmp_path: Path, page: str, message: str) -> None:
    path = write_experiment(tmp_path)
    path.write_text(
        path.read_text(encoding="utf-8") + f"\n[variants]\n{page}\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match=message):
        load_experiment(path)


def test_the_interval_over_variants_covers_the_mean_of_endless_variants(
    tmp_path: Path,
) -> None:
    # Simulated: each variant's response is 1 plus Gaussian noise, the statistic its mean; 95 % is
    # asked.
    result = run(write_experiment(tmp_path), "pixels", score_only=True, progress=False)
    template = join_measures(result)
    rng, covered, repeats = np.random.default_rng(5), 0, 120
    for _ in range(repeats):
        parts = []
        for value in rng.normal(1, 0.1, size=6):
            part = template.copy()
            part["scored_response"] = template["scored_response"] * 0 + value
            parts.append(part)
        averaged = average_variants(
            parts, {"phase": range(6)}, [f"phase {i}" for i in range(6)]
        )
        spread = variant_spread(
            averaged, lambda each: float(each["scored_response"].mean()), resamples=30
        )
        assert spread is not None and spread.low is not None and spread.high is not None
        covered += spread.low <= 1 <= spread.high
    assert 0.9 <= covered / repeats <= 0.99


def test_a_score_says_how_far_it_hangs_on_the_variants(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    score = pp.score(
        run(path, "pixels", variants={"phase": [0, 45, 90]}, progress=False)
    )
    assert score.variants is not None
    assert score.variants.count == 3
    # Three phases of a Gabor score alike on so few levels, and what is alike tells no spread.
    assert score.variants.low is None and score.variants.high is None
    assert "mean of 3 variants" in str(score)
    assert pp.score(run(path, "pixels", progress=False)).variants is None


def test_variants_of_different_observers_are_not_averaged(tmp_path: Path) -> None:
    one = run(write_experiment(tmp_path), "pixels", progress=False)
    with pytest.raises(InputError, match="share their observer"):
        average_variants(
            [one, one.assign_attrs(observer="other")], {"phase": [0, 90]}, ["a", "b"]
        )


def test_a_suite_varies_in_each_experiment_what_its_stimulus_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "run",
        "gabor_achromatic",
        "noise_achromatic",
        "--observer",
        "pixels",
        "--plan",
        "--json",
    ]
    assert (
        main(
            [
                *command,
                "--variants",
                "phase=0,90",
                "seed=1,2,3",
                "--output",
                str(tmp_path),
            ]
        )
        == 0
    )
    plans = json.loads(capsys.readouterr().out)
    assert [one["experiment"] for one in plans] == [
        "gabor_achromatic in 2 variants",
        "noise_achromatic in 3 variants",
    ]
    assert main([*command, "--variants", "fase=0,90", "--output", str(tmp_path)]) == 2
    assert "did you mean 'phase'" in capsys.readouterr().err
    assert main([*command, "--variants", "phase=zero", "--output", str(tmp_path)]) == 2
    assert "write for example phase=0,90" in capsys.readouterr().err
