"""Where weights come from: files, absent hubs, random numbers, and the digest that tells them
apart."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, WeightsError
from psyprobe.observers import load_observer
from psyprobe.observers.encoders import network

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
timm = pytest.importorskip("timm", reason="the encoders extra is not installed")
constants = pytest.importorskip(
    "huggingface_hub.constants", reason="the encoders extra is not installed"
)


@pytest.fixture()
def _no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache and no network, as far as the libraries can tell."""
    monkeypatch.setattr(network, "_hub_answers", lambda: False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.mark.usefixtures("_no_hub")
@pytest.mark.parametrize(
    "name",
    ["timm:resnet18.a1_in1k", "timm:resnet18", "open_clip:ViT-B-32/laion2b_s34b_b79k"],
)
def test_absent_weights_are_one_line_and_no_address_is_looked_up(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith("open_clip"):
        pytest.importorskip("open_clip", reason="the encoders extra is not installed")
    looked_up: list[object] = []

    def look_up(*address: object, **_: object) -> NoReturn:
        looked_up.append(address)
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(WeightsError) as caught:
        load_observer(name)
    assert not looked_up
    text = str(caught.value)
    assert text.startswith(
        f"{name}: no weights in the cache {tmp_path}, and the model hub cannot be reached"
    )
    assert "weights=FILE" in text and "\n" not in text
    assert constants.HF_HUB_OFFLINE is False, "the library's switch was not put back"


@pytest.mark.usefixtures("_no_hub")
def test_cached_weights_need_no_network(tmp_path: Path) -> None:
    save_file = pytest.importorskip(
        "safetensors.torch", reason="the encoders extra is not installed"
    ).save_file
    state = timm.create_model("resnet18").state_dict()
    repository = tmp_path / "models--timm--resnet18.a1_in1k"
    (snapshot := repository / "snapshots" / ("0" * 40)).mkdir(parents=True)
    save_file(state, snapshot / "model.safetensors")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    card = load_observer("timm:resnet18.a1_in1k", device="cpu").card
    assert card.weights == "timm, timm/resnet18.a1_in1k" and not card.random_weights
    assert card.weights_digest == network.state_digest(state)


def test_a_hub_switched_off_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> bool:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(network, "_hub_answers", fail)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match=r"switched off \(HF_HUB_OFFLINE\)"):
        load_observer("timm:resnet18")


def test_an_architecture_without_trained_weights_says_so() -> None:
    with pytest.raises(
        WeightsError, match=r"timm has no trained weights for timm:botnet50ts_256"
    ):
        load_observer("timm:botnet50ts_256")


def test_weights_from_a_file(tmp_path: Path, drive: FloatArray) -> None:
    torch.manual_seed(3)
    module = timm.create_model("resnet18").eval()
    path = tmp_path / "mine.pth"
    torch.save(module.state_dict(), path)
    observer = load_observer("timm:resnet18", weights=path, device="cpu")
    assert not observer.card.random_weights and observer.card.weights == f"file {path}"
    assert observer.card.weights_digest == network.state_digest(module.state_dict())
    mean, std = np.float32(observer.card.mean), np.float32(observer.card.std)
    prepared = torch.tensor(((drive - mean) / std).transpose(0, 3, 1, 2).copy())
    with torch.inference_mode():
        expected = module.forward_head(
            module.forward_features(prepared), pre_logits=True
        ).numpy()
    np.testing.assert_allclose(
        observer.features(drive)["embedding"],
        expected,
        rtol=0,
        atol=2e-6 * np.abs(expected).max(),
    )


def test_positions_are_resampled_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vit.pth"
    torch.save(timm.create_model("vit_tiny_patch16_224").state_dict(), path)
    observer = load_observer(
        "timm:vit_tiny_patch16_224", weights=path, input_size=(192, 160), device="cpu"
    )
    assert observer.features(np.zeros((1, 192, 160, 3), np.float32))[
        "embedding"
    ].shape == (1, 192)


def test_clip_weights_from_a_file(
    tmp_path: Path, tiny_clips: None, drive: FloatArray
) -> None:
    open_clip = pytest.importorskip(
        "open_clip", reason="the encoders extra is not installed"
    )
    model = open_clip.create_model("tiny-ViT").eval()
    path = tmp_path / "clip.pt"
    torch.save(model.state_dict(), path)
    observer = load_observer(
        "open_clip:tiny-ViT", weights=path, input="raw", device="cpu"
    )
    with torch.inference_mode():
        expected = model.encode_image(
            torch.tensor(drive.transpose(0, 3, 1, 2).copy())
        ).numpy()
    np.testing.assert_allclose(
        observer.features(drive)["embedding"],
        expected,
        rtol=0,
        atol=2e-6 * np.abs(expected).max(),
    )


@pytest.mark.parametrize("name", ["timm:resnet18", "open_clip:tiny-ViT"])
def test_a_file_with_other_weights_is_refused(
    name: str, tmp_path: Path, tiny_clips: None
) -> None:
    path = tmp_path / "other.pth"
    torch.save({"weight": torch.zeros(3)}, path)
    with pytest.raises(
        InputError, match=r"other\.pth'? does not hold its weights"
    ) as caught:
        load_observer(name, weights=path)
    assert "\n" not in str(caught.value)
    with pytest.raises(WeightsError, match="there is no weights file"):
        load_observer(name, weights=tmp_path / "none.pth")


@pytest.mark.parametrize("tag", ["openai", "metaclip_400m", "laion2b_s34b_b79k"])
def test_quickgelu_follows_the_tag(tag: str) -> None:
    """open_clip's own table of tags says which were trained with QuickGELU; the architecture alone
    means GELU."""
    open_clip = pytest.importorskip(
        "open_clip", reason="the encoders extra is not installed"
    )
    is_quick = bool(open_clip.get_pretrained_cfg("ViT-B-32", tag).get("quick_gelu"))
    assert is_quick == (tag != "laion2b_s34b_b79k")
    observer = load_observer(
        f"open_clip:ViT-B-32/{tag}", random_weights=True, device="cpu"
    )
    assert observer.card.options == {"quick_gelu": is_quick}
    activation = observer._network.module.transformer.resblocks[0].mlp.gelu
    assert (type(activation).__name__ == "QuickGELU") == is_quick


def test_digest_tells_weights_apart() -> None:
    state = {"a": torch.zeros(2, 3), "b": torch.tensor(1)}
    reordered = {"b": torch.tensor(1), "a": torch.zeros(3, 2).T}
    assert network.state_digest(state) == network.state_digest(reordered)
    for other in (
        {"a": torch.zeros(3, 2), "b": torch.tensor(1)},
        {"a": torch.zeros(2, 3), "b": torch.tensor(1.0)},
        {"a": torch.zeros(2, 3), "c": torch.tensor(1)},
        {"a": torch.full((2, 3), -0.0), "b": torch.tensor(1)},
    ):
        assert network.state_digest(other) != network.state_digest(state)
