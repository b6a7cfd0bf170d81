"""What is shown in the trials of an experiment that asks in words: which images, of which seeds, and their drawing.

The noise of a trial depends on its level and repeat, not on its contrast or its prompt: the contrasts of a ladder
share their pattern, and all prompts their images. Seeds are derived from what they belong to, so no order of asking can
change an image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.digest import digest
from psyprobe.light.display import Display
from psyprobe.probes.presentation import show
from psyprobe.probes.words.delivery import Delivered, Delivery, deliver, delivered_contrast, refused
from psyprobe.stimulus import Specification
from psyprobe.stimulus.specification import level_of, with_levels

#: Images whose mean gain decides about a level of which one image is off.
_JUDGED = 4


def derived_seed(*parts: Any) -> int:
    """A seed from 0 to 2**31 - 1 that depends on nothing but what it is for.

    Examples
    --------
    >>> derived_seed(0, "noise", 4.0, 1) == derived_seed(0, "noise", 4.0, 1)
    True
    """
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True)
class Shown:
    """The images of one trial, as they are asked for."""

    #: What is drawn, in the order in which it is shown: the pattern and, with two intervals, a uniform field.
    specs: tuple[Specification, ...]
    #: Which of them is the pattern.
    pattern: int
    #: Of each image.
    dither_seeds: tuple[int, ...]
    #: Of the pattern's noise.
    image_seed: int
    #: Of the level, in its unit, and of the pattern; 0 in a catch trial.
    value: float = 0.0
    contrast: float = 0.0
    #: Why nothing can be shown; then there are no specifications.
    refused: str = ""


@dataclass(frozen=True)
class Scene:
    """The images of an experiment for one observer; a value that another process can take."""

    #: The stimulus at the size at which the observer gets it.
    spec: Specification
    #: Name of the level besides contrast.
    level: str
    display: Display
    delivery: Delivery
    #: Whether patterns of which too little arrives are not shown.
    refuse: bool
    #: Of noise and dither.
    seed: int
    #: Images in a trial: 1, or 2 of which one is uniform.
    intervals: int
    #: Digest of the observer's card.
    observer: str

    def shown(self, value: float, contrast: float, repeat: int, order: int) -> Shown:
        """What a trial shows.

        Parameters
        ----------
        value : float
            Of the level, in its unit; of no effect in a catch trial.
        contrast : float
            0 in a catch trial.
        repeat : int
            Which showing of the level this is.
        order : int
            With two intervals, which image is the pattern: 0 or 1.
        """
        catch = contrast == 0
        place = ["catch", repeat] if catch else [value, contrast, repeat]
        image_seed = derived_seed(self.seed, "noise", *place[:1], repeat)
        beyond = "" if catch else self._beyond(value if self.level == "frequency" else _frequency(self.spec))
        if beyond:
            return Shown((), order, (), image_seed, refused=beyond)
        spec = self.spec
        if not catch:
            spec = with_levels(spec, **{self.level: value}, contrast=contrast, **self._seeded(image_seed))
        blank = spec.reference()
        specs = [blank if catch else spec]
        seeds = [derived_seed(self.seed, "dither", *place)]
        if self.intervals == 2:
            specs.insert(1 - order, blank)
            seeds.insert(1 - order, derived_seed(self.seed, "dither of the uniform field", *place))
        return Shown(tuple(specs), order, tuple(seeds), image_seed, value, contrast)

    def identity(self, shown: Shown) -> dict[str, Any]:
        """Everything that decides what an observer gets to see, as JSON can hold it: digests of specs and display."""
        return {
            "stimuli": [spec.digest for spec in shown.specs],
            "pattern": shown.pattern,
            "image_seed": shown.image_seed,
            "dither_seeds": list(shown.dither_seeds),
            "delivery": self.delivery.to_dict(),
            "display": self._display,
            "observer": self.observer,
            "refused": shown.refused,
            "judged": self.refuse,
        }

    def draw(
        self, shown: Shown, through: Callable[[FloatArray], FloatArray]
    ) -> tuple[tuple[FloatArray, ...], dict[str, Any]]:
        """The images of a trial as an observer is sent them, and what of their contrast reaches it.

        Parameters
        ----------
        shown : Shown
            Of this scene.
        through : callable
            The observer's ``delivered``: what becomes of a sent image before the network.

        Returns
        -------
        images : tuple of array, each (H, W, 3)
            Display drive.
        measured : dict
            "delivered_contrast", "coherent_gain", "total_contrast", and "refused": why it is not to be shown, or "".

        Raises
        ------
        GamutError
            The display cannot show one of them.
        """
        measured: dict[str, Any] = dict.fromkeys(("delivered_contrast", "coherent_gain", "total_contrast"))
        images = self._images(shown)
        measured["refused"] = shown.refused
        if not shown.refused:
            found = self._measured(shown, images, through)
            measured |= {"delivered_contrast": found.contrast, "total_contrast": found.total_contrast}
            if shown.contrast:
                measured |= {"coherent_gain": found.coherent_gain, "refused": self._refused(shown, found, through)}
        return images, measured

    def check(self, name: str, observer: str, values: tuple[float, ...], strongest: float) -> None:
        """Draw the strongest contrast of each level before anything is asked.

        Parameters
        ----------
        name, observer : str
            Of the experiment and of who is asked, for messages.
        values : tuple of float
            Of the level, in its unit.
        strongest : float
            The highest contrast.

        Raises
        ------
        InputError
            The display cannot show one, or no level can be shown.
        """
        height, width = self.spec.shape
        unit = level_of(self.spec, self.level).unit
        drawn = f"drawn at {height} x {width} px for {observer}"
        all_shown = {value: self.shown(value, strongest, 0, 0) for value in values}
        if all(shown.refused for shown in all_shown.values()):
            raise InputError(f"{name}, {drawn}: {all_shown[values[0]].refused}")
        for value, shown in all_shown.items():
            try:
                for spec in shown.specs[:1]:
                    self.display.encode(spec.draw())
            except InputError as error:
                raise type(error)(
                    f"{name}, {self.level} {value:g} {unit}, contrast {strongest:g}, {drawn}: {error}"
                ) from error

    @cached_property
    def _display(self) -> str:
        return digest(self.display.to_dict())

    def _seeded(self, image_seed: int) -> dict[str, int]:
        seeds = [name for name in self.spec.levels() if name.split("_")[-1] == "seed" and name != self.level]
        return {name: image_seed if name == "seed" else derived_seed(image_seed, name) for name in seeds}

    def _images(self, shown: Shown) -> tuple[FloatArray, ...]:
        return tuple(
            deliver(show([spec], self.display)[0], self.delivery, seed)
            for spec, seed in zip(shown.specs, shown.dither_seeds, strict=True)
        )

    def _measured(
        self, shown: Shown, images: tuple[FloatArray, ...], through: Callable[[FloatArray], FloatArray]
    ) -> Delivered:
        return delivered_contrast(through(images[shown.pattern]), shown.specs[shown.pattern], self.display)

    def _refused(self, shown: Shown, found: Delivered, through: Callable[[FloatArray], FloatArray]) -> str:
        """Why a pattern is not to be shown; "" where it is."""
        frequency = _frequency(shown.specs[shown.pattern])
        if not self.refuse or refused(found, frequency) is None:
            return ""
        # Dither scatters the gain of one faint image, so the level is judged by several.
        others = [self.shown(shown.value, shown.contrast, repeat, shown.pattern) for repeat in range(_JUDGED)]
        return refused([self._measured(each, self._images(each), through) for each in others], frequency) or ""

    def _beyond(self, frequency: float) -> str:
        """Why a frequency cannot be shown at this resolution; "" where it can."""
        nyquist = self.spec.ppd / 2
        if not self.refuse and frequency <= nyquist:
            return ""
        return refused(Delivered(contrast=1.0, coherent_gain=1.0, total_contrast=1.0, nyquist=nyquist), frequency) or ""


def _frequency(spec: Any) -> float:
    """Of a pattern, cpd; 0 of one that has none."""
    return float(spec.value("frequency")) if "frequency" in spec.levels() else 0.0
