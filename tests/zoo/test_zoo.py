"""The model zoo: its catalogue, its listing, and one real architecture of each loader with random
weights."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiment import write_experiment

from psyprobe.errors import UnknownNameError, WeightsError
from psyprobe.experiment import load_experiment
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.zoo.models import zoo_models
from psyprobe.probes.experiments import observer_for

#: One of each family and loader, the smallest there is.
SMALL = [
    "dino_vits16",
    "dino_resnet50",
    "dino_xcit_small_12_p16",
    "dinov2_vits14_reg",
    "RN50_openai",
    "ViT-B-32_openai",
    "sam2.1_hiera_tiny",
    "vit-mae-base",
    "dinov3_vits16",
    "stable-diffusion-v1-5",
]


def test_published_rows_are_those_of_the_paper(oracle_data: Path) -> None:
    with (oracle_data / "encoder_protocol" / "models_45.csv").open(
        encoding="utf-8"
    ) as file:
        paper = {row["model"]: row for row in csv.DictReader(file)}
    published = {name: model for name, model in zoo_models().items() if model.published}
    assert published.keys() == paper.keys()
    for name, model in published.items():
        assert model.family == paper[name]["family"]
        if "x".join(map(str, model.shape)) != paper[name]["feature_shape"]:
            assert "published" in model.differs, name


def test_every_row_says_where_its_weights_come_from() -> None:
    for model in zoo_models().values():
        assert model.weights == "none" or model.weights.startswith(
            ("hub: ", "file: ")
        ), model.name
        assert math.prod(model.shape) > 0


def test_listing_tells_what_is_missing_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    rows = {row.name: row for row in list_observers("zoo:*")}
    assert len(rows) == len(zoo_models())
    assert not rows["zoo:no_encoder"].obstacle
    assert rows["zoo:dino_vits16"].obstacle
    assert "needs" in rows["zoo:dino_xcit_small_12_p8"].obstacle
    code = (
        "import sys; from psyprobe.observers import list_observers; list_observers(); "
        "print('torch' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=1200,
        ).stdout.strip()
        == "False"
    )


def test_cached_weights_make_a_row_runnable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("timm", reason="the encoders extra is not installed")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    model = zoo_models()["dino_vits16"]
    place = model.weights.removeprefix("hub: ").replace("/", "--")
    assert model.obstacle != ""
    folder = tmp_path / f"models--{place}" / "snapshots" / "0123"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").symlink_to(tmp_path / "lost.incomplete")
    assert model.obstacle != ""
    (tmp_path / "lost.incomplete").write_bytes(b"weights")
    assert model.obstacle == ""


def test_unknown_model_is_told() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'zoo:dino_vits16'"):
        load_observer("zoo:dino_vit16")


def test_other_training_is_never_taken_for_the_right_one() -> None:
    with pytest.raises(WeightsError, match="weights=FILE"):
        load_observer("zoo:dino_resnet50")


@pytest.mark.parametrize("name", SMALL)
def test_feature_has_the_catalogued_size(name: str) -> None:
    model = zoo_models()[name]
    loaders = {
        "timm": "timm",
        "open_clip": "open_clip",
        "diffusers": "diffusers",
        "sam2": "transformers",
    }
    for prefix, package in (loaders | {"vit_mae": "transformers"}).items():
        if model.observer.startswith(f"{prefix}:"):
            pytest.importorskip(package, reason="the zoo extra is not installed")
    observer = load_observer(f"zoo:{name}", random_weights=True, device="cpu")
    assert observer.card.name == f"zoo:{name}"
    assert observer.card.random_weights
    images = np.random.default_rng(0).random(
        (2, *observer.card.input_size, 3), dtype=np.float32
    )
    (feature,) = observer.features(images).values()
    assert feature.shape == (2, math.prod(model.shape))
    assert not np.array_equal(feature[0], feature[1])


@pytest.mark.parametrize(
    ("name", "quick"),
    [("ViT-B-32_openai", True), ("ViT-B-32_laion2b_s34b_b79k", False)],
)
def test_quick_gelu_follows_the_weights(name: str, quick: bool) -> None:
    pytest.importorskip("open_clip", reason="the encoders extra is not installed")
    assert (
        load_observer(f"zoo:{name}", random_weights=True, device="cpu").card.options[
            "quick_gelu"
        ]
        is quick
    )


def test_autoencoder_gives_the_mean_or_one_seeded_sample() -> None:
    pytest.importorskip("diffusers", reason="the zoo extra is not installed")
    images = np.random.default_rng(0).random((1, 64, 64, 3), dtype=np.float32)
    seeds: tuple[dict[str, int], ...] = (
        {},
        {},
        {"sample_seed": 1},
        {"sample_seed": 1},
        {"sample_seed": 2},
    )
    mean, mean_again, sample, sample_again, two = (
        load_observer(
            "diffusers:any", random_weights=True, device="cpu", input_size=64, **seed
        ).features(images)
        for seed in seeds
    )
    np.testing.assert_array_equal(mean["embedding"], mean_again["embedding"])
    np.testing.assert_array_equal(sample["embedding"], sample_again["embedding"])
    assert not np.allclose(sample["embedding"], mean["embedding"])
    assert not np.allclose(sample["embedding"], two["embedding"])


def test_masked_autoencoder_sees_all_patches_unless_published() -> None:
    transformers = pytest.importorskip(
        "transformers", reason="the zoo extra is not installed"
    )
    from psyprobe.observers.encoders.libraries import MaskedOptions, mae_observer

    def tiny() -> Any:
        import torch

        torch.manual_seed(0)
        sizes = {
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
        }
        return transformers.ViTMAEModel(transformers.ViTMAEConfig(**sizes))

    all_patches = MaskedOptions(random_weights=True, device="cpu")
    a_quarter = replace(all_patches, mask_seed=8)
    images = np.random.default_rng(0).random((2, 224, 224, 3), dtype=np.float32)
    embedding = (
        mae_observer("tiny", tiny(), all_patches)
        .features(images)["embedding"]
        .reshape(2, 197, 16)
    )
    masked = mae_observer("tiny", tiny(), a_quarter).features(images)["embedding"]
    assert masked.reshape(2, -1, 16).shape == (2, 50, 16)
    # Every patch is where it stands: changing the last one changes the last token most.
    changed = images.copy()
    changed[:, -16:, -16:] = 1 - changed[:, -16:, -16:]
    moved = (
        mae_observer("tiny", tiny(), all_patches)
        .features(changed)["embedding"]
        .reshape(2, 197, 16)
    )
    assert np.abs(moved - embedding).sum(axis=(0, 2)).argmax() == 196
    # The authors' noise: torch.manual_seed(8); torch.rand(1, 196), smallest first. Others are never
    # looked at.
    import torch

    torch.manual_seed(8)
    kept_patches = torch.argsort(torch.rand(1, 196), dim=1)[0, :49].numpy()
    hidden = images.copy().reshape(2, 14, 16, 14, 16, 3)
    unseen = sorted(set(range(196)) - set(kept_patches.tolist()))
    hidden[:, np.array(unseen) // 14, :, np.array(unseen) % 14] = 0
    features = mae_observer("tiny", tiny(), a_quarter).features(
        hidden.reshape(images.shape)
    )
    np.testing.assert_allclose(features["embedding"], masked, atol=1e-6)


def test_published_experiments_run_models_of_the_zoo_as_published(
    tmp_path: Path,
) -> None:
    pytest.importorskip("diffusers", reason="the zoo extra is not installed")
    options = {"random_weights": True, "device": "cpu", "input_size": 64}
    for name, seed in (("gabor_achromatic_published", 8), ("gabor_achromatic", None)):
        observer = observer_for(
            load_experiment(name), "zoo:stable-diffusion-v1-5", **options
        )
        assert observer.card.options.get("sample_seed") == seed


def test_published_experiments_tell_a_metric_of_the_zoo_their_resolution(
    tmp_path: Path,
) -> None:
    pytest.importorskip(
        "pycvvdp", reason="the metrics extra is not installed", exc_type=ImportError
    )
    path = write_experiment(
        tmp_path,
        ("[display]", "[observer]\nmetric_ppd = 75.4\n[display]"),
        stimulus=(("ppd = 16", "ppd = 64"), ("size = 16", "size = 64")),
    )
    observer = observer_for(load_experiment(path), "zoo:cvvdp_hdr")
    assert observer.card.options["ppd"] == 75.4
