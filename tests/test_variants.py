"""Several phases, orientations and noise seeds of one experiment: the mean is that of its parts,
whatever was kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pytest
from small_experiment import write_experiment
from xarray import Dataset

import psyprobe as pp
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.variants import average_variants, variant_sample
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.probes import experiments
from psyprobe.probes.experiments import load_results, plan, run
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store


def test_the_mean_is_that_of_the_variants_run_one_by_one(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    joint_result = run(
        path,
        "pixels",
        variants={"phase": [0, 90], "orientation": [0, 45]},
        progress=False,
    )
    alone = [
        run(single, "pixels", progress=False)
        for single in load_experiment(path)
        .with_variants({"phase": [0, 90], "orientation": [0, 45]})
        .expanded()
    ]
    np.testing.assert_array_equal(
        joint_result["scored_response_by_variant_angular"],
        np.stack([single_result["scored_response_angular"] for single_result in alone]),
    )
    np.testing.assert_allclose(
        joint_result["response_angular"],
        np.mean([single_result["response_angular"] for single_result in alone], axis=0),
        rtol=1e-12,
    )
    assert joint_result["variant"].values.tolist()[1] == "phase 0, orientation 45"


def test_a_store_gives_back_one_result_for_all_variants(tmp_path: Path) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    result = run(
        path, "pixels", variants={"phase": [0, 90]}, store=store, progress=False
    )
    plain = run(path, "pixels", store=store, progress=False)
    loaded = load_results(store)
    assert len(loaded) == 2
    assert loaded[0].identical(result)
    assert loaded[1].identical(plain)


def test_results_stay_in_the_order_of_runs_of_which_few_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    for label in ("a", "b", "c", "d"):
        variants = {"phase": [0, 90]} if label == "b" else {}
        run(path, "pixels", variants=variants, label=label, store=store, progress=False)
    records: list[ReferenceType[RunRecord]] = []
    counts: list[int] = []
    for name in ("build_result", "build_joined"):
        build = getattr(experiments, name)

        def count(record: RunRecord, opened: Store, build: Any = build) -> Dataset:
            records.append(ref(record))
            counts.append(sum(other() is not None for other in records))
            result: Dataset = build(record, opened)
            return result

        monkeypatch.setattr(experiments, name, count)
    results = load_results(store)
    assert [result.attrs["label"] for result in results] == ["a", "b", "c", "d"]
    # One that is built, and the one before until the next is read.
    assert len(counts) == 5
    assert max(counts) <= 2


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
    single_plan = plan(path, "pixels", variants={"phase": [180]}, store=store)
    assert (
        grown.questions - grown.answered
        == single_plan.questions - single_plan.answered
        > 0
    )


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


def test_the_score_is_the_mean_of_the_variants_and_not_that_of_the_mean(
    tmp_path: Path,
) -> None:
    # Two variants are uneven in opposite ways, and their mean response is even.
    result = run(
        write_experiment(tmp_path),
        "pixels",
        score_only=True,
        variants={"phase": [0, 45, 90]},
        progress=False,
    )
    rng = np.random.default_rng(0)
    uneven = 10 ** rng.normal(0, 0.2, result["scored_response_by_variant_l2"].shape)
    changed = result.assign(
        scored_response_by_variant_angular=result["scored_response_by_variant_angular"]
        * uneven
    )
    sample = pp.score(changed).score.alignment.sample
    alone = [
        pp.score(
            result.drop_dims("variant").assign(
                scored_response_angular=changed["scored_response_by_variant_angular"][v]
            )
        ).score.alignment.value
        for v in range(3)
    ]
    assert sample.values == pytest.approx(alone)
    assert pp.score(changed).score.alignment.value == pytest.approx(
        np.tanh(np.mean(np.arctanh(alone)))
    )


def test_combinations_are_no_draws(tmp_path: Path) -> None:
    result = run(
        write_experiment(tmp_path),
        "pixels",
        score_only=True,
        variants={"phase": [0, 90], "orientation": [0, 30, 60]},
        progress=False,
    )
    sample = variant_sample(
        result,
        lambda variant_result: float(variant_result["scored_response"].mean()),
        "linear",
    )
    assert sample is not None and sample.keys == ("phase 0", "phase 90")
    by_variant = join_measures(result)["scored_response_by_variant"].values
    means = by_variant.reshape(6, -1).mean(axis=1)
    assert sample.values == pytest.approx([means[:3].mean(), means[3:].mean()])


def test_a_score_says_how_far_it_hangs_on_the_variants(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    result = run(path, "pixels", variants={"phase": [0, 45, 90]}, progress=False)
    score = pp.score(result)
    assert score.variants is not None
    assert len(score.variants.keys) == 3
    # Three phases of a Gabor score alike on so few levels, and what is alike tells no spread.
    assert score.score.alignment.low is None
    assert "mean over 3 variants" in str(score)
    assert pp.score(run(path, "pixels", progress=False)).variants is None


def test_variants_of_different_observers_are_not_averaged(tmp_path: Path) -> None:
    result = run(write_experiment(tmp_path), "pixels", progress=False)
    with pytest.raises(InputError, match="share their observer"):
        average_variants(
            [result, result.assign_attrs(observer="other")],
            {"phase": [0, 90]},
            ["a", "b"],
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
    assert [suite_plan["experiment"] for suite_plan in plans] == [
        "gabor_achromatic in 2 variants",
        "noise_achromatic in 3 variants",
    ]
    assert main([*command, "--variants", "fase=0,90", "--output", str(tmp_path)]) == 2
    assert "did you mean 'phase'" in capsys.readouterr().err
    assert main([*command, "--variants", "phase=zero", "--output", str(tmp_path)]) == 2
    assert "write for example phase=0,90" in capsys.readouterr().err


def test_the_command_compares_what_a_store_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, store = write_experiment(tmp_path), tmp_path / "runs.sqlite"
    for observer in ("pixels", "castlecsf"):
        run(
            path,
            observer,
            variants={"phase": [0, 40, 80, 120, 160, 200]},
            score_only=True,
            store=store,
            progress=False,
        )
    assert main(["compare", str(store)]) == 0
    printed = capsys.readouterr().out
    assert "observer less castlecsf" in printed
    assert "if others like the 6 variants had been shown" in printed.replace(
        "\n  ", " "
    )
    assert main(["compare", str(store), "--baseline", "pixels", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["observer"] for row in rows] == ["pixels", "castlecsf"]
    assert {row["difference_units"] for row in rows} == {6}
    assert main(["compare", str(store), "--baseline", "nobody"]) == 2
    assert "unknown baseline 'nobody'" in capsys.readouterr().err


def test_a_plan_says_what_difference_would_be_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_experiment(tmp_path)
    planned = ["run", str(path), "--observer", "pixels", "--output", str(tmp_path)]
    variants = ["--variants", "phase=0,45,90,135,180,225,270,315"]
    assert main([*planned, *variants, "--plan", "--compare", "9"]) == 0
    printed = capsys.readouterr().out
    assert "small: 8 variants find a difference of 0.035 in z" in printed
    assert main([*planned, "--plan", "--compare"]) == 0
    assert "one variant tells no difference" in capsys.readouterr().out
    assert main([*planned, "--compare"]) == 2
    assert "add --plan" in capsys.readouterr().err
    assert main([*planned, "--plan", "--compare", "0"]) == 2
    assert "no number of comparisons" in capsys.readouterr().err
