"""Observers made of functions: from images to features, of two images, or from images to words."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.images import (
    as_numpy,
    check_finite,
    check_images,
    check_light,
    checked_size,
    drive_range,
)
from psyprobe.observers.protocol import DRIVE, LIGHT, Card

Function = Callable[..., Any]
Size = int | tuple[int, int] | None


class FeaturesOfFunction:
    """A function from a batch of images to features; see `psyprobe.observers.observer`."""

    def __init__(
        self,
        function: Function,
        card: Card,
        features: tuple[str, ...] = ("output",),
        input_size: Size = None,
    ) -> None:
        self._function = function
        self._takes = parameters_among(function, "fps")
        size = None if input_size is None else checked_size(input_size)
        self.card = replace(card, features=tuple(features), input_size=size)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Compute the function's features of images, an array (N, D) for each name on the card.

        Raises
        ------
        InputError
            If the images are not what it takes, or the function returns something else than its
            card says.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        images = check_images(
            images, card.name, input_size=card.input_size, pixel_range=drive_range(card)
        )
        drive = np.asarray(images, dtype=np.float32)
        return self._rows(self._function(drive), len(drive))

    def _rows(self, returned: Any, count: int) -> dict[str, FloatArray]:
        """Check that the function returned a row for each image or clip, by feature."""
        card = self.card
        if not isinstance(returned, Mapping):
            returned = {card.features[0]: returned}
        if set(returned) != set(card.features):
            raise InputError(
                f"{card.name} returned {sorted(returned)} and its card says "
                f"{sorted(card.features)}: name what it returns with features=(...)"
            )
        features = {}
        for name in card.features:
            rows = as_numpy(returned[name], card.name)
            if rows.ndim < 2 or len(rows) != count or rows.dtype.kind != "f":
                raise InputError(
                    f"{card.name}: {name!r} has shape {rows.shape} and format {rows.dtype} for a "
                    f"batch of {count}; wanted is one row of floating-point numbers for each"
                )
            features[name] = rows.reshape(count, -1)
        check_finite(card, features)
        return features


class DifferenceOfFunction:
    """A function that compares two batches of images; see `psyprobe.observers.observer`."""

    def __init__(self, function: Function, card: Card) -> None:
        self._function = function
        self._takes = parameters_among(function, "ppd", "fps")
        second_names = [parameter.name for parameter in parameters_of(function)[1:2]]
        encoding = DRIVE if second_names == ["reference_drive"] else LIGHT
        self.card = replace(card, features=("difference",), encoding=encoding)
        if not card.clips:
            self._try_encoding()

    def _try_encoding(self) -> None:
        """Refuse a function that sees a grating only in the encoding it is not given."""
        even = np.full((1, 64, 64, 3), 0.5, np.float32)
        wave = np.sin(np.arange(64, dtype=np.float32) * (np.pi / 8))
        grating = even + np.float32(0.4) * wave[:, None]
        drive = np.concatenate([even, grating])
        # About the light of an sRGB display with a peak of 400 cd/m².
        images = {DRIVE: drive, LIGHT: 400 * drive**2.2}
        encoding = self.card.encoding
        other = DRIVE if encoding == LIGHT else LIGHT
        if not self._sees(images[encoding]) and self._sees(images[other]):
            name = "reference_drive" if other == DRIVE else "reference_light"
            raise InputError(
                f"{self.card.name} is given {encoding}, in which it tells no grating of high "
                f"contrast from an even field, and it does in {other}: call its second parameter "
                f"{name!r} to be given that"
            )

    def _sees(self, images: Array) -> bool:
        """Tell whether the function tells the second image from the first."""
        reference = images[[0, 0]]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                equal, unequal = self._call_function(images, reference, ppd=60.0)
        except Exception:  # a function may need images of another size
            return False
        return bool(unequal != equal)

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """Compute the function's difference of each test image from its reference, shape (N,).

        Raises
        ------
        InputError
            If the images are no light, or the function returns something else than one number a
            pair.
        PsyprobeError
            If a difference is not finite.
        """
        images = check_light(test, reference, self.card.name)
        return self._call_function(*images, ppd=ppd)

    def _call_function(self, *batches: Array, **geometry: float) -> FloatArray:
        """Call the function on batches of images, and check that it gives a number a pair."""
        name = self.card.name
        options = {key: geometry[key] for key in self._takes if key in geometry}
        differences = as_numpy(self._function(*batches, **options), name)
        count = len(batches[0])
        if differences.shape != (count,) or differences.dtype.kind != "f":
            raise InputError(
                f"{name} returned shape {differences.shape} and format {differences.dtype} for "
                f"{count} pairs; wanted is one floating-point number a pair"
            )
        if not np.isfinite(differences).all():
            raise PsyprobeError(f"{name}: a difference is NaN or infinity")
        return differences


class AnswersOfFunction(Answering):
    """A function from images and a question to an answer; see `psyprobe.observers.observer`."""

    def __init__(
        self,
        function: Function,
        card: Card,
        bits: int | None = None,
        images_at_once: int | None = None,
        input_size: Size = None,
        complete: bool = False,
    ) -> None:
        if bits not in (None, 8):
            raise InputError(f"bits is {bits}; give 8, or None for any float")
        self._function = function
        self._takes = parameters_among(function, "system", "decoding", "words")
        self._complete = complete
        self.bits = bits
        self.images_at_once = images_at_once
        size = None if input_size is None else checked_size(input_size)
        self.card = replace(card, input_size=size)

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Call the function with images and prompt, and time its reply."""
        name = self.card.name
        if inquiry.system and "system" not in self._takes:
            raise InputError(
                f"{name} takes no system instruction: its function has no parameter 'system'"
            )
        arguments = {
            parameter: getattr(inquiry, parameter) for parameter in self._takes
        }
        start = time.perf_counter()
        reply = self._function(list(inquiry.images), inquiry.prompt, **arguments)
        latency = time.perf_counter() - start
        answer = _answer(name, reply, self._complete)
        return replace(
            answer, latency=answer.latency or latency, model=answer.model or name
        )


def _answer(name: str, reply: Any, complete: bool) -> Answer:
    """Convert what a function returned (text, with log-probabilities, `Answer`) to an answer."""
    match reply:
        case Answer():
            return reply
        case str():
            return Answer(reply)
        case (str() as text, Mapping() as tokens):
            pairs = [(str(token), float(value)) for token, value in tokens.items()]
            if not all(value <= 1e-6 for _, value in pairs):
                raise InputError(
                    f"{name} returned {dict(tokens)} as log-probabilities: they lie at or below 0"
                )
            pairs.sort(key=lambda pair: -pair[1])
            return Answer(text, tuple(pairs), complete)
    raise InputError(
        f"{name} returned a {type(reply).__name__}; wanted is the reply as a string, or (text, "
        "{token: logprob}), or an Answer"
    )


def parameters_of(function: Function) -> list[inspect.Parameter]:
    """List a function's parameters in order; none for some functions written in C."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


def parameters_among(function: Function, *names: str) -> tuple[str, ...]:
    """Select those of some names that are parameters of a function."""
    parameters = {parameter.name for parameter in parameters_of(function)}
    return tuple(name for name in names if name in parameters)
