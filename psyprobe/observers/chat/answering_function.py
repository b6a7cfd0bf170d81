"""Any function of images and a prompt as an observer that answers in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.chat.answering import Answer, Decoding, eight_bit
from psyprobe.observers.encoders.images import check_images, checked_size
from psyprobe.observers.protocol import Card

_GREEDY = Decoding()


class AnsweringFunction:
    """A function from images and a prompt to an answer, as an observer.

    Parameters
    ----------
    function : callable
        ``function(images, prompt)`` with a list of arrays (H, W, 3) of display drive; it returns the reply as a
        string, or with the log-probabilities of its first token, ``(text, {token: logprob})``, or an `Answer`. Where
        it has parameters named `system`, `decoding` or `words`, it gets those of the inquiry too.
    name : str
        What to call it in results.
    version : str
        Change it when the function changes: stored answers are told apart by name and version, since a function
        cannot be seen through.
    bits : int, optional
        8 where it takes whole 8-bit codes only (drive k/255); None where it takes any float.
    images_at_once : int, optional
        How many images it takes at most; None for any number.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px that stimuli should be drawn at.
    complete : bool
        Whether the tokens that it returns are all that spell the words.

    Raises
    ------
    InputError
        If `bits` is neither 8 nor None.

    Examples
    --------
    >>> says = AnsweringFunction(lambda images, prompt: "Yes" if images[0].std() > 0.01 else "No", "contrast", "1")
    >>> says.answer([np.full((8, 8, 3), 0.5)], "Is there a pattern?").text
    'No'
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        version: str,
        *,
        bits: int | None = None,
        images_at_once: int | None = None,
        input_size: int | tuple[int, int] | None = None,
        complete: bool = False,
    ) -> None:
        if bits not in (None, 8):
            raise InputError(f"bits is {bits}; give 8, or None for any float")
        self._function = function
        self._takes = _taken(function)
        self._complete = complete
        self.bits = bits
        self.images_at_once = images_at_once
        self.card = Card(
            name,
            "answer",
            input_size=None if input_size is None else checked_size(input_size),
            weights="inside the function",
            options={"version": version},
        )

    def delivered(self, image: FloatArray) -> FloatArray:
        """The image as the function gets it, which is as it is.

        Parameters
        ----------
        image : ndarray, shape (H, W, 3)
            Display drive.

        Returns
        -------
        ndarray
        """
        return image

    def answer(
        self,
        images: Sequence[FloatArray],
        prompt: str,
        *,
        system: str = "",
        decoding: Decoding = _GREEDY,
        words: Sequence[str] = ("yes", "no"),
    ) -> Answer:
        """What the function answers.

        Parameters
        ----------
        images, prompt, system, decoding, words
            As in `Inquiry`.

        Returns
        -------
        Answer

        Raises
        ------
        InputError
            If there are too many images, one is not of 8 bits where that is wanted, a system instruction is given
            to a function that takes none, or the function returns something else.
        """
        shown = self._checked(images)
        if system and "system" not in self._takes:
            raise InputError(f"{self.card.name} takes no system instruction: its function has no parameter 'system'")
        besides = {"system": system, "decoding": decoding, "words": tuple(words)}
        began = time.perf_counter()
        returned = self._function(shown, prompt, **{name: besides[name] for name in self._takes})
        took = time.perf_counter() - began
        answer = _answer(self.card.name, returned, self._complete)
        return replace(answer, latency=answer.latency or took, model=answer.model or self.card.name)

    def _checked(self, images: Sequence[FloatArray]) -> list[FloatArray]:
        most = self.images_at_once
        if most is not None and len(images) > most:
            raise InputError(f"{self.card.name} takes at most {most} images at a time and was shown {len(images)}")
        for image in images:
            check_images(np.asarray(image)[None], self.card.name)
            if self.bits == 8:
                eight_bit(image)
        return list(images)


def _taken(function: Callable[..., Any]) -> tuple[str, ...]:
    """Which of the optional arguments the function has parameters for."""
    import inspect

    parameters = inspect.signature(function).parameters
    return tuple(name for name in ("system", "decoding", "words") if name in parameters)


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
