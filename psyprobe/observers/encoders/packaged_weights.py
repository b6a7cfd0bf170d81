"""How the tensors in each package's weights file are called in the timm architecture, `module`, that they fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def efficientnet_lite(path: Path, module: Any) -> dict[str, Any]:
    """EfficientNet-Lite as ported to torch: blocks numbered throughout, where timm has stages of blocks."""
    outer = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
    # with an expansion: 1x1 up, depthwise, 1x1 down; the first stage starts at the depthwise convolution
    expanding = {
        "_expand_conv": "conv_pw",
        "_bn0": "bn1",
        "_depthwise_conv": "conv_dw",
        "_bn1": "bn2",
        "_project_conv": "conv_pwl",
        "_bn2": "bn3",
    }
    plain = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
    blocks = _blocks(module)

    def renamed(key: str) -> str:
        part, _, rest = key.partition(".")
        if part != "_blocks":
            return f"{outer[part]}.{rest}"
        number, inner, leaf = rest.split(".")
        block, expands = blocks[int(number)]
        return f"{block}.{(expanding if expands else plain)[inner]}.{leaf}"

    return {renamed(key): value for key, value in _tensors(path).items()}


def mobilenet_v2(path: Path, module: Any) -> dict[str, Any]:
    """MobileNetV2 in plain torch: convolution, norm and activation numbered in each block."""
    expanding = {"0": "conv_pw", "1": "bn1", "3": "conv_dw", "4": "bn2", "6": "conv_pwl", "7": "bn3"}
    plain = {"0": "conv_dw", "1": "bn1", "3": "conv_pw", "4": "bn2"}
    outer = {"0.0": "conv_stem", "0.1": "bn1", "18.0": "conv_head", "18.1": "bn2"}
    blocks = _blocks(module)

    def renamed(key: str) -> str:
        _, number, *rest = key.split(".")
        if rest[0] != "conv":
            return f"{outer[f'{number}.{rest[0]}']}.{rest[1]}"
        block, expands = blocks[int(number) - 1]
        return f"{block}.{(expanding if expands else plain)[rest[1]]}.{rest[2]}"

    return {renamed(key): value for key, value in _tensors(path).items()}


def _blocks(module: Any) -> list[tuple[str, bool]]:
    """The blocks of all stages in a row, and which of them expand, that is, have a second pointwise convolution."""
    stages = enumerate(module.blocks)
    return [(f"blocks.{i}.{j}", hasattr(block, "conv_pwl")) for i, stage in stages for j, block in enumerate(stage)]


def resnet50(path: Path, module: Any) -> dict[str, Any]:
    """ResNet-50 with torchvision's names, which are timm's, behind a prefix."""
    return {key.removeprefix("module.pre."): value for key, value in _tensors(path).items()}


def saliency_vit(path: Path, module: Any) -> dict[str, Any]:
    """The DINOv2 ViT-S/14 inside an ONNX saliency network.

    Weights of linear layers lie there transposed and without a name; the node that multiplies by them tells
    whose they are. Positions are stored for 37 x 37 patches; other grids are resampled from them, bicubic
    without antialiasing, as the ONNX graph does.
    """
    import onnx
    import torch

    graph = onnx.load(str(path)).graph
    stored = {each.name: torch.tensor(onnx.numpy_helper.to_array(each)) for each in graph.initializer}
    linear = {
        node.name: stored[node.input[1]].T
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in stored
    }
    old = "backbone.embeddings."
    table = next(value for value in stored.values() if value.shape == (1, 37 * 37, 384))
    of_class = next(value for key, value in stored.items() if key != old + "cls_token" and value.shape == (1, 1, 384))
    state = {
        "cls_token": stored[old + "cls_token"],
        "pos_embed": torch.cat([of_class, _resampled(table, module.patch_embed.grid_size)], dim=1),
        "patch_embed.proj.weight": stored[old + "patch_embeddings.projection.weight"],
        "patch_embed.proj.bias": stored[old + "patch_embeddings.projection.bias"],
        "norm.weight": stored["backbone.layernorm.weight"],
        "norm.bias": stored["backbone.layernorm.bias"],
    }
    for number in range(len(module.blocks)):
        layer, new = f"backbone.encoder.layer.{number}.", f"blocks.{number}."
        node = f"/backbone/encoder/layer.{number}/"
        parts = ("query", "key", "value")
        queries = [linear[f"{node}attention/attention/{part}/MatMul"] for part in parts]
        biases = [stored[f"{layer}attention.attention.{part}.bias"] for part in parts]
        state[f"{new}attn.qkv.weight"] = torch.cat(queries)
        state[f"{new}attn.qkv.bias"] = torch.cat(biases)
        for theirs, ours in (("attention/output/dense", "attn.proj"), ("mlp/fc1", "mlp.fc1"), ("mlp/fc2", "mlp.fc2")):
            state[f"{new}{ours}.weight"] = linear[f"{node}{theirs}/MatMul"]
            state[f"{new}{ours}.bias"] = stored[f"{layer}{theirs.replace('/', '.')}.bias"]
        for theirs, ours in _NORMS:
            state[f"{new}{ours}"] = stored[f"{layer}{theirs}"]
    return state


_NORMS = (
    ("norm1.weight", "norm1.weight"),
    ("norm1.bias", "norm1.bias"),
    ("norm2.weight", "norm2.weight"),
    ("norm2.bias", "norm2.bias"),
    ("layer_scale1.lambda1", "ls1.gamma"),
    ("layer_scale2.lambda1", "ls2.gamma"),
)


def _resampled(table: Any, grid: tuple[int, int]) -> Any:
    import torch

    side = round(table.shape[1] ** 0.5)
    square = table.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    if grid != (side, side):
        square = torch.nn.functional.interpolate(square, grid, mode="bicubic", antialias=False)
    return square.permute(0, 2, 3, 1).reshape(1, grid[0] * grid[1], -1)


def _tensors(path: Path) -> Any:
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)
