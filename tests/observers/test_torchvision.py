"""torchvision's classifiers: the feature that the last layer gets, nodes of the graph as layers,
weights."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, WeightsError
from psyprobe.observers import load_observer
from psyprobe.observers.encoders import network, torchvision_models

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
models = pytest.importorskip(
    "torchvision.models", reason="the encoders extra is not installed"
)


def _prepared(observer: Any, images: FloatArray) -> Any:
    mean, std = np.float32(observer.card.mean), np.float32(observer.card.std)
    return torch.tensor(((images - mean) / std).transpose(0, 3, 1, 2).copy())


@pytest.mark.parametrize(
    ("name", "last", "stages"),
    [
        ("resnet18", "fc", ("conv1", "bn1", "layer1", "layer2", "layer3", "layer4")),
        ("squeezenet1_1", "classifier.1", ("features.0", "features.3", "features.4")),
        ("shufflenet_v2_x0_5", "fc", ("conv1", "stage2", "stage3", "stage4", "conv5")),
        ("mobilenet_v3_small", "classifier.3", ("features.0", "features.1")),
    ],
)
def test_the_embedding_is_what_the_last_layer_gets(
    name: str, last: str, stages: Any, drive: FloatArray
) -> None:
    """Put through that layer, it gives what the whole network gives."""
    observer = load_observer(
        f"torchvision:{name}", random_weights=True, device="cpu", layers="all"
    )
    assert (
        observer.card.features[: len(stages)] == stages
        and observer.card.features[-1] == "embedding"
    )
    with network.seeded():
        module = models.get_model(name).eval()
    layer = module.get_submodule(last)
    embedding = torch.tensor(observer.features(drive[:1])["embedding"])
    with torch.inference_mode():
        expected = module(_prepared(observer, drive[:1]))
        if isinstance(layer, torch.nn.Conv2d):
            maps = embedding.reshape(1, layer.in_channels, 13, 13)
            logits = torch.relu(layer(maps)).mean((2, 3))
        else:
            logits = layer(embedding)
    np.testing.assert_allclose(
        logits, expected, rtol=0, atol=1e-5 * float(expected.abs().max())
    )


def test_layers_are_the_nodes_of_the_graph(drive: FloatArray) -> None:
    names = ["layer1.0.add", "layer2", "relu", "embedding", "flatten"]
    observer = load_observer(
        "torchvision:resnet18", random_weights=True, device="cpu", layers=names
    )
    assert observer.card.features == tuple(names)
    features = observer.features(drive[:1])
    np.testing.assert_array_equal(features["flatten"], features["embedding"])
    with network.seeded():
        module = models.resnet18().eval()
    with torch.inference_mode():
        first = torch.relu(module.bn1(module.conv1(_prepared(observer, drive[:1]))))
        np.testing.assert_allclose(
            features["relu"], first.flatten(1), rtol=0, atol=1e-5 * float(first.max())
        )
        before = module.maxpool(first)
        block = module.layer1[0]
        block_sum = before + block.bn2(
            block.conv2(torch.relu(block.bn1(block.conv1(before))))
        )
        np.testing.assert_allclose(
            features["layer1.0.add"],
            block_sum.flatten(1),
            rtol=0,
            atol=1e-5 * float(block_sum.abs().max()),
        )
        second = module.layer2(module.layer1(before))
        np.testing.assert_allclose(
            features["layer2"],
            second.flatten(1),
            rtol=0,
            atol=1e-5 * float(second.max()),
        )


@pytest.mark.parametrize("name", ["densenet121", "mnasnet0_5"])
def test_nothing_works_in_place(name: str) -> None:
    """Neither a module nor a function changes the node before it, once that was given away."""
    module = load_observer(
        f"torchvision:{name}", random_weights=True, device="cpu"
    )._module
    assert not any(getattr(layer, "inplace", False) for layer in module.modules())
    assert "inplace=True" not in module.code and "inplace = True" not in module.code


def test_size_and_normalisation_are_those_of_the_weights() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transform = models.get_model_weights("efficientnet_b1")[
            "IMAGENET1K_V2"
        ].transforms()
    card = load_observer(
        "torchvision:efficientnet_b1.IMAGENET1K_V2", random_weights=True, device="cpu"
    ).card
    assert (
        card.input_size
        == (transform.crop_size[0], transform.crop_size[0])
        == (240, 240)
    )
    assert (list(card.mean), list(card.std)) == (transform.mean, transform.std)
    assert load_observer(
        "torchvision:inception_v3", random_weights=True, device="cpu"
    ).card.input_size == (299, 299)


def test_weights_from_a_file(tmp_path: Path, drive: FloatArray) -> None:
    torch.manual_seed(3)
    module = models.squeezenet1_1().eval()
    torch.save(module.state_dict(), path := tmp_path / "mine.pth")
    observer = load_observer(
        "torchvision:squeezenet1_1",
        weights=path,
        device="cpu",
        layers=["features.12.cat"],
    )
    assert observer.card.weights == f"file {path}" and not observer.card.random_weights
    assert observer.card.weights_digest == network.state_digest(module.state_dict())
    with torch.inference_mode():
        expected = module.features(_prepared(observer, drive)).flatten(1).numpy()
    features = observer.features(drive)["features.12.cat"]
    np.testing.assert_allclose(
        features, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )
    torch.save({"weight": torch.zeros(3)}, other := tmp_path / "other.pth")
    with pytest.raises(
        InputError, match=r"other\.pth' does not hold its weights"
    ) as caught:
        load_observer("torchvision:squeezenet1_1", weights=other)
    assert "\n" not in str(caught.value)


def test_a_file_of_inception_is_normalised_as_torchvision_does(tmp_path: Path) -> None:
    """Its weights want a mean of 0.5; torchvision's builder says so for its own weights alone."""
    with network.seeded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        module = models.googlenet(init_weights=False)
    torch.save(module.state_dict(), path := tmp_path / "googlenet.pth")
    observer = load_observer("torchvision:googlenet", weights=path, device="cpu")
    assert observer._network.module.transform_input
    assert not load_observer(
        "torchvision:googlenet", random_weights=True, device="cpu"
    )._network.module.transform_input


