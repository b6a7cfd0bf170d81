"""Name categories of things by the classifier of a packaged network: "classifier:NAME"."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, check_known
from psyprobe.files.parsing import packaged_toml
from psyprobe.observers.encoders.network import EncoderOptions
from psyprobe.observers.encoders.packaged import (
    PACKAGES,
    load_head,
    load_packaged,
    packaged_rows,
)
from psyprobe.observers.readers.labels import LabelObserver
from psyprobe.observers.registry import ObserverRow

_TABLE = packaged_toml("psyprobe.observers.readers", "categories.toml")
#: Numbers of the classes of each category.
CATEGORIES = {
    name: [number for first, last in ranges for number in range(first, last + 1)]
    for name, ranges in _TABLE["classes"].items()
}
_NAMES = tuple(
    name for name, package in PACKAGES.items() if package.read == "efficientnet_lite"
)


class CategoryClassifier(LabelObserver):
    """An observer that names one of 16 categories by the 1,000 classes that a network was taught.

    The probability of a category is the mean over its classes (Geirhos et al. 2018). The words of a
    question do not count, only its alternatives.

    Parameters
    ----------
    name : str
        A packaged network with its classifier, such as "efficientnet_lite0".
    """

    def __init__(self, name: str) -> None:
        full = f"classifier:{name}"
        check_known("observer", [full], [f"classifier:{known}" for known in _NAMES])
        self._network = load_packaged(name, EncoderOptions())
        self._weights, self._bias = load_head(name)
        card = self._network.card
        self.card = replace(
            card,
            name=full,
            ability="answer",
            features=(),
            options={
                **card.options,
                "rule": "mean_of_classes",
                "categories": _TABLE["version"],
            },
        )

    def log_probabilities(
        self, image: FloatArray, labels: tuple[str, ...]
    ) -> dict[str, float]:
        """Compute the natural logarithm of the mean probability of the classes of categories.

        Parameters
        ----------
        image : ndarray (H, W, 3)
            Display drive in [0, 1], of the size of the card.
        labels : tuple of str
            Of the 16 names.

        Raises
        ------
        InputError
            A name is none of the 16.
        """
        from scipy import special

        unknown = [name for name in labels if name not in CATEGORIES]
        if unknown:
            raise InputError(
                f"{self.card.name} names {', '.join(CATEGORIES)}, and {unknown[0]!r} is none of "
                "them; ask by the probe identify which of these is shown"
            )
        batch = np.asarray(image, np.float32)[None]
        (features,) = self._network.features(batch).values()
        logits = self._weights @ features[0].astype(np.float64) + self._bias
        logs = special.log_softmax(logits)
        return {
            name: float(
                special.logsumexp(logs[CATEGORIES[name]])
                - math.log(len(CATEGORIES[name]))
            )
            for name in labels
        }


def classifier_rows() -> list[ObserverRow]:
    """List the networks whose classifiers come with their packages, with what is missing here."""
    encoders = {row.name.partition(":")[2]: row for row in packaged_rows()}
    return [
        replace(
            encoders[name],
            name=f"classifier:{name}",
            summary=f"{encoders[name].summary}: names 16 categories by its classes",
            ability="answer",
        )
        for name in _NAMES
    ]
