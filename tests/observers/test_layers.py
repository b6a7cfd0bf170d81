"""Layers on the way, all from one pass, against what timm and open_clip themselves say of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.observers import Network, NetworkObserver, NetworkOptions, load_observer

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")


def _prepared(drive: FloatArray, observer: NetworkObserver) -> Any:
    card = observer.card
    return (
        torch.tensor((drive - np.float32(card.mean)) / np.float32(card.std))
        .permute(0, 3, 1, 2)
        .contiguous()
    )


def _close(ours: FloatArray, theirs: Any) -> None:
    expected = theirs.flatten(1).numpy()
    np.testing.assert_allclose(
        ours, expected, rtol=0, atol=2e-6 * np.abs(expected).max()
    )


@pytest.mark.parametrize(
    "name",
    ["resnet18", "mobilenetv3_small_050", "convnext_atto", "tf_efficientnet_lite0"],
)
def test_stages_are_those_of_timm(name: str, drive: FloatArray) -> None:
    observer = load_observer(
        f"timm:{name}", random_weights=True, layers="all", device="cpu"
    )
    module = observer._network.module
    with torch.inference_mode():
        final, stages = module.forward_intermediates(_prepared(drive, observer))
        embedding = module.forward_head(final, pre_logits=True)
    features = observer.features(drive)
    assert (
        list(features) == list(observer.card.features)
        and observer.card.features[-1] == "embedding"
    )
    for ours, theirs in zip(features.values(), (*stages, embedding), strict=True):
        _close(ours, theirs)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("vit_tiny_patch16_224", 1), ("vit_small_patch14_reg4_dinov2.lvd142m", 5)],
)
def test_tokens_are_those_of_timm(name: str, prefix: int, drive: FloatArray) -> None:
    layers = ["blocks.0:cls", "blocks.0:patches", "blocks.11", "norm", "embedding"]
    observer = load_observer(
        f"timm:{name}", random_weights=True, layers=layers, input_size=224, device="cpu"
    )
    module = observer._network.module
    with torch.inference_mode():
        final, stages = module.forward_intermediates(
            _prepared(drive, observer), output_fmt="NLC", return_prefix_tokens=True
        )
    features = observer.features(drive)
    patches, tokens = stages[0]
    assert tokens.shape[1] == prefix
    _close(features["blocks.0:cls"], tokens[:, :1])
    _close(features["blocks.0:patches"], patches)
    _close(features["blocks.11"], torch.cat(stages[-1][::-1], dim=1))
    _close(features["norm"], final)
    _close(features["embedding"], final[:, 0])


@pytest.mark.parametrize("name", ["open_clip:tiny-ViT", "open_clip:tiny-RN"])
def test_stages_are_those_of_open_clip(
    name: str, drive: FloatArray, tiny_clips: None
) -> None:
    observer = load_observer(name, random_weights=True, layers="all", device="cpu")
    tower = observer._network.module
    with torch.inference_mode():
        intermediates = tower.forward_intermediates(
            _prepared(drive, observer), output_fmt="NLC" if "ViT" in name else "NCHW"
        )
    *stages, embedding = observer.features(drive).values()
    for ours, theirs in zip(
        stages, intermediates["image_intermediates"][-len(stages) :], strict=True
    ):
        _close(
            ours[:, -theirs[0].numel() :], theirs
        )  # open_clip leaves the class token out
    _close(embedding, intermediates["image_features"])


def test_all_layers_come_from_one_pass(drive: FloatArray) -> None:
    observer = load_observer(
        "timm:vit_tiny_patch16_224", random_weights=True, layers="all", device="cpu"
    )
    passes = []
    observer._module.patch_embed.register_forward_hook(lambda *_: passes.append(1))
    features = observer.features(drive)
    assert len(features) == 13 and len(passes) == 1
    observer.features(drive)
    assert len(passes) == 2
    watched = [
        module for module in observer._module.blocks.modules() if module._forward_hooks
    ]
    assert not watched, "hooks of an earlier pass were left behind"


def test_layers_do_not_disturb_the_embedding(drive: FloatArray) -> None:
    alone = load_observer("timm:resnet18", random_weights=True, device="cpu").features(
        drive
    )["embedding"]
    all_features = load_observer(
        "timm:resnet18", random_weights=True, layers="all", device="cpu"
    ).features(drive)
    np.testing.assert_array_equal(all_features["embedding"], alone)


def test_a_layer_is_kept_before_later_ones_work_in_place() -> None:
    module = torch.nn.Sequential(
        torch.nn.Identity(), torch.nn.ReLU(inplace=True), torch.nn.Flatten()
    )
    shifted = Network("in place", module, module, mean=(0.5, 0.5, 0.5))
    features = NetworkObserver(
        shifted, NetworkOptions(layers=["0"], device="cpu")
    ).features(np.zeros((1, 2, 2, 3), np.float32))
    np.testing.assert_array_equal(features["0"], np.full((1, 12), -0.5, np.float32))


def test_order_is_as_asked(drive: FloatArray) -> None:
    layers = ["embedding", "layer2", "layer1"]
    observer = load_observer(
        "timm:resnet18", random_weights=True, layers=layers, device="cpu"
    )
    assert observer.card.features == tuple(layers) == tuple(observer.features(drive))


@pytest.mark.parametrize(
    ("layers", "error", "message"),
    [
        (["layr1"], UnknownNameError, "did you mean 'layer1'"),
        (["layer1:cls"], InputError, "no token 'cls' in 'layer1': it has none"),
        ([], InputError, "name at least one"),
        (["layer1", "layer1"], InputError, "each once"),
    ],
)
def test_refuses_layers_that_are_not_there(
    layers: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_observer("timm:resnet18", random_weights=True, layers=layers)


@pytest.mark.parametrize(
    ("name", "layer", "message"),
    [
        (
            "timm:resnet18",
            "layr2",
            "did you mean 'layer2'. It has layer2, .*layer1, .*embedding$",
        ),
        (
            "timm:vit_tiny_patch16_224",
            "nrom",
            "did you mean 'norm'. It has norm, .*blocks.11, embedding$",
        ),
        (
            "packaged:efficientnet_lite0",
            "blok.1",
            r"did you mean 'blocks\.\d'. It has .*embedding$",
        ),
        (
            "vit_mae:base",
            "layer.3",
            r"did you mean 'layers\.3'. It has layers\.3, .*embedding$",
        ),
        (
            "diffusers:any",
            "encoder.mid",
            r"did you mean 'encoder\.mid.*It has .*embedding$",
        ),
    ],
)
def test_a_typo_lists_the_layers_there_are(name: str, layer: str, message: str) -> None:
    pytest.importorskip("diffusers", reason="the zoo extra is not installed")
    with pytest.raises(UnknownNameError, match=message) as caught:
        load_observer(name, random_weights=True, layers=[layer])
    assert "\n" not in str(caught.value)


def test_refuses_tokens_where_a_layer_has_none(drive: FloatArray) -> None:
    """XCiT adds its class token after the blocks: the first token of a block is a patch, not the
    class."""
    observer = load_observer(
        "timm:xcit_nano_12_p16_224",
        random_weights=True,
        layers=["blocks.1:cls"],
        device="cpu",
    )
    with pytest.raises(InputError, match="not 1 \\+ 196 tokens"):
        observer.features(drive)


class _Odd(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A network with a layer that runs twice, one that never runs, and one that gives two
    tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.never, self.pair = (
            torch.nn.Flatten(),
            torch.nn.Flatten(),
            torch.nn.LSTM(3, 3),
        )

    def forward(self, images: Any) -> Any:
        self.pair(images.mean(dim=(2, 3)))
        return self.twice(self.twice(images))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("twice", "more than once"),
        ("never", "takes no part"),
        ("pair", "tuple, not one tensor"),
    ],
)
def test_refuses_layers_that_say_nothing_clear(layer: str, message: str) -> None:
    module = _Odd()
    observer = NetworkObserver(
        Network("odd", module, module), NetworkOptions(layers=[layer], device="cpu")
    )
    with pytest.raises(InputError, match=message):
        observer.features(np.zeros((2, 4, 4, 3), np.float32))
