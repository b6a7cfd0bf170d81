"""Make an observer with features answer: a decision stage turns features into words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter

import numpy as np

from psyprobe._typing import FloatArray, Option
from psyprobe.errors import InputError, check_known
from psyprobe.files.json_types import JsonObject
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.decisions.recipe import Decision, Recipe
from psyprobe.observers.decisions.training import TrainedStage
from psyprobe.observers.protocol import (
    ClipFeatureObserver,
    FeatureObserver,
    Observer,
)
from psyprobe.observers.registry import as_observer, load_observer

#: Options of a recipe, which stand behind the name of an observer too.
_RECIPE = tuple(Recipe.__dataclass_fields__)
#: Behind the name of a feature, for its mean over the frames of a clip.
_MEAN = ":mean"
#: Frames of clips that an observer of images is shown together.
_FRAMES = 16


@dataclass(frozen=True, eq=False)
class DrawnClips:
    """Clips that were drawn before; see `psyprobe.observers.protocol.Clips`."""

    #: Display drive, shape (N, T, H, W, 3).
    drive: FloatArray
    fps: float

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """The shape (N, T, H, W, 3)."""
        count, frames, height, width, channels = self.drive.shape
        return (count, frames, height, width, channels)

    def frames(self, start: int, stop: int) -> FloatArray:
        """Return the frames `start` to `stop` (exclusive) of each clip."""
        return self.drive[:, start:stop]


class DecidedObserver(Answering):
    """An observer with features that answers by a decision stage.

    Parameters
    ----------
    inner : observer
        The observer whose features are decided on.
    options : mapping, optional
        Fields of `Recipe` that count before those of the page's table [decision].

    Raises
    ------
    InputError
        The observer has no features.

    Examples
    --------
    >>> observer = DecidedObserver(load_observer("pixels"), {"pairs": 32})
    >>> observer.card.name, observer.card.ability
    ('decided:pixels', 'answer')
    """

    fewest_images = 1

    def __init__(self, inner: Observer, options: JsonObject | None = None) -> None:
        card = inner.card
        if not isinstance(inner, FeatureObserver):
            raise InputError(
                f"{card.name} has {card.ability!r}, and a decision stage needs features: give an "
                "encoder, or 'pixels'"
            )
        self.inner = inner
        self.recipe_options = dict(options or {})
        Recipe().changed(self.recipe_options)
        self.card = replace(
            card,
            name=f"decided:{card.name}",
            ability="answer",
            clips=False,
            options={
                **card.options,
                "decision": self.recipe_options,
                "encoder": card.digest,
            },
        )

    @property
    def loaded(self) -> bool:
        """Tell whether the weights of the encoder are loaded."""
        return bool(getattr(self.inner, "loaded", True))

    def rows(
        self,
        images: Sequence[FloatArray],
        recipe: Recipe,
        display: Display,
        frames: int = 1,
        fps: float = 0.0,
    ) -> FloatArray:
        """Compute the features that a decision stage reads, a row an image or clip, float64 (N, D).

        Parameters
        ----------
        images : sequence of ndarray, each (H, W, 3)
            Display drive.
        recipe : Recipe
            Its `feature` names the feature; stage "ideal" takes the light of the display instead.
        display : Display
            The display that shows the images.
        frames : int, optional
            Images that are a clip together; 1 for stills. An observer of images has the features of
            all frames one after another, or their mean where ":mean" follows the name.
        fps : float, optional
            Frames a second.

        Raises
        ------
        InputError
            The observer has no feature of this name, or several and none is named; or it takes
            clips and is shown stills.
        """
        batch = np.stack(images)
        count = len(batch) // frames
        if recipe.stage == "ideal":
            return np.asarray(display.luminance(batch), float).reshape(count, -1)
        card = self.inner.card
        names = card.features
        if frames > 1 and not card.clips:
            names = (*names, *(name + _MEAN for name in names))
        if recipe.feature:
            check_known(f"feature of {self.inner.card.name}", [recipe.feature], names)
        elif len(card.features) > 1:
            raise InputError(
                f"{self.inner.card.name} has the features {', '.join(names)}; name one with "
                "feature = in [decision]"
            )
        name = recipe.feature or names[0]
        if isinstance(self.inner, ClipFeatureObserver) and frames > 1:
            clips = DrawnClips(batch.reshape(count, frames, *batch.shape[1:]), fps)
            features = self.inner.clip_features(clips)
            return np.asarray(features[name], np.float64).reshape(count, -1)
        # Frames of clips are too many for one pass.
        step = len(batch) if frames == 1 else _FRAMES
        layer = name.removesuffix(_MEAN)
        parts = [
            self.inner.features(batch[start : start + step])[layer]
            for start in range(0, len(batch), step)
        ]
        rows = np.concatenate(parts).astype(np.float64).reshape(count, frames, -1)
        return rows.mean(axis=1) if name != layer else rows.reshape(count, -1)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answer questions one by one, encoding the images of each in a batch of their own."""
        for inquiry in inquiries:
            yield inquiry, self._reply(self.checked(inquiry))

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Answer by the trained decision stage from the images' features; draw ties by lot."""
        decision = inquiry.decision
        if decision is None:
            raise InputError(
                f"{self.card.name} answers by a stage that is trained for the images of a page; "
                "ask it by psyprobe run, or pp.run"
            )
        start = perf_counter()
        trained = _restore(decision)
        rows = self.rows(
            inquiry.images,
            decision.recipe,
            decision.display,
            decision.frames,
            decision.fps,
        )
        variables = trained.stage.variables(rows)
        if trained.criterion is not None:
            values = [float(variables[0, 0]), trained.criterion]
        elif len(variables) > 1:
            values = [float(value) for value in variables[:, 0]]
        else:
            values = [float(value) for value in variables[0]]
        largest = [i for i, value in enumerate(values) if value == max(values)]
        tied = len(largest) > 1
        coin = int.from_bytes(hashlib.sha256(rows.tobytes()).digest()[:4], "big")
        return Answer(
            decision.answers[largest[coin % len(largest)]],
            latency=perf_counter() - start,
            decision={"variables": values, "tied": tied},
        )


