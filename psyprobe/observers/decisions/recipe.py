"""What a page says of a decision stage, and what an observer is given of it to answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from psyprobe.errors import InputError, check_known, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.light.display import Display

Protocol = Literal["near", "mixed", "each", "high", "natural"]
#: Protocols of training by name, each with where stages are trained and what that tells.
PROTOCOLS: dict[Protocol, str] = {
    "near": "near threshold, which a pilot found",
    "mixed": "over the upper two thirds of the contrasts",
    "each": "for each level: what the features hold there, and no psychometric function of a "
    "single observer",
    "high": "at the highest contrast and transferred: d' near threshold may be lower by a factor "
    "of 3",
    "natural": "on which of two simulated natural pictures has more contrast, and transferred: "
    "another training may find more in the same features",
}
#: Stages by name, each with what it is.
STAGES = {
    "lda": "linear discriminant with shrunk covariance",
    "template": "difference of the mean features",
    "logistic": "logistic regression, its strength chosen by cross-validation",
    "prototype": "nearest mean",
    "quadratic": "linear discriminant of features and their squares",
    "ideal": "the signal itself, in the light of the display; no features are taken",
}
#: Part of each trained stage: raise it when training changes.
VERSION = "training 2"
#: Contrasts and fields of the pilot of a stage that is trained near threshold.
PILOT_CONTRASTS = 6
PILOT_FIELDS = 32
#: Fields without a signal from which the criterion of yes comes.
CRITERION_FIELDS = 128


@dataclass(frozen=True)
class Recipe:
    """How a decision stage is trained.

    Parameters
    ----------
    stage : str
        "lda", "template", "logistic", "prototype", "quadratic", or "ideal", which knows the signal
        in the light and takes no features.
    train : {"near", "mixed", "each", "high", "natural"}
        Near threshold; at contrasts over the upper two thirds of the page's range; a stage for each
        contrast; at the highest alone; or on contrasts of other pictures.
    pairs : int
        Fields of noise that are shown with and without the signal, at least 16.
    feature : str
        Name of the observer's feature; "" for its only one.
    false_alarms : float
        Rate of false alarms of yes, above 0 and below 1.
    seed : int
        Of the fields.

    Raises
    ------
    InputError
        A value is out of range.
    UnknownNameError
        There is no such stage or protocol.

    Examples
    --------
    >>> Recipe(pairs=4)
    Traceback (most recent call last):
    psyprobe.errors.InputError: decision.pairs is 4; give a whole number from 16 to 100000
    """

    stage: str = "lda"
    train: Protocol = "near"
    pairs: int = 128
    feature: str = ""
    false_alarms: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise unknown_name("decision stage", self.stage, STAGES)
        if self.train not in PROTOCOLS:
            raise unknown_name("way of training", self.train, PROTOCOLS)
        if not isinstance(self.pairs, int) or not 16 <= self.pairs <= 100_000:
            raise InputError(
                f"decision.pairs is {self.pairs}; give a whole number from 16 to 100000"
            )
        if not 0 < self.false_alarms < 1:
            raise InputError(
                f"decision.false_alarms is {self.false_alarms:g}; give a rate above 0 and below 1"
            )

    def changed(self, options: JsonMapping) -> Recipe:
        """Copy the recipe of training a decision stage with other values of some fields."""
        check_known("option of a decision", options, [f.name for f in fields(self)])
        return replace(self, **options)

    def image_count(self, signals: int) -> int:
        """Count the images with a signal that the training of one condition shows.

        Parameters
        ----------
        signals : int
            Signals between which is decided; 1 where one is there or not.
        """
        if self.stage == "ideal":
            return 0
        fields_shown = self.pairs * {"near": 2, "mixed": 3, "natural": 2}.get(
            self.train, 1
        )
        if self.train == "near":
            fields_shown += PILOT_CONTRASTS * min(PILOT_FIELDS, self.pairs)
        return signals * fields_shown

    def blank_count(self, *, criterion: bool) -> int:
        """Count the images without a signal that training shows, for all conditions alike.

        Parameters
        ----------
        criterion : bool
            Whether yes and no are said, which takes further fields.
        """
        if self.stage == "ideal":
            return 0
        shared = 0 if self.train == "natural" else self.pairs
        return shared + CRITERION_FIELDS * criterion

    def to_dict(self) -> JsonObject:
        """Return the training recipe as text and numbers."""
        return {**asdict(self), "version": VERSION}


@dataclass(frozen=True, eq=False)
class Decision:
    """What an observer needs to decide on the images of a trial."""

    recipe: Recipe
    #: The trained stage, as `TrainedStage.to_dict` gives it.
    stage: JsonMapping
    #: The display that shows the images.
    display: Display
    #: The word for each alternative.
    answers: tuple[str, ...]
    #: Frames of each clip, 1 for stills, and how many are shown a second.
    frames: int = 1
    fps: float = 0.0
    #: Contrast of the trial over that of the signals which stage "ideal" knows.
    relative_contrast: float = 1.0
