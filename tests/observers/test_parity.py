"""One network with the same weights gives the same features through every library: tokens, norms
and activations."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe import observers
from psyprobe._typing import FloatArray

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
timm = pytest.importorskip("timm", reason="the encoders extra is not installed")

LAYERS, WIDTH, HEADS, PATCH, SIZE, EMBEDDING = 3, 64, 4, 32, 128, 24
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def images() -> FloatArray:
    return np.random.default_rng(4).random((2, SIZE, SIZE, 3), dtype=np.float32)


@pytest.fixture(scope="module", params=[True, False], ids=["QuickGELU", "GELU"])
def clip(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """A small CLIP of ViT-B/32's form, of random weights; whether its activation is QuickGELU."""
    open_clip = pytest.importorskip(
        "open_clip", reason="the encoders extra is not installed"
    )
    folder = tmp_path_factory.mktemp("clip")
    name = f"parity-{'quick' if request.param else 'plain'}"
    config = {
        "embed_dim": EMBEDDING,
        "quick_gelu": request.param,
        "vision_cfg": {
            "image_size": SIZE,
            "layers": LAYERS,
            "width": WIDTH,
            "head_width": WIDTH // HEADS,
            "patch_size": PATCH,
        },
        "text_cfg": {
            "context_length": 8,
            "vocab_size": 49408,
            "width": 16,
            "heads": 2,
            "layers": 1,
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    model = open_clip.create_model(name)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in model.visual.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=generator))
    torch.save(model.state_dict(), path := folder / "clip.pt")
    return (
        name,
        path,
        {key: value.clone() for key, value in model.visual.state_dict().items()},
        request.param,
    )


@pytest.fixture(scope="module")
def through_open_clip(clip: Any, images: FloatArray) -> Any:
    name, path, _, quick = clip
    layers = [
        *(f"transformer.resblocks.{number}" for number in range(LAYERS)),
        "embedding",
    ]
    layers += ["transformer.resblocks.1:cls", "transformer.resblocks.1:patches"]
    observer = observers.load_observer(
        f"open_clip:{name}", weights=path, layers=layers, device="cpu"
    )
    assert observer.card.options == {
        "quick_gelu": quick
    } and observer.card.mean == pytest.approx(MEAN)
    return observer.features(images)


def test_timm(
    clip: Any, through_open_clip: Any, images: FloatArray, tmp_path: Path
) -> None:
    from timm.models.vision_transformer import VisionTransformer, checkpoint_filter_fn

    _, path, _, quick = clip
    module = VisionTransformer(
        img_size=SIZE,
        patch_size=PATCH,
        embed_dim=WIDTH,
        depth=LAYERS,
        num_heads=HEADS,
        num_classes=EMBEDDING,
        pre_norm=True,
        act_layer="quick_gelu" if quick else "gelu",
        norm_layer=torch.nn.LayerNorm,
    )
    state = torch.load(path, weights_only=True)
    module.load_state_dict(checkpoint_filter_fn(state, module), strict=True)
    names = [f"blocks.{number}" for number in range(LAYERS)]
    layers = [*names, "blocks.1:cls", "blocks.1:patches", "head"]
    network = observers.Network(
        "timm's",
        module,
        module,
        tokens=(1, 16),
        mean=MEAN,
        std=STD,
        input_size=(SIZE, SIZE),
    )
    features = observers.NetworkObserver(
        network, observers.NetworkOptions(layers=layers, device="cpu")
    ).features(images)
    for number in range(LAYERS):
        np.testing.assert_allclose(
            features[f"blocks.{number}"],
            through_open_clip[f"transformer.resblocks.{number}"],
            **CLOSE,
        )
    for token in ("cls", "patches"):
        np.testing.assert_allclose(
            features[f"blocks.1:{token}"],
            through_open_clip[f"transformer.resblocks.1:{token}"],
            **CLOSE,
        )
    np.testing.assert_allclose(
        features["head"], through_open_clip["embedding"], **CLOSE
    )


def _as_transformers(state: dict[str, Any]) -> dict[str, Any]:
    """open_clip's names and one matrix for query, key and value, as transformers has them."""
    renamed = {
        "vision_model.embeddings.class_embedding": state["class_embedding"],
        "vision_model.embeddings.position_embedding.weight": state[
            "positional_embedding"
        ],
        "vision_model.embeddings.patch_embedding.weight": state["conv1.weight"],
        "visual_projection.weight": state["proj"].T.contiguous(),
    }
    for kind in ("weight", "bias"):
        renamed[f"vision_model.pre_layrnorm.{kind}"] = state[f"ln_pre.{kind}"]
        renamed[f"vision_model.post_layernorm.{kind}"] = state[f"ln_post.{kind}"]
        for number in range(LAYERS):
            theirs, ours = (
                f"transformer.resblocks.{number}.",
                f"vision_model.encoder.layers.{number}.",
            )
            parts = state[f"{theirs}attn.in_proj_{kind}"].chunk(3)
            for part, values in zip(("q_proj", "k_proj", "v_proj"), parts, strict=True):
                renamed[f"{ours}self_attn.{part}.{kind}"] = values.contiguous()
            for source, other in (
                ("attn.out_proj", "self_attn.out_proj"),
                ("ln_1", "layer_norm1"),
                ("ln_2", "layer_norm2"),
                ("mlp.c_fc", "mlp.fc1"),
                ("mlp.c_proj", "mlp.fc2"),
            ):
                renamed[f"{ours}{other}.{kind}"] = state[f"{theirs}{source}.{kind}"]
    return renamed