@lru_cache(maxsize=64)
def _restore(decision: Decision) -> TrainedStage:
    """Rebuild a trained decision stage, once for all trials that it decides."""
    trained = TrainedStage.from_dict(decision.stage)
    if decision.relative_contrast == 1:
        return trained
    # Known signals differ in energy, as letters do: the best criterion between them follows the
    # contrast.
    stage = trained.stage
    energies = np.sum(stage.weights**2, axis=1)
    offsets = stage.offsets + (decision.relative_contrast - 1) * energies / 2
    return replace(trained, stage=replace(stage, offsets=offsets))


def decide(observer: str | Observer, /, **options: Option) -> DecidedObserver:
    """Wrap an observer with features to answer by a decision stage trained for each experiment.

    Parameters
    ----------
    observer : str or observer
        An encoder, by its name or itself: a torch module or a function of images by way of
        `psyprobe.observer`.
    **options
        Fields of `psyprobe.observers.decisions.recipe.Recipe`: stage, train, pairs, feature,
        false_alarms, seed.

    Returns
    -------
    DecidedObserver
        To be run on pages that ask in words.

    Raises
    ------
    InputError
        It has no features, or an option is out of range.

    Examples
    --------
    >>> decide("pixels", stage="template").card.name
    'decided:pixels'
    """
    return DecidedObserver(as_observer(observer), options)


def load_decided(rest: str, **options: Option) -> DecidedObserver:
    """Load an observer "decided:NAME"; options that no decision stage has go to NAME."""
    recipe = {name: options.pop(name) for name in _RECIPE if name in options}
    return DecidedObserver(load_observer(rest, **options), recipe)
