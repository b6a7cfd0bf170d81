"""What an observer is: its card, and the protocols that say what can be asked of it.

Only `Observer.card` and one of `features`, `difference` and `answer` must be there. All else that
psyprobe asks of an observer is declared here too, a protocol each, and an observer without it is
one that computes in this process, at no price.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest

if TYPE_CHECKING:
    from psyprobe.light.display import Display
    from psyprobe.observers.chat.prices import Budget, Price
    from psyprobe.observers.decisions.recipe import Recipe
    from psyprobe.observers.human_screen import Screen

Ability: TypeAlias = Literal["features", "difference", "answer"]

#: What stands under "ppd" in the options of a metric that takes the geometry of each stimulus.
STIMULUS_PPD = "of the stimulus"
#: Encodings of the images that metrics take: light, or the drive of the display.
LIGHT = "linear light, cd/m²"
DRIVE = "display drive"
#: Where an observer ran, where its weights were found, what else it can be asked: no part of what
#: it computes.
_CIRCUMSTANCES = ("device", "weights", "licence", "paper", "software", "clips")


def card_digest(card: JsonMapping) -> str:
    """Compute the digest of a card given by `Card.to_dict`."""
    return digest(
        {key: value for key, value in card.items() if key not in _CIRCUMSTANCES}
    )


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
    clips : bool
        Whether it takes clips whole: then it has `clip_features` or `clip_difference`, as
        `ClipFeatureObserver` and `ClipDifferenceObserver`. Others are shown clips frame by frame.

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
    options: JsonMapping = field(default_factory=dict, hash=False)
    software: Mapping[str, str] = field(default_factory=dict, hash=False)
    clips: bool = False

    @property
    def label(self) -> str:
        """The name for titles and tables, with a warning where the weights are random."""
        return f"{self.name} [RANDOM WEIGHTS]" if self.random_weights else self.name

    @property
    def takes_light(self) -> bool:
        """Tell whether the observer is shown light, as metrics are unless they take drive."""
        return self.ability == "difference" and self.encoding != DRIVE

    @functools.cached_property
    def digest(self) -> str:
        """Hash what is computed, SHA-256, hexadecimal; the same for equal cards everywhere.

        Device, software versions and the place of the weights are left out: they change a response
        by rounding at most, and the weights themselves have a digest of their own.
        """
        return card_digest(self.to_dict())

    def _repr_html_(self) -> str:
        """Show the card as an HTML table in a notebook."""
        from psyprobe.files import html

        values = {
            name: value
            for name, value in self.to_dict().items()
            if value not in (None, {}, [])
        }
        return html.fields(values, self.label)

    def to_dict(self) -> JsonObject:
        """Return the card as JSON values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Card:
        """Build the card that `to_dict` describes.

        Raises
        ------
        InputError
            If a key is not a field of the card.
        """
        unknown = set(values) - {
            card_field.name for card_field in dataclasses.fields(cls)
        }
        if unknown:
            raise InputError(
                f"an observer card has no field {', '.join(sorted(unknown))}"
            )
        fields: JsonObject = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**fields)


@runtime_checkable
class Observer(Protocol):
    """Anything that responds to a stimulus; its card says how it may be asked, and at which size.

    What else an observer can do is declared by `FeatureObserver`, `DifferenceObserver`,
    `ClipFeatureObserver`, `ClipDifferenceObserver`, `DeferredObserver`, `ServedObserver`,
    `PaidObserver`, `TrainableObserver` and `SubmittingObserver`, and by
    `psyprobe.observers.chat.protocol`.
    """

    @property
    def card(self) -> Card:
        """The card that describes the observer."""


def is_observer(thing: object) -> bool:
    """Tell whether something is an observer, and no class of observers."""
    has_card = isinstance(thing, Observer) and isinstance(thing.card, Card)
    return has_card and not isinstance(thing, type)


def add_sources(observer: Any, digest: str | None) -> None:
    """Add the digest of an observer's source code to its card."""
    if digest is not None and is_observer(observer):
        options = {**observer.card.options, "sources": digest[:16]}
        with contextlib.suppress(AttributeError):
            observer.card = dataclasses.replace(observer.card, options=options)