def test_transformers(clip: Any, through_open_clip: Any, images: FloatArray) -> None:
    transformers = pytest.importorskip(
        "transformers", reason="the zoo extra is not installed"
    )
    *_, state, quick = clip
    config = transformers.CLIPVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        image_size=SIZE,
        patch_size=PATCH,
        projection_dim=EMBEDDING,
        hidden_act="quick_gelu" if quick else "gelu",
    )
    model = transformers.CLIPVisionModelWithProjection(config)
    missing, unexpected = model.load_state_dict(_as_transformers(state), strict=False)
    assert not unexpected and all("position_ids" in name for name in missing)
    names = [f"vision_model.encoder.layers.{number}" for number in range(LAYERS)]
    network = observers.Network(
        "transformers'",
        model,
        lambda pixels: model(pixel_values=pixels).image_embeds,
        tokens=(1, 16),
        mean=MEAN,
        std=STD,
        input_size=(SIZE, SIZE),
    )
    layers = [*names, f"{names[1]}:cls", f"{names[1]}:patches", "embedding"]
    features = observers.NetworkObserver(
        network, observers.NetworkOptions(layers=layers, device="cpu")
    ).features(images)
    for number, name in enumerate(names):
        np.testing.assert_allclose(
            features[name],
            through_open_clip[f"transformer.resblocks.{number}"],
            **CLOSE,
        )
    for token in ("cls", "patches"):
        np.testing.assert_allclose(
            features[f"{names[1]}:{token}"],
            through_open_clip[f"transformer.resblocks.1:{token}"],
            **CLOSE,
        )
    np.testing.assert_allclose(
        features["embedding"], through_open_clip["embedding"], **CLOSE
    )


def test_the_other_activation_shows(
    clip: Any, through_open_clip: Any, images: FloatArray, tmp_path: Path
) -> None:
    """What the parity is worth: QuickGELU for GELU moves the embedding a thousand times its
    tolerance."""
    open_clip = pytest.importorskip(
        "open_clip", reason="the encoders extra is not installed"
    )
    name, path, _, quick = clip
    other = open_clip.create_model(
        name, pretrained=str(path), force_quick_gelu=not quick
    ).visual.eval()
    if quick:
        for block in other.transformer.resblocks:
            block.mlp.gelu = torch.nn.GELU()
    pixels = torch.tensor(
        ((images - np.float32(MEAN)) / np.float32(STD)).transpose(0, 3, 1, 2).copy()
    )
    with torch.inference_mode():
        assert (
            np.abs(other(pixels).numpy() - through_open_clip["embedding"]).max() > 1e-2
        )


def test_torchvision_timm_and_onnx(tmp_path: Path, images: FloatArray) -> None:
    """A ResNet-18 of random weights, through two libraries and from the file that torch exports of
    it."""
    models = pytest.importorskip(
        "torchvision.models", reason="the encoders extra is not installed"
    )
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    torch.manual_seed(2)
    module = models.resnet18().eval()
    torch.save(module.state_dict(), weights := tmp_path / "resnet18.pth")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # torch advises another exporter, which needs one package more
        torch.onnx.export(
            module,
            (torch.zeros(1, 3, SIZE, SIZE),),
            str(exported := tmp_path / "resnet18.onnx"),
            dynamo=False,
            input_names=["image"],
            dynamic_axes={"image": {0: "n"}},
        )
    nodes = [f"layer{number}" for number in range(1, 5)]
    options: dict[str, Any] = {
        "weights": weights,
        "input_size": SIZE,
        "device": "cpu",
        "layers": [*nodes, "embedding"],
    }
    torchvisions = observers.load_observer("torchvision:resnet18", **options)
    timms = observers.load_observer("timm:resnet18", **options)
    assert (torchvisions.card.mean, torchvisions.card.std) == (
        timms.card.mean,
        timms.card.std,
    )
    graph = onnx.load(exported).graph
    names = {
        "embedding": next(
            node.output[0] for node in graph.node if node.op_type == "Flatten"
        )
    }
    maps = [node.output[0] for node in graph.node if node.op_type == "Relu"]
    names |= {node: maps[4 * number + 4] for number, node in enumerate(nodes)}
    graphs = observers.load_observer(
        f"onnx:{exported}",
        mean=torchvisions.card.mean,
        std=torchvisions.card.std,
        layers=list(names.values()),
    )
    expected, theirs, exports = (
        observer.features(images) for observer in (torchvisions, timms, graphs)
    )
    for node in (*nodes, "embedding"):
        scale = np.abs(expected[node]).max()
        np.testing.assert_allclose(
            theirs[node], expected[node], rtol=0, atol=1e-5 * scale
        )
        np.testing.assert_allclose(
            exports[names[node]], expected[node], rtol=0, atol=1e-5 * scale
        )
