"""Ask models of VLMEvalKit, "vlmevalkit:NAME", or any object with its ``generate``."""

from __future__ import annotations

import importlib
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, PsyprobeError, check_known
from psyprobe.files.images import encode_png
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, eight_bit
from psyprobe.observers.protocol import Card

#: The reply of VLMEvalKit in place of an answer when a server failed, unless the model has words of
#: its own.
FAILED = "Failed to obtain answer via API"


def load_vlmevalkit(name: str, *, system: bool = False) -> VLMEvalKitObserver:
    """Load a model of VLMEvalKit by its key in `vlmeval.config.supported_VLM`.

    `system` is that of `VLMEvalKitObserver`.
    """
    models = importlib.import_module("vlmeval.config").supported_VLM
    names = [f"vlmevalkit:{model}" for model in models]
    check_known("observer", [f"vlmevalkit:{name}"], names)
    return VLMEvalKitObserver(models[name](), name, system=system)


class VLMEvalKitObserver(Answering):
    """A model object of VLMEvalKit, which answers in text to images that it reads from files.

    VLMEvalKit gives no probabilities and lets nobody choose temperature and length: those are set
    where the model object is made, and are part of what `version` stands for. Images reach it as
    PNG files. Some of its models send images on to a server as JPEG, which takes most of the
    contrast above 8 cpd; that cannot be seen from here.

    Parameters
    ----------
    model : object
        An object with ``generate(message=[{"type": "image", "value": PATH}, {"type": "text",
        "value": TEXT}])``.
    name : str
        Its name in results, after "vlmevalkit:".
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

    def __init__(
        self, model: Any, name: str, *, version: str = "1", system: bool = False
    ) -> None:
        if not callable(getattr(model, "generate", None)):
            raise InputError(
                f"vlmevalkit:{name}: a {type(model).__name__} has no method 'generate'"
            )
        self._model = model
        self._system = system
        # Some models read texts and images in turn; to the others VLMEvalKit gives only the first
        # image.
        self.images_at_once = None if getattr(model, "INTERLEAVE", False) else 1
        # Most of these models hold one conversation at a time.
        self._lock = threading.Lock()
        self.card = Card(
            f"vlmevalkit:{name}",
            "answer",
            device="server" if getattr(model, "is_api", False) else "cpu",
            weights=f"VLMEvalKit, {type(model).__module__}.{type(model).__qualname__}",
            options={
                "version": version,
                "class": type(model).__qualname__,
                "system": system,
            },
        )

    def _reply(self, inquiry: Inquiry) -> Answer:
        """Ask the model one question with images in temporary files, and time its reply."""
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
        text = (
            f"{inquiry.system}\n{inquiry.prompt}" if inquiry.system else inquiry.prompt
        )
        with self._lock, tempfile.TemporaryDirectory(prefix="psyprobe-") as folder:
            message = []
            for number, image in enumerate(inquiry.images):
                path = Path(folder, f"{number}.png")
                path.write_bytes(encode_png(eight_bit(image), noise=True))
                message.append({"type": "image", "value": str(path)})
            message.append({"type": "text", "value": text})
            start = time.perf_counter()
            reply = self._model.generate(message=message)
            latency = time.perf_counter() - start
        if not isinstance(reply, str):
            raise PsyprobeError(
                f"{name} returned a {type(reply).__name__} instead of text"
            )
        if getattr(self._model, "fail_msg", FAILED) in reply:
            raise PsyprobeError(f"{name} got no answer: {reply!r}")
        return Answer(reply, latency=latency, model=name, server="VLMEvalKit")
