"""Name letters by the program tesseract, a process for each image: "reader:tesseract"."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from time import perf_counter

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import encode_png, file_digest
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, eight_bit
from psyprobe.observers.encoders.network import explained
from psyprobe.observers.protocol import Card

INSTALL = "apt install tesseract-ocr tesseract-ocr-eng"
#: One character is looked for, at a resolution that is told since the image tells none.
_SETTINGS = ("--psm", "10", "--dpi", "150")
#: Version 5 tells where its data lie, and keeps to the characters that it is allowed.
_VERSION = re.compile(r"tesseract v?((?:[5-9]|\d\d)\.\S*)")
_FOLDER = re.compile(r'"(.+)"')
#: Seconds after which a process is ended; one image takes less than one.
_LIMIT = 60.0


class Tesseract(Answering):
    """An observer that names a letter by the first character that tesseract prints.

    Only the labels of a question may be printed, and its words do not count. Tesseract makes each
    image black and white before it reads, so its contrast sensitivity is that of a threshold. Where
    it prints nothing, the reply is empty, and reads as "invalid".

    Raises
    ------
    PsyprobeError
        The program is older than version 5, or has no data of English.
    """

    fewest_images = images_at_once = 1
    bits = 8

    def __init__(self) -> None:
        version = _VERSION.match(_run("--version"))
        folder = _FOLDER.search(_run("--list-langs"))
        if version is None or folder is None:
            raise PsyprobeError(f"reader:tesseract needs version 5 or newer: {INSTALL}")
        data = Path(folder[1]) / "eng.traineddata"
        if not data.is_file():
            raise PsyprobeError(
                f"reader:tesseract has no data of English in {data.parent}: {INSTALL}"
            )
        self.card = Card(
            "reader:tesseract",
            "answer",
            weights=f"file {data}",
            weights_digest=file_digest(data),
            licence="Apache-2.0",
            paper="Smith (2007), ICDAR 2, 629",
            options={
                "version": version[1],
                "settings": [*_SETTINGS],
                "rule": "first_character",
            },
        )

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Name the first character that the program prints of those that are asked for."""
        for letter in inquiry.words:
            if len(letter) != 1 or not letter.isprintable() or not letter.strip():
                raise InputError(
                    f"reader:tesseract names single characters, and {letter!r} is none; ask by "
                    "the probe identify which of several letters is shown"
                )
        start = perf_counter()
        allowed = f"tessedit_char_whitelist={''.join(inquiry.words)}"
        image = encode_png(eight_bit(inquiry.images[0]))
        text = _run("-", "-", *_SETTINGS, "-l", "eng", "-c", allowed, image=image)
        return Answer(
            text.strip()[:1],
            latency=perf_counter() - start,
            model=self.card.name,
        )


def _run(*arguments: str, image: bytes = b"") -> str:
    """Run the program, with an image as its input, and return what it prints."""
    problems = (OSError, subprocess.SubprocessError)
    with explained("reader:tesseract cannot run", *problems, error=PsyprobeError):
        process = subprocess.run(
            ["tesseract", *arguments],
            input=image,
            capture_output=True,
            check=True,
            timeout=_LIMIT,
            # Several threads would only be slower with one letter.
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )
    return process.stdout.decode(errors="replace")
