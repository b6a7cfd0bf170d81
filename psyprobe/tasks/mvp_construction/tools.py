"""What the image steps are done with: three kinds of tool, each of which can be exchanged for another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from psyprobe.tasks.mvp_construction.manipulation import Image, Mask


@dataclass(frozen=True)
class ToolCard:
    """What made an image, so that it can be told beside the image."""

    #: As it is asked for: "felzenszwalb", "sam:FOLDER".
    name: str
    #: With which it runs; plain values that JSON can hold.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Packages and versions.
    software: Mapping[str, str] = field(default_factory=dict)
    #: Where they are from; empty for a tool without any.
    weights: str = ""
    #: Whether they are random numbers, so that what it makes shows only that the machinery works.
    random_weights: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The card as plain values that JSON can hold."""
        return {**vars(self), "settings": dict(self.settings), "software": dict(self.software)}


class Segmenter(Protocol):
    """Finds the parts of an image."""

    @property
    def card(self) -> ToolCard:
        """What it is."""

    def masks(self, image: Image) -> Mask:
        """Masks (N, H, W) of the parts of an image (H, W, 3); they may overlap, and N may be 0."""


class Inpainter(Protocol):
    """Fills a hole in an image."""

    @property
    def card(self) -> ToolCard:
        """What it is."""

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """The image (H, W, 3) with its hole (H, W) filled by what the caption says; the rest may change slightly."""


class Editor(Protocol):
    """Changes an image as a whole, by an instruction."""

    @property
    def card(self) -> ToolCard:
        """What it is."""

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """The image (H, W, 3) after an instruction such as "change the smile into a frown"."""


def versions(*packages: str) -> dict[str, str]:
    """Versions of installed packages."""
    from importlib import import_module

    return {name: str(getattr(import_module(name), "__version__", "unknown")) for name in packages}