@runtime_checkable
class FeatureObserver(Observer, Protocol):
    """An observer that turns images into feature vectors, such as an image encoder.

    Examples
    --------
    >>> from psyprobe.observers import load_observer
    >>> isinstance(load_observer("pixels"), FeatureObserver)
    True
    """

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Compute feature vectors of a batch of images, by name.

        Parameters
        ----------
        images : ndarray, shape (N, H, W, 3)
            Display drive, float, 0 = black and 1 = peak white; may exceed 1 on an extended display.
            May be a read-only view whose channels are one and the same plane (stride 0), as a grey
            drive is.

        Returns
        -------
        mapping of str to ndarray, shape (N, D)
            One array a name in ``card.features``, in that order; D may differ from name to name.
        """


@runtime_checkable
class DifferenceObserver(Observer, Protocol):
    """An observer that says how different two images look, such as a full-reference metric.

    Examples
    --------
    >>> from psyprobe.observers import load_observer
    >>> isinstance(load_observer("pixels"), DifferenceObserver)
    False
    """

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Compute how different each test image is from its reference, shape (N,), 0 for none.

        Parameters
        ----------
        test, reference : ndarray, shape (N, H, W, 3)
            Linear light of BT.709 primaries as the display emits it, cd/m² a channel; drive if the
            encoding on the card is "display drive". May be
            read-only views whose channels are one and the same plane (stride 0), as grey light is.
        ppd : float
            Pixels per degree of visual angle.
        """


class Clips(Protocol):
    """Clips on a display, drawn as their frames are taken."""

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """The shape (N, T, H, W, 3)."""

    @property
    def fps(self) -> float:
        """The frames a second."""

    def frames(self, start: int, stop: int) -> FloatArray:
        """Draw the frames `start` to `stop` (exclusive), shape (N, stop - start, H, W, 3).

        Drive for an observer with features, linear light for one that gives differences; both as of
        images.
        """


@runtime_checkable
class ClipFeatureObserver(Observer, Protocol):
    """An observer that turns whole clips into feature vectors, such as a video encoder."""

    def clip_features(self, clips: Clips) -> Mapping[str, FloatArray]:
        """Compute feature vectors of clips, by name."""


@runtime_checkable
class ClipDifferenceObserver(Observer, Protocol):
    """An observer that says how different two clips look, such as a video quality metric."""

    def clip_difference(
        self, test: Clips, reference: Clips, *, ppd: float
    ) -> FloatArray:
        """Compute how different each test clip is from its reference, shape (N,)."""


@runtime_checkable
class DeferredObserver(Observer, Protocol):
    """An observer that loads its weights when it is first asked."""

    @property
    def loaded(self) -> bool:
        """Tell whether the observer's weights are loaded."""


@runtime_checkable
class ServedObserver(Observer, Protocol):
    """An observer behind a server, of which the card cannot tell what it serves."""

    def served(self, certain: bool) -> Mapping[str, str]:
        """Ask the server what it serves now: its listing, model name and fingerprint.

        Parameters
        ----------
        certain : bool
            Whether a small question is put where the server does not tell by itself.
        """


@runtime_checkable
class PaidObserver(Observer, Protocol):
    """An observer whose answers have a price."""

    #: What its questions cost; without it, an answer costs what the server says.
    price: Price | None
    #: What may be spent on it; without it, as much as it takes.
    budget: Budget | None

    @property
    def concurrency(self) -> int:
        """The number of questions under way at once."""

    @property
    def rate(self) -> float | None:
        """The largest number of questions a second; None for any number."""


@runtime_checkable
class SeatedObserver(Observer, Protocol):
    """A person at a page, who answers one question after the other; the page draws the patterns."""

    @property
    def screen(self) -> Screen | None:
        """The screen in front of the person; None where nobody calibrated it."""


@runtime_checkable
class TrainableObserver(Observer, Protocol):
    """An observer that answers by a decision stage, which is trained for each page before."""

    @property
    def recipe_options(self) -> JsonMapping:
        """The training options that count before the experiment's table [decision]."""

    def rows(
        self,
        images: Any,
        recipe: Recipe,
        display: Display,
        frames: int = 1,
        fps: float = 0.0,
    ) -> FloatArray:
        """Compute the features that a decision stage reads, a row for each image or clip."""


@runtime_checkable
class SubmittingObserver(Observer, Protocol):
    """An observer that puts questions itself, in files that are answered later."""

    @property
    def directly(self) -> Observer:
        """The observer that answers the same questions at once, without waiting for files."""

    def put(
        self, answer: Any, observers: JsonMapping, agenda: Iterable[Any]
    ) -> Iterator[Any]:
        """Ask batches of questions, as an executor does, and yield the answers that are there."""
