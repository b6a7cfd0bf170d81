"""Name letters by the recogniser in the package rapidocr: "reader:rapidocr", by onnxruntime.

The package is not imported, since that needs OpenCV and may fetch other models.
"""

from __future__ import annotations

import math
from importlib.metadata import files, version
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import file_digest
from psyprobe.files.parsing import packaged_toml
from psyprobe.observers.encoders.network import explained
from psyprobe.observers.protocol import Card
from psyprobe.observers.readers.labels import LabelObserver

#: Size of its images, (height, width) in px: width decides too, by the columns beside a letter.
SIZE = (48, 96)
#: Columns of an image that a step of the network's answer stands for.
_STEP = 8
_TABLE = packaged_toml("psyprobe.observers.readers", "recogniser.toml")


class LetterRecogniser(LabelObserver):
    """An observer that names a letter by a network that was trained to read lines of text.

    The probability of a letter is that of all paths (connectionist temporal classification) that
    spell it and nothing else. The words of a question do not count, only its alternatives. Pages
    are drawn at its size, with their own pixels per degree.

    Parameters
    ----------
    within : float, optional
        Only steps whose columns lie so near the middle column count, px: for a letter between
        others, half their distance.

    Raises
    ------
    PsyprobeError
        The installed version of the package has not the file that this was checked with.
    """

    def __init__(self, within: float | None = None) -> None:
        if within is not None and not within >= _STEP / 2:
            raise InputError(
                f"reader:rapidocr: within is {within!r} px; give {_STEP / 2:g} or more, since a "
                f"step of the network stands for {_STEP} columns"
            )
        self._within = within
        path = _find_file()
        import onnxruntime

        # onnxruntime has no common class of its own.
        with explained(f"reader:rapidocr: onnxruntime cannot load {path}", Exception):
            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
        metadata = self._session.get_modelmeta().custom_metadata_map
        characters = ["", *metadata["character"].split("\n"), " "]
        self._index = {character: i for i, character in enumerate(characters)}
        self.card = Card(
            "reader:rapidocr",
            "answer",
            input_size=SIZE,
            input="normalised",
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
            weights=f"file {path}",
            weights_digest=_TABLE["sha256"],
            licence=_TABLE["licence"],
            paper=_TABLE["paper"],
            options={
                "rule": "ctc_paths",
                "fit": "crop",
                "aliases": _TABLE["aliases"],
                **({} if within is None else {"within": within}),
            },
            software={
                package: version(package) for package in ("rapidocr", "onnxruntime")
            },
        )

    def log_probabilities(
        self, image: FloatArray, labels: tuple[str, ...]
    ) -> dict[str, float]:
        """Compute the natural log-probability that an image spells each letter alone.

        Parameters
        ----------
        image : ndarray (48, 96, 3)
            Display drive in [0, 1].
        labels : tuple of str
            Single characters.

        Raises
        ------
        InputError
            The image has another size, or the network does not know a letter.
        """
        if image.shape[:2] != SIZE:
            height, width = image.shape[:2]
            raise InputError(
                f"{self.card.name} looks at images of 48 x 96 px, and this one has {height} x "
                f"{width} px; draw it at that size, since resizing changes what is read"
            )
        for letter in labels:
            if letter not in self._index or not letter.strip():
                raise InputError(
                    f"{self.card.name} names single characters, and {letter!r} is none that it "
                    "knows; ask by the probe identify which of several letters is shown"
                )
        pixels = (np.asarray(image, np.float32) - np.float32(0.5)) / np.float32(0.5)
        # Channels stand as blue, green, red.
        batch = np.ascontiguousarray(pixels[None, ..., ::-1].transpose(0, 3, 1, 2))
        message = f"{self.card.name}: onnxruntime cannot run it"
        with explained(message, Exception, error=PsyprobeError):
            steps = self._session.run(None, {"x": batch})[0][0].astype(np.float64)
        if self._within is not None:
            columns = (np.arange(len(steps)) + 0.5) * _STEP
            steps = steps[np.abs(columns - SIZE[1] / 2) <= self._within]
        blank = steps[:, 0]
        return {
            letter: _log(
                sum(
                    _path_sum(blank, steps[:, self._index[character]])
                    for character in dict.fromkeys(
                        letter + _TABLE["aliases"].get(letter, "")
                    )
                )
            )
            for letter in labels
        }


def _find_file() -> Path:
    """Find the network's file in the package, and check that it is the file that is meant."""
    for entry in files("rapidocr") or ():
        path = Path(str(entry.locate()))
        is_meant = path.name == _TABLE["file"] and path.is_file()
        if is_meant and file_digest(path) == _TABLE["sha256"]:
            return path
    raise PsyprobeError(
        f"reader:rapidocr: rapidocr {version('rapidocr')} has no {_TABLE['file']} of SHA-256 "
        f"{_TABLE['sha256'][:12]}...; pip install --no-deps rapidocr=={_TABLE['version']}"
    )


def _path_sum(blank: FloatArray, character: FloatArray) -> float:
    """Sum the probabilities of all paths that spell one character, over steps (T,)."""
    before = 1.0
    within = 0.0
    after = 0.0
    for blank_share, character_share in zip(blank, character, strict=True):
        after = (within + after) * float(blank_share)
        within = (before + within) * float(character_share)
        before *= float(blank_share)
    return within + after


def _log(probability: Any) -> float:
    """Take the natural logarithm, finite also of 0."""
    return math.log(max(probability, 1e-300))
