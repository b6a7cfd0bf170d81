"""What a run will show, in which batches: fixed before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from psyprobe.errors import InputError

#: Pixels of a batch: 8 images of 224 x 224. On a processor more of them cost more an image: from 16 on, activations
#: are fetched anew from the system for each layer, which takes convolutional networks up to 2.7 times as long.
BATCH_PIXELS = 8 * 224 * 224
#: An accelerator works on so many times more at once.
ACCELERATOR_FACTOR = 16
#: Largest batch.
MOST_IMAGES = 256


@dataclass(frozen=True)
class PairPlan:
    """What running an experiment of pairs means, before anything is asked."""

    #: Names.
    experiment: str
    observer: str
    #: Distinct images of the level grid, those that only the score needs, and those that tests are compared with.
    grid: int
    score: int
    references: int
    #: References shown a second time, for the noise floor.
    repeated: int
    #: Pairs of test and reference, those of the noise floor included, and how many of them the store has answered.
    questions: int
    answered: int
    #: Batches left to ask, and images in each.
    batches: int
    batch_size: int
    #: Pixels (H, W) of an image, and pixels per degree.
    size: tuple[int, int]
    ppd: float
    #: What is left takes about so long, without drawing; None where nothing was timed.
    seconds: float | None
    #: What a reader should know before anything is asked.
    remarks: tuple[str, ...] = ()

    @property
    def images(self) -> int:
        """Distinct images, each drawn and passed through the observer once."""
        return self.grid + self.score + self.references

    def with_all(self, others: Sequence[PairPlan]) -> PairPlan:
        """What running all variants of an experiment means: the sums of all counts."""
        counts = ["grid", "score", "references", "repeated", "questions", "answered", "batches"]
        counts += ["seconds"] * (self.seconds is not None)
        sums = {name: sum(getattr(each, name) for each in (self, *others)) for name in counts}
        return replace(self, experiment=f"{self.experiment} in {1 + len(others)} variants", **sums)

    def to_dict(self) -> dict[str, Any]:
        """The plan as numbers, text and lists.

        Returns
        -------
        dict
            One entry for each field, and "images".
        """
        return {**asdict(self), "size": list(self.size), "images": self.images}

    def __str__(self) -> str:
        height, width = self.size
        return (
            f"{self.experiment} with {self.observer}: {self.images} distinct images of {height} x {width} px at "
            f"{self.ppd:.4g} ppd ({height / self.ppd:.3g} x {width / self.ppd:.3g} deg): {self.grid} on the level "
            f"grid, {self.score} more for the score, {self.references} backgrounds; {self.repeated} shown again "
            f"for the noise floor. {self.answered} of {self.questions} questions are answered; {self.batches} batches "
            f"of up to {self.batch_size} are left." + "".join(f"\nNote: {remark}." for remark in self.remarks)
        )


def default_batch_size(size: tuple[int, int], device: str) -> int:
    """How many images memory surely holds at once.

    Parameters
    ----------
    size : (int, int)
        Pixels (H, W) of an image.
    device : str
        As on the observer's card: "cpu", "cuda:0".

    Returns
    -------
    int
        At least 1; the same on every machine.

    Examples
    --------
    >>> default_batch_size((224, 224), "cpu"), default_batch_size((1024, 1024), "cuda:0")
    (8, 6)
    """
    factor = 1 if device.startswith("cpu") else ACCELERATOR_FACTOR
    return max(1, min(factor * BATCH_PIXELS // (size[0] * size[1]), MOST_IMAGES))


def fixed_batches(references: Sequence[str], wanted: Sequence[int], size: int) -> list[dict[str, Any]]:
    """Group questions into batches whose references fit into memory together.

    Parameters
    ----------
    references : sequence of str
        Digest of each question's reference.
    wanted : sequence of int
        Index of each question to ask.
    size : int
        Images of a batch, and references kept at a time.

    Returns
    -------
    list of dict
        "references": digests to be passed through the observer together; "pairs": indices of questions. Batches with
        the same references follow each other.

    Examples
    --------
    >>> fixed_batches(["a", "a", "a", "b"], [0, 1, 2, 3], size=2)
    [{'references': ['a', 'b'], 'pairs': [0, 1]}, {'references': ['a', 'b'], 'pairs': [2, 3]}]
    """
    if size < 1:
        raise InputError(f"batch size is {size}; give at least 1 image")
    distinct = list(dict.fromkeys(references[i] for i in wanted))
    batches = []
    for start in range(0, len(distinct), size):
        together = distinct[start : start + size]
        members = [i for i in wanted if references[i] in set(together)]
        batches += [
            {"references": together, "pairs": members[first : first + size]} for first in range(0, len(members), size)
        ]
    return batches
