"""Functions of one's own as observers, one class for each ability; `psyprobe.observers.observer` chooses among them."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.answering import Answer, Answering, Inquiry
from psyprobe.observers.encoders.images import check_images, checked_size, drive_range
from psyprobe.observers.light import check_light
from psyprobe.observers.protocol import Ability, Card

Function = Callable[..., Any]
Size = int | tuple[int, int] | None


class FeaturesOfFunction:
    """A function from a batch of images to features: ``function(images)``, as in `psyprobe.observers.observer`."""

    def __init__(
        self,
        function: Function,
        name: str,
        version: str,
        *,
        features: tuple[str, ...] = ("output",),
        input_size: Size = None,
    ) -> None:
        self._function = function
        self.card = _card("features", name, version, tuple(features), input_size)

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """What the function makes of the images, one array (N, D) a name in ``card.features``.

        Raises
        ------
        InputError
            If the images are not what it takes, or the function returns something else than its card says.
        PsyprobeError
            If a feature is not finite.
        """
        card = self.card
        looked_at = check_images(images, card.name, input_size=card.input_size, pixel_range=drive_range(card))
        shown = np.asarray(looked_at, dtype=np.float32)
        returned = self._function(shown)
        named = returned if isinstance(returned, Mapping) else {card.features[0]: returned}
        if set(named) != set(card.features):
            raise InputError(
                f"{card.name} returned {sorted(named)} and its card says {sorted(card.features)}: name what it returns "
                "with features=(...)"
            )
        return {name: self._rows(name, _array(named[name]), len(shown)) for name in card.features}

    def _rows(self, name: str, rows: FloatArray, count: int) -> FloatArray:
        if rows.ndim < 2 or len(rows) != count or rows.dtype.kind != "f":
            raise InputError(
                f"{self.card.name}: {name!r} has shape {rows.shape} and format {rows.dtype} for {count} images; "
                "wanted is one row of floating-point numbers an image"
            )
        if not np.isfinite(rows).all():
            raise PsyprobeError(f"{self.card.name}: the feature {name!r} holds NaN or infinity")
        return rows.reshape(count, -1)


class DifferenceOfFunction:
    """A function of two batches of images: ``function(test, reference)``, as in `psyprobe.observers.observer`."""

    def __init__(self, function: Function, name: str, version: str) -> None:
        self._function = function
        self._takes = _taken(function, "ppd")
        self.card = replace(_card("difference", name, version, ("difference",)), encoding="linear light, cd/m²")

    def difference(self, test: Array, reference: Array, *, ppd: float) -> FloatArray:
        """How different the function finds each test image from its reference, shape (N,).

        Raises
        ------
        InputError
            If the images are no light, or the function returns something else than one number a pair.
        PsyprobeError
            If a difference is not finite.
        """
        name = self.card.name
        test, reference = check_light(test, reference, name)
        found = _array(self._function(test, reference, **dict.fromkeys(self._takes, ppd)))
        if found.shape != (len(test),) or found.dtype.kind != "f":
            raise InputError(
                f"{name} returned shape {found.shape} and format {found.dtype} for {len(test)} pairs of images; wanted "
                "is one floating-point number a pair"
            )
        if not np.isfinite(found).all():
            raise PsyprobeError(f"{name}: a difference is NaN or infinity")
        return found


class AnswersOfFunction(Answering):
    """A function from images and a question to an answer: ``function(images, prompt)``, as in
    `psyprobe.observers.observer`.
    """

    bits: int | None = None
    images_at_once: int | None = None

    def __init__(
        self,
        function: Function,
        name: str,
        version: str,
        *,
        bits: int | None = None,
        images_at_once: int | None = None,
        input_size: Size = None,
        complete: bool = False,
    ) -> None:
        if bits not in (None, 8):
            raise InputError(f"bits is {bits}; give 8, or None for any float")
        self._function = function
        self._takes = _taken(function, "system", "decoding", "words")
        self._complete = complete
        self.bits = bits
        self.images_at_once = images_at_once
        self.card = _card("answer", name, version, (), input_size)

    def _reply(self, inquiry: Inquiry) -> Answer:
        name = self.card.name
        if inquiry.system and "system" not in self._takes:
            raise InputError(f"{name} takes no system instruction: its function has no parameter 'system'")
        besides = {each: getattr(inquiry, each) for each in self._takes}
        began = time.perf_counter()
        returned = self._function(list(inquiry.images), inquiry.prompt, **besides)
        took = time.perf_counter() - began
        answer = _answer(name, returned, self._complete)
        return replace(answer, latency=answer.latency or took, model=answer.model or name)


def _card(ability: Ability, name: str, version: str, features: tuple[str, ...], input_size: Size = None) -> Card:
    size = None if input_size is None else checked_size(input_size)
    return Card(name, ability, features, size, weights="inside the function", options={"version": version})


def parameters_of(function: Function) -> list[inspect.Parameter]:
    """Its parameters in their order; none where it does not tell, as some functions written in C."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


def _taken(function: Function, *optional: str) -> tuple[str, ...]:
    """Which of the optional arguments the function has parameters for."""
    has = {each.name for each in parameters_of(function)}
    return tuple(name for name in optional if name in has)


def _array(values: Any) -> FloatArray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _answer(name: str, returned: Any, complete: bool) -> Answer:
    if isinstance(returned, Answer):
        return returned
    if isinstance(returned, str):
        return Answer(returned)
    match returned:
        case (str() as text, Mapping() as tokens):
            ordered = sorted(((str(token), float(value)) for token, value in tokens.items()), key=lambda each: -each[1])
            if any(np.isnan(value) or value > 1e-6 for _, value in ordered):
                raise InputError(f"{name} returned {dict(tokens)} as log-probabilities: they lie at or below 0")
            return Answer(text, tuple(ordered), complete)
    raise InputError(
        f"{name} returned a {type(returned).__name__}; wanted is the reply as a string, or (text, "
        "{token: logprob}), or an Answer"
    )
