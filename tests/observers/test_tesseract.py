"""Tesseract, where it is installed, names the letters of the reference, and empties the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_letter_recogniser import SLOAN

import psyprobe as pp
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.readers import tesseract

(ROW,) = list_observers("reader:tesseract")
needs_tesseract = pytest.mark.skipif(bool(ROW.obstacle), reason=ROW.obstacle)


def read(reader: Any, letter: str, height: float) -> str:
    """Have a black letter, height px, read on mid-grey, in the middle of 96 x 96 px."""
    stimulus = pp.optotype(
        letter=letter, contrast=-1, letter_size=height / 60, ppd=60, size=96
    )
    drive = pp.Display(peak=2 * stimulus.luminance.max(), eotf=1).encode(stimulus)
    codes = np.rint(255 * np.asarray(drive)) / 255
    return str(reader.answer([codes], "?", words=SLOAN).text)


@needs_tesseract
def test_letters_are_read_as_the_reference_says() -> None:
    """O and R vanish on mid-grey at 24 px, and H of 48 px comes out as "KH"."""
    reader = load_observer("reader:tesseract")
    card = reader.card
    if card.options["version"] != "5.3.0":
        pytest.skip("the reference was made with tesseract 5.3.0")
    assert card.weights_digest is not None
    assert (
        card.weights_digest[:8] == "7d4322bd" and card.weights_digest[-7:] == "27170b2"
    )
    readings = {letter: read(reader, letter, 24) for letter in SLOAN}
    assert readings == {**{letter: letter for letter in SLOAN}, "O": "", "R": ""}
    assert read(reader, "H", 48) == "K"


@needs_tesseract
def test_what_it_cannot_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = load_observer("reader:tesseract")
    image = np.full((96, 96, 3), 128 / 255)
    with pytest.raises(InputError, match="single characters, and 'yes' is none"):
        reader.answer([image], "Is it a letter?")
    monkeypatch.setattr(tesseract, "_LIMIT", 1e-6)
    with pytest.raises(PsyprobeError, match="reader:tesseract cannot run"):
        reader.answer([image], "?", words=SLOAN)


def test_one_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(
        PsyprobeError, match=r"needs tesseract: apt install tess\S+-ocr"
    ):
        load_observer("reader:tesseract")
    (row,) = list_observers("reader:tesseract")
    assert row.obstacle.startswith("needs tesseract: apt install")


@pytest.mark.parametrize("printed", ["tesseract 4.1.1", ""])
def test_an_old_program_is_refused(
    printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(tesseract, "_run", lambda *arguments: printed)
    with pytest.raises(PsyprobeError, match="needs version 5 or newer"):
        load_observer("reader:tesseract")
