"""What an observer is: its card, and the abilities that a probe may ask for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError

Ability: TypeAlias = Literal["features", "difference", "answer"]

#: What stands under "ppd" in the options of a metric that takes the geometry of each stimulus.
STIMULUS_PPD = "of the stimulus"

#: Where an observer ran and where its weights were found: worth recording, but no part of what it computes.
_CIRCUMSTANCES = ("device", "weights", "licence", "paper", "software")


@dataclass(frozen=True)
class Card:
    """Everything one must know of an observer to repeat what it said.

    Parameters
    ----------
    name : str
        The name that loads it ("timm:resnet18"), without regard to options.
    ability : {"features", "difference", "answer"}
        What a probe may ask of it.
    features : tuple of str
        The names of what ``features`` returns: layers, tokens, or the embedding.
    input_size : tuple of int, optional
        (height, width) in px of the images it looks at; None for any size.
    input : {"normalised", "raw"}
        Whether `mean` and `std` are applied, or the display drive goes in as it is.
    mean, std : tuple of float
        The observer's own normalisation, one value a channel, in units of `pixel_range`.
    pixel_range : tuple of float
        The drive values that stand for black and peak white.
    encoding : str
        The transfer function that the observer expects its pixels to carry.
    dtype : str
        The floating-point format that the network computes in.
    device : str
        Where it ran.
    weights : str
        Where its weights come from.
    weights_digest : str, optional
        SHA-256 of the weights, hexadecimal; None where there are none or they cannot be seen.
    random_weights : bool
        True where the weights are random numbers: then no response means anything.
    licence, paper : str, optional
        As stated by whoever published the weights.
    options : mapping
        Choices that change what is computed, such as ``{"quick_gelu": True}``.
    software : mapping
        Versions of the packages that computed.

    Examples
    --------
    >>> card = Card("mine", "features", ("output",), random_weights=True)
    >>> print(card.label)
    mine [RANDOM WEIGHTS]
    >>> Card.from_dict(card.to_dict()) == card
    True
    """

    name: str
    ability: Ability
    features: tuple[str, ...] = ()
    input_size: tuple[int, int] | None = None
    input: Literal["normalised", "raw"] = "raw"
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    pixel_range: tuple[float, float] = (0.0, 1.0)
    encoding: str = "sRGB"
    dtype: str = "float32"
    device: str = "cpu"
    weights: str = "none"
    weights_digest: str | None = None
    random_weights: bool = False
    licence: str | None = None
    paper: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    software: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """The name for titles and tables; it shouts where the weights are random."""
        return f"{self.name} [RANDOM WEIGHTS]" if self.random_weights else self.name

    @cached_property
    def digest(self) -> str:
        """SHA-256, hexadecimal, of what is computed: equal wherever and whenever the same card is made.

        Device, software versions and the place of the weights are left out: they change a response by
        rounding at most, and the weights themselves are told by their own digest.
        """
        told = {key: value for key, value in self.to_dict().items() if key not in _CIRCUMSTANCES}
        return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The card as plain values that JSON can hold."""
        values = ((each.name, getattr(self, each.name)) for each in dataclasses.fields(self))
        return {
            name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for name, value in values
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Card:
        """The card that `to_dict` was called on.

        Raises
        ------
        InputError
            If a key is not a field of the card.
        """
        unknown = set(values) - {each.name for each in dataclasses.fields(cls)}
        if unknown:
            raise InputError(f"an observer card has no field {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(**fields)


class Observer(Protocol):
    """Anything that responds to a shown stimulus; its card says how it may be asked."""

    @property
    def card(self) -> Card:
        """What it is."""


@runtime_checkable
class FeatureObserver(Observer, Protocol):
    """An observer that turns images into feature vectors, such as an image encoder."""

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Feature vectors of a batch of images.

        Parameters
        ----------
        images : ndarray, shape (N, H, W, 3)
            Display drive, float, 0 = black and 1 = peak white; may exceed 1 on an extended display. May be a
            read-only view whose channels are one and the same plane (stride 0), as a grey drive is.

        Returns
        -------
        mapping of str to ndarray, shape (N, D)
            One array a name in ``card.features``, in that order; D may differ from name to name.
        """


@runtime_checkable
class DifferenceObserver(Observer, Protocol):
    """An observer that says how different two images look, such as a full-reference metric."""

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """How different each test image looks from its reference; shape (N,), 0 = not at all.

        Parameters
        ----------
        test, reference : ndarray, shape (N, H, W, 3)
            Linear light of BT.709 primaries as the display emits it, cd/m² a channel. May be read-only views whose
            channels are one and the same plane (stride 0), as grey light is.
        ppd : float
            Pixels per degree of visual angle.
        """