def test_cached_weights_need_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    requests: list[Any] = []

    def unreachable(request: Any, timeout: float) -> Any:
        requests.append((request.full_url, request.method, timeout))
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(
        WeightsError,
        match=r"no weights .*resnet18-f37072fd.pth, and https://.* cannot be reached",
    ):
        load_observer("torchvision:resnet18")
    ((url, method, timeout),) = requests
    assert (
        url.endswith("/resnet18-f37072fd.pth")
        and method == "HEAD"
        and timeout == network.PATIENCE
    )
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "resnet18-f37072fd.pth").write_bytes(b"")
    torchvision_models._check_reached(
        "torchvision:resnet18", models.ResNet18_Weights.DEFAULT
    )
    assert len(requests) == 1


def test_tokens_of_a_vision_transformer(drive: FloatArray) -> None:
    """Its class token after the last block and norm is what the head gets."""
    names = [
        "encoder.ln:cls",
        "encoder.ln:patches",
        "encoder.layers.encoder_layer_0",
        "embedding",
    ]
    observer = load_observer(
        "torchvision:vit_b_32", random_weights=True, device="cpu", layers=names
    )
    features = observer.features(drive[:1])
    assert features["encoder.ln:patches"].shape == (1, 49 * 768)
    np.testing.assert_array_equal(features["encoder.ln:cls"], features["embedding"])
    with network.seeded():
        module = models.vit_b_32().eval()
    with torch.inference_mode():
        logits = module(_prepared(observer, drive[:1]))
        np.testing.assert_allclose(
            module.heads(torch.tensor(features["embedding"])), logits, rtol=0, atol=1e-4
        )
