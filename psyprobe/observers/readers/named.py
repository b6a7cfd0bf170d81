"""List the readers of letters by name, say what each lacks to run here, and load one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from psyprobe.errors import InputError, PsyprobeError, check_known
from psyprobe.observers.readers.tesseract import INSTALL, Tesseract
from psyprobe.observers.registry import ObserverRow, describe_missing

if TYPE_CHECKING:
    from psyprobe.observers.chat.protocol import Answering

_SUMMARIES = {
    "rapidocr": "a recogniser of text that names letters, the network inside the package rapidocr",
    "tesseract": "the program tesseract, which names letters that it sees in black and white",
}


def load_reader(name: str, within: float | None = None) -> Answering:
    """Load a reader of letters: "rapidocr" or "tesseract".

    Parameters
    ----------
    name : str
        Which reader.
    within : float, optional
        Of "rapidocr"; see `psyprobe.observers.readers.recogniser.LetterRecogniser`.

    Raises
    ------
    UnknownNameError
        There is no such reader.
    PsyprobeError
        What it needs is not installed here.
    InputError
        The option is another reader's, or too small.
    """
    check_known("reader", [name], _SUMMARIES)
    if obstacle := _obstacle(name):
        raise PsyprobeError(f"reader:{name} {obstacle}")
    if name == "tesseract":
        if within is not None:
            raise InputError("reader:tesseract takes no option 'within'")
        return Tesseract()
    from psyprobe.observers.readers.recogniser import LetterRecogniser

    return LetterRecogniser(within)


def reader_rows() -> list[ObserverRow]:
    """List the readers, each with what it lacks to run here."""
    return [
        ObserverRow(f"reader:{name}", summary, "answer", _obstacle(name))
        for name, summary in _SUMMARIES.items()
    ]


def _obstacle(name: str) -> str:
    """Say what is missing to run a reader, and how to get it; "" if nothing."""
    if name == "tesseract":
        return "" if shutil.which("tesseract") else f"needs tesseract: {INSTALL}"
    return describe_missing(
        ("onnxruntime", "rapidocr"),
        "pip install 'psyprobe[readers]' and pip install --no-deps rapidocr==3.10.0",
    )
