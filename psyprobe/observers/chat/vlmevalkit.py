"""Models of VLMEvalKit: "vlmevalkit:NAME", or any object with its ``generate``."""

from __future__ import annotations

import importlib
import shutil
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.files.images import encode_png
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, eight_bit, image_digest
from psyprobe.observers.protocol import Card

#: Image files that are kept: prompts about one image share its file.
KEPT = 64
#: What VLMEvalKit returns in place of an answer when a server failed, unless the model has words of
#: its own.
FAILED = "Failed to obtain answer via API"


def load_vlmevalkit(name: str, *, system: bool = False) -> VLMEvalKitObserver:
    """A model of VLMEvalKit by its key in ``vlmeval.config.supported_VLM``; `system` as in
    `VLMEvalKitObserver`.
    """
    known = importlib.import_module("vlmeval.config").supported_VLM
    if name not in known:
        raise unknown_name(
            "observer", f"vlmevalkit:{name}", [f"vlmevalkit:{each}" for each in known]
        )
    return VLMEvalKitObserver(known[name](), name, system=system)


class VLMEvalKitObserver(Answering):
    """A model object of VLMEvalKit: text answers to images, which it reads from files.

    VLMEvalKit gives no probabilities and no say over temperature and length: those are set where
    the model object is made, and are part of what `version` stands for. Images reach it as PNG
    files. Some of its models send images on to a server as JPEG, which takes most of the contrast
    above 8 cpd; that cannot be seen from here.

    Parameters
    ----------
    model : object
        With ``generate(message=[{"type": "image", "value": PATH}, {"type": "text", "value":
        TEXT}])``.
    name : str
        What to call it in results, after "vlmevalkit:".
    version : str
        Change it when the model object is made differently: stored answers are told apart by name
        and version.
    system : bool
        Whether a system instruction may go before the prompt, as text: these models have no other
        place for it.

    Raises
    ------
    InputError
        If the object has no ``generate``.

    Examples
    --------
    >>> import numpy as np
    >>> class Model:
    ...     def generate(self, message, dataset=None):
    ...         return "Yes" if message[-1]["value"].startswith("Is") else "No"
    >>> observer = VLMEvalKitObserver(Model(), "mine")
    >>> observer.answer([np.full((8, 8, 3), 128 / 255)], "Is there a pattern?").text
    'Yes'
    """

    bits = 8

    def __init__(self, model: Any, name: str, *, version: str = "1", system: bool = False) -> None:
        if not callable(getattr(model, "generate", None)):
            raise InputError(
                f"vlmevalkit:{name}: a {type(model).__name__} has no method 'generate'"
            )
        self._model = model
        self._system = system
        # Some read texts and images in turn; of the others VLMEvalKit would pass over all images
        # but the first.
        self.images_at_once = None if getattr(model, "INTERLEAVE", False) else 1
        self._folder = Path(tempfile.mkdtemp(prefix="psyprobe-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._lock = threading.Lock()  # most of these models hold one conversation at a time
        self.card = Card(
            f"vlmevalkit:{name}",
            "answer",
            weights=f"VLMEvalKit, {type(model).__module__}.{type(model).__qualname__}",
            options={"version": version, "class": type(model).__qualname__, "system": system},
        )

    def _reply(self, inquiry: Inquiry) -> Answer:
        name = self.card.name
        if inquiry.system and not self._system:
            raise InputError(
                f"{name} has no place for a system instruction; system=True puts it before the "
                "prompt"
            )
        if inquiry.decoding.temperature:
            raise InputError(
                f"{name} takes no temperature: set it where its model object is made, and ask "
                "with 0"
            )
        with self._lock:
            message = [
                {"type": "image", "value": str(self._file(image))} for image in inquiry.images
            ]
            text = f"{inquiry.system}\n{inquiry.prompt}" if inquiry.system else inquiry.prompt
            message.append({"type": "text", "value": text})
            began = time.perf_counter()
            reply = self._model.generate(message=message)
            took = time.perf_counter() - began
        if not isinstance(reply, str):
            raise PsyprobeError(f"{name} returned a {type(reply).__name__} instead of text")
        if getattr(self._model, "fail_msg", FAILED) in reply:
            raise PsyprobeError(f"{name} got no answer: {reply!r}")
        return Answer(reply, latency=took, model=name, server="VLMEvalKit")

    def _file(self, image: FloatArray) -> Path:
        path = self._folder / f"{image_digest(image)}.png"
        if not path.is_file():
            held = sorted(self._folder.glob("*.png"), key=lambda each: each.stat().st_mtime_ns)
            for old in held[: max(0, len(held) - KEPT + 1)]:
                old.unlink()
            path.write_bytes(encode_png(eight_bit(image), noise=True))
        return path
