"""What is shown in the trials of an experiment that asks in words: which images, of which seeds, and their drawing.

The noise of a trial depends on its frequency and repeat, not on its contrast or its prompt: the levels of a ladder
share their pattern, and all prompts their images. Seeds are derived from what they belong to, so no order of asking can
change an image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.delivery import Delivered, deliver, delivered_contrast, refused
from psyprobe.probes.detection import native_size
from psyprobe.probes.presentation import show
from psyprobe.stimulus import Specification
from psyprobe.store import digest

if TYPE_CHECKING:
    from psyprobe.observers import Card
    from psyprobe.question_file import QuestionExperiment


#: Images whose mean gain decides about a level of which one image is off.
_JUDGED = 4


def derived_seed(*parts: Any) -> int:
    """A seed that depends on nothing but what it is for.

    Parameters
    ----------
    *parts : object
        What JSON can hold.

    Returns
    -------
    int
        From 0 to 2**31 - 1.

    Examples
    --------
    >>> derived_seed(0, "noise", 4.0, 1) == derived_seed(0, "noise", 4.0, 1)
    True
    """
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True)
class Shown:
    """The images of one trial, as they are asked for.

    Parameters
    ----------
    specs : tuple of Specification
        What is drawn, in the order in which it is shown: the pattern and, with two intervals, a uniform field.
    pattern : int
        Which of them is the pattern.
    dither_seeds : tuple of int
        Of each.
    image_seed : int
        Of the pattern's noise.
    catch : bool
        Whether the pattern has no contrast.
    refused : str
        Why nothing can be shown; then there are no specifications.
    """

    specs: tuple[Specification, ...]
    pattern: int
    dither_seeds: tuple[int, ...]
    image_seed: int
    catch: bool = False
    refused: str = ""


class Scene:
    """The images of an experiment for one observer.

    Parameters
    ----------
    experiment : QuestionExperiment
        What is shown.
    card : Card
        Of the observer; its input size decides the size of the images, over the same degrees of visual angle.
    intervals : int
        Images in a trial: 1, or 2 of which one is uniform.

    Raises
    ------
    InputError
        A level cannot be drawn at this size.
    """

    def __init__(self, experiment: QuestionExperiment, card: Card, intervals: int) -> None:
        self.experiment = experiment
        self.intervals = intervals
        self._observer = card.digest
        native = experiment.stimulus.spec(frequency=experiment.frequency[0], contrast=experiment.contrast[0])
        self.size, self.ppd = native.shape, native.ppd
        if experiment.native:
            self.size, self.ppd = native_size(experiment.name, native, card)
        self._spec = replace(native, size=self.size, ppd=self.ppd)
        self._display = digest(experiment.display.to_dict())
        self._check(card)

    def shown(self, frequency: float, contrast: float, repeat: int, order: int) -> Shown:
        """What a trial shows.

        Parameters
        ----------
        frequency : float
            cpd; of no effect in a catch trial.
        contrast : float
            0 in a catch trial.
        repeat : int
            Which showing of the level this is.
        order : int
            With two intervals, which image is the pattern: 0 or 1.

        Returns
        -------
        Shown
        """
        seed, catch = self.experiment.asking.seed, contrast == 0
        place = ["catch", repeat] if catch else [frequency, contrast, repeat]
        image_seed = derived_seed(seed, "noise", *place[:1], repeat)
        beyond = "" if catch else self._beyond(frequency)
        if beyond:
            return Shown((), order, (), image_seed, refused=beyond)
        spec = self._spec
        if not catch:
            levels: dict[str, Any] = {"frequency": frequency, "contrast": contrast}
            seeded = {"seed": image_seed} if "seed" in spec.numeric else {}
            spec = replace(spec, **levels, **seeded)
        blank = spec.reference()
        specs, seeds = [blank if catch else spec], [derived_seed(seed, "dither", *place)]
        if self.intervals == 2:
            specs.insert(1 - order, blank)
            seeds.insert(1 - order, derived_seed(seed, "dither of the uniform field", *place))
        return Shown(tuple(specs), order, tuple(seeds), image_seed, catch)

    def identity(self, shown: Shown) -> dict[str, Any]:
        """Everything that decides what an observer gets to see, as JSON can hold it.

        Parameters
        ----------
        shown : Shown
            Of this scene.

        Returns
        -------
        dict
            Digests in place of specifications and display.
        """
        return {
            "stimuli": [spec.digest for spec in shown.specs],
            "pattern": shown.pattern,
            "image_seed": shown.image_seed,
            "dither_seeds": list(shown.dither_seeds),
            "delivery": self.experiment.delivery.to_dict(),
            "display": self._display,
            "observer": self._observer,
            "refused": shown.refused,
            "judged": self.experiment.refuse,
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
            What `identity` gives with, in place of digests, the stimuli themselves; "delivered_contrast",
            "coherent_gain", "total_contrast", and "refused": why it is not to be shown, or "".

        Raises
        ------
        GamutError
            The display cannot show one of them.
        """
        measured: dict[str, Any] = dict.fromkeys(("delivered_contrast", "coherent_gain", "total_contrast"))
        images = self._images(shown)
        if not shown.refused:
            found = self._measured(shown, images, through)
            measured |= {"delivered_contrast": found.contrast, "total_contrast": found.total_contrast}
            if not shown.catch:
                measured |= {"coherent_gain": found.coherent_gain, "refused": self._refused(shown, found, through)}
        stimuli = [spec.to_dict() for spec in shown.specs]
        return images, {**self.identity(shown), "stimuli": stimuli, **measured}

    def _images(self, shown: Shown) -> tuple[FloatArray, ...]:
        return tuple(
            deliver(show([spec], self.experiment.display)[0], self.experiment.delivery, seed)
            for spec, seed in zip(shown.specs, shown.dither_seeds, strict=True)
        )

    def _measured(
        self, shown: Shown, images: tuple[FloatArray, ...], through: Callable[[FloatArray], FloatArray]
    ) -> Delivered:
        return delivered_contrast(through(images[shown.pattern]), shown.specs[shown.pattern], self.experiment.display)

    def _refused(self, shown: Shown, found: Delivered, through: Callable[[FloatArray], FloatArray]) -> str:
        """Why a pattern is not to be shown; "" where it is."""
        spec: Any = shown.specs[shown.pattern]
        frequency, contrast = float(spec.frequency), float(spec.contrast)
        if not self.experiment.refuse or refused(found, frequency) is None:
            return ""
        # Dither scatters the gain of one faint image, so the level is judged by several.
        others = [self.shown(frequency, contrast, repeat, shown.pattern) for repeat in range(_JUDGED)]
        return refused([self._measured(each, self._images(each), through) for each in others], frequency) or ""

    def _beyond(self, frequency: float) -> str:
        """Why a frequency cannot be shown at this resolution; "" where it can."""
        if not self.experiment.refuse and frequency <= self.ppd / 2:
            return ""
        drawn = Delivered(contrast=1.0, coherent_gain=1.0, total_contrast=1.0, nyquist=self.ppd / 2)
        return refused(drawn, frequency) or ""

    def _check(self, card: Card) -> None:
        """Draw the strongest contrast of each frequency before anything is asked."""
        experiment = self.experiment
        possible = [f for f in experiment.frequency if not self._beyond(f)]
        if not possible:
            raise InputError(
                f"{experiment.name}, drawn at {self.size[0]} x {self.size[1]} px for {card.name}: "
                f"{self._beyond(experiment.frequency[0])}"
            )
        for frequency in possible:
            try:
                (shown,) = self.shown(frequency, experiment.contrast[-1], 0, 0).specs[:1]
                experiment.display.encode(shown.draw())
            except InputError as error:
                raise type(error)(
                    f"{experiment.name}, frequency {frequency:g} cpd, contrast {experiment.contrast[-1]:g}, drawn at "
                    f"{self.size[0]} x {self.size[1]} px for {card.name}: {error}"
                ) from error
