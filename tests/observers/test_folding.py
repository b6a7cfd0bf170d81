"""Batch norms folded into convolutions leave what is measured as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.observers.encoders import network
from psyprobe.observers.encoders.folding import TOLERANCE
from psyprobe.probes.reproduce import reproduce

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
timm = pytest.importorskip("timm", reason="the encoders extra is not installed")

#: With ReLU6 and TensorFlow's margins; sums in place and layers that are called twice; squeezing;
#: a graph traced by torchvision.
NETWORKS = [
    "packaged:efficientnet_lite0",
    "timm:test_resnet",
    "timm:test_efficientnet",
    "torchvision:mobilenet_v3_small",
]


def _pair(name: str, **options: Any) -> tuple[Any, Any]:
    try:
        plain, folded = (
            pp.load_observer(
                name,
                random_weights=not name.startswith("packaged:"),
                device="cpu",
                batch_norm=way,
                **options,
            )
            for way in ("separate", "folded")
        )
    except pp.errors.WeightsError as problem:
        pytest.skip(str(problem))
    return plain, folded


def _norms(module: Any) -> list[Any]:
    return [
        layer
        for layer in module.modules()
        if isinstance(layer, torch.nn.BatchNorm2d) and "forward" not in vars(layer)
    ]


@pytest.mark.parametrize("name", NETWORKS)
def test_s_ac_thresholds_and_scores_stay(name: str, tmp_path: Path) -> None:
    size = {} if name.startswith("packaged:") else {"input_size": 65}
    plain, folded = _pair(name, **size)
    assert folded.card.options == {"batch_norm": "folded"}
    assert not _norms(folded._module)
    page = write_experiment(tmp_path)
    before, after = (pp.run(page, each, progress=False) for each in (plain, folded))
    s_ac, folded_s_ac = (
        result["response_angular"].squeeze("layer").values for result in (before, after)
    )
    assert np.abs(s_ac).max() > 1e-3
    np.testing.assert_allclose(folded_s_ac, s_ac, rtol=1e-3, atol=1e-6)
    level = [float(np.median(s_ac))]
    thresholds, folded_thresholds = (
        iso_contrast(before["contrast"], values, level)[0]
        for values in (s_ac, folded_s_ac)
    )
    assert np.isfinite(thresholds).any()
    np.testing.assert_allclose(folded_thresholds, thresholds, rtol=0, atol=1e-4)
    scores = [pp.score(each).score.alignment.value for each in (before, after)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


@pytest.mark.parametrize("size", [64, 65])  # margins of one side and of both
@pytest.mark.parametrize("count", [1, 3])
def test_features_are_those_of_the_plain_pass(size: int, count: int) -> None:
    plain, folded = _pair(
        "timm:tf_efficientnet_lite0", input_size=size, layers=["blocks.2", "embedding"]
    )
    images = np.random.default_rng(0).random((count, size, size, 3), np.float32)
    expected = plain.features(images)
    features = folded.features(images)
    assert folded.card.options and list(features) == list(expected)
    for name, values in expected.items():
        assert np.abs(features[name] - values).max() <= TOLERANCE * np.abs(values).max()
        assert not np.array_equal(features[name], values)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "timm:test_resnet",
            {"layers": ["conv1", "embedding"]},
        ),  # before its batch norm
        ("timm:test_resnet", {"dtype": "bfloat16"}),
        ("timm:test_vit", {}),
    ],
)
def test_what_cannot_be_folded_stays_plain(name: str, options: dict[str, Any]) -> None:
    plain, folded = _pair(name, input_size=64, **options)
    assert folded.card == plain.card
    images = np.random.default_rng(0).random((2, 64, 64, 3), np.float32)
    for layer, values in plain.features(images).items():
        np.testing.assert_array_equal(folded.features(images)[layer], values)


def test_answers_of_before_stay_theirs(tmp_path: Path) -> None:
    plain, folded = _pair("timm:test_efficientnet", input_size=64)
    assert plain.card.digest != folded.card.digest
    assert plain.card.weights_digest == folded.card.weights_digest
    page = write_experiment(tmp_path)
    store = tmp_path / "store.sqlite"
    pp.run(page, plain, store=store, progress=False)
    asked = pp.plan(page, folded, store=store)
    assert asked.answered == 0
    assert pp.plan(page, plain, store=store).answered == asked.questions


def test_a_run_of_before_is_repeated_as_it_was(tmp_path: Path) -> None:
    plain, _ = _pair("timm:test_efficientnet")
    page = write_experiment(tmp_path)
    result = pp.run(page, plain, progress=False)
    assert "batch_norm" not in json.loads(result.attrs["observer_card"])["options"]
    path = tmp_path / "before.nc"
    result.to_netcdf(path)
    assert reproduce(path, experiment=page).same


def test_a_packaged_network_that_cannot_be_folded_here_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "fold_batch_norms", lambda *_: False)
    with pytest.raises(pp.errors.WeightsError) as problem:
        pp.load_observer("packaged:efficientnet_lite0").features(
            np.zeros((1, 224, 224, 3), np.float32)
        )
    if "needs the weights" in str(problem.value):
        pytest.skip(str(problem.value))
    assert "batch_norm='separate'" in str(problem.value)
