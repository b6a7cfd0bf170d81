"""The published alignment scores of the 45 models of Cai et al., for display beside one's own.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR, arXiv 2502.20256. Figure 6.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

#: Their name of each test, and ours of the experiment.
EXPERIMENT_OF_TEST = {
    "sf_gabor_ach": "gabor_achromatic",
    "sf_noise_ach": "noise_achromatic",
    "sf_gabor_rg": "gabor_red_green",
    "sf_gabor_yv": "gabor_yellow_violet",
    "luminance": "luminance",
    "area": "area",
    "mask_coherent": "mask_coherent",
    "mask_incoherent": "mask_incoherent",
    "matching": "contrast_matching",
}

_NUMBERS = ("score", "submission", "float32_floor")


@dataclass(frozen=True)
class PublishedScore:
    """One published score."""

    #: The authors' key.
    model: str
    family: str
    #: The name in their figure.
    label: str
    #: Our name, without "_published".
    experiment: str
    #: Their name.
    test: str
    #: Spearman's r_s ("alignment"), or the error of contrast matches ("error_mean", "error_pooled"; log10 units).
    metric: str
    #: Of the final table, which the authors' results pages show.
    score: float
    #: Of the table before they rescaled the chromatic stimuli; None where it has no such number.
    submission: float | None
    #: Share (0 to 1) of the responses behind the score at 0 or at the smallest value of their float32 arccosine; None
    #: where those are not stored.
    float32_floor: float | None


@lru_cache(maxsize=1)
def published_scores() -> tuple[PublishedScore, ...]:
    """All published scores: 45 models, nine tests, contrast matching by two definitions.

    Returns
    -------
    tuple of PublishedScore
        In the authors' order of models.

    Examples
    --------
    >>> scores = published_scores()
    >>> len(scores), scores[0].label, scores[0].score
    (450, 'No Encoder', 0.4688)
    """
    text = files("psyprobe.analysis").joinpath("data", "published_scores.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows: list[dict[str, Any]] = list(csv.DictReader(lines))
    numbers = [{name: float(row[name]) if row[name] else None for name in _NUMBERS} for row in rows]
    return tuple(PublishedScore(**row | each) for row, each in zip(rows, numbers, strict=True))
