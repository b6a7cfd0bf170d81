"""The options of encoders by name; each is described here once, whichever kind takes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class NetworkOptions:
    """How a network is looked through.

    Parameters
    ----------
    input : {"normalised", "raw"}
        Whether the network's mean and standard deviation are applied to the drive, or it goes in as it is (as in Cai
        et al. 2025).
    layers : "all" or iterable of str, optional
        Names of layers ("blocks.3"), tokens of a layer ("blocks.3:cls", "blocks.3:patches") or the main feature,
        in the order wanted, all from one pass; "all" is every stage and then the main feature; None the main feature
        alone.
    device : str, optional
        A torch device; by default "cuda" where there is one, else "cpu".
    dtype : {"float32", "bfloat16", "float16"}
        The format that the network computes in. The shorter ones round the pixels too.
    """

    input: str = "normalised"
    layers: str | Iterable[str] | None = None
    device: str | None = None
    dtype: str = "float32"

    @property
    def looking(self) -> dict[str, Any]:
        """These four, as `NetworkObserver` takes them."""
        return {"input": self.input, "layers": self.layers, "device": self.device, "dtype": self.dtype}


@dataclass(frozen=True)
class HubOptions(NetworkOptions):
    """An encoder whose weights a library fetches.

    Parameters
    ----------
    random_weights : bool
        Random numbers, always the same ones, instead of trained weights: for tests of the machinery. The card says so.
    """

    random_weights: bool = False


@dataclass(frozen=True)
class EncoderOptions(HubOptions):
    """An encoder that can be loaded for several sizes of images.

    Parameters
    ----------
    input_size : int or tuple of int, optional
        Side, or (height, width), in px to draw at instead of the native size. A vision transformer gets its position
        table resampled by its library as it loads; a convolutional network takes any size as it is.
    """

    input_size: int | tuple[int, int] | None = None


@dataclass(frozen=True)
class FileOptions(EncoderOptions):
    """An encoder whose weights may lie in a file of one's own.

    Parameters
    ----------
    weights : str or Path, optional
        The file, in any form that the library reads; by default the library's own cache and hub.
    """

    weights: str | Path | None = None
